"""Turns the ends of activities into outcomes for the scheduler.

A unit ends with its activity. An activity of several units may also tell of some ends while the
other units go on. Anybody who may use the server can complete an activity, and with anything: a
result of another kind is a failure.

A `NodeReply` is what an activity sends, with values, texts and logs. An `Outcome` is the part of it
that the scheduler decides by. Both are needed: the scheduler is pure and keeps no values, and
failures and cancellations have an outcome but no reply.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from temporalio import exceptions
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
)

from sennit.workflows.messages.contracts import (
    NOT_RUN,
    Call,
    GroupProgress,
    GroupReply,
    In,
    NodeReply,
    Out,
    PlanPage,
    ProgramPage,
)
from sennit.workflows.messages.ends import CallEnd, says_an_end, unpack_ends
from sennit.workflows.messages.result import usage_in
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.compile.page import attach, check_places, parse_page
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.completion import LOST, NOT_WRITTEN, UNKNOWN_OUTCOME
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, ProgramAdvanced
from sennit.workflows.plan.scheduling.state import RunState


@dataclass(slots=True)
class EarlyEnded:
    """A call that was made early has ended: its number. It is no event of the scheduler."""

    number: int


Handle = asyncio.Task[GroupReply]
"""An activity's handle is a task, and so is a sub-agent with the activities around it."""
Key = tuple[int, int]
End = tuple[NodeEnded, NodeReply | None]
Ended = EarlyEnded | End
"""What has come to its end, of units or beside them."""
NO_RESULT = (
    "InvalidResult",
    "its activity was completed with something that is not its result, as if by hand",
)


def result_of(call: Call[In, Out], result: Any) -> Out:
    """Return the result of an activity. Raises ApplicationError of type InvalidResult if
    it is of another kind.
    """
    if not isinstance(result, call.gives):
        raise invalid_result()
    return result


def graph_of(execution_plan: str) -> Graph:
    """Return the graph of a plan that an activity gave packed. Raises ApplicationError of type
    InvalidResult, also if the plan has no nodes, or they do not fit each other.
    """
    plan = plan_of(execution_plan)
    if not plan.specs:
        raise invalid_result()
    try:
        check_places(plan, len(plan.specs))
        return Graph(plan)
    except (ValueError, TypeError, AttributeError, LookupError):
        raise invalid_result() from None


def plan_of(execution_plan: str) -> ExecutionPlan:
    """Return a plan that an activity gave packed. Raises ApplicationError of type InvalidResult."""
    try:
        return parse_page(execution_plan)
    except ValueError:
        raise invalid_result() from None


def page_of(graph: Graph, page: PlanPage) -> ExecutionPlan:
    """Return the nodes of a page, by their places in the whole plan. Raises ApplicationError of
    type InvalidResult, also if the page names a node that the plan has not.
    """
    known = places_of(graph, page.known)
    places_of(graph, (*page.facts, *page.fallbacks))
    try:
        return attach(parse_page(page.specs), known, len(graph.specs))
    except (ValueError, TypeError, AttributeError, LookupError):
        raise invalid_result() from None


def advance_of(
    state: RunState, page: ProgramPage, ended: NodeEnded
) -> tuple[ProgramAdvanced, list[CallEnd]]:
    """Return what an advance of a program has come to, and how calls of its page have ended by now.
    Raises ApplicationError of type InvalidResult.
    """
    program = ended.unit
    count = len(state.graph.specs)
    try:
        attached = attach(parse_page(page.specs), [], count)
        ends = unpack_ends(attached, page.ends)
    except (ValueError, TypeError, AttributeError, LookupError):
        raise invalid_result() from None

    # The calls of a script are in no relation to other nodes.
    new: dict[str, int] = {}
    for place, spec in enumerate(attached.specs, count):
        if spec.kind == "program" or spec.inputs:
            raise invalid_result()
        spec.page = page.plan
        new[spec.id] = place
    waits: list[int] = []
    for name in page.waits:
        if name in new:
            waits.append(new[name])
        else:
            waits.append(unit_called(state, program, name))
    past = [unit_called(state, program, name) for name in page.past]
    if min([*waits, *past], default=0) < 0:
        raise invalid_result()

    # How calls of the page have ended, and the script itself.
    end = None
    if page.end is not None:
        if not says_an_end(page.end):
            raise invalid_result()
        end = outcome_of(page.end)
    made = tuple((name, outcome_of(reply)) for name, reply in ends)
    delegated = replace(ended, outcome=replace(ended.outcome, delegated=True))
    event = ProgramAdvanced(
        ended=delegated,
        calls=attached.specs,
        session=page.session,
        waits=tuple(waits),
        past=tuple(past),
        given_up=page.given_up,
        ends=made,
        end=end,
    )
    return event, ends


