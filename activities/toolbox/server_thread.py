"""A thread with an event loop of its own for the servers of others: one that floods
us delays no other work.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ServerThread:
    """A thread that runs an event loop until the process ends."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=name, daemon=True).start()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Run `work` there, from another event loop; cancelling the future cancels it."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there and wait, from a thread without an event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
