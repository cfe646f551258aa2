"""The plan as the scheduler sees it: annotated nodes by index, and the edges among them.

`check_plan` builds an execution plan from a validated plan, an activity hands it over packed, and `Graph` adds what is
derived. Nothing here changes during a run.
"""

import base64
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from workflows.plan.language.dag import topological_order
from workflows.plan.language.nodes import OnFailure
from workflows.plan.language.packing import inflate

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
SHOWN_SCRIPT = 64 * 1024
KEY_CHARACTERS = 12
"""Of the key of a program's call, what the scheduler knows it by."""
GATHER_MILLIS = 120_000
"""What a map may take to put the values of its items together: thousands of reads of the store."""

_TURN = re.compile(r"(?P<stem>.*t)(?P<number>\d+)\Z")

Kind = Literal["tool", "llm", "agent", "program", "map", "join", "gate"]
Policy = Literal["all", "settled", "first", "quorum", "any"]


class Quoted(NamedTuple):
    """What a program can cost, as a line for people, and the least of it: exact of its model `calls`, about how many
    `tokens`, and about how many millionths of a dollar.
    """

    text: str
    calls: int
    tokens: int
    cost: int


@dataclass(slots=True)
class NodeSpec:
    """One node with its annotations. Indices are positions in the plan; times are milliseconds.

    `needs` must succeed, `watches` only have to end (a condition reads their status), `inputs` are those of
    a join, or of a model that reads how they ended.
    `fallback` is (digest, size, facts) of the fallback value, `instead` the fallback node.
    `price` is what a million tokens of a model call may cost in millionths of a dollar, 0 where nobody knows.
    `rank` is the longest estimated path from here to the end. `is_fallback` says that this node runs only in place
    of another. `attempts`, `timeout`, `locks`, `tokens` and `item_*` of a map are those of its items. `tokens` is
    the plan's estimate. `fills` says that a gate's `question` has references for an activity to fill in. `page` is
    the plan, by its digest, where an activity finds a node that a program has added; "" for the run's own plan;
    `maker` is the step of the program that has added it. `key` is what a program's call is known by when the program
    runs again; of a task, a `.` and the mark of its script follow. `formerly` are the ids that it had before that.
    `script` is that of a program, for people to see, "" if it is longer than 64 KiB. A program of the plan has a
    `quote`.
    """

    id: str
    kind: Kind
    needs: list[int] = field(default_factory=list)
    watches: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    when: dict[str, Any] | None = None
    reads: list[int] = field(default_factory=list)
    queue: str = ""
    effect: str = "pure"
    approval: bool = False
    timeout: int = 30_000
    attempts: int = 4
    priority: int = 3
    rank: int = 0
    locks: list[tuple[str, bool]] = field(default_factory=list)
    skip_on_error: bool = False
    fallback: tuple[str, int, dict[str, Any]] | None = None
    instead: int = -1
    is_fallback: bool = False
    policy: Policy = "all"
    quorum: int = 0
    deadline: int = 0
    question: str = ""
    fills: bool = False
    schema: dict[str, Any] | None = None
    over: tuple[int, str] | None = None
    length: int = -1
    cap: int = 0
    item_kind: Kind = "tool"
    item_skip: bool = False
    item_fallback: tuple[str, int, dict[str, Any]] | None = None
    summary: str = ""
    tokens: int = 0
    price: int = 0
    page: str = ""
    maker: int = -1
    formerly: list[str] = field(default_factory=list)
    key: str = ""
    script: str = ""
    quote: Quoted | None = None

    def limit(self, *, item: bool) -> int:
        """Return how long one attempt may take. A map's timeout is that of its items; gathering them is the map's."""
        return GATHER_MILLIS if self.kind == "map" and not item else self.timeout

    @property
    def is_step(self) -> bool:
        """Whether the node is a further step of a program, which people see as one node with its first."""
        return self.kind == "program" and self.is_fallback and self.maker >= 0

    @property
    def is_shown(self) -> bool:
        """Whether people see the node: no further step of a program, and no join that a program has given up."""
        return not self.is_step and (self.kind != "join" or not self.page or bool(self.inputs))

    @property
    def call(self) -> str:
        """What a program's call is known by, whatever script a task runs."""
        return self.key.partition(".")[0]

    @property
    def calls_model(self) -> bool:
        """Whether the node, or each item of it, is a model call."""
        return self.kind == "llm" or (self.kind == "map" and self.item_kind == "llm")


