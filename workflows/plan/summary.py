"""One line a node for timelines and lists: `n7 search "length of the Nile" <- n2,n3`."""

import json
from typing import Any

from workflows.plan import edges
from workflows.plan.model import GateNode, JoinNode, MapNode, Node, Quorum, ToolCall

SUMMARY_CHARACTERS = 120


def summary_of(node: Node) -> str:
    """Return the summary: id first, what it does, what it waits for; at most 120 characters on one line."""
    names = [*edges.inputs_of(node), *edges.needs_of(node)]
    tail = f" <- {','.join(names)}" if names else ""
    if len(tail) > 40:
        tail = f" <- {len(names)} nodes"
    head = " ".join(f"{node.id} {_what(node)}".split())
    room = SUMMARY_CHARACTERS - len(tail)
    return (head if len(head) <= room else head[: room - 1] + "…") + tail


def _what(node: Node) -> str:
    if isinstance(node, JoinNode):
        policy = f"quorum {node.policy.quorum}" if isinstance(node.policy, Quorum) else node.policy
        return f"join {policy} of {len(node.inputs)}"
    if isinstance(node, GateNode):
        return f"gate {node.question}"
    work = edges.work_of(node)
    if isinstance(work, ToolCall):
        call = f"{work.tool} {_arguments(work.args)}".strip()
    else:
        call = f"{work.role} {work.prompt}" if work is not None else ""
    return f"map {call} over {node.over}" if isinstance(node, MapNode) else call


def _arguments(args: dict[str, Any]) -> str:
    """The first argument speaks for itself; the rest are named."""
    shown = [
        json.dumps(value, ensure_ascii=False) if index == 0 else f"{name}={value}"[:30]
        for index, (name, value) in enumerate(args.items())
    ]
    return " ".join(shown)[:200]