def places_of(graph: Graph, names: Iterable[str]) -> list[int]:
    """Return the nodes of these ids, which an activity gave. Raises ApplicationError
    of type InvalidResult.
    """
    try:
        return [graph.by_id[name] for name in names]
    except LookupError:
        raise invalid_result() from None


def invalid_result() -> ApplicationError:
    kind, message = NO_RESULT
    return ApplicationError(message, type=kind, non_retryable=True)


START_AGAIN = Outcome(attempts=0, again=True)
"""The outcome of a unit that starts again later, as if it had not started."""


def outcome_of(reply: NodeReply) -> Outcome:
    """Return the outcome of a reply."""
    if reply.needs:
        return Outcome(attempts=0, again=True, usage=reply.usage, needs=reply.needs)
    if reply.error is not None:
        again = reply.error.again
        if again and reply.error.type == NOT_RUN:
            return START_AGAIN
        attempts = 1
        if again:
            attempts = 0
        error = (reply.error.type, reply.error.message)
        return Outcome(
            error=error,
            attempts=attempts,
            again=again,
            at=reply.at,
            usage=reply.usage,
            span=reply.span,
        )
    if reply.question is not None:
        return Outcome(attempts=0, question=reply.question)
    return Outcome(
        reply.ref,
        reply.size,
        dict(reply.facts),
        None,
        reply.attempt,
        reply.skipped,
        usage=reply.usage,
        paid=reply.paid,
        written=reply.written,
        taken_over=reply.taken_over,
        millis=reply.millis,
        at=reply.at,
        span=reply.span,
        delegated=reply.more == "program",
        tasks=reply.tasks,
    )


def ends_of(
    handle: Any, count: int, *, is_followed: bool = False
) -> list[tuple[Outcome, NodeReply | None]]:
    """Return each unit's outcome with its reply, and behind them that of the advance that followed,
    if one did. If the activity itself failed, there is only its usage.
    """
    error: BaseException | None = None
    if not handle.cancelled():
        error = handle.exception()
    if handle.cancelled() or error is not None:
        failed = failed_outcome(error)
    else:
        # With the reply of an advance that followed, or without it if the first unit has no value.
        lengths = {count}
        if is_followed:
            lengths.add(count + 1)
        result = handle.result()
        if isinstance(result, GroupReply):
            replies = result.ends(lengths)
            if replies:
                return [(outcome_of(reply), reply) for reply in replies]
        failed = Outcome(error=NO_RESULT, usage=None)

    # Each member of a group starts again alone, so that only the unit that
    # fails by itself has failed.
    if count > 1:
        again = Outcome(error=failed.error, attempts=0, again=True)
        return [(again, None)] * count
    usage = failed.usage or NO_USAGE
    log = logged_by(error)
    if not any(usage) and not log:
        return [(failed, None)]
    reply = NodeReply(attempt=failed.attempts, usage=usage, log=log)
    return [(failed, reply)]


def restart(
    spec: NodeSpec, outcome: Outcome, reply: NodeReply | None, *, is_write: bool
) -> tuple[Outcome, NodeReply | None]:
    """Return the outcome of a unit that was suspended: it starts again later, unless it came to an
    end of its own, as a write that had begun did.

    A model call is charged; how much one that was cancelled has used is not known. A sub-agent's
    next run counts the usage of this one.
    """
    if outcome.error is None or (is_write and outcome.error[0] not in LOST):
        return outcome, reply
    if not spec.calls_model:
        return START_AGAIN, None
    if outcome.usage is not None and any(outcome.usage):
        return replace(START_AGAIN, usage=outcome.usage), NodeReply(usage=outcome.usage)
    if outcome.error[0] == "Cancelled":
        return replace(START_AGAIN, usage=None), None
    return replace(START_AGAIN, usage=outcome.usage), None


def looked_up(outcome: Outcome) -> Outcome:
    """Return the outcome of a write that was cut off. It is unknown if the look-up failed."""
    if outcome.error is None or outcome.error[0] == NOT_WRITTEN:
        return outcome
    return replace(outcome, error=(UNKNOWN_OUTCOME, outcome.error[1]))


