"""A pool of processes that compute: as many at once as there are cores, 16 at most; each stays for the next."""

from threading import Lock
from typing import Any, Final

from sennit.activities.programs.checkouts import Checkouts
from sennit.activities.sandbox.computing import ComputingParent, ComputingProcess, Service

_PATIENCE: Final = 120.0
"""In seconds. A machine that has not given a request its processor time by then is asked again later."""


class ComputingPool:
    """Asks one service. Threads share it; not to be used in an event loop.

    `work` says what its processes do, for messages.
    """

    def __init__(self, work: str, service: Service) -> None:
        self._parent = ComputingParent(service)
        self.checkouts = Checkouts(work)
        self._free: list[ComputingProcess] = []
        self._lock = Lock()

    def ask(self, request: bytes) -> Any:
        """Return what the service answers to a line of JSON. Nothing of it has been checked but that it is JSON.

        Raises NoAnswer, ProcessEnded, and InterpreterCrashed if no process becomes free.
        """
        with self.checkouts.one():
            process = self._take()
            answer = process.ask(request, _PATIENCE)
            if process.is_spent:
                process.end()
            else:
                self._give_back(process)
        return answer

    def warm_up(self) -> None:
        """Have a process ready, so that the first request does not wait for one to start. Raises NoAnswer, and
        InterpreterCrashed if none becomes free.
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
            if self._free:
                return self._free.pop()
        return self._parent.copy()

    def _give_back(self, process: ComputingProcess) -> None:
        with self._lock:
            self._free.append(process)
