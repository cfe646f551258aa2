"""The scheduler's memory: parallel lists with one slot a unit, where a unit is a node or one item of a map.

Nodes are units 0..N-1; a map that opens appends one unit for each item. Only `step.py` and the modules it calls change
it.
"""

from collections import deque
from heapq import heappush
from typing import Any

from workflows.plan.compile.graph import Graph, Kind, NodeSpec
from workflows.plan.language.conditions import holds
from workflows.plan.language.facts import MISSING, Missing, Scalar
from workflows.plan.scheduling.budget import Budget, Rate
from workflows.plan.scheduling.events import Approval, Decision, ExpansionRequest, Question

PENDING, RUNNING, WAITING, SUCCEEDED, FAILED, SKIPPED, CANCELLED, BLOCKED, AWAITING_FALLBACK, EXPANDED = range(10)
"""BLOCKED: pending behind a failed node. AWAITING_FALLBACK: its fallback node runs. EXPANDED: a map whose items run."""

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
)
PARK, OVERTIME, DRAIN, AGAIN = -1, -2, -3, -4
"""Deadlines of the run itself, beside those of its units."""


_SLOTS = {
    "graph": "the plan's nodes and edges",
    "now": "the time in milliseconds; the driver sets it before each step",
    "window": "the most activities under way at once",
    "park_for": "how long a parked run waits for a person, in milliseconds",
    "park_until": "when a run that tries again after an outage stops waiting; 0 if it does not",
    "pause": "how long it waits the next time before it tries again",
    "on_failure": "what becomes of a run in which a failure is in the way of the answer",
    "approve_above": "a request for more nodes than this needs a person's approval; None for never",
    "budget": "what the run may spend; None without limits",
    "rates": "by queue, how many model calls a minute its provider takes",
    "forks": "whether the run takes over what another run has called",
    "begun": "whether the first nodes have been admitted",
    "streaming": "whether more nodes are to come, so that the run neither ends nor parks",
    "draining": "whether nothing is started because the run is about to continue as new",
    "parked": "whether nothing can move until a person does something",
    "ended": "whether the run is over",
    "running": "how many units run",
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
    "floor": "how many of them are in its own group, which starts as one",
    "open_inputs": "how many inputs of a join, or items of a map, have not ended",
    "ok_inputs": "how many inputs of a join have a value",
    "awaiting_inputs": "whether a join is admitted and only waits for inputs",
    # one entry a group
    "gather": "how many members have not been admitted",
    "ungrouped": "whether its members start one by one",
    # only for the units concerned
    "owner": "of each item, in order: its map and its index",
    "items": "of an open map: its items",
    "facts": "what conditions and maps ask of an output",
    "notes": "the error, or the reason for an end without a value",
    "inherited_failure": "whether it ended only because of what it depends on",
    "previous_result": "of a node that runs again: how it ended before",
    "chosen": "of a join: the inputs whose values it takes",
    "answers": "a person's answer: of a gate, or in the place of a call that had failed",
    "approved": "a person's approval of what it writes",
    "questions": "what a person is asked, of those that wait and have had to put it together",
    "deadlines": "when it ends waiting; PARK, OVERTIME, DRAIN and AGAIN are the run's own",
    "past_deadline": "of a join whose deadline has passed: true until that has closed it",
    "expansion_requests": "requests for more nodes that a person decides on, until the nodes are added",
    "objections": "what was wrong with a node's last request",
    "taken_over": "whether a program that runs again, or a run that forks another, has taken it over as it was",
    # queues
    "heap": "ready units as (priority, rank, unit)",
    "held": "by lock, its holders: a count of shared ones, or -1",
    "waiting_locks": "ready units that a lock holds back",
    "waiting_budget": "ready units that the budget holds back",
    "work": "units whose end is to be carried to others, in this step",
    "stale": "nodes as (place, node) whose standing is to be worked out anew, in this step",
    "revised": "nodes that ran again and have ended, in this step",
    "out": "the decisions of this step",
}
"""The attributes of a run's state, and what each one is."""


