"""Restricts its own process, then executes the command. Standard library only; arguments: POLICY_JSON COMMAND...

The last step before untrusted code runs: resource limits, another user if this one is root, no new privileges,
Landlock where no container guards the files, and the seccomp program. If one of them cannot be applied, the process
ends with status 125 and a one-line error; the command never runs with less.
"""

import ctypes
import json
import os
import resource
import struct
import sys
from pathlib import Path
from typing import Any

from activities.sandbox import seccomp

_REFUSED = 125
LEAST_ABI = 3
"""Linux 6.2. Older versions do not guard against truncating a file outside."""

_RESTRICT_FILES, _RESTRICT_NET, _RESTRICT_SCOPES = (1 << 13) - 1, 3, 3
_READ_FOLDER, _READ_FILE, _WRITE_DEVICE = 0b1101, 0b101, 0b110
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Apply the policy and execute the command."""
    try:
        restrict(json.loads(sys.argv[1]))
        os.execve(sys.argv[2], sys.argv[2:], dict(os.environ))  # noqa: S606 - that is the point
    except (OSError, ValueError) as error:
        sys.stderr.write(f"sandbox: {error}\n")
        sys.exit(_REFUSED)


def restrict(policy: dict[str, Any]) -> None:
    """Restrict this process to `policy`: user, limits, read, write, landlock. Raises OSError, ValueError."""
    user, landlock = policy["user"], policy["landlock"]
    _limit(policy["limits"], others=_threads(os.getuid()) if user is None and landlock else 0)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    os.chdir(policy["write"])
    _prctl(1, 9)  # die by SIGKILL with the parent
    _prctl(38, 1)  # no new privileges
    abi = _landlock(policy["read"], policy["write"]) if landlock else 0
    seccomp.install(seccomp.program(allow_signals=abi >= 6 or not landlock, allow_metadata=not landlock))


def landlock_abi() -> int:
    """Return the version of Landlock that this kernel offers, 0 for none."""
    return max(0, int(_LIBC.syscall(444, None, 0, 1)))


def _limit(limits: dict[str, int], others: int) -> None:
    """Set the limits. `others`: the user's threads outside, which count against the same limit of processes."""
    for name, value in (
        (resource.RLIMIT_CPU, limits["seconds"]),
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_NPROC, limits["processes"] + others),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(name, (value, value))


def _threads(user: int) -> int:
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            count += int(fields["Threads"]) if int(fields["Uid"].split()[0]) == user else 0
        except (OSError, KeyError, ValueError):
            continue
    return count


def _landlock(read: list[str], write: str) -> int:
    abi = landlock_abi()
    if abi < LEAST_ABI:
        raise OSError(38, f"Landlock is version {abi} here, {LEAST_ABI} is needed (Linux 6.2)")
    files = _RESTRICT_FILES | 1 << 13 | 1 << 14 | (1 << 15 if abi >= 5 else 0)
    net, scopes = _RESTRICT_NET if abi >= 4 else 0, _RESTRICT_SCOPES if abi >= 6 else 0
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(444, struct.pack("QQQ", files, net, scopes)[:size], size, 0)
    for path in read:
        _allow(ruleset, path, _READ_FOLDER if Path(path).is_dir() else _READ_FILE)
    for path in _DEVICES:
        _allow(ruleset, path, _WRITE_DEVICE)
    _allow(ruleset, write, files)
    _call(446, ruleset, 0)
    os.close(ruleset)
    return abi


def _allow(ruleset: int, path: str, access: int) -> None:
    if not Path(path).exists():
        return
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    _call(445, ruleset, 1, struct.pack("=Qi", access, descriptor), 0)
    os.close(descriptor)


def _call(*arguments: Any) -> int:
    result = int(_LIBC.syscall(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl: {os.strerror(ctypes.get_errno())}")
