"""Summaries as nodes: each part of an output that is too long for a prompt is summed up by a model call of its own.

So a summary is paid, retried and seen like any other node, and one that is there is never made again: what is summed
up, and for whom, is the same excerpt.
"""

from collections.abc import Sequence

from workflows.plan.edits.tool_loop import host_of, stem_of, with_next_turn
from workflows.plan.language.nodes import Estimate, Excerpt, JoinNode, LlmNode, Node, Plan, Turn


def with_summaries(plan: Plan, name: str, generation: int, excerpts: Sequence[Excerpt]) -> Plan:
    """Return the plan with the summaries that the model call `name` wants, and the turn that reads them.

    A summary that fails does not end the run: the turn reads how each of them ended.
    """
    node = host_of(plan, name)
    there = {other.excerpt: other.id for other in plan.nodes if isinstance(other, LlmNode) and other.excerpt}
    stem = f"{stem_of(plan, node, generation)}t1"
    made: list[Node] = []
    for excerpt in excerpts:
        if excerpt not in there:
            there[excerpt] = f"{stem}_s{len(made) + 1}"
            made.append(_summary(there[excerpt], node, excerpt))
    ends = JoinNode(id=f"{stem}_s", kind="join", inputs=tuple(there[each] for each in excerpts), policy="settled")
    turn = Turn(number=1, node=name, summaries=f"${ends.id}")
    return with_next_turn(plan, node, [*made, ends], stem, turn)


def _summary(name: str, node: LlmNode, excerpt: Excerpt) -> LlmNode:
    part = f", part {excerpt.part} of {excerpt.parts}" if excerpt.parts > 1 else ""
    return LlmNode(
        id=name,
        kind="llm",
        role="summariser",
        prompt=f"{excerpt.name}{part}, for {excerpt.node}",
        priority=node.priority,
        estimate=Estimate(tokens=excerpt.size + excerpt.tokens),
        excerpt=excerpt,
    )
