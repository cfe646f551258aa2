"""The types that a workflow and its activities exchange.

Typed references name the activities here, because workflow code must not import I/O and a workflow worker need not have
the tools installed. A test holds every reference to exactly one registered activity of the same types.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.nodes import ApprovalPolicy, Fuse, OnFailure

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)

Digest = str
NodePath = str
RunName = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,100}$")]
"""What the artifacts of a run are below. One of another form could be a path into another namespace."""


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
    """Opens a run. `run` is the home of its artifacts, and `first_run` the first run id of its chain. `given` is what
    the goal of a sub-agent names, as `RUN/DIGEST` among the artifacts of the run above. `grant` is the secret of a run
    that asks for less approval. `origins` are the homes of the artifacts of the runs that this one forks, the latest
    first. `on_failure` goes before that of the plan, and says whether the run waits for tools that are not there now.
    The budget of a `priced` run limits what its models cost. A `scheduled` run was started by no person.
    """

    run: str
    first_run: str
    goal: str = ""
    plan: dict[str, JsonValue] | None = None
    plan_packed: str | None = None
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    docs: str | None = None
    tools: tuple[str, ...] | None = None
    model: str = ""
    approval: ApprovalPolicy = "writes"
    approve_plan: bool = False
    grant: str = ""
    given: str = ""
    origins: tuple[RunName, ...] = ()
    on_failure: OnFailure | None = None
    priced: bool = False
    scheduled: bool = False


class PlanPage(Message):
    """Nodes with which the plan `base` goes on: the plan, by its digest, where they lie.

    `specs` is a packed execution plan, whose indices count first the nodes that are `known` to the run, by their ids,
    and then its own. If it has an answer, that is the run's from now on. `facts` are those of known nodes that only
    these ask for; `fallbacks` say that of known nodes' fallback values. For the calls of a program or a tool loop, the
    last node takes over the end of the step or turn that has added them. The program has `given_up` some of its calls,
    by their ids. `ends` are those of calls that its step has made itself, packed; see `ends.py`.
    """

    plan: Digest
    base: Digest = ""
    known: tuple[str, ...] = ()
    specs: str
    facts: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    fallbacks: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    given_up: tuple[str, ...] = ()
    ends: str = ""


class CheckResult(Message):
    """The verdict on a plan: its digest and its packed execution_plan, or problems, one sentence each.

    If the plan goes on from its base, unchanged, there is only the `page` behind that; `awaits` are old nodes whose
    facts it needs, but whose output was not given. For a replan, `why` is the joiner's reason and `tokens` the forecast
    of the new nodes.
    """

    plan: Digest = ""
    execution_plan: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    page: PlanPage | None = None
    awaits: tuple[str, ...] = ()
    why: str = ""
    tokens: int = 0


class PreparedRun(Message):
    """`run_context` is the artifact of what the run is bound to: tools, inputs, documents, models. A planner that
    `streams` sends the beginning of its plan while it writes the rest. `attributes` are the search attributes that the
    namespace has, `rates` the calls a minute of each model queue, where they are configured. `workers` are how
    many serve a task queue, where they are several, and `timings` the milliseconds that workers have measured of tools
    which do not declare their time.
    """

    run_context: Digest
    planner: str = ""
    streams: bool = False
    checked: CheckResult | None = None
    attributes: tuple[str, ...] = ()
    rates: dict[str, int] = Field(default_factory=dict)
    workers: dict[str, int] = Field(default_factory=dict)
    timings: dict[str, int] = Field(default_factory=dict)


class PlanCall(Message):
    """Asks a planner for a plan of the run's goal. After a draft that cannot run, `draft` is that plan, `text` what
    the planner wrote, `problems` what is wrong. With `stream`, the beginning of the plan is sent in signals while
    the rest is written. The plan that one of the `origins` began with is taken over.
    """

    run: str
    run_context: Digest
    problems: tuple[str, ...] = ()
    draft: Digest = ""
    text: Digest = ""
    stream: bool = False
    origins: tuple[RunName, ...] = ()


class PlanDraft(Message):
    """A further part of a plan, checked: each goes on from the previous one of the same attempt.

    `run` is the run of the `PlanCall`; `sequence` counts the drafts of an attempt from 1.
    """

    run: str
    attempt: int
    sequence: int
    page: PlanPage


class PlanResult(Message):
    """A planner's draft in the plan language, not yet checked.

    `text` is the planner's own text, if another attempt may correct it, and `beginning` what people are shown of it.
    `problems` are errors in the text itself; with any, the draft is not complete.
    """

    draft: Digest
    usage: Usage = NO_USAGE
    text: Digest = ""
    beginning: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CheckCall(Message):
    """Checks a draft. With `base`, the plan that has run so far, the draft is a whole plan to go on with, or an
    addition: a replan, or the tool calls that the model of `node` asks for. `refs` maps nodes that have ended to their
    outputs. Or another `script` is checked for the program `node`, which comes back as a plan that has only that; or an
    `answer` in the place of the call `node`.
    """

    run: str
    run_context: Digest
    draft: Digest = ""
    base: Digest = ""
    adds: Literal["", "replan", "calls", "script", "answer"] = ""
    script: str = ""
    answer: JsonValue = None
    node: str = ""
    refs: dict[str, Digest] = Field(default_factory=dict)


class LoadCall(Message):
    """Asks for the execution_plan of a plan checked earlier in this run."""

    run: str
    plan: Digest


class WriteApproval(Message):
    """A person's word on a write: for the digest of its arguments and of what it replaces, with `args` changed."""

    digest: Digest
    target: Digest = ""
    args: dict[str, JsonValue] = Field(default_factory=dict)


