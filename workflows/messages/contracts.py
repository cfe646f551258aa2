"""The types that a workflow and its activities exchange.

Typed references name the activities here, because workflow code must not import I/O and a workflow
worker need not have the tools installed. A test holds every reference to exactly one registered
activity of the same types.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError

from sennit.workflows.messages.message import Digest, Message, NodePath, RunName
from sennit.workflows.messages.node_calls import (
    AgentNodeCall,
    AgentsCall,
    AnswersCall,
    GateNodeCall,
    GroupCall,
    JoinNodeCall,
    LlmNodeCall,
    PrefetchCall,
    ProgramNodeCall,
    ToolNodeCall,
    WriteNodeCall,
)
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.language.limits import NO_USAGE, Limits, Usage
from sennit.workflows.plan.scheduling.events import Question, TaskNews, WriteStatus
from sennit.workflows.plan.speculation.follower import Speculation

In = TypeVar("In", bound=BaseModel, covariant=True)
Out = TypeVar("Out", bound=BaseModel, covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[In, Out]):
    """An activity by name, with the one object it takes and the one it returns."""

    name: str
    takes: type[In]
    gives: type[Out]


class PrepareCall(Message):
    """Opens a run."""

    run: str
    """What its artifacts lie below."""
    first_run: str
    """The first run id of its chain."""
    request: RunRequest
    scheduled: bool = False
    """Whether the run was started by no person."""
    priced_above: bool = False
    """Whether the budget of the run above it limits what its models cost."""

    @property
    def priced(self) -> bool:
        """Whether the run's budget limits what its models cost."""
        has_limit = self.request.budget is not None and self.request.budget.cost_usd is not None
        return has_limit or self.priced_above


class PlanPage(Message):
    """Nodes with which a plan goes on. Of those that a tool loop calls, the last one takes over the
    end of the turn that has added them.
    """

    plan: Digest
    """The plan where the nodes lie."""
    base: Digest = ""
    """The plan that goes on."""
    known: tuple[str, ...] = ()
    """Nodes of the run that these name, by their ids."""
    specs: str
    """A packed execution plan. Its indices count first the `known` nodes and then its own. If it
    has an answer, that is the run's from now on.
    """
    facts: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """Facts of known nodes that only these nodes ask for."""
    fallbacks: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """The same of known nodes' fallback values."""


class ProgramPage(Message):
    """What an advance of a program has come to: what its script has called, and for what it waits
    now. Calls have the names that the script gives them.
    """

    plan: Digest
    """The plan where the calls lie."""
    specs: str
    """The calls, and the tasks that have begun, as a packed execution plan."""
    session: Digest
    """Where the script stands, for the next advance."""
    waits: tuple[str, ...] = ()
    """The calls for which the script waits beside those for which it waited before."""
    past: tuple[str, ...] = ()
    """The calls for which the script waited before, and does not any more:
    for all others it does.
    """
    given_up: tuple[str, ...] = ()
    """The calls that the script has cancelled."""
    ends: str = ""
    """How calls have ended that the advance has made itself, packed; see `ends.py`."""
    end: "NodeReply | None" = None
    """How the script has ended, if it has come to its end behind these
    calls, in the same activity.
    """


class CheckResult(Message):
    """The verdict on a plan: the plan, or what is wrong with it."""

    plan: Digest = ""
    execution_plan: str = ""
    """The plan as the scheduler sees it, packed."""
    problems: tuple[str, ...] = ()
    """One sentence each."""
    warnings: tuple[str, ...] = ()
    page: PlanPage | None = None
    """What follows the base, if the plan goes on from there unchanged."""
    forecast: str = ""
    """What the plan may take, if a person is asked about it before it starts."""
    awaits: tuple[str, ...] = ()
    """Old nodes whose facts the plan needs, but whose outputs did not come with the call."""


