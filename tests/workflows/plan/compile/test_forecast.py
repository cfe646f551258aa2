"""Numbers of known graphs: width, depth, edges, critical path, tokens, and ranks by definition."""

from functools import cache

import pytest
from doubles.plan.samples import NILE, PLANS, each, free, gate, join, llm, plan, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.plan.compile.forecast import GUESSED_SECONDS, GUESSED_TOKENS, forecast, ranks
from workflows.plan.language import dependencies
from workflows.plan.language.nodes import Plan
from workflows.plan.language.parser import parse_plan


def timed(name: str, seconds: float, *needs: str) -> dict[str, object]:
    return free(name, needs=list(needs), estimate={"seconds": seconds, "tokens": 10})


def test_the_design_example() -> None:
    seen = forecast(parse_plan(NILE))
    assert (seen.nodes, seen.edges, seen.width, seen.depth) == (5, 5, 2, 4)
    assert seen.critical_path == ("a", "both", "d", "c")
    assert seen.seconds == 1 + 0.05 + 1 + 5
    assert seen.tokens == GUESSED_TOKENS + len(NILE["nodes"][4]["prompt"]) // 3


def test_a_chain_a_wide_plan_and_a_diamond() -> None:
    chain = forecast(parse_plan(plan(timed("a", 1), timed("b", 2, "a"), timed("c", 0.5, "b"))))
    assert (chain.width, chain.depth, chain.edges, chain.seconds, chain.tokens) == (1, 3, 2, 3.5, 30)
    wide = forecast(parse_plan(plan(*(timed(f"n{number}", number) for number in range(50)))))
    assert (wide.width, wide.depth, wide.edges, wide.critical_path, wide.seconds) == (50, 1, 0, ("n49",), 49)
    diamond = forecast(parse_plan(plan(timed("a", 1), timed("b", 1, "a"), timed("c", 7, "a"), timed("d", 1, "b", "c"))))
    assert (diamond.width, diamond.depth, diamond.critical_path, diamond.seconds) == (2, 3, ("a", "c", "d"), 9)


def test_of_equal_paths_the_first_in_the_plan_is_told() -> None:
    seen = forecast(parse_plan(plan(timed("a", 1), timed("b", 3, "a"), timed("c", 3, "a"), timed("d", 1, "b", "c"))))
    assert seen.critical_path == ("a", "b", "d")


def test_guesses_by_kind_and_a_map_of_models_counts_its_items() -> None:
    data = plan(
        tool(),
        each("m", do={"kind": "llm", "prompt": "x" * 300}, max_items=7),
        gate("g", needs=["m"]),
        join("j", ["g"]),
    )
    seen = forecast(parse_plan(data))
    assert seen.seconds == sum(GUESSED_SECONDS[kind] for kind in ("tool", "map", "gate", "join"))
    assert seen.tokens == 7 * (GUESSED_TOKENS + 100)
    assert forecast(parse_plan(plan(llm("b", estimate={"tokens": 5})))).tokens == 5


def test_an_edge_counts_once_however_often_it_is_named() -> None:
    data = plan(tool(), llm("b", "$a ${a.items}", needs=["a"], when={"ref": "$a.count", "op": "exists"}))
    assert forecast(parse_plan(data)).edges == 1


@pytest.mark.parametrize("name", PLANS)
def test_every_sample_has_a_forecast(name: str) -> None:
    read = parse_plan(PLANS[name])
    seen = forecast(read)
    assert seen.nodes == len(read.nodes)
    assert max(ranks(read)) == round(seen.seconds * 1000)


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
        for name in dependencies.waits_for(node):
            after[name].append(node.id)

    @cache
    def longest(name: str) -> int:
        return own[name] + max(map(longest, after[name]), default=0)

    assert ranks(read) == [longest(node.id) for node in read.nodes]
    assert ranks(read, [dependencies.links_of(node) for node in read.nodes]) == ranks(read)
    seen = forecast(read)
    assert sum(own[name] for name in seen.critical_path) == round(seen.seconds * 1000) == max(ranks(read))


def test_a_chain_of_ten_thousand_needs_no_stack() -> None:
    data = plan(*(free(f"n{number}", of=f"n{number - 1}" if number else "") for number in range(10_000)))
    seen = forecast(parse_plan(data))
    assert (seen.depth, seen.width, len(seen.critical_path), seen.seconds) == (10_000, 1, 10_000, 10_000)
