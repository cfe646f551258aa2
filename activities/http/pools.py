"""Connections that many requests share, kept in small pools.

A pool of httpx looks at all of its connections whenever a request begins or ends. Once it has more
of them than it shall keep, it also closes each one that falls idle, however few are idle. With
hundreds of requests at once, one pool would take more time than the requests, and would open a
connection for each of them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx

from sennit.activities.limits import MAX_POOL_REQUESTS

KEPT_SECONDS: Final = 15.0
"""How long a connection stays open that no request uses."""


@dataclass(slots=True, eq=False)
class Pool:
    """A client with its own connections, and how many requests it has under way."""

    client: httpx.AsyncClient
    requests: int = 0
    closing: asyncio.TimerHandle | None = None


class Pools:
    """As many pools as the requests need. Each request takes a place in one of them, and gives it
    back. The first pools are filled first, so that the others fall idle when there is less to do;
    a pool that stays idle is closed.
    """

    def __init__(self, new_client: Callable[[httpx.Limits], httpx.AsyncClient]) -> None:
        """`new_client` returns a client that keeps connections within these limits."""
        self._new_client = new_client
        self._pools: list[Pool] = []
        self._closings: dict[asyncio.Task[None], None] = {}

    def take(self) -> Pool:
        """Return a pool with a place for one more request, which has that place now."""
        pool = self._with_room()
        pool.requests += 1
        if pool.closing is not None:
            pool.closing.cancel()
            pool.closing = None
        return pool

    def give_back(self, pool: Pool) -> None:
        """Free the place of a request that is over."""
        pool.requests -= 1
        if not pool.requests and pool in self._pools:
            loop = asyncio.get_running_loop()
            pool.closing = loop.call_later(KEPT_SECONDS, self._close_idle, pool)

    async def close(self) -> None:
        """Close all connections. Requests that are still under way fail."""
        pools = self._pools
        self._pools = []
        for pool in pools:
            if pool.closing is not None:
                pool.closing.cancel()
        closings = [pool.client.aclose() for pool in pools]
        await asyncio.gather(*closings, *self._closings)

    def _with_room(self) -> Pool:
        for pool in self._pools:
            if pool.requests < MAX_POOL_REQUESTS:
                return pool
        limits = httpx.Limits(
            max_connections=None,
            max_keepalive_connections=MAX_POOL_REQUESTS,
            keepalive_expiry=KEPT_SECONDS,
        )
        pool = Pool(self._new_client(limits))
        self._pools.append(pool)
        return pool

    def _close_idle(self, pool: Pool) -> None:
        self._pools.remove(pool)
        task = asyncio.get_running_loop().create_task(pool.client.aclose())
        self._closings[task] = None
        task.add_done_callback(self._closings.pop)