class PreparedRun(Message):
    """What a run is bound to, and what it has to know of its workers."""

    run_context: Digest
    """The artifact with the run's tools, inputs, documents and models."""
    planner: str = ""
    """The task queue of the planner's model."""
    streams: bool = False
    """Whether the planner sends the beginning of its plan while it writes the rest."""
    checked: CheckResult | None = None
    """The verdict on the request's own plan."""
    attributes: tuple[str, ...] = ()
    """The search attributes that the namespace has."""
    rates: dict[str, int] = Field(default_factory=dict)
    """The calls a minute of each model queue, where they are configured."""
    workers: dict[str, int] = Field(default_factory=dict)
    """How many serve a task queue, where they are several."""
    timings: dict[str, int] = Field(default_factory=dict)
    """What workers have measured of tools that do not declare their time, in milliseconds."""
    budget: Limits | None = None
    """The run's budget, where the workers bound it by more than the run itself does."""
    bounds: tuple[str, ...] = ()
    """A sentence on each limit of it that is not the run's own."""
    ceilings: Limits | None = None
    """What a person may raise each limit of it to at most. A limit that is
    absent has no ceiling.
    """
    learns: bool = False
    """Whether its workers note what runs call, once they are over."""
    has_quota: bool = False
    """Whether the run needs a place in the quota of its namespace before it begins."""
    speculation: Speculation | None = None
    """Which calls the run may make early, if it may make any."""


class PlanCall(Message):
    """Asks a planner for a plan of the run's goal. The plan that one of the `origins`
    began with is taken over.
    """

    run: str
    run_context: Digest
    problems: tuple[str, ...] = ()
    """What is wrong with the planner's last draft."""
    draft: Digest = ""
    """That draft, as a plan."""
    text: Digest = ""
    """What the planner wrote."""
    stream: bool = False
    """Whether the beginning of the plan is sent in signals while the rest is written."""
    rejections: tuple[str, ...] = ()
    """What people have said of its plans so far, which they have rejected."""
    origins: tuple[RunName, ...] = ()
    today: str = ""
    """The day on which the run began."""
    budget: Limits | None = None
    """What the run may spend."""
    checks: bool = False
    """Whether the draft is checked as well, as far as that works without delay."""
    tenant: str = ""
    """Of whose earlier runs the planner is told."""


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

    `text` is the planner's own text, if another attempt may correct it, and `beginning` what people
    are shown of it. `problems` are errors in the text itself; with any, the draft is not complete.
    """

    draft: Digest
    usage: Usage = NO_USAGE
    text: Digest = ""
    beginning: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    checked: CheckResult | None = None
    """The verdict on the draft, if the call asks for it and it was to be had."""


class CheckCall(Message):
    """Asks for the verdict on what is to become of the plan `base`, which has run so far."""

    run: str
    run_context: Digest
    base: Digest = ""


class DraftCall(CheckCall):
    """Checks a whole plan: a new one or, with `base`, one to go on with. `refs` are outputs whose
    facts it asks for. A plan that a person has sent is in `plan`, and not in the store yet.
    """

    draft: Digest = ""
    plan: dict[str, JsonValue] | None = None
    refs: dict[str, Digest] = Field(default_factory=dict)


class ReplanCall(DraftCall):
    """Checks what a joiner wants to add."""


class ToolLoopCall(CheckCall):
    """Checks the tool calls that the model of `node` asks for in `draft`."""

    draft: Digest
    node: NodePath


class ScriptCall(CheckCall):
    """Checks another script for the program `node`, which comes back as a
    plan that has only that.
    """

    node: NodePath
    script: str
    repeat_writes: bool = False


class AnswerCall(CheckCall):
    """Checks an answer that a person gives in the place of the call `node`."""

    node: NodePath
    answer: JsonValue


class LoadCall(Message):
    """Asks for the execution_plan of a plan checked earlier in this run."""

    run: str
    plan: Digest


class LedgerCall(Message):
    """Asks the ledger of effects which writes of a run have begun, and what became of them."""

    run: str


class LedgerLine(Message):
    """What became of a write: its node's path and generation, and what the node is known by
    whatever its path. A write of a sub-agent is told by its path `below` the node.
    """

    node: str
    call: str = ""
    generation: int = 1
    below: str = ""
    status: WriteStatus


class LedgerReply(Message):
    """The writes of a run, in the order in which they began."""

    lines: tuple[LedgerLine, ...] = ()


NOT_RUN = "NotRun"
"""The error of a member of a group that had not begun, or was cut off."""


class NodeError(Message):
    """Why a node failed: a type to test for and a sentence to read. `again` asks for another start,
    alone; with the type `NotRun` it had none, and may share the next one.
    """

    type: str
    message: str
    again: bool = False


class NodeReply(Message):
    """An activity's reply for one node: its stored output, a request for more nodes, a
    question, or an error.

    The scheduler decides by the part of it that is an `Outcome` (`workflows/run/outcomes.py`).
    """

    ref: Digest | None = None
    """The reference to the output."""
    size: int = 0
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    preview: str = ""
    value: JsonValue = None
    """The output itself, if it is small and part of the run's answer."""
    has_value: bool = False
    skipped: bool = False
    more: Literal["", "replan", "calls", "program"] = ""
    """Who asks for more nodes, if the output is a request for them."""
    page: ProgramPage | None = None
    """What the script of a program has called."""
    attempt: int = 1
    usage: Usage = NO_USAGE
    paid: Usage = NO_USAGE
    """What the run has paid for it that this one has taken it over from."""
    question: Question | None = None
    """What a person has to decide first: the node has done nothing yet."""
    written: Digest = ""
    """The arguments of a write, by their digest, if a person has changed them."""
    taken_over: bool = False
    """Whether it comes from a run that this one forks."""
    at: int = 0
    """When a program's call ended, in milliseconds: in the run that it was
    taken over from, if it was.
    """
    warnings: tuple[str, ...] = ()
    """Of the whole run."""
    log: tuple[str, ...] = ()
    """What an advance of a program has logged."""
    tasks: tuple[TaskNews, ...] = ()
    """What it tells of tasks, in order."""
    millis: int = 0
    """How long a tool's call took by itself."""
    span: tuple[int, int] = (0, 0)
    """When the call of a tool or a model began and ended, in milliseconds by the server's time."""
    early: str = ""
    """The name of the call whose output this one has taken over; `millis` is then
    how long that one took.
    """
    needs: int = 0
    """The tokens of a prompt that was not sent, or not answered to the end, because the grant was
    too small for it. The call starts again with a larger one.
    """
    error: NodeError | None = None


