"""Calls of programs that expire, and joins that have only some of their inputs open at once."""

import pytest
from doubles.plan.pages import added, begun, paged, restored

from sennit.workflows.plan.scheduling.events import (
    ApprovalDecided,
    Cancel,
    NodeEnded,
    Outcome,
    ProgramEdited,
    Question,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import DELEGATED, FAILED, PENDING, RUNNING


@pytest.mark.parametrize("crashes", [False, True])
def test_a_call_that_expires_fails_and_the_step_goes_on(crashes: bool) -> None:
    state = begun()
    added(state, paged("main_1", expires=5_000), paged("s2", "program", inputs=[1]))
    assert state.units[0].status == DELEGATED, "the script does not wait in the activity of the call"
    state = restored(state) if crashes else state
    assert state.next_due() == 5_000
    decisions = step(state, TimeAdvanced(), 5_000)
    assert [each.unit for each in decisions if isinstance(each, Cancel)] == [1]
    assert (state.units[1].status, state.notes[1]) == (FAILED, ("TimeoutError", "more than 5 s"))
    assert (state.units[0].status, state.next_due()) == (RUNNING, None)
    step(state, NodeEnded(1, 1, Outcome("late")))
    assert state.units[1].status == FAILED, "what comes later does not count"


def test_the_time_counts_from_the_call_with_queue_and_retries_and_an_edit_keeps_it() -> None:
    state = begun()
    state.window = 1
    calls = [paged("main_1", key="a"), paged("main_2", key="b", expires=5_000)]
    added(state, *calls, paged("s2", "program", inputs=[1, 2]))
    assert (state.units[2].status, state.next_due()) == (PENDING, 5_000)
    step(state, NodeEnded(1, 1, Outcome(error=("Broken", ""), again=True)), 1_000)
    step(state, ProgramEdited(0, "p"), 2_000)
    added(state, paged("g_1", key="b", expires=5_000), paged("g_s2", "program", inputs=[3]))
    assert state.next_due() == 5_000
    step(state, TimeAdvanced(), 5_000)
    assert state.units[2].status == FAILED


def test_a_call_that_ends_in_time_does_not_expire() -> None:
    state = begun()
    added(state, paged("main_1", expires=5_000), paged("s2", "program", inputs=[1]))
    step(state, NodeEnded(1, 1, Outcome("v")), 4_000)
    assert state.next_due() is None


def test_a_write_that_waits_for_its_approval_may_expire() -> None:
    state = begun()
    write = paged("w", effect="write", approval=True, expires=5_000)
    added(state, write, paged("s2", "program", inputs=[1]))
    step(state, NodeEnded(1, 1, Outcome(question=Question("may it?", "d", "t"))))
    assert state.waiting == 1
    step(state, TimeAdvanced(), 5_000)
    assert (state.waiting, state.units[1].status, state.units[0].status) == (0, FAILED, RUNNING)
    step(state, ApprovalDecided(1, True))
    assert state.units[1].status == FAILED
