"""Calls of programs that expire, and joins that have only some of their inputs open at once."""

import random
from typing import Any

import pytest
from doubles.plan.pages import added, begun, paged, restored

from sennit.workflows.plan.scheduling.events import (
    ApprovalDecided,
    Cancel,
    NodeEnded,
    Outcome,
    ProgramEdited,
    Question,
    RetryRequested,
    SkipRequested,
    Start,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.state import (
    CANCELLED,
    FAILED,
    PENDING,
    RUNNING,
    STATUS_NAMES,
    SUCCEEDED,
)
from sennit.workflows.plan.scheduling.step import step


@pytest.mark.parametrize("crashes", [False, True])
def test_a_call_that_expires_fails_and_the_step_goes_on(crashes: bool) -> None:
    state = begun()
    added(state, 0, paged("main_1", expires=5_000), paged("s2", "program", inputs=[1], policy="any"))
    assert state.status[2] == PENDING, "the step does not wait in the activity of the call"
    state = restored(state) if crashes else state
    assert state.next_due() == 5_000
    decisions = step(state, TimeAdvanced(), 5_000)
    assert [each.unit for each in decisions if isinstance(each, Cancel)] == [1]
    assert (state.status[1], state.notes[1]) == (FAILED, ("TimeoutError", "more than 5 s"))
    assert (state.status[2], state.next_due()) == (RUNNING, None)
    step(state, NodeEnded(1, 1, Outcome("late")))
    assert state.status[1] == FAILED, "what comes later does not count"


def test_the_time_counts_from_the_call_with_queue_and_retries_and_an_edit_keeps_it() -> None:
    state = begun()
    state.window = 1
    added(
        state, 0, paged("main_1", key="a"), paged("main_2", key="b", expires=5_000),
        paged("s2", "program", inputs=[1, 2], policy="any"),
    )  # fmt: skip
    assert (state.status[2], state.next_due()) == (PENDING, 5_000)
    step(state, NodeEnded(1, 1, Outcome(error=("Broken", ""), again=True)), 1_000)
    step(state, ProgramEdited(0, "p"), 2_000)
    added(state, 0, paged("g_1", key="b", expires=5_000), paged("g_s2", "program", inputs=[4], policy="any"))
    assert state.next_due() == 5_000
    step(state, TimeAdvanced(), 5_000)
    assert state.status[2] == FAILED


def test_a_call_that_ends_in_time_does_not_expire() -> None:
    state = begun()
    added(state, 0, paged("main_1", expires=5_000), paged("s2", "program", inputs=[1], policy="any"))
    step(state, NodeEnded(1, 1, Outcome("v")), 4_000)
    assert state.next_due() is None


def test_a_task_that_expires_takes_along_what_it_has_begun_and_a_retry_has_the_time_again() -> None:
    state = begun()
    added(state, 0, paged("t", "program", expires=5_000), paged("s2", "program", inputs=[1], policy="any"))
    added(state, 1, paged("t_1"), paged("t_2", effect="write"), paged("t_s2", "program", inputs=[3, 4], policy="any"))
    step(state, TimeAdvanced(), 5_000)
    assert [STATUS_NAMES[state.status[unit]] for unit in (1, 3, 5)] == ["failed", "cancelled", "cancelled"]
    assert state.effects[4][0].status == "in flight", "a write that has begun goes on"
    step(state, NodeEnded(2, 1, Outcome(error=("CallFailed", "TimeoutError: more than 5 s"))), 6_000)
    step(state, NodeEnded(4, 1, Outcome("written")), 6_000)
    step(state, RetryRequested(1), 7_000)
    assert (state.status[1], state.next_due()) == (RUNNING, 12_000)


@pytest.mark.parametrize("policy", ["all", "settled", "first"])
def test_a_join_that_expires_gives_up_what_only_it_has_waited_for(policy: Any) -> None:
    state = begun()
    added(
        state, 0, paged("t1", "program"), paged("t2", "program"),
        paged("j", "join", policy=policy, inputs=[1, 2], expires=9_000),
        paged("other", "join", policy="settled", inputs=[2]),
        paged("s2", "program", inputs=[3, 4], policy="any"),
    )  # fmt: skip
    step(state, TimeAdvanced(), 9_000)
    assert [state.status[unit] for unit in (1, 2, 3)] == [CANCELLED, RUNNING, FAILED]


def test_a_write_that_waits_for_its_approval_may_expire() -> None:
    state = begun()
    write = paged("w", effect="write", approval=True, expires=5_000)
    added(state, 0, write, paged("s2", "program", inputs=[1], policy="any"))
    step(state, NodeEnded(1, 1, Outcome(question=Question("may it?", "d", "t"))))
    assert state.waiting == 1
    step(state, TimeAdvanced(), 5_000)
    assert (state.waiting, state.status[1], state.status[2]) == (0, FAILED, RUNNING)
    step(state, ApprovalDecided(1, True))
    assert state.status[1] == FAILED


class Tickets:
    """A join of ten tasks, of which three are open at once."""

    def __init__(self, policy: Any = "settled", **fields: Any) -> None:
        self.state = begun()
        self.page = [paged(f"t{number}", "program", key=f"k{number}.m") for number in range(1, 11)]
        join = paged("j", "join", policy=policy, inputs=[*range(1, 11)], width=3, **fields)
        added(self.state, 0, *self.page, join, paged("s2", "program", inputs=[11], policy="any"))

    def running(self) -> list[int]:
        return [unit for unit in range(1, 11) if self.state.status[unit] == RUNNING]

    def end(self, unit: int, *, fails: bool = False) -> None:
        outcome = Outcome(error=("ProgramFailed", "no")) if fails else Outcome("v")
        step(self.state, NodeEnded(unit, self.state.generation[unit], outcome))


@pytest.mark.parametrize("policy", ["all", "settled"])
@pytest.mark.parametrize("seed", range(20))
def test_a_join_has_no_more_than_its_width_open_and_waits_for_none_in_vain(policy: Any, seed: int) -> None:
    """Whatever fails, is skipped by a person, or is restored from a snapshot."""
    tickets, dice = Tickets(policy), random.Random(seed)
    begun_in_order = list[int]()
    for _ in range(10):
        running = tickets.running()
        begun_in_order += [unit for unit in running if unit not in begun_in_order]
        assert len(running) == min(3, 10 - sum(tickets.state.status[unit] > RUNNING for unit in range(1, 11)))
        unit = dice.choice(running)
        if dice.random() < 0.2:
            tickets.end(unit, fails=True)
        else:
            tickets.end(unit)
        if dice.random() < 0.3:
            tickets.state = restored(tickets.state)
    assert begun_in_order == list(range(1, 11))
    assert tickets.state.status[12] == RUNNING, "the program goes on"


def test_one_that_is_skipped_before_it_begins_makes_room() -> None:
    tickets = Tickets()
    step(tickets.state, SkipRequested(9))
    for unit in range(1, 11):
        if tickets.state.status[unit] == RUNNING:
            tickets.end(unit)
    assert tickets.state.status[12] == RUNNING


@pytest.mark.parametrize("width", [0, 5])
def test_an_edit_with_another_limit_has_that(width: int) -> None:
    tickets = Tickets()
    tickets.end(1)
    step(tickets.state, ProgramEdited(0, "p"))
    first = len(tickets.state.graph.specs)
    fresh = [paged(f"g{number}", "program", key=f"k{number}.m") for number in range(1, 11)]
    join = paged("gj", "join", policy="settled", inputs=[*range(first, first + 10)], width=width)
    added(tickets.state, 0, *fresh, join, paged("gs2", "program", inputs=[first + 10], policy="any"))
    assert tickets.state.status[1] == SUCCEEDED
    assert len(tickets.running()) == (width or 9)


def test_what_another_join_waits_for_begins_also_when_the_limited_one_is_given_up() -> None:
    state = begun()
    tasks = [paged(f"t{number}", "program") for number in range(1, 4)]
    limited = paged("j", "join", policy="all", inputs=[1, 2, 3], width=1, expires=5_000)
    other = paged("o", "join", policy="settled", inputs=[1, 2, 3])
    added(state, 0, *tasks, limited, other, paged("s2", "program", inputs=[4, 5], policy="any"))
    step(state, TimeAdvanced(), 5_000)
    for unit in (1, 2, 3):
        assert state.status[unit] == RUNNING
        decisions = step(state, NodeEnded(unit, 1, Outcome("v")))
        assert unit == 3 or any(isinstance(each, Start) for each in decisions)
    assert state.status[5] == SUCCEEDED
