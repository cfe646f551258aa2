"""Small pools of connections: which one a request takes, and when they are closed."""

import asyncio
from typing import Any

import httpx
import pytest

from sennit.activities.http import pools
from sennit.activities.http.pools import Pools
from sennit.activities.limits import MAX_POOL_REQUESTS


class SlowToClose(httpx.AsyncClient):
    """A client that takes a moment to close its connections."""

    closed = 0

    async def aclose(self) -> None:
        await asyncio.sleep(0.05)
        await super().aclose()
        self.closed += 1


async def test_the_first_pools_are_filled_first() -> None:
    found = Pools(lambda limits: httpx.AsyncClient(limits=limits))
    taken = [found.take() for _ in range(2 * MAX_POOL_REQUESTS)]
    assert [taken.count(pool) for pool in dict.fromkeys(taken)] == [MAX_POOL_REQUESTS] * 2
    found.give_back(taken[0])
    assert found.take() is taken[0]
    await found.close()


async def test_pools_that_fall_idle_while_others_close_are_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    monkeypatch.setattr(pools, "KEPT_SECONDS", 0.02)
    clients: list[SlowToClose] = []

    def new_client(limits: httpx.Limits) -> httpx.AsyncClient:
        clients.append(SlowToClose(limits=limits))
        return clients[-1]

    found = Pools(new_client)
    taken = [found.take() for _ in range(3 * MAX_POOL_REQUESTS)]
    for pool in taken:
        found.give_back(pool)
    await found.close()
    await asyncio.sleep(0.1)
    assert [client.closed for client in clients] == [1, 1, 1]
    assert errors == []
