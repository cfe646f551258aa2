"""The exit codes of `sennit`, and the errors that end a command with one.

Stop                 ends the command: its message goes to stderr
├── Refused      2   wrong usage, a bad plan, a refused update, no such run
├── Silent       4   the run is there, but no worker answers for it
└── Unreachable  5   the server cannot be reached, or does not let us in
"""

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


_OF_STATUS: dict[RunStatus, Exit] = {
    "done": Exit.ANSWER,
    "partial": Exit.PARTIAL,
    "failed": Exit.FAILED,
    "cancelled": Exit.FAILED,
    "running": Exit.OPEN,
    "blocked": Exit.OPEN,
}


def exit_of(status: RunStatus) -> Exit:
    """Return the exit code for a run in this status."""
    return _OF_STATUS[status]


class CliError(Exception):
    """Ends a command with `code`; the message says what happened and what to do. A `bare` one names its own origin."""

    code: ClassVar[Exit] = Exit.FAILED
    bare: ClassVar[bool] = False


class Refused(CliError):
    """What was asked for is wrong, and nothing was done."""

    code = Exit.USAGE


class NoAnswer(CliError):
    """The run exists, but no worker answers for it."""

    code = Exit.OPEN


class Unreachable(CliError):
    """The Temporal server does not answer, or does not let us in."""

    code = Exit.UNREACHABLE
