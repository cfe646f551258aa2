"""Landlock: which files, ports and processes this process may still reach.
Standard library only.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LEAST_VERSION = 3
"""Linux 6.2. Older versions do not guard against truncating a file outside."""
SCOPES_VERSION = 6
"""Linux 6.12. From here on signals are confined, too."""

_NET, _SCOPES = 3, 3
_READ_FOLDER, _READ_FILE, _WRITE_DEVICE = 0b1101, 0b101, 0b110
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_LIBC = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the version of Landlock that this kernel offers, 0 for none."""
    return max(0, int(_LIBC.syscall(444, None, 0, 1)))


def rules(folder: int | None, read: Iterable[str], using: int) -> int:
    """Return rules that allow all in the open `folder` if there is one, reading in the paths
    `read`, and nothing else. Raises OSError.

    `using` is the version to use. A process that gives up its rights makes them before: it may not
    reach the paths any more afterwards.
    """
    if using < LEAST_VERSION:
        raise OSError(
            38, f"Landlock is version {using} here, {LEAST_VERSION} is needed (Linux 6.2)"
        )
    # Each version adds a field, or a right, to what the kernel is told.
    files, net, scopes, size = (1 << 15) - 1, 0, 0, 8
    if using >= 4:
        net, size = _NET, 16
    if using >= 5:
        files |= 1 << 15
    if using >= SCOPES_VERSION:
        scopes, size = _SCOPES, 24
    ruleset = _call(444, struct.pack("QQQ", files, net, scopes)[:size], size, 0)
    if folder is not None:
        _allow(ruleset, folder, files)
    for path in read:
        _allow_path(ruleset, path, _READ_FOLDER if Path(path).is_dir() else _READ_FILE)
    for path in _DEVICES:
        _allow_path(ruleset, path, _WRITE_DEVICE)
    return ruleset


def confine(ruleset: int) -> None:
    """Hold this process to the rules from now on. It must have given up new
    privileges. Raises OSError.
    """
    _call(446, ruleset, 0)
    os.close(ruleset)


def _allow_path(ruleset: int, path: str, access: int) -> None:
    if Path(path).exists():
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _allow(ruleset, descriptor, access)
        os.close(descriptor)


def _allow(ruleset: int, descriptor: int, access: int) -> None:
    _call(445, ruleset, 1, struct.pack("=Qi", access, descriptor), 0)


def _call(*arguments: Any) -> int:
    result = int(_LIBC.syscall(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result
