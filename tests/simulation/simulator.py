"""A seeded simulator: one run on a clock of its own, with failures, people, cancellations and crashes.

Everything is drawn from the seed, so a failing schedule can be run again. What a call comes to depends on its inputs
only; when it ends, when people act and when the process dies depends on the schedule.
"""

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from doubles.plan.strategies import Planner, Seeded
from simulation.audit import check_structure
from simulation.outcomes import check_outcomes
from simulation.world import Activity, World, chance

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.figures.figures import figures_of
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.scheduling.budget import Rate
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    Decision,
    End,
    Event,
    NodeEnded,
    NodesAppended,
    Outcome,
    RetryRequested,
    RunStarted,
    SkipRequested,
    StopRequested,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import PARK, RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.termination import blocking_failures
from sennit.workflows.plan.scheduling.unit import RUNNING, SUCCEEDED, WAITING, Status
from sennit.workflows.run.search_attributes import progress
from sennit.workflows.views.figures import record_of
from sennit.workflows.views.nodes import view_of
from sennit.workflows.views.sharing import explained
from sennit.workflows.views.shown_run import ShownRun


@dataclass
class Habits:
    """What may happen in a schedule, as chances in percent for each event.

    With `tells` all calls that may share an activity do, and of a hundred such activities so many tell of some calls
    before their end. `early` lets joins close before all their inputs have ended; `repairs` is how often a parked run
    is helped. With `grows` the plan comes in pieces. With `looks` somebody looks at the run between every two events.
    """

    edits: int = 0
    crashes: int = 0
    stops: int = 0
    failing: int = 12
    repairs: int = 6
    early: bool = True
    most: int = 14
    grows: int = 0
    tells: int = 0
    looks: bool = False


@dataclass
class Story:
    """What came of one schedule."""

    end: str = ""
    turns: int = 0
    log: list[tuple[int, Event, list[Decision]]] = field(default_factory=list)
    statuses: dict[str, Status] = field(default_factory=dict)
    digests: dict[str, str | None] = field(default_factory=dict)


