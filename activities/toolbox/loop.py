"""The event loop of a worker, on a machine that may sleep."""

import asyncio

from sennit.activities.limits import MAX_PAUSE_SECONDS

TICK = 0.5


class SteadyLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while its process is stopped, or
    while something blocks it.

    So no time limit ends a call whose answer has come meanwhile: a write would be cut off, and
    nobody could say whether it took effect.
    """

    def __init__(self) -> None:
        self._paused = 0.0
        self._looked = 0.0
        super().__init__()
        self._looked = super().time()
        self._tick()

    def time(self) -> float:
        now = super().time()
        pause = now - self._looked
        self._looked = now
        if pause > MAX_PAUSE_SECONDS:
            self._paused += pause
        return now - self._paused

    def _tick(self) -> None:
        """See to it that somebody looks at the clock."""
        self.call_later(TICK, self._tick)
