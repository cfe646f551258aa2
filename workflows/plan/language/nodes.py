"""The plan language: one discriminated union on `kind`, for planners, people and patterns alike.

Every type is frozen and refuses unknown fields. Limits that a single value can break live in the
types; those that need the whole plan or the tool catalogue live in `checking/`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    WrapSerializer,
    model_serializer,
    model_validator,
)

from sennit.workflows.plan.language.call_settings import CallSettings
from sennit.workflows.plan.language.conditions import Condition
from sennit.workflows.plan.language.limits import Duration, Limits, format_duration
from sennit.workflows.plan.language.media import EXAMPLE as EXAMPLE_OF_MEDIA
from sennit.workflows.plan.language.media import as_media
from sennit.workflows.plan.language.references import parse_reference
from sennit.workflows.plan.language.text import format_value, text_bytes
from sennit.workflows.plan.language.validation_messages import Frozen, by_kind, word_or
from sennit.workflows.plan.language.workspaces import WorkspaceValue
from sennit.workflows.plan.limits import (
    MAX_ATTEMPTS,
    MAX_CALL_MEDIA,
    MAX_GOAL_BYTES,
    MAX_NODES,
    MAX_SCRIPT_CHARACTERS,
    MAX_STAGES,
    MAX_TURN_CALLS,
    MAX_TURN_CHARACTERS,
    MAX_TURN_SECONDS,
)

ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,39}$"
RESERVED_IDS = ("input", "goal")

_SHARE = re.compile(r"(?:[1-9][0-9]?|100)%\Z")

NodeId = Annotated[str, Field(pattern=ID_PATTERN)]
Over = Literal["truncate", "reference"]
Role = Literal["planner", "worker", "critic", "judge", "joiner"]
OnFailure = Literal["park", "partial", "fail"]
Fuse = Literal["auto", "on", "off"]
"""Whether one activity runs several calls: those known to be short, all that
may share one, or none.
"""
ApprovalPolicy = Literal["writes", "never"]
"""What needs a person's approval."""
Priority = Annotated[int, Field(strict=True, ge=1, le=5)]


class Retry(Frozen):
    """How often a node is attempted in all before it fails."""

    attempts: int = Field(strict=True, ge=1, le=MAX_ATTEMPTS)


class Lock(Frozen):
    """A named resource held while a node runs: many shared holders, or one exclusive."""

    name: str = Field(min_length=1, max_length=80)
    mode: Literal["shared", "exclusive"] = "exclusive"


class Estimate(Frozen):
    """What a node is expected to take; orders ready nodes and feeds the forecast."""

    tokens: int | None = Field(default=None, strict=True, ge=0, le=100_000_000)
    seconds: float | None = Field(default=None, strict=True, ge=0, le=86_400)


class Fallback(Frozen):
    """On failure the node succeeds with this value."""

    fallback: JsonValue


class Instead(Frozen):
    """On failure that node runs, and only then; its output stands for this node's."""

    instead: NodeId


OnError = Annotated[
    Literal["fail", "skip"] | Fallback | Instead,
    word_or(
        "on_error",
        ("fail", "skip"),
        {"fallback": Fallback, "instead": Instead},
        "fail, skip, {fallback: value} or {instead: node}",
    ),
]


def _without_empty(written: dict[str, Any], optional: tuple[str, ...]) -> dict[str, Any]:
    """Return what is written of a model, without those of its optional fields that say nothing."""
    return {name: value for name, value in written.items() if name not in optional or value}


class EndedCalls(Frozen):
    """The model's next turn starts when so many calls of this turn have ended, or all of fewer."""

    quorum: int = Field(strict=True, ge=1, le=MAX_TURN_CALLS)


def _within_a_day(seconds: float) -> float:
    if seconds > MAX_TURN_SECONDS:
        raise ValueError(
            f"is {format_duration(seconds)}; a turn waits at most "
            f"{format_duration(MAX_TURN_SECONDS)}"
        )
    return seconds


class PassedTime(Frozen):
    """The model's next turn starts when this time has passed since its calls were there, and
    one of them has ended.
    """

    after: Annotated[Duration, AfterValidator(_within_a_day)]


