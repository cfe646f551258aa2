"""The scheduler's memory: one slot a unit in parallel lists, where a unit is a node or one item of a map.

Nodes are units 0..N-1; a map that opens appends one unit for each item. Only `schedule.py` and the modules it calls
change it.
"""

from collections import deque
from heapq import heappush
from typing import Any

from workflows.plan.compile.graph import Graph, NodeSpec
from workflows.plan.language.conditions import holds
from workflows.plan.language.facts import MISSING, Missing, Scalar
from workflows.plan.scheduling.budget import Budget, Rate
from workflows.plan.scheduling.events import Decision, ExpansionRequest

PENDING, RUNNING, WAITING, SUCCEEDED, FAILED, SKIPPED, CANCELLED, BLOCKED, AWAITING_FALLBACK, EXPANDED = range(10)
"""BLOCKED: pending behind a failed node. AWAITING_FALLBACK: its stand-in runs. EXPANDED: a map whose items run."""

ENDED = (SUCCEEDED, FAILED, SKIPPED, CANCELLED)
SHOWN = (
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
PARK, OVERTIME = -1, -2
"""Deadlines of the run itself, beside those of its units."""


class RunState:
    """Everything a run knows about its nodes. `now` is set by the driver before each step, in milliseconds."""

    __slots__ = (
        "answers",
        "approve_above",
        "approved",
        "attempts",
        "awaiting_inputs",
        "begun",
        "budget",
        "chosen",
        "deadlines",
        "digest",
        "draining",
        "ended",
        "expansion_requests",
        "facts",
        "floor",
        "gather",
        "generation",
        "graph",
        "heap",
        "held",
        "inherited_failure",
        "items",
        "millis",
        "notes",
        "now",
        "objections",
        "ok_inputs",
        "on_failure",
        "open_deps",
        "open_inputs",
        "out",
        "owner",
        "park_for",
        "parked",
        "past_deadline",
        "previous_result",
        "queued",
        "rates",
        "revised",
        "running",
        "size",
        "stale",
        "started",
        "status",
        "streaming",
        "ungrouped",
        "waiting",
        "waiting_budget",
        "waiting_locks",
        "window",
        "work",
    )

    def __init__(self, graph: Graph, *, window: int = 100, park_for: int = 86_400_000) -> None:
        count = len(graph.specs)
        self.graph = graph
        self.window = window
        self.park_for = park_for
        self.on_failure = graph.execution_plan.on_failure
        self.now = 0
        self._open_columns(graph, count)
        self._open_records()
        self.running = 0
        self.waiting = 0
        self.draining = False
        self.streaming = False
        self.budget: Budget | None = None
        self.approve_above: int | None = None
        self.begun = False
        self.parked = False
        self.ended = False

    def _open_columns(self, graph: Graph, count: int) -> None:
        """The lists: first those with one slot a unit, then those with one a node."""
        self.status = [PENDING] * count
        self.generation = [1] * count
        self.digest: list[str | None] = [None] * count
        self.size = [0] * count
        self.attempts = [0] * count
        self.millis = [0] * count
        self.started = [0] * count
        self.queued = [False] * count
        # open dependencies, group floor, open and good join inputs or map items
        self.open_deps = [len(deps) for deps in graph.deps]
        for node in graph.fallback_for:
            self.open_deps[node] += 1
        self.floor = list(graph.floor)
        self.open_inputs = [len(spec.inputs) for spec in graph.specs]
        self.ok_inputs = [0] * count
        self.awaiting_inputs = [False] * count
        self.gather = [len(members) for members in graph.groups]
        self.ungrouped = [False] * len(graph.groups)

    def _open_records(self) -> None:
        """What only some units have, and the queues. `prior` is how a node that runs again ended before, `late` the
        joins whose deadline has passed: true until it has closed them. `wishes` are those a person decides on, until
        their nodes are added; `objections` say what was wrong with a node's last one. Items have neither.
        """
        self.owner: list[tuple[int, int]] = []
        self.items: dict[int, range] = {}
        self.facts: dict[int, dict[str, Any]] = {}
        self.notes: dict[int, tuple[str, str]] = {}
        self.inherited_failure: dict[int, bool] = {}
        self.previous_result: dict[int, str] = {}
        self.chosen: dict[int, tuple[int, ...]] = {}
        self.answers: dict[int, Any] = {}
        self.approved: dict[int, bool] = {}
        self.deadlines: dict[int, int] = {}
        self.past_deadline: dict[int, bool] = {}
        self.expansion_requests: dict[int, ExpansionRequest] = {}
        self.objections: dict[int, tuple[str, ...]] = {}
        self.held: dict[str, int] = {}
        self.waiting_locks: list[int] = []
        self.waiting_budget: list[int] = []
        self.rates: dict[str, Rate] = {}
        self.heap: list[tuple[int, int, int]] = []
        self.work: deque[int] = deque()
        self.stale: list[tuple[int, int]] = []
        self.revised: deque[int] = deque()
        self.out: list[Decision] = []

    def mark(self, node: int) -> None:
        """Have a node's place worked out anew in this step, after everything it depends on."""
        heappush(self.stale, (self.graph.place[node], node))

    def node_of(self, unit: int) -> int:
        """Return the node a unit belongs to: itself, or the map of an item."""
        count = len(self.graph.specs)
        return unit if unit < count else self.owner[unit - count][0]

    def spec_of(self, unit: int) -> NodeSpec:
        """Return the annotations that hold for a unit."""
        return self.graph.specs[self.node_of(unit)]

    def is_item(self, unit: int) -> bool:
        """Whether the unit is one item of a map."""
        return unit >= len(self.graph.specs)

    def path(self, unit: int) -> str:
        """Return how people call a unit: `n7`, or `m[17]`."""
        count = len(self.graph.specs)
        if unit < count:
            return self.graph.specs[unit].id
        node, item = self.owner[unit - count]
        return f"{self.graph.specs[node].id}[{item}]"

    def address(self, unit: int) -> str:
        """Return the unit's path with its generation, which names its activity: `n7`, then `n7~2`."""
        generation = self.generation[unit]
        return self.path(unit) if generation == 1 else f"{self.path(unit)}~{generation}"

    def find(self, path: str) -> int | None:
        """Return the unit that people call `path`, or None."""
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
            return SHOWN[SKIPPED if self.status[node] == BLOCKED else self.status[node]]
        if name == ":error.type":
            return self.notes[node][0] if node in self.notes else MISSING
        found: Scalar | Missing = self.facts.get(node, {}).get(name, MISSING)
        return found

    def next_due(self) -> int | None:
        """Return the earliest deadline in milliseconds, or None."""
        return min(self.deadlines.values()) if self.deadlines else None
