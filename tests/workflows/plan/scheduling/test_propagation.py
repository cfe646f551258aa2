"""How one node's end moves the others."""

from collections.abc import Callable
from typing import Any

import pytest
from doubles.plan.play import Play, gate, join, node, when

from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, Question, Start
from sennit.workflows.plan.scheduling.step import step


def test_a_node_starts_the_moment_all_it_needs_has_succeeded() -> None:
    run = Play(node("a"), node("b"), node("c", "a", "b"), node("d", "a"), answer="c")
    assert run.begin() == ["start a", "start b"]
    assert run.ok("a") == ["start d"]
    assert run.ok("b") == ["start c"]


def test_a_run_is_done_when_its_answer_is_there_and_nothing_else_runs() -> None:
    run = Play(node("a"), node("b"), answer="a")
    run.begin()
    assert run.ok("a") == []
    assert run.ok("b") == ["end done"]


def test_siblings_of_a_failed_node_finish() -> None:
    run = Play(node("a"), node("b"), node("c", "a"), node("d", "b"), answer="d")
    run.begin()
    assert run.fail("a") == []
    assert run.ok("b") == ["start d"]


def test_behind_a_failure_nodes_are_blocked_and_shown_as_pending() -> None:
    run = Play(node("a"), node("b", "a"), node("c", "b"), answer="c")
    run.begin()
    assert run.fail("a") == ["park a"]
    assert [run.status(name) for name in "abc"] == ["failed", "blocked", "blocked"]


def test_behind_a_skip_nodes_are_skipped() -> None:
    run = Play(node("a", skip_on_error=True), node("b", "a"), node("c", "b"), answer="c")
    run.begin()
    assert run.fail("a") == ["end partial"]
    assert [run.status(name) for name in "abc"] == ["skipped"] * 3


def test_a_skip_is_stronger_than_a_block_whichever_comes_first() -> None:
    """No repair of the failed node could help a node whose other need was skipped."""
    for order in ("fs", "sf"):
        run = Play(
            node("f"),
            node("s", skip_on_error=True),
            node("c", "f", "s"),
            node("d", "c"),
            node("last"),
            answer="last",
        )
        run.begin()
        for name in order:
            run.fail(name)
        assert run.status("c") == run.status("d") == "skipped"
        assert run.ok("last") == ["end done"]


def test_a_watched_node_only_has_to_end() -> None:
    run = Play(node("a"), node("cleanup", **when("a:status", "eq", "failed")), answer="a")
    run.begin()
    assert run.fail("a") == ["start cleanup"]


def test_a_watched_node_that_is_blocked_reads_as_skipped() -> None:
    run = Play(node("f"), node("a", "f"), node("b", **when("a:status", "eq", "skipped")), answer="b")
    run.begin()
    assert run.fail("f") == ["start b"]


def test_a_false_condition_skips() -> None:
    run = Play(node("a"), node("b", **when("a.count", "gt", 3)), answer="b")
    run.begin()
    assert run.ok("a", count=3) == ["end partial"]
    assert run.note("b") == ("Skipped", "its condition was false")


def test_a_condition_on_a_missing_fact_fails_the_node_with_the_path() -> None:
    run = Play(node("a"), node("b", **when("a.count", "gt", 3)), answer="b")
    run.begin()
    assert run.ok("a") == ["park b"]
    assert run.note("b") == ("ConditionError", "$a.count has no value, so `gt` cannot be decided")


def test_a_fallback_is_a_success_and_its_facts_count() -> None:
    run = Play(node("a", fallback=("default", 7, {"count": 9})), node("b", **when("a.count", "gt", 3)), answer="b")
    run.begin()
    assert run.fail("a") == ["start b"]
    assert run.digest("a") == "default"


def test_a_gate_asks_once_all_it_needs_is_there_and_the_answer_goes_on() -> None:
    run = Play(node("a"), gate("g", "a"), node("b", "g"), answer="b")
    run.begin()
    assert run.ok("a") == ["ask g"]
    assert run.answer("g", "red") == ["start g"]
    assert run.ok("g") == ["start b"]


