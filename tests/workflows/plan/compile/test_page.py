"""Pages: cut off a plan, sent packed, and put behind the nodes of a run."""

from typing import Any

import pytest
from doubles.plan.play import Play, each, join, node, when

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.page import attach, page_behind, parse_page

MOST = 100_000


def test_a_page_names_the_same_nodes_wherever_it_is_put() -> None:
    nodes = (
        node("b", "a", reads=[0], successor="s"),
        node("s", is_successor=True),
        each("m", "b"),
        join("j", "y", "m"),
        node("w", **when("x:status")),
    )
    whole = Play(node("a"), node("x"), node("y"), *nodes, answer="j").graph.execution_plan
    known, page = page_behind(whole, 3)
    assert known == [0, 1, 2]
    sent = parse_page(page.pack())
    found = attach(sent, [9, 8, 7], 20)
    assert [spec.id for spec in found.specs] == ["b", "s", "m", "j", "w"]
    b, _, m, j, w = found.specs
    assert (b.needs, b.reads, b.successor) == ([9], [9], 21)
    assert (m.needs, m.over, j.inputs) == ([20], (20, "length"), [7, 22])
    assert w.when is not None
    assert (w.watches, w.when["at"], found.answer) == ([8], [8, ":status"], [23])


@pytest.mark.parametrize(
    "specs",
    [
        [NodeSpec("a", "foo")],  # type: ignore[arg-type]
        [NodeSpec("a", "tool", timeout="soon")],  # type: ignore[arg-type]
        [NodeSpec("a", "tool", reads=[7])],
        [NodeSpec("a", "tool", needs=[-1])],
        [NodeSpec("a", "tool", successor=3)],
        [NodeSpec("a", "tool", needs=[1]), NodeSpec("b", "tool", needs=[0])],
        [NodeSpec("a", "tool"), NodeSpec("a", "tool")],
        [NodeSpec("a" * MOST, "tool")],
    ],
    ids=["kind", "type", "reads", "needs", "instead", "circle", "twice", "bomb"],
)
def test_a_page_that_no_check_made_is_none(specs: list[NodeSpec]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  pydantic's and the order's own are among them
        attach(parse_page(ExecutionPlan(specs, [0]).pack(), MOST, foreign=True), [], 0)


def test_a_page_whose_answer_is_not_there_is_none() -> None:
    packed = ExecutionPlan([NodeSpec("a", "tool", locks=[("l", True)])], [1]).pack()
    assert attach(parse_page(packed, MOST, foreign=True), [4], 9).answer == [9]
    with pytest.raises(ValueError, match="does not fit"):
        attach(parse_page(packed, MOST, foreign=True), [], 0)


TEST = {"ref": "$a.x", "op": "eq", "value": 1, "at": [0, "x"]}
NO_CONDITIONS: list[dict[str, Any]] = [
    {"at": [0, "x"]},
    {"ref": "$a.x", "op": "eq"},
    TEST | {"op": "like"},
    TEST | {"at": [0]},
    TEST | {"at": ["a", "x"]},
    TEST | {"at": [9, "x"]},
    {"and": {}},
    {"or": [TEST, "no"]},
    {"not": []},
    {},
]


@pytest.mark.parametrize("when", NO_CONDITIONS)
def test_a_page_with_a_condition_that_nobody_can_decide_is_none(when: dict[str, Any]) -> None:
    packed = ExecutionPlan([NodeSpec("a", "tool"), NodeSpec("b", "tool", watches=[0], when=when)], [0]).pack()
    with pytest.raises(ValueError, match=r"condition|does not fit"):
        attach(parse_page(packed, MOST, foreign=True), [], 0)


def test_a_page_with_a_condition_without_end_is_none() -> None:
    deep: dict[str, Any] = TEST
    for _ in range(300):
        deep = {"not": deep}
    packed = ExecutionPlan([NodeSpec("a", "tool", when=deep)], [0]).pack()
    with pytest.raises(ValueError, match="condition"):
        attach(parse_page(packed), [], 0)


def test_a_page_may_have_every_form_of_a_condition() -> None:
    when = {"and": [TEST, {"or": [{"not": TEST}, {"ref": "$input.x", "op": "exists", "value": None, "is": True}]}]}
    packed = ExecutionPlan([NodeSpec("a", "tool"), NodeSpec("b", "tool", watches=[0], when=when)], [0]).pack()
    assert attach(parse_page(packed, MOST, foreign=True), [], 0).specs[1].when == when


OF_A_RUN = [
    ExecutionPlan([NodeSpec("a", "tool", maker=99)], [0]),
    ExecutionPlan([NodeSpec("a", "tool"), NodeSpec("b", "tool", maker=0)], [0]),
    ExecutionPlan([], []),
]


@pytest.mark.parametrize("plan", OF_A_RUN, ids=["no maker", "maker", "no nodes"])
def test_a_first_page_that_says_what_only_a_run_knows_is_none(plan: ExecutionPlan) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        attach(parse_page(plan.pack(), MOST, foreign=True), [], 0)
