"""When a run is over, when it waits for a person, and whose fault that is."""

import pytest
from doubles.plan.play import Play, gate, join, node, when


def test_a_run_whose_answer_is_there_without_unexcused_failures_is_done() -> None:
    run = Play(node("a"), node("b"), join("j", "a", "b", policy="settled"), answer="j")
    run.begin()
    run.fail("a")
    assert run.ok("b") == ["close j", "end done"]


def test_a_failure_that_nobody_made_good_parks_the_run_until_somebody_does() -> None:
    run = Play(node("a"), node("b"), answer="b")
    run.begin()
    run.fail("a")
    assert run.ok("b") == ["park a"]
    assert run.retry("a") == ["start a~2"]
    assert run.ok("a") == ["end done"]


def test_a_parked_run_ends_partial_at_its_deadline() -> None:
    run = Play(node("a"), answer="a")
    run.begin()
    run.fail("a")
    assert run.state.next_due() == 1_000_000
    assert run.tick(1_000_000) == ["end partial"]


def test_every_park_has_a_deadline_of_its_own() -> None:
    run = Play(node("a"), answer="a")
    run.begin()
    run.fail("a")
    run.tick(900_000)
    run.retry("a")
    assert run.tick(200_000) == []
    assert run.fail("a") == ["park a"]
    assert run.tick(999_999) == []


def test_a_parked_run_says_so_once_and_an_edit_without_effect_does_not_wake_it() -> None:
    run = Play(node("a"), node("b"), answer="a")
    run.begin()
    run.ok("b")
    run.fail("a")
    due = run.state.next_due()
    assert run.tick(5) == run.give_up("b") == run.answer("b") == []
    assert run.state.next_due() == due


def test_what_an_outage_has_failed_is_tried_again_less_and_less_often_until_the_park_ends() -> None:
    run = Play(node("a", kind="llm"), node("b"), answer="a")
    run.begin()
    run.ok("b")
    assert run.fail("a", "ServerUnreachable") == ["park a"]
    assert run.tick(29_999) == []
    assert run.tick(1) == ["start a~2"]
    assert run.fail("a", "ServerFailed") == ["park a"]
    assert run.tick(59_999) == []
    assert run.tick(1) == ["start a~3"]
    run.fail("a", "RateLimited")
    assert run.retry("a") == ["start a~4"], "a person need not wait"
    run.fail("a", "ServerFailed")
    assert run.state.next_due() == 90_000 + 30_000
    words: list[str] = []
    while not words or words[-1] != "end partial":
        words += run.tick(10_000)
        if words and words[-1].startswith("start"):
            words += run.fail("a", "ServerFailed")
    assert [word for word in words if word.startswith("start")] == [f"start a~{n}" for n in range(5, 10)]
    assert run.state.now == 90_000 + 1_000_000


def test_an_outage_tries_nothing_else_again() -> None:
    run = Play(node("a", kind="llm"), node("b"), node("c", kind="llm"), answer="a")
    run.begin()
    run.fail("a", "SchemaMismatch")
    run.fail("b", "ServerFailed")
    assert run.state.next_due() is None
    run.fail("c", "ServerFailed")
    assert run.tick(30_000) == ["start c~2"]
    assert run.ok("c") == ["park a b"]
    assert run.state.next_due() == 30_000 + 1_000_000


@pytest.mark.parametrize(("on_failure", "word"), [("partial", "end partial"), ("fail", "end failed")])
def test_on_failure_may_end_the_run_instead_of_parking(on_failure: str, word: str) -> None:
    run = Play(node("a"), node("b"), answer="b", on_failure=on_failure)  # type: ignore[arg-type]  # from a table
    run.begin()
    run.fail("a")
    assert run.ok("b") == [word]


def test_a_run_does_not_park_while_something_runs_or_waits_for_a_person() -> None:
    run = Play(node("a"), node("b"), gate("g"), answer=("a", "b", "g"))
    run.begin()
    assert run.fail("a") == []
    assert run.ok("b") == []
    run.answer("g")
    assert run.ok("g") == ["park a"]


