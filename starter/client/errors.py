"""The errors of a client, one for each cause, and the exit codes with which they end a command."""

from enum import IntEnum
from typing import ClassVar

from sennit.workflows.messages.result import RunReport, RunStatus


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


class SennitError(Exception):
    """What goes wrong between a client and a run; the message says what happened and what to do.

    Ends a command with `code`. A `prefixed` message starts with its own origin, such as a file.
    """

    code: ClassVar[Exit] = Exit.FAILED
    prefixed: ClassVar[bool] = False


class Refused(SennitError):
    """Nothing was done. What the client or the run refuses has a class of its own
    below; wrong usage has not.
    """

    code = Exit.USAGE


class RunNotFound(Refused):
    """The namespace has no run of this id."""


class InvalidRequest(Refused):
    """The goal, the plan, the script, an option, or the form of an update is wrong. The
    message names each problem.
    """


class RunIsOver(Refused):
    """The run has ended, and takes no updates."""


class NotAllowed(Refused):
    """The run does not take this update now: the node has another status, or what is to
    be written has changed.
    """


class NoResult(SennitError):
    """The run is over without the result that was asked for: it has failed, was cancelled, answers
    only a part, or its answer has another form. `report` is its report.
    """

    def __init__(self, message: str, report: RunReport) -> None:
        super().__init__(message)
        self.report = report


class NoNamespace(Refused):
    """The server has no namespace of that name; `sennit setup` creates it."""


class NoAnswer(SennitError):
    """The run exists, but no worker answers for it."""

    code = Exit.OPEN


class NotEnded(SennitError):
    """What was asked for is not there yet: its node, or the run, goes on."""

    code = Exit.OPEN


class NoOutput(SennitError):
    """There is no such output: its node has ended without one, or it is gone."""


class ServerUnreachable(SennitError):
    """The Temporal server does not answer, or does not let us in."""

    code = Exit.UNREACHABLE


class NoServerYet(ServerUnreachable):
    """No server is named, and none ever ran here: there is no run that anybody could mean."""
