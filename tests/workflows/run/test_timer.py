"""The run's one timer: until when deadlines have passed once it has rung."""

import asyncio
from datetime import timedelta

import pytest

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.run import timer
from sennit.workflows.run.timer import DeadlineTimer


class Clock:
    """Workflow time. Who sleeps is woken late, as after an outage of all workers."""

    def __init__(self, late: float) -> None:
        self.now = 1.0
        self.late = late
        self.slept = 0

    def time(self) -> float:
        return self.now

    async def sleep(self, pause: timedelta, *, summary: str) -> None:
        del summary
        self.slept += 1
        await asyncio.sleep(0)
        self.now += pause.total_seconds() + self.late

    def patched(self, _: str) -> bool:
        return True


def waiting(*deadlines: int) -> RunState:
    """Return a run with a deadline for each of its nodes."""
    specs = [NodeSpec(f"n{number}", "gate") for number in range(len(deadlines))]
    state = RunState(Graph(ExecutionPlan(specs, [0])))
    state.deadlines = dict(enumerate(deadlines))
    return state


async def rung(alarm: DeadlineTimer, state: RunState) -> int:
    """Wait for one ring, and return until when deadlines have passed."""
    alarm.set(state)
    for _ in range(3):
        await asyncio.sleep(0)
    return alarm.passed(state)


async def test_a_deadline_has_passed_when_its_timer_has_rung_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(late=0)
    monkeypatch.setattr(timer, "workflow", clock)
    alarm = DeadlineTimer(lambda: None)
    state = waiting(1_500)
    clock.now = 9.0
    assert alarm.passed(state) == 0, "the clock alone says nothing"
    clock.now = 1.0
    assert await rung(alarm, state) == 1_500


async def test_one_timer_is_enough_for_all_that_has_passed_during_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(late=60)
    monkeypatch.setattr(timer, "workflow", clock)
    alarm = DeadlineTimer(lambda: None)
    state = waiting(*range(1_500, 2_500, 5))
    while state.deadlines:
        passed = await rung(alarm, state)
        state.deadlines = {unit: at for unit, at in state.deadlines.items() if at > passed}
    assert clock.slept == 2
