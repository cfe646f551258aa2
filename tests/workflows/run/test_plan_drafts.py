"""Drafts of a plan as they come from anybody who can signal a run."""

from typing import Any

import pytest

from workflows.messages.contracts import PlanDraft
from workflows.plan.compile.graph import ExecutionPlan, NodeSpec, parse_execution_plan
from workflows.run.plan_drafts import MAX_DRAFTS, MAX_PACKED_BYTES, MAX_UNPACKED_BYTES, PlanDrafts

PLAN = ExecutionPlan([NodeSpec("a", "tool")], [0]).pack()
LARGE = ExecutionPlan([NodeSpec("a", "tool", summary="x" * MAX_UNPACKED_BYTES)], [0]).pack()


def draft(sequence: int = 1, attempt: int = 1, run: str = "r", execution_plan: str = PLAN) -> dict[str, Any]:
    found = PlanDraft(run=run, attempt=attempt, sequence=sequence, plan="d", execution_plan=execution_plan)
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

    def parse(text: str, most: int) -> ExecutionPlan | None:
        read.append(text)
        return parse_execution_plan(text, most)

    monkeypatch.setattr("workflows.run.plan_drafts.parse_execution_plan", parse)
    assert taken(draft(1), wrong, draft(2)) == [0, 2]
    assert read == [PLAN] * 2


def test_a_plan_that_unpacks_to_too_much_is_none() -> None:
    assert taken(draft(1, execution_plan=LARGE), draft(2)) == [1]


def test_a_run_takes_so_many_drafts_and_so_many_bytes() -> None:
    assert taken(*(draft(sequence) for sequence in range(1, MAX_DRAFTS + 10)))[-1] == MAX_DRAFTS - 1
    junk = draft(1, execution_plan="x" * MAX_PACKED_BYTES)
    assert taken(junk, draft(2)) == []
