"""The plan of an item whose item is a run of its own: what it holds, and that every check lets it pass."""

from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE, each, plan, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.activities.toolbox.read_output import GIVE
from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.edits.item_plan import GIVEN, plan_of_item, read_by_do
from sennit.workflows.plan.language.dependencies import links_of
from sennit.workflows.plan.language.nodes import MapNode
from sennit.workflows.plan.language.parser import parse_plan

TOOLS = [*CATALOGUE, GIVE]


def of(*do: dict[str, Any]) -> MapNode:
    node = parse_plan(plan(tool(), each(do=list(do) if len(do) > 1 else do[0]))).nodes[1]
    assert isinstance(node, MapNode)
    return node


def call(name: str = "", **fields: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": "anything", **({"id": name} if name else {}), **fields}


def test_what_do_reads_from_outside_is_given_and_its_nodes_follow_one_another() -> None:
    chain = of(
        call("page", args={"x": "$item.path $input.city $goal"}, on_error={"instead": "spare"}),
        call("spare", args={"x": "$a.count", "y": "$$5"}, on_error={"instead": "last"}),
        call("last", args={"x": "$item"}),
        {"kind": "llm", "prompt": "$page and $item", "when": {"ref": "$page.n", "op": "gt", "value": 1}},
    )
    assert chain.runs_apart
    assert read_by_do(chain) == ["item", "input", "goal", "a"]
    values = {"item": {"path": "costs $5"}, "a": {"count": 1}}
    found = plan_of_item(chain, values, {"city": "Rome"}, {"city": {"type": "string"}}, "a goal")
    assert found["goal"] == "a goal"
    assert found["answer"] == "$value"
    assert found["inputs"] == {"city": {"type": "string", "default": "Rome"}}
    read = parse_plan(found)
    assert problems_of(read, TOOLS) == []
    first = {"id": "item", "kind": "tool", "tool": GIVEN, "args": {"output": {"path": "costs $$5"}}}
    assert found["nodes"][0] == first
    needs = {node.id: links_of(node).needs for node in read.nodes}
    assert needs == {
        "item": [],
        "a": [],
        "page": ["item"],
        "spare": ["a"],
        "last": ["item"],
        "value": ["page", "item"],
    }


def test_the_last_node_has_an_id_that_nothing_else_has() -> None:
    first = call("value", args={"x": "$item"}, on_error={"instead": "other"})
    node = of(first, call("other"), call(args={"x": "$value"}))
    found = plan_of_item(node, {"item": 1}, {}, {}, "")
    assert [each["id"] for each in found["nodes"]] == ["item", "value", "other", "value_2"]
    assert problems_of(parse_plan(found), TOOLS) == []


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ([call("p", on_error={"instead": "a"}), call()], "`a` is no other node of this `do`"),
        ([call("p", on_error={"instead": "p"}), call()], "`p` is no other node of this `do`"),
        (
            [call("p", on_error={"instead": "s"}), call("q", on_error={"instead": "s"}), call("s"), call()],
            "`s` is already the fallback node of `p`",
        ),
        ([call("p", on_error={"instead": "s"}), call("s"), call(args={"x": "$s"})], "`$s` runs only in place of `p`"),
        (
            [call("p", on_error={"instead": "s"}), call("s", args={"x": "$p"}), call()],
            "`$p` may have no value when",
        ),
        (
            [call("s", on_error={"instead": "t"}), call("t", on_error={"instead": "s"}), call()],
            "`s` runs in place of no node of the chain",
        ),
    ],
)
def test_a_fallback_in_do_stands_in_for_one_node_and_for_nothing_else(do: list[Any], message: str) -> None:
    found = problems_of(parse_plan(plan(tool(), each(do=do))), CATALOGUE)
    assert {problem.code for problem in found} <= {"instead"}
    assert any(message in problem.message for problem in found), found


@pytest.mark.parametrize(
    ("fields", "where"), [({"tools": ["search"]}, "with tools"), ({"context": {"over": "reference"}}, "with `over")]
)
def test_a_tool_loop_in_do_has_no_fallback_node(fields: dict[str, Any], where: str) -> None:
    loop = {"id": "p", "kind": "llm", "prompt": "x", "on_error": {"instead": "s"}, **fields}
    [found] = problems_of(parse_plan(plan(tool(), each(do=[loop, call("s"), call()]))), CATALOGUE)
    assert str(found).startswith(f"nodes[1].do[0]: a model {where}")


@st.composite
def chains(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chains whose nodes read any node above them, and have any fallback, right or wrong."""
    count = draw(st.integers(2, 6))
    names = [f"s{place}" for place in range(count - 1)]
    do = []
    for place in range(count):
        read = draw(st.lists(st.sampled_from(["item", "a", *names[:place]]), max_size=2))
        stage = call(names[place] if place < count - 1 else "", args={"x": " ".join(f"${name}" for name in read)})
        if draw(st.booleans()):
            stage["on_error"] = {"instead": draw(st.sampled_from(names))}
        do.append(stage)
    return do


@settings(deadline=None)
@given(chains())
def test_what_the_check_of_a_map_lets_pass_is_a_plan_that_holds(do: list[dict[str, Any]]) -> None:
    outer = parse_plan(plan(tool(), each(do=do)))
    node = outer.nodes[1]
    assert isinstance(node, MapNode)
    if not node.runs_apart or problems_of(outer, CATALOGUE):
        return
    names = [name for name in read_by_do(node) if name not in ("input", "goal")]
    found = parse_plan(plan_of_item(node, dict.fromkeys(names, "v"), {}, {}, "g"))
    assert problems_of(found, TOOLS) == []
