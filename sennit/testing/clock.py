"""An event loop in which time passes at once: it jumps to the next timer when nobody works."""

import asyncio
import inspect
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

_LOOK = 0.02
"""Seconds of real time after which the loop looks again whether a thread has something for it."""


_LEAST = 1e-6
"""Seconds of a jump: less may be lost in the number that holds the time."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Every sleep, timeout and deadline of what runs in it is exact, and takes no real time.

    While `working` is above zero something is under way that timers do not see, such as a thread:
    then time stands still. Time begins at zero.
    """

    def __init__(self) -> None:
        self.working = 0
        self._now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += max(seconds, _LEAST)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in asyncio
        """Wait until all threads have ended. From Python 3.12 on there is a limit, which
        would pass at once here.
        """
        del timeout
        with self.work():
            await super().shutdown_default_executor()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Let time stand still for the length of the block."""
        self.working += 1
        try:
            yield
        finally:
            self.working -= 1

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Let time pass within a block of `work`: it is the fake's own time."""
        self.working -= 1
        try:
            yield
        finally:
            self.working += 1

    async def in_its_time(self, fake: Callable[..., Any], /, *values: Any, **named: Any) -> Any:
        """Return what a fake returns, which may be a coroutine function. While
        it waits, time passes.
        """
        with self.rest():
            value = fake(*values, **named)
            return await value if inspect.isawaitable(value) else value


@contextmanager
def working() -> Iterator[None]:
    """Let time stand still for the length of the block, in a loop where it
    does not pass by itself.
    """
    loop = asyncio.get_running_loop()
    with loop.work() if isinstance(loop, VirtualLoop) else nullcontext():
        yield


@contextmanager
def resting() -> Iterator[None]:
    """Let time pass within a block of `working`."""
    loop = asyncio.get_running_loop()
    with loop.rest() if isinstance(loop, VirtualLoop) else nullcontext():
        yield


class _Selector(selectors.DefaultSelector):
    """Tells a loop what is ready. Where nothing is, it lets the time of the loop
    pass instead of its own.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self._loop.working or timeout is None:
            return super().select(_LOOK)
        self._loop.jump(timeout)
        return []
