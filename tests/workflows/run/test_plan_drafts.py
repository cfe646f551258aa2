"""Drafts of a plan as they come from anybody who can signal a run."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_DRAFT_UNPACKED_BYTES, MAX_DRAFTS
from sennit.workflows.messages.contracts import PlanDraft, PlanPage
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.page import parse_page
from sennit.workflows.plan.limits import MAX_DRAFT_BYTES
from sennit.workflows.run.outcomes import graph_of
from sennit.workflows.run.plan_drafts import PlanDrafts

PLAN = ExecutionPlan([NodeSpec("a", "tool")], [0]).pack()
LARGE = ExecutionPlan([NodeSpec("a", "tool", summary="x" * MAX_DRAFT_UNPACKED_BYTES)], [0]).pack()


def draft(sequence: int = 1, attempt: int = 1, run: str = "r", specs: str = PLAN) -> dict[str, Any]:
    found = PlanDraft(run=run, attempt=attempt, sequence=sequence, page=PlanPage(plan="d", specs=specs))
    return found.model_dump(mode="json")


def taken(*given: dict[str, Any]) -> list[int]:
    """Return which of these drafts a run takes."""
    drafts = PlanDrafts()
    return [position for position, each in enumerate(given) if drafts.take("r", each) is not None]


def test_drafts_of_one_attempt_are_taken_in_their_order() -> None:
    assert taken(draft(1), draft(2), draft(3)) == [0, 1, 2]
    assert taken(draft(1, attempt=2), draft(2, attempt=2)) == [0, 1]


WRONG: list[dict[str, Any]] = [
    draft(2, run="s"), draft(2, attempt=2), draft(1), draft(3), draft(0), draft(-1), draft(2) | {"more": 1}, {},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_has_another_run_attempt_or_sequence_is_dropped_unread(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def parse(text: str, *bounds: Any, **options: Any) -> ExecutionPlan:
        read.append(text)
        return parse_page(text, *bounds, **options)

    monkeypatch.setattr("sennit.workflows.run.plan_drafts.parse_page", parse)
    assert taken(draft(1), wrong, draft(2)) == [0, 2]
    assert read == [PLAN] * 2


def test_what_follows_a_part_that_unpacks_to_too_much_is_none_either() -> None:
    assert taken(draft(1), draft(2, specs=LARGE), draft(3)) == [0]


def test_a_run_takes_so_many_drafts_and_so_many_bytes() -> None:
    assert taken(*(draft(sequence) for sequence in range(1, MAX_DRAFTS + 10)))[-1] == MAX_DRAFTS - 1
    junk = draft(1, specs="x" * MAX_DRAFT_BYTES)
    assert taken(junk, draft(2)) == []


NO_PLANS = [
    ExecutionPlan([], []),
    ExecutionPlan([NodeSpec("a", "tool", maker=99)], [0]),
    ExecutionPlan([NodeSpec("a", "tool", when={"op": "eq", "at": [0, "x"]})], [0]),
]


@pytest.mark.parametrize("plan", NO_PLANS, ids=["empty", "maker", "condition"])
def test_a_first_draft_that_no_run_can_begin_is_dropped(plan: ExecutionPlan) -> None:
    assert taken(draft(1, specs=plan.pack()), draft(1)) == [1]


@pytest.mark.parametrize("plan", NO_PLANS, ids=["empty", "maker", "condition"])
def test_a_plan_that_came_by_hand_and_that_no_run_can_begin_is_an_invalid_result(plan: ExecutionPlan) -> None:
    with pytest.raises(ApplicationError, match="not its result"):
        graph_of(plan.pack())
