"""From whatever went wrong to what Temporal and people see: a type, a short sentence, and whether to try again.

This is the only place where that is decided. Messages are at most 500 characters, useful words first.
"""

from datetime import timedelta

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from activities.providers import ProviderError
from activities.storage.artifacts import BodyMissing
from activities.storage.garbage import OriginMissing
from activities.toolbox import ToolError
from activities.toolbox.redaction import redact
from workflows.plan.language.facts import FactTooLarge
from workflows.plan.language.limits import NO_USAGE, Usage
from workflows.plan.language.references import BindError
from workflows.plan.language.text import one_line

LONGEST_MESSAGE = 500


class OutputRefused(Exception):
    """A node's output cannot be kept: too large, or not JSON."""


class SubAgentFailed(Exception):
    """A sub-agent ended without an answer; `usage` is what it used."""

    def __init__(self, message: str, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage


class ProgramFailed(Exception):
    """A script ended by an error of its own, or cannot go on."""


class CallFailed(Exception):
    """A script did not catch that one of its calls failed."""


class NodeTimeout(Exception):
    """An attempt took longer than the node's timeout."""


class BudgetExceeded(Exception):
    """What earlier attempts used has left too little of the run's budget for another one."""


_FINAL = (
    BindError,
    BodyMissing,
    BudgetExceeded,
    CallFailed,
    FactTooLarge,
    OriginMissing,
    OutputRefused,
    ProgramFailed,
    SubAgentFailed,
    ValidationError,
)


def retryable(error: BaseException) -> bool:
    """Whether another attempt may succeed. A tool's own unknown exceptions are given the benefit of the doubt."""
    if isinstance(error, ToolError | ProviderError):
        return error.retryable
    return not isinstance(error, _FINAL)


def kind_of(error: BaseException) -> str:
    """Return the error's type as conditions test it and people read it."""
    return type(error).__name__


def message_of(error: BaseException) -> str:
    """Return the sentence, on one line of printable text, without this worker's secrets: what a library says may
    repeat them.
    """
    return one_line(redact(str(error)), LONGEST_MESSAGE) or kind_of(error)


def failure(
    error: BaseException,
    *,
    attempt: int = 1,
    final: bool = False,
    wait: float | None = None,
    spent: Usage = NO_USAGE,
) -> ApplicationError:
    """Return the activity failure for `error`; its details are the attempt and what all attempts used.

    `final` ends the attempts whatever the error. The next attempt comes when the error says so, else after `wait`
    seconds, else as the retry policy has it.
    """
    if isinstance(error, ApplicationError):
        return error
    asked = error.retry_after if isinstance(error, ProviderError | ToolError) else None
    after = asked if asked is not None else wait
    return ApplicationError(
        message_of(error),
        attempt,
        spent,
        type=kind_of(error),
        non_retryable=final or not retryable(error),
        next_retry_delay=timedelta(seconds=max(after, 0.001)) if after is not None else None,
    )
