"""The exit codes of `sennit`, and the errors that end a command with one."""

from enum import IntEnum
from typing import ClassVar

from workflows.messages.result import RunStatus


class Exit(IntEnum):
    """What the exit code of a command says."""

    ANSWER = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    OPEN = 4
    UNREACHABLE = 5
    INTERRUPTED = 130


def exit_of(status: RunStatus) -> Exit:
    if status in ("running", "blocked"):
        return Exit.OPEN
    return {"done": Exit.ANSWER, "partial": Exit.PARTIAL}.get(status, Exit.FAILED)


class CliError(Exception):
    """Ends a command with `code`; the message says what happened and what to do.

    A `prefixed` message starts with its own origin, such as a file.
    """

    code: ClassVar[Exit] = Exit.FAILED
    prefixed: ClassVar[bool] = False


class Refused(CliError):
    """Wrong usage, a bad plan, a refused update, no such run: nothing was done."""

    code = Exit.USAGE


class NoAnswer(CliError):
    """The run exists, but no worker answers for it."""

    code = Exit.OPEN


class Unreachable(CliError):
    """The Temporal server does not answer, or does not let us in."""

    code = Exit.UNREACHABLE
