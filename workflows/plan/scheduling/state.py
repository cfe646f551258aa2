"""The scheduler's memory: parallel columns with one entry a unit, where a unit is a node or one item of a map.

A unit keeps its number for life: nodes are numbered from 0 in the order of the plan, items of maps from `ITEMS` in the
order in which they are opened. Where the map's `do` is a chain, an item has a unit for each node of it, in order, and
the last one's value is the item's. Only `step` and the modules that it calls change it.
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
from sennit.workflows.plan.scheduling.events import Approval, Decision, Effect, EndStatus, Question
from sennit.workflows.plan.scheduling.locks import Lock, Waiter
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.waits import Waits

PENDING, RUNNING, WAITING, SUCCEEDED, FAILED, SKIPPED, CANCELLED, BLOCKED, DELEGATED, EXPANDED, IN_DOUBT = range(11)
"""BLOCKED: pending behind a failed node. DELEGATED: its successor runs, or what its script has called. EXPANDED: a map
whose items run.
IN_DOUBT: a write has failed and may have been made all the same; before a person has decided, no other node is told.
"""

ENDED = (SUCCEEDED, FAILED, SKIPPED, CANCELLED)
STATUS_NAMES = (
    "pending",
    "running",
    "waiting",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
    "pending",
    "running",
    "running",
    "failed",
)
ITEMS = 1_000_000
"""The number of the first item of a map: no run has so many nodes."""
_INDEX_CHARACTERS = 10
"""No index of an item is longer, with its bracket."""
PARK, OVERTIME, DRAIN, NEXT_TRY, CALLS = -1, -2, -3, -4, -10
"""Deadlines of the run itself, beside those of its units; at `CALLS - unit` is when a program's call expires."""


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
    "slices": "what the calls of tasks may spend, by the task, or by the call that has a slice of its own",
    "paid": "of calls that a fork has taken over, what the run before has paid for them",
    "timings": "how long calls take, and whether short ones share an activity",
    "rates": "by queue, how many model calls a minute its provider takes",
    "forks": "whether the run takes over what another run has called",
    "begun": "whether the first nodes have been admitted",
    "held": "what a person is asked about the plan before any of it starts; None if nobody is asked",
    "streaming": "whether more nodes are to come, so that the run neither ends nor parks",
    "draining": "whether nothing is started because the run is about to continue as new",
    "parked": "whether nothing can move until a person does something",
    "ended": "whether the run is over, but for writes in flight",
    "end_status": "how it ends",
    "running": "how many units run, with the writes in flight that were cut off",
    "waiting": "how many units wait for a person",
    # one entry a unit
    "status": "its status",
    "generation": "how often it has been started over, plus one",
    "digest": "names its output; None without one",
    "size": "the bytes of its output",
    "attempts": "how often its activity was tried",
    "millis": "how long its last run took",
    "started": "when its last run started",
    "queued": "whether it is among the ready units",
    # one entry a node
    "open_deps": "how many of its dependencies have not ended",
    "open_inputs": "how many inputs of a join, or units of a map's items, have not ended",
    "ok_inputs": "how many inputs of a join have a value",
    "awaiting_inputs": "whether a join is admitted and only waits for inputs",
    # only for the units concerned
    "owner": "of each unit of an item that there ever was, in order: its map and its place among the map's units",
    "items": "of an open map: the units of its items",
    "facts": "what conditions and maps ask of an output",
    "notes": "the error, or the reason for an end without a value",
    "inherited_failure": "whether it ended only because of what it depends on",
    "previous_result": "of a node that runs again: how it ended before",
    "chosen": "of a join: the inputs whose values it takes",
    "answers": "a person's answer: of a gate, or in the place of a call that had failed",
    "approved": "a person's approval of what it writes",
    "questions": "what a person is asked, of those that wait and have had to put it together",
    "deadlines": "when it ends waiting, or expires; PARK, OVERTIME, DRAIN and NEXT_TRY are the run's own",
    "past_deadline": "of a join whose deadline has passed: true until that has closed it",
    "objections": "what was wrong with a node's last request",
    "taken_over": "whether a program that runs again, or a run that forks another, has taken it over as it was",
    "alone": "whether it starts alone, because it has failed in an activity that it shared",
    "shared": "of a unit that runs in an activity with others: the first of these",
    "effects": "what became of its writes, where its status does not tell",
    "sessions": "of a program that has started: where its script stands",
    "ended_at": "when a call of a program ended, or a program began for the first time, in milliseconds",
    "last_end": "the last of these times that was noted, which workers' clocks may have ahead of the run",
    "prompts": "of a model call whose grant was too small: the tokens of its prompt",
    "spans": "when its last call itself began and ended, where its worker has said so",
    "used": "what its calls have used, in all generations",
    "resumed": "of a write whose worker was lost: true once it has started again to learn what became of it",
    # queues
    "together": "by the first unit of a shared activity: how many units of it run",
    "heap": "ready units as (priority, rank, unit)",
    "locks": "by name, the locks that units hold or wait for",
    "waiting_own": "ready units whose own write of an earlier generation is still in flight",
    "waiting_budget": "by limit, a heap of the ready units that the budget holds back; some may have been cancelled",
    "work": "units whose end is to be carried to others, in this step",
    "stale": "nodes as (place, node) whose standing is to be worked out anew, in this step",
    "revised": "nodes that ran again and have ended, in this step",
    "out": "the decisions of this step",
    # for figures only
    "waits": "for what calls wait and have waited",
}
"""The attributes of a run's state, and what each one is."""