def failed_outcome(error: BaseException | None) -> Outcome:
    """Return the outcome of an activity that failed for good: its type,
    message, attempts and usage.
    """
    cause = _cause_of(error)
    if isinstance(error, ChildWorkflowError) and not isinstance(cause, ApplicationError):
        return Outcome(error=("SubAgentFailed", _ended(cause)), usage=None)
    if isinstance(cause, ApplicationError):
        attempt = 1
        if cause.details and isinstance(cause.details[0], int):
            attempt = cause.details[0]
        return Outcome(
            error=(cause.type or "Failed", cause.message), attempts=attempt, usage=used_by(error)
        )
    if isinstance(cause, exceptions.TimeoutError):
        kind = "unknown"
        if cause.type is not None:
            kind = cause.type.name.lower().replace("_", " ")
        return Outcome(error=("WorkerLost", f"no worker finished it: {kind} timeout"), usage=None)
    if cause is None or isinstance(cause, CancelledError):
        return Outcome(error=("Cancelled", "the activity was cancelled"))
    return Outcome(error=("Failed", str(cause)[:500]))


def used_by(error: BaseException | None) -> Usage:
    """Return the usage in a failure: of all attempts of its activity, or of the
    sub-agent's run that failed.
    """
    cause = _cause_of(error)
    if not isinstance(cause, ApplicationError):
        return NO_USAGE
    if isinstance(error, ChildWorkflowError):
        for detail in cause.details:
            usage = usage_in(detail)
            if any(usage):
                return usage
        return NO_USAGE
    if len(cause.details) < 2:
        return NO_USAGE
    used = cause.details[1]
    if not _is_list_of(int, used):
        return NO_USAGE
    # Older workers tell of no cached tokens.
    if len(used) not in (len(NO_USAGE), len(NO_USAGE) - 1):
        return NO_USAGE
    return Usage(*used)


def logged_by(error: BaseException | None) -> tuple[str, ...]:
    """Return the log of an advance of a program that has failed."""
    if not isinstance(error, ActivityError):
        return ()
    cause = error.cause
    if not isinstance(cause, ApplicationError) or len(cause.details) < 3:
        return ()
    log = cause.details[2]
    if not _is_list_of(str, log):
        return ()
    return tuple(log)


def _is_list_of(kind: type, detail: Any) -> bool:
    """Whether a detail of a failure, which anybody may have written, is a list
    of values of this kind.
    """
    return isinstance(detail, list) and all(isinstance(value, kind) for value in detail)


def _cause_of(error: BaseException | None) -> BaseException | None:
    """Return what an activity, or a sub-agent's run, has raised itself."""
    if isinstance(error, ActivityError | ChildWorkflowError):
        return error.cause
    return error


def _ended(cause: BaseException | None) -> str:
    """Return the outcome of a sub-agent that neither answered nor failed by itself."""
    ways = {exceptions.TerminatedError: "was terminated", CancelledError: "was cancelled"}
    return f"the sub-agent's run {ways.get(type(cause), 'hit its time limit')}"


@dataclass(slots=True, eq=False)
class InFlight:
    """One activity under way: the units it runs, and in which generations. Suspended,
    they start again later.

    If `is_followed`, the second unit is an advance of a program that follows the first, if that has
    a value. `subagent` is the name of the sub-agent that the activity runs, `is_paid` says that it
    spends tokens, and `looks_up` that it only looks up a write in the ledger of effects. `ended`
    has the units of whose ends the `attempt` has told before the activity ends.
    """

    units: tuple[int, ...]
    generations: tuple[int, ...]
    handle: Handle
    is_suspended: bool = False
    is_followed: bool = False
    subagent: str = ""
    looks_up: bool = False
    call: str = ""
    is_paid: bool = False
    attempt: int = 0
    ended: dict[Key, Outcome] = field(default_factory=dict)

    @property
    def keys(self) -> list[Key]:
        return list(zip(self.units, self.generations, strict=True))

    def tell(self, progress: GroupProgress) -> Iterator[End]:
        """Yield the units that have ended, as an activity tells while it goes on. Reports of an
        attempt before the last one that told, and second reports of a unit, count for nothing.
        """
        if progress.attempt < self.attempt:
            return
        self.attempt = progress.attempt
        keys = self.keys
        for place, reply in zip(progress.places, progress.replies, strict=False):
            if not _is_end(reply) or not 0 <= place < len(keys):
                continue
            key = keys[place]
            if key not in self.ended:
                outcome = outcome_of(reply)
                self.ended[key] = outcome
                yield NodeEnded(*key, outcome), reply

    def ends(self, outcomes: Sequence[tuple[Outcome, NodeReply | None]]) -> Iterator[End]:
        """Yield the units that end with the activity. A unit of whose end it
        told before ended then.
        """
        for key, (outcome, reply) in zip(self.keys, outcomes, strict=True):
            if key not in self.ended:
                yield NodeEnded(*key, outcome), reply


def _is_end(reply: NodeReply) -> bool:
    """Whether a reply is the end of a unit, and neither asks for more nodes nor puts a question."""
    if reply.more or reply.page or reply.question:
        return False
    return bool(reply.error or reply.ref or reply.skipped)
