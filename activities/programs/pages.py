"""Pages: the calls that an advance of a program has made, or the nodes that a turn of a
model adds to the plan.
"""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from sennit.activities.limits import MAX_EXECUTION_PLAN_BYTES, MAX_PAGE_BYTES
from sennit.activities.nodes.content_key import host_key
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.nodes.short_calls import Recorded
from sennit.activities.programs.words import Surroundings, TaskLine, Words
from sennit.activities.storage.artifacts import digest_of, encode
from sennit.activities.storage.run_context import ArtifactReader, RunContext, StoredPlan
from sennit.workflows.messages.contracts import NodeReply, PlanPage, ProgramPage
from sennit.workflows.messages.ends import pack_ends
from sennit.workflows.messages.message import Digest
from sennit.workflows.plan.compile.compiler import Keep, PlanCompiler
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.page import page_behind
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import GateNode, LlmNode, Node, Plan, ToolNode
from sennit.workflows.plan.language.references import references_in
from sennit.workflows.plan.language.summary import summary_of
from sennit.workflows.plan.limits import MAX_NODES
from sennit.workflows.plan.scheduling.events import TaskNews

Compiler = Callable[[Plan, RunContext, Keep], PlanCompiler]
_UNKNOWN = "$$"
"""In the place of a text with references."""
_NO_ANSWER: dict[str, JsonValue] = {}
"""What a page answers: nothing, so that nobody works out which of its nodes is the answer."""


class PlanTooLarge(Exception):
    """A plan has got too many nodes to go on with."""


@dataclass
class Handover:
    """What an advance hands over to the run: the calls in `words`, and where the script
    stands, the stored `session`.

    The script waits for the calls in `waits` beside those for which it waited before, and no
    longer for the `past` ones of those. `made` are the calls that the advance has made itself, and
    `ends` how they have ended, in order; `end` is how the script has ended behind them, if it has.
    `news` are those of tasks.
    """

    words: Words
    session: str
    waits: tuple[str, ...]
    past: tuple[str, ...]
    made: dict[str, NodeSpec] = field(default_factory=dict)
    ends: dict[str, NodeReply] = field(default_factory=dict)
    end: NodeReply | None = None
    log: tuple[str, ...] = ()
    news: tuple[TaskNews, ...] = ()


@dataclass
class AdvanceContext:
    """What an advance works with. `recorded` says how calls have ended in
    the runs that are forked.
    """

    context: NodeContext
    around: Surroundings
    part: Callable[[Words, Sequence[Node]], StoredPlan]
    recorded: Recorded | None = None


def part_of(
    compiler: Compiler,
    context: NodeContext,
    run_context: RunContext,
    words: Words,
    nodes: Sequence[Node],
) -> StoredPlan:
    """Return some calls of an advance as a page that is not stored: what it
    takes to make them here.
    """
    specs = _specs(nodes, {}, words.limits, _compiler_of_calls(compiler, run_context))
    page = _stored_page(context, nodes, "", words.keys, words.materials)
    page.know(specs)
    return page


async def taken_over(
    page: StoredPlan, words: Words, recorded: Recorded | None, asked: Sequence[str] = ()
) -> dict[str, NodeReply]:
    """Return how those of the new calls have ended that are recorded in the runs that are forked.

    Those of which a person is `asked` are for their own activities.
    """
    if recorded is None:
        return {}
    names = _without(words.keys, asked)
    lookups = [recorded(page, name) for name in names]
    replies = await asyncio.gather(*lookups)
    ends = dict[str, NodeReply]()
    for name, reply in zip(names, replies, strict=True):
        if reply is not None:
            ends[name] = reply
    return ends


def handed_over(words: Words, waited: Sequence[str]) -> Handover:
    """Return what is handed over of a script that waits now, and `waited` for these calls before.
    Where it stands is stored with the other bodies.
    """
    bodies = words.around.bodies
    counts = words.counts.put_away()
    if counts is not None:
        bodies[digest_of(counts)] = counts
    # The keys of what the script was told stay in their order: in a replay, the script hands the
    # same values on, and its calls are compared with those that it made.
    session = encode(words.session.model_dump(mode="json", exclude_defaults=True))
    digest = digest_of(session)
    bodies[digest] = session

    before = dict.fromkeys(waited)
    now = dict.fromkeys(words.session.awaited())
    return Handover(words, digest, waits=_without(now, before), past=_without(before, now))


def _without(names: Iterable[str], known: Container[str]) -> tuple[str, ...]:
    """Return the names that are not among the `known` ones, in their order."""
    return tuple(name for name in names if name not in known)


