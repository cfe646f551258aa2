"""Takes the beginnings of a plan that its planner sends while it writes: of one attempt, in order, within bounds."""

from pydantic import ValidationError

from workflows.messages.contracts import PlanDraft
from workflows.plan.compile.graph import ExecutionPlan, parse_execution_plan

MAX_DRAFTS = 100
MAX_PACKED_BYTES = 1024 * 1024
MAX_UNPACKED_BYTES = 256 * 1024


class PlanDrafts:
    """The drafts of one run: at most 100, of 1 MiB together, each at most 256 KiB unpacked.

    What has the wrong run, attempt or sequence is dropped unread, and so is what is over a bound. Nothing is lost by
    it: the whole plan comes with the end of the planner's activity.
    """

    def __init__(self) -> None:
        self._attempt = 0
        self._taken = 0
        self._bytes = 0

    def take(self, run: str, request: object = None, *more: object) -> tuple[PlanDraft, ExecutionPlan] | None:
        """Return the next draft of `run` with its plan; None for anything else."""
        try:
            draft = PlanDraft.model_validate(request)
        except ValidationError:
            return None
        attempt = self._attempt if self._taken else draft.attempt  # the first to come is that of the run
        if more or (draft.run, draft.attempt, draft.sequence) != (run, attempt, self._taken + 1):
            return None
        self._attempt, self._taken = draft.attempt, draft.sequence
        self._bytes += len(draft.execution_plan)
        if self._taken > MAX_DRAFTS or self._bytes > MAX_PACKED_BYTES:
            return None
        found = parse_execution_plan(draft.execution_plan, MAX_UNPACKED_BYTES)
        return None if found is None else (draft, found)
