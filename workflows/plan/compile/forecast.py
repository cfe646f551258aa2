"""Estimates from a plan alone: how urgent each node is, how many may run at once, and how
many tokens they take.
"""

from collections import Counter
from collections.abc import Sequence

from sennit.workflows.plan.language.dag import topological_order
from sennit.workflows.plan.language.dependencies import Links, links_of, programs_in, works_of
from sennit.workflows.plan.language.nodes import AgentCall, MapNode, ModelCall, Node, Plan, ToolCall
from sennit.workflows.plan.language.text import text_bytes

GUESSED_SECONDS = {
    "tool": 1.0,
    "llm": 5.0,
    "agent": 60.0,
    "program": 10.0,
    "map": 2.0,
    "join": 0.05,
    "gate": 60.0,
}
GUESSED_TOKENS = 1_000
"""The tokens that a model call is expected to take, beside its prompt, where the
plan gives no estimate.
"""
AGENT_TOKENS = 20_000


def ranks(plan: Plan, links: Sequence[Links]) -> list[int]:
    """Return for each node the longest estimated path from its start to the end of the
    plan, in milliseconds.
    """
    dependencies = _dependencies(plan, links)
    durations = [round(_seconds(node) * 1000) for node in plan.nodes]
    longest = list(durations)
    # From the end of the plan, each node lengthens the paths of the nodes that it waits for.
    for node in reversed(topological_order(dependencies)):
        for dependency in dependencies[node]:
            path = durations[dependency] + longest[node]
            longest[dependency] = max(longest[dependency], path)
    return longest


def width(plan: Plan) -> int:
    """Return the number of nodes on the widest level: how many may run at once."""
    dependencies = _dependencies(plan, list(map(links_of, plan.nodes)))
    levels = [0] * len(dependencies)
    counts: Counter[int] = Counter()
    for node in topological_order(dependencies):
        for dependency in dependencies[node]:
            level = levels[dependency] + 1
            levels[node] = max(levels[node], level)
        counts[levels[node]] += 1
    return max(counts.values(), default=0)


def tokens(nodes: Sequence[Node]) -> int:
    """Return about how many tokens the nodes take."""
    return sum(map(_tokens, nodes))


def _dependencies(plan: Plan, links: Sequence[Links]) -> list[list[int]]:
    """Return for each node the places of the nodes that it waits for."""
    places = plan.places
    dependencies: list[list[int]] = []
    for links_of_node in links:
        waits = dict.fromkeys(links_of_node.waits)
        dependencies.append([places[name] for name in waits])
    return dependencies


def _seconds(node: Node) -> float:
    works = works_of(node)
    if node.kind != "map" and not works:
        return GUESSED_SECONDS[node.kind]
    seconds = len(programs_in(node)) * GUESSED_SECONDS["program"]
    for _, work in works:
        seconds += _seconds_of(node, work)
    return seconds


def _seconds_of(node: Node, work: ToolCall | ModelCall | AgentCall) -> float:
    if work.estimate is not None and work.estimate.seconds is not None:
        return work.estimate.seconds
    # Items take as long as a short call does, unless each is a run of its own.
    if work.kind == "agent":
        return GUESSED_SECONDS["agent"]
    return GUESSED_SECONDS[node.kind]


def _tokens(node: Node) -> int:
    count = 0
    for _, work in works_of(node):
        count += _tokens_of(node, work)
    return count


def _tokens_of(node: Node, work: ToolCall | ModelCall | AgentCall) -> int:
    count = 1
    if isinstance(node, MapNode):
        count = node.max_items
    if work.estimate is not None and work.estimate.tokens is not None:
        return count * work.estimate.tokens
    if isinstance(work, AgentCall):
        granted: int | None = None
        if work.budget is not None:
            granted = work.budget.tokens
        return count * (granted or AGENT_TOKENS)
    if isinstance(work, ModelCall):
        guess = GUESSED_TOKENS + text_bytes(work.prompt) // 3
        return count * guess
    return 0