class Statuses(dict[int, int]):
    """The column of statuses. `touched` has the units that were set in this step: true for those that were made pending
    in it, so that one that runs has started again.
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        super().__init__()
        self.touched: dict[int, bool] = {}

    def __setitem__(self, unit: int, status: int) -> None:
        self.touched[unit] = status == PENDING or self.touched.get(unit, False)
        super().__setitem__(unit, status)


COLUMNS = ("status", "generation", "digest", "size", "attempts", "millis", "started", "queued")
"""What has an entry for each unit."""
RECORDS = (
    "facts",
    "notes",
    "inherited_failure",
    "previous_result",
    "answers",
    "approved",
    "questions",
    "deadlines",
    "objections",
    "taken_over",
    "ended_at",
    "resumed",
    "alone",
    "prompts",
    "spans",
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
        self._init_columns(graph)
        self._init_records()
        self._init_queues()

    def _init_columns(self, graph: Graph) -> None:
        count = len(graph.specs)
        self.status = Statuses()
        self.generation: dict[int, int] = {}
        self.digest: dict[int, str | None] = {}
        self.size: dict[int, int] = {}
        self.attempts: dict[int, int] = {}
        self.millis: dict[int, int] = {}
        self.started: dict[int, int] = {}
        self.queued: dict[int, bool] = {}
        self.add(range(count))
        self.open_deps = [len(deps) for deps in graph.deps]
        for node in graph.predecessor:
            self.open_deps[node] += 1
        self.open_inputs = [len(spec.inputs) for spec in graph.specs]
        self.ok_inputs = [0] * count
        self.awaiting_inputs = [False] * count

    def _init_records(self) -> None:
        self.owner: list[tuple[int, int]] = []
        self.items: dict[int, range] = {}
        self.facts: dict[int, dict[str, Any]] = {}
        self.notes: dict[int, tuple[str, str]] = {}
        self.inherited_failure: dict[int, bool] = {}
        self.previous_result: dict[int, str] = {}
        self.chosen: dict[int, tuple[int, ...]] = {}
        self.answers: dict[int, Any] = {}
        self.approved: dict[int, Approval] = {}
        self.questions: dict[int, Question] = {}
        self.deadlines: dict[int, int] = {}
        self.past_deadline: dict[int, bool] = {}
        self.objections: dict[int, tuple[str, ...]] = {}
        self.taken_over: dict[int, bool] = {}
        self.ended_at: dict[int, int] = {}
        self.sessions: dict[int, Session] = {}
        self.effects: dict[int, tuple[Effect, ...]] = {}
        self.resumed: dict[int, bool] = {}
        self.alone: dict[int, bool] = {}
        self.prompts: dict[int, int] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.used: dict[int, Usage] = {}
        self.paid: dict[int, Usage] = {}
        self.slices: dict[int, Slice] = {}
        self.shared: dict[int, int] = {}

    def _init_queues(self) -> None:
        self.heap: list[Waiter] = []
        self.locks: dict[str, Lock] = {}
        self.together: dict[int, int] = {}
        self.waiting_own: dict[int, None] = {}
        self.waiting_budget: dict[str, list[Waiter]] = {}
        self.work: deque[int] = deque()
        self.stale: list[tuple[int, int]] = []
        self.revised: deque[int] = deque()
        self.out: list[Decision] = []

    def add(self, units: range, generation: int = 1) -> None:
        """Give new units their entries."""
        self.status |= dict.fromkeys(units, PENDING)
        self.generation |= dict.fromkeys(units, generation)
        self.digest |= dict.fromkeys(units)
        for column in (self.size, self.attempts, self.millis, self.started):
            column |= dict.fromkeys(units, 0)
        self.queued |= dict.fromkeys(units, False)
        self.waits.expect(units, self.now)

    def append(self, specs: list[NodeSpec], maker: int = -1) -> range:
        """Add nodes to the plan, and return their numbers; see `Graph.append`."""
        first = len(self.graph.specs)
        self.graph.append(specs, maker)
        return self.open_columns(range(first, first + len(specs)))

    def open_columns(self, new: range) -> range:
        """Give nodes their entries that have been added to the graph, and return them."""
        self.add(new)
        self.open_deps += [len(self.graph.deps[node]) for node in new]
        self.open_inputs += [len(self.graph.specs[node].inputs) for node in new]
        self.awaiting_inputs += [False] * len(new)
        self.ok_inputs += [0] * len(new)
        return new

    def drop(self, unit: int) -> None:
        """Delete the entries of a unit that is no more. Only its owner stays, and its number is not used again."""
        for name in (*COLUMNS, *RECORDS):
            getattr(self, name).pop(unit, None)
        self.status.touched.pop(unit, None)
        self.waits.open.pop(unit, None)

    def units(self) -> list[int]:
        """Return all units: the nodes in the order of the plan, then the items that have not been dropped."""
        return [*range(len(self.graph.specs)), *(unit for unit in self.status if unit >= ITEMS)]

    def units_in(self, status: int) -> list[int]:
        """Return the units of this status, in the same order."""
        return [unit for unit in self.units() if self.status[unit] == status]

    def mark(self, node: int) -> None:
        """Have a node's status worked out again in this step, after all of its dependencies."""
        heappush(self.stale, (self.graph.place[node], node))

    def node_of(self, unit: int) -> int:
        """Return the node a unit belongs to: itself, or the map of an item."""
        return unit if unit < ITEMS else self.owner[unit - ITEMS][0]

    def spec_of(self, unit: int) -> NodeSpec:
        """Return the annotations of a unit: of a node of a chain its own, of any other item those of its map."""
        spec = self.graph.specs[self.node_of(unit)]
        if not spec.stages or unit < ITEMS:
            return spec
        stage = self.owner[unit - ITEMS][1] % spec.per_item
        return spec.stages[stage] if stage < len(spec.stages) else spec

    def locks_of(self, unit: int) -> list[tuple[str, int]]:
        return self.spec_of(unit).locks

    def values(self, node: int) -> range:
        """Return the units of an open map whose values are those of its items, in order; none of one not open."""
        each = self.graph.specs[node].per_item
        return self.items.get(node, range(0))[each - 1 :: each]

    def before(self, unit: int) -> int:
        """Return the unit without whose value this one of an item cannot start: the one before it in its chain, or the
        item of the map that its own runs behind; -1 if there is none. If that map has fewer items now, it is the map.
        """
        node, place = self.owner[unit - ITEMS]
        spec = self.graph.specs[node]
        item, stage = divmod(place, spec.per_item)
        if stage or spec.source < 0:
            return unit - 1 if stage else -1
        values = self.values(spec.source)
        return values[item] if item < len(values) else spec.source

    def behind(self, unit: int) -> list[int]:
        """Return the units that cannot start without the value of this one of an item, as `before` says."""
        node, place = self.owner[unit - ITEMS]
        item, stage = divmod(place, self.graph.specs[node].per_item)
        if stage < len(self.graph.specs[node].stages):
            return [unit + 1]
        others = [other for other in self.graph.pipes.get(node, ()) if self.runs_behind(other, node)]
        firsts = [self.items[other][:: self.graph.specs[other].per_item] for other in others]
        return [units[item] for units in firsts if item < len(units)]

    def runs_behind(self, other: int, node: int) -> bool:
        """Whether an open map has been opened for the items that the map `node` has now."""
        if self.graph.specs[other].source != node or other not in self.items or node not in self.items:
            return False
        return self.items[other].start >= self.items[node].stop

    def read_by(self, unit: int) -> list[int]:
        """Return the units whose values this one of an item may read: all before it in its chain, and the item itself,
        if that is one of another map.
        """
        first = unit - self.owner[unit - ITEMS][1] % self.graph.specs[self.node_of(unit)].per_item
        item = self.before(first)
        return [*([item] if item >= ITEMS else []), *range(first, unit)]

    def kind_of(self, unit: int) -> Kind:
        """Return a unit's kind; an item has the kind of its map's template."""
        spec = self.spec_of(unit)
        return spec.item_kind if self.is_item(unit) else spec.kind

    def is_call(self, unit: int) -> bool:
        """Whether a unit is a call of a tool or of a model, and no container of calls."""
        return self.kind_of(unit) in ("tool", "llm")

    def is_item(self, unit: int) -> bool:
        return unit >= ITEMS

    def path(self, unit: int) -> str:
        """Return the path of a unit as people write it: `n7`, `m[17]`, or `m[17].page` for a node of a chain."""
        if unit < ITEMS:
            return self.graph.specs[unit].id
        node, place = self.owner[unit - ITEMS]
        spec = self.graph.specs[node]
        item, stage = divmod(place, spec.per_item)
        path = f"{spec.id}[{item}]"
        return f"{path}.{spec.stages[stage].id}" if stage < len(spec.stages) else path

    def full_path(self, unit: int, generation: int = 0) -> str:
        """Return a unit's path with its generation, or an earlier one: `n7`, then `n7~2`. So are activities called."""
        generation = generation or self.generation[unit]
        return self.path(unit) if generation == 1 else f"{self.path(unit)}~{generation}"

    def find(self, path: str) -> int | None:
        """Return the unit at a `path` as `path` writes it, or None."""
        name, bracket, index = path.partition("[")
        node = self.graph.by_id.get(name)
        if node is None or not bracket:
            return node
        spec, items = self.graph.specs[node], self.values(node)
        index, closed, stage = index.partition("]")
        number = int(index) if index.isdecimal() and len(index) < _INDEX_CHARACTERS else len(items)
        if number >= len(items) or index != str(number) or not closed:
            return None
        stages = ["", *(f".{stage.id}" for stage in reversed(spec.stages))]
        return items[number] - stages.index(stage) if stage in stages else None

    def decide(self, condition: dict[str, Any]) -> bool:
        """Decide a condition on the facts known now. Raises ConditionError."""
        return holds(condition, self.fact)

    def fact(self, test: dict[str, Any]) -> Scalar | Missing:
        """Return the fact that a compiled test reads: `at` is [node, name]."""
        node, name = test["at"]
        if name == ":status":
            return STATUS_NAMES[SKIPPED if self.status[node] == BLOCKED else self.status[node]]
        if name == ":error.type":
            return self.notes[node][0] if node in self.notes else MISSING
        found: Scalar | Missing = self.facts.get(node, {}).get(name, MISSING)
        return found

    @property
    def activities(self) -> int:
        """How many activities are under way."""
        return self.running - len(self.shared) + len(self.together)

    def next_due(self) -> int | None:
        """Return the earliest deadline in milliseconds, or None."""
        return min(self.deadlines.values()) if self.deadlines else None
