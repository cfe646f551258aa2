"""Edges of which nothing came in earlier runs, and shapes of plans."""

from typing import Any

import pytest

from sennit.workflows.plan.checking.validation import parse_plan
from sennit.workflows.plan.learning.shapes import shape_of
from sennit.workflows.plan.learning.unused_edges import Use, doubtful_edges, unused_edges

TOOLS = {"search": {"effect": "read"}, "calculate": {"effect": "pure"}, "note": {"effect": "write"}}


def tool(name: str, tool: str, needs: tuple[str, ...] = (), **args: Any) -> dict[str, Any]:
    return {"id": name, "kind": "tool", "tool": tool, "args": args, "needs": list(needs)}


PAIR = ("search", "calculate")


def warnings(*nodes: dict[str, Any], used: int, together: int = 40, pair: tuple[str, str] = PAIR) -> list[str]:
    plan = parse_plan({"nodes": list(nodes), "answer": f"${nodes[-1]['id']}"})
    return [str(each) for each in unused_edges(plan, {pair: Use(together, used)}, TOOLS)]


A, B = tool("a", "search", query="x"), tool("b", "calculate", ("a",), expression="1 + 1")


def test_an_edge_that_nothing_backs_is_named_with_what_earlier_runs_tell() -> None:
    (found,) = warnings(A, B, used=2)
    assert found == (
        "nodes[1].needs[0]: `b` waits for `a`, and in 38 of 40 runs `calculate` used nothing of what `search` had "
        "returned; without it in `needs` both run at the same time"
    )


@pytest.mark.parametrize(
    ("nodes", "used", "together"),
    [
        ((A, B), 5, 40),  # it was used more than seldom
        ((A, B), 0, 4),  # too few runs
        ((A, tool("b", "calculate", ("a",), expression="$a.count")), 0, 40),  # a reference backs it
        ((A, tool("b", "calculate", expression="1 + 1")), 0, 40),  # there is no edge
    ],
)
def test_other_edges_are_not_named(nodes: tuple[dict[str, Any], ...], used: int, together: int) -> None:
    assert warnings(*nodes, used=used, together=together) == []


def test_the_order_of_writes_is_never_doubted() -> None:
    written, after = tool("a", "note", text="x"), tool("b", "calculate", ("a",), expression="1")
    assert warnings(written, after, used=0, pair=("note", "calculate")) == []
    assert warnings(A, tool("b", "note", ("a",), text="x"), used=0, pair=("search", "note")) == []


def test_a_plan_without_such_edges_asks_nobody() -> None:
    plan = parse_plan({"nodes": [A, tool("b", "calculate", ("a",), expression="$a.count")], "answer": "$b"})
    assert doubtful_edges(plan) == []


def test_a_shape_has_tools_and_references_and_no_literal() -> None:
    nodes = [
        tool("files", "list_files", glob="secret/*", max_items=3),
        {
            "id": "texts",
            "kind": "map",
            "over": "$files.items",
            "do": {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}},
        },
        {"id": "said", "kind": "llm", "prompt": "secret $texts", "needs": ["files"]},
        {"id": "end", "kind": "llm", "role": "joiner", "prompt": "$goal", "inputs": ["said"]},
    ]
    plan = parse_plan({"goal": "a secret", "nodes": nodes, "answer": "$end"})
    shape = shape_of(plan, {"read": "read@ab"})
    assert shape is not None
    assert shape.lines == (
        '1. list_files(glob="…", max_items=…)',
        "2. map(${1.items}, read(path=${item.path}))",
        '3. llm("… $2", needs=[$1])',
        "4. answer($goal, $3)",
    )
    assert shape.tools == ("list_files", "read@ab")
