"""A plan that grows while its nodes run, and requests for more nodes that wait for a person."""

import pytest
from doubles.plan.play import Play, each, join, node

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.nodes import OnFailure
from sennit.workflows.plan.scheduling.budget import Amounts, Rate
from sennit.workflows.plan.scheduling.events import BudgetRaised, CostCharged, ExpansionRequest, Outcome
from sennit.workflows.plan.scheduling.extension import needs_approval, request_of


def test_a_write_that_comes_later_waits_for_the_reads_that_run() -> None:
    run = Play(node("a", locks=[("file", False)]), node("b", locks=[("file", False)]), answer="a")
    assert run.begin() == ["start a", "start b"]
    assert run.grow(node("w", locks=[("file", True)]), node("c", locks=[("file", False)]), answer="w") == ["start c"]
    assert run.ok("a", "c") == []
    assert run.ok("b") == ["start w"]
    assert list(run.state.locks["file"].holders) == [run.unit("w")]
    assert run.ok("w") == ["end done"]
    assert run.state.locks == {}


@pytest.mark.parametrize(("policy", "end"), [("park", "park a"), ("fail", "end failed"), ("partial", "end partial")])
def test_a_failure_is_judged_when_the_plan_is_whole(policy: OnFailure, end: str) -> None:
    run = Play(node("a", effect="write"), node("b"), answer=["a", "b"], on_failure=policy)
    run.begin(more=True)
    assert run.fail("a") == []
    assert run.ok("b") == []
    assert run.grow(node("c", "b"), answer="c") == ["start c"]
    assert run.ok("c") == [end]


def test_a_model_that_fails_when_it_runs_again_has_its_fallback_and_not_its_old_turn() -> None:
    run = Play(node("n", kind="llm", successor="x"), node("x", is_successor=True), node("k"), answer="n")
    run.begin()
    assert run.grow(node("c"), node("t2", "c", kind="llm", successor="x"), of="n") == ["start c"]
    assert run.ok("c") == ["start t2"]
    assert run.ok("t2") == []
    assert (run.status("n"), run.status("x")) == ("succeeded", "skipped")
    run.retry("n")
    assert run.fail("n") == ["start x"]
    run.ok("x")
    assert (run.status("n"), run.digest("n")) == ("succeeded", "of x")


MADE = Outcome("of j", 7, attempts=0)
"""How the check of an approved request ends: the call behind it has been counted."""


def waiting(*more: dict[str, object], **options: object) -> Play:
    """A run whose joiner `j` waits with a request."""
    run = Play(node("a"), node("j", "a", kind="llm"), *more, answer="j", **options)  # type: ignore[arg-type]
    run.state.approve_above = 3
    run.begin()
    run.ok("a")
    assert run.expansion_request("j") == ["ask j"]
    return run


def grown(run: Play) -> list[str]:
    """The approved request has been checked: its node `k` is added, and `j` ends."""
    return run.grow(node("k", "j", kind="llm"), answer="k", of="j", outcome=MADE)


@pytest.mark.parametrize(("above", "asked"), [(None, False), (0, True), (8, True), (9, False), (10, False)])
def test_a_person_is_asked_about_more_nodes_than_are_added_unasked(above: int | None, asked: bool) -> None:
    run = waiting()
    run.state.approve_above = above
    request = ExpansionRequest("w", 9)
    assert needs_approval(run.state, run.unit("a"), request) is asked
    assert not needs_approval(run.state, run.unit("j"), request), "it was asked already"


def test_a_request_counts_its_nodes_and_items() -> None:
    """A map counts with all the items that it may have, a join and its model as two."""
    added = [
        NodeSpec("n4", "map", over=(0, "length"), cap=200, summary="n4 map visit over $n1 <- n1"),
        NodeSpec("n5", "map", length=7, cap=100, summary=f"n5 map read {'x' * 90} <- n4"),
        *(NodeSpec(f"m{i}", "tool", summary=f"m{i} search") for i in range(10)),
    ]
    request = request_of("w", added, "y" * 300, 9_000)
    assert request.nodes == 2 + 200 + 7 + 10
    assert request.summaries == ("n4 map visit over $n1", f"n5 map read {'x' * 37}…", "m0 search")
    assert len(request.why) == 120


def test_an_approved_request_extends_the_plan_and_then_its_node_ends() -> None:
    run = waiting()
    run.state.millis[1] = 5_000
    run.state.now += 60_000
    assert run.status("j") == "waiting"
    assert run.approve("j") == ["extend j"]
    assert run.status("j") == "running"
    run.state.now += 20
    assert grown(run) == ["start k"]
    assert run.state.millis[1] == 5_020, "the call and the check, not the wait between"
    assert (run.status("j"), run.digest("j"), run.state.attempts[1]) == ("succeeded", "of j", 1)
    assert not run.state.expansion_requests
    assert run.ok("k") == ["end done"]


def test_a_model_with_a_rejected_request_gets_the_reason_and_is_asked_again() -> None:
    run = waiting()
    run.state.facts[1] = {"count": 3}
    assert run.reject("j") == ["start j"]
    assert not run.state.facts.get(1)
    assert run.state.objections == {1: ("a person rejected these nodes (9): no",)}
    assert run.expansion_request("j") == ["ask j"]
    assert run.approve("j") == ["extend j"]
    again = Outcome(again=True, attempts=0, objections=("there is no tool `rm`",))
    assert run.end("j", again) == ["start j"], "what does not fit the plan any more goes back to the model"
    assert run.state.objections == {1: ("there is no tool `rm`",)}
    assert run.ok("j") == ["end done"]
    assert run.state.attempts[1] == 3


