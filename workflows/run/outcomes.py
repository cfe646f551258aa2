"""Turns the end of an activity into an outcome for the scheduler."""

from typing import Any

from temporalio import exceptions
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError

from workflows.messages.contracts import NodeReply
from workflows.messages.result import usage_in
from workflows.plan.language.limits import NO_USAGE, Usage
from workflows.plan.scheduling.events import Outcome, Question


def outcome_of(reply: NodeReply) -> Outcome:
    """Return the outcome of a reply."""
    if reply.error is not None:
        again = reply.error.again
        return Outcome(error=(reply.error.type, reply.error.message), attempts=0 if again else 1, again=again)
    if reply.question is not None:
        return Outcome(attempts=0, question=Question(**reply.question.model_dump()))
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
    )


def ends_of(handle: Any, count: int) -> list[tuple[Outcome, NodeReply | None]]:
    """Return each unit's outcome with its reply. If the activity itself failed, there is only its usage."""
    error = None if handle.cancelled() else handle.exception()
    if not handle.cancelled() and error is None:
        return [(outcome_of(reply), reply) for reply in handle.result().nodes]
    failed = failed_outcome(error)
    if count > 1:
        return [(Outcome(error=failed.error, attempts=0, again=True), None)] * count
    reply = NodeReply(attempt=failed.attempts, usage=failed.usage) if failed.usage and any(failed.usage) else None
    return [(failed, reply)]


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
    if not isinstance(used, list) or len(used) != len(NO_USAGE) or not all(isinstance(count, int) for count in used):
        return NO_USAGE
    return Usage(*used)


def _ended(cause: BaseException | None) -> str:
    """Return the outcome of a sub-agent that neither answered nor failed by itself."""
    ways = {exceptions.TerminatedError: "was terminated", CancelledError: "was cancelled"}
    return f"the sub-agent's run {ways.get(type(cause), 'hit its time limit')}"
