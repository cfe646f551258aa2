"""What an activity tells the server while it goes on."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from temporalio.client import AsyncActivityCancelledError
from temporalio.testing import ActivityEnvironment

from sennit.activities.nodes.heartbeats import beating, confirmed_heartbeat, heartbeat


class Server:
    """Where heartbeats arrive: those that the SDK sends when it wants to, and those that an activity waits for."""

    def __init__(self, *, cancels: bool = False) -> None:
        self.told: list[tuple[str, Any]] = []
        self._cancels = cancels

    def get_async_activity_handle(self, *, task_token: bytes) -> "Server":
        del task_token
        return self

    async def heartbeat(self, *details: Any) -> None:
        self.told.append(("confirmed", *details))
        if self._cancels:
            raise AsyncActivityCancelledError

    async def of(self, work: Callable[[], Any]) -> list[tuple[str, Any]]:
        environment = ActivityEnvironment(client=cast("Any", self))
        environment.on_heartbeat = lambda *details: self.told.append(("by the SDK", *details))
        await environment.run(work)
        return self.told


async def test_the_first_heartbeat_that_is_confirmed_is_sent_once() -> None:
    async def work() -> None:
        with beating(tuple):
            await confirmed_heartbeat(1)

    assert await Server().of(work) == [("confirmed", 1)]


async def test_an_older_heartbeat_does_not_come_after_a_confirmed_one() -> None:
    """The SDK may still hold the older one back. It then sends the newer one in its place."""

    async def work() -> None:
        with beating(tuple):
            heartbeat(1)
            await confirmed_heartbeat(2)

    assert await Server().of(work) == [("by the SDK", 1), ("by the SDK", 2), ("confirmed", 2)]


async def test_a_heartbeat_of_a_task_of_the_activity_counts_too() -> None:
    async def beat() -> None:
        heartbeat(1)

    async def work() -> None:
        with beating(tuple):
            await asyncio.create_task(beat())
            await confirmed_heartbeat(2)

    assert await Server().of(work) == [("by the SDK", 1), ("by the SDK", 2), ("confirmed", 2)]


async def test_the_sdk_learns_of_a_cancellation_that_a_confirmed_heartbeat_meets() -> None:
    async def work() -> None:
        with beating(tuple):
            await confirmed_heartbeat(1)

    assert await Server(cancels=True).of(work) == [("confirmed", 1), ("by the SDK", 1)]
