"""The beginning of a plan that is still being written: its nodes that may run, and whether
the whole continues it.
"""

from typing import Any

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import LlmNode, Node, Plan, ToolNode
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import InvalidPlan
from sennit.workflows.plan.limits import MAX_NODES


class PlanPrefix:
    """The nodes of a plan that is still being written, each parsed once, and those of
    them that may run already.

    These are calls that change nothing and depend on nothing but their inputs: no writes,
    conditions or fallback nodes. Models that may add nodes are left out, because they would change
    the plan being written: tool loops, joiners, and models that may read on in their context.
    """

    def __init__(self) -> None:
        self.startable: dict[str, Node] = {}
        self._ids: set[str] = set()
        self._valid = True

    def add(self, nodes: list[dict[str, Any]], tools: dict[str, dict[str, Any]]) -> bool:
        """Take further nodes; return whether more of them may start. After a node that
        is not valid, none may.
        """
        if not nodes:
            return False
        before = len(self.startable)
        if self._valid:
            added = self._parsed(nodes)
            self._valid = bool(added)
            for node in added:
                waits = set(dependencies.links_of(node).waits)
                if _harmless(node, tools) and self.startable.keys() >= waits:
                    self.startable[node.id] = node
        return len(self.startable) > before

    def _parsed(self, nodes: list[dict[str, Any]]) -> tuple[Node, ...]:
        """Return the nodes; none of them if one is not valid, or has the id of another,
        or if they are too many.
        """
        count = len(self._ids) + len(nodes)
        if count > MAX_NODES:
            return ()
        try:
            added = parse_plan({"nodes": nodes}).nodes
        except InvalidPlan:
            return ()
        for node in added:
            self._ids.add(node.id)
        if len(self._ids) < count:
            return ()
        return added

    def plan(self) -> Plan:
        """Return the nodes that may start, as a plan."""
        answer = [f"${name}" for name in self.startable]
        return Plan(nodes=tuple(self.startable.values()), answer=answer)


def _harmless(node: Node, tools: dict[str, dict[str, Any]]) -> bool:
    if not isinstance(node, ToolNode | LlmNode):
        return False
    if node.when is not None or not isinstance(node.on_error, str):
        return False
    if isinstance(node, LlmNode):
        return not node.adds_nodes
    effect = tools.get(node.tool, {}).get("effect", "write")
    return effect in ("pure", "read")


def continued(base: Plan, whole: Plan) -> Plan | None:
    """Return the whole plan with the nodes of `base` first, as they are there; None if
    it lacks or changes one.
    """
    by_id = whole.by_id
    for node in base.nodes:
        if by_id.pop(node.id, None) != node:
            return None
    rest = [node for node in whole.nodes if node.id in by_id]
    nodes = (*base.nodes, *rest)
    return whole.model_copy(update={"nodes": nodes})
