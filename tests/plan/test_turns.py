"""Tool loops: what the ids of their nodes are, also when a loop or one turn of it runs again."""

from typing import Any

from workflows.plan.model import Plan
from workflows.plan.parse import parse_plan
from workflows.plan.turns import expanded

TOOLS = {"add": {"name": "add", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
CALLS: list[dict[str, Any]] = [{"id": "1", "name": "add", "arguments": {"a": 1}}]


def grown(plan: Plan, name: str, generation: int = 1) -> Plan:
    return expanded(plan, name, generation, CALLS, "digest", TOOLS)


def new(plan: Plan, before: Plan) -> list[str]:
    return [node.id for node in plan.nodes[len(before.nodes) :]]


def test_every_turn_that_runs_again_has_ids_of_its_own() -> None:
    base = parse_plan({"nodes": [{"id": "n", "kind": "llm", "prompt": "?", "tools": ["add"]}], "answer": "$n"})
    first = grown(base, "n")
    second = grown(first, "n_t2")
    assert new(first, base) == ["n_t1_1", "n_t1_all", "n_t2"]
    assert new(second, first) == ["n_t2_1", "n_t2_all", "n_t3"]
    loop = grown(second, "n", 2)
    assert new(loop, second) == ["n_g2t1_1", "n_g2t1_all", "n_g2t2"]
    turn = grown(second, "n_t2", 2)
    third = grown(turn, "n_t2", 3)
    later = grown(third, new(third, turn)[-1])
    assert len({node.id for node in later.nodes}) == len(later.nodes)
