"""From whatever went wrong to what Temporal and people see: a type, a short sentence,
and whether to try again.

This is the only place where that is decided. Messages are at most 500 characters, useful words
first; some errors of tools may say more.
"""

from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from sennit.activities.limits import MAX_FAILURE_CHARACTERS
from sennit.activities.providers.model import ProviderError
from sennit.activities.storage.artifacts import BodyMissing
from sennit.activities.storage.garbage import OriginMissing
from sennit.activities.toolbox import ToolError
from sennit.activities.toolbox.media import BadMedia
from sennit.activities.toolbox.redaction import redact
from sennit.activities.toolbox.stack import stack_of
from sennit.workflows.messages.converter import StackedError
from sennit.workflows.plan.language.conditions import ConditionError
from sennit.workflows.plan.language.facts import FactTooLarge
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.references import BindError
from sennit.workflows.plan.language.text import both_ends


class OutputRefused(Exception):
    """A node's output cannot be kept: too large, or not JSON."""


class SubAgentFailed(Exception):
    """A sub-agent ended without an answer; `usage` is what it used."""

    def __init__(self, message: str, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage


class ProgramFailed(Exception):
    """A script ended by an error of its own, or cannot go on. `log` is what it has
    logged in its last advance.
    """

    log: tuple[str, ...] = ()


class OtherPython(Exception):
    """A program makes other calls in this worker's version of Python than in the
    one in which it began.
    """

    def __init__(self, began: str, here: str) -> None:
        super().__init__(
            f"the program began in Python {began}, and makes other calls in Python {here}, which "
            f"this worker has; a worker with Python {began} goes on with it: start one and retry, "
            "or edit the run"
        )


class CallFailed(ProgramFailed):
    """A script did not catch that one of its calls failed."""


class ConversationGone(Exception):
    """A run cannot continue another one: its turns are gone, it has no answer, or it
    belongs to somebody else.
    """


class NodeTimeout(Exception):
    """An attempt took longer than the node's timeout."""


class BudgetExceeded(Exception):
    """What earlier attempts used has left too little of the run's budget for another one."""


class GrantTooSmall(Exception):
    """A model call takes more than it was granted, and the budget has more. `tokens`
    are those of its prompt.
    """

    def __init__(self, tokens: int) -> None:
        super().__init__(
            f"its prompt takes about {tokens:,} tokens, which leaves too few of its grant"
        )
        self.tokens = tokens


_FINAL = (
    BadMedia,
    BindError,
    BodyMissing,
    BudgetExceeded,
    CallFailed,
    ConditionError,
    ConversationGone,
    FactTooLarge,
    OriginMissing,
    OutputRefused,
    ProgramFailed,
    SubAgentFailed,
    ValidationError,
)


def retryable(error: BaseException) -> bool:
    """Whether another attempt may succeed. A tool's own unknown exceptions are given
    the benefit of the doubt.
    """
    if isinstance(error, ToolError | ProviderError):
        return error.retryable
    return not isinstance(error, _FINAL)


def kind_of(error: BaseException) -> str:
    """Return the error's type as conditions test it and people read it."""
    return type(error).__name__


def message_of(error: BaseException) -> str:
    """Return the sentence, on one line of printable text, without this worker's secrets: what a
    library says may repeat them. An exception that nobody meant as an answer says where in a tool's
    own code it came from.
    """
    most = MAX_FAILURE_CHARACTERS
    if isinstance(error, ToolError):
        most = error.longest
    text = both_ends(redact(str(error)), most) or kind_of(error)
    if _is_ours(error):
        return text
    place = stack_of(error).place
    if not place:
        return text
    left = MAX_FAILURE_CHARACTERS - len(place) - 3
    return f"{both_ends(text, left)} ({place})"


def _is_ours(error: BaseException) -> bool:
    """Whether the error was raised to be read: it is one of Sennit's, or
    pydantic's about a value.
    """
    home = type(error).__module__.partition(".")[0]
    own_home = __name__.partition(".")[0]
    return home == own_home or isinstance(error, (ToolError, ProviderError, ValidationError))


def failure(
    error: BaseException,
    *,
    attempt: int = 1,
    final: bool = False,
    wait: float | None = None,
    spent: Usage = NO_USAGE,
) -> ApplicationError:
    """Return the activity failure for `error`; its details are the attempt, what all attempts used,
    and what a script has logged, its stack trace the frames of a tool's own code.

    `final` ends the attempts whatever the error. The next attempt comes when the error says so,
    else after `wait` seconds, else as the retry policy has it.
    """
    if isinstance(error, ApplicationError):
        return error
    if isinstance(error, ProviderError | ToolError) and error.retry_after is not None:
        wait = error.retry_after
    delay = None
    if wait is not None:
        delay = timedelta(seconds=max(wait, 0.001))
    details: list[Any] = [attempt, spent]
    if isinstance(error, ProgramFailed) and error.log:
        details.append(list(error.log))
    return StackedError(
        message_of(error),
        *details,
        stack=stack_of(error).text,
        type=kind_of(error),
        non_retryable=final or not retryable(error),
        next_retry_delay=delay,
    )