class RunState:
    """Everything a run knows about its nodes."""

    __slots__ = _SLOTS

    def __init__(self, graph: Graph, *, window: int = 100, park_for: int = 86_400_000) -> None:
        self.graph = graph
        self.now = 0
        self.window = window
        self.park_for = park_for
        self.park_until = self.pause = 0
        self.on_failure = graph.execution_plan.on_failure
        self.approve_above: int | None = None
        self.budget: Budget | None = None
        self.rates: dict[str, Rate] = {}
        self.forks = False
        self.begun = self.streaming = self.draining = self.parked = self.ended = False
        self.running = 0
        self.waiting = 0
        self._init_columns(graph, len(graph.specs))
        self._init_records()
        self._init_queues()

    def _init_columns(self, graph: Graph, count: int) -> None:
        self.status = [PENDING] * count
        self.generation = [1] * count
        self.digest: list[str | None] = [None] * count
        self.size = [0] * count
        self.attempts = [0] * count
        self.millis = [0] * count
        self.started = [0] * count
        self.queued = [False] * count
        self.open_deps = [len(deps) for deps in graph.deps]
        for node in graph.fallback_for:
            self.open_deps[node] += 1
        self.floor = list(graph.floor)
        self.open_inputs = [len(spec.inputs) for spec in graph.specs]
        self.ok_inputs = [0] * count
        self.awaiting_inputs = [False] * count
        self.gather = [len(members) for members in graph.groups]
        self.ungrouped = [False] * len(graph.groups)

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
        self.expansion_requests: dict[int, ExpansionRequest] = {}
        self.objections: dict[int, tuple[str, ...]] = {}
        self.taken_over: dict[int, bool] = {}

    def _init_queues(self) -> None:
        self.heap: list[tuple[int, int, int]] = []
        self.held: dict[str, int] = {}
        self.waiting_locks: list[int] = []
        self.waiting_budget: list[int] = []
        self.work: deque[int] = deque()
        self.stale: list[tuple[int, int]] = []
        self.revised: deque[int] = deque()
        self.out: list[Decision] = []

    def mark(self, node: int) -> None:
        """Have a node's status worked out again in this step, after all of its dependencies."""
        heappush(self.stale, (self.graph.place[node], node))

    def node_of(self, unit: int) -> int:
        """Return the node a unit belongs to: itself, or the map of an item."""
        count = len(self.graph.specs)
        return unit if unit < count else self.owner[unit - count][0]

    def spec_of(self, unit: int) -> NodeSpec:
        return self.graph.specs[self.node_of(unit)]

    def kind_of(self, unit: int) -> Kind:
        """Return a unit's kind; an item has the kind of its map's template."""
        spec = self.spec_of(unit)
        return spec.item_kind if self.is_item(unit) else spec.kind

    def is_item(self, unit: int) -> bool:
        return unit >= len(self.graph.specs)

    def path(self, unit: int) -> str:
        """Return the path of a unit as people write it: `n7`, or `m[17]`."""
        count = len(self.graph.specs)
        if unit < count:
            return self.graph.specs[unit].id
        node, item = self.owner[unit - count]
        return f"{self.graph.specs[node].id}[{item}]"

    def address(self, unit: int) -> str:
        """Return the unit's path with its generation, which is also the id of its activity: `n7`, then `n7~2`."""
        generation = self.generation[unit]
        return self.path(unit) if generation == 1 else f"{self.path(unit)}~{generation}"

    def find(self, path: str) -> int | None:
        """Return the unit at a `path`, or None."""
        name, bracket, index = path.rstrip("]").partition("[")
        node = self.graph.by_id.get(name)
        if node is None or not bracket:
            return node
        items = self.items.get(node, range(0))
        return items[int(index)] if index.isdecimal() and int(index) < len(items) else None

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

    def next_due(self) -> int | None:
        """Return the earliest deadline in milliseconds, or None."""
        return min(self.deadlines.values()) if self.deadlines else None