def test_what_a_person_says_twice_counts_once() -> None:
    run = waiting()
    run.approve("j")
    assert run.approve("j") == run.reject("j") == []
    assert run.status("j") == "running"


def test_everything_else_goes_on_while_a_request_waits_and_the_plan_may_grow() -> None:
    run = waiting(node("b", kind="llm"))
    assert run.grow(node("b1"), node("b2", "b1", kind="llm"), of="b") == ["start b1"]
    assert run.ok("b1") == ["start b2"]
    assert run.ok("b2") == []
    assert not run.state.ended
    assert run.approve("j") == ["extend j"]
    assert grown(run) == ["start k"]


def test_an_approved_request_waits_for_a_slot_and_a_lock_like_any_start() -> None:
    repo = [("repo", True)]
    run = Play(node("j", kind="llm", locks=repo), node("b", locks=repo), node("c"), answer="j", window=1)
    run.state.approve_above = 0
    run.begin()
    assert run.expansion_request("j") == ["ask j", "start b"]
    assert run.approve("j") == []
    run.crash()
    assert run.ok("b") == ["extend j"]
    assert run.end("j", MADE) == ["start c"]
    assert run.ok("c") == ["end done"]


@pytest.mark.parametrize("approved", [False, True])
def test_skipping_the_node_or_ending_the_run_drops_a_request(approved: bool) -> None:
    for act, ended in (("give_up", "end partial"), ("stop", "end cancelled")):
        run = waiting()
        if approved:
            run.approve("j")
        cancelled = ["cancel j"] if approved else []
        assert (run.give_up("j") if act == "give_up" else run.stop()) == [*cancelled, ended]
        assert run.end("j", MADE) == []
        assert run.status("j") == ("skipped" if act == "give_up" else "cancelled")


def test_a_node_that_runs_again_forgets_its_request_and_the_decision() -> None:
    run = waiting()
    run.reject("j")
    run.expansion_request("j")
    assert run.retry("j") == ["start j~2"]
    assert not run.state.expansion_requests
    assert not run.state.objections
    assert run.ok("j") == ["end done"]


def test_a_request_made_of_an_output_that_changes_is_withdrawn() -> None:
    run = waiting()
    assert run.retry("a") == ["start a~2"]
    assert run.status("j") == "waiting", "until the new output is known"
    assert run.ok("a", digest="another") == ["start j~2"]
    assert not run.state.expansion_requests


def test_a_request_made_of_an_output_that_stays_keeps_waiting() -> None:
    run = waiting()
    run.retry("a")
    assert run.ok("a") == []
    assert run.approve("j") == ["extend j"]


def test_a_request_costs_once() -> None:
    """The call is booked when it has ended; being approved takes nothing, even where the budget is spent."""
    run = Play(node("j", kind="llm"), node("b", kind="llm"), answer="j", window=1)
    run.act(BudgetRaised({"tokens": 100, "calls": 1}))
    run.state.approve_above = 0
    run.begin()
    budget = run.state.budget
    assert budget is not None
    run.expansion_request("j")
    assert budget.spent == Amounts(100, 10, 1, 0)
    assert run.approve("j") == ["extend j"]
    assert budget.held == Amounts()
    assert run.end("j", MADE) == ["park "]
    assert budget.spent == Amounts(100, 10, 1, 1)


def test_an_approved_request_does_not_call_the_provider() -> None:
    run = Play(node("j", kind="llm"), node("b", kind="llm"), answer="j")
    run.state.approve_above = 0
    run.state.rates = {"": Rate(1)}
    assert run.begin() == ["start j"]
    assert run.expansion_request("j") == ["ask j", "start b"]
    assert run.approve("j") == ["extend j"]
    assert run.retry("j") == ["cancel j"]
    assert run.ok("b") == ["start j~2"]
    run.expansion_request("j")
    run.approve("j")
    assert run.end("j", MADE) == ["end done"]
    rate = run.state.rates[""]
    assert (rate.calls, rate.ended, rate.running) == (3, 3, 0)


def test_a_model_with_a_rejected_request_is_asked_again_when_the_budget_allows() -> None:
    run = Play(node("j", kind="llm"), answer="j")
    run.act(BudgetRaised({"calls": 1}))
    run.state.approve_above = 0
    run.begin()
    run.expansion_request("j")
    assert run.reject("j") == ["park "]
    run.act(CostCharged(Usage()))
    assert run.act(BudgetRaised({"calls": 2})) == ["start j"]
    assert run.ok("j") == ["end done"]


def test_nobody_waits_for_a_request_whose_join_has_closed() -> None:
    run = Play(node("j", kind="llm"), node("b"), join("f", "j", "b", policy="first"), answer="f")
    run.state.approve_above = 0
    run.begin()
    run.expansion_request("j")
    assert run.ok("b") == ["close f", "end done"]
    assert run.status("j") == "cancelled"
    assert not run.state.expansion_requests


def test_a_request_with_everything_it_needs_survives_a_crash() -> None:
    run = waiting(node("l"), each("m", "l"))
    run.ok("l", length=2)
    before = run.state.expansion_requests, run.state.objections, run.state.approve_above
    run.crash()
    assert (run.state.expansion_requests, run.state.objections, run.state.approve_above) == before
    run.reject("j")
    run.crash()
    assert run.state.objections == {1: ("a person rejected these nodes (9): no",)}
    run.expansion_request("j", count=3)
    run.approve("j")
    run.ok("m[0]", "m[1]")
    run.ok("m")
    run.crash()
    grown(run)
    assert run.state.facts[1] == {"count": 3}, "facts of the request itself are there for those who ask"
    assert run.ok("k") == ["end done"]
