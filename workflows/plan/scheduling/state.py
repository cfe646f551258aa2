"""The scheduler's memory: its units, and what the run as a whole knows.

A unit is known by its number, which it keeps for life: nodes are numbered from 0 in the order of
the plan, items of maps from `ITEMS` in the order in which they are opened. Where the map's `do` is
a chain, an item has a unit for each node of it, in order, and the last one's value is the item's.
Only `step` and the modules that it calls change a state.
"""

from collections import deque
from collections.abc import Mapping
from heapq import heappush
from types import MappingProxyType
from typing import Any

from sennit.workflows.plan.compile.execution_plan import Kind, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.conditions import holds
from sennit.workflows.plan.language.facts import MISSING, Missing, Scalar
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.nodes import OnFailure
from sennit.workflows.plan.limits import DEFAULT_IN_FLIGHT, MAX_MAPPED_AGENTS
from sennit.workflows.plan.scheduling.budget import Budget, Rate, Slice
from sennit.workflows.plan.scheduling.events import Decision, Effect, EndStatus, Question
from sennit.workflows.plan.scheduling.locks import Lock, Waiter
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    PENDING,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    Status,
    Unit,
)
from sennit.workflows.plan.scheduling.waits import Waits

ITEMS = 1_000_000
"""The number of the first item of a map: no run has so many nodes."""
_INDEX_CHARACTERS = 10
"""No index of an item is longer, with its bracket."""
PARK, OVERTIME, DRAIN, NEXT_TRY, CALLS = -1, -2, -3, -4, -10
"""Deadlines of the run itself, beside those of its units; at `CALLS - unit` is when a
program's call expires.
"""


_SLOTS = {
    "graph": "the plan's nodes and edges",
    "now": "the time in milliseconds, as of the last step",
    "window": "the most activities under way at once",
    "in_flight": "the most units under way at once",
    "park_for": "how long a parked run waits for a person, in milliseconds",
    "park_until": "when a run that tries again after an outage stops waiting; 0 if it does not",
    "pause": "how long it waits the next time before it tries again",
    "on_failure": "what becomes of a run in which a failure is in the way of the answer",
    "most_agents": "how many sub-agents the run's maps may start in all",
    "budget": "what the run may spend; None without limits",
    "slices": (
        "what the calls of tasks may spend, by the task, or by the call that has a slice of its own"
    ),
    "paid": "of calls that a fork has taken over, what the run before has paid for them",
    "timings": "how long calls take, and whether short ones share an activity",
    "rates": "by queue, how many model calls a minute its provider takes",
    "forks": "whether the run takes over what another run has called",
    "begun": "whether the first nodes have been admitted",
    "held": "what a person is asked about the plan before it starts; None if nobody is asked",
    "streaming": "whether more nodes are to come, so that the run neither ends nor parks",
    "draining": "whether nothing is started because the run is about to continue as new",
    "parked": "whether nothing can move until a person does something",
    "ended": "whether the run is over, but for writes in flight",
    "end_status": "how it ends",
    "running": "how many units run, with the writes in flight that were cut off",
    "waiting": "how many units wait for a person",
    "batch_count": "how many activities under way have a batch of units",
    "batch_members": "how many units run in a batch",
    "units": "by number, the record of each unit that has not been dropped",
    "touched": (
        "the units whose status was set in this step: true for those that were made pending in it, "
        "so that one that runs has started again"
    ),
    # only for the units concerned
    "owner": (
        "of each unit of an item that there ever was, in order: its map and its place among the "
        "map's units"
    ),
    "items": "of an open map: the units of its items",
    "notes": "the error, or the reason for an end without a value",
    "answers": "a person's answer: of a gate, or in the place of a call that had failed",
    "questions": "what a person is asked, of those that wait and have had to put it together",
    "deadlines": "when it ends waiting, or expires; the run has PARK, OVERTIME, DRAIN, NEXT_TRY",
    "taken_over": (
        "whether a program that runs again, or a run that forks another, has taken it over as it "
        "was"
    ),
    "effects": "what became of its writes, where its status does not tell",
    "sessions": "of a program that has started: where its script stands",
    "last_end": (
        "when the last call of a program ended; workers' clocks may have it ahead of the run"
    ),
    "used": "what its calls have used, in all generations",
    "resumed": (
        "of a write whose worker was lost: true once it has started again to learn what became of "
        "it"
    ),
    # queues
    "heap": "ready units as (priority, rank, unit)",
    "locks": "by name, the locks that units hold or wait for",
    "waiting_own": "ready units whose own write of an earlier generation is still in flight",
    "waiting_budget": (
        "by limit, a heap of the ready units that the budget holds back; some may have been "
        "cancelled"
    ),
    "work": "units whose end is to be carried to others, in this step",
    "stale": "nodes as (place, node) whose standing is to be worked out anew, in this step",
    "revised": "nodes that ran again and have ended, in this step",
    "out": "the decisions of this step",
    # for figures only
    "waits": "for what calls wait and have waited",
}
"""The attributes of a run's state, and what each one is."""