def shown_script(script: str) -> str:
    """Return a script that people may see, "" for a long one: a run hands it on when it continues as new."""
    return script if len(script) <= SHOWN_SCRIPT else ""


_DEFAULTS = asdict(NodeSpec("", "tool")) | {"id": None, "kind": None}
_NAMES = [item.name for item in fields(NodeSpec)]


@dataclass(slots=True)
class ExecutionPlan:
    """A checked plan without its arguments."""

    specs: list[NodeSpec]
    answer: list[int]
    on_failure: OnFailure = "park"
    groups: list[list[int]] = field(default_factory=list)
    direct: bool = False

    def pack(self) -> str:
        """Return the execution plan as compressed text, which `unpack` reads back."""
        rows = [
            {name: value for name in _NAMES if (value := getattr(spec, name)) != _DEFAULTS[name]} for spec in self.specs
        ]
        body = [rows, self.answer, self.on_failure, self.groups, self.direct]
        return base64.b85encode(zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 9)).decode()

    @classmethod
    def unpack(cls, text: str, most: int = MAX_UNPACKED_BYTES) -> "ExecutionPlan":
        """Return the execution plan in `text`. Raises ValueError before more than `most` bytes of it are unpacked."""
        rows, *rest = json.loads(inflate(base64.b85decode(text), most))
        for row in rows:
            if "quote" in row:
                row["quote"] = Quoted(*row["quote"])
        return cls([NodeSpec(**row) for row in rows], *rest)


def parse_execution_plan(text: str, most: int) -> ExecutionPlan | None:
    """Return the execution plan in a text that may be anything, None if it is none or unpacks to over `most` bytes."""
    try:
        found = ExecutionPlan.unpack(text, most)
        _SHAPE.validate_python(asdict(found))
        graph = Graph(found)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError, zlib.error):
        return None
    count = len(found.specs)
    places = [place for spec in found.specs for place in (*spec.needs, *spec.watches, *spec.inputs, *spec.reads)]
    places += [*found.answer, *(spec.instead for spec in found.specs if spec.instead != -1)]
    whole = len(graph.by_id) == count and all(0 <= place < count for place in places)
    return found if whole else None


_SHAPE = TypeAdapter(ExecutionPlan)


