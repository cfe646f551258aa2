"""The activities under way for the units of a run, and how their ends become outcomes for the scheduler: with the
activity, or before, where one for several units tells of those that have ended while others go on.

Anybody who may use the server can complete an activity, and with anything. What is no result of its kind is a failure.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError
from temporalio import exceptions
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError

from sennit.workflows.messages.contracts import NOT_RUN, Call, GroupProgress, GroupReply, In, NodeReply, Out, PlanPage
from sennit.workflows.messages.ends import CallEnd, unpack_ends
from sennit.workflows.messages.result import usage_in
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.compile.page import attach, check_places, parse_page
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.completion import LOST, NOT_WRITTEN, UNKNOWN_OUTCOME
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, ProgramAdvanced

Handle = asyncio.Task[GroupReply]
"""What is under way: an activity's handle is a task, and so is a sub-agent with the activities around it."""
Key = tuple[int, int]
End = tuple[NodeEnded, NodeReply | None]
NO_RESULT = ("InvalidResult", "its activity was completed with something that is not its result, as if by hand")


def result_of(call: Call[In, Out], found: Any) -> Out:
    """Return what an activity gave. Raises ApplicationError of type InvalidResult if that is no result of it."""
    if not isinstance(found, call.gives):
        raise invalid_result()
    return found


def graph_of(execution_plan: str) -> Graph:
    """Return the graph of a plan that an activity gave packed. Raises ApplicationError of type InvalidResult, also if
    the plan has no nodes, or they do not fit each other.
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
    """Return the nodes of a page, by their places in the whole plan. Raises ApplicationError of type InvalidResult,
    also if the page names a node that the plan has not.
    """
    known = places_of(graph, page.known)
    places_of(graph, (*page.facts, *page.fallbacks))
    try:
        return attach(parse_page(page.specs), known, len(graph.specs))
    except (ValueError, TypeError, AttributeError, LookupError):
        raise invalid_result() from None


def advance_of(graph: Graph, page: PlanPage, ended: NodeEnded) -> tuple[ProgramAdvanced, list[CallEnd]]:
    """Return what an advance of a program has come to, and how calls of its page have ended by now. The last node of
    the page is the advance that goes on from there. Raises ApplicationError of type InvalidResult.
    """
    found = page_of(graph, page)
    past = tuple(places_of(graph, page.past))
    if not found.specs or found.specs[-1].kind != "program":
        raise invalid_result()
    try:
        ends = unpack_ends(found, page.ends)
    except ValueError:
        raise invalid_result() from None

    *calls, following = found.specs
    if any(spec.kind == "program" or spec.inputs for spec in calls):
        raise invalid_result()
    for spec in calls:
        spec.page = page.plan
    end = None
    if ends and ends[-1][0] == following.id:
        end = outcome_of(ends[-1][1])
    made = tuple((name, outcome_of(reply)) for name, reply in ends if name != following.id)
    delegated = replace(ended, outcome=replace(ended.outcome, delegated=True))
    waits = tuple(following.inputs)
    return ProgramAdvanced(delegated, calls, following.id, page.plan, waits, past, page.given_up, made, end), ends


def places_of(graph: Graph, names: Iterable[str]) -> list[int]:
    """Return the nodes of these ids, which an activity gave. Raises ApplicationError of type InvalidResult."""
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
        if reply.error.again and reply.error.type == NOT_RUN:
            return START_AGAIN
        wrong, again = (reply.error.type, reply.error.message), reply.error.again
        attempts = 0 if again else 1
        return Outcome(error=wrong, attempts=attempts, again=again, at=reply.at, usage=reply.usage, span=reply.span)
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
        written=reply.written,
        taken_over=reply.taken_over,
        millis=reply.millis,
        at=reply.at,
        span=reply.span,
        delegated=reply.more == "program",
        tasks=reply.tasks,
    )


def ends_of(handle: Any, count: int, *, is_followed: bool = False) -> list[tuple[Outcome, NodeReply | None]]:
    """Return each unit's outcome with its reply, and behind them that of the step that followed, if one did. If the
    activity itself failed, there is only its usage.
    """
    error = None if handle.cancelled() else handle.exception()
    if not handle.cancelled() and error is None:
        found = handle.result()
        replies = found.ends({count, count + is_followed}) if isinstance(found, GroupReply) else ()
        if replies:
            return [(outcome_of(reply), reply) for reply in replies]
        failed = Outcome(error=NO_RESULT, usage=None)
    else:
        failed = failed_outcome(error)
    if count > 1:
        return [(Outcome(error=failed.error, attempts=0, again=True), None)] * count
    usage, log = failed.usage or NO_USAGE, logged_by(error)
    has_any = any(usage) or bool(log)
    return [(failed, NodeReply(attempt=failed.attempts, usage=usage, log=log) if has_any else None)]


def restart(
    spec: NodeSpec, outcome: Outcome, reply: NodeReply | None, *, is_write: bool
) -> tuple[Outcome, NodeReply | None]:
    """Return the outcome of a unit that was suspended: it starts again later, unless it came to an end of its own, as a
    write that had begun did.

    A model call is charged: for one that was cancelled nobody knows what. A sub-agent's next run counts what this one
    has used.
    """
    if outcome.error is None or (is_write and outcome.error[0] not in LOST):
        return outcome, reply
    if not spec.calls_model:
        return START_AGAIN, None
    is_unknown = outcome.error[0] == "Cancelled" and not any(outcome.usage or ())
    paid = NodeReply(usage=outcome.usage) if any(outcome.usage or ()) else None
    return replace(START_AGAIN, usage=None if is_unknown else outcome.usage), paid


def looked_up(outcome: Outcome) -> Outcome:
    """Return what was learned of a write that was cut off. If it could not be looked up, nobody knows."""
    if outcome.error is None or outcome.error[0] == NOT_WRITTEN:
        return outcome
    return replace(outcome, error=(UNKNOWN_OUTCOME, outcome.error[1]))


def failed_outcome(error: BaseException | None) -> Outcome:
    """Return the outcome of an activity that failed for good: its type, message, attempts and usage."""
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    if isinstance(error, ChildWorkflowError) and not isinstance(cause, ApplicationError):
        return Outcome(error=("SubAgentFailed", _ended(cause)), usage=None)
    if isinstance(cause, ApplicationError):
        attempt = cause.details[0] if cause.details and isinstance(cause.details[0], int) else 1
        return Outcome(error=(cause.type or "Failed", cause.message), attempts=attempt, usage=used_by(error))
    if isinstance(cause, exceptions.TimeoutError):
        kind = cause.type.name if cause.type is not None else "UNKNOWN"
        sentence = f"no worker finished it: {kind.lower().replace('_', ' ')} timeout"
        return Outcome(error=("WorkerLost", sentence), usage=None)
    if cause is None or isinstance(cause, CancelledError):
        return Outcome(error=("Cancelled", "the activity was cancelled"))
    return Outcome(error=("Failed", str(cause)[:500]))


def used_by(error: BaseException | None) -> Usage:
    """Return the usage in a failure: of all attempts of its activity, or of the sub-agent's run that failed."""
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    if not isinstance(cause, ApplicationError):
        return NO_USAGE
    if isinstance(error, ChildWorkflowError):
        return next(filter(any, map(usage_in, cause.details)), NO_USAGE)
    used = cause.details[1] if len(cause.details) > 1 else None
    if not isinstance(used, list) or not all(isinstance(count, int) for count in used):
        return NO_USAGE
    if len(used) not in (len(NO_USAGE), len(NO_USAGE) - 1):  # older workers tell of no cached tokens
        return NO_USAGE
    return Usage(*used)


