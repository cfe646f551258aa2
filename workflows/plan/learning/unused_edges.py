"""Edges that make a call wait for another one of which it uses nothing, as earlier runs tell."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import Node, Plan, ToolNode
from sennit.workflows.plan.language.problems import Problem

LEAST_RUNS = 5
"""Fewer runs teach nothing of an edge."""
SELDOM = 0.1
"""Up to this share of all runs, a use counts as none."""


class Use(NamedTuple):
    """Of a pair of tools: the runs in which the second came after the first, and those in
    which it used its output.
    """

    together: int
    used: int

    @property
    def is_seldom(self) -> bool:
        return self.together >= LEAST_RUNS and self.used <= SELDOM * self.together


Tools = Mapping[str, Mapping[str, Any]]
Uses = Mapping[tuple[str, str], Use]


def doubtful_edges(plan: Plan) -> list[tuple[int, int, str, str]]:
    """Return (place of a node, place in its `needs`, its tool, the other's tool) of each edge by
    `needs` between calls of tools that no reference backs.
    """
    nodes = plan.by_id
    found = []
    for index, node in enumerate(plan.nodes):
        if not isinstance(node, ToolNode) or not node.needs:
            continue
        without_needs = node.model_copy(update={"needs": ()})
        read = dict.fromkeys(dependencies.links_of(without_needs).needs)
        for position, name in enumerate(node.needs):
            other: Node | None = nodes.get(name)
            if isinstance(other, ToolNode) and name not in read:
                found.append((index, position, node.tool, other.tool))
    return found


def unused_edges(plan: Plan, uses: Uses, tools: Tools) -> Iterator[Problem]:
    """Yield a warning for each edge by `needs` of which earlier runs say that nothing came of it.

    An edge from or to a tool that writes is never doubted: what it orders are effects, and
    no value tells of them.
    """
    for index, position, second, first in doubtful_edges(plan):
        if not _only_reads(first, tools) or not _only_reads(second, tools):
            continue
        use = uses.get((first, second))
        if use is None or not use.is_seldom:
            continue
        node = plan.nodes[index]
        needed = node.needs[position]
        unused = use.together - use.used
        message = (
            f"`{node.id}` waits for `{needed}`, and in {unused:,} of {use.together:,} runs "
            f"`{second}` used nothing of what `{first}` had returned; without it in `needs` both "
            "run at the same time"
        )
        yield Problem("unused_edge", ("nodes", index, "needs", position), message)


def _only_reads(name: str, tools: Tools) -> bool:
    """Whether a tool is known to change nothing."""
    effect = tools.get(name, {}).get("effect")
    return effect in ("pure", "read")
