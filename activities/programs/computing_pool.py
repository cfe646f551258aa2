"""A pool of processes that compute: as many at once as there are cores, 16 at most;
each stays for the next.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeVar

from sennit.activities.programs import checkouts
from sennit.activities.programs.checkouts import Checkouts
from sennit.activities.sandbox.computing import ComputingParent, ComputingProcess, Service

_WAITS_IN_A_CHECKOUT: Final = 2
"""How often the patience with one process fits into the wait for a free one: if all processes are
silent, those who wait for them still get their turn.
"""

T = TypeVar("T")


class ComputingPool:
    """Asks one service. Threads share it; not to be used in an event loop.

    `work` says what its processes do, for messages.
    """

    def __init__(self, work: str, service: Service) -> None:
        self._parent = ComputingParent(service)
        self.checkouts = Checkouts(work)
        self._free: list[ComputingProcess] = []
        self._lock = Lock()

    def ask(self, request: bytes, check: Callable[[Any], T]) -> T:
        """Return what `check` makes of the answer to a line of JSON, of which only that
        it is JSON is certain.

        `check` raises NoAnswer for what is no answer to that request. The process has been killed
        then: one that lies has been taken over, and must serve nobody else. Raises NoAnswer, also
        for a process that is silent, then ProcessEnded, and InterpreterCrashed if no process
        becomes free. A machine that was too busy may be asked again.
        """
        with self.checkouts.one():
            process = self._take()
            try:
                checked = check(
                    process.ask(request, checkouts.CHECKOUT_SECONDS / _WAITS_IN_A_CHECKOUT)
                )
            except BaseException:
                process.end()
                raise
            if process.is_spent:
                process.end()
            else:
                self._give_back(process)
        return checked

    def warm_up(self) -> None:
        """Have a process ready, so that the first request does not wait for one to start. Raises
        NoAnswer, and InterpreterCrashed if none becomes free.
        """
        with self.checkouts.one():
            self._give_back(self._take())

    def close(self) -> None:
        """End all processes. The next request starts new ones."""
        with self._lock:
            free, self._free = self._free, []
        for process in free:
            process.end()
        self._parent.close()

    def _take(self) -> ComputingProcess:
        with self._lock:
            while self._free:
                process = self._free.pop()
                if process.lives:
                    return process
                # Something else has killed it, or the parent of all: no request need fail for that.
                process.end()
        return self._parent.copy()

    def _give_back(self, process: ComputingProcess) -> None:
        with self._lock:
            self._free.append(process)
