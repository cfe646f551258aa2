"""Which nodes of a plan may run before the plan is whole."""

import pytest

from workflows.plan.edits.prefix import startable
from workflows.plan.language.parser import parse_plan

TOOLS = {"look": {"effect": "read"}, "note": {"effect": "write"}}


@pytest.mark.parametrize(
    ("fields", "starts"),
    [
        ({"kind": "tool", "tool": "look", "args": {}}, True),
        ({"kind": "tool", "tool": "note", "args": {}}, False),
        ({"kind": "llm", "prompt": "$a"}, True),
        ({"kind": "llm", "prompt": "$a", "tools": ["look"]}, False),
        ({"kind": "llm", "prompt": "$a", "role": "joiner"}, False),
    ],
)
def test_only_what_changes_neither_the_world_nor_the_plan_starts(fields: dict[str, object], starts: bool) -> None:
    nodes = [{"id": "a", "kind": "tool", "tool": "look", "args": {}}, {"id": "b", **fields}]
    begun = startable(list(parse_plan({"nodes": nodes, "answer": "$b"}).nodes), TOOLS)
    assert [node.id for node in begun] == (["a", "b"] if starts else ["a"])
