"""From a checked plan to the execution plan of the scheduler: edges by index, queues,
times, effects, summaries.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Any
from unicodedata import normalize

from sennit.workflows.plan.compile.execution_plan import (
    EXCLUSIVE,
    SHARED,
    ExecutionPlan,
    NodeSpec,
    shown_script,
)
from sennit.workflows.plan.compile.forecast import ranks
from sennit.workflows.plan.compile.resource_locks import locks_of
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.conditions import (
    Condition,
    ConditionError,
    compiled_tests,
    holds,
)
from sennit.workflows.plan.language.facts import MISSING, FactTooLarge, facts_of
from sennit.workflows.plan.language.limits import CALL_SECONDS, tokens_in
from sennit.workflows.plan.language.nodes import (
    AgentCall,
    ApprovalPolicy,
    EndedCalls,
    Fallback,
    Instead,
    JoinNode,
    MapNode,
    ModelCall,
    Node,
    OnFailure,
    PassedTime,
    Plan,
    Quorum,
    ToolCall,
    TurnCalls,
    Work,
)
from sennit.workflows.plan.language.references import (
    BindError,
    Reference,
    as_text,
    parse_reference,
    parse_status_reference,
    references_in,
    resolve,
)
from sennit.workflows.plan.language.summary import summary_of
from sennit.workflows.plan.language.text import text_bytes

Keep = Callable[[Any], tuple[str, int]]
Fallen = tuple[str, int, dict[str, Any]]

_NAME = re.compile(r"\w+")

GATE_SECONDS = 86_400.0
AGENT_SECONDS = 86_400.0
AGENT_CALLS = 2
"""A sub-agent calls a model for its plan, and mostly for its answer."""
TOOL_SECONDS = 30.0
ADVANCE_SECONDS = 60.0
SYSTEM_TOKENS = 300
"""About what Sennit says to a model beside the prompt of a plan."""
MODEL_ATTEMPTS = 4
READ_ATTEMPTS = 4
WRITE_ATTEMPTS = 2


class PlanCompiler:
    """Compiles one plan that has passed every check.

    `docs` is the run's folder of documents, `inputs` are the bound inputs, `goal` the run's where
    it is not the plan's. `keep` stores a fallback value and returns its digest and size.
    """

    def __init__(
        self,
        plan: Plan,
        tools: dict[str, dict[str, Any]],
        *,
        inputs: dict[str, Any],
        keep: Keep,
        queues: Callable[[Node], str],
        prices: Callable[[ModelCall | AgentCall], int] = lambda _: 0,
        replies: Callable[[ModelCall], int] = lambda _: 0,
        approval: ApprovalPolicy,
        goal: str | None = None,
        docs: str | None = None,
    ) -> None:
        self._plan = plan
        self._tools = tools
        if goal is None:
            goal = plan.goal
        self._values = {"input": inputs, "goal": goal}
        self._keep = keep
        self._queues = queues
        self._prices = prices
        self._replies = replies
        self._approval = approval
        self._index = plan.places
        self._nodes = plan.by_id
        self._wanted = dependencies.facts_wanted(plan)
        self._docs = docs

    def execution_plan(
        self, on_failure: OnFailure | None, links: Sequence[dependencies.Links] | None = None
    ) -> ExecutionPlan:
        """Return the execution plan. `on_failure` of the request wins over the plan's. `links` are
        what the nodes depend on, if that is known.
        """
        plan = self._plan
        if not links:
            links = list(map(dependencies.links_of, plan.nodes))
        specs = list(map(self._spec, plan.nodes, links))
        for spec, rank in zip(specs, ranks(plan, links), strict=True):
            spec.rank = rank
            if spec.successor >= 0:
                specs[spec.successor].is_successor = True

        # The answer is the output of one node, or it is put together of parts of several.
        answer = dependencies.answer_of(plan)
        nodes = self._nodes_in(answer)
        is_direct = False
        if isinstance(answer, str) and len(nodes) == 1:
            whole = parse_reference(answer)
            is_direct = whole is not None and not whole.path
        on_failure = on_failure or plan.on_failure or "park"
        return ExecutionPlan(specs, nodes, on_failure, plan.fuse or "auto", is_direct)

    def _nodes_in(self, answer: Any) -> list[int]:
        """Return the nodes that an answer refers to, each once."""
        nodes: dict[int, None] = {}
        for reference in references_in(answer):
            if reference.node in self._index:
                nodes[self._index[reference.node]] = None
        return list(nodes)

    def _spec(self, node: Node, links: dependencies.Links) -> NodeSpec:
        summary = summary_of(node, links)
        spec = NodeSpec(node.id, node.kind, summary=summary, queue=self._queues(node))
        spec.needs = self._indices(links.needs)
        spec.watches = self._indices(links.watches)
        spec.inputs = self._indices(links.inputs)
        spec.reads = self._indices(links.reads)
        if node.when is not None:
            spec.when = self._condition(node.when, self._index[node.id])
        spec.priority = getattr(node, "priority", 3)
        self._on_error(spec, node)
        last = dependencies.work_of(node)
        if last is not None:
            self._work(spec, last)
        if node.kind == "program":
            # People see the inputs that a program was given.
            arguments = {name: self._input(value) for name, value in node.arguments.items()}
            shown = node.model_copy(update={"arguments": arguments})
            spec.summary = summary_of(shown, links)
            spec.script = shown_script(node.script)
            spec.timeout = _milliseconds(node.timeout or ADVANCE_SECONDS)
            spec.attempts = READ_ATTEMPTS
        elif node.kind == "llm" and node.inputs:
            spec.policy = "settled"
        elif node.kind == "join":
            join_policy(spec, node)
            if node.turn is not None:
                self._turn(spec, node.turn)
        elif node.kind == "gate":
            spec.question = node.question
            spec.schema = node.answer_schema
            spec.fills = bool(dependencies.bound_texts(node))
            spec.deadline = _milliseconds(node.timeout or GATE_SECONDS)
        elif node.kind == "map":
            self._map(spec, node)
        return spec

    def _turn(self, spec: NodeSpec, turn: TurnCalls) -> None:
        """Annotate the join before a further turn of a tool loop that may close
        before all calls have ended.
        """
        spec.policy = "turn"
        spec.turn_calls = turn.calls
        spec.awaited = self._indices(turn.awaited)
        spec.given_up = self._indices(turn.cancelled)
        spec.quorum = 1
        if isinstance(turn.rule, EndedCalls):
            spec.quorum = turn.rule.quorum
        elif isinstance(turn.rule, PassedTime):
            spec.deadline = _milliseconds(turn.rule.after)

    def _input(self, value: Any) -> Any:
        """Return the input that an argument refers to; any other argument as it stands."""
        if not isinstance(value, str):
            return value
        reference = parse_reference(value)
        if reference is None or reference.node not in self._values:
            return value
        try:
            return resolve(reference, self._values[reference.node])
        except BindError:
            return value

    def _indices(self, names: Iterable[str]) -> list[int]:
        return [self._index[name] for name in names]

    def _reads(self, names: Iterable[str], source: str | None) -> list[int]:
        """Return the nodes whose outputs an activity loads: not those of the `source`
        of a map item by item.
        """
        reads: list[int] = []
        for name in names:
            if name != source:
                reads.append(self._index[name])
        return reads

    def _work(self, spec: NodeSpec, work: ToolCall | ModelCall | AgentCall) -> None:
        locks: dict[str, int] = {}
        for lock in work.locks:
            locks[lock.name] = SHARED
            if lock.mode == "exclusive":
                locks[lock.name] = EXCLUSIVE
        if work.estimate and work.estimate.tokens:
            spec.tokens = work.estimate.tokens

        # What the kind of call says, where the plan says nothing.
        if work.kind == "tool":
            seconds = self._tool(spec, work)
            _add_locks(locks, locks_of(work, self._tools, self._docs))
        elif work.kind == "agent":
            seconds = AGENT_SECONDS
            spec.attempts = 1
            spec.effect = self._effect(work)
            spec.calls = AGENT_CALLS
            spec.price = self._prices(work)
            if work.budget and work.budget.tokens:
                spec.tokens = work.budget.tokens
        else:
            seconds = CALL_SECONDS
            spec.attempts = MODEL_ATTEMPTS
            spec.effect = "read"
            spec.calls = 1
            spec.price = self._prices(work)
            spec.reply = self._replies(work)
            spec.prompt = self._prompt_tokens(work)
            spec.material = work.context.tokens
        spec.locks = list(locks.items())
        spec.timeout = _milliseconds(work.timeout or seconds)
        if work.retry:
            # A write that is not idempotent is never tried more often, whatever the plan asks for.
            is_bounded = spec.attempts == WRITE_ATTEMPTS
            spec.attempts = work.retry.attempts
            if is_bounded:
                spec.attempts = min(spec.attempts, WRITE_ATTEMPTS)

    def _tool(self, spec: NodeSpec, work: ToolCall) -> float:
        """Annotate a call of a tool, and return how many seconds an attempt may take."""
        tool = self._tools.get(work.tool, {})
        spec.tool = work.tool
        spec.effect = tool.get("effect", "read")
        spec.typical = round(1000 * tool.get("typical", 0))
        spec.names_no_resource = bool(work.locks) and not tool.get("resource")
        spec.early = tool.get("early", False)
        if "fresh_for" in tool:
            spec.fresh_for = round(1000 * tool["fresh_for"])
        spec.approval = spec.effect == "write" and self._approval == "writes"
        spec.attempts = READ_ATTEMPTS
        if spec.effect == "write" and not tool.get("idempotent"):
            spec.attempts = WRITE_ATTEMPTS
        seconds: float = tool.get("timeout", TOOL_SECONDS)
        return seconds

    def _prompt_tokens(self, work: ModelCall) -> int:
        """Return about how many tokens a call sends beside the outputs of other nodes: its text,
        with the inputs and the goal that it refers to, and its schema.
        """
        texts = [work.prompt]
        if work.output_schema:
            texts.append(json.dumps(work.output_schema))
        for reference in references_in(work.prompt):
            if reference.node in self._values:
                value = self._input(str(reference))
                texts.append(as_text(value))
        return SYSTEM_TOKENS + tokens_in(sum(map(text_bytes, texts)))

    def _effect(self, work: AgentCall) -> str:
        """Return what a sub-agent may do; it asks for what it writes itself."""
        tools: Iterable[str] = self._tools
        if work.tools is not None:
            tools = work.tools
        if self._may_write(tools):
            return "write"
        return "read"

    def _on_error(self, spec: NodeSpec, node: Node) -> None:
        spec.skip_on_error = node.on_error == "skip"
        if isinstance(node.on_error, str):
            return
        if isinstance(node.on_error, Fallback):
            wanted = self._wanted.get(node.id, [])
            spec.fallback = self._fallback(node.on_error.fallback, wanted)
        elif isinstance(node.on_error, Instead):
            spec.successor = self._index[node.on_error.instead]

    def _fallback(self, value: Any, wanted: list[str]) -> Fallen:
        digest, size = self._keep(value)
        return digest, size, facts_of(value, wanted)

    def _map(self, spec: NodeSpec, node: MapNode) -> None:
        spec.cap = node.max_items
        spec.item_kind = node.do[-1].kind
        for name in node.units[:-1]:
            stage = self._stage(node.at_stage(name), name)
            spec.stages.append(stage)
        source = dependencies.source_of(node, self._nodes)
        if source is not None:
            spec.source = self._index[source]

        # Of a chain, the activity of the last node loads only what that one
        # reads, if it reads anything.
        reads: list[str] = []
        if spec.stages:
            reads = dependencies.links_of(node.at_stage("")).reads
        if not reads:
            reads = dependencies.links_of(node).reads
        spec.reads = self._reads(reads, source)
        over = parse_reference(node.over)
        if over is not None and over.node in self._index:
            length = dependencies.length_fact(over)
            spec.over = (self._index[over.node], length)
        elif over is not None:
            spec.length = self._length(over)
        if node.runs_apart:
            self._run_of_item(spec, node)
        else:
            self._item_on_error(spec, node.do[-1])

    def _run_of_item(self, spec: NodeSpec, node: MapNode) -> None:
        """Annotate a map whose items are runs of their own. Each holds all locks of its nodes,
        because a run knows nothing of the locks in another. The items get equal parts of the
        budget: what a node in `do` is estimated to take is no limit for all of an item.
        """
        spec.item_kind = "agent"
        spec.calls = spec.price = 0
        locks: dict[str, int] = {}
        for _, work in dependencies.works_of(node):
            stage = NodeSpec("", "map")
            self._work(stage, work)
            if stage.effect == "write":
                spec.effect = "write"
            spec.calls += stage.calls
            spec.price = max(spec.price, stage.price)
            _add_locks(locks, stage.locks)
            if work.kind == "llm":
                _add_locks(locks, self._locks_of_tools(work.tools))
                if self._may_write(work.tools):
                    spec.effect = "write"
        for _, program in dependencies.programs_in(node):
            names = _names_in(program.script)
            if "llm" in names or "agent" in names:
                spec.calls += 1
            _add_locks(locks, self._locks_of_tools(names))
            if self._may_write(self._tools_of(program.script)):
                spec.effect = "write"
        spec.locks = list(locks.items())

    def _locks_of_tools(self, names: Iterable[str]) -> list[tuple[str, int]]:
        """Return the locks of calls whose arguments nobody knows yet."""
        locks: dict[str, int] = {}
        for name in dict.fromkeys(names):
            if name in self._tools:
                call = ToolCall(kind="tool", tool=name)
                _add_locks(locks, locks_of(call, self._tools, self._docs))
        return list(locks.items())

    def _tools_of(self, script: str) -> Iterable[str]:
        """Return the tools that a script may call, by the words in its text: to parse a stranger's
        script here could take all of a worker's time.
        """
        names = _names_in(script)
        # A sub-agent has all tools unless the script gives it some, and the names of `tools`
        # may come from anywhere.
        if "agent" in names or "tools" in names:
            return self._tools
        # `llm(..., **settings)` may hold `tools` too.
        if "llm" in names and "**" in script:
            return self._tools
        return names

    def _may_write(self, names: Iterable[str]) -> bool:
        for name in names:
            effect = self._tools.get(name, {}).get("effect")
            if effect == "write":
                return True
        return False

    def _stage(self, node: MapNode, name: str) -> NodeSpec:
        """Return a node of a chain as the scheduler sees it: a map over the same list that
        is no node of the plan.
        """
        links = dependencies.links_of(node)
        named = node.model_copy(update={"id": f"{node.id}.{name}"})
        summary = summary_of(named, links)
        spec = NodeSpec(name, "map", summary=summary, queue=self._queues(node))
        source = dependencies.source_of(node, self._nodes)
        spec.reads = self._reads(links.reads, source)
        [(_, work)] = dependencies.works_of(node)
        self._work(spec, work)
        spec.item_kind = work.kind
        self._item_on_error(spec, node.do[0])
        return spec

    def _length(self, over: Reference) -> int:
        try:
            value = resolve(over, self._values[over.node])
        except BindError:
            return -1
        if not isinstance(value, list):
            return -1
        return len(value)

    def _item_on_error(self, spec: NodeSpec, work: Work) -> None:
        spec.item_skip = work.on_error == "skip"
        if isinstance(work.on_error, Fallback):
            spec.item_fallback = self._fallback(work.on_error.fallback, [])

    def _condition(self, condition: Condition, index: int) -> dict[str, Any]:
        """Return a condition in JSON form with each test's place of its fact; tests of
        inputs are decided now.
        """
        data: dict[str, Any] = condition.model_dump(mode="json", by_alias=True)
        for test in compiled_tests(data):
            self._place_test(test, index)
        return data

    def _place_test(self, test: dict[str, Any], index: int) -> None:
        reference = parse_reference(test["ref"])
        status = parse_status_reference(test["ref"])
        if status is not None:
            place = self._index[status.node]
            test["at"] = [place, f":{status.name}"]
        elif reference is not None and reference.node in self._index:
            fact = dependencies.fact_name(reference, test["op"])
            test["at"] = [self._index[reference.node], fact]
        elif reference is not None:
            self._decide(test, reference, index)

    def _decide(self, test: dict[str, Any], reference: Reference, index: int) -> None:
        """Decide a test of an input now.

        One that cannot be decided may be guarded by another part of the condition. It gets the
        place of a fact that nobody ever has, so it fails its node only when its turn comes.
        """
        name = dependencies.fact_name(reference, test["op"])
        try:
            facts = facts_of(self._values[reference.node], [name])
            test["is"] = holds(test, lambda _: facts.get(name, MISSING))
        except (ConditionError, FactTooLarge):
            test["at"] = [index, test["ref"]]


def join_policy(spec: NodeSpec, node: JoinNode) -> None:
    """Give a join's annotations its policy, and its deadline."""
    spec.of_items = node.items is not None
    spec.deadline = 0
    if node.deadline is not None:
        spec.deadline = _milliseconds(node.deadline)
    if not isinstance(node.policy, Quorum):
        spec.policy = node.policy
        return

    # A share of a map's items is worked out when their number is known.
    spec.policy = "quorum"
    wanted = node.policy.quorum
    if isinstance(wanted, int):
        spec.quorum = max(1, wanted)
        return
    percent = int(wanted.removesuffix("%"))
    if spec.of_items:
        spec.quorum = -percent
    else:
        share = percent * len(node.inputs) / 100
        spec.quorum = max(1, ceil(share))


def _names_in(script: str) -> list[str]:
    """Return the words in a script, as Python reads names."""
    return _NAME.findall(normalize("NFKC", script))


def _add_locks(locks: dict[str, int], more: Iterable[tuple[str, int]]) -> None:
    """Add locks to others; one that is asked for in two ways becomes exclusive."""
    for name, mode in more:
        if locks.setdefault(name, mode) != mode:
            locks[name] = EXCLUSIVE


def _milliseconds(seconds: float) -> int:
    """Return at least 1: a limit that rounds to nothing would be none."""
    return max(1, round(seconds * 1000))
