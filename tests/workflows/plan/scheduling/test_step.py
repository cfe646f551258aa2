"""Whatever happens, in whatever order: properties of `step` over random plans, outcomes, edits and crashes."""

import os
from graphlib import TopologicalSorter
from typing import Any

from doubles.plan.strategies import execution_plans
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from simulation.audit import check_structure
from simulation.world import World

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.figures.figures import figures_of
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.nodes import Fuse
from sennit.workflows.plan.language.packing import unpack
from sennit.workflows.plan.limits import MAX_SNAPSHOT_BYTES
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    Decision,
    DrainEnded,
    DrainStarted,
    End,
    Event,
    NodeEnded,
    Outcome,
    RetryRequested,
    RunStarted,
    SkipRequested,
    Start,
    StopRequested,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import PENDING, RUNNING, WAITING, Status
from sennit.workflows.plan.scheduling.waits import CAUSES
from sennit.workflows.views.figures import record_of

EXAMPLES = int(os.environ.get("SENNIT_EXAMPLES", "100"))


def written(state: RunState) -> dict[str, Any]:
    """Return what is written of a state, with waits that go on counted as waits that are over.

    A unit that waits for a lock is looked at anew in the next run of a chain, and when others end. Its wait then
    counts until now, and another one begins.
    """
    body: dict[str, Any] = unpack(dump(state), MAX_SNAPSHOT_BYTES)
    total, *asked, waiting = body["waits"]
    now_open = {}
    for unit, cause, age in waiting:
        now_open[unit] = cause
        if state.is_call(unit):
            total[CAUSES.index(cause)] += age
    body["waits"] = [total, *asked, now_open]
    return body


class AnyRun(RuleBasedStateMachine):
    """A run to which anything may happen, beside a copy that is written down and read back before every event."""

    @initialize(execution_plan=execution_plans(), window=st.integers(1, 6), fuse=st.sampled_from(("auto", "on", "off")))
    def start(self, execution_plan: ExecutionPlan, window: int, fuse: Fuse) -> None:
        self.graph = Graph(execution_plan)
        self.state = RunState(self.graph, window=window, park_for=500, timings=Timings(fuse))
        self.world = World(0)
        self.over = False
        self.act(RunStarted())

    def act(self, event: Event) -> None:
        text = dump(self.state)
        copy = load(self.graph, text)
        assert dump(copy) == text
        copy.draining = self.state.draining
        for unit, record in copy.units.items():
            record.started = self.state.units[unit].started
        before = self.over
        decisions = step(self.state, event)
        assert step(copy, event) == decisions
        assert written(copy) == written(self.state)
        assert not before or not decisions
        self.over = self.over or any(isinstance(decision, End) for decision in decisions)
        assert self.over == self.state.ended
        for keys in self.world.carry_out(self.state, decisions):
            assert keys
        assert self.state.activities <= self.state.window

    def units(self, status: Status) -> list[int]:
        return self.state.units_in(status)

    @precondition(lambda self: self.units(RUNNING))
    @rule(data=st.data(), kind=st.sampled_from(("ends", "ends", "fails", "again", "skipped")), count=st.integers(0, 5))
    def a_unit_ends(self, data: st.DataObject, kind: str, count: int) -> None:
        unit = data.draw(st.sampled_from(self.units(RUNNING)))
        key = unit, self.state.units[unit].generation
        del self.world.live[key]
        outcome = Outcome(f"d{count % 2}", 1, {"count": count, "items.length": count % 4})
        if kind == "fails":
            outcome = Outcome(error=("ToolFailed", "boom"))
        elif kind == "again":
            outcome = Outcome(again=True, attempts=0)
            self.world.used.pop(self.state.full_path(unit), None)  # what only asks has not begun
        elif kind == "skipped":
            outcome = Outcome(skipped=True)
        self.act(NodeEnded(unit, key[1], outcome))

    @precondition(lambda self: self.units(WAITING))
    @rule(data=st.data(), approved=st.booleans())
    def a_person_says_something(self, data: st.DataObject, approved: bool) -> None:
        unit = data.draw(st.sampled_from(self.units(WAITING)))
        gate = self.state.spec_of(unit).kind == "gate"
        self.act(Answered(unit, "yes") if gate else ApprovalDecided(unit, approved))

    @rule(data=st.data(), kind=st.sampled_from(("retry", "retry", "skip", "answer", "judge", "late", "begun")))
    def anything_happens_to_any_unit(self, data: st.DataObject, kind: str) -> None:
        unit = data.draw(st.sampled_from(self.state.numbers()))
        events: dict[str, Event] = {
            "retry": RetryRequested(unit),
            "skip": SkipRequested(unit),
            "answer": Answered(unit, 1),
            "judge": ApprovalDecided(unit, True),
            "late": NodeEnded(unit, self.state.units[unit].generation - 1, Outcome("old")),
            "begun": RunStarted(),
        }
        self.act(events[kind])

    @rule(passed=st.integers(0, 100))
    def time_passes(self, passed: int) -> None:
        self.state.now += passed
        self.act(TimeAdvanced())

    @rule(draining=st.booleans())
    def the_run_drains_or_goes_on(self, draining: bool) -> None:
        self.act(DrainStarted(500) if draining else DrainEnded())

    @precondition(lambda self: len(self.world.used) > 12)
    @rule(status=st.sampled_from(("partial", "cancelled")))
    def a_person_stops_the_run(self, status: str) -> None:
        self.act(StopRequested("partial" if status == "partial" else "cancelled"))

    @invariant()
    def every_count_is_right(self) -> None:
        if hasattr(self, "state"):
            check_structure(self.state)
            assert [key for key in self.world.live if self.state.units[key[0]].status != RUNNING] == [] or self.over

    @invariant()
    def it_can_always_be_told_what_parallelism_has_brought(self) -> None:
        if hasattr(self, "state"):
            before = dump(self.state)
            found = figures_of(record_of(self.state)[0])
            assert dump(self.state) == before
            assert found.critical_path_ms <= found.sequential_ms