def test_an_answer_that_is_only_skipped_makes_the_run_partial() -> None:
    run = Play(node("a", skip_on_error=True), answer="a")
    run.begin()
    assert run.fail("a") == ["end partial"]


def test_a_failure_behind_which_everything_ended_well_is_excused() -> None:
    run = Play(
        node("a"),
        node("b", "a"),
        join("j", "b", policy="settled"),
        node("ok"),
        join("k", "a", "ok", policy="first"),
        answer=("j", "k"),
    )
    run.begin()
    run.ok("ok")
    assert run.fail("a") == ["close j", "end done"]


def test_a_failure_is_not_excused_when_one_of_those_behind_it_is_lost() -> None:
    run = Play(node("a"), join("j", "a", policy="settled"), node("c", "a"), answer="j")
    run.begin()
    assert run.fail("a") == ["close j", "park a"]


def test_a_failure_that_the_answer_names_is_never_excused() -> None:
    run = Play(node("a"), join("j", "a", policy="settled"), answer=("a", "j"))
    run.begin()
    assert run.fail("a") == ["close j", "park a"]


def test_a_failure_behind_a_condition_that_was_false_is_excused() -> None:
    run = Play(node("x"), node("a"), node("c", "a", **when("x.go", "eq", True)), answer="x")
    run.begin()
    run.ok("x", go=False)
    assert run.fail("a") == ["park a"]
    run = Play(node("x", skip_on_error=True), node("a"), node("c", "a", "x"), node("z"), answer="z")
    run.begin()
    run.fail("x")
    run.fail("a")
    assert run.ok("z") == ["end done"]


def test_the_nodes_to_repair_are_the_causes_and_not_the_joins_they_failed() -> None:
    run = Play(node("a"), node("b", "a"), join("j", "b"), answer="j")
    run.begin()
    assert run.fail("a") == ["park a"]


def test_a_join_is_to_be_repaired_itself_when_no_input_of_it_failed() -> None:
    run = Play(node("a", skip_on_error=True), join("j", "a"), answer="j")
    run.begin()
    assert run.fail("a") == ["park j"]


def test_a_failed_fallback_is_excused_with_its_node() -> None:
    run = Play(node("a", successor="s"), node("s", is_successor=True), join("j", "a", policy="settled"), answer="j")
    run.begin()
    run.fail("a")
    assert run.fail("s") == ["close j", "end done"]


def test_what_blocked_the_fallback_of_an_excused_node_is_excused_too() -> None:
    nodes = (node("x"), node("a", successor="s"), node("s", "x", is_successor=True), join("j", "a", policy="settled"))
    run = Play(*nodes, answer="j")
    run.begin()
    run.fail("x")
    assert run.fail("a") == ["close j", "end done"]


def test_what_only_an_unneeded_fallback_needed_may_fail() -> None:
    run = Play(node("x"), node("a", successor="s"), node("s", "x", is_successor=True), answer="a")
    run.begin()
    run.fail("x")
    assert run.ok("a") == ["end done"]


def test_an_end_cancels_what_runs_and_settles_what_is_pending() -> None:
    nodes = (node("a"), node("b", "a"), gate("g"), node("c"))
    run = Play(*nodes, answer="b")
    run.begin()
    run.ok("c")
    assert run.stop("partial") == ["cancel a", "end partial"]
    assert [run.status(name) for name in "abgc"] == ["cancelled", "skipped", "skipped", "succeeded"]
    run = Play(*nodes, answer="b")
    run.begin()
    assert run.stop("cancelled") == ["cancel a", "cancel c", "end cancelled"]
    assert [run.status(name) for name in "abgc"] == ["cancelled"] * 4
    assert run.state.next_due() is None


def test_a_run_stopped_before_its_plan_began_ends_at_once() -> None:
    run = Play(node("a"), answer="a")
    assert run.stop() == ["end cancelled"]
    assert run.begin() == []
