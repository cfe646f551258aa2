"""Takes the parts of a plan that its planner sends while it writes: of one attempt,
in order, within bounds.
"""

from sennit.workflows.limits import MAX_DRAFT_UNPACKED_BYTES, MAX_DRAFTS
from sennit.workflows.messages.contracts import PlanDraft, PlanPage
from sennit.workflows.messages.message import message_in
from sennit.workflows.plan.compile.page import attach, parse_page
from sennit.workflows.plan.limits import MAX_DRAFT_BYTES


class PlanDrafts:
    """The drafts of one run: at most 100, of 1 MiB together, each at most 256 KiB unpacked.

    What has the wrong run, attempt or sequence is dropped unread, and so is what is over a
    bound, with all that follows it. Nothing is lost by it: the whole plan comes with the end of
    the planner's activity.
    """

    def __init__(self) -> None:
        self._attempt = 0
        self._taken = 0
        self._bytes = 0

    def take(self, run: str, request: object = None, *more: object) -> PlanPage | None:
        """Return the next part of the plan of `run`; None for anything else."""
        draft = message_in(PlanDraft, request, *more)
        if draft is None:
            return None
        attempt = draft.attempt  # the first to come is that of the run
        if self._taken:
            attempt = self._attempt
        if draft.run != run or draft.attempt != attempt:
            return None
        if draft.sequence != self._taken + 1:
            return None
        self._bytes += len(draft.page.specs)
        if self._taken >= MAX_DRAFTS or self._bytes > MAX_DRAFT_BYTES:
            return None
        try:
            page = parse_page(draft.page.specs, MAX_DRAFT_UNPACKED_BYTES, foreign=True)
            if not self._taken:
                attach(page, [], 0)
        except ValueError:
            return None
        self._attempt = draft.attempt
        self._taken = draft.sequence
        return draft.page
