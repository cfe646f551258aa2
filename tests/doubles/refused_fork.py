"""A service in whose parent the second fork fails, as on a machine that has no more processes or memory."""

import errno
import os
from itertools import count

from sennit.activities.sandbox.computing_parent import Answer

_FORKS = count(1)
_fork = os.fork


def prepare() -> None:
    """Let the system refuse the second process."""
    os.fork = _refuse_second


def answer(_: bytes) -> Answer:
    """Return one number, whatever is asked."""
    return Answer(b"7")


def _refuse_second() -> int:
    if next(_FORKS) == 2:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return _fork()
