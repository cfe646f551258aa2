"""What the workflow and its activities say to each other.

Activities are named here by typed references instead of being imported: workflow code must not import I/O, and the
worker that runs a workflow need not have the tools installed. A test holds every reference to exactly one registered
activity of the same types.
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from workflows.plan.language.limits import NO_USAGE, Usage

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)

Digest = str
NodePath = str


@dataclass(frozen=True, slots=True)
class Call(Generic[In, Out]):
    """An activity by name, with the one object it takes and the one it returns."""

    name: str
    takes: type[In]
    gives: type[Out]


class Message(BaseModel):
    """A value on the wire: frozen, strict about its fields; fields left at their default are not sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PrepareCall(Message):
    """Opens a run. `run` is the first run id of the chain, the home of its artifacts. `given` is what the goal of a
    sub-agent names, as `RUN/DIGEST` among the artifacts of the run above.
    """

    run: str
    goal: str = ""
    plan: dict[str, JsonValue] | None = None
    plan_packed: str | None = None
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    docs: str | None = None
    tools: tuple[str, ...] | None = None
    approval: Literal["writes", "never"] = "writes"
    given: str = ""


class CheckResult(Message):
    """A plan's verdict: either a plan digest and its packed execution_plan, or problems, one sentence each.

    `continues` says that the plan begins with all of its base as it was. Then `facts` are those of old nodes that only
    the new plan asks for, and `awaits` the old nodes whose facts are asked for but whose output was not given.
    Of a replan, `why` is what its joiner says and `tokens` what the new nodes are forecast to take.
    """

    plan: Digest = ""
    execution_plan: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    continues: bool = False
    facts: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    awaits: tuple[str, ...] = ()
    why: str = ""
    tokens: int = 0


class PreparedRun(Message):
    """`run_context` is the artifact of what the run is bound to: tools, inputs, documents, models. A planner that
    `streams` sends the beginning of its plan while it writes the rest. `attributes` are the search attributes that the
    namespace has, `rates` the calls a minute of each model queue, where they are configured.
    """

    run_context: Digest
    planner: str = ""
    streams: bool = False
    checked: CheckResult | None = None
    attributes: tuple[str, ...] = ()
    rates: dict[str, int] = Field(default_factory=dict)


class PlanCall(Message):
    """Asks a planner for a plan of the run's goal. After a draft that cannot run, `draft` is that plan, `text` what
    the planner wrote, `problems` what is wrong. With `stream`, the beginning of the plan is sent in signals while
    the rest is written.
    """

    run: str
    run_context: Digest
    problems: tuple[str, ...] = ()
    draft: Digest = ""
    text: Digest = ""
    stream: bool = False


class PlanDraft(Message):
    """The beginning of a plan, checked, as far as it is written: each one continues the last of the same attempt."""

    attempt: int
    plan: Digest
    execution_plan: str


def parse_draft(request: Any = None, *more: Any) -> PlanDraft | None:
    """Return the beginning of a plan in a signal's input, or None for an input of any other shape."""
    try:
        return PlanDraft.model_validate(request) if not more else None
    except ValidationError:
        return None


class PlanResult(Message):
    """A planner's draft in the plan language, not yet checked.

    `text` is the planner's own text, where another attempt may mend it. `problems` are what the text itself has wrong:
    with any, the draft is not whole.
    """

    draft: Digest
    usage: Usage = NO_USAGE
    text: Digest = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CheckCall(Message):
    """Checks a draft. With `base`, the plan that has run so far, the draft is a whole plan to go on
    with, or what is to be added: a replan, or the tool calls that the model of `node` asks for. `refs` maps nodes that
    have ended to their outputs.
    """

    run: str
    run_context: Digest
    draft: Digest
    base: Digest = ""
    adds: Literal["", "replan", "calls"] = ""
    node: str = ""
    refs: dict[str, Digest] = Field(default_factory=dict)


class LoadCall(Message):
    """Asks for the execution_plan of a plan checked earlier in this run."""

    run: str
    plan: Digest


