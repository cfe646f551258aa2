"""Everything that must hold of a whole plan before anything is spent. Pure; O(nodes + edges)."""

from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from workflows.plan import edges
from workflows.plan.arguments import argument_problems
from workflows.plan.conditions import tests_of
from workflows.plan.facts import FACTS_A_NODE
from workflows.plan.islands import island_problems
from workflows.plan.model import RESERVED_IDS, GateNode, Instead, JoinNode, MapNode, ModelCall, Node, Plan, Quorum
from workflows.plan.parse import parse_plan
from workflows.plan.problems import Problem, Where
from workflows.plan.references import (
    malformed_in,
    parse_reference,
    parse_status_reference,
    references_in,
)
from workflows.plan.schema import unknown_keywords

__all__ = ["parse_plan", "problems_of"]

Catalogue = list[dict[str, Any]]


def problems_of(
    plan: Plan, catalogue: Catalogue | None = None, *, models: tuple[str, ...] | None = None
) -> list[Problem]:
    """Return everything wrong with `plan`, in the order of the file.

    Without a catalogue tools and their arguments are not checked; without `models` model names are not.
    """
    known = {node.id: index for index, node in enumerate(plan.nodes)}
    found = list(_ids(plan))
    found += [problem for index, node in enumerate(plan.nodes) for problem in _node(plan, node, index, known)]
    found = found or _cycle(plan, known)
    if found:
        return found
    found += _answer(plan, known)
    found += _facts(plan, known)
    found += _standins(plan)
    if found:
        return found
    if models is not None:
        found += _models(plan, models)
    if catalogue is not None:
        tools = {tool["name"]: tool for tool in catalogue}
        for index, node in enumerate(plan.nodes):
            found += argument_problems(plan, node, ("nodes", index), tools)
        found += island_problems(plan, tools)
    return found


def _ids(plan: Plan) -> Iterator[Problem]:
    counts = Counter(node.id for node in plan.nodes)
    for index, node in enumerate(plan.nodes):
        if node.id in RESERVED_IDS:
            yield Problem("reserved_id", ("nodes", index, "id"), f"`{node.id}` is reserved")
        if counts[node.id] > 1:
            yield Problem("duplicate_id", ("nodes", index, "id"), f"`{node.id}` is used {counts[node.id]} times")


def _node(plan: Plan, node: Node, index: int, known: dict[str, int]) -> Iterator[Problem]:
    where: Where = ("nodes", index)
    for position, name in enumerate(node.needs):
        yield from _named(name, node, known, (*where, "needs", position))
    for field, reference in edges.value_references(node):
        item = node.as_ if isinstance(node, MapNode) and field[0] == "do" else None
        if reference.node != item:
            yield from _referenced(plan, reference.node, reference.path, node, known, (*where, *field))
    bound = edges.arguments_of(node)
    for text in malformed_in(bound[1]) if bound else ():
        yield Problem(
            "reference", (*where, bound[0] if bound else ""), f"{text!r} is no reference; `$$` writes a dollar"
        )
    yield from _condition(plan, node, known, where)
    if isinstance(node, JoinNode):
        yield from _join(node, known, where)
    if isinstance(node, MapNode):
        yield from _map(node, known, where)
    if isinstance(node, GateNode) and node.answer_schema is not None:
        for path, sentence in unknown_keywords(node.answer_schema):
            yield Problem("schema", (*where, "schema", *path), sentence)
    if isinstance(node.on_error, Instead):
        yield from _named(node.on_error.instead, node, known, (*where, "on_error", "instead"))


def _named(name: str, node: Node, known: dict[str, int], where: Where) -> Iterator[Problem]:
    if name == node.id:
        yield Problem("cycle", where, f"`{name}` needs itself")
    elif name not in known:
        yield Problem("dangling", where, f"there is no node `{name}`{_near(name, known)}")


