"""Lets the calls that share an activity go on in turns, a few in each round of the event loop.

To prepare and to keep a call takes the loop a tenth of a millisecond, or longer. If
hundreds did that in one round, everything else on this worker would wait for all of them at
each of its own steps: small runs would stand still beside a large one. Those of one round
share what keeping them costs.
"""

import asyncio
from collections import deque
from contextvars import ContextVar

EACH = 8
"""Calls of one activity that go on in one round."""


class Pace:
    """The turns of one activity's calls, in the order in which they ask for them."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._round, loop)
        self._waiting.append(turn)
        await turn

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(min(EACH, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._round, loop)


PACE: ContextVar[Pace | None] = ContextVar("pace", default=None)
"""That of the activity which runs now, if several calls share it."""


async def turn() -> None:
    """Return when it is the turn of the call that runs now."""
    pace = PACE.get()
    if pace is not None:
        await pace.turn()
