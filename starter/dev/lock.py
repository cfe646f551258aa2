"""An exclusive lock on a file, released by the kernel when its holder dies however it dies."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """One lock on one file between processes; each object is one holder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def try_acquire(self) -> bool:
        """Whether this object holds the lock now. Never waits; OSError if the file cannot be made."""
        if self._fd is not None:
            return True
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Give the lock up; harmless when it is not held. The file stays: removing it would make two locks."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def held_by_other(self) -> bool:
        """Whether somebody else holds it. Asking disturbs others who ask not at all, who acquire for an instant."""
        if self._fd is not None or not self._path.exists():
            return False
        with self._path.open("rb") as probe:
            try:
                fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@contextmanager
def exclusive(path: Path, waiting: Callable[[float], None], poll: float = 0.2) -> Iterator[None]:
    """Hold the lock on `path`, however long that takes; `waiting(seconds so far)` is called while it does."""
    lock = FileLock(path)
    started = time.monotonic()
    while not lock.try_acquire():
        waiting(time.monotonic() - started)
        time.sleep(poll)
    try:
        yield
    finally:
        lock.release()
