"""The plan as the scheduler sees it: annotated nodes by index.

`check_plan` builds an execution plan from a validated plan, and an activity hands it over packed.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from itertools import compress
from operator import attrgetter, ne
from typing import Any, Literal, NamedTuple

from sennit.workflows.plan.language.conditions import moved
from sennit.workflows.plan.language.nodes import Fuse, OnFailure
from sennit.workflows.plan.language.packing import pack, unpack
from sennit.workflows.plan.limits import MAX_SHOWN_SCRIPT_CHARACTERS, MAX_UNPACKED_PLAN_BYTES

KEY_CHARACTERS = 12
"""Of the key of a program's call, what the scheduler knows it by."""
GATHER_MILLIS = 120_000
"""What a map may take to put the values of its items together: thousands of reads of the store."""

FRESH_MILLIS = 60_000
"""How old an output may be of a call that was made early, where its tool says nothing else."""

SHARED, EXCLUSIVE, APART = range(3)
"""How a lock is held: by many at once, by one alone, or by many at once that never share
it with the first ones.
"""

Kind = Literal["tool", "llm", "agent", "program", "map", "join", "gate", "task"]
"""The kinds of nodes. A `task` is a function that a program's script runs: people see it,
and nothing starts it.
"""
Policy = Literal["all", "settled", "first", "quorum", "turn"]
"""When a join closes. `turn` is that of the calls of a tool loop after which the model
goes on while others run.
"""


class Quoted(NamedTuple):
    """What a program can cost, as a line for people, and the least of it: exact of its model
    `calls`, about how many `tokens`, and about how many millionths of a dollar.
    """

    text: str
    calls: int
    tokens: int
    cost: int


@dataclass(slots=True)
class NodeSpec:
    """One node with its annotations. Indices are positions in the plan, times are milliseconds.
    `attempts`, `timeout`, `locks`, `tokens` and `item_*` of a map are those of its items.
    """

    id: str
    kind: Kind
    needs: list[int] = field(default_factory=list)
    """Nodes that must succeed first."""
    watches: list[int] = field(default_factory=list)
    """Nodes that only have to end, because a condition reads their status."""
    inputs: list[int] = field(default_factory=list)
    """Of a join, or of a model that reads how they ended."""
    when: dict[str, Any] | None = None
    reads: list[int] = field(default_factory=list)
    """Nodes whose outputs its activity binds."""
    queue: str = ""
    effect: str = "pure"
    approval: bool = False
    """Whether a person has to approve it."""
    confirms: bool = False
    """Whether they have to, although a program has made it before its script was edited."""
    timeout: int = 30_000
    attempts: int = 4
    priority: int = 3
    rank: int = 0
    """The longest estimated path from here to the end."""
    locks: list[tuple[str, int]] = field(default_factory=list)
    """Each once."""
    names_no_resource: bool = False
    """Whether these are locks of the plan alone, of a call that may read or write anything:
    its tool names nothing.
    """
    skip_on_error: bool = False
    fallback: tuple[str, int, dict[str, Any]] | None = None
    """The digest, size and facts of the fallback value."""
    successor: int = -1
    """The node that takes over its end: the fallback node of one that failed, or the
    next turn of a tool loop.
    """
    is_successor: bool = False
    """Whether this node is one."""
    policy: Policy = "all"
    quorum: int = 0
    """How many inputs a join needs; of a map's items a share, in percent below 0."""
    deadline: int = 0
    question: str = ""
    fills: bool = False
    """Whether a gate's question has references for an activity to fill in."""
    schema: dict[str, Any] | None = None
    over: tuple[int, str] | None = None
    """Where a map's list comes from: a node and the fact with its length."""
    length: int = -1
    """That length, if it is known before."""
    cap: int = 0
    """The most items of a map."""
    item_kind: Kind = "tool"
    item_skip: bool = False
    item_fallback: tuple[str, int, dict[str, Any]] | None = None
    stages: list["NodeSpec"] = field(default_factory=list)
    """The nodes of a map's `do` before the last one, each as a map that is no node of the plan."""
    source: int = -1
    """The map item by item behind whose items it runs."""
    of_items: bool = False
    """Whether a join takes each item of its only input, a map."""
    summary: str = ""
    tokens: int = 0
    """The plan's estimate."""
    prompt: int = 0
    """About how many tokens the text of a model call has, without the outputs that it refers to."""
    material: int = 0
    """How many tokens of these outputs it is given at most."""
    reply: int = 0
    """How many tokens its reply may have at most; 0 where nobody counts them."""
    calls: int = 0
    """How many model calls a run of its own is expected to make at least."""
    price: int = 0
    """What a million tokens may cost in millionths of a dollar; 0 where nobody knows."""
    tool: str = ""
    typical: int = 0
    """How long a call of the tool takes; 0 where nobody knows."""
    early: bool = False
    """Whether its call may be made before a person has decided on what comes before it."""
    fresh_for: int = FRESH_MILLIS
    """How old the output of a call made early may be."""
    page: str = ""
    """The plan where an activity finds a node that was added while the run went on; ""
    for the run's own plan.
    """
    maker: int = -1
    """The program, or the turn of the tool loop, that has added it."""
    key: str = ""
    """What a program's call or task is known by when the program runs again."""
    in_place: bool = False
    """Whether an advance of a program has made this call itself."""
    script: str = ""
    """Of a program, for people to see; "" if it is too long."""
    quote: Quoted | None = None
    """Of a program of the plan."""
    call_site: str = ""
    """Where in its script a program has made this call, as `look#3/search:4`."""
    expires: int = 0
    """So long after it was called, a program's call fails; 0 for never. A sleep
    ends at its `deadline`.
    """
    slice: dict[str, int] = field(default_factory=dict)
    """What the calls of a task may spend, or a model call with its tool loop, by
    the names of `Amounts`.
    """
    slice_of: str = ""
    """The id of the innermost task with a slice of the budget in which a
    program has made this call.
    """
    turn_calls: int = 0
    """Of the join before a further turn of a tool loop: how many of its inputs are calls of this
    turn; they come first. The others are calls of earlier turns that went on. Of these calls
    `quorum` must have ended, or with a `deadline` one when that has passed.
    """
    awaited: list[int] = field(default_factory=list)
    """Of such a join: the inputs that must have ended in any case, because
    the model waits for them.
    """
    given_up: list[int] = field(default_factory=list)
    """Of such a join: the calls of earlier turns that the model cancels."""

    def limit(self, *, item: bool) -> int:
        """Return how long one attempt may take. A map's timeout is that of its items;
        gathering them is the map's.
        """
        if self.kind == "map" and not item:
            return GATHER_MILLIS
        return self.timeout

    @property
    def is_program(self) -> bool:
        """Whether the node is a program, with a script of its own."""
        return self.kind == "program"

    def move(self, to: Callable[[int], int]) -> None:
        """Have the node name others by the places that they have elsewhere."""
        for name in ("needs", "watches", "inputs", "reads", "awaited", "given_up"):
            places = [to(place) for place in getattr(self, name)]
            setattr(self, name, places)
        for name in ("successor", "maker", "source"):
            place = getattr(self, name)
            if place >= 0:
                setattr(self, name, to(place))
        if self.over is not None:
            node, fact = self.over
            self.over = (to(node), fact)
        for stage in self.stages:
            stage.move(to)
        self.when = moved(self.when, to)

    @property
    def calls_model(self) -> bool:
        """Whether the node, or each item of it, is a model call."""
        if self.kind == "map":
            return self.item_kind == "llm"
        return self.kind == "llm"

    @property
    def agents_per_item(self) -> int:
        """How many sub-agents an item of the map starts."""
        if self.kind != "map":
            return 0
        count = 0
        for stage in (*self.stages, self):
            if stage.item_kind == "agent":
                count += 1
        return count

    @property
    def per_item(self) -> int:
        """How many units an item of the map has."""
        return len(self.stages) + 1


