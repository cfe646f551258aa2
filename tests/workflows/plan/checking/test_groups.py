"""What a group may hold, and what it may be joined to."""

from typing import Any

import pytest
from doubles.plan.samples import CATALOGUE, Drive, each, free, gate, join, llm, plan, skeleton_of, tool

from workflows.plan.checking.validation import problems_of
from workflows.plan.language.parser import parse_plan


def problems(*nodes: dict[str, Any], groups: list[list[str]], catalogue: Any = CATALOGUE) -> list[str]:
    answer = [f"${node['id']}" for node in nodes if node["id"] != "s"]
    return [str(item) for item in problems_of(parse_plan(plan(*nodes, answer=answer, groups=groups)), catalogue)]


@pytest.mark.parametrize(
    ("nodes", "groups"),
    [
        ([free("a"), free("b", of="a"), free("c", of="a"), llm("d", "$b $c")], [["a", "b", "c"]]),
        ([free("a"), free("b")], [["a", "b"]]),
        ([free("a"), free("b"), join("j", ["a", "b"])], [["a", "b"]]),
        ([free("a"), free("b"), join("j", ["a", "b"], policy="settled")], [["a", "b"]]),
        ([free("a"), free("b", of="a"), free("c", of="b"), free("d", of="c")], [["a", "b"], ["c", "d"]]),
        ([free("a", on_error="skip"), free("b", when={"ref": "$a.x", "op": "exists"})], [["b", "a"]]),
        ([free("a")], [["a"]]),
        ([gate("g"), free("a", of="g"), free("b", of="a"), free("c", of="g")], [["a", "b"]]),
    ],
)
def test_groups_that_keep_the_rules_pass_and_run(nodes: list[dict[str, Any]], groups: list[list[str]]) -> None:
    assert problems(*nodes, groups=groups) == []
    read = parse_plan(plan(*nodes, answer=[f"${node['id']}" for node in nodes], groups=groups))
    facts = {"?x": True}
    assert Drive(skeleton_of(read), lambda _state, _unit: facts).run() == "done"


@pytest.mark.parametrize(
    ("nodes", "groups", "sentence"),
    [
        ([free("a")], [["a"], []], "groups[1]: a group has 1 to 500 members, not 0"),
        ([free("abc")], [["abd"]], "groups[0][0]: there is no node `abd`; did you mean `abc`?"),
        ([free("a")], [["a", "a"]], "groups[0][1]: `a` is already in groups[0]; a node is in one group, once"),
        ([free("a"), free("b")], [["a", "b"], ["b"]], "groups[1][0]: `b` is already in groups[0]"),
        (
            [free("a"), llm("b")],
            [["a", "b"]],
            "groups[0][1]: `b` is of kind llm, and a group holds tool calls only",
        ),
        ([free("a"), join("b", ["a"])], [["a", "b"]], "`b` is of kind join"),
        ([tool("a"), each("b")], [["a", "b"]], "`b` is of kind map"),
        ([free("a"), gate("b")], [["a", "b"]], "`b` is of kind gate"),
        (
            [free("a"), tool("b", "note", {"text": "x"})],
            [["a", "b"]],
            "groups[0][1]: `b` writes, and a group only reads; take",
        ),
        (
            [tool("a", "load", {"path": "x"}), tool("w", "store", {"path": "y"})],
            [["a"]],
            "groups[0][0]: `a` uses what another node may write; take it out of the group",
        ),
        ([free("a"), tool("b", "shell", {})], [["a", "b"]], "groups[0]: its tools run on different workers"),
        ([free("a", locks=[{"name": "x"}])], [["a"]], "`a` has locks, a fallback or a fallback node; take it out"),
        ([free("a", on_error={"fallback": 1})], [["a"]], "`a` has locks, a fallback or a fallback node"),
        ([free("a", on_error={"instead": "s"}), free("s")], [["a"]], "`a` has locks, a fallback or a fallback node"),
        (
            [free("a", on_error={"instead": "s"}), free("s")],
            [["s"]],
            "`s` is the fallback node of `a`; take it out of the group",
        ),
        (
            [free("a"), free("b", when={"ref": "$a:status", "op": "eq", "value": "failed"})],
            [["a", "b"]],
            "groups[0][1]: `b` has a condition on how another node ended; take it out",
        ),
        (
            [free("a"), free("b"), join("j", ["a", "b"], policy="first")],
            [["a", "b"]],
            "`a` feeds `j`, which may close early",
        ),
        (
            [free("a"), free("b"), join("j", ["a", "b"], policy={"quorum": 1})],
            [["b", "a"]],
            "`b` feeds `j`, which may close",
        ),
        ([free("a"), free("b"), join("j", ["a", "b"], deadline="5s")], [["a", "b"]], "which may close early"),
        (
            [free("a"), free("b", of="a"), free("c", of="a")],
            [["a", "b"]],
            "groups[0]: `a` has consumers inside and outside (`c`)",
        ),
        (
            [free("a"), free("b"), llm("c", "$a"), llm("d", "$b")],
            [["a", "b"]],
            "groups[0]: its exits have different consumers",
        ),
        (
            [free("a"), llm("x", "$a"), free("b", of="x")],
            [["a", "b"]],
            "groups[0]: the group waits for its own end through x; take out the members",
        ),
        (
            [free("a"), free("b", of="a"), free("c"), free("d", of="c"), free("p", of="b"), free("q", of="p")],
            [["a", "b", "q"]],
            "waits for its own end through p",
        ),
        (
            [free("a"), free("b"), free("x", of="a"), free("y", needs=["b"])],
            [["a", "y"], ["b", "x"]],
            "groups[0]: the group waits for its own end; take out",
        ),
    ],
)
def test_a_broken_rule_is_reported_at_its_group(
    nodes: list[dict[str, Any]], groups: list[list[str]], sentence: str
) -> None:
    found = problems(*nodes, groups=groups)
    assert any(sentence in line for line in found), found


def test_without_a_catalogue_everything_but_effects_is_checked() -> None:
    assert problems(free("a"), tool("b", "note", {"text": "x"}), groups=[["a", "b"]], catalogue=None) == []
    assert problems(free("a"), llm("b"), groups=[["a", "b"]], catalogue=None) != []


def test_two_thousand_groups_are_checked() -> None:
    nodes = [free(f"n{number}", of=f"n{number - 1}" if number % 2 else "") for number in range(4_000)]
    assert problems(*nodes, groups=[[f"n{number}", f"n{number + 1}"] for number in range(0, 4_000, 2)]) == []
