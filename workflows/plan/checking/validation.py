"""Everything that must hold of a whole plan before anything is spent. Pure; O(nodes + edges)."""

from collections.abc import Iterator
from typing import Any

from workflows.plan.checking.calls import argument_problems, model_problems, turn_problems
from workflows.plan.checking.conditions import condition_problems
from workflows.plan.checking.fallbacks import fallback_problems
from workflows.plan.checking.groups import group_problems
from workflows.plan.checking.schemas import unknown_keywords
from workflows.plan.checking.symbols import SymbolTable
from workflows.plan.language import dependencies
from workflows.plan.language.dag import first_cycle, format_path
from workflows.plan.language.facts import FACTS_A_NODE, FactTooLarge, facts_of
from workflows.plan.language.json_schema import violations
from workflows.plan.language.nodes import (
    RESERVED_IDS,
    Fallback,
    GateNode,
    Instead,
    JoinNode,
    MapNode,
    ModelCall,
    Node,
    Plan,
    Quorum,
)
from workflows.plan.language.parser import parse_plan
from workflows.plan.language.problems import Problem, Where
from workflows.plan.language.references import malformed_in, parse_reference, references_in
from workflows.plan.language.text import format_name, format_names, format_value

__all__ = ["parse_plan", "problems_of"]

Catalogue = list[dict[str, Any]]
MAX_PROBLEMS = 100
MAX_EDGES = 100_000


def problems_of(
    plan: Plan, catalogue: Catalogue | None = None, *, models: tuple[str, ...] | None = None
) -> list[Problem]:
    """Return what is wrong with `plan`, node by node and then as a whole; the first 100 problems, none twice.

    Without a catalogue tools and their arguments are not checked; without `models` model names are not.
    """
    tools = {tool["name"]: tool for tool in catalogue} if catalogue is not None else None
    scope = SymbolTable(plan, tools)
    seen: dict[Problem, None] = {}
    for problem in _problems(scope, models):
        seen[problem] = None
        if len(seen) == MAX_PROBLEMS:
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
        yield from model_problems(node, index, models) if models is not None else ()
    for problem in _cycle(scope):
        is_valid = False
        yield problem
    if plan.answer is not None:
        yield from _answer(scope)
    elif is_valid:
        yield from _end(plan)
    yield from _facts(scope)
    yield from fallback_problems(scope)
    yield from group_problems(scope)


def _node(scope: SymbolTable, node: Node, index: int) -> Iterator[Problem]:
    where: Where = ("nodes", index)
    yield from _id(scope, node, index)
    for position, name in enumerate(node.needs):
        yield from scope.check_name(name, node, (*where, "needs", position))
    for field, reference in dependencies.value_references(node):
        yield from scope.check_reference(reference, node, (*where, *field))
    for field, text in dependencies.bound_texts(node):
        yield from _malformed(text, (*where, *field))
    yield from condition_problems(scope, node, where)
    yield from _joined(scope, node, where)
    if isinstance(node, JoinNode):
        yield from _quorum(node, where)
    if isinstance(node, MapNode):
        yield from _map(scope, node, where)
    yield from _schemas(node, where)
    yield from _locks(node, where)
    yield from turn_problems(scope, node, where)
    yield from _on_error(scope, node, where)


def _id(scope: SymbolTable, node: Node, index: int) -> Iterator[Problem]:
    place: Where = ("nodes", index, "id")
    if node.id in RESERVED_IDS:
        yield Problem("reserved_id", place, f"`{node.id}` is reserved; choose another id")
    if scope.known[node.id] != index:
        first = f"first by nodes[{scope.known[node.id]}]"
        message = f"`{node.id}` is used {scope.used[node.id]} times, {first}; give each node its own id"
        yield Problem("duplicate_id", place, message)


def _malformed(text: str, where: Where) -> Iterator[Problem]:
    for found in malformed_in(text) if "${" in text else ():
        yield Problem(
            "reference", where, f"{format_value(found)} is not a reference; write ${{node.path}}, or `$$` for a dollar"
        )


