"""What a run still owes for calls that were cut off, and what it knows of writes below it and before a reset."""

from typing import Literal

import pytest

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec, Quoted
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling import termination
from sennit.workflows.plan.scheduling.events import (
    BudgetRaised,
    Decision,
    End,
    Event,
    LedgerRead,
    NodeEnded,
    Outcome,
    RetryRequested,
    RunStarted,
    Written,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import RUNNING, SUCCEEDED

MILLION = 1_000_000
OnFailure = Literal["park", "partial"]


class Scheduler:
    """The scheduler alone, with units by their numbers and a clock that counts events."""

    def __init__(self, specs: list[NodeSpec], answer: int, *, on_failure: OnFailure = "partial", **limits: int) -> None:
        self.state = RunState(Graph(ExecutionPlan(specs, [answer])), window=100, on_failure=on_failure)
        self.now = 0
        if limits:
            self.tell(BudgetRaised(dict(limits), None))
        self.tell(RunStarted(False))

    def tell(self, event: Event) -> list[Decision]:
        self.now += 1
        return step(self.state, event, self.now)

    def end(self, unit: int, outcome: Outcome) -> list[Decision]:
        return self.tell(NodeEnded(unit, self.state.units[unit].generation, outcome))


def paid(tokens: int) -> Usage:
    return Usage(tokens, 0, 0, 1)


@pytest.mark.parametrize("cost", range(1_000, 100_000, 3_000))
def test_what_a_waiting_call_is_granted_does_not_change_when_it_starts(cost: int) -> None:
    """A grant depends on how many wait. Counted once with the call and once without, it would wake it for ever."""
    specs = [NodeSpec("first", "llm", prompt=100, reply=200, price=MILLION)]
    waiting = NodeSpec("n", "llm", needs=[0], prompt=100, reply=50_000, price=MILLION)
    specs += [waiting] * 6
    run = Scheduler(specs, 1, tokens=100_000, cost=cost)
    run.end(0, Outcome("d", 1, {}, usage=Usage(100, 100, 200, 1)))
    assert run.state.ended or run.state.units_in(RUNNING)


@pytest.mark.parametrize("on_failure", ["partial", "park"])
def test_a_run_waits_for_what_a_cancelled_call_leaves_of_the_budget(on_failure: OnFailure) -> None:
    specs = [
        NodeSpec("a", "llm", tokens=400),
        NodeSpec("b", "llm", tokens=500),
        NodeSpec("j", "join", inputs=[0, 1], policy="first"),
        NodeSpec("c", "llm", needs=[2], tokens=300),
    ]
    run = Scheduler(specs, 3, on_failure=on_failure, tokens=1_000)
    run.end(0, Outcome("d", 1, {}, usage=paid(400)))
    assert not run.state.ended
    assert not run.state.parked
    run.tell(NodeEnded(1, 1, Outcome(error=("Cancelled", "another was first"), usage=paid(2))))
    assert run.state.units_in(RUNNING) == [3]


def test_calls_of_map_items_that_a_retry_dropped_give_their_budget_back() -> None:
    specs = [
        NodeSpec("l", "tool"),
        NodeSpec("m", "map", needs=[0], over=(0, "items"), item_kind="llm", cap=10, tokens=100),
    ]
    run = Scheduler(specs, 1, tokens=1_000)
    run.end(0, Outcome("d", 1, {"items": 3}))
    items = run.state.units_in(RUNNING)
    assert len(items) == 3
    run.tell(RetryRequested(1))
    budget = run.state.budget
    assert budget is not None
    assert len(budget.late) == 3
    for item in items:
        run.tell(NodeEnded(item, 1, Outcome(error=("Cancelled", "its map runs again"), usage=paid(2))))
    assert not budget.late


def test_what_a_sub_agent_says_of_its_writes_stays_when_it_succeeds() -> None:
    run = Scheduler([NodeSpec("g", "agent", effect="write")], 0)
    run.end(0, Outcome("d", 1, effects=(("w", "made"), ("v", "not made"))))
    assert [(effect.below, effect.status) for effect in run.state.effects[0]] == [("w", "made"), ("v", "not made")]


def test_a_ledger_brings_back_no_doubt_that_a_person_has_decided() -> None:
    run = Scheduler([NodeSpec("w", "tool", effect="write")], 0, on_failure="park")
    run.end(0, Outcome(error=("UnknownOutcome", "its worker was lost")))
    run.tell(RetryRequested(0))
    run.tell(LedgerRead((Written("w", "", 1, "unknown"),)))
    decisions = run.end(0, Outcome("d", 1))
    assert run.state.units[0].status == SUCCEEDED
    assert [decision.status for decision in decisions if isinstance(decision, End)] == ["done"]


def test_an_answer_made_of_many_layers_of_joins_is_judged_once_for_each_join() -> None:
    specs = [NodeSpec("a", "tool"), NodeSpec("b", "tool")]
    inputs = [0, 1]
    for layer in range(60):
        left = len(specs)
        specs.append(NodeSpec(f"x{layer}", "join", inputs=inputs, policy="first"))
        specs.append(NodeSpec(f"y{layer}", "join", inputs=inputs, policy="first"))
        inputs = [left, left + 1]
    run = Scheduler(specs, inputs[0])
    run.end(0, Outcome("d", 1))
    assert run.state.end_status == "done"


def test_the_program_that_needs_least_starts_first_whatever_was_left_when_it_began_to_wait() -> None:
    specs = [
        NodeSpec("g1", "agent"),
        NodeSpec("g2", "agent", needs=[2]),
        NodeSpec("t", "tool"),
        NodeSpec("t2", "tool", needs=[2]),
        NodeSpec("A", "program", needs=[2], quote=Quoted("t", 10, 0, 0)),
        NodeSpec("B", "program", needs=[3], quote=Quoted("t", 8, 0, 0)),
    ]
    run = Scheduler(specs, 5, on_failure="park", calls=10)
    for unit, used in ((2, None), (3, None), (0, paid(1)), (1, paid(1))):
        run.end(unit, Outcome("d", 1, usage=used))
    assert 5 in run.state.units_in(RUNNING)
    assert not termination.idle(run.state)