def _near(name: str, known: dict[str, int]) -> str:
    near = get_close_matches(name, known, 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _referenced(
    plan: Plan, name: str, path: tuple[str | int, ...], node: Node, known: dict[str, int], where: Where
) -> Iterator[Problem]:
    if name == "goal":
        return
    if name == "input":
        if not path or path[0] not in plan.inputs:
            asked = path[0] if path else ""
            given = ", ".join(plan.inputs) or "none"
            yield Problem("input", where, f"the plan declares no input `{asked}`; declared: {given}")
        return
    if name not in known and name != node.id:
        yield Problem("dangling", where, f"`${name}` refers to no node{_near(name, known)}; `$${name}` writes the text")
        return
    yield from _named(name, node, known, where)


def _condition(plan: Plan, node: Node, known: dict[str, int], where: Where) -> Iterator[Problem]:
    if node.when is None:
        return
    for test in tests_of(node.when):
        reference, status = parse_reference(test.ref), parse_status_reference(test.ref)
        if status is not None:
            yield from _named(status[0], node, known, (*where, "when"))
        elif reference is None:
            message = f"{test.ref!r} is no reference; write `$node.path` or `$node:status`"
            yield Problem("reference", (*where, "when"), message)
        else:
            yield from _referenced(plan, reference.node, reference.path, node, known, (*where, "when"))


def _join(node: JoinNode, known: dict[str, int], where: Where) -> Iterator[Problem]:
    for position, name in enumerate(node.inputs):
        yield from _named(name, node, known, (*where, "inputs", position))
    if len(set(node.inputs)) < len(node.inputs):
        yield Problem("arity", (*where, "inputs"), "an input is named twice")
    quorum = node.policy.quorum if isinstance(node.policy, Quorum) else None
    if isinstance(quorum, int) and quorum > len(node.inputs):
        message = f"quorum {quorum} of {len(node.inputs)} inputs can never be reached"
        yield Problem("arity", (*where, "policy"), message)


def _map(node: MapNode, known: dict[str, int], where: Where) -> Iterator[Problem]:
    if parse_reference(node.over) is None:
        yield Problem("reference", (*where, "over"), f"{node.over!r} is no reference; write `$node.items`")
    if node.as_ in known or node.as_ in RESERVED_IDS:
        yield Problem("reserved_id", (*where, "as"), f"`{node.as_}` already means something else; choose another name")
    if isinstance(node.do.on_error, Instead):
        yield Problem("not_built", (*where, "do", "on_error"), "`instead` for items of a map is not built yet")


def _answer(plan: Plan, known: dict[str, int]) -> Iterator[Problem]:
    if plan.answer is None:
        ends = edges.leaves(plan)
        if len(ends) != 1:
            names = ", ".join(ends[:8]) or "none"
            yield Problem("answer", (), f"say what `answer` is: {len(ends)} nodes have no consumer ({names})")
        return
    references = list(references_in(plan.answer))
    for reference in references:
        if reference.node not in known and reference.node not in RESERVED_IDS:
            yield Problem(
                "dangling", ("answer",), f"`${reference.node}` refers to no node{_near(reference.node, known)}"
            )
    if not references:
        yield Problem("answer", ("answer",), "`answer` holds no reference; write `$node`")


def _cycle(plan: Plan, known: dict[str, int]) -> list[Problem]:
    """Name one cycle, if any, as a path; depth-first without recursion."""
    after = [[known[name] for name in edges.waits_for(node)] for node in plan.nodes]
    colour = [0] * len(after)
    for root in range(len(after)):
        stack = [(root, iter(after[root]))] if not colour[root] else []
        colour[root] = colour[root] or 1
        while stack:
            here, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                colour[here] = 2
                stack.pop()
            elif colour[following] == 1:
                path = [node for node, _ in stack]
                return [_cycle_problem(plan, [*path[path.index(following) :], following])]
            elif not colour[following]:
                colour[following] = 1
                stack.append((following, iter(after[following])))
    return []


def _cycle_problem(plan: Plan, path: list[int]) -> Problem:
    names = [plan.nodes[index].id for index in path]
    shown = names if len(names) <= 12 else [*names[:6], "...", *names[-5:]]
    return Problem("cycle", ("nodes", path[0]), f"a cycle: {' needs '.join(shown)}")


def _facts(plan: Plan, known: dict[str, int]) -> Iterator[Problem]:
    for name, facts in edges.facts_wanted(plan).items():
        if name in known and len(facts) > FACTS_A_NODE:
            message = f"conditions test {len(facts)} values of `{name}`; at most {FACTS_A_NODE}"
            yield Problem("facts", ("nodes", known[name]), message)


def _standins(plan: Plan) -> Iterator[Problem]:
    hosts: dict[str, str] = {}
    used = {name for node in plan.nodes for name in (*edges.needs_of(node), *edges.inputs_of(node))}
    for index, node in enumerate(plan.nodes):
        standin = edges.standin_of(node)
        if standin is None:
            continue
        where = ("nodes", index, "on_error")
        if standin in hosts:
            yield Problem("instead", where, f"`{standin}` already stands in for `{hosts[standin]}`")
        if standin in used:
            yield Problem(
                "instead", where, f"`{standin}` runs only when `{node.id}` fails, so nothing else may need it"
            )
        hosts[standin] = node.id


def _models(plan: Plan, models: tuple[str, ...]) -> Iterator[Problem]:
    for index, node in enumerate(plan.nodes):
        work = edges.work_of(node)
        if isinstance(work, ModelCall) and work.model is not None and work.model.partition(":")[0] not in models:
            message = f"model `{work.model}` is not built yet; built: {', '.join(models)}"
            yield Problem("model", ("nodes", index, "model"), message)
