"""A service that runs any code it is asked to run, with every module of Python that helps to break out: what a confined
process is at its worst. `python -m` runs one attack without any confinement.
"""

import ctypes
import json
import os
import platform
import sys
from typing import Any

from sennit.activities.sandbox.computing_parent import Answer

_MODULES = (
    "ctypes", "encodings.idna", "fcntl", "gc", "importlib", "json", "mmap", "os", "pickle", "re", "resource", "signal",
    "socket", "subprocess", "sys", "threading", "time",
)  # fmt: skip
_LIBC = ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Load what attacks use: a confined process can import nothing more."""
    for name in _MODULES:
        __import__(name)


def answer(request: bytes) -> Answer:
    """Run the attack of a request; say what it got, or by which error it was denied."""
    return Answer(json.dumps(outcome(json.loads(request))).encode())


def outcome(request: dict[str, Any]) -> str:
    """Return `got ...` or `denied ...`."""
    scope: dict[str, Any] = {name: sys.modules[name] for name in _MODULES}
    scope |= request["facts"]
    scope |= {"call": call, "number": number}
    body = "\n".join(f"    {line}" for line in request["code"].splitlines())
    try:
        exec(f"def attack():\n{body}\n", scope)
        got = scope["attack"]()
    except BaseException as error:  # noqa: BLE001 - whatever an attack ends with
        return f"denied {type(error).__name__}: {str(error)[:100]}"
    return f"got {got}"


def number(x86_64: int, aarch64: int) -> int:
    """Return the number of a system call on this machine."""
    return x86_64 if platform.machine() == "x86_64" else aarch64


def call(which: int, *arguments: Any) -> int:
    """Make a system call, past all that Python checks. Raises OSError."""
    _LIBC.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    result = int(_LIBC.syscall(ctypes.c_long(which), *given))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


if __name__ == "__main__":
    prepare()
    print(outcome(json.loads(sys.argv[1])))
