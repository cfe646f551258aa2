"""When a run is over, when it waits for a person, and whose fault that is."""

import pytest
from doubles.plan.play import Fields, Play, each, gate, join, node, when

from sennit.workflows.plan.scheduling.termination import lost_maps, unused_failures

WRITE = node("a", effect="write")


def test_a_run_whose_answer_is_there_without_unexcused_failures_is_done() -> None:
    run = Play(node("a"), node("b"), join("j", "a", "b", policy="settled"), answer="j")
    run.begin()
    run.fail("a")
    assert run.ok("b") == ["close j", "end done"]


def test_a_failed_write_that_nobody_made_good_parks_the_run_until_somebody_does() -> None:
    run = Play(WRITE, node("b"), answer="b")
    run.begin()
    run.fail("a")
    assert run.ok("b") == ["park a"]
    assert run.retry("a") == ["start a~2"]
    assert run.ok("a") == ["end done"]


@pytest.mark.parametrize(
    "lost",
    [
        node("a"),
        node("a", kind="llm"),
        join("a", "x"),
        {"id": "a", "kind": "map", "item_kind": "llm", "cap": 3, "length": 1},
    ],
)
def test_a_run_is_done_without_what_only_read_or_computed_and_nothing_uses(lost: Fields) -> None:
    run = Play(node("x", skip_on_error=True), lost, node("b"), answer="b")
    run.begin()
    run.fail("x")
    name = "a[0]" if lost["kind"] == "map" else "a"
    if lost["kind"] != "join":
        run.fail(name)
    assert run.ok("b") == ["end done"]
    assert unused_failures(run.state) == [run.unit("a")]


@pytest.mark.parametrize("fields", [{"effect": "write"}, {"kind": "agent"}, {"kind": "program", "policy": "any"}])
def test_a_failed_write_agent_or_program_that_nothing_uses_parks_the_run(fields: Fields) -> None:
    run = Play(node("a", **fields), node("b"), answer="b")
    run.begin()
    run.fail("a")
    assert run.ok("b") == ["park a"]
    assert unused_failures(run.state) == []


def test_behind_a_failure_that_nothing_uses_a_write_that_did_not_run_parks_the_run() -> None:
    run = Play(node("a"), node("w", "a", effect="write"), node("b"), answer="b")
    run.begin()
    run.fail("a")
    assert run.ok("b") == ["park a"]


def test_a_map_of_which_every_item_failed_makes_the_run_partial() -> None:
    run = Play(node("l"), each("m", "l", item_kind="llm", item_skip=True), answer="m")
    run.begin()
    run.ok("l", length=2)
    run.fail("m[0]")
    assert run.fail("m[1]") == ["close m", "end partial"]
    assert lost_maps(run.state) == [run.unit("m")]


def test_a_map_that_has_lost_some_items_or_whose_items_a_person_has_skipped_is_done() -> None:
    run = Play(node("l"), each("m", "l", item_kind="llm", item_skip=True), answer="m")
    run.begin()
    run.ok("l", length=2)
    run.fail("m[0]")
    assert run.ok("m[1]") == ["close m", "end done"]
    run = Play(node("l"), each("m", "l", item_kind="llm", item_skip=True), answer="m")
    run.begin()
    run.ok("l", length=1)
    assert run.give_up("m[0]")[-1] == "end done"


def test_an_answer_of_which_all_inputs_failed_and_were_skipped_is_partial() -> None:
    run = Play(node("a", skip_on_error=True), node("b", skip_on_error=True), join("j", "a", "b", policy="settled"))
    run.graph.execution_plan.answer[:] = [2]
    run.begin()
    run.fail("a")
    assert run.fail("b") == ["close j", "end partial"]


def test_an_answer_whose_inputs_a_condition_has_skipped_is_done() -> None:
    skipped = node("b", "x", **when("x.go", "eq", True))
    run = Play(node("x"), node("a", skip_on_error=True), skipped, join("j", "a", "b", policy="settled"), answer="j")
    run.begin()
    run.fail("a")
    assert run.ok("x", go=False) == ["close j", "end done"]


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
    run = Play(node("a", kind="llm"), node("b"), node("c", kind="llm"), answer=("a", "b", "c"))
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
    run = Play(WRITE, node("b"), answer="b", on_failure=on_failure)  # type: ignore[arg-type]  # from a table
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
    run = Play(node("a"), join("j", "a", policy="settled"), node("c", "a", effect="write"), answer="j")
    run.begin()
    assert run.fail("a") == ["close j", "park a"]


def test_a_failure_that_the_answer_names_is_never_excused() -> None:
    run = Play(node("a"), join("j", "a", policy="settled"), answer=("a", "j"))
    run.begin()
    assert run.fail("a") == ["close j", "park a"]


def test_a_failure_behind_a_condition_that_was_false_is_excused() -> None:
    run = Play(node("x"), node("a"), node("c", "a", effect="write", **when("x.go", "eq", True)), answer="x")
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
