"""Runs a command that does not outlive the process that started it, nor does anything
that the command starts.

Runs as a process of its own, between the two, on the standard library alone. When the command ends,
or the process above this one does, even by SIGKILL, or SIGTERM comes, it ends the command and what
is left below it: also processes in a session of their own. Input and output are the command's.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Final

from sennit.activities.sandbox import processes
from sennit.folders import PACKAGE

GRACE: Final = 1.0
"""Seconds from SIGTERM to SIGKILL: less than what those wait who stop this
process in the same way.
"""

_POLL, _LONGEST_WAIT = 0.05, 0.5
_KILL_SECONDS: Final = 10.0
ROOT: Final = str(PACKAGE.parent)
_MAIN: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from sennit.activities.sandbox.{0} import "
    "main; main()"
)
_NOT_FOUND: Final = 127
_STOP: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def bound_to_this_process(command: Sequence[str]) -> list[str]:
    """Return the command line that runs `command` so that it ends with this process. The thread
    that starts it must live as long as this process.
    """
    return [*starter_of("reaper"), str(os.getpid()), *command]


def starter_of(module: str, root: str = ROOT) -> list[str]:
    """Return the command that runs `main` of a module of this package, without site
    packages or environment.
    """
    return [sys.executable, "-I", "-S", "-B", "-c", _MAIN.format(module), root]


def main() -> None:
    """Run the command line behind the id of the process above, and end as the command does."""
    above, command = int(sys.argv[1]), sys.argv[2:]
    stopped = False

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    for number in _STOP:
        signal.signal(number, stop)
    if sys.platform == "linux":
        system = ctypes.CDLL(None)
        system.prctl(36, 1, 0, 0, 0)  # orphaned processes become children of this one
        # The signal that comes when the process above has ended.
        system.prctl(1, signal.SIGTERM, 0, 0, 0)
    try:
        child = subprocess.Popen(command, process_group=0)  # noqa: S603 - the whole purpose
    except OSError as failure:
        sys.stderr.write(f"{command[0]}: {failure.strerror}\n")
        sys.exit(_NOT_FOUND)
    _let_go_of_pipes()
    while child.poll() is None and not stopped and os.getppid() == above:
        stopped = _wait()
    _end(child)
    sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)


def _wait() -> bool:
    """Wait a moment, or until a child has ended; return whether a signal says to stop."""
    if not hasattr(signal, "sigtimedwait"):
        time.sleep(_POLL)
        return False
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_STOP, signal.SIGCHLD))
    received = signal.sigtimedwait((*_STOP, signal.SIGCHLD), _LONGEST_WAIT)
    return received is not None and received.si_signo != signal.SIGCHLD


def _let_go_of_pipes() -> None:
    """Leave them to the command alone: who reads or writes at the other end
    sees when it closes them.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Ask the command's group to end, and end what is left."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if sys.platform == "linux":
        processes.end_all(None, _KILL_SECONDS, lambda _, __: None)
