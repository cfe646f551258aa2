"""Keys of calls: equal work has equal keys, whatever the nodes are called and wherever they stand."""

from typing import Any

import pytest
from doubles.plan.samples import join, llm, plan, tool

from sennit.workflows.plan.edits.call_keys import call_keys
from sennit.workflows.plan.language.parser import parse_plan

A, B = tool("a", args={"query": "x"}), tool("b", args={"query": "$a.text"})
P, Q = tool("p", args={"query": "x"}), tool("q", args={"query": "$p.text"})


def keys(*nodes: dict[str, Any]) -> dict[str, str]:
    return call_keys(parse_plan(plan(*nodes)))


def same(one: tuple[dict[str, Any], ...], other: tuple[dict[str, Any], ...]) -> dict[str, str]:
    """Return the nodes of `other` that have the key of one of `one`, with that node."""
    known = {key: name for name, key in keys(*one).items()}
    return {name: known[key] for name, key in keys(*other).items() if key in known}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ((A, B), (B, A), {"a": "a", "b": "b"}),
        ((A, B), (Q, P), {"p": "a", "q": "b"}),
        ((A, B), (tool("a", args={"query": "y"}), B), {}),
        ((A,), (tool("a", args={"query": "x"}, needs=["b"]), tool("b")), {}),
        ((A,), (tool("a", args={"query": "x"}, when={"ref": "$b.text", "op": "exists"}), tool("b")), {}),
        (
            (A,),
            (tool("a", args={"query": "x"}, when={"ref": "$b:status", "op": "eq", "value": "failed"}), tool("b")),
            {},
        ),
        ((A, tool("b", needs=["a"])), (P, tool("q", needs=["p"])), {"p": "a", "q": "b"}),
        ((A,), (tool("a", args={"query": "x"}, timeout="9s"),), {"a": "a"}),
        ((A,), (tool("x", args={"query": "x"}), tool("y", args={"query": "x"})), {"x": "a"}),
        ((A, tool("c", args={"query": "x"})), (tool("x", args={"query": "x"}),), {"x": "a"}),
        ((A, join("j", ["a"])), (P, join("k", ["p"])), {"p": "a", "k": "j"}),
        ((A, B, join("j", ["a", "b"])), (P, Q, join("k", ["q", "p"])), {"p": "a", "q": "b"}),
        ((A, llm("m", prompt="Sum up $a")), (P, llm("n", prompt="Sum up $p")), {"p": "a", "n": "m"}),
        ((A, llm("m", prompt="Sum up $a")), (P, llm("n", prompt="Sum up $p", model="offline")), {"p": "a"}),
    ],
)
def test_a_key_is_made_of_what_a_node_does_and_on_what(
    one: tuple[dict[str, Any], ...], other: tuple[dict[str, Any], ...], found: dict[str, str]
) -> None:
    assert same(one, other) == found


def test_a_call_planned_twice_has_two_keys_and_a_plan_that_grows_keeps_its_own() -> None:
    before = keys(A, B)
    after = keys(A, B, P, Q)
    assert len(set(after.values())) == 4
    assert {name: after[name] for name in before} == before


def test_deep_plans_have_keys_too() -> None:
    chain = [tool("n0"), *(tool(f"n{k}", args={"query": f"$n{k - 1}"}) for k in range(1, 3_000))]
    assert keys(*reversed(chain)) == keys(*chain)