class Graph:
    """An execution plan with its derived edges: who consumes whom, who joins whom, who belongs together.

    `order` puts each node behind all that it waits for, and `place` is a node's place in it. Nodes that are appended
    have places behind all others until `sort` is called, which whoever follows edges backwards does first. `by_key` has
    the latest node of each call of a program.
    """

    __slots__ = (
        "answers",
        "by_id",
        "by_key",
        "consumers",
        "deps",
        "execution_plan",
        "fallback_for",
        "floor",
        "group_of",
        "groups",
        "is_sorted",
        "joins",
        "keys",
        "locks",
        "made",
        "order",
        "place",
        "sketch",
        "specs",
        "timed",
    )

    def __init__(self, execution_plan: ExecutionPlan) -> None:
        specs = execution_plan.specs
        count = len(specs)
        self.execution_plan = execution_plan
        self.specs = specs
        self.sketch: Any = None  # how it is drawn, once it has been
        self.by_id = {name: index for index, spec in enumerate(specs) for name in (*spec.formerly, spec.id)}
        self.made: dict[int, list[int]] = {}
        self.by_key = {spec.call: index for index, spec in enumerate(specs) if spec.key}
        self.deps = [spec.needs + spec.watches for spec in specs]
        self.consumers: list[list[int]] = [[] for _ in range(count)]
        self.joins: list[list[int]] = [[] for _ in range(count)]
        self.fallback_for: dict[int, int] = {}
        self.timed: dict[int, list[int]] = {}
        self.keys = [(spec.priority, -spec.rank, index) for index, spec in enumerate(specs)]
        self.locks = [_locks(spec) for spec in specs]
        self.answers = dict.fromkeys(execution_plan.answer)
        for index, spec in enumerate(specs):
            self._link(index, spec)
        self.groups = [tuple(members) for members in execution_plan.groups]
        self.group_of = {member: group for group, members in enumerate(self.groups) for member in members}
        self.floor = [self._inside(index) for index in range(count)]
        self.order: list[int] = []
        self.place = [0] * count
        self.is_sorted = False
        self.sort()

    def sort(self) -> None:
        """Put the nodes in order again if some were appended."""
        if self.is_sorted:
            return
        self.order, self.is_sorted = topological_order([_before(spec) for spec in self.specs]), True
        for position, node in enumerate(self.order):
            self.place[node] = position

    def append(self, specs: list[NodeSpec], after: int) -> int:
        """Add nodes that only wait for each other and for older ones, in time that does not depend on the older ones.

        The last one takes over the end of `after`. Returns the one that did so before, -1 for none.
        """
        before, first = self.specs[after].instead, len(self.specs)
        self.specs += specs
        for index, spec in enumerate(specs, first):
            spec.maker = after
            self.by_id[spec.id] = index
            if spec.key:
                self.by_key[spec.call] = index
            self.deps.append(spec.needs + spec.watches)
            self.consumers.append([])
            self.joins.append([])
            self.keys.append((spec.priority, -spec.rank, index))
            self.locks.append(_locks(spec))
            self.floor.append(0)
            self.place.append(index)
        for index, spec in enumerate(specs, first):
            self._link(index, spec)
        last = len(self.specs) - 1
        self.specs[after].instead, self.specs[last].is_fallback = last, True
        self.fallback_for[last] = after
        self.sketch, self.is_sorted = None, False
        return before

    def rename(self, index: int, spec: NodeSpec, after: int) -> None:
        """Have a call of a program be the one that the program made when it ran again: with the id of that, and on its
        page. The old id still names it.
        """
        old = self.specs[index]
        spec.instead, spec.maker, spec.formerly = old.instead, after, [*old.formerly, old.id]
        self.specs[index] = spec
        self.by_id[spec.id] = index
        self.made.setdefault(after, []).append(index)
        self.sketch = None

    def put_behind(self, step: int, later: int) -> None:
        """Keep the steps of an earlier run, `step` and those behind it, behind a step that has none yet."""
        self.specs[later].instead = step
        self.fallback_for[step] = later

    def cut_off(self, gone: Sequence[int]) -> None:
        """Take steps and joins of a program that ran again out of the graph: they wait for nothing any more."""
        for node in gone:
            for dep in self.specs[node].inputs:
                self.joins[dep].remove(node)
            self.fallback_for.pop(node, None)
            self.specs[node].inputs, self.specs[node].instead = [], -1

    def _link(self, index: int, spec: NodeSpec) -> None:
        if spec.maker >= 0:
            self.made.setdefault(spec.maker, []).append(index)
        for dep in self.deps[index]:
            self.consumers[dep].append(index)
        for dep in spec.inputs:
            self.joins[dep].append(index)
            if spec.deadline:
                self.timed.setdefault(dep, []).append(index)
        if spec.instead >= 0:
            self.fallback_for[spec.instead] = index

    def _inside(self, index: int) -> int:
        """How many of a node's dependencies its own group covers."""
        group = self.group_of.get(index)
        if group is None:
            return 0
        return sum(self.group_of.get(dep) == group for dep in self.deps[index])

    def calls_before(self, turn: int) -> list[int]:
        """Return the calls that led to a turn of a tool loop, or to a step of a program: `n7_t1_all` joins those before
        `n7_t2`.
        """
        if self.specs[turn].kind == "program":
            return self.specs[turn].inputs
        found = _TURN.match(self.specs[turn].id)
        join = self.by_id.get(f"{found['stem']}{int(found['number']) - 1}_all") if found else None
        return self.specs[join].inputs if join is not None else []

    def behind(self, node: int) -> tuple[int, ...]:
        """Return those that read a node's end: consumers, joins, the node it is the fallback of."""
        host = self.fallback_for.get(node)
        return (*self.consumers[node], *self.joins[node], *(() if host is None else (host,)))


def _before(spec: NodeSpec) -> list[int]:
    """Return the nodes that must end before this one can, its fallback node among them."""
    fallback = [spec.instead] if spec.instead >= 0 else []
    return [*spec.needs, *spec.watches, *spec.inputs, *fallback]


def _locks(spec: NodeSpec) -> list[tuple[str, bool]]:
    """A node's locks, each once: asked for twice, the exclusive one counts."""
    found: dict[str, bool] = {}
    for name, exclusive in spec.locks:
        found[name] = exclusive or found.get(name, False)
    return list(found.items())
