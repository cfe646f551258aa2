"""When an update fits a run, without a server."""

import pytest
from doubles.plan.play import Play, each, join, node

from sennit.workflows.messages.updates import Answer, Approve, EditProgram, RaiseBudget, RetryNode, SkipNode, Update
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.plan.scheduling.unit import SKIPPED
from sennit.workflows.run.update_rules import judge


@pytest.mark.parametrize("update", [RetryNode(node="a"), SkipNode(node="b")], ids=["retry", "skip"])
def test_a_node_of_an_unfinished_plan_is_neither_retried_nor_skipped(update: Update) -> None:
    """The whole plan may replace this beginning, and would know nothing of what people did to it."""
    run = Play(node("a"), node("b"), node("c"), answer="c")
    run.begin()
    run.ok("a")
    run.state.streaming = True
    early = judge(run.state, update)
    assert (early.rejection, early.is_final) == ("the plan is still being written; try again in a moment", False)
    run.state.streaming = False
    assert judge(run.state, update).event is not None


@pytest.mark.parametrize(
    ("update", "rejection"),
    [
        (RaiseBudget(), "name at least one limit"),
        (RaiseBudget(tokens=10), "the new limit must be higher: tokens is 1000 already"),
        (RaiseBudget(tokens=1_001), ""),
    ],
)
def test_a_raise_that_is_none_is_refused(update: RaiseBudget, rejection: str) -> None:
    run = Play(node("a"), answer="a")
    run.state.budget = Budget({"tokens": 1_000})
    assert judge(run.state, update).rejection == rejection


@pytest.mark.parametrize(
    ("update", "rejection"),
    [
        (Approve(node="m[0]"), "`m[0]` is about a write; name what you have read of it with `digest`"),
        (Approve(node="m[0]", digest="m[0] of a"), ""),
        (Approve(node="m[0]", digest="m[0] of a", args={"text": "x"}), ""),
        (Approve(node="m[0]", digest="m[1] of a"), "`m[0]` would write something else by now; read it again"),
        (Approve(node="m[0]", args={"text": "x" * 70_000}), "args has 70,0"),
        (Approve(node="m"), "`m` is about 2 writes; name what you have read of them with `digest`"),
        (Approve(node="m", digest="m[0] of a"), "`m` would write something else by now"),
        (Approve(node="m", digest="94e2c1e3ba98", args={"text": "x"}), "args can be changed of one write at a time"),
        (Approve(node="a"), "`a` is succeeded; it does not wait for anybody"),
    ],
)
def test_nobody_approves_what_was_not_shown(update: Approve, rejection: str) -> None:
    run = Play(node("a"), each("m", "a", approval=True), node("j", kind="llm"), answer="m")
    run.begin()
    run.ok("a", length=2)
    verdict = judge(run.state, update)
    assert verdict.rejection.startswith(rejection)
    assert (verdict.event is None) == bool(rejection)


@pytest.mark.parametrize(
    ("name", "rejection"),
    [
        ("main", ""),
        ("a", "`a` has no script of its own"),
        ("task", "`task` has no script of its own"),
        ("none", "there is no program `none`; the programs are main, gone"),
        ("gone", "`gone` is skipped"),
    ],
)
def test_a_script_is_edited_where_the_plan_has_it(name: str, rejection: str) -> None:
    run = Play(node("a"), *(node(each, kind="program") for each in ("main", "task", "gone")), answer="main")
    run.begin()
    run.state.graph.specs[run.state.graph.by_id["task"]].kind = "task"
    run.state.set_status(run.state.graph.by_id["gone"], SKIPPED)
    verdict = judge(run.state, EditProgram(node=name, script=""))
    assert verdict.rejection.startswith(rejection)
    assert (verdict.event is None) == bool(rejection)


@pytest.mark.parametrize(("approval", "confirmation"), [(True, "m asks for approval of"), (False, "m runs again with")])
def test_an_edit_says_whether_the_script_is_approved_first(approval: bool, confirmation: str) -> None:
    run = Play(node("m", kind="program", approval=approval), answer="m")
    run.begin()
    verdict = judge(run.state, EditProgram(node="m", script=""))
    assert verdict.confirmation == f"{confirmation} the new script; calls that it makes again are taken over"


def test_a_retry_without_a_node_is_of_all_that_blocks() -> None:
    run = Play(node("a"), node("b"), node("w", effect="write"), node("c", "a", "b", "w"), answer="c")
    run.begin()
    assert judge(run.state, RetryNode()).rejection == "no failed node blocks this run; name the node to run again"
    run.fail("a")
    run.fail("b")
    run.fail("w", "UnknownOutcome")
    assert "this may repeat what w wrote" in judge(run.state, RetryNode()).rejection
    verdict = judge(run.state, RetryNode(repeat_effect=True))
    assert verdict.confirmation == "a, b, w run again"
    assert verdict.event is not None
    run.act(verdict.event)
    assert [run.status(name) for name in "abw"] == ["running"] * 3


@pytest.mark.parametrize(
    ("name", "rejection"),
    [
        ("a", ""),
        ("m[1]", ""),
        ("ok", "`ok` is succeeded; only a gate, and a call that has failed, take an answer"),
        ("w", "`w` is no gate; approve or reject"),
        ("m", "`m` is a map: answer the item"),
        ("p", "`p` is a program: answer the call"),
        ("j", "`j` is a join and calls nothing"),
        ("f", "`f` stands in for another node; answer that one"),
        ("m[7]", "there is no node `m[7]`"),
    ],
)
def test_a_person_gives_the_result_of_a_call_that_has_failed(name: str, rejection: str) -> None:
    nodes = [node(each) for each in ("a", "ok", "l")]
    nodes += [node("w", effect="write", approval=True), node("p", kind="program"), each("m", "l"), join("j", "a")]
    run = Play(*nodes, node("h", successor="f"), node("f", is_successor=True), answer=("a", "w", "j", "h"))
    run.begin()
    run.ok("ok")
    run.ok("l", length=2)
    for failed in ("a", "p", "m[1]", "h", "f"):
        run.fail(failed)
    verdict = judge(run.state, Answer(node=name, value=7))
    assert verdict.rejection.startswith(rejection)
    assert (verdict.event is None) == bool(rejection)
    run.state.streaming = True
    assert "the plan is still being written" in judge(run.state, Answer(node="a", value=7)).rejection


def test_an_answer_that_may_repeat_a_write_says_so() -> None:
    """The write has gone on without `a`."""
    run = Play(node("a"), join("j", "a", policy="settled"), node("w", "j", effect="write"), node("z"), answer="z")
    run.begin()
    run.fail("a")
    run.ok("j", "w")
    update = Answer(node="a", value=7)
    assert "this may repeat what w wrote" in judge(run.state, update).rejection
    assert judge(run.state, update.model_copy(update={"repeat_effect": True})).confirmation == "a is answered"


@pytest.mark.parametrize("kind", ["program", "tool"])
def test_a_node_that_a_program_may_add_is_not_unknown_for_good(kind: str) -> None:
    run = Play(node("main", kind=kind), answer="main")
    run.begin()
    assert judge(run.state, Answer(node="main_1", value=7)).is_final == (kind == "tool")