def test_a_question_with_references_is_put_together_before_it_is_asked() -> None:
    run = Play(node("a"), gate("g", "a", fills=True, deadline=500), answer="g")
    run.begin()
    [start] = step(run.state, NodeEnded(0, 1, Outcome("d", 1)))
    assert (start, run.status("g"), run.state.next_due()) == (Start((1,), asks=True), "running", None)
    assert run.end("g", Outcome(attempts=0, question=Question("Publish this?"))) == ["ask g"]
    assert (run.state.questions, run.state.next_due()) == ({1: Question("Publish this?")}, 500)
    run.crash()
    assert run.answer("g", "yes") == ["start g"]
    assert run.ok("g") == ["end done"]
    assert (run.state.questions, [unit.attempts for unit in run.state.units.values()]) == ({}, [1, 1])


@pytest.mark.parametrize("act", [Play.give_up, Play.retry, lambda run, _: run.stop("partial")])
def test_a_question_is_gone_with_its_node(act: Callable[[Play, str], Any]) -> None:
    run = Play(gate("g", fills=True), answer="g")
    run.begin()
    act(run, "g")
    assert [unit for unit in run.state.questions if run.status("g") != "waiting"] == []


def test_a_gate_that_nobody_answers_in_time_fails() -> None:
    run = Play(gate("g", deadline=500), answer="g")
    run.begin()
    assert run.tick(499) == []
    assert run.tick(1) == ["park g"]
    assert run.note("g")[0] == "GateTimeout"


def test_a_write_waits_for_approval_and_a_rejected_one_fails() -> None:
    run = Play(node("w", approval=True), node("v", approval=True), answer=("w", "v"))
    assert run.begin() == ["ask w", "ask v"]
    assert run.approve("w") == ["start w"]
    run.ok("w")
    assert run.reject("v") == ["park v"]
    assert run.note("v") == ("Rejected", "no")


def test_an_answer_does_not_approve_a_write_and_an_approval_does_not_answer_a_gate() -> None:
    run = Play(node("w", approval=True), gate("g"), answer=("w", "g"))
    run.begin()
    assert run.answer("w") == run.approve("g") == run.reject("g") == []
    assert run.status("w") == run.status("g") == "waiting"


def test_a_result_that_comes_twice_or_too_late_is_ignored() -> None:
    run = Play(node("a"), node("b", "a"), node("c", "b"), answer="c")
    run.begin()
    run.ok("a")
    assert run.ok("a") == []
    assert run.past_deadline("b", 0) == []
    assert run.ok("b", "c") == ["start c", "end done"]
    assert run.ok("c") == []


def test_a_chain_of_thousands_of_skips_costs_no_stack() -> None:
    count = 5_000
    chain = [node("n0", skip_on_error=True), *(node(f"n{i}", f"n{i - 1}") for i in range(1, count))]
    run = Play(*chain, answer=f"n{count - 1}")
    run.begin()
    assert run.fail("n0") == ["end partial"]


def test_a_chain_of_thousands_of_failures_blocks_revives_and_is_given_up_without_stack() -> None:
    count = 5_000
    run = Play(node("n0"), *(node(f"n{i}", f"n{i - 1}") for i in range(1, count)), answer=f"n{count - 1}")
    run.begin()
    assert run.fail("n0") == ["park n0"]
    assert run.retry("n0") == ["start n0~2"]
    assert run.fail("n0") == ["park n0"]
    assert run.give_up("n0") == ["end partial"]


def test_a_chain_of_thousands_of_joins_fails_and_recovers_in_one_pass() -> None:
    count = 5_000
    run = Play(node("n0"), *(join(f"n{i}", f"n{i - 1}") for i in range(1, count)), answer=f"n{count - 1}")
    run.begin()
    assert run.fail("n0") == ["park n0"]
    run.retry("n0")
    assert run.fail("n0") == ["park n0"]
    run.retry("n0")
    assert run.ok("n0")[-2:] == ["close n8", "start n9"]


def test_a_chain_of_thousands_of_undecidable_fallbacks_fails_without_stack() -> None:
    count = 5_000
    bad = when("x.count", "gt", 1)
    nodes = [node(f"n{i}", successor=f"n{i + 1}", **bad) for i in range(count - 1)]
    run = Play(node("x"), *nodes, node(f"n{count - 1}", **bad), answer="n0")
    run.begin()
    assert run.ok("x") == ["park n0"]


def test_before_the_plan_is_there_and_after_the_end_nothing_moves() -> None:
    run = Play(node("a"), gate("g"), answer="a")
    assert run.retry("a") == run.give_up("g") == run.tick(10) == []
    assert run.begin() == ["ask g", "start a"]
    assert run.begin() == []
    assert run.stop() == ["cancel a", "end cancelled"]
    assert run.retry("a") == run.answer("g") == run.stop("partial") == []