class PrefetchReply(Message):
    """How a call ended that was made early. It never fails: with a `problem` there is no output."""

    problem: str = ""
    usage: Usage = NO_USAGE


class GroupReply(Message):
    """One reply for each node, in the order of the call, and one for the advance that follows, if
    it was made. A node that was cancelled has an error with `again`.
    """

    nodes: tuple[NodeReply, ...]

    def ends(self, counts: Collection[int]) -> tuple[NodeReply, ...]:
        """Return how the units ended; none if this says nothing of one, or is not for that many: no
        activity of ours gives that, so somebody has completed it by hand.
        """
        if len(self.nodes) not in counts:
            return ()
        for node in self.nodes:
            if not (
                node.error or node.ref or node.skipped or node.question or node.page or node.needs
            ):
                return ()
        return self.nodes


class GroupProgress(Message):
    """What an activity of several nodes tells of those that have ended while others go
    on: their places in the call that `call` is the digest of, and a reply each. `attempt`
    is that of the activity.
    """

    call: Digest
    attempt: int
    places: tuple[int, ...]
    replies: tuple[NodeReply, ...]


class AskedCall(Message):
    """A call that the model of a node has asked for in a reply that still comes, from the activity
    of that node. `arguments` are an artifact.
    """

    node: NodePath
    generation: int
    tool: str
    arguments: Digest


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

    `partial` says that the answer covers only a part of the goal, `warnings`
    what of it is not proven.
    """

    answer: JsonValue = None
    evidence: tuple[Evidence, ...] = ()
    partial: bool = False
    ref: Digest | None = None
    warnings: tuple[str, ...] = ()


def conclusion_of(output: Any) -> Conclusion:
    """Return the answer and evidence of a joiner's output; any other output is the answer
    itself, without evidence.

    `partial: true` beside them says that the answer covers only a part of the goal,
    `warnings` what is not proven.
    """
    if isinstance(output, dict) and set(output) - {"partial", "warnings"} == {"answer", "evidence"}:
        try:
            evidence = tuple(Evidence.model_validate(item) for item in output["evidence"])
            warnings = tuple(output.get("warnings", ()))
            partial = output.get("partial") is True
            return Conclusion(
                answer=output["answer"], evidence=evidence, partial=partial, warnings=warnings
            )
        except (ValidationError, TypeError):
            return Conclusion(answer=output)
    return Conclusion(answer=output)


class SubagentRequest(Message):
    """The run request of a sub-agent. Untrusted text is not part of its goal, which refers to it by
    name. It is not started if its result is `taken` over from a run that this one forks.
    """

    request: dict[str, JsonValue] = Field(default_factory=dict)
    taken: NodeReply | None = None


class PreparedAgent(SubagentRequest):
    """A sub-agent whose run can begin with its work: the run has been `prepared` already. With
    an `error` it is not started. One that has none of all these did not fit into the reply,
    and is asked for again.
    """

    prepared: PreparedRun | None = None
    error: NodeError | None = None

    @property
    def is_left_out(self) -> bool:
        return not self.request and self.taken is None and self.error is None


class PreparedAgents(Message):
    """Sub-agents in the order of the call, at least the first of them, and what all
    of them have in common.
    """

    agents: tuple[PreparedAgent, ...]
    request: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields of each one's request."""
    attributes: tuple[str, ...] = ()
    rates: dict[str, int] = Field(default_factory=dict)
    workers: dict[str, int] = Field(default_factory=dict)
    timings: dict[str, int] = Field(default_factory=dict)
    """These four as in a `PreparedRun`."""


