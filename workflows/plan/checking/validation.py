"""Everything that must hold of a whole plan before anything is spent. Pure; O(nodes + edges)."""

from collections.abc import Iterator, Sequence
from typing import Any

from sennit.workflows.plan.checking.calls import argument_problems, model_problems, turn_problems
from sennit.workflows.plan.checking.conditions import condition_problems
from sennit.workflows.plan.checking.fallbacks import fallback_problems, stage_fallback_problems
from sennit.workflows.plan.checking.schemas import unknown_keywords
from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.dag import first_cycle, format_path
from sennit.workflows.plan.language.facts import FactTooLarge, facts_of, facts_of_conditions
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.nodes import (
    RESERVED_IDS,
    Fallback,
    Instead,
    JoinNode,
    MapNode,
    Node,
    Plan,
    Quorum,
)
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import Problem, Where
from sennit.workflows.plan.language.references import malformed_in, parse_reference, references_in
from sennit.workflows.plan.language.schema_keywords import Schema
from sennit.workflows.plan.language.text import format_name, format_names, format_value
from sennit.workflows.plan.limits import (
    MAX_EDGES,
    MAX_MAPPED_AGENTS,
    MAX_NODE_FACTS,
    MAX_PLAN_PROBLEMS,
)

__all__ = ["parse_plan", "problems_of"]

Catalogue = list[dict[str, Any]]
STAGE_WORDS = ("question", "ledger")
"""No ids in a map's `do`: activities that ask, or look up, for an item
have them behind its name.
"""


def problems_of(
    plan: Plan,
    catalogue: Catalogue | None = None,
    *,
    models: tuple[str, ...] | None = None,
    links: Sequence[dependencies.Links] | None = None,
) -> list[Problem]:
    """Return what is wrong with `plan`, node by node and then as a whole; the first
    100 problems, none twice.

    Without a catalogue tools and their arguments are not checked; without `models` model names are
    not. `links` are what its nodes depend on, if that is known.
    """
    tools = None
    if catalogue is not None:
        tools = {tool["name"]: tool for tool in catalogue}
    if not links:
        links = list(map(dependencies.links_of, plan.nodes))
    scope = SymbolTable(plan, tools, links)
    seen: dict[Problem, None] = {}
    for problem in _problems(scope, models):
        seen[problem] = None
        if len(seen) == MAX_PLAN_PROBLEMS:
            break
    return list(seen)


def _problems(scope: SymbolTable, models: tuple[str, ...] | None) -> Iterator[Problem]:
    plan = scope.plan
    yield from _inputs(plan)
    is_valid = True
    for index, node in enumerate(plan.nodes):
        for problem in _node(scope, node, index):
            is_valid = False
            yield problem
        yield from argument_problems(scope, node, ("nodes", index))
        if models is not None:
            yield from model_problems(node, index, models)
    for problem in _cycle(scope):
        is_valid = False
        yield problem
    if plan.answer is not None:
        yield from _answer(scope)
    elif is_valid:
        yield from _end(plan)
    yield from _facts(scope)
    yield from fallback_problems(scope)


def _node(scope: SymbolTable, node: Node, index: int) -> Iterator[Problem]:
    where: Where = ("nodes", index)
    yield from _id(scope, node, index)
    for position, name in enumerate(node.needs):
        yield from scope.check_name(name, node, (*where, "needs", position))
    texts = dependencies.bound_texts(node)
    if texts or node.kind != "tool":
        for field, reference in dependencies.value_references(node):
            yield from scope.check_reference(reference, node, (*where, *field))
    for field, text in texts:
        yield from _malformed(text, (*where, *field))
    if node.when is not None or node.kind == "map":
        yield from condition_problems(scope, node, where)
    if scope.links[index].inputs:
        yield from _joined(scope, node, where)
    if node.kind == "join":
        yield from _quorum(node, where)
    if node.kind == "map":
        yield from _map(scope, node, where)
    yield from _schemas(node, where)
    yield from _locks(node, where)
    if node.kind != "tool":
        yield from turn_problems(scope, node, where)
    yield from _on_error(scope, node, where)


def _id(scope: SymbolTable, node: Node, index: int) -> Iterator[Problem]:
    at: Where = ("nodes", index, "id")
    if node.id in RESERVED_IDS:
        yield Problem("reserved_id", at, f"`{node.id}` is reserved; choose another id")
    if scope.known[node.id] != index:
        first = f"first by nodes[{scope.known[node.id]}]"
        count = scope.used[node.id]
        message = f"`{node.id}` is used {count} times, {first}; give each node its own id"
        yield Problem("duplicate_id", at, message)


