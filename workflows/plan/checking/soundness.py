"""What can be said of a plan besides its problems: of its sound part if the form of the rest
is wrong, and warnings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sennit.workflows.plan.checking.validation import parse_plan
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import (
    AgentCall,
    GateNode,
    JoinNode,
    Node,
    Plan,
    ProgramNode,
    ToolCall,
)
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, Where
from sennit.workflows.plan.language.references import references_in

_HARMLESS = ("pure", "read")


class SoundPart(NamedTuple):
    """A plan in which other nodes stand for those of a wrong form, and where
    something of it was left out.
    """

    plan: Plan
    nodes: frozenset[int]
    fields: frozenset[str | int]

    def is_about(self, where: Where) -> bool:
        """Whether a problem there is one of the plan as it was written."""
        if not where or where[0] in self.fields:
            return False
        if where[0] != "nodes":
            return True
        return len(where) > 1 and where[1] not in self.nodes


def sound_part(data: Mapping[str, Any], problems: Iterable[Problem]) -> SoundPart | None:
    """Return the plan without what is wrong with its form; None if what is left would be no plan.

    A node of a wrong form keeps its id, and of its output nothing is known. So what refers to
    it is judged as before.
    """
    places = [problem.where for problem in problems]
    if () in places or ("nodes",) in places:
        return None
    wrong_nodes: dict[int, None] = {}
    wrong_fields: dict[str | int, None] = {}
    for where in places:
        if where[0] != "nodes":
            wrong_fields[where[0]] = None
        elif isinstance(where[1], int):
            wrong_nodes[where[1]] = None

    nodes = list(data.get("nodes", ()))
    for index in wrong_nodes:
        node = nodes[index]
        if not isinstance(node, dict) or not isinstance(node.get("id"), str):
            return None
        if ("nodes", index, "id") in places:
            return None
        nodes[index] = {"id": node["id"], "kind": "agent", "goal": "unknown"}
    rest = {name: value for name, value in data.items() if name not in wrong_fields}
    try:
        plan = parse_plan({**rest, "nodes": nodes})
    except InvalidPlan:
        return None
    return SoundPart(plan, frozenset(wrong_nodes), frozenset(wrong_fields))


def unused_nodes(plan: Plan, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield the nodes of a plan whose output nothing uses, if they do nothing else either: that
    write nothing and ask nobody.
    """
    if plan.answer is None:
        return
    used = {reference.node for reference in references_in(plan.answer)}
    for node in plan.nodes:
        fallback = dependencies.fallback_of(node)
        if fallback:
            used.add(fallback)
    ends = set(dependencies.leaves(plan))
    for index, node in enumerate(plan.nodes):
        is_unused = node.id in ends and node.id not in used
        if is_unused and _only_reads(node, tools):
            message = f"nothing uses `{node.id}`; it runs all the same. Refer to it, or take it out"
            yield Problem("unused", ("nodes", index, "id"), message)


def _only_reads(node: Node, tools: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a node is known to change nothing and to ask nobody."""
    if isinstance(node, GateNode | ProgramNode) or dependencies.programs_in(node):
        return False
    if isinstance(node, JoinNode):
        return True
    for _, work in dependencies.works_of(node):
        if isinstance(work, AgentCall):
            return False
        names: Sequence[str]
        if isinstance(work, ToolCall):
            names = (work.tool,)
        else:
            names = work.tools
        for name in names:
            effect = tools.get(name, {}).get("effect")
            if effect not in _HARMLESS:
                return False
    return True