PREPARE = Call("prepare", PrepareCall, PreparedRun)
PLAN = Call("plan", PlanCall, PlanResult)
CHECK_PLAN = Call("check_plan", DraftCall, CheckResult)
CHECK_REPLAN = Call("check_replan", ReplanCall, CheckResult)
CHECK_TOOL_CALLS = Call("check_tool_calls", ToolLoopCall, CheckResult)
CHECK_SCRIPT = Call("check_script", ScriptCall, CheckResult)
CHECK_ANSWER = Call("check_answer", AnswerCall, CheckResult)
LEDGER = Call("ledger", LedgerCall, LedgerReply)
LOAD_PLAN = Call("load_plan", LoadCall, CheckResult)
CONCLUDE = Call("conclude", ConcludeCall, Conclusion)
TOOL = Call("tool", ToolNodeCall, GroupReply)
WRITE = Call("write", WriteNodeCall, GroupReply)
LLM = Call("llm", LlmNodeCall, GroupReply)
JOIN = Call("join", JoinNodeCall, GroupReply)
PREPARE_AGENT = Call("prepare_agent", AgentNodeCall, SubagentRequest)
AGENT = Call("agent", AgentNodeCall, GroupReply)
PREPARE_AGENTS = Call("prepare_agents", AgentsCall, PreparedAgents)
ANSWERS = Call("answers", AnswersCall, GroupReply)
PROGRAM = Call("program", ProgramNodeCall, GroupReply)
GATE = Call("gate", GateNodeCall, GroupReply)
GROUP = Call("group", GroupCall, GroupReply)
PREFETCH = Call("prefetch", PrefetchCall, PrefetchReply)
CALLS = (
    PREPARE, PLAN, CHECK_PLAN, CHECK_REPLAN, CHECK_TOOL_CALLS, CHECK_SCRIPT, CHECK_ANSWER, LEDGER,
    LOAD_PLAN, CONCLUDE, TOOL, WRITE, LLM, JOIN, PROGRAM, GATE, PREPARE_AGENT, AGENT,
    PREPARE_AGENTS, ANSWERS,
    GROUP, PREFETCH,
)  # fmt: skip
