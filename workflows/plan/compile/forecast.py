"""What a plan will roughly take: width, depth, critical path, tokens. Guesses are labelled as such by their names."""

from dataclasses import dataclass

from workflows.plan.language import dependencies
from workflows.plan.language.nodes import AgentCall, Estimate, GateNode, JoinNode, MapNode, ModelCall, Node, Plan

GUESSED_SECONDS = {"tool": 1.0, "llm": 5.0, "agent": 60.0, "map": 2.0, "join": 0.05, "gate": 60.0}
GUESSED_TOKENS = 1_000
AGENT_TOKENS = 20_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """`width` is the most nodes on one level, `depth` the number of levels; seconds and tokens are estimates."""

    nodes: int
    edges: int
    width: int
    depth: int
    critical_path: tuple[str, ...]
    seconds: float
    tokens: int


def forecast(plan: Plan) -> Forecast:
    """Return the forecast of an acyclic plan."""
    before = _before(plan, [dependencies.links_of(node) for node in plan.nodes])
    order = _order(before)
    level = [0] * len(plan.nodes)
    widths: dict[int, int] = {}
    for index in order:
        level[index] = 1 + max((level[other] for other in before[index]), default=0)
        widths[level[index]] = widths.get(level[index], 0) + 1
    path, seconds = _critical(plan, before)
    return Forecast(
        nodes=len(plan.nodes),
        edges=sum(map(len, before)),
        width=max(widths.values(), default=0),
        depth=max(level, default=0),
        critical_path=path,
        seconds=round(seconds, 3),
        tokens=sum(_tokens(node) for node in plan.nodes),
    )


def ranks(plan: Plan, links: list[dependencies.Links] | None = None) -> list[int]:
    """Return for each node the longest estimated path from its start to the end, in milliseconds.

    `links` saves working out what each node depends on once more.
    """
    return _ranks(plan, _before(plan, links or [dependencies.links_of(node) for node in plan.nodes]))


def _ranks(plan: Plan, before: list[list[int]]) -> list[int]:
    own = [round(_seconds(node) * 1000) for node in plan.nodes]
    longest = list(own)
    for index in reversed(_order(before)):
        for other in before[index]:
            longest[other] = max(longest[other], own[other] + longest[index])
    return longest


def _critical(plan: Plan, before: list[list[int]]) -> tuple[tuple[str, ...], float]:
    rank = _ranks(plan, before)
    after: list[list[int]] = [[] for _ in plan.nodes]
    for index, others in enumerate(before):
        for other in others:
            after[other].append(index)
    here = max(range(len(rank)), key=lambda index: (rank[index], -index))
    path, seconds = [here], rank[here] / 1000
    while after[here]:
        here = max(after[here], key=lambda index: (rank[index], -index))
        path.append(here)
    return tuple(plan.nodes[index].id for index in path), seconds


def _before(plan: Plan, links: list[dependencies.Links]) -> list[list[int]]:
    position = {node.id: index for index, node in enumerate(plan.nodes)}
    return [list(dict.fromkeys(position[name] for name in each.waits)) for each in links]


def _order(before: list[list[int]]) -> list[int]:
    open_edges = [len(others) for others in before]
    after: list[list[int]] = [[] for _ in before]
    for index, others in enumerate(before):
        for other in others:
            after[other].append(index)
    order = [index for index, count in enumerate(open_edges) if not count]
    for index in order:
        for other in after[index]:
            open_edges[other] -= 1
            if not open_edges[other]:
                order.append(other)
    return order


def _estimate(node: Node) -> Estimate | None:
    work = dependencies.work_of(node)
    return work.estimate if work is not None else None


def _seconds(node: Node) -> float:
    estimate = _estimate(node)
    if estimate is not None and estimate.seconds is not None:
        return estimate.seconds
    return GUESSED_SECONDS[node.kind]


def _tokens(node: Node) -> int:
    estimate, work = _estimate(node), dependencies.work_of(node)
    if estimate is not None and estimate.tokens is not None:
        return estimate.tokens
    if isinstance(work, AgentCall):
        return (work.budget.tokens if work.budget else None) or AGENT_TOKENS
    if isinstance(node, GateNode | JoinNode) or not isinstance(work, ModelCall):
        return 0
    guess = GUESSED_TOKENS + len(work.prompt.encode()) // 3
    return guess * (node.max_items if isinstance(node, MapNode) else 1)
