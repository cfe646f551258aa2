"""`python -I -S guard.py OWNER GRACE COMMAND...`: run COMMAND so that it ends when its owner
does, however that ends.

COMMAND replaces this process, so the owner sees its id and exit status. A fork stays and watches
OWNER, a pipe whose other end only the owner holds: when it closes, the fork sends SIGTERM, waits
GRACE seconds and kills the process group. When COMMAND ends by itself, the fork kills what
COMMAND left in the group.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress

POLL = 0.2  # seconds


def watch(command: int, owner: int, grace: float) -> None:
    """Wait until the command or its owner ends, then end the whole process group,
    this process included.
    """
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    closed: list[int] = []
    # An ended parent is replaced at once, even before it is reaped.
    while os.getppid() == command and not closed:
        closed = select.select([owner], [], [], POLL)[0]
    if closed:
        deadline = time.monotonic() + grace
        with suppress(ProcessLookupError):
            os.kill(command, signal.SIGTERM)
        while os.getppid() == command and time.monotonic() < deadline:
            time.sleep(POLL)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    command = os.getpid()
    if os.fork() == 0:
        watch(command, int(sys.argv[1]), float(sys.argv[2]))
    os.close(int(sys.argv[1]))
    try:
        os.execvp(sys.argv[3], sys.argv[3:])  # noqa: S606 - the whole purpose
    except OSError as failure:
        sys.exit(f"{sys.argv[3]}: {failure.strerror}")
