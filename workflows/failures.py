"""From an activity's failure to the outcome the scheduler takes."""

from temporalio import exceptions
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError

from workflows.plan.decisions import Outcome
from workflows.usage import NOTHING


def failed_outcome(error: BaseException | None) -> Outcome:
    """Return the outcome for an activity that failed for good: its type, its sentence, its attempts,
    and what they used.
    """
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    if isinstance(error, ChildWorkflowError) and not isinstance(cause, ApplicationError):
        return Outcome(error=("SubAgentFailed", _ended(cause)), spent=None)
    if isinstance(cause, ApplicationError):
        attempt = cause.details[0] if cause.details and isinstance(cause.details[0], int) else 1
        used = cause.details[1] if len(cause.details) > 1 else NOTHING
        told = isinstance(used, list) and len(used) == len(NOTHING) and all(isinstance(number, int) for number in used)
        given, written, cost = used if told else NOTHING
        return Outcome(error=(cause.type or "Failed", cause.message), attempts=attempt, spent=(given + written, cost))
    if isinstance(cause, exceptions.TimeoutError):
        kind = cause.type.name if cause.type is not None else "UNKNOWN"
        sentence = f"no worker finished it: {kind.lower().replace('_', ' ')} timeout"
        return Outcome(error=("WorkerLost", sentence), spent=None)
    if cause is None or isinstance(cause, CancelledError):
        return Outcome(error=("Cancelled", "the activity was cancelled"))
    return Outcome(error=("Failed", str(cause)[:500]))


def _ended(cause: BaseException | None) -> str:
    """Return how a sub-agent's run ended that neither answered nor failed by itself."""
    ways = {exceptions.TerminatedError: "was terminated", CancelledError: "was cancelled"}
    return f"the sub-agent's run {ways.get(type(cause), 'hit its time limit')}"