class Simulation:
    """One schedule. `seed` draws the plan and the world, `order` everything about time and people."""

    def __init__(self, seed: int, habits: Habits, *, order: int | None = None) -> None:
        self.habits = habits
        execution_plan = Planner(Seeded(seed), least=4, most=habits.most, early=habits.early).plan()
        self.pieces = pieces_of(execution_plan) if habits.grows else [execution_plan]
        self.random = random.Random(seed if order is None else order)
        self.crashes = random.Random(seed + 1)
        self.state = RunState(
            Graph(self.pieces.pop(0)),
            window=self.random.choice((1, 2, 4, 100)),
            park_for=1_000,
            in_flight=self.random.choice((1, 3, 1_000)),
            timings=Timings(self.random.choice(("auto", "on", "off")), {"": self.random.choice((1, 2))}),
        )
        if habits.tells:
            self.state.timings, self.state.window, self.state.in_flight = Timings("on"), 100, 1_000
        if seed % 3:  # what the provider of model calls takes a minute
            self.state.rates = {"": Rate(seed % 3)}
        self.world = World(seed, failing=habits.failing)
        self.calendar: list[tuple[int, int, Activity]] = []
        self.repairs = habits.repairs
        self.edits = 30
        self.is_stopped = False
        self.story = Story()

    def run(self) -> Story:
        """Run to the end. Raises AssertionError when something does not hold."""
        self._act(RunStarted(bool(self.pieces)))
        while not self.story.end:
            self.story.turns += 1
            assert self.story.turns < 2_000, "the run does not come to an end"
            self._turn()
        self._record_ends()
        return self.story

    def _turn(self) -> None:
        draw = self.random.random() * 100
        if self.pieces and (draw < self.habits.grows or not self.calendar):
            self._grow()
        elif self.edits and draw < self.habits.edits:
            self.edits -= 1
            self._edit()
        elif draw > 100 - self.habits.stops:
            self._act(StopRequested("cancelled"))
        elif self.calendar:
            self._next_end()
        elif waiting := self.state.units_in(WAITING):
            self._answer(waiting[0])
        else:
            due = self.state.next_due()
            assert due is not None, "nothing is in flight and nothing will ring"
            self.state.now = max(self.state.now, due)
            self._act(TimeAdvanced())

    def _grow(self, page: ExecutionPlan | None = None, ended: NodeEnded | None = None) -> None:
        page = page or self.pieces.pop(0)
        made = {node: outcome.facts or {} for node, (_, outcome) in self.world.records.items()}
        specs = self.state.graph.specs
        gathered = [node for node, spec in enumerate(specs) if spec.kind in ("join", "map") and node in made]
        facts = {node: made[node] for node in gathered if self.state.units[node].status == SUCCEEDED}
        self._act(NodesAppended(page, ended, facts, more=bool(self.pieces)))

    def _next_end(self) -> None:
        at, _, keys = self.calendar[0]
        due = self.state.next_due()
        if due is not None and due <= at:
            self.state.now = max(self.state.now, due)
            self._act(TimeAdvanced())
            return
        heappop(self.calendar)
        self.state.now = max(self.state.now, at)
        ends = self.world.settle(self.state, keys)
        if self._tells(keys):
            self._tell(keys, ends[: self.random.randint(1, len(keys) - 1)])
            return
        told = self.world.told.pop(keys, {})
        for unit, generation, outcome in ends:
            if (unit, generation) in told:
                continue
            self.world.deliver(self.state, unit, generation, outcome)
            self._act(NodeEnded(unit, generation, outcome, len(keys) > 1))
        if len(keys) > 1 and not self.story.end:
            self._act(TimeAdvanced())

    def _tells(self, keys: Activity) -> bool:
        may_tell = self.habits.tells and len(keys) > 1 and keys not in self.world.told
        return bool(may_tell) and self.random.random() * 100 < self.habits.tells

    def _tell(self, keys: Activity, ends: list[tuple[int, int, Outcome]]) -> None:
        """Have an activity tell of its first calls. It ends later."""
        ends = [(unit, generation, outcome) for unit, generation, outcome in ends if outcome != Outcome(again=True)]
        self.world.told[keys] = {(unit, generation): outcome for unit, generation, outcome in ends}
        heappush(self.calendar, (self.state.now + self.random.randint(1, 50), len(self.story.log), keys))
        for unit, generation, outcome in ends:
            self.world.deliver(self.state, unit, generation, outcome)
            self._act(NodeEnded(unit, generation, outcome, more=True))
        if not self.story.end:
            self._act(TimeAdvanced())

    def _answer(self, unit: int) -> None:
        path = self.state.path(unit)
        case = (self.world.seed, path, self.world.versions.get(path, 0))
        self._act(self._word(unit, chance("judged", *case)))

    def _word(self, unit: int, number: int) -> Event:
        if self.state.spec_of(unit).kind == "gate":
            return Answered(unit, number % 3)
        return ApprovalDecided(unit, number >= 15)

    def _edit(self) -> None:
        unit = self.random.choice(self.state.numbers())
        kind = self.random.choice(("retry", "retry", "retry", "give up", "answer", "late"))
        if kind == "retry":
            self._retry(unit)
        elif kind == "give up":
            if self.random.random() < 0.3:
                self._act(SkipRequested(unit))
        elif kind == "answer":
            if self.state.units[unit].status == WAITING:
                self._answer(unit)
        elif self.world.zombies:
            stale = self.random.choice(self.world.zombies)
            self._act(NodeEnded(*stale, self.world.outcome(self.state, stale[0], ("late",))))

    def _retry(self, unit: int) -> None:
        path = self.state.path(unit)
        if self.random.random() < 0.7:
            self.world.versions[path] = self.world.versions.get(path, 0) + 1
        self._act(RetryRequested(unit))

    def _act(self, event: Event) -> None:
        if self.crashes.random() * 100 < self.habits.crashes and not self.state.ended:  # it would go on by its history
            self._crash()
        parked = self.state.deadlines.get(PARK)
        self.is_stopped |= isinstance(event, StopRequested)
        decisions = step(self.state, event)
        self.story.log.append((self.state.now, event, decisions))
        if self.habits.looks:
            self._look()
        assert self.state.activities <= self.state.window
        assert self.state.running <= self.state.in_flight
        for keys in self.world.carry_out(self.state, decisions):
            delay = int(self.random.lognormvariate(2, 1)) + 1
            heappush(self.calendar, (self.state.now + delay, len(self.story.log), keys))
        check_structure(self.state, more=isinstance(event, NodeEnded) and event.more)
        if any(isinstance(decision, End) for decision in decisions):
            self.story.end = next(decision.status for decision in decisions if isinstance(decision, End))
            if not self.is_stopped:
                check_outcomes(self.state, self.world)
        elif self.state.parked and self.state.deadlines[PARK] is not parked:
            check_outcomes(self.state, self.world)
            self._repair(blocking_failures(self.state))

    def _repair(self, failed: tuple[int, ...]) -> None:
        assert failed
        if self.repairs:
            self.repairs -= 1
            unit = self.random.choice(failed)
            if self.random.random() < 0.8:
                self._retry(unit)
            else:
                self._act(SkipRequested(unit))

    def _look(self) -> None:
        """Work out all that the board, the queries and the lists show."""
        shown = ShownRun(self.state, "run")
        assert shown.blocked or not self.state.waiting
        assert sum(shown.counts.values()) > 0
        assert [shown.status(unit) for unit in shown.units]
        for unit in shown.units:
            view_of(self.state, unit, None, "", shown.caught)
        progress(shown)
        figures = figures_of(record_of(self.state)[0])
        assert 0 <= figures.critical_path_ms <= max(0, figures.makespan_ms)
        assert all(millis > 0 for millis in figures.waited_ms.values())
        explained(self.state)
        blocking_failures(self.state)

    def _crash(self) -> None:
        """The process dies between two events: all that is left is what was written down."""
        text = dump(self.state)
        units = self.state.units
        self.state = load(self.state.graph, text)
        assert dump(self.state) == text
        for unit, record in self.state.units.items():
            record.started = units[unit].started

    def _record_ends(self) -> None:
        self.story.statuses = {self.state.path(unit): self.state.units[unit].status for unit in self.state.numbers()}
        self.story.digests = {self.state.path(unit): self.state.units[unit].digest for unit in self.state.numbers()}
        assert not self.state.units_in(RUNNING)
        in_flight = [*self.world.live, *self.world.leaving]
        assert not in_flight, "the run has ended, but calls are still in flight"
        unsaid = [effect for effects in self.state.effects.values() for effect in effects if "flight" in effect.status]
        assert not unsaid, "the run has ended without a word on some of its writes"


def pieces_of(execution_plan: ExecutionPlan) -> list[ExecutionPlan]:
    """Return the plan as it would come from a planner that still writes: its beginning, and page after page of it.

    A fallback comes together with its node.
    """
    furthest, cuts = -1, []
    hosts = {spec.successor: index for index, spec in enumerate(execution_plan.specs)}
    for index, spec in enumerate(execution_plan.specs):
        furthest = max(furthest, index, hosts.get(index, -1), *_named(spec))
        if furthest == index:
            cuts.append(index + 1)
    cuts = [*cuts[:: max(1, len(cuts) // 3)], len(execution_plan.specs)]
    pieces: list[ExecutionPlan] = []
    for start, end in pairwise([0, *dict.fromkeys(cuts)]):
        answer = execution_plan.answer if end == len(execution_plan.specs) else list(range(end))
        pieces.append(ExecutionPlan(execution_plan.specs[start:end], answer, execution_plan.on_failure))
    return pieces


def _named(spec: NodeSpec) -> list[int]:
    return [-1, *spec.needs, *spec.watches, *spec.inputs, *spec.reads, spec.successor, *(spec.over or ())[:1]]
