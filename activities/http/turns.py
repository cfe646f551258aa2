"""Turns of an event loop: long work gives way to the other tasks of its worker."""

import asyncio
import time

from sennit.activities.limits import MAX_TURN_SECONDS


class Turns:
    """The turns of one piece of work that may never have to wait, such as reading bytes
    that have all arrived.
    """

    def __init__(self) -> None:
        self._since = time.monotonic()

    async def give_way(self) -> None:
        """Let other tasks go on if this work has held the event loop for long."""
        if time.monotonic() - self._since < MAX_TURN_SECONDS:
            return
        await asyncio.sleep(0)
        self._since = time.monotonic()
