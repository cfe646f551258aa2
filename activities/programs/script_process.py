"""The processes in which scripts run and wait, of this worker.

Each program has a process of its own, with all of its tasks: no other one sees what it changes in
the modules of Python, and what it takes is its own. A process is only a convenience. Whatever was
told to a script is on record, so any process may be ended at any time.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final

from sennit.activities.limits import (
    MAX_LIVE_PROGRAMS_BYTES,
    MAX_PROGRAM_MESSAGE_BYTES,
    MAX_SCRIPT_MEMORY_BYTES,
    MAX_SCRIPT_PROCESSES,
)
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.sandbox.computing import ComputingParent, ComputingProcess, NoAnswer, Service

_MODULE: Final = "sennit.activities.programs.cpython.service"
PROCESS_SECONDS: Final = 600
"""Of processor time that one process may take before the kernel ends it."""
_PATIENCE_SECONDS: Final = 120.0
"""For which a script may keep its thread waiting beside the time that it may compute, on
a machine that is busy.
"""
_BASE_BYTES: Final = 3 << 20
"""That a process takes before its first script, beside what it shares with its parent."""
_PAGE_BYTES: Final = 4096


class ScriptProcess:
    """One process, and the script in it."""

    def __init__(self, process: ComputingProcess) -> None:
        self.lock = RLock()
        """Held by the thread that works with the script."""
        self._process = process
        self._resident = _resident_bytes(process.number)

    @property
    def lives(self) -> bool:
        return self._process.lives

    @property
    def written(self) -> int:
        """How many bytes it has written."""
        return self._process.written

    def tell(self, message: dict[str, Any], seconds: float) -> Any:
        """Send a message to the script's session and return what it answers, of which only that
        it is JSON is certain.

        Raises NoAnswer, OutOfTime, ProcessEnded. Then the process has ended.
        """
        try:
            request = json.dumps(message).encode()
            return self._process.exchange(request, seconds, seconds + _PATIENCE_SECONDS)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        self._process.end()

    def memory(self) -> int:
        """Return about how many bytes the process takes beside what it shares with its parent."""
        own = _resident_bytes(self._process.number) - self._resident
        return _BASE_BYTES + max(0, own)


@dataclass(slots=True)
class Place:
    """Where a script waits: in which process, and after how many advances."""

    process: ScriptProcess
    advances: int = 0

    @property
    def is_alive(self) -> bool:
        return self.process.lives

    def leave(self) -> None:
        with self.process.lock:
            self.process.end()


class ScriptProcesses:
    """All processes with scripts of one worker: as many as MAX_LIVE_PROGRAMS_BYTES have room for.

    Those end first in which no script has run for longest. Threads may share it.
    """

    def __init__(self) -> None:
        service = Service(
            _MODULE,
            MAX_SCRIPT_MEMORY_BYTES,
            PROCESS_SECONDS,
            MAX_PROGRAM_MESSAGE_BYTES,
            is_beside_code=True,
            has_fixed_addresses=True,
        )
        self._parent = ComputingParent(service)
        self._lock = Lock()
        self._latest: dict[ScriptProcess, None] = {}
        """All processes, the one that has run last at the end."""

    def place(self) -> Place:
        """Return a place for a script. Raises InterpreterCrashed."""
        try:
            process = ScriptProcess(self._parent.copy())
        except NoAnswer as error:
            raise InterpreterCrashed(f"the process of a script: {error}") from error
        with self._lock:
            # Scripts that end without a wait are never noted as used.
            self._drop_ended()
            self._latest[process] = None
        return Place(process)

    def used(self, process: ScriptProcess) -> None:
        """Note that a script has just run there, and end processes if all of
        them take too much memory.
        """
        with self._lock:
            if process in self._latest:
                del self._latest[process]
                self._latest[process] = None
            self._drop_ended()
            for oldest in list(self._latest):
                if oldest is process or not self._is_full():
                    break
                # A script that runs there goes on: its thread waits for the answer, and
                # asks for room after it.
                if oldest.lock.acquire(blocking=False):
                    del self._latest[oldest]
                    oldest.end()
                    oldest.lock.release()

    def close(self) -> None:
        """End all processes. The next script starts new ones."""
        with self._lock:
            for process in self._latest:
                process.end()
            self._latest.clear()
        self._parent.close()

    def warm_up(self) -> None:
        """Start what the first script would wait for. Raises NoAnswer."""
        self._parent.copy().end()

    def _drop_ended(self) -> None:
        for process in list(self._latest):
            if not process.lives:
                del self._latest[process]

    def _is_full(self) -> bool:
        if len(self._latest) > MAX_SCRIPT_PROCESSES:
            return True
        return sum(process.memory() for process in self._latest) > MAX_LIVE_PROGRAMS_BYTES


def _resident_bytes(number: int | None) -> int:
    """Return how much of a process is in memory, 0 if that is not to be seen here."""
    try:
        statm = Path(f"/proc/{number}/statm").read_text()
        return int(statm.split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