TurnRule = Literal["first"] | EndedCalls | PassedTime
"""When the next turn of a tool loop starts, unless that is when all calls have ended."""
WAIT_FOR, CANCEL_CALL = TURN_TOOLS = ("wait_for", "cancel_call")
"""What a model may call beside its tools if it goes on while some of its calls run."""
GOES_ON: Final = "running"
"""The status of a call that still runs when the model's next turn starts."""


class Turn(Frozen):
    """A further turn of a model that has called tools; written by the engine, never by people.

    Its output replaces that of `node`, the turn before. `transcript` is the digest of the
    conversation so far, `results` a reference to the results of the calls in it, and `refused` says
    why others were not made, by call id. `rule` is what the plan says of when turns start. Then the
    model may also wait for calls that go on, and cancel them: `waits` and `cancels` have the names
    of these calls by the ids of the calls that ask for it.
    """

    number: int
    node: NodeId
    transcript: str = ""
    results: str = ""
    refused: dict[str, str] = Field(default_factory=dict)
    rule: TurnRule | None = None
    waits: dict[str, tuple[NodeId, ...]] = Field(default_factory=dict)
    cancels: dict[str, tuple[NodeId, ...]] = Field(default_factory=dict)

    @model_serializer(mode="wrap")
    def _without_unset(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As of a model call: a turn that waits for all calls is written without a rule."""
        return _without_empty(write(self), _OF_RULE)


_OF_RULE = ("rule", "waits", "cancels")
_TURN_FORMS = "all, first, {quorum: 2} or {after: 2s}"
_RULE: TypeAdapter[TurnRule] = TypeAdapter(
    Annotated[
        TurnRule,
        word_or("turn", ("first",), {"quorum": EndedCalls, "after": PassedTime}, _TURN_FORMS),
    ]
)


def parse_turn_rule(value: Any) -> TurnRule | None:
    """Read what people write about turns; None for `all`, which a loop does anyhow.
    Raises ValidationError.
    """
    if value is None or value == "all":
        return None
    return _RULE.validate_python(value)


def _turn(value: Any) -> Any:
    """Read what people write about turns, or a further turn as the engine writes it."""
    if isinstance(value, Turn):
        return value
    if isinstance(value, dict) and "number" in value:
        return Turn.model_validate(value)
    return parse_turn_rule(value)


class ChatTurn(Frozen):
    """A turn of a conversation before a prompt: text, in which a `$` means nothing."""

    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=MAX_TURN_CHARACTERS)


def _begun_by_user(turns: tuple[ChatTurn, ...]) -> tuple[ChatTurn, ...]:
    if turns and turns[0].role != "user":
        raise ValueError("the first turn is the user's: not every model takes another one")
    return turns


ChatTurns = Annotated[tuple[ChatTurn, ...], AfterValidator(_begun_by_user)]


class Context(Frozen):
    """How many tokens of other nodes' outputs a model is given, and what becomes of an output that
    is over its share: it is cut, or left for the model to read on in by calls of a tool.
    """

    tokens: int = Field(default=16_000, strict=True, ge=200, le=1_000_000)
    over: Over = "truncate"


class Work(Frozen):
    """What every node has that does something: failure, retry, time, order, locks."""

    on_error: OnError = "fail"
    retry: Retry | None = None
    timeout: Duration | None = None
    priority: Priority = 3
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


def _media(value: Any) -> Any:
    """Return a value that may stand for media: a reference alone, or media."""
    if isinstance(value, str) and parse_reference(value) is not None:
        return value
    if as_media(value) is not None:
        return value
    raise ValueError(f"is a reference to media, such as $shot.image, or {EXAMPLE_OF_MEDIA}")


MediaValue = Annotated[JsonValue, AfterValidator(_media)]

_OPTIONAL = ("settings", "messages", "instructions", "media", "workspace")
"""Fields of a model call that are left out where nothing is set."""


class ModelCall(Work):
    """One model call, or with `tools` a loop of calls until it answers, `max_turns` in all.

    `prompt` may hold references; `output_schema` asks for JSON of that shape. `settings` override
    those of the run and of the role. `messages` are turns before the prompt; `instructions` hold
    for each turn of the loop, beside those of the run. `media` are images, PDFs and recordings that
    the model is shown with the prompt, by reference as a rule. With a `workspace` the tools work in
    that folder, one call after the other, and the output is `{answer, workspace}`. The call fails
    after a silence of `first_token_timeout` before its reply begins, or of `idle_timeout` within
    it. `turn` says when the next turn of a loop starts; of a further turn it is that turn.
    """

    kind: Literal["llm"]
    prompt: str = Field(min_length=1, max_length=200_000)
    role: Role = "worker"
    model: str | None = Field(default=None, max_length=120)
    output_schema: dict[str, JsonValue] | None = None
    tools: tuple[str, ...] = Field(default=(), max_length=100)
    max_turns: int = Field(default=8, strict=True, ge=1, le=50)
    context: Context = Context()
    settings: CallSettings | None = None
    messages: ChatTurns = Field(default=(), max_length=200)
    instructions: str = Field(default="", max_length=32_000)
    media: tuple[MediaValue, ...] = Field(default=(), max_length=MAX_CALL_MEDIA)
    workspace: WorkspaceValue | None = None
    turn: Annotated[TurnRule | Turn | None, BeforeValidator(_turn)] = None
    first_token_timeout: Duration | None = None
    idle_timeout: Duration | None = None

    @model_serializer(mode="wrap")
    def _without_unset(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A call is known by what is written of it, so a field that it
        does not use is not there.
        """
        return _without_empty(write(self), _OPTIONAL)

    @model_validator(mode="after")
    def _works_in_its_workspace(self) -> Self:
        if self.workspace is not None and (not self.tools or self.role == "joiner"):
            raise ValueError(
                "`workspace` is for a model with `tools` that work in it, and not for a joiner"
            )
        return self

    @property
    def further_turn(self) -> Turn | None:
        """Which further turn of a tool loop the call is; None for a first one."""
        if isinstance(self.turn, Turn):
            return self.turn
        return None

    @property
    def turn_rule(self) -> TurnRule | None:
        """When the next turn starts; None if that is when all calls have ended."""
        if isinstance(self.turn, Turn):
            return self.turn.rule
        return self.turn

    @property
    def loops(self) -> bool:
        """Whether the model may call tools, its own or the one that reads on in its inputs."""
        return bool(self.tools) or self.context.over == "reference"

    @property
    def adds_nodes(self) -> bool:
        """Whether the call may add nodes to the plan: calls of tools, or what a joiner asks for."""
        return self.loops or self.role == "joiner"


class ToolNode(Placed, ToolCall):
    """A tool call as a node."""


class LlmNode(Placed, ModelCall):
    """A model call as a node. It reads how each of its `inputs` ended, with value or error,
    as from a settled join.
    """

    inputs: tuple[NodeId, ...] = Field(default=(), max_length=MAX_NODES)


class AgentCall(Work):
    """A sub-agent: a run of its own with a goal, some of this run's tools, and a part of its
    budget. Its `instructions` stand beside those of this run. With a `workspace` it works in that
    folder turn by turn, as a model with tools does, and its output is `{answer, workspace}`.
    """

    kind: Literal["agent"]
    goal: str = Field(min_length=1, max_length=32_000)
    instructions: str = Field(default="", max_length=32_000)
    tools: tuple[str, ...] | None = None
    budget: Limits | None = None
    workspace: WorkspaceValue | None = None

    @model_serializer(mode="wrap")
    def _without_unset(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As of a model call: a field that is not used is not there."""
        return _without_empty(write(self), _OPTIONAL)


class AgentNode(Placed, AgentCall):
    """A sub-agent as a node."""


class Program(Work):
    """A script whose calls become nodes. `arguments` are those of its function `main`,
    and may hold references.
    """

    kind: Literal["program"]
    script: str = Field(default="", max_length=MAX_SCRIPT_CHARACTERS)
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class ProgramNode(Placed, Program):
    """A program as a node."""


class Stage(Frozen):
    """What a node in a map's `do` has beside its call: an id of its own there, and a
    condition on the item.
    """

    id: NodeId | None = None
    when: Condition | None = None


class ToolStage(Stage, ToolCall):
    """A tool call in a map's `do`."""


class ModelStage(Stage, ModelCall):
    """A model call in a map's `do`."""


class AgentStage(Stage, AgentCall):
    """A sub-agent in a map's `do`: each item has a run of its own."""


class ProgramStage(Stage, Program):
    """A program in a map's `do`."""


AnyStage = ToolStage | ModelStage | AgentStage | ProgramStage
STAGES: Final[Mapping[str, type[BaseModel]]] = {
    "tool": ToolStage,
    "llm": ModelStage,
    "agent": AgentStage,
    "program": ProgramStage,
}


def _chain(do: Any) -> Any:
    if isinstance(do, list) and len(do) == 1:
        raise ValueError("a chain has two nodes or more; write one alone without the list")
    if isinstance(do, list | tuple):
        return do
    return (do,)


def _as_written(do: Any, write: SerializerFunctionWrapHandler) -> Any:
    written = write(do)
    if len(written) == 1:
        return written[0]
    return written


class MapNode(Placed):
    """One copy of `do` for each item of a list known at run time; the output is the list of the
    items' values, null for one that was skipped.

    `do` is one node, or a chain of nodes. In a chain each begins when the one before it has a
    value, and may read all before it by their ids; the last one's value is the item's. `earlier`
    are those ids where the node is `at_stage`.
    """

    kind: Literal["map"]
    over: str
    as_: NodeId = Field(default="item", alias="as")
    do: Annotated[
        tuple[Annotated[AnyStage, Field(discriminator="kind"), by_kind(STAGES)], ...],
        Field(min_length=1, max_length=MAX_STAGES),
        BeforeValidator(_chain),
        WrapSerializer(_as_written),
    ]
    max_items: int = Field(default=200, strict=True, ge=1, le=MAX_NODES)
    on_error: OnError = "fail"
    priority: Priority = 3
    _earlier: tuple[str, ...] = ()

    @property
    def stages(self) -> tuple[str, ...]:
        """The ids of the nodes in `do`, "" for the last one."""
        earlier = [stage.id or "" for stage in self.do[:-1]]
        return (*earlier, "")

    @property
    def names(self) -> tuple[str, ...]:
        """The names that mean something in `do` only: the item's, and the
        ids of the chain's nodes.
        """
        names = [self.as_, *self._earlier]
        for stage in self.do:
            if stage.id is not None:
                names.append(stage.id)
        return tuple(names)

    @property
    def runs_apart(self) -> bool:
        """Whether each item is a run of its own, with `do` as its plan: nodes may be added to it,
        or stand in for others of it.
        """
        for stage in self.do:
            if stage.kind == "program" or isinstance(stage.on_error, Instead):
                return True
            if stage.kind == "llm" and stage.loops:
                return True
        return False

    @property
    def units(self) -> tuple[str, ...]:
        """The nodes in `do` that this run's scheduler knows for each item."""
        if self.runs_apart:
            return ("",)
        return self.stages

    def at_stage(self, stage: str) -> "MapNode":
        """Return the map as if only this node of the chain were its `do`. Raises
        KeyError if there is none.
        """
        if stage not in self.units:
            raise KeyError(stage)
        if self.runs_apart:
            return self
        place = self.stages.index(stage)
        last = self.do[place].model_copy(update={"id": None})
        found = self.model_copy(update={"do": (last,)})
        found._earlier = self.stages[:place]
        return found


def _quorum(value: Any) -> Any:
    """Let a count of at least 1 pass, and a share of 1% to 100%."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    is_share = isinstance(value, str) and _SHARE.match(value) is not None
    if is_count or is_share:
        return value
    raise ValueError(
        f'{format_value(value)} is no quorum; write a count such as 2 or a share such as "60%"'
    )


class Quorum(Frozen):
    """Enough inputs with a value: a count, or a share of the inputs rounded up."""

    quorum: Annotated[int | str, BeforeValidator(_quorum)]


Policy = Annotated[
    Literal["all", "settled", "first"] | Quorum,
    word_or(
        "policy",
        ("all", "settled", "first"),
        {"quorum": Quorum},
        'all, settled, first, {quorum: 2} or {quorum: "60%"}',
    ),
]


class TurnCalls(Frozen):
    """Of the join before a further turn of a tool loop: by which rule it closes.
    Only the engine writes it.

    The first `calls` of its inputs are those of this turn, the others have gone on from earlier
    turns. All that are `awaited` must have ended, and those that are `cancelled` are given up
    when the join is added.
    """

    rule: TurnRule
    calls: int
    awaited: tuple[NodeId, ...] = ()
    cancelled: tuple[NodeId, ...] = ()


class JoinNode(Placed):
    """Aggregates its inputs by policy; the output is a list in `inputs` order, for
    `first` the value alone.

    With `items` that map is its only input, and each of its items counts for itself. With a `turn`
    it leaves the model of a tool loop to go on while some of its inputs run.
    """

    kind: Literal["join"]
    inputs: tuple[NodeId, ...] = Field(min_length=1, max_length=MAX_NODES)
    items: NodeId | None = None
    policy: Policy = "all"
    deadline: Duration | None = None
    on_error: OnError = "fail"
    priority: Priority = 3
    turn: TurnCalls | None = None

    @model_serializer(mode="wrap")
    def _without_unset(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As of a model call: a join that is before no such turn is written without one."""
        return _without_empty(write(self), ("turn",))

    @model_validator(mode="before")
    @classmethod
    def _of_map(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("items"), str):
            return {"inputs": [data["items"]], **data}
        return data


class GateNode(Placed):
    """Waits for a person; the answer, checked against `schema`, is the output."""

    kind: Literal["gate"]
    question: str = Field(min_length=1, max_length=2_000)
    answer_schema: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    timeout: Duration | None = None
    on_error: OnError = "fail"


NODES: Final[Mapping[str, type[BaseModel]]] = {
    "tool": ToolNode,
    "llm": LlmNode,
    "agent": AgentNode,
    "program": ProgramNode,
    "map": MapNode,
    "join": JoinNode,
    "gate": GateNode,
}
Node = Annotated[
    ToolNode | LlmNode | AgentNode | ProgramNode | MapNode | JoinNode | GateNode,
    Field(discriminator="kind"),
    by_kind(NODES),
]


class InputSpec(Frozen):
    """An input of a plan; one without a default must be given when the run starts, also
    after a plan was stored.
    """

    type: Literal["string", "number", "integer", "boolean", "array", "object"] = "string"
    default: JsonValue = None
    description: str = Field(default="", max_length=500)

    @property
    def is_required(self) -> bool:
        """Whether it must be given; `null` is a default too."""
        return "default" not in self.model_fields_set

    @model_serializer(mode="wrap")
    def _without_unset(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        if self.is_required:
            written.pop("default", None)
        return written


def _short_goal(goal: str) -> str:
    size = text_bytes(goal)
    if size > MAX_GOAL_BYTES:
        raise ValueError(
            f"is {size:,} bytes; at most {MAX_GOAL_BYTES:,}. Put long text in a document"
        )
    return goal


Goal = Annotated[str, AfterValidator(_short_goal)]


def _switch(value: Any) -> Any:
    """Let the truth values pass as which YAML reads the words `on` and `off`."""
    if not isinstance(value, bool):
        return value
    if value:
        return "on"
    return "off"


class Plan(Frozen):
    """A whole plan. `fuse` says whether one activity may run several short calls together."""

    goal: Goal | None = None
    inputs: dict[NodeId, InputSpec] = Field(default_factory=dict, max_length=100)
    nodes: tuple[Node, ...] = Field(min_length=1, max_length=MAX_NODES)
    answer: JsonValue = None
    on_failure: OnFailure | None = None
    fuse: Annotated[Fuse, BeforeValidator(_switch)] | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its nodes, in order."""
        return tuple(node.id for node in self.nodes)

    @property
    def by_id(self) -> dict[str, Node]:
        """Its nodes, by their ids."""
        return {node.id: node for node in self.nodes}

    @property
    def places(self) -> dict[str, int]:
        """The number of each node in the list, by its id."""
        return {node.id: place for place, node in enumerate(self.nodes)}