class NodeCall(Message):
    """Runs nodes of one plan: one as a rule, several as a group.

    `nodes` are node paths with their generation (`n7`, `n7~2`, `m[17]`). `refs` maps the nodes whose outputs they read
    to artifact digests, or to the manifests of joins; the activity binds arguments from there. `repeated` names those
    that are in a later generation. `lost` maps inputs without a value to (status, error). `items` are a map's item
    outputs in order. A node that is `answered` does nothing: a person has given its output as `answer`. A model whose
    output is the run's answer may ask for more nodes `replans` more times; `objections` say what was wrong with its
    last request.
    `left` is what the run's budget has left for a model call with all its attempts, or for a program: `tokens`,
    `calls`, and `cost` in millionths of a dollar. `epoch` is 2 after a whole plan has replaced the streamed beginning.
    With `asks` the node only puts together what it asks a person, in about `room` characters, 0 for the usual. A write
    that needs approval also asks, and does nothing, if it is not what is `approved`. `then` is the step of a program
    that follows in the same activity if the node has a value. What the `origins` of the run have made is taken over.
    `ends` is when the inputs of a program's step ended, and a program began for the first time, in milliseconds; with
    `since` it began again then. A write that `resumes` goes on after an activity whose worker was lost. One that
    `looks_up` calls nothing: its reply is what the ledger of effects has of it, else the error `NotWritten` or
    `UnknownOutcome`. It was `tried` so often in activities before this one. A step of a program makes short calls
    itself as `fuse` says, with what is `usual` for tools in milliseconds; not if it `repeats`, because the run may know
    how its calls have ended; and not if it `follows` a call in one activity.
    """

    run: str
    plan: Digest
    nodes: tuple[NodePath, ...]
    refs: dict[str, Digest] = Field(default_factory=dict)
    repeated: tuple[NodePath, ...] = ()
    lost: dict[str, tuple[str, str | None]] = Field(default_factory=dict)
    items: tuple[Digest | None, ...] = ()
    answer: JsonValue = None
    answered: bool = False
    replans: int = 0
    objections: tuple[str, ...] = ()
    left: dict[str, int] = Field(default_factory=dict)
    epoch: int = 1
    asks: bool = False
    room: int = 0
    approved: WriteApproval | None = None
    origins: tuple[RunName, ...] = ()
    resumes: bool = False
    looks_up: bool = False
    tried: int = 0
    ends: dict[str, int] = Field(default_factory=dict)
    since: int = 0
    then: "NodeCall | None" = None
    fuse: Fuse = "off"
    usual: dict[str, int] = Field(default_factory=dict)
    repeats: bool = False
    follows: bool = False


NOT_RUN = "NotRun"
"""The error of a member of a group that had not begun, or was cut off."""


class NodeError(Message):
    """Why a node failed: a type to test for and a sentence to read. `again` asks for another start, alone; with the
    type `NotRun` it had none, and may share the next one.
    """

    type: str
    message: str
    again: bool = False


class NodeQuestion(Message):
    """What a node asks a person, with every value in place; for a write with the digests that an approval is for."""

    text: str
    digest: Digest = ""
    target: Digest = ""


