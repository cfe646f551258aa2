"""Plans that grow: nothing that is there changes, new ids are free, references follow; and plans that are the same."""

from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE, join, llm, plan, tool

from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.edits.call_keys import same_plan
from sennit.workflows.plan.edits.merge import Delta, merge
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.parser import parse_plan
from sennit.workflows.plan.language.problems import Problem

BASE = parse_plan(
    plan(
        tool("n1", args={"query": "Nile"}),
        join("n2_results", ["n1"]),
        llm("n2", prompt="$goal $n2_results", role="joiner"),
        goal="Which?",
        answer="$n2",
    )
)


def merged(*nodes: dict[str, Any], answer: Any = None) -> Plan:
    found = merge(BASE, Delta("why", nodes, answer))
    assert isinstance(found, Plan), found
    assert found.nodes[: len(BASE.nodes)] == BASE.nodes
    assert found.goal == "Which?"
    return found


def test_new_nodes_come_behind_with_references_to_old_and_new_ones() -> None:
    found = merged(
        tool("n3", args={"query": "$n1.items[0].path"}),
        join("n4_results", ["n1", "n3"]),
        llm("n4", prompt="$goal $n4_results", role="joiner"),
        answer="$n4",
    )
    assert [node.id for node in found.nodes[3:]] == ["n3", "n4_results", "n4"]
    assert found.answer == "$n4"
    assert problems_of(found, CATALOGUE) == []


def test_ids_that_are_taken_get_a_number_and_what_refers_to_them_follows() -> None:
    found = merged(
        tool("n1", args={"query": "Amazon $$n1 $n2_results"}),
        tool(
            "n1_2", args={"query": "${n1.items[0].path}st $n1.items $n1_2x"}, when={"ref": "$n1:status", "op": "exists"}
        ),
        {
            "id": "m",
            "kind": "map",
            "over": "$n1.items",
            "as": "n2",
            "do": {"kind": "tool", "tool": "read", "args": {"path": "$n2.path $n1"}},
            "needs": ["n1"],
            "on_error": {"instead": "n1_2"},
        },
        {"id": "n2", "kind": "join", "inputs": ["n1", "m"], "policy": "settled"},
        {"id": "g", "kind": "gate", "question": "$n1?", "needs": ["n2"]},
        answer="$n2",
    )
    data = {node.id: node.model_dump(mode="json", by_alias=True) for node in found.nodes[3:]}
    assert list(data) == ["n1_3", "n1_2", "m", "n2_2", "g"]
    assert (data["g"]["question"], data["g"]["needs"]) == ("$n1_3?", ["n2_2"])
    assert data["n1_3"]["args"] == {"query": "Amazon $$n1 $n2_results"}
    assert data["n1_2"]["args"] == {"query": "${n1_3.items[0].path}st $n1_3.items $n1_2x"}
    assert data["n1_2"]["when"]["ref"] == "$n1_3:status"
    assert (data["m"]["over"], data["m"]["needs"]) == ("$n1_3.items", ["n1_3"])
    assert data["m"]["do"]["args"] == {"path": "$n2.path $n1_3"}
    assert data["m"]["on_error"] == {"instead": "n1_2"}
    assert data["n2_2"]["inputs"] == ["n1_3", "m"]
    assert found.answer == "$n2_2"


def test_a_long_id_stays_within_its_length() -> None:
    base = parse_plan(plan(tool("a" * 40)))
    found = merge(base, Delta("", (tool("a" * 40),)))
    assert isinstance(found, Plan)
    assert found.nodes[1].id == "a" * 38 + "_2"


@pytest.mark.parametrize(
    ("nodes", "code"),
    [((), "limit"), (({"id": "x"},), "kind"), (({"id": 3, "kind": "gate"},), "type"), ((tool("no id!"),), "id")],
)
def test_a_delta_of_the_wrong_shape_is_reported(nodes: tuple[dict[str, Any], ...], code: str) -> None:
    found = merge(BASE, Delta("", nodes))
    assert isinstance(found, tuple)
    assert all(isinstance(problem, Problem) for problem in found)
    assert code in {problem.code for problem in found}


def test_an_id_twice_is_left_for_validation() -> None:
    found = merged(tool("x"), tool("x"))
    assert "duplicate_id" in {problem.code for problem in problems_of(found, CATALOGUE)}


def test_a_delta_is_read_back_from_the_output_that_asks_for_it() -> None:
    delta = Delta("why", (tool("x"),), "$x")
    assert Delta.of(delta.expansion_request) == delta
    assert Delta.of({"answer": 3}) == Delta.of({"replan": "x"}) == Delta.of(None) == Delta("", ())


def seen(name: str, other: str) -> dict[str, Any]:
    return tool(name, args={"query": "y"}, when={"ref": f"${other}.count", "op": "exists"})


A, B = tool("a", args={"query": "x"}), tool("b", args={"query": "$a.items[0].path"})
RENAMED = (tool("q", args={"query": "$p.items[0].path"}), tool("p", args={"query": "x"}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((A, B), (A, B), True),
        ((A, B), (B, A), True),
        ((A, B), RENAMED, True),
        ((A, B), (*RENAMED, A, llm("j", prompt="$a", role="joiner")), True),
        ((A, seen("b", "a")), (tool("p", args={"query": "x"}), seen("q", "p")), True),
        ((A, B), (A,), False),
        ((A, B), (A, tool("b", args={"query": "$a.items[1].path"})), False),
        ((A, B), (tool("a", args={"query": "y"}), B), False),
        ((A,), (tool("a", args={"query": "x"}, needs=["b"]), tool("b", args={"query": "x"})), False),
        ((A, llm("c", prompt="$a")), (A, llm("c", prompt="Again $a")), False),
    ],
)
def test_plans_are_the_same_if_they_make_the_same_calls(
    one: tuple[dict[str, Any], ...], other: tuple[dict[str, Any], ...], same: bool
) -> None:
    first, second = parse_plan(plan(*one)), parse_plan(plan(*other))
    assert same_plan(first, second) is same
    assert same_plan(second, first) is same


def test_a_delta_that_repeats_calls_makes_the_same_plan() -> None:
    again = merged(tool("n3", args={"query": "Nile"}), llm("n4", prompt="$n3", role="joiner"))
    assert same_plan(BASE, again)
    assert not same_plan(BASE, merged(tool("n3", args={"query": "Nile river"})))


def test_deep_plans_are_compared_too() -> None:
    chain = [tool("n0"), *(tool(f"n{k}", args={"query": f"$n{k - 1}"}) for k in range(1, 3_000))]
    assert same_plan(parse_plan(plan(*chain)), parse_plan(plan(*reversed(chain))))
