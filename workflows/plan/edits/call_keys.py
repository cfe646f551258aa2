"""What each node of a plan does, as a key that does not depend on node ids:
equal work has equal keys.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.dag import topological_order
from sennit.workflows.plan.language.dependencies import Links
from sennit.workflows.plan.language.nodes import Instead, JoinNode, LlmNode, Node, Plan
from sennit.workflows.plan.language.references import renamed

_SORTED = json.JSONEncoder(sort_keys=True)


def call_keys(plan: Plan) -> dict[str, str]:
    """Return a key for each node of a plan without circles.

    It is made of what the node does as the plan writes it, with each reference replaced by the
    digest of the node it names, and so on, of what the node runs after, and of the node's ordinal
    among those that do the same, in plan order: a call planned twice is meant twice, and a read
    after a write is not the read before it.
    """
    digests = _digests(plan, _call)
    seen: Counter[str] = Counter()
    keys = {}
    for node in plan.nodes:
        digest = digests[node.id]
        seen[digest] += 1
        keys[node.id] = f"{digest}.{seen[digest]}"
    return keys


def same_plan(one: Plan, other: Plan) -> bool:
    """Whether two plans without circles make the same calls on the same inputs, whatever their
    nodes are called, in whatever order and however often. How results are joined is no call: a plan
    that only adds what was called before is the same plan.
    """
    return _calls(one) == _calls(other)


def _calls(plan: Plan) -> set[str]:
    """Return the digests of the nodes that call."""
    digests = _digests(plan, _whole)
    called: set[str] = set()
    for node in plan.nodes:
        if not _joins(node):
            called.add(digests[node.id])
    return called


def _joins(node: Node) -> bool:
    if isinstance(node, LlmNode):
        return node.role == "joiner"
    return isinstance(node, JoinNode)


def _call(node: Node) -> dict[str, Any]:
    """Return what a node does, whatever becomes of it when it fails."""
    if node.kind == "tool":
        return {"tool": node.tool, "args": node.args}
    return node.model_dump(mode="json", by_alias=True, exclude={"id", "needs", "on_error"})


def _whole(node: Node) -> dict[str, Any]:
    """Return all of a node but its id; its fallback node is a call of its own."""
    written = node.model_dump(mode="json", by_alias=True, exclude={"id", "needs"})
    if isinstance(node.on_error, Instead):
        written["on_error"] = "instead"
    return written


def _digests(plan: Plan, content: Callable[[Node], dict[str, Any]]) -> dict[str, str]:
    """Return for each node a digest of its content, of what that refers to, and of
    what the node runs after.
    """
    places = plan.places
    links = list(map(dependencies.links_of, plan.nodes))
    sources: list[list[int]] = []
    for links_of_node in links:
        runs_after = [places[name] for name in _sources(links_of_node)]
        sources.append(runs_after)

    # The digest of a node has those of its sources in it.
    digests: dict[str, str] = {}
    for place in topological_order(sources):
        node = plan.nodes[place]
        digests[node.id] = _digest(node, content(node), links[place], digests)
    return digests


def _sources(links: Links) -> list[str]:
    """Return the nodes that a node runs after, fallbacks left out."""
    return [*links.needs, *links.watches, *links.inputs]


def _digest(node: Node, written: dict[str, Any], links: Links, digests: Mapping[str, str]) -> str:
    if node.kind != "tool":
        written["inputs"] = [digests[name] for name in links.inputs]
    if node.kind == "join":
        written["items"] = node.items is not None
    after = [digests[name] for name in _sources(links)]
    written["after"] = sorted(after)
    # To look for references takes long, and most calls of tools have none.
    if node.kind != "tool" or links.reads or written.get("when") is not None:
        written = renamed(written, digests)
    text = _SORTED.encode(written)
    return hashlib.sha256(text.encode()).hexdigest()[:40]
