"""Restricts its own process, then becomes the command, which goes on for as long as it is needed.

Standard library only; arguments: POLICY_JSON COMMAND...

Without a command it tries to reach what it may not, and writes `confined` if all of that is denied.
"""

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sennit.activities.sandbox.restrict import any_user, restrict

_REFUSED = 125
MAX_OPEN_FILES = 1 << 16  # file numbers that a new process closes before it begins
_OUTSIDE = "/etc/passwd"


def main() -> None:
    """Apply the policy and become the command."""
    policy, command = json.loads(sys.argv[1]), sys.argv[2:]
    if policy["user"] is not None:
        policy["user"] = any_user()  # the policy is that of several processes
    # The user it will be may not reach its folder.
    program = os.open(command[0], os.O_RDONLY) if command else -1
    try:
        restrict(policy)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_REFUSED)
    if command:
        os.closerange(3, program)
        os.closerange(program + 1, MAX_OPEN_FILES)
        try:
            os.execv(command[0], command)  # noqa: S606 - that is the point
        except PermissionError:
            os.execve(program, command, dict(os.environ))  # noqa: S606
    sys.stdout.write("leaks\n" if _leaks(policy) else "confined\n")


def _leaks(policy: dict[str, Any]) -> bool:
    """Whether this process still reaches what the policy denies."""
    tried: list[Callable[[], object]] = []
    if policy["landlock"]:
        tried.append(Path(_OUTSIDE).read_bytes)
    if policy["seccomp"]:
        tried.append(socket.socket)
    return not all(map(_is_denied, tried))


def _is_denied(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return True
    return False