async def page_of(
    library: ArtifactReader,
    compiler: Compiler,
    context: NodeContext,
    run_context: RunContext,
    handover: Handover,
) -> ProgramPage:
    """Store the page with the calls of an advance, and return what the run is told. Raises
    ProgramFailed, StoreUnavailable.
    """
    words, ends = handover.words, handover.ends
    nodes = words.nodes
    compile_calls = _compiler_of_calls(compiler, run_context)
    specs = _specs(nodes, words.labels, words.limits, compile_calls, handover.made)

    # The compiler does not know the keys and budgets of calls, nor which of them the
    # advance has made itself.
    for spec in specs:
        spec.key = words.marks.get(spec.id, "")
        spec.call_site = words.call_sites.get(spec.id, "")
        spec.slice = words.slices.get(spec.id, {})
        spec.slice_of = words.slice_of.get(spec.id, "")
        spec.in_place = _was_made_here(ends.get(spec.id))

    # People see each caution. One that asks needs an approval, unless the program
    # may repeat its writes.
    cautions: dict[str, str] = {}
    confirms: dict[str, str] = {}
    for spec in specs:
        caution = words.cautions.get(spec.id)
        if caution is None:
            continue
        cautions[spec.id] = caution.text
        asks = caution.asks and not words.session.repeat_writes
        if asks:
            spec.approval = True
        if asks and caution.confirms:
            confirms[spec.id] = caution.confirms
            spec.confirms = True

    # The calls are stored as a plan of their own if there are any.
    specs = [*map(_task_spec, words.tasks), *specs]
    packed = ExecutionPlan(specs, []).pack()
    if len(packed) > MAX_PAGE_BYTES:
        raise ProgramFailed(
            f"{len(nodes):,} calls at once are too many for one advance: await some of them "
            "before the others"
        )
    plan = context.call.plan
    if nodes:
        stored = _stored_page(context, nodes, packed, words.keys, words.materials)
        stored = stored.model_copy(update={"cautions": cautions, "confirms": confirms})
        plan = await library.keep(context.run_prefix, stored)
    given_up = dict.fromkeys(words.given_up)
    return ProgramPage(
        plan=plan,
        specs=packed,
        session=handover.session,
        waits=handover.waits,
        past=handover.past,
        given_up=_without(given_up, ends),
        ends=pack_ends(specs, ends),
        end=handover.end,
    )


def _task_spec(task: TaskLine) -> NodeSpec:
    """Return what the run knows of a task: nothing that it could do."""
    spec = NodeSpec(task.id, "task", key=task.key, call_site=task.call_site, summary=task.summary)
    spec.slice = task.slice
    spec.slice_of = task.slice_of
    return spec


def is_put_back(reply: NodeReply) -> bool:
    """Whether a call is to be started again, alone."""
    return reply.error is not None and reply.error.again


def _was_made_here(end: NodeReply | None) -> bool:
    """Whether the advance has made a call that ends like this, and nobody is to start it again."""
    return end is not None and not end.taken_over and not is_put_back(end)


def _stored_page(
    context: NodeContext,
    nodes: Sequence[Node],
    packed: str,
    keys: dict[str, str],
    materials: dict[str, dict[str, str]],
) -> StoredPlan:
    checked = context.checked
    return StoredPlan(
        run_context=checked.run_context,
        goal=checked.goal,
        docs=checked.docs,
        inputs={},
        material=checked.material,
        plan=_plan(nodes),
        execution_plan=packed,
        wanted={},
        models=checked.models,
        settings=checked.settings,
        history=checked.history,
        instructions=checked.instructions,
        attached=checked.attached,
        keys=keys,
        materials=materials,
    )


async def page_after(
    library: ArtifactReader, compiler: Compiler, run_prefix: str, base: Digest, longer: Plan
) -> PlanPage:
    """Store the plan `base` with the nodes with which `longer` goes on behind it, and
    return those as a page.

    They are the tool calls that a model call has asked for, and last its next turn. Raises
    PlanTooLarge, BodyMissing, StoreUnavailable.
    """
    before = await library.plan(run_prefix, base)
    count = len(before.plan.nodes)
    new = longer.nodes[count:]
    next_turn = new[-1]
    turn = dependencies.turn_of(next_turn)
    assert turn is not None

    # The next turn has the material of the call, and the new nodes are known by their
    # places in its tool loop.
    materials, keys = before.materials, before.keys
    if turn.node in materials:
        materials = {**materials, next_turn.id: materials[turn.node]}
    if turn.node in keys:
        loop_keys = _loop_keys(host_key(keys[turn.node]), turn.number, new)
        keys = {**keys, **loop_keys}

    # The compiler takes nodes without material, and of the old ones only those that wait
    # for nodes of this plan.
    nodes = list[Node]()
    names = set[str]()
    for node in longer.nodes:
        nodes.append(_without_material(node) if node.id in materials else node)
        names.add(node.id)
    old = list[Node]()
    for node in nodes[:count]:
        if names.issuperset(dependencies.links_of(node).waits):
            old.append(node)

    # The scheduler goes on with what is compiled behind the old nodes.
    run_context = await library.run_context(run_prefix, before.run_context)
    plan = longer.model_copy(update={"nodes": (*old, *nodes[count:])})
    compiled = compiler(plan, run_context, _stored).execution_plan(None)
    specs = compiled.specs[len(old) :]
    if next_turn.id in materials:
        title = f"turn {turn.number} of {turn.node}"
        specs[-1].summary = summary_of(next_turn, what=title)
    whole = ExecutionPlan.unpack(before.execution_plan)
    whole.specs += specs

    # The longer plan is stored with all else that was stored with the one before.
    # A copy would keep what is cached.
    fields = {name: getattr(before, name) for name in StoredPlan.model_fields}
    fields |= {"plan": longer, "execution_plan": whole.pack(), "materials": materials, "keys": keys}
    fields["wanted"] = dependencies.facts_wanted(longer)
    is_too_long = len(fields["execution_plan"]) > MAX_EXECUTION_PLAN_BYTES
    if is_too_long or len(longer.nodes) > MAX_NODES:
        raise PlanTooLarge(
            f"the plan has {len(longer.nodes):,} nodes with these, which are too many"
        )
    digest = await library.keep(run_prefix, StoredPlan.model_construct(**fields))
    old_ids = [node.id for node in old]
    return page_of_plan(digest, base, compiled, old_ids)


