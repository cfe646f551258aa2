"""Estimates from a plan alone: how urgent each node is, how many may run at once, how many tokens it takes."""

from collections.abc import Sequence

from sennit.workflows.plan.language.dag import topological_order
from sennit.workflows.plan.language.dependencies import Links, links_of, programs_in, works_of
from sennit.workflows.plan.language.nodes import AgentCall, MapNode, ModelCall, Node, Plan, ToolCall
from sennit.workflows.plan.language.text import text_bytes

GUESSED_SECONDS = {"tool": 1.0, "llm": 5.0, "agent": 60.0, "program": 10.0, "map": 2.0, "join": 0.05, "gate": 60.0}
GUESSED_TOKENS = 1_000
"""What a model call is expected to take, beside its prompt, where the plan gives no estimate."""
AGENT_TOKENS = 20_000


def ranks(plan: Plan, links: Sequence[Links]) -> list[int]:
    """Return for each node the longest estimated path from its start to the end of the plan, in milliseconds."""
    before = _before(plan, links)
    durations = [round(_seconds(node) * 1000) for node in plan.nodes]
    longest = list(durations)
    for index in reversed(topological_order(before)):
        for other in before[index]:
            longest[other] = max(longest[other], durations[other] + longest[index])
    return longest


def width(plan: Plan) -> int:
    """Return the number of nodes on the widest level: how many may run at once."""
    before = _before(plan, [links_of(node) for node in plan.nodes])
    level = [0] * len(before)
    counts: dict[int, int] = {}
    for index in topological_order(before):
        level[index] = 1 + max((level[other] for other in before[index]), default=0)
        counts[level[index]] = counts.get(level[index], 0) + 1
    return max(counts.values(), default=0)


def tokens(nodes: Sequence[Node]) -> int:
    """Return about how many tokens the nodes take."""
    return sum(map(_tokens, nodes))


def _before(plan: Plan, links: Sequence[Links]) -> list[list[int]]:
    position = {node.id: index for index, node in enumerate(plan.nodes)}
    return [list(dict.fromkeys(position[name] for name in each.waits)) for each in links]


def _seconds(node: Node) -> float:
    works, programs = works_of(node), programs_in(node)
    if node.kind != "map" and not works:
        return GUESSED_SECONDS[node.kind]
    inside = len(programs) * GUESSED_SECONDS["program"]
    return inside + sum(_seconds_of(node, work) for _, work in works)


def _seconds_of(node: Node, work: ToolCall | ModelCall | AgentCall) -> float:
    if work.estimate is not None and work.estimate.seconds is not None:
        return work.estimate.seconds
    # items take as long as a short call does, unless each is a run of its own
    return GUESSED_SECONDS["agent" if work.kind == "agent" else node.kind]


def _tokens(node: Node) -> int:
    return sum(_tokens_of(node, work) for _, work in works_of(node))


def _tokens_of(node: Node, work: ToolCall | ModelCall | AgentCall) -> int:
    count = node.max_items if isinstance(node, MapNode) else 1
    if work.estimate is not None and work.estimate.tokens is not None:
        return count * work.estimate.tokens
    if isinstance(work, AgentCall):
        return count * ((work.budget.tokens if work.budget else None) or AGENT_TOKENS)
    if not isinstance(work, ModelCall):
        return 0
    guess = GUESSED_TOKENS + text_bytes(work.prompt) // 3
    return count * guess