AnyRun.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestAnyRun = AnyRun.TestCase


class Worker:
    """Carries out a run in which nothing fails, one call at a time, in an order that `data` picks."""

    def __init__(self, state: RunState, data: st.DataObject) -> None:
        self.state = state
        self.data = data
        self.waiting: list[int] = []
        self.ended: list[int] = []

    def take(self, decisions: list[Decision]) -> None:
        """Note what was started, and what waits for a person."""
        for decision in decisions:
            if isinstance(decision, Start):
                self.waiting += decision.units
        asked = self.state.units_in(WAITING)
        self.waiting += [unit for unit in asked if unit not in self.waiting]

    def finish_one(self) -> None:
        """End one call, or answer one question."""
        unit = self.waiting.pop(self.data.draw(st.integers(0, len(self.waiting) - 1)))
        if self.state.units[unit].status == WAITING:
            gate = self.state.spec_of(unit).kind == "gate"
            self.take(step(self.state, Answered(unit, 1) if gate else ApprovalDecided(unit, True)))
            return
        self.take(step(self.state, NodeEnded(unit, 1, Outcome(f"d{unit}", 1, {"items.length": unit % 3}))))
        if not self.state.is_item(unit):
            self.ended.append(unit)


@given(execution_plan=execution_plans(early=False, trouble=False), data=st.data())
def test_without_failures_exactly_those_nodes_are_ready_that_graphlib_says(
    execution_plan: ExecutionPlan, data: st.DataObject
) -> None:
    """But for maps that run behind another one's items: these may be open before."""
    graph = Graph(execution_plan)
    state = RunState(graph)
    worker = Worker(state, data)
    waits = {index: [*graph.deps[index], *spec.inputs] for index, spec in enumerate(execution_plan.specs)}
    behind = {index for index, spec in enumerate(execution_plan.specs) if spec.source >= 0}
    sorter = TopologicalSorter(waits)
    sorter.prepare()
    ready = set(sorter.get_ready())
    ended: list[int] = []

    def is_gathered(node: int) -> bool:
        return state.graph.specs[node].kind in ("join", "map") and state.units[node].digest is not None

    worker.take(step(state, RunStarted()))
    while not state.ended:
        begun = {
            node
            for node in waits
            if state.units[node].status != PENDING or state.units[node].queued or node in state.items
        }
        assert begun - behind == ready - behind
        assert ready & behind <= begun
        worker.finish_one()
        ended += worker.ended
        sorter.done(*worker.ended)
        worker.ended.clear()
        ready |= set(sorter.get_ready())
        while closed := [node for node in ready if is_gathered(node) and node not in ended]:
            ended += closed
            sorter.done(*closed)
            ready |= set(sorter.get_ready())
    assert not sorter.is_active()


@given(execution_plan=execution_plans(), units=st.lists(st.integers(0, 11), max_size=20), window=st.integers(1, 4))
def test_the_same_events_give_the_same_decisions(execution_plan: ExecutionPlan, units: list[int], window: int) -> None:
    """Nothing but state and event decides: two runs over two copies of the plan agree word for word."""
    logs = []
    for _ in range(2):
        state = RunState(Graph(ExecutionPlan.unpack(execution_plan.pack())), window=window)
        log = [step(state, RunStarted())]
        for number, unit in enumerate(units):
            known = state.numbers()[unit % len(state.units)]
            outcome = Outcome("d", 1, {"count": number}) if number % 3 else Outcome(error=("ToolFailed", "boom"))
            log.append(step(state, NodeEnded(known, state.units[known].generation, outcome)))
            log.append(step(state, RetryRequested(known) if number % 4 == 0 else Answered(known, number)))
        logs.append(log)
    assert logs[0] == logs[1]
