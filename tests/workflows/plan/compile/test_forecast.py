"""Estimates of known graphs, and ranks by their definition."""

from functools import cache
from typing import Any

import pytest
from doubles.plan.samples import NILE, each, free, gate, join, llm, plan, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.workflows.plan.compile import forecast
from sennit.workflows.plan.compile.forecast import AGENT_TOKENS, GUESSED_SECONDS, GUESSED_TOKENS
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan


def timed(name: str, seconds: float, *needs: str) -> dict[str, Any]:
    return free(name, needs=list(needs), estimate={"seconds": seconds, "tokens": 10})


def ranks(read: Plan) -> list[int]:
    return forecast.ranks(read, [dependencies.links_of(node) for node in read.nodes])


CHAIN = plan(timed("a", 1), timed("b", 2, "a"), timed("c", 0.5, "b"))
WIDE = plan(*(timed(f"n{number}", number) for number in range(50)))
DIAMOND = plan(timed("a", 1), timed("b", 1, "a"), timed("c", 7, "a"), timed("d", 1, "b", "c"))
TWICE = plan(tool(), llm("b", "$a ${a.items}", needs=["a"], when={"ref": "$a.count", "op": "exists"}))


@pytest.mark.parametrize(
    ("data", "width", "longest"),
    [(NILE, 2, 7_050), (CHAIN, 1, 3_500), (WIDE, 50, 49_000), (DIAMOND, 2, 9_000), (TWICE, 1, 6_000)],
    ids=["nile", "chain", "wide", "diamond", "an edge named twice"],
)
def test_width_and_longest_path_of_known_graphs(data: dict[str, Any], width: int, longest: int) -> None:
    read = parse_plan(data)
    assert forecast.width(read) == width
    assert max(ranks(read)) == longest


@pytest.mark.parametrize(
    ("node", "tokens", "kind"),
    [
        (tool(), 0, "tool"),
        (llm("b", "x" * 300), GUESSED_TOKENS + 100, "llm"),
        (llm("b", estimate={"tokens": 5}), 5, "llm"),
        (
            each("m", "$input.l", do={"kind": "llm", "prompt": "x" * 300}, max_items=7),
            7 * (GUESSED_TOKENS + 100),
            "map",
        ),
        (each("m", "$input.l", do={"kind": "agent", "goal": "g"}, max_items=7), 7 * AGENT_TOKENS, "agent"),
        (each("m", "$input.l", do={"kind": "llm", "prompt": "p", "estimate": {"tokens": 5}}, max_items=7), 35, "map"),
        (gate("g"), 0, "gate"),
        (join("j", ["g"]), 0, "join"),
        ({"id": "s", "kind": "agent", "goal": "g"}, AGENT_TOKENS, "agent"),
        ({"id": "s", "kind": "agent", "goal": "g", "budget": {"tokens": 7}}, 7, "agent"),
    ],
)
def test_what_a_node_takes_is_guessed_by_its_kind(node: dict[str, Any], tokens: int, kind: str) -> None:
    read = parse_plan(plan(node, *([gate("g")] if kind == "join" else [])))
    assert forecast.tokens(read.nodes) == tokens
    assert ranks(read)[0] == round(GUESSED_SECONDS[kind] * 1000)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    nodes = []
    for number in range(draw(st.integers(1, 9))):
        needs = draw(st.lists(st.integers(0, number - 1), max_size=3)) if number else []
        nodes.append(timed(f"n{number}", draw(st.integers(0, 5)), *(f"n{other}" for other in needs)))
    return parse_plan(plan(*draw(st.permutations(nodes))))


@settings(deadline=None)
@given(plans())
def test_a_rank_is_the_longest_path_from_the_node_to_the_end(read: Plan) -> None:
    after: dict[str, list[str]] = {node.id: [] for node in read.nodes}
    own = {
        node.id: round(1000 * node.estimate.seconds)
        for node in read.nodes
        if node.kind == "tool" and node.estimate and node.estimate.seconds is not None
    }
    for node in read.nodes:
        for name in dependencies.links_of(node).waits:
            after[name].append(node.id)

    @cache
    def longest(name: str) -> int:
        return own[name] + max(map(longest, after[name]), default=0)

    assert ranks(read) == [longest(node.id) for node in read.nodes]
