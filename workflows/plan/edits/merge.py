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

_ID_CHARACTERS = 40
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
        """Return the delta in a joiner's output, `{replan: {why, nodes, answer}}`; an
        empty one if there is none.
        """
        replan = None
        if isinstance(wish, dict):
            replan = wish.get("replan")
        if not isinstance(replan, dict):
            return cls("", ())

        # A model may have written anything: what is no node is left out.
        nodes: list[dict[str, Any]] = []
        listed = replan.get("nodes")
        if isinstance(listed, list):
            nodes = [node for node in listed if isinstance(node, dict)]
        why = str(replan.get("why", ""))
        return cls(why, tuple(nodes), replan.get("answer"))

    @property
    def expansion_request(self) -> dict[str, Any]:
        """The output that asks for these nodes."""
        return {"replan": {"why": self.why, "nodes": list(self.nodes), "answer": self.answer}}


def merge(plan: Plan, delta: Delta) -> Plan | tuple[Problem, ...]:
    """Return the plan with the delta's nodes behind its own, or what is wrong with their shape.

    Nothing that is there changes. A new node whose id is taken gets another, `n3_2`, and the
    delta's own references to it follow. The answer becomes the delta's; without one, the last of
    its nodes that nobody uses. Whether references lead anywhere and arguments fit is for `validate`
    to say, as of any plan.
    """
    taken = dict.fromkeys(plan.ids)
    wanted = [str(node.get("id")) for node in delta.nodes]
    names = _free_names(wanted, taken)
    written: list[dict[str, Any]] = []
    for node in delta.nodes:
        written.append(_renamed(node, names))
    try:
        added = parse_plan({"nodes": written})
    except InvalidPlan as error:
        return error.problems
    nodes = plan.nodes + added.nodes
    if len(nodes) > MAX_NODES:
        message = f"{len(nodes):,} nodes with the new ones; at most {MAX_NODES:,}"
        return (Problem("too_many_nodes", ("nodes",), message),)
    answer = renamed(delta.answer, names)
    if answer is None:
        unused = dependencies.leaves(added) or [added.nodes[-1].id]
        answer = f"${unused[-1]}"
    return plan.model_copy(update={"nodes": nodes, "answer": answer})


def _free_names(wanted: Iterable[str], taken: Mapping[str, None]) -> dict[str, str]:
    """Return a free id for each wanted one; ids that are free stay. One that is
    wanted twice stays one id.
    """
    new = dict.fromkeys(wanted)
    used = {**taken, **new}
    names: dict[str, str] = {}
    for name in new:
        free = name
        if name in taken:
            count = 2
            while free in used:
                end = f"_{count}"
                free = name[: _ID_CHARACTERS - len(end)] + end
                count += 1
        used[free] = None
        names[name] = free
    return names


def _renamed(node: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a node of the delta, its shape not yet known, with its ids and references renamed."""
    outside = _names_from_outside(node, names)
    made = dict(node)
    for field in _BOUND:
        if field in node:
            made[field] = renamed(node[field], outside)

    # Other fields name nodes by their bare ids.
    if isinstance(node.get("id"), str):
        made["id"] = names[node["id"]]
    if isinstance(node.get("items"), str):
        made["items"] = names.get(node["items"], node["items"])
    for field in ("needs", "inputs"):
        if isinstance(node.get(field), list):
            made[field] = [_new_name(name, names) for name in node[field]]
    on_error = node.get("on_error")
    if isinstance(on_error, dict):
        made["on_error"] = dict(on_error)
        if "instead" in on_error:
            made["on_error"]["instead"] = _new_name(on_error["instead"], names)
    return made


def _names_from_outside(node: dict[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """Return the names that references in a node mean as they are meant outside: inside a map, the
    names of its item and of its own nodes mean these, whatever is called so outside.
    """
    inside = [node.get("as")]
    do = node.get("do")
    if isinstance(do, list):
        for stage in do:
            if isinstance(stage, dict):
                inside.append(stage.get("id"))
    return {name: new for name, new in names.items() if name not in inside}


def _new_name(name: Any, names: Mapping[str, str]) -> Any:
    """Return the id that a node has now; anything that is no id as it stands."""
    if not isinstance(name, str):
        return name
    return names.get(name, name)
