"""The beginning of a plan that is still being written: what of it may run, and whether the whole continues it."""

from typing import Any

from workflows.plan.language import dependencies
from workflows.plan.language.nodes import LlmNode, Node, Plan, ToolNode


def startable(nodes: list[Node], tools: dict[str, dict[str, Any]]) -> list[Node]:
    """Return the nodes that may run before the plan is whole, with everything they need among them.

    These are calls that change nothing and depend on nothing but their inputs: no writes, conditions or fallback nodes.
    Models that may add nodes, which are tool loops and joiners, are left out: they would change the plan being written.
    """
    found: dict[str, Node] = {}
    for node in nodes:
        if _harmless(node, tools) and all(name in found for name in dependencies.links_of(node).waits):
            found[node.id] = node
    return list(found.values())


def _harmless(node: Node, tools: dict[str, dict[str, Any]]) -> bool:
    if not isinstance(node, ToolNode | LlmNode) or node.when is not None or not isinstance(node.on_error, str):
        return False
    if isinstance(node, LlmNode):
        return not node.tools and node.role != "joiner"
    return tools.get(node.tool, {}).get("effect", "write") in ("pure", "read")


def continued(base: Plan, whole: Plan) -> Plan | None:
    """Return the whole plan with the nodes of `base` first, as they are there; None if it lacks or changes one."""
    by_id = {node.id: node for node in whole.nodes}
    if any(by_id.get(node.id) != node for node in base.nodes):
        return None
    begun = dict.fromkeys(node.id for node in base.nodes)
    rest = [node for node in whole.nodes if node.id not in begun]
    return whole.model_copy(update={"nodes": (*base.nodes, *rest)})
