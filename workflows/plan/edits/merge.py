"""Nodes that are added to a settled plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan, Problem
from sennit.workflows.plan.language.references import renamed
from sennit.workflows.plan.limits import MAX_NODES

_BOUND = ("args", "prompt", "media", "workspace", "goal", "question", "over", "when", "do")
"""The fields of a node in which references are read."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Nodes to add, in the plan language, and why. `answer` is the expression of the new answer."""

    why: str
    nodes: tuple[dict[str, Any], ...]
    answer: Any = None

    @classmethod
    def of(cls, wish: Any) -> Self:
        """Return the delta in a joiner's output, `{replan: {why, nodes, answer}}`; an empty one if there is none."""
        replan = wish.get("replan") if isinstance(wish, dict) else None
        fields = replan if isinstance(replan, dict) else {}
        nodes = fields.get("nodes")
        listed = nodes if isinstance(nodes, list) else []
        return cls(
            str(fields.get("why", "")), tuple(node for node in listed if isinstance(node, dict)), fields.get("answer")
        )

    @property
    def expansion_request(self) -> dict[str, Any]:
        """The output that asks for these nodes."""
        return {"replan": {"why": self.why, "nodes": list(self.nodes), "answer": self.answer}}


def merge(plan: Plan, delta: Delta) -> Plan | tuple[Problem, ...]:
    """Return the plan with the delta's nodes behind its own, or what is wrong with their shape.

    Nothing that is there changes. A new node whose id is taken gets another, `n3_2`, and the delta's own references to
    it follow. The answer becomes the delta's; without one, the last of its nodes that nobody uses. Whether references
    lead anywhere and arguments fit is for `validate` to say, as of any plan.
    """
    names = _free_names([str(node.get("id")) for node in delta.nodes], {node.id: None for node in plan.nodes})
    try:
        added = parse_plan({"nodes": [_renamed(node, names) for node in delta.nodes]})
    except InvalidPlan as error:
        return error.problems
    nodes = plan.nodes + added.nodes
    if len(nodes) > MAX_NODES:
        return (
            Problem("too_many_nodes", ("nodes",), f"{len(nodes):,} nodes with the new ones; at most {MAX_NODES:,}"),
        )
    answer = renamed(delta.answer, names)
    if answer is None:
        answer = f"${(dependencies.leaves(added) or [added.nodes[-1].id])[-1]}"
    return plan.model_copy(update={"nodes": nodes, "answer": answer})


def _free_names(wanted: Iterable[str], taken: Mapping[str, None]) -> dict[str, str]:
    """Return a free id for each wanted one; ids that are free stay. One that is wanted twice stays one id."""
    new = dict.fromkeys(wanted)
    used = dict.fromkeys((*taken, *(name for name in new if name not in taken)))
    names: dict[str, str] = {}
    for name in new:
        free, count = name, 2
        while name in taken and free in used:
            end = f"_{count}"
            free, count = name[: 40 - len(end)] + end, count + 1
        used[free] = None
        names[name] = free
    return names


def _renamed(node: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a node of the delta, its shape not yet known, with its ids and references renamed."""
    do = node.get("do")
    inside = (
        [node.get("as"), *(stage.get("id") for stage in do if isinstance(stage, dict))]
        if isinstance(do, list)
        else [node.get("as")]
    )
    outside = {name: new for name, new in names.items() if name not in inside}
    made = {field: renamed(value, outside) if field in _BOUND else value for field, value in node.items()}
    if isinstance(node.get("items"), str):
        made["items"] = names.get(node["items"], node["items"])
    for field in ("needs", "inputs"):
        if isinstance(node.get(field), list):
            made[field] = [names.get(name, name) if isinstance(name, str) else name for name in node[field]]
    if isinstance(node.get("id"), str):
        made["id"] = names[node["id"]]
    on_error = node.get("on_error")
    if isinstance(on_error, dict) and isinstance(on_error.get("instead"), str):
        made["on_error"] = {**on_error, "instead": names.get(on_error["instead"], on_error["instead"])}
    return made