def page_of_plan(plan: Digest, base: Digest, whole: ExecutionPlan, old: Sequence[str]) -> PlanPage:
    """Return the page with which a `whole` plan goes on behind its `old` nodes. Changes the
    plan that it is given.
    """
    known, page = page_behind(whole, len(old))
    known_ids = tuple(old[node] for node in known)
    return PlanPage(plan=plan, base=base, known=known_ids, specs=page.pack())


def _loop_keys(call: str, turn: int, nodes: Sequence[Node]) -> dict[str, str]:
    """Return what the next `turn` of a call's tool loop is known by, and each tool call before it:
    by its place in the loop, whatever its id. So the ledger of effects knows a write when the
    program calls the model once more.
    """
    keys = dict[str, str]()
    for node in nodes:
        if isinstance(node, ToolNode):
            place = node.id.rpartition("_")[2]
            keys[node.id] = f"{call}.{turn - 1}.{place}"
    keys[nodes[-1].id] = f"{call}.{turn}"
    return keys


def _plan(nodes: Sequence[Node]) -> Plan:
    return Plan.model_construct(nodes=tuple(nodes), answer=_NO_ANSWER)


def _compiler_of_calls(
    compiler: Compiler, run_context: RunContext
) -> Callable[[Plan], PlanCompiler]:
    """Return the compiler as calls take it, none of which has a fallback value."""
    return lambda plan: compiler(plan, run_context, _no_fallback)


def _specs(
    nodes: Sequence[Node],
    labels: dict[str, str],
    limits: dict[str, dict[str, int]],
    compiler: Callable[[Plan], PlanCompiler],
    known: Mapping[str, NodeSpec] = MappingProxyType({}),
) -> list[NodeSpec]:
    """Return what the scheduler knows of each call, unless that is known."""
    # Only the calls that are not known are compiled, each as if it depended on no other.
    alone = list[Node]()
    for node in nodes:
        if node.id not in known:
            alone.append(_without_material(node))
    compiled = dict[str, NodeSpec]()
    if alone:
        for spec in compiler(_plan(alone)).execution_plan(None).specs:
            compiled[spec.id] = spec
    compiled.update(known)

    # Limits, questions and labels are those of the script's calls, also where the rest is known.
    specs = list[NodeSpec]()
    for node in nodes:
        spec = compiled[node.id]
        for name, limit in limits.get(node.id, {}).items():
            setattr(spec, name, limit)
        if isinstance(node, GateNode):
            spec.question = node.question
            spec.fills = bool(dependencies.bound_texts(node))
        label = labels.get(node.id, "")
        spec.summary = summary_of(_without_material(node), what=label)
        specs.append(spec)
    return specs


def _without_material(node: Node) -> Node:
    """Return the node as it depends on others: its material comes from no node."""
    if isinstance(node, ToolNode):
        args = dict[str, JsonValue]()
        for name, value in node.args.items():
            args[name] = _UNKNOWN if any(references_in(value)) else value
        return node.model_copy(update={"args": args})
    if isinstance(node, LlmNode):
        return node.model_copy(update={"prompt": _UNKNOWN})
    if isinstance(node, GateNode):
        return node.model_copy(update={"question": _UNKNOWN})
    return node


def _stored(value: object) -> tuple[str, int]:
    """Return the digest and the size of a fallback value of a plan that has been
    checked: it is in the store.
    """
    body = encode(value)
    return digest_of(body), len(body)


def _no_fallback(value: object) -> tuple[str, int]:
    raise AssertionError(f"a call has no fallback value: {value!r:.80}")
