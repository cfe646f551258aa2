"""Confines processes of a worker that read what strangers wrote: those in which scripts run and are
read, and the program that checks their types.

They get what a command in the sandbox gets but a folder: no new privileges, no capabilities,
another user if the worker is root, Landlock, seccomp and a limit of memory. Where the kernel lacks
one of the two, they run with the other.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sennit.activities.sandbox import bubblewrap, landlock
from sennit.activities.sandbox.reaper import starter_of
from sennit.activities.sandbox.restrict import any_user

_LIMITS: Final = {"file": 0, "open_files": 64}
_PROCESSES: Final = 64
_WHO: Final = "calculations and checks of programs run"
_REFUSED: Final = "programs are refused here"
_ALONE: Final = f"{_REFUSED}, and {_WHO} guarded by bounds alone"
_PROBE_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Confinement:
    """What this machine confines such processes by: the version of Landlock, 0 for none, seccomp or
    not, and a user of their own or not. `missing` says in a sentence what they go without, if
    anything. One that `holds` nothing leaves them as they are.
    """

    landlock: int
    seccomp: bool
    separate_user: bool = False
    missing: str = ""
    holds: bool = True

    def policy(self, memory: int, read: Sequence[str] = ()) -> dict[str, Any]:
        """Return the policy for `restrict`: `memory` is the address space in bytes, `read`
        are the paths to be read.
        """
        user, limits = None, {**_LIMITS, "memory": memory}
        if self.separate_user:
            # The kernel counts the processes of a user: without a user of its own, all of
            # the worker would count.
            user = any_user()
            limits["processes"] = _PROCESSES
        return {
            "user": user,
            "limits": limits,
            "landlock": self.landlock,
            "seccomp": self.seccomp,
            "namespaces": False,
            "read": list(read),
            "write": None,
        }

    def command(self, program: str, memory: int, read: Sequence[str]) -> list[str]:
        """Return a command that confines its process and becomes the program, which may read these
        paths. The arguments of the program follow.
        """
        if not self.holds:
            return [program]
        policy = self.policy(memory, (*bubblewrap.SYSTEM, "/etc/ld.so.cache", program, *read))
        return [*starter_of("launch"), json.dumps(policy | {"user": self._any_user}), program]

    @property
    def _any_user(self) -> int | None:
        """In the place of the user of a process that is started later."""
        return 0 if self.separate_user else None


@cache
def find_confinement() -> Confinement:
    """Return what holds on this machine: it has just withstood an escape attempt. Not to be
    called in an event loop.
    """
    if sys.platform != "linux":
        return Confinement(
            0, seccomp=False, missing=f"{_ALONE}: {platform.system()} has no seccomp", holds=False
        )
    version = landlock.version() if landlock.version() >= landlock.LEAST_VERSION else 0
    problems = list[str]()
    for using, seccomp in dict.fromkeys(((version, True), (0, True), (version, False), (0, False))):
        for as_root in dict.fromkeys((os.getuid() == 0, False)):
            problem = _problem(Confinement(using, seccomp, as_root))
            if not problem:
                why = problems[0] if problems else "this kernel has none"
                return Confinement(
                    using, seccomp, as_root, _missing(using, seccomp=seccomp, why=why)
                )
            problems.append(problem)
    return Confinement(0, seccomp=False, missing=f"{_ALONE}: {problems[-1]}", holds=False)


def _missing(using: int, *, seccomp: bool, why: str) -> str:
    """Return what people are told of the layers that are not there, and why; nothing if all are."""
    absent: list[str] = []
    if not using:
        absent.append("Landlock")
    if not seccomp:
        absent.append("seccomp")
    missing = ""
    if absent:
        missing = f"{_WHO} without {' and '.join(absent)}: {why}"
    if not seccomp:
        missing = f"{missing}; {_REFUSED}"
    return missing


def _problem(tried: Confinement) -> str:
    """Try to break out as a process that is confined like this; return what went wrong,
    or nothing if it held.
    """
    try:
        policy = tried.policy(1 << 30, bubblewrap.SYSTEM) | {"user": tried._any_user}
        found = subprocess.run(  # noqa: S603 - this interpreter, with code of this package
            [*starter_of("launch"), json.dumps(policy)],
            env={},
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if found.stdout == "confined\n":
        return ""
    return (found.stderr or found.stdout).strip()[-200:] or "no answer"
