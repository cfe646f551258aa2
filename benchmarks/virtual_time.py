"""An event loop whose clock jumps to what is due next: hours of simulated latencies take no time, in an order that
depends on nothing else.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any


def run(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """Return what the work returns, and the simulated seconds it took. Raises RuntimeError if it waits for ever."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work), runner.get_loop().time()


class _Clock(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing is due, and something waits")
        self.now += timeout
        return []


class _Loop(asyncio.SelectorEventLoop):
    """Work for other threads is done at once, between two jumps."""

    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(  # type: ignore[override]
        self, _: Executor | None, function: Callable[..., Any], *arguments: Any
    ) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:  # noqa: BLE001  it is raised where the work is awaited
            done.set_exception(error)
        return done
