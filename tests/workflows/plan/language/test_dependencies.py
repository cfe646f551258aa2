"""What a node depends on, and what is asked of its output."""

from typing import Any

import pytest
from doubles.plan.samples import NILE, PLANS, each, free, gate, join, llm, plan, tool

from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import Node
from sennit.workflows.plan.language.parser import parse_plan


def node(data: dict[str, Any]) -> Node:
    return parse_plan(plan(data)).nodes[0]


STATUS = {"ref": "$s:status", "op": "eq", "value": "failed"}
VALUE = {"ref": "$v.n", "op": "gt", "value": 1}


@pytest.mark.parametrize(
    ("data", "needs", "watches", "reads"),
    [
        (tool(), [], [], []),
        (tool(needs=["x", "y", "x"]), ["x", "y"], [], []),
        (llm("b", "$x, ${y.z[0]}, $x again, $$no, $5, $input.i, $goal"), ["x", "y"], [], ["x", "y"]),
        (free("a") | {"args": {"k": ["$x", {"$key": "and $y"}]}}, ["x", "y"], [], ["x", "y"]),
        (tool(needs=["y"], args={"query": "$x $y"}), ["y", "x"], [], ["x", "y"]),
        (llm("b", "$x", when={"and": [VALUE, {"not": STATUS}]}), ["x", "v"], ["s"], ["x"]),
        (llm("b", "$s", when=STATUS), ["s"], [], ["s"]),
        (llm("b", when={"or": [{"ref": "$input.n", "op": "exists"}, {"ref": "$goal", "op": "exists"}]}), [], [], []),
        (each("m", "$x.items", do={"kind": "llm", "prompt": "$item.a of $y, $x"}), ["y", "x"], [], ["y", "x"]),
        (each("m", "$input.list", **{"as": "row"}, do={"kind": "llm", "prompt": "$row $item"}), ["item"], [], ["item"]),
        (join("j", ["x", "y"], needs=["z"]), ["z"], [], []),
        (gate("g", needs=["x"], when=VALUE), ["x", "v"], [], []),
        (gate("g", question="$x for $input.k?"), ["x"], [], ["x"]),
    ],
)
def test_a_node_needs_what_it_names_reads_and_tests(
    data: dict[str, Any], needs: list[str], watches: list[str], reads: list[str]
) -> None:
    links = dependencies.links_of(node(data))
    assert (links.needs, links.watches, links.reads) == (needs, watches, reads)


def test_inputs_and_fallback_nodes_hold_a_node_up_too() -> None:
    read = node(join("j", ["x", "y"], needs=["z"], on_error={"instead": "s"}, when=STATUS | {"ref": "$w:status"}))
    assert dependencies.links_of(read) == (["z"], ["w"], ["x", "y"], [], "s")
    assert dependencies.links_of(read).waits == ["z", "w", "x", "y", "s"]
    assert dependencies.links_of(node(tool(on_error="skip"))) == ([], [], [], [], None)


def test_references_have_the_place_of_their_text() -> None:
    read = node(
        each("m", "$x.items", do={"kind": "tool", "tool": "t", "args": {"a": ["", "$item.p and $y"], "b": {"c": "$$"}}})
    )
    assert [(place, str(reference)) for place, reference in dependencies.value_references(read)] == [
        (("do", "args", "a", 1), "${item.p}"),
        (("do", "args", "a", 1), "$y"),
        (("over",), "${x.items}"),
    ]
    assert dependencies.bound_texts(read) == [
        (("do", "args", "a", 1), "$item.p and $y"),
        (("do", "args", "b", "c"), "$$"),
    ]
    assert [place for place, _ in dependencies.value_references(node(llm("b", "$x")))] == [("prompt",)]


def test_what_a_nodes_call_is_bound_from() -> None:
    assert dependencies.arguments_of(node(llm("b", "x"))) == [(("prompt",), "x")]
    assert dependencies.arguments_of(node(tool(args={"k": 1}))) == [(("args",), {"k": 1})]
    assert dependencies.arguments_of(node(each())) == [(("do", "args"), {"path": "$item.path"})]
    assert dependencies.arguments_of(node(gate())) == [(("question",), "Go on?")]
    assert dependencies.arguments_of(node(join("j", ["x"]))) == []
    assert dependencies.work_of(node(join("j", ["a"]))) is None


def test_only_texts_with_a_dollar_are_looked_at() -> None:
    value = {"a": ["x", "$", {"b": "$c"}], "$k": None, "d": [[["$e"]]], "f": "", "g": 3}
    assert dependencies.marked_texts(value, ("w",)) == [
        (("w", "a", 1), "$"),
        (("w", "a", 2, "b"), "$c"),
        (("w", "d", 0, 0, 0), "$e"),
    ]
    assert dependencies.marked_texts("$x") == [((), "$x")]


def test_facts_are_named_by_their_path_without_node_and_dollar() -> None:
    when = {
        "and": [
            {"ref": "$a.count", "op": "gt", "value": 1},
            {"ref": "${a.items[0].title}", "op": "contains", "value": "x"},
            {"ref": "$a.items.length", "op": "ge", "value": 1},
            {"ref": "$a.count", "op": "lt", "value": 9},
            {"ref": "$a", "op": "eq", "value": "whole"},
            {"ref": "$a.maybe", "op": "exists"},
            {"ref": "$a:status", "op": "eq", "value": "failed"},
            {"ref": "$input.x", "op": "exists"},
            {"ref": "$goal", "op": "exists"},
        ]
    }
    data = plan(tool(), llm("b", when=when), each("m", "$a.items"), each("k", "$m"), each("i", "$input.x"), answer="$a")
    assert dependencies.facts_wanted(parse_plan(data)) == {
        "a": ["count", "items[0].title", "items.length", ".", "?maybe"],
        "m": ["length"],
    }


def test_the_leaves_are_the_nodes_nobody_waits_for() -> None:
    assert dependencies.leaves(parse_plan(NILE)) == ["c"]
    assert dependencies.leaves(parse_plan(PLANS["a fallback node"])) == ["b"]
    assert dependencies.leaves(parse_plan(plan(tool(), tool("b"), join("j", ["a"])))) == ["b", "j"]


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (NILE, "$c"),
        ({"nodes": [tool(), llm("b", "$a")]}, "$b"),
        ({"nodes": [tool(), llm("b")]}, None),
        (plan(tool(), answer={"x": "$a"}), {"x": "$a"}),
    ],
)
def test_the_answer_is_as_given_or_the_only_leaf(data: dict[str, Any], answer: Any) -> None:
    assert dependencies.answer_of(parse_plan(data)) == answer


def test_a_fallback_node_gives_the_facts_of_its_node_too() -> None:
    nodes = [
        tool("a", on_error={"instead": "b"}),
        tool("b", on_error={"instead": "c"}),
        tool("c"),
        tool("d", when={"ref": "$a.count", "op": "gt", "value": 1}),
    ]
    wanted = dependencies.facts_wanted(parse_plan({"nodes": nodes, "answer": "$d"}))
    assert wanted == {"a": ["count"], "b": ["count"], "c": ["count"]}