RECORDS = (
    "notes",
    "answers",
    "questions",
    "deadlines",
    "taken_over",
    "resumed",
    "used",
    "paid",
)
"""What has one for the units concerned, items among them."""


class RunState:
    """Everything a run knows about its nodes."""

    __slots__ = _SLOTS

    def __init__(
        self,
        graph: Graph,
        *,
        window: int = 100,
        park_for: int = 86_400_000,
        on_failure: OnFailure | None = None,
        rates: Mapping[str, int] = MappingProxyType({}),
        forks: bool = False,
        in_flight: int = DEFAULT_IN_FLIGHT,
        most_agents: int = MAX_MAPPED_AGENTS,
        timings: Timings | None = None,
    ) -> None:
        self.graph = graph
        self.now = 0
        self.window = window
        self.in_flight = in_flight
        self.timings = timings or Timings()
        self.park_for = park_for
        self.park_until = self.pause = self.running = self.waiting = 0
        self.batch_count = self.batch_members = 0
        self.on_failure = on_failure or graph.execution_plan.on_failure
        self.most_agents = most_agents
        self.budget: Budget | None = None
        self.rates = {queue: Rate(limit) for queue, limit in rates.items()}
        self.forks = forks
        self.last_end = 0
        self.waits = Waits()
        self.begun = self.streaming = self.draining = self.parked = self.ended = False
        self.held: Question | None = None
        self.end_status: EndStatus = "partial"
        self._init_units(graph)
        self._init_records()
        self._init_queues()

    def _init_units(self, graph: Graph) -> None:
        self.units: dict[int, Unit] = {}
        self.touched: dict[int, bool] = {}
        self.add_nodes(range(len(graph.specs)))
        # A node that takes over the end of another one waits for that one too.
        for node in graph.predecessor:
            self.units[node].open_deps += 1

    def _init_records(self) -> None:
        self.owner: list[tuple[int, int]] = []
        self.items: dict[int, range] = {}
        self.notes: dict[int, tuple[str, str]] = {}
        self.answers: dict[int, Any] = {}
        self.questions: dict[int, Question] = {}
        self.deadlines: dict[int, int] = {}
        self.taken_over: dict[int, bool] = {}
        self.sessions: dict[int, Session] = {}
        self.effects: dict[int, tuple[Effect, ...]] = {}
        self.resumed: dict[int, bool] = {}
        self.used: dict[int, Usage] = {}
        self.paid: dict[int, Usage] = {}
        self.slices: dict[int, Slice] = {}

    def _init_queues(self) -> None:
        self.heap: list[Waiter] = []
        self.locks: dict[str, Lock] = {}
        self.waiting_own: dict[int, None] = {}
        self.waiting_budget: dict[str, list[Waiter]] = {}
        self.work: deque[int] = deque()
        self.stale: list[tuple[int, int]] = []
        self.revised: deque[int] = deque()
        self.out: list[Decision] = []

    def add(self, units: range, generation: int = 1) -> None:
        """Give new units their records."""
        for unit in units:
            self.units[unit] = Unit(generation=generation)
        self.waits.expect(units, self.now)

    def set_status(self, unit: int, status: Status) -> None:
        """Give a unit another status, and note that this step has touched it."""
        self.touched[unit] = status == PENDING or self.touched.get(unit, False)
        self.units[unit].status = status

    def has_status(self, unit: int, *statuses: Status) -> bool:
        """Whether a unit has one of these statuses. One that was dropped has none."""
        return unit in self.units and self.units[unit].status in statuses

    def has_generation(self, unit: int, generation: int) -> bool:
        """Whether a unit has been started over just as often. One that was dropped has no
        generation.
        """
        return unit in self.units and self.units[unit].generation == generation

    def runs(self, unit: int, generation: int) -> bool:
        """Whether a unit runs, in this generation. One that was dropped does not."""
        return self.has_status(unit, RUNNING) and self.has_generation(unit, generation)

    def is_queued(self, unit: int) -> bool:
        """Whether a unit is among the ready ones. One that was dropped is not."""
        return unit in self.units and self.units[unit].queued

    def append(self, specs: list[NodeSpec], maker: int = -1) -> range:
        """Add nodes to the plan, and return their numbers; see `Graph.append`."""
        first = len(self.graph.specs)
        self.graph.append(specs, maker)
        return self.add_nodes(range(first, first + len(specs)))

    def add_nodes(self, new: range) -> range:
        """Give nodes their records that have been added to the graph, and return the nodes."""
        self.add(new)
        for node in new:
            deps, inputs = self.graph.deps[node], self.graph.specs[node].inputs
            self.units[node].open_deps = len(deps)
            self.units[node].open_inputs = len(inputs)
        return new

    def drop(self, unit: int) -> None:
        """Delete what is known about a unit that is no more. Only its owner stays, and its
        number is not used again.
        """
        self.units.pop(unit, None)
        self.touched.pop(unit, None)
        for name in RECORDS:
            getattr(self, name).pop(unit, None)
        self.waits.open.pop(unit, None)

    def numbers(self) -> list[int]:
        """Return the numbers of all units: the nodes in the order of the plan, then the items that
        have not been dropped.
        """
        units = list(range(len(self.graph.specs)))
        for unit in self.units:
            if unit >= ITEMS:
                units.append(unit)
        return units

    def units_in(self, status: Status) -> list[int]:
        """Return the units of this status, in the same order."""
        return [unit for unit in self.numbers() if self.units[unit].status == status]

    def mark(self, node: int) -> None:
        """Have a node's status worked out again in this step, after all of its dependencies."""
        heappush(self.stale, (self.graph.place[node], node))

    def node_of(self, unit: int) -> int:
        """Return the node a unit belongs to: itself, or the map of an item."""
        if unit < ITEMS:
            return unit
        return self.owner[unit - ITEMS][0]

    def spec_of(self, unit: int) -> NodeSpec:
        """Return the annotations of a unit: of a node of a chain its own, of any other
        item those of its map.
        """
        spec = self.graph.specs[self.node_of(unit)]
        if not spec.stages or unit < ITEMS:
            return spec
        _, place = self.owner[unit - ITEMS]
        stage = place % spec.per_item
        if stage < len(spec.stages):
            return spec.stages[stage]
        return spec

    def locks_of(self, unit: int) -> list[tuple[str, int]]:
        """Return the names of the locks that a unit takes, each with the mode in which it does."""
        return self.spec_of(unit).locks

    def values(self, node: int) -> range:
        """Return the units of an open map whose values are those of its items, in
        order; none of one not open.
        """
        per_item = self.graph.specs[node].per_item
        units = self.items.get(node, range(0))
        return units[per_item - 1 :: per_item]

    def before(self, unit: int) -> int:
        """Return the unit without whose value this one of an item cannot start: the one before it
        in its chain, or the item of the map that its own runs behind; -1 if there is none. If that
        map has fewer items now, it is the map.
        """
        node, place = self.owner[unit - ITEMS]
        spec = self.graph.specs[node]
        item, stage = divmod(place, spec.per_item)
        if stage:
            return unit - 1
        if spec.source < 0:
            return -1
        values = self.values(spec.source)
        if item < len(values):
            return values[item]
        return spec.source

    def behind(self, unit: int) -> list[int]:
        """Return the units that cannot start without the value of this one of an
        item, as `before` says.
        """
        node, place = self.owner[unit - ITEMS]
        spec = self.graph.specs[node]
        item, stage = divmod(place, spec.per_item)
        if stage < len(spec.stages):
            return [unit + 1]

        # It has the value of its item: the same items of the maps that run behind
        # this one begin with that.
        dependents: list[int] = []
        for pipe in self.graph.pipes.get(node, ()):
            if self.runs_behind(pipe, node):
                first_units = self.items[pipe][:: self.graph.specs[pipe].per_item]
                if item < len(first_units):
                    dependents.append(first_units[item])
        return dependents

    def runs_behind(self, other: int, node: int) -> bool:
        """Whether an open map has been opened for the items that the map `node` has now."""
        if self.graph.specs[other].source != node:
            return False
        if other not in self.items or node not in self.items:
            return False
        return self.items[other].start >= self.items[node].stop

    def read_by(self, unit: int) -> list[int]:
        """Return the units whose values this one of an item may read: all before it in its chain,
        and the item itself, if that is one of another map.
        """
        node, place = self.owner[unit - ITEMS]
        stage = place % self.graph.specs[node].per_item
        first = unit - stage
        source = self.before(first)
        units: list[int] = []
        if source >= ITEMS:
            units.append(source)
        units += range(first, unit)
        return units

    def kind_of(self, unit: int) -> Kind:
        """Return a unit's kind; an item has the kind of its map's template."""
        spec = self.spec_of(unit)
        if unit >= ITEMS:
            return spec.item_kind
        return spec.kind

    def is_call(self, unit: int) -> bool:
        """Whether a unit is a call of a tool or of a model, and no container of calls."""
        return self.kind_of(unit) in ("tool", "llm")

    def is_item(self, unit: int) -> bool:
        """Whether a unit belongs to an item of a map, and is no node."""
        return unit >= ITEMS

    def path(self, unit: int) -> str:
        """Return the path of a unit as people write it: `n7`, `m[17]`, or `m[17].page`
        for a node of a chain.
        """
        if unit < ITEMS:
            return self.graph.specs[unit].id
        node, place = self.owner[unit - ITEMS]
        spec = self.graph.specs[node]
        item, stage = divmod(place, spec.per_item)
        path = f"{spec.id}[{item}]"
        if stage < len(spec.stages):
            path += f".{spec.stages[stage].id}"
        return path

    def full_path(self, unit: int, generation: int = 0) -> str:
        """Return a unit's path with its generation, or an earlier one: `n7`, then `n7~2`. So
        are activities called.
        """
        generation = generation or self.units[unit].generation
        path = self.path(unit)
        if generation == 1:
            return path
        return f"{path}~{generation}"

    def find(self, path: str) -> int | None:
        """Return the unit at a `path` as `path` writes it, or None."""
        name, bracket, rest = path.partition("[")
        node = self.graph.by_id.get(name)
        if node is None or not bracket:
            return node

        digits, closed, suffix = rest.partition("]")
        item = _index_in(digits)
        values = self.values(node)
        if not closed or item is None or item >= len(values):
            return None

        # The unit with the value of an item is the last one of its chain: the others have
        # the numbers before it.
        unit = values[item]
        if not suffix:
            return unit
        for stage in reversed(self.graph.specs[node].stages):
            unit -= 1
            if suffix == f".{stage.id}":
                return unit
        return None

    def decide(self, condition: dict[str, Any]) -> bool:
        """Decide a condition on the facts known now. Raises ConditionError."""
        return holds(condition, self.fact)

    def fact(self, test: dict[str, Any]) -> Scalar | Missing:
        """Return the fact that a compiled test reads: `at` is [node, name]."""
        node, name = test["at"]
        if name == ":status":
            status = self.units[node].status
            if status == BLOCKED:
                status = SKIPPED
            return STATUS_NAMES[status]
        if name == ":error.type":
            if node not in self.notes:
                return MISSING
            kind, _ = self.notes[node]
            return kind
        facts = self.units[node].facts or {}
        fact: Scalar | Missing = facts.get(name, MISSING)
        return fact

    @property
    def activities(self) -> int:
        """How many activities are under way."""
        return self.running - self.batch_members + self.batch_count

    def next_due(self) -> int | None:
        """Return the earliest deadline in milliseconds, or None."""
        return min(self.deadlines.values(), default=None)


def _index_in(digits: str) -> int | None:
    """Return the index of an item that stands in a path; None for a text that
    `RunState.path` does not write.
    """
    if not digits.isdecimal() or len(digits) >= _INDEX_CHARACTERS:
        return None
    index = int(digits)
    if digits != str(index):
        return None
    return index
