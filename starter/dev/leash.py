"""`leash.py OWNER GRACE COMMAND...`: run COMMAND so that it ends when its owner does, however the owner ends.

COMMAND takes the place of this process, so its id and exit status are what the owner sees. A fork stays behind as a
watcher: when OWNER (a pipe whose other end only the owner holds) closes, it sends SIGTERM, waits GRACE seconds and
kills the group; when COMMAND ends by itself, it kills what COMMAND left in the group. Standard library only, because
it is run with `python -I -S`, and the same on Linux and macOS.
"""

import contextlib
import os
import select
import signal
import sys
import time

LOOK_EVERY = 1.0  # seconds, for a command whose forks hold the pipe open


def _watch(owner: int, alive: int, grace: float, watched: int) -> None:
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    if not _ended(watched, alive, owner):
        with contextlib.suppress(ProcessLookupError):
            os.kill(watched, signal.SIGTERM)
        _ended(watched, alive, limit=grace)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _ended(watched: int, alive: int, owner: int | None = None, limit: float = float("inf")) -> bool:
    """Wait for the end of the command, of its owner, or of the limit; whether the command has ended."""
    deadline = time.monotonic() + limit
    pipes = [alive] if owner is None else [alive, owner]
    while os.getppid() == watched:
        closed, _, _ = select.select(pipes, [], [], max(0.0, min(LOOK_EVERY, deadline - time.monotonic())))
        if closed or time.monotonic() >= deadline:
            return alive in closed or os.getppid() != watched
    return True


def _main(owner: int, grace: float, command: list[str]) -> None:
    ended, alive = os.pipe()
    watched = os.getpid()
    if os.fork() == 0:
        os.close(alive)
        _watch(owner, ended, grace, watched)
    os.close(owner)
    os.set_inheritable(alive, True)  # it closes with the command, so the watcher need not poll
    os.execvp(command[0], command)  # noqa: S606 - the whole purpose


if __name__ == "__main__":
    try:
        _main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
    except OSError as failure:
        sys.exit(f"{sys.argv[3]}: {failure.strerror}")