def logged_by(error: BaseException | None) -> tuple[str, ...]:
    """Return what an advance of a program has logged that has failed."""
    cause = error.cause if isinstance(error, ActivityError) else None
    log = cause.details[2] if isinstance(cause, ApplicationError) and len(cause.details) > 2 else None
    return tuple(log) if isinstance(log, list) and all(isinstance(line, str) for line in log) else ()


def _ended(cause: BaseException | None) -> str:
    """Return the outcome of a sub-agent that neither answered nor failed by itself."""
    ways = {exceptions.TerminatedError: "was terminated", CancelledError: "was cancelled"}
    return f"the sub-agent's run {ways.get(type(cause), 'hit its time limit')}"


@dataclass(slots=True, eq=False)
class InFlight:
    """One activity under way: the units it runs, and in which generations. Suspended, they start again later.

    If `is_followed`, the second unit is an advance of a program that follows the first, if that has a value. `subagent`
    is the name of the sub-agent that it runs, `is_paid` says that it spends tokens, and `looks_up` that it only learns
    what became of a write. `told` has what its `attempt` has told of units before its end.
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
        """Yield the units that have ended by this. An earlier attempt than that which has told before, and what has
        been told, count for nothing.
        """
        if progress.attempt < self.attempt:
            return
        self.attempt, keys = progress.attempt, self.keys
        for place, reply in zip(progress.places, progress.replies, strict=False):
            says = (reply.error or reply.ref or reply.skipped) and not (reply.more or reply.page or reply.question)
            if says and 0 <= place < len(keys) and keys[place] not in self.ended:
                outcome = self.ended[keys[place]] = outcome_of(reply)
                yield NodeEnded(*keys[place], outcome), reply

    def ends(self, found: Sequence[tuple[Outcome, NodeReply | None]]) -> Iterator[End]:
        """Yield the units that end with the activity. A unit that has been told of before ended then."""
        for key, (outcome, reply) in zip(self.keys, found, strict=True):
            if key not in self.ended:
                yield NodeEnded(*key, outcome), reply


def progress_of(request: object, *more: object) -> GroupProgress | None:
    """Return what an activity tells of its units; None for anything else that somebody sends."""
    try:
        return None if more else GroupProgress.model_validate(request)
    except ValidationError:
        return None
