"""The types that a workflow and its activities exchange.

Typed references name the activities here, because workflow code must not import I/O and a workflow worker need not have
the tools installed. A test holds every reference to exactly one registered activity of the same types.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError

from sennit.workflows.messages.message import Digest, Message, NodePath, RunName
from sennit.workflows.messages.node_calls import (
    AgentNodeCall,
    GateNodeCall,
    GroupCall,
    JoinNodeCall,
    LlmNodeCall,
    MapNodeCall,
    ProgramNodeCall,
    ToolNodeCall,
    WriteNodeCall,
)
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.nodes import ApprovalPolicy, OnFailure
from sennit.workflows.plan.scheduling.events import Question

In = TypeVar("In", bound=BaseModel, covariant=True)
Out = TypeVar("Out", bound=BaseModel, covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[In, Out]):
    """An activity by name, with the one object it takes and the one it returns."""

    name: str
    takes: type[In]
    gives: type[Out]


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
    by their ids.
    """

    plan: Digest
    base: Digest = ""
    known: tuple[str, ...] = ()
    specs: str
    facts: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    fallbacks: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    given_up: tuple[str, ...] = ()


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
    """Asks for the verdict on what is to become of the plan `base`, which has run so far."""

    run: str
    run_context: Digest
    base: Digest = ""


class DraftCall(CheckCall):
    """Checks a whole plan: a new one or, with `base`, one to go on with. `refs` are outputs whose facts it asks for."""

    draft: Digest
    refs: dict[str, Digest] = Field(default_factory=dict)


class ReplanCall(DraftCall):
    """Checks what a joiner wants to add."""


class ToolLoopCall(CheckCall):
    """Checks the tool calls that the model of `node` asks for in `draft`."""

    draft: Digest
    node: NodePath


class ScriptCall(CheckCall):
    """Checks another script for the program `node`, which comes back as a plan that has only that."""

    node: NodePath
    script: str


class AnswerCall(CheckCall):
    """Checks an answer that a person gives in the place of the call `node`."""

    node: NodePath
    answer: JsonValue


class LoadCall(Message):
    """Asks for the execution_plan of a plan checked earlier in this run."""

    run: str
    plan: Digest


NOT_RUN = "NotRun"
"""The error of a member of a group that had not begun, or was cut off."""


class NodeError(Message):
    """Why a node failed: a type to test for and a sentence to read. `again` asks for another start, alone; with the
    type `NotRun` it had none, and may share the next one.
    """

    type: str
    message: str
    again: bool = False


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
    question: Question | None = None
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


class GroupProgress(Message):
    """What an activity of several nodes tells of those that have ended while others go on: their places in the call
    that `call` is the digest of, and a reply each. `attempt` is that of the activity.
    """

    call: Digest
    attempt: int
    places: tuple[int, ...]
    replies: tuple[NodeReply, ...]


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
CHECK_PLAN = Call("check_plan", DraftCall, CheckResult)
CHECK_REPLAN = Call("check_replan", ReplanCall, CheckResult)
CHECK_TOOL_CALLS = Call("check_tool_calls", ToolLoopCall, CheckResult)
CHECK_SCRIPT = Call("check_script", ScriptCall, CheckResult)
CHECK_ANSWER = Call("check_answer", AnswerCall, CheckResult)
LOAD_PLAN = Call("load_plan", LoadCall, CheckResult)
CONCLUDE = Call("conclude", ConcludeCall, Conclusion)
TOOL = Call("tool", ToolNodeCall, GroupReply)
WRITE = Call("write", WriteNodeCall, GroupReply)
LLM = Call("llm", LlmNodeCall, GroupReply)
JOIN = Call("join", JoinNodeCall, GroupReply)
MAP = Call("map", MapNodeCall, GroupReply)
PREPARE_AGENT = Call("prepare_agent", AgentNodeCall, SubagentRequest)
AGENT = Call("agent", AgentNodeCall, GroupReply)
PROGRAM = Call("program", ProgramNodeCall, GroupReply)
GATE = Call("gate", GateNodeCall, GroupReply)
GROUP = Call("group", GroupCall, GroupReply)
CALLS = (
    PREPARE, PLAN, CHECK_PLAN, CHECK_REPLAN, CHECK_TOOL_CALLS, CHECK_SCRIPT, CHECK_ANSWER, LOAD_PLAN, CONCLUDE,
    TOOL, WRITE, LLM, JOIN, MAP, PROGRAM, GATE, PREPARE_AGENT, AGENT,
    GROUP,
)  # fmt: skip