class NodeCall(Message):
    """Runs nodes of one plan: one as a rule, several as a group.

    `nodes` are node paths with their generation (`n7`, `n7~2`, `m[17]`). `refs` maps the nodes whose outputs they read
    to artifact digests; the activity binds arguments from there. `lost` maps inputs without a value to (status,
    error). `items` are a map's item outputs in order. `answer` is what a person answered at a gate. A model
    whose output is the run's answer may ask for more nodes `replans` more times; `objections` say what was wrong with
    its last wish. `left` is what the run's budget has left for a model call with all its attempts: `tokens`, and `cost`
    in millionths of a dollar. `epoch` is 2 once a whole plan has taken the place of the beginning that ran first.
    """

    run: str
    plan: Digest
    nodes: tuple[NodePath, ...]
    refs: dict[str, Digest] = Field(default_factory=dict)
    lost: dict[str, tuple[str, str | None]] = Field(default_factory=dict)
    items: tuple[Digest | None, ...] = ()
    answer: JsonValue = None
    replans: int = 0
    objections: tuple[str, ...] = ()
    left: dict[str, int] = Field(default_factory=dict)
    epoch: int = 1


class NodeError(Message):
    """Why a node failed: a type to test for and a sentence to read. `again` asks for another start, alone."""

    type: str
    message: str
    again: bool = False


class NodeReply(Message):
    """A node's outcome: the digest of its stored output with size, wanted facts and a preview, or an error.

    `value` is the output itself where the run's answer is made of it and it is small. With `more` the output is no
    answer but a request for more nodes.
    """

    ref: Digest | None = None
    size: int = 0
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    preview: str = ""
    value: JsonValue = None
    has_value: bool = False
    skipped: bool = False
    more: Literal["", "replan", "calls"] = ""
    attempt: int = 1
    usage: Usage = NO_USAGE
    error: NodeError | None = None


class GroupReply(Message):
    """One reply a node, in the order of the call. A node cut off by a cancellation has an error with `again`."""

    nodes: tuple[NodeReply, ...]


class Evidence(Message):
    """What a mark `[n]` in the answer stands on."""

    n: int
    node: str = ""
    claim: str = ""
    source: str = ""
    quote: str = ""


class ConcludeCall(Message):
    """Binds the plan's answer from stored outputs; parts without one give null."""

    run: str
    plan: Digest
    refs: dict[str, Digest] = Field(default_factory=dict)


class Conclusion(Message):
    """The answer, at most 64 KB; a longer one is cut with a mark and `ref` names the whole.

    `partial` says that the answer does not tell all that was asked.
    """

    answer: JsonValue = None
    evidence: tuple[Evidence, ...] = ()
    partial: bool = False
    ref: Digest | None = None


class SubagentRequest(Message):
    """What a sub-agent is started with: a run request. What others said stays out of its goal, which names it."""

    request: dict[str, JsonValue]


PREPARE = Call("prepare", PrepareCall, PreparedRun)
PLAN = Call("plan", PlanCall, PlanResult)
CHECK_PLAN = Call("check_plan", CheckCall, CheckResult)
LOAD_PLAN = Call("load_plan", LoadCall, CheckResult)
CONCLUDE = Call("conclude", ConcludeCall, Conclusion)
TOOL = Call("tool", NodeCall, GroupReply)
LLM = Call("llm", NodeCall, GroupReply)
JOIN = Call("join", NodeCall, GroupReply)
MAP = Call("map", NodeCall, GroupReply)
PREPARE_AGENT = Call("prepare_agent", NodeCall, SubagentRequest)
AGENT = Call("agent", NodeCall, GroupReply)
GATE = Call("gate", NodeCall, GroupReply)
GROUP = Call("group", NodeCall, GroupReply)
CALLS = (PREPARE, PLAN, CHECK_PLAN, LOAD_PLAN, CONCLUDE, TOOL, LLM, JOIN, MAP, GATE, PREPARE_AGENT, AGENT, GROUP)
