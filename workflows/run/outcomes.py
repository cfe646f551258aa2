"""From how an activity ended to the outcome the scheduler takes."""

from dataclasses import replace
from typing import Any

from temporalio import exceptions
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError

from workflows.messages.contracts import NodeReply
from workflows.messages.usage import NOTHING, Spent, Usage
from workflows.plan.scheduling.events import Outcome


def outcome_of(reply: NodeReply) -> Outcome:
    """Return a reply as the scheduler takes it."""
    if reply.error is not None:
        again = reply.error.again
        return Outcome(error=(reply.error.type, reply.error.message), attempts=0 if again else 1, again=again)
    spent = reply.usage.tokens, reply.usage.cost
    facts = dict(reply.facts)
    return Outcome(reply.ref, reply.size, facts, None, reply.attempt, reply.skipped, spent=spent, calls=reply.calls)


def ends_of(handle: Any, count: int) -> list[tuple[Outcome, NodeReply | None]]:
    """Return how each unit ended, with its reply; where the activity itself failed, with what it used, if anything."""
    error = None if handle.cancelled() else handle.exception()
    if not handle.cancelled() and error is None:
        return [(outcome_of(reply), reply) for reply in handle.result().nodes]
    failed, used = failed_outcome(error), used_by(error)
    if count > 1:
        return [(Outcome(error=failed.error, attempts=0, again=True), None)] * count
    below = _used_below(error)
    if any(below):
        *amounts, calls = below
        used = Usage(*amounts)
        failed = replace(failed, spent=(used.tokens, used.cost), calls=calls)
        return [(failed, NodeReply(attempt=failed.attempts, usage=used, calls=calls))]
    return [(failed, NodeReply(attempt=failed.attempts, usage=used) if any(used) else None)]


def failed_outcome(error: BaseException | None) -> Outcome:
    """Return the outcome for an activity that failed for good: its type, its sentence, its attempts,
    and what they used.
    """
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    if isinstance(error, ChildWorkflowError) and not isinstance(cause, ApplicationError):
        return Outcome(error=("SubAgentFailed", _ended(cause)), spent=None)
    if isinstance(cause, ApplicationError):
        attempt = cause.details[0] if cause.details and isinstance(cause.details[0], int) else 1
        used = used_by(error)
        return Outcome(error=(cause.type or "Failed", cause.message), attempts=attempt, spent=(used.tokens, used.cost))
    if isinstance(cause, exceptions.TimeoutError):
        kind = cause.type.name if cause.type is not None else "UNKNOWN"
        sentence = f"no worker finished it: {kind.lower().replace('_', ' ')} timeout"
        return Outcome(error=("WorkerLost", sentence), spent=None)
    if cause is None or isinstance(cause, CancelledError):
        return Outcome(error=("Cancelled", "the activity was cancelled"))
    return Outcome(error=("Failed", str(cause)[:500]))


def used_by(error: BaseException | None) -> Usage:
    """Return what an activity that failed says that all its attempts used."""
    cause = error.cause if isinstance(error, ActivityError) else error
    used = cause.details[1] if isinstance(cause, ApplicationError) and len(cause.details) > 1 else None
    if not isinstance(used, list) or len(used) != len(NOTHING) or not all(isinstance(number, int) for number in used):
        return NOTHING
    return Usage(*used)


def _used_below(error: BaseException | None) -> Spent:
    """Return what a sub-agent's run used that failed, or gave no answer."""
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else None
    if not isinstance(cause, ApplicationError):
        return Spent()
    if isinstance(error, ActivityError):
        calls = cause.details[2] if len(cause.details) > 2 and isinstance(cause.details[2], int) else 0
        return Spent(*used_by(error), calls) if calls else Spent()
    return next(filter(any, map(Spent.told, cause.details)), Spent())


def _ended(cause: BaseException | None) -> str:
    """Return how a sub-agent's run ended that neither answered nor failed by itself."""
    ways = {exceptions.TerminatedError: "was terminated", CancelledError: "was cancelled"}
    return f"the sub-agent's run {ways.get(type(cause), 'hit its time limit')}"
