"""Which attempt an activity is on, by its own count: Temporal's, less those that only met a busy
provider; and what its model calls have used.

A busy provider's refusal must give the slot back, so it is a failed attempt to Temporal. So is that
of a worker whose Python a program cannot go on in. The policies of activities that call models
allow `REFUSALS` of them on top, those of programs `OTHER_PYTHONS`; the last heartbeat of each
attempt carries how many there were, and an attempt that is the last of its own is made final here.
An attempt that a crash cut off counts as its own.

Before a model call goes out, a heartbeat that the server has confirmed says what it may use at
most. So the attempt after a crash knows of a call that was cut off, and charges it in full.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from sennit.activities.limits import MAX_PUT_OFF_SECONDS
from sennit.activities.nodes.error_mapping import (
    BudgetExceeded,
    GrantTooSmall,
    OtherPython,
    SubAgentFailed,
    failure,
    message_of,
)
from sennit.activities.nodes.heartbeats import confirmed_heartbeat, heartbeat
from sennit.activities.providers.errors import BadReply, OutputCut, SchemaMismatch
from sennit.activities.providers.model import ProviderError
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.messages.activity_options import OTHER_PYTHONS, pause_after
from sennit.workflows.plan.language.limits import NO_USAGE, Usage, dollars
from sennit.workflows.plan.language.text import one_line

LEAST_REPLY = 128
"""Tokens that a reply must have: a prompt that leaves less is not sent."""
EAGER = 16
"""Refusals after which a call waits the longer for the next try, the more there were."""
_FAILED = "failed"
"""The first line of the last status of an attempt that came to an end. A
model's fault is the second.
"""


async def _record_nothing(*_: Any) -> None:
    """Record nothing."""


@dataclass(slots=True)
class Attempts:
    """The attempts of the activity that runs now; `status` says how far it is, for the heartbeat.

    `spent` is what calls of all its attempts used but for `open`, the last call of this one: the
    most that it may use until it ends, then what it did. `cut` is what was open when an attempt
    before this one was cut off; a node that turns out to have been marked done by then has it in
    its reply. `left` is what the run's budget has left for all of them; without `allowed` Temporal
    alone ends them. `record` tells the server a heartbeat, and waits until it knows. `fault` is
    what was wrong with the last reply of a model that could not be used. `lost` says that the
    attempt before this one did not come to an end of its own: its worker was lost, or stopped.
    """

    number: int
    refused: int
    spent: Usage = NO_USAGE
    cut: Usage = NO_USAGE
    open: Usage = NO_USAGE
    status: str = ""
    fault: str = ""
    allowed: int | None = None
    lost: bool = False
    left: Mapping[str, int] = field(default_factory=dict)
    grant: int = 0
    """The tokens that the next model call may use, of those that are left; 0 without a limit."""
    is_measured: bool = False
    """Whether the grant was made for the prompt as it is."""
    sent: int = 0
    """The tokens of the last prompt."""
    is_short: bool = False
    """Whether the last call could ask for a shorter reply only than it wanted."""
    record: Callable[..., Awaitable[None]] = _record_nothing

    @classmethod
    def of_this_activity(cls) -> Self:
        """Read Temporal's count and the last attempt's heartbeat."""
        info = activity.info()
        if len(info.heartbeat_details) < 4:
            return cls(info.attempt, 0, lost=info.attempt > 1, record=confirmed_heartbeat)
        status, refused, spent, cut = info.heartbeat_details
        end, _, fault = status.partition("\n")  # what an attempt that goes on reports is one line
        lost = info.attempt > 1 and end != _FAILED
        number = info.attempt - refused
        found = cls(
            number, refused, Usage(*spent), Usage(*cut), lost=lost, record=confirmed_heartbeat
        )
        found.fault = fault
        return found

    @property
    def put_offs(self) -> int:
        """How often an earlier attempt gave way to other calls of its provider, or
        was refused for the rate.
        """
        return self.refused

    def progress(self, line: str) -> None:
        """Note how far the activity is."""
        self.status = one_line(line, 1000)

    def beat(self) -> tuple[str, int, Usage, Usage]:
        """Return the details of a heartbeat."""
        status = redact(self.status)[:200]
        return status, self.refused, self.spent, self.cut.plus(self.open)

    def beside(self) -> Self:
        """Return the attempts of one of several calls of this activity, which counts by
        itself what it has used.
        """
        return type(self)(self.number, self.refused, lost=self.lost)

    def call_anew(self) -> None:
        """A call of a tool is about to be made: what one that was cut off has used comes
        on top of what it uses.
        """
        self.spent = self.spent.plus(self.cut)
        self.cut = NO_USAGE

    async def begin(self, sent: Usage, most: Usage) -> None:
        """A call that sends `sent` is about to go out, and uses `most` at the most: the server
        knows when this returns.

        Raises BudgetExceeded when earlier calls of this activity have left too
        little of the budget for it.
        """
        self.spent = self.spent.plus(self.cut).plus(self.open)
        self.cut = NO_USAGE
        self.open = NO_USAGE
        if not any(most):
            return
        self._check(sent)
        self.open = most
        try:
            await self.record(*self.beat())
        except (RPCError, asyncio.CancelledError):
            self.open = NO_USAGE  # it does not go out
            raise

    def room(self, sent: Usage, wanted: int) -> int | None:
        """Return how many tokens the reply to a call that sends `sent` may have: what the
        prompt leaves of its grant.

        Raises GrantTooSmall if that is less than half of what a new grant may give, and
        BudgetExceeded if the budget has nothing left for a reply. Nothing has been sent then.
        """
        if not self.grant:
            return None
        used = self.spent.plus(self.cut).plus(self.open).tokens
        left = self.left["tokens"] - used
        has = min(self.grant, left)
        room = has - sent.tokens
        most = left - sent.tokens
        self.sent = sent.tokens
        self.is_short = room < wanted
        if not used and not self.is_measured and room < min(wanted, most) // 2:
            raise GrantTooSmall(sent.tokens)
        if room < min(wanted, LEAST_REPLY):
            raise BudgetExceeded(
                f"its prompt takes about {sent.tokens:,} tokens, and the budget has "
                f"{max(0, has):,} left for it; raise the budget of the run, or of its task, and "
                "retry the node"
            )
        return room

    def cut_short(self) -> GrantTooSmall | BudgetExceeded:
        """Return the failure of a call whose reply was cut because the budget
        granted it no longer one.
        """
        left = self.left["tokens"] - self.spent.plus(self.open).tokens
        if not self.is_measured and left - self.sent >= LEAST_REPLY:
            return GrantTooSmall(self.sent)
        return BudgetExceeded(
            "its reply was cut where the budget ended; raise the budget of the run, or of its "
            "task, and retry the node"
        )

    def end(self, used: Usage) -> None:
        """The call that was begun last has ended, and used so much."""
        self.open = used

    def _check(self, sent: Usage) -> None:
        """Let the first call through, as the scheduler has, and every further one that
        can be sent and answered.
        """
        after = self.spent.plus(sent)
        if not any(self.spent):
            return
        short: list[str] = []
        for name, left in self.left.items():
            most = left
            # The last call may still be made; of the others, something must be left for the reply.
            if name == "calls":
                most += 1
            if getattr(after, name) >= most:
                used = getattr(self.spent, name)
                short.append(f"{name} {_used_of(name, used, left)}")
        if short:
            raise BudgetExceeded(
                "the budget does not cover another attempt: earlier attempts used "
                f"{', '.join(short)} that were left; raise the budget of the run, or of its task, "
                "and retry the node"
            )

    def allow(self, most: int) -> None:
        """Allow `most` attempts of its own. Raises a final failure when a worker
        was lost in each of them.
        """
        self.allowed = most
        if self.number > most:
            message = f"no worker finished it in {most} attempts"
            spent = self.spent.plus(self.cut)
            raise ApplicationError(message, most, spent, type="WorkerLost", non_retryable=True)

    def failed(self, error: BaseException) -> ApplicationError:
        """Return the failure of this attempt: final if it was the last of its own,
        which a refusal never is.
        """
        is_put_off = isinstance(error, ProviderError) and not error.is_attempt
        is_left = isinstance(error, OtherPython)
        if is_put_off or is_left:
            self.refused += 1
        used = self.open
        if isinstance(error, ProviderError | SubAgentFailed):
            used = error.usage
        self.spent = self.spent.plus(used)
        self.open = NO_USAGE

        # The next attempt reads from the heartbeat what was wrong with this one.
        self.status = _FAILED
        if isinstance(error, SchemaMismatch | BadReply | OutputCut):
            self.fault = message_of(error)
        if self.fault:
            self.status = f"{_FAILED}\n{self.fault}"
        heartbeat(*self.beat())
        spent = self.spent.plus(self.cut)
        wait: float | None
        if isinstance(error, ProviderError) and is_put_off:
            asked = error.retry_after or 0.0
            put_off = min(asked * self.refused / EAGER, MAX_PUT_OFF_SECONDS)
            error.retry_after = max(asked, put_off)
            return failure(error, attempt=self.number, spent=spent)
        if is_left:
            # A worker with the right Python may take the next attempt.
            pause = pause_after(self.refused).total_seconds()
            return failure(
                error,
                attempt=self.number,
                final=self.refused >= OTHER_PYTHONS,
                wait=pause,
                spent=spent,
            )
        # Temporal's own backoff has grown with the refusals
        backoff = pause_after(self.number)
        wait = None
        if self.refused:
            wait = backoff.total_seconds()
        final = self.allowed is not None and self.number >= self.allowed
        return failure(error, attempt=self.number, final=final, wait=wait, spent=spent)

    async def confirm(self) -> None:
        """Return when the server has the count of refusals, by which the next attempt
        goes, or cannot be told.

        The SDK sends its heartbeats side by side: an older one may overtake the
        last one of an attempt.
        """
        with suppress(RPCError):
            await self.record(*self.beat())


def _used_of(name: str, used: int, left: int) -> str:
    if name == "cost":
        return f"${dollars(used):g} of ${dollars(left):g}"
    return f"{used:,} of {left:,}"
