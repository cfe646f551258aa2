"""Which nodes a node depends on, by explicit need, by reference, by condition, as input, as stand-in."""

from collections.abc import Iterator
from typing import Any

from workflows.plan.conditions import tests_of
from workflows.plan.model import Instead, JoinNode, MapNode, ModelCall, Node, Plan, ToolCall
from workflows.plan.problems import Where
from workflows.plan.references import (
    Reference,
    parse_reference,
    parse_status_reference,
    references_in,
)


def work_of(node: Node) -> ToolCall | ModelCall | None:
    """Return the call a node makes: its own, or a map's template."""
    if isinstance(node, MapNode):
        return node.do
    return node if isinstance(node, ToolCall | ModelCall) else None


def arguments_of(node: Node) -> tuple[str, Any] | None:
    """Return (field, value) of what a node's call is bound from: `args`, or `prompt`."""
    work = work_of(node)
    if work is None:
        return None
    return ("args", work.args) if isinstance(work, ToolCall) else ("prompt", work.prompt)


def value_references(node: Node) -> Iterator[tuple[Where, Reference]]:
    """Yield the references whose values a node's activity reads; a map's item name among them."""
    bound = arguments_of(node)
    if bound is not None:
        inside: Where = ("do",) if isinstance(node, MapNode) else ()
        for reference in references_in(bound[1]):
            yield (*inside, bound[0]), reference
    if isinstance(node, MapNode):
        over = parse_reference(node.over)
        if over is not None:
            yield ("over",), over


def reads_of(node: Node) -> list[str]:
    """Return the ids of the nodes whose outputs this node's activity loads, in order, without repeats."""
    own = node.as_ if isinstance(node, MapNode) else None
    names = [reference.node for _, reference in value_references(node)]
    return list(dict.fromkeys(name for name in names if name not in ("input", "goal", own)))


def needs_of(node: Node) -> list[str]:
    """Return the ids that must succeed before this node starts; a join's inputs are not among them."""
    tested = []
    if node.when is not None:
        for test in tests_of(node.when):
            reference = parse_reference(test.ref)
            if reference is not None and reference.node not in ("input", "goal"):
                tested.append(reference.node)
    return list(dict.fromkeys([*node.needs, *reads_of(node), *tested]))


def watches_of(node: Node) -> list[str]:
    """Return the ids that only have to end, because a condition reads their status."""
    if node.when is None:
        return []
    found = [parse_status_reference(test.ref) for test in tests_of(node.when)]
    needed = needs_of(node)
    return list(dict.fromkeys(item[0] for item in found if item is not None and item[0] not in needed))


def inputs_of(node: Node) -> list[str]:
    """Return a join's inputs."""
    return list(node.inputs) if isinstance(node, JoinNode) else []


def standin_of(node: Node) -> str | None:
    """Return the node that runs when this one fails."""
    return node.on_error.instead if isinstance(node.on_error, Instead) else None


def waits_for(node: Node) -> list[str]:
    """Return every id whose end can hold this node up, a stand-in's included: the edges a cycle is made of."""
    standin = standin_of(node)
    return [*needs_of(node), *watches_of(node), *inputs_of(node), *([standin] if standin else [])]


def facts_wanted(plan: Plan) -> dict[str, list[str]]:
    """Return for each node the facts that conditions and maps read, in the order of the plan."""
    wanted: dict[str, list[str]] = {}
    for node in plan.nodes:
        if node.when is not None:
            for test in tests_of(node.when):
                reference = parse_reference(test.ref)
                if reference is not None:
                    wanted.setdefault(reference.node, []).append(fact_name(reference, test.op))
        over = parse_reference(node.over) if isinstance(node, MapNode) else None
        if over is not None:
            wanted.setdefault(over.node, []).append(length_fact(over))
    return {name: list(dict.fromkeys(facts)) for name, facts in wanted.items()}


def fact_name(reference: Reference, op: str) -> str:
    """Return the fact a test reads; `exists` only asks for the path."""
    return f"?{reference.fact}" if op == "exists" else reference.fact


def length_fact(over: Reference) -> str:
    """Return the fact that tells how long a map's list is."""
    return f"{over.fact}.length" if over.path else "length"


def leaves(plan: Plan) -> list[str]:
    """Return the nodes nobody consumes, stand-ins left out."""
    used = {name: True for node in plan.nodes for name in waits_for(node)}
    return [node.id for node in plan.nodes if node.id not in used]


def answer_of(plan: Plan) -> Any:
    """Return the plan's answer expression: as given, or a reference to the only leaf."""
    if plan.answer is not None:
        return plan.answer
    ends = leaves(plan)
    return f"${ends[0]}" if len(ends) == 1 else None
