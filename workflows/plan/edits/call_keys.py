"""What each node of a plan does, as a key that does not depend on node ids: equal work has equal keys."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.dag import topological_order
from sennit.workflows.plan.language.dependencies import Links
from sennit.workflows.plan.language.nodes import Node, Plan
from sennit.workflows.plan.language.references import renamed

_SORTED = json.JSONEncoder(sort_keys=True)


def call_keys(plan: Plan) -> dict[str, str]:
    """Return a key for each node of a plan without circles.

    It is made of what the node does as the plan writes it, with each reference replaced by the digest of the node it
    names, and so on, of what the node runs after, and of the node's ordinal among those that do the same, in plan
    order: a call planned twice is meant twice, and a read after a write is not the read before it.
    """
    place = {node.id: position for position, node in enumerate(plan.nodes)}
    digests: dict[str, str] = {}
    links = [dependencies.links_of(node) for node in plan.nodes]
    for position in topological_order([[place[name] for name in _sources(each)] for each in links]):
        node = plan.nodes[position]
        digests[node.id] = _digest(node, links[position], digests)
    seen: Counter[str] = Counter()
    keys = {}
    for node in plan.nodes:
        digest = digests[node.id]
        seen[digest] += 1
        keys[node.id] = f"{digest}.{seen[digest]}"
    return keys


def _sources(links: Links) -> list[str]:
    """Return the nodes that a node runs after, fallbacks left out."""
    return [*links.needs, *links.watches, *links.inputs]


def _digest(node: Node, links: Links, digests: Mapping[str, str]) -> str:
    if node.kind == "tool":
        args: Any = renamed(node.args, digests) if links.reads else node.args
        written: dict[str, Any] = {"tool": node.tool, "args": args}
    else:
        written = renamed(node.model_dump(mode="json", by_alias=True, exclude={"id", "needs", "on_error"}), digests)
        written["inputs"] = [digests[name] for name in links.inputs]
    written["after"] = sorted(digests[name] for name in _sources(links))
    text = _SORTED.encode(written)
    return hashlib.sha256(text.encode()).hexdigest()[:40]
