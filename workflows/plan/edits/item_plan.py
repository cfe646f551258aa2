"""The plan of one item of a map whose items are runs of their own: the nodes of `do`,
behind what they are given.

Nodes of its own give what `do` reads from outside: the item by its name, and outputs by the ids of
their nodes. So references, conditions, fences around what nobody in particular has written, and
repairs mean what they mean in any plan.
"""

from collections.abc import Mapping
from typing import Any, Final

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import AnyStage, Instead, MapNode
from sennit.workflows.plan.language.references import literal

GIVEN: Final = "given"
"""The tool that gives what comes from outside."""


def fallbacks_in(node: MapNode) -> dict[str, int]:
    """Return the nodes of a map's `do` that run only in place of another, by their ids,
    each with its place there.
    """
    names: set[str] = set()
    for stage in node.do:
        if isinstance(stage.on_error, Instead):
            names.add(stage.on_error.instead)
    places: dict[str, int] = {}
    for place, stage in enumerate(node.do):
        if stage.id is not None and stage.id in names:
            places[stage.id] = place
    return places


def read_by_do(node: MapNode) -> list[str]:
    """Return the names that a map's `do` reads from outside: the item's, ids of
    nodes, `goal` and `input`.
    """
    inside = [stage.id for stage in node.do]
    names: dict[str, None] = {}
    for where, reference in dependencies.value_references(node):
        if where != ("over",) and reference.node not in inside:
            names[reference.node] = None
    return list(names)


def name_of_value(node: MapNode, given: Mapping[str, Any]) -> str:
    """Return the id that the last node of `do` has in the plan of an item, where it needs one."""
    taken: list[str | None] = list(given)
    for stage in node.do:
        taken.append(stage.id)
    name = "value"
    count = 1
    while name in taken:
        count += 1
        name = f"value_{count}"
    return name


def plan_of_item(
    node: MapNode,
    given: Mapping[str, Any],
    inputs: Mapping[str, Any],
    declared: Mapping[str, Any],
    goal: str,
) -> dict[str, Any]:
    """Return the plan of one item: `given` are the values that its nodes read from
    outside, `inputs` those of the run, which are `declared` in its plan. Its answer is the
    value of the last node.
    """
    nodes: list[dict[str, Any]] = []
    for name, value in given.items():
        args = {"output": literal(value)}
        nodes.append({"id": name, "kind": "tool", "tool": GIVEN, "args": args})
    last = name_of_value(node, given)
    fallbacks = fallbacks_in(node)
    before: list[str] = []
    needs: dict[str, list[str]] = {}
    # each node runs behind the one before it in the chain, and what runs in place of a
    # node behind the same one
    for stage in node.do:
        name = stage.id or last
        if name in fallbacks:
            continue
        needs[name] = before
        before = [name]
        behind = stage
        while isinstance(behind.on_error, Instead):
            needs[behind.on_error.instead] = needs[name]
            behind = node.do[fallbacks[behind.on_error.instead]]
    for stage in node.do:
        name = stage.id or last
        nodes.append(
            {**_written(stage), "id": name, "needs": needs[name], "priority": node.priority}
        )
    plan: dict[str, Any] = {"goal": goal, "nodes": nodes, "answer": f"${last}"}
    if inputs:
        plan["inputs"] = {}
        for name, value in inputs.items():
            plan["inputs"][name] = {**declared[name], "default": value}
    return plan


def _written(stage: AnyStage) -> dict[str, Any]:
    fields: dict[str, Any] = stage.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {"kind": stage.kind, **fields}