def shown_script(script: str) -> str:
    """Return a script that people may see, "" for a long one: a run hands it on
    when it continues as new.
    """
    if len(script) > MAX_SHOWN_SCRIPT_CHARACTERS:
        return ""
    return script


_DEFAULTS = asdict(NodeSpec("", "tool")) | {"id": None, "kind": None}
_NAMES = [item.name for item in fields(NodeSpec)]
_VALUES = attrgetter(*_NAMES)
_USUAL = [_DEFAULTS[name] for name in _NAMES]


def _row(spec: NodeSpec) -> dict[str, Any]:
    """Return the fields that are not as usual: most of a plan's nodes have few."""
    values = _VALUES(spec)
    items = zip(_NAMES, values, strict=True)
    row = dict(compress(items, map(ne, values, _USUAL)))
    if spec.summary.startswith(f"{spec.id} "):
        row["summary"] = spec.summary.removeprefix(spec.id)
    if spec.stages:
        row["stages"] = list(map(_row, spec.stages))
    return row


def _spec(row: dict[str, Any]) -> NodeSpec:
    """Return the node or stage that `_row` made a row of."""
    row.pop("formerly", None)  # earlier versions wrote it of calls of programs
    if row.get("summary", "").startswith(" "):
        row["summary"] = row["id"] + row["summary"]
    if "quote" in row:
        row["quote"] = Quoted(*row["quote"])
    if "stages" in row:
        row["stages"] = list(map(_spec, row["stages"]))
    return NodeSpec(**row)


@dataclass(slots=True)
class ExecutionPlan:
    """A checked plan without its arguments."""

    specs: list[NodeSpec]
    answer: list[int]
    on_failure: OnFailure = "park"
    fuse: Fuse = "auto"
    direct: bool = False

    def pack(self) -> str:
        """Return the execution plan as compressed text, which `unpack` reads back."""
        rows = list(map(_row, self.specs))
        body = [rows, self.answer, self.on_failure, self.fuse, self.direct]
        return pack(body)

    @classmethod
    def unpack(cls, text: str, most: int = MAX_UNPACKED_PLAN_BYTES) -> "ExecutionPlan":
        """Return the execution plan in `text`. Raises ValueError before more than `most`
        bytes of it are unpacked.
        """
        rows, *rest = unpack(text, most)
        return cls(list(map(_spec, rows)), *rest)
