"""The plan language: one discriminated union on `kind`, for planners, people and patterns alike.

Every type is frozen and refuses unknown fields. Limits that a single value can break live in the types; those
that need the whole plan or the tool catalogue live in `validate.py`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from workflows.plan.conditions import Condition
from workflows.plan.durations import Duration

ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,39}$"
RESERVED_IDS = ("input", "goal")
MAX_NODES = 10_000
MAX_GOAL_BYTES = 32 * 1024

NodeId = Annotated[str, Field(pattern=ID_PATTERN)]
Role = Literal["planner", "worker", "critic", "judge", "joiner"]
OnFailure = Literal["park", "partial", "fail"]


class Frozen(BaseModel):
    """A value that cannot change and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


class Retry(Frozen):
    """How often a node is attempted in all before it fails."""

    attempts: int = Field(ge=1, le=20)


class Lock(Frozen):
    """A named resource held while a node runs: many shared holders, or one exclusive."""

    name: str = Field(min_length=1, max_length=80)
    mode: Literal["shared", "exclusive"] = "exclusive"


class Estimate(Frozen):
    """What a node is expected to take; orders ready nodes and feeds the forecast."""

    tokens: int | None = Field(default=None, ge=0, le=100_000_000)
    seconds: float | None = Field(default=None, ge=0, le=86_400)


class Fallback(Frozen):
    """On failure the node succeeds with this value."""

    fallback: JsonValue


class Instead(Frozen):
    """On failure that node runs, and only then; its output stands for this node's."""

    instead: NodeId


OnError = Literal["fail", "skip"] | Fallback | Instead


class Work(Frozen):
    """What every node has that does something: failure, retry, time, order, locks."""

    on_error: OnError = "fail"
    retry: Retry | None = None
    timeout: Duration | None = None
    priority: int = Field(default=3, ge=1, le=5)
    locks: tuple[Lock, ...] = Field(default=(), max_length=8)
    estimate: Estimate | None = None


class Placed(Frozen):
    """A node's place in the graph: its id, explicit edges and condition."""

    id: NodeId
    needs: tuple[NodeId, ...] = ()
    when: Condition | None = None


class ToolCall(Work):
    """One call of a registered tool."""

    kind: Literal["tool"]
    tool: str = Field(min_length=1, max_length=80)
    args: dict[str, JsonValue] = Field(default_factory=dict)


class ModelCall(Work):
    """One model call. `prompt` may hold references; `output_schema` asks for JSON of that shape."""

    kind: Literal["llm"]
    prompt: str = Field(min_length=1, max_length=200_000)
    role: Role = "worker"
    model: str | None = Field(default=None, max_length=120)
    output_schema: dict[str, JsonValue] | None = None


class ToolNode(Placed, ToolCall):
    """A tool call as a node."""


class LlmNode(Placed, ModelCall):
    """A model call as a node."""


class MapNode(Placed):
    """One copy of `do` for each item of a list known at run time; the output is the list of the items' values."""

    kind: Literal["map"]
    over: str
    as_: NodeId = Field(default="item", alias="as")
    do: Annotated[ToolCall | ModelCall, Field(discriminator="kind")]
    max_items: int = Field(default=200, ge=1, le=MAX_NODES)
    on_error: OnError = "fail"
    priority: int = Field(default=3, ge=1, le=5)


def _quorum(value: Any) -> Any:
    """Read `"60%"` as a share; a count stays a count."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit() and 0 < int(value[:-1]) <= 100:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ValueError(f'{value!r} is no quorum; write a count such as 2 or a share such as "60%"')


class Quorum(Frozen):
    """Enough inputs with a value: a count, or a share of the inputs rounded up."""

    quorum: Annotated[int | str, BeforeValidator(_quorum)]


class JoinNode(Placed):
    """Aggregates its inputs by policy; the output is a list in `inputs` order, for `first` the value alone."""

    kind: Literal["join"]
    inputs: tuple[NodeId, ...] = Field(min_length=1, max_length=MAX_NODES)
    policy: Literal["all", "settled", "first"] | Quorum = "all"
    deadline: Duration | None = None
    on_error: OnError = "fail"
    priority: int = Field(default=3, ge=1, le=5)


class GateNode(Placed):
    """Waits for a person; the answer, checked against `schema`, is the output."""

    kind: Literal["gate"]
    question: str = Field(min_length=1, max_length=2_000)
    answer_schema: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    timeout: Duration | None = None
    on_error: OnError = "fail"


Node = Annotated[ToolNode | LlmNode | MapNode | JoinNode | GateNode, Field(discriminator="kind")]


class InputSpec(Frozen):
    """An input of a plan; one without a default must be given when the run starts."""

    type: Literal["string", "number", "integer", "boolean", "array", "object"] = "string"
    default: JsonValue = None
    description: str = Field(default="", max_length=500)


class Plan(Frozen):
    """A whole plan. `islands` lists nodes that one activity may run together."""

    goal: str | None = Field(default=None, max_length=MAX_GOAL_BYTES)
    inputs: dict[NodeId, InputSpec] = Field(default_factory=dict, max_length=100)
    nodes: tuple[Node, ...] = Field(min_length=1, max_length=MAX_NODES)
    answer: JsonValue = None
    on_failure: OnFailure | None = None
    islands: tuple[tuple[NodeId, ...], ...] = ()