class NodeReply(Message):
    """A node's outcome: the reference to its stored output with size, facts and a preview, or an error.

    `value` is the output itself if it is small and part of the run's answer. With `more` the output is not an answer
    but a request for more nodes; those of a program are in `page`. With a `question` the node has done nothing yet.
    `written` is the digest of arguments that a person has changed. What was `taken_over` comes from a run that this
    one forks. `at` is when it ended, in milliseconds, if the step that follows has been told that. `warnings` are for
    the whole run. `millis` is how long a tool's call took by itself.
    """

    ref: Digest | None = None
    size: int = 0
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    preview: str = ""
    value: JsonValue = None
    has_value: bool = False
    skipped: bool = False
    more: Literal["", "replan", "calls", "program"] = ""
    page: PlanPage | None = None
    attempt: int = 1
    usage: Usage = NO_USAGE
    question: NodeQuestion | None = None
    written: Digest = ""
    taken_over: bool = False
    at: int = 0
    warnings: tuple[str, ...] = ()
    millis: int = 0
    error: NodeError | None = None


class GroupReply(Message):
    """One reply for each node, in the order of the call, and one for the step that follows, if it has run. A node that
    was cancelled has an error with `again`.
    """

    nodes: tuple[NodeReply, ...]

    def ends(self, counts: Collection[int]) -> tuple[NodeReply, ...]:
        """Return how the units ended; none if this says nothing of one, or is not for that many: no activity of ours
        gives that, so somebody has completed it by hand.
        """
        says = [each.error or each.ref or each.skipped or each.question or each.page for each in self.nodes]
        return self.nodes if len(self.nodes) in counts and all(says) else ()


class Evidence(Message):
    """The source of a mark `[n]` in the answer."""

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
    """The answer, at most 64 KB. A longer one is cut with a mark, and `ref` names the whole.

    `partial` says that the answer covers only a part of the goal, `warnings` what of it is not proven.
    """

    answer: JsonValue = None
    evidence: tuple[Evidence, ...] = ()
    partial: bool = False
    ref: Digest | None = None
    warnings: tuple[str, ...] = ()


def conclusion_of(output: Any) -> Conclusion:
    """Return the answer and evidence of a joiner's output; any other output is the answer itself, without evidence.

    `partial: true` beside them says that the answer covers only a part of the goal, `warnings` what is not proven.
    """
    if isinstance(output, dict) and set(output) - {"partial", "warnings"} == {"answer", "evidence"}:
        try:
            evidence = tuple(Evidence.model_validate(item) for item in output["evidence"])
            warnings = tuple(output.get("warnings", ()))
            partial = output.get("partial") is True
            return Conclusion(answer=output["answer"], evidence=evidence, partial=partial, warnings=warnings)
        except (ValidationError, TypeError):
            return Conclusion(answer=output)
    return Conclusion(answer=output)


class SubagentRequest(Message):
    """The run request of a sub-agent. Untrusted text is not part of its goal, which refers to it by name. It is not
    started if its result is `taken` over from a run that this one forks.
    """

    request: dict[str, JsonValue] = Field(default_factory=dict)
    taken: NodeReply | None = None


PREPARE = Call("prepare", PrepareCall, PreparedRun)
PLAN = Call("plan", PlanCall, PlanResult)
CHECK_PLAN = Call("check_plan", CheckCall, CheckResult)
LOAD_PLAN = Call("load_plan", LoadCall, CheckResult)
CONCLUDE = Call("conclude", ConcludeCall, Conclusion)
TOOL = Call("tool", NodeCall, GroupReply)
WRITE = Call("write", NodeCall, GroupReply)
LLM = Call("llm", NodeCall, GroupReply)
JOIN = Call("join", NodeCall, GroupReply)
MAP = Call("map", NodeCall, GroupReply)
PREPARE_AGENT = Call("prepare_agent", NodeCall, SubagentRequest)
AGENT = Call("agent", NodeCall, GroupReply)
PROGRAM = Call("program", NodeCall, GroupReply)
GATE = Call("gate", NodeCall, GroupReply)
GROUP = Call("group", NodeCall, GroupReply)
CALLS = (
    PREPARE, PLAN, CHECK_PLAN, LOAD_PLAN, CONCLUDE, TOOL, WRITE, LLM, JOIN,
    MAP, PROGRAM, GATE, PREPARE_AGENT, AGENT, GROUP,
)  # fmt: skip
