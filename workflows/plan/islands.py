"""Islands: nodes which one activity may run together, and what a plan must keep to for that."""

from collections.abc import Iterator
from typing import Any

from workflows.plan import edges
from workflows.plan.model import JoinNode, Node, Plan, ToolCall
from workflows.plan.problems import Problem, Where


def island_problems(plan: Plan, tools: dict[str, dict[str, Any]]) -> Iterator[Problem]:
    """Yield each rule an island breaks.

    Members are tool calls without a write effect, without locks or a stand-in; none feeds a join that may close
    early; only members without a consumer inside have one outside, and these share their consumers, so that nobody
    waits for what it does not need.
    """
    nodes = {node.id: node for node in plan.nodes}
    seen: dict[str, int] = {}
    for index, members in enumerate(plan.islands):
        where: Where = ("islands", index)
        for name in members:
            if name not in nodes:
                yield Problem("dangling", where, f"there is no node `{name}`")
            elif name in seen:
                yield Problem("island", where, f"`{name}` is in two islands")
            else:
                seen[name] = index
                yield from _member(nodes[name], where, tools)
        if all(name in nodes for name in members):
            yield from _edges(plan, members, where)


def _member(node: Node, where: Where, tools: dict[str, dict[str, Any]]) -> Iterator[Problem]:
    if not isinstance(node, ToolCall):
        yield Problem("island", where, f"`{node.id}` is {node.kind}; an island holds tool calls")
        return
    if tools.get(node.tool, {}).get("effect") == "write":
        yield Problem("island", where, f"`{node.id}` writes; an island only reads")
    if node.locks or node.on_error not in ("fail", "skip"):
        yield Problem("island", where, f"`{node.id}` has locks or a fallback; an island has neither")


def _edges(plan: Plan, members: tuple[str, ...], where: Where) -> Iterator[Problem]:
    inside = dict.fromkeys(members)
    outer: dict[str, list[str]] = {name: [] for name in members}
    inner: dict[str, int] = dict.fromkeys(members, 0)
    for node in plan.nodes:
        for name in edges.waits_for(node):
            if name not in inside:
                continue
            if node.id in inside:
                inner[name] += 1
            else:
                outer[name].append(node.id)
                if isinstance(node, JoinNode) and (node.policy not in ("all", "settled") or node.deadline):
                    yield Problem("island", where, f"`{name}` feeds `{node.id}`, which may close early")
    for name in members:
        if inner[name] and outer[name]:
            yield Problem("island", where, f"`{name}` has consumers inside and outside ({outer[name][0]})")
    exits = [tuple(outer[name]) for name in members if outer[name]]
    if len(set(exits)) > 1:
        yield Problem("island", where, "its exits have different consumers")