def _joined(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for position, name in enumerate(dependencies.inputs_of(node)):
        yield from scope.check_name(name, node, (*where, "inputs", position))
        if first.setdefault(name, position) != position:
            message = f"`{name}` is named twice; an input counts once"
            yield Problem("arity", (*where, "inputs", position), message)


def _quorum(node: JoinNode, where: Where) -> Iterator[Problem]:
    quorum = node.policy.quorum if isinstance(node.policy, Quorum) else None
    if isinstance(quorum, int) and quorum > len(node.inputs):
        message = f"a quorum of {format_value(quorum)} can never be reached with {len(node.inputs)} inputs; lower it"
        yield Problem("arity", (*where, "policy", "quorum"), message)


def _map(scope: SymbolTable, node: MapNode, where: Where) -> Iterator[Problem]:
    over = parse_reference(node.over)
    if over is None:
        yield Problem(
            "reference", (*where, "over"), f"{format_value(node.over)} is not a reference; write `$node.items`"
        )
    else:
        have = scope.outputs.types_at(over)
        if have and "array" not in have:
            message = f"{format_name(node.over)} gives {' or '.join(sorted(have))}; a map needs a list"
            yield Problem("over", (*where, "over"), message)
    if node.as_ in scope.known or node.as_ in RESERVED_IDS:
        what = "is reserved" if node.as_ in RESERVED_IDS else "is a node"
        place = (*where, "as") if "as_" in node.model_fields_set else where
        yield Problem("reserved_id", place, f"`{node.as_}` {what}; give the item another name with `as`")
    if isinstance(node.do.on_error, Instead):
        place = (*where, "do", "on_error")
        yield Problem("not_built", place, "`instead` for items of a map is not built yet; use skip or a fallback")


def _schemas(node: Node, where: Where) -> Iterator[Problem]:
    if isinstance(node, GateNode):
        found, place = node.answer_schema, (*where, "schema")
    else:
        work = dependencies.work_of(node)
        found = work.output_schema if isinstance(work, ModelCall) else None
        place = (*where, *(("do",) if isinstance(node, MapNode) else ()), "output_schema")
    for path, sentence in unknown_keywords(found) if found is not None else ():
        yield Problem("schema", (*place, *path), sentence)


def _locks(node: Node, where: Where) -> Iterator[Problem]:
    work = dependencies.work_of(node)
    inside = ("do",) if isinstance(node, MapNode) else ()
    names: dict[str, int] = {}
    for position, lock in enumerate(work.locks if work is not None else ()):
        if names.setdefault(lock.name, position) != position:
            message = f"the lock {format_name(lock.name)} is named twice; a node holds it once"
            yield Problem("locks", (*where, *inside, "locks", position), message)


def _on_error(scope: SymbolTable, node: Node, where: Where) -> Iterator[Problem]:
    if isinstance(node.on_error, Instead):
        name, place = node.on_error.instead, (*where, "on_error", "instead")
        if name == node.id:
            yield Problem("instead", place, f"`{name}` cannot be its own fallback node; name another one")
        else:
            yield from scope.check_name(name, node, place)
    for inside, on_error in (
        ((), node.on_error),
        *([(("do",), node.do.on_error)] if isinstance(node, MapNode) else []),
    ):
        reference = scope.format_reference(on_error.fallback) if isinstance(on_error, Fallback) else None
        if reference:
            other = "; write the value itself" if inside else "; write the value itself, or use {instead: node}"
            message = f"a fallback is a plain value, so {reference} would stay text{other}"
            yield Problem("fallback", (*where, *inside, "on_error", "fallback"), message)


def _inputs(plan: Plan) -> Iterator[Problem]:
    for name, spec in plan.inputs.items():
        if spec.default is not None:
            for path, sentence in violations(spec.default, {"type": spec.type}):
                yield Problem("input", ("inputs", name, "default", *path), sentence)


def _end(plan: Plan) -> Iterator[Problem]:
    ends = dependencies.leaves(plan)
    if len(ends) != 1:
        message = f"say what `answer` is: {len(ends)} nodes have no consumer ({format_names(ends, 8)})"
        yield Problem("answer", (), message)


def _answer(scope: SymbolTable) -> Iterator[Problem]:
    has_reference = False
    for place, text in dependencies.marked_texts(scope.plan.answer, ("answer",)):
        yield from _malformed(text, place)
        for reference in references_in(text):
            has_reference = True
            yield from scope.check_reference(reference, None, place)
    if not has_reference:
        yield Problem("answer", ("answer",), "`answer` has no reference; write `$node`")


def _cycle(scope: SymbolTable) -> Iterator[Problem]:
    """Yield one cycle of several nodes, if any, named as a path; or that there are too many edges."""
    nodes, known = scope.plan.nodes, scope.known
    after = [
        [known[name] for name in links.waits if name in known and name != node.id]
        for node, links in zip(nodes, scope.links, strict=True)
    ]
    count = sum(map(len, after))
    if count > MAX_EDGES:
        message = f"{count:,} edges; at most {MAX_EDGES:,}. Put a join between nodes that all need the same"
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
        if len(wanted) > FACTS_A_NODE:
            message = f"conditions test {len(wanted)} values of `{name}`; at most {FACTS_A_NODE}"
            yield Problem("facts", ("nodes", index), message)
        on_error = scope.plan.nodes[index].on_error
        if isinstance(on_error, Fallback):
            try:
                facts_of(on_error.fallback, wanted)
            except FactTooLarge as error:
                message = f"a condition tests it, but {error}"
                yield Problem("facts", ("nodes", index, "on_error", "fallback"), message)