def _malformed(text: str, where: Where) -> Iterator[Problem]:
    if "${" not in text:
        return
    for found in malformed_in(text):
        message = (
            f"{format_value(found)} is not a reference; write ${{node.path}}, or `$$` for a dollar"
        )
        yield Problem("reference", where, message)


def _joined(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    first: dict[str, int] = {}
    if isinstance(node, JoinNode) and node.items is not None:
        yield from _items(scope, node, node.items, where)
        return
    for position, name in enumerate(dependencies.inputs_of(node)):
        yield from scope.check_name(name, node, (*where, "inputs", position))
        if first.setdefault(name, position) != position:
            message = f"`{name}` is named twice; an input counts once"
            yield Problem("arity", (*where, "inputs", position), message)


def _items(scope: SymbolTable, node: JoinNode, name: str, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with a join of a map's items."""
    at = (*where, "items")
    problem = next(scope.check_name(name, node, at), None)
    if problem is not None:
        yield problem
    elif not isinstance(scope.plan.nodes[scope.known[name]], MapNode):
        yield Problem(
            "items", at, f"`{name}` is no map, so it has no items; write `inputs: [{name}]`"
        )
    if node.inputs != (name,):
        yield Problem(
            "items", (*where, "inputs"), "a join has `inputs` or `items`; leave one of them out"
        )
    if node.policy in ("all", "settled"):
        message = (
            f"the map itself waits for all its items; refer to ${name}, or write `policy: first` "
            "or a quorum"
        )
        yield Problem("items", at, message)


def _quorum(node: JoinNode, where: Where) -> Iterator[Problem]:
    if not isinstance(node.policy, Quorum) or node.items is not None:
        return
    quorum = node.policy.quorum
    count = len(node.inputs)
    if isinstance(quorum, int) and quorum > count:
        message = (
            f"a quorum of {format_value(quorum)} can never be reached with {count} inputs; lower it"
        )
        yield Problem("arity", (*where, "policy", "quorum"), message)


def _map(scope: SymbolTable, node: MapNode, where: Where) -> Iterator[Problem]:
    over = parse_reference(node.over)
    if over is None:
        message = f"{format_value(node.over)} is not a reference; write `$node.items`"
        yield Problem("reference", (*where, "over"), message)
    else:
        have = scope.outputs.types_at(over)
        if have and "array" not in have:
            types = " or ".join(sorted(have))
            message = f"{format_name(node.over)} gives {types}; a map needs a list"
            yield Problem("over", (*where, "over"), message)
    if node.as_ in scope.known or node.as_ in RESERVED_IDS:
        at = where
        if "as_" in node.model_fields_set:
            at = (*where, "as")
        taken = "is a node"
        if node.as_ in RESERVED_IDS:
            taken = "is reserved"
        yield Problem(
            "reserved_id", at, f"`{node.as_}` {taken}; give the item another name with `as`"
        )
    agents_per_item = 1
    if not node.runs_apart:
        kinds = [stage.kind for stage in node.do]
        agents_per_item = kinds.count("agent")
    agents = node.max_items * agents_per_item
    if agents > MAX_MAPPED_AGENTS:
        message = (
            f"{node.max_items:,} items could start {agents:,} sub-agents, each a run of its own; "
            f"at most {MAX_MAPPED_AGENTS:,}. Lower it, or give each sub-agent several items"
        )
        yield Problem("limit", (*where, "max_items"), message)
    for position in range(len(node.do)):
        inside = (*where, *dependencies.stage_place(node, position))
        yield from _stage_id(scope, node, position, inside)
    yield from stage_fallback_problems(node, where)


def _stage_id(scope: SymbolTable, node: MapNode, position: int, where: Where) -> Iterator[Problem]:
    """Yield what is wrong with the id of a node in `do`: all have one but the last,
    which is the item itself.
    """
    name = node.do[position].id
    is_last = position == len(node.do) - 1
    if is_last:
        if name is not None:
            wrong = "`do` is a node without `id`"
            if position:
                wrong = "the last node of `do` has no `id`"
            yield Problem(
                "unknown_field", (*where, "id"), f"{wrong}: the map names its copies m[0], m[1] ..."
            )
        return
    if name is None:
        message = (
            "`id` is missing: those below refer to this node by it, and it names its copies "
            "m[0].page, m[1].page ..."
        )
        yield Problem("missing_field", where, message)
        return
    taken = (*RESERVED_IDS, *STAGE_WORDS, node.as_, *node.stages[:position])
    if name in scope.known:
        yield Problem("reserved_id", (*where, "id"), f"`{name}` is a node; choose another id")
    elif name in taken:
        yield Problem("reserved_id", (*where, "id"), f"`{name}` is taken; choose another id")


def _schemas(node: Node, where: Where) -> Iterator[Problem]:
    if node.kind == "gate":
        yield from _schema(node.answer_schema, (*where, "schema"))
        return
    for field, work in dependencies.works_of(node):
        if work.kind == "llm":
            yield from _schema(work.output_schema, (*where, *field, "output_schema"))


def _schema(schema: Schema | None, where: Where) -> Iterator[Problem]:
    if schema is not None:
        for path, sentence in unknown_keywords(schema):
            yield Problem("schema", (*where, *path), sentence)


def _locks(node: Node, where: Where) -> Iterator[Problem]:
    for inside, work in dependencies.works_of(node):
        names: dict[str, int] = {}
        for position, lock in enumerate(work.locks):
            if names.setdefault(lock.name, position) != position:
                message = f"the lock {format_name(lock.name)} is named twice; a node holds it once"
                yield Problem("locks", (*where, *inside, "locks", position), message)


def _on_error(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    if node.on_error == "fail" and node.kind != "map":
        return
    if isinstance(node.on_error, Instead):
        name = node.on_error.instead
        at = (*where, "on_error", "instead")
        if name == node.id:
            yield Problem(
                "instead", at, f"`{name}` cannot be its own fallback node; name another one"
            )
        else:
            yield from scope.check_name(name, node, at)
    if isinstance(node.on_error, Fallback):
        advice = "write the value itself, or use {instead: node}"
        yield from _fallback(scope, node.on_error, advice, where)
    if isinstance(node, MapNode):
        for field, work in dependencies.works_of(node):
            if isinstance(work.on_error, Fallback):
                inside = (*where, *field)
                yield from _fallback(scope, work.on_error, "write the value itself", inside)


def _fallback(
    scope: SymbolTable, on_error: Fallback, advice: str, where: Where
) -> Iterator[Problem]:
    reference = scope.format_reference(on_error.fallback)
    if reference:
        message = f"a fallback is a plain value, so {reference} would stay text; {advice}"
        yield Problem("fallback", (*where, "on_error", "fallback"), message)


def _inputs(plan: Plan) -> Iterator[Problem]:
    for name, spec in plan.inputs.items():
        if spec.default is not None:
            for path, sentence in violations(spec.default, {"type": spec.type}):
                yield Problem("input", ("inputs", name, "default", *path), sentence)


def _end(plan: Plan) -> Iterator[Problem]:
    ends = dependencies.leaves(plan)
    if len(ends) != 1:
        message = (
            f"say what `answer` is: {len(ends)} nodes have no consumer ({format_names(ends, 8)})"
        )
        yield Problem("answer", (), message)


def _answer(scope: SymbolTable) -> Iterator[Problem]:
    has_reference = False
    for at, text in dependencies.marked_texts(scope.plan.answer, ("answer",)):
        yield from _malformed(text, at)
        for reference in references_in(text):
            has_reference = True
            yield from scope.check_reference(reference, None, at)
    if not has_reference:
        yield Problem("answer", ("answer",), "`answer` has no reference; write `$node`")


def _cycle(scope: SymbolTable) -> Iterator[Problem]:
    """Yield one cycle of several nodes, if any, named as a path; or that
    there are too many edges.
    """
    nodes = scope.plan.nodes
    known = scope.known
    after = []
    for node, links in zip(nodes, scope.links, strict=True):
        waits: list[int] = []
        for name in links.waits:
            if name in known and name != node.id:
                waits.append(known[name])
        after.append(waits)
    count = sum(map(len, after))
    if count > MAX_EDGES:
        message = (
            f"{count:,} edges; at most {MAX_EDGES:,}. Put a join between nodes that all need the "
            "same"
        )
        yield Problem("too_many_edges", ("nodes",), message)
        return
    path = first_cycle(after)
    if path is not None:
        names = [nodes[index].id for index in path]
        message = f"a cycle: {format_path(names)}; take one of these edges out"
        yield Problem("cycle", ("nodes", path[0]), message)


def _facts(scope: SymbolTable) -> Iterator[Problem]:
    for name, wanted in dependencies.facts_wanted(scope.plan).items():
        index = scope.known.get(name)
        if index is None:
            continue
        count = len(facts_of_conditions(wanted))
        if count > MAX_NODE_FACTS:
            message = f"conditions test {count} values of `{name}`; at most {MAX_NODE_FACTS}"
            yield Problem("facts", ("nodes", index), message)
        on_error = scope.plan.nodes[index].on_error
        if isinstance(on_error, Fallback):
            try:
                facts_of(on_error.fallback, wanted)
            except FactTooLarge as error:
                message = f"a condition tests it, but {error}"
                yield Problem("facts", ("nodes", index, "on_error", "fallback"), message)
