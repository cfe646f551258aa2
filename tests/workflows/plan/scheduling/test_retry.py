"""What a person changes while a run goes on, what follows, and what a retry may write twice."""

from typing import Any

import pytest
from doubles.plan.play import Play, each, gate, join, node, when

from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling import joins
from sennit.workflows.plan.scheduling.admission import waiting_in
from sennit.workflows.plan.scheduling.budget import Budget, Rate
from sennit.workflows.plan.scheduling.events import (
    NodeEnded,
    Outcome,
    Question,
    RetryRequested,
    RunStarted,
    SkipRequested,
)
from sennit.workflows.plan.scheduling.ready import unpaid
from sennit.workflows.plan.scheduling.retry import repeated
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.views.writes import writes_of


def chain(*, window: int = 100) -> Play:
    """a, b, c, d in a row, all done but d."""
    run = Play(node("a"), node("b", "a"), node("c", "b"), node("d", "c"), answer="d", window=window)
    run.begin()
    run.ok("a", "b", "c")
    return run


def test_a_failed_node_runs_again_under_a_new_generation_and_what_was_blocked_goes_on() -> None:
    run = Play(node("a"), node("b", "a"), answer="b")
    run.begin()
    run.fail("a")
    assert run.retry("a") == ["start a~2"]
    assert run.status("b") == "pending"
    assert run.ok("a") == ["start b"]


def test_the_same_output_again_changes_nothing_for_those_who_read_it() -> None:
    run = chain()
    assert run.retry("a") == ["start a~2"]
    assert run.ok("a") == []
    assert run.ok("d") == ["end done"]


def test_another_output_runs_those_who_read_it_again_wave_by_wave() -> None:
    run = chain()
    run.retry("a")
    assert run.ok("a", digest="new") == ["start b~2"]
    assert run.status("c") == "succeeded"
    assert run.ok("b", digest="new too") == ["start c~2"]
    assert run.ok("c", digest="and so on") == ["cancel d", "start d~2"]


def test_the_wave_stops_at_the_first_equal_output() -> None:
    run = chain()
    run.retry("a")
    run.ok("a", digest="new")
    assert run.ok("b") == []
    assert run.ok("d") == ["end done"]


def test_a_node_that_runs_is_cancelled_and_its_late_result_is_ignored() -> None:
    run = Play(node("a"), node("b", "a"), answer="b")
    run.begin()
    assert run.retry("a") == ["cancel a", "start a~2"]
    assert run.past_deadline("a", 1) == []
    assert run.ok("a") == ["start b"]


def test_those_who_have_not_begun_wait_for_the_new_output() -> None:
    run = Play(node("x"), node("a"), node("b", "a", "x"), answer="b")
    run.begin()
    run.ok("a")
    run.retry("a")
    assert run.ok("x") == []
    assert run.ok("a") == ["start b"]


def test_a_ready_node_waits_again_when_what_it_needs_runs_again() -> None:
    run = Play(node("a"), node("b", "a"), node("long"), answer="b", window=2)
    run.begin()
    run.state.window = 1
    run.ok("a")
    assert run.retry("a") == []
    run.state.window = 2
    assert run.tick(0) == ["start a~2"]
    assert run.ok("a") == ["start b"]


def test_a_node_that_fails_when_run_again_blocks_those_who_read_it() -> None:
    run = chain()
    run.retry("a")
    assert run.fail("a") == ["cancel d", "park a"]
    assert [run.status(name) for name in "bcd"] == ["blocked"] * 3
    run.retry("a")
    assert run.ok("a") == ["start b~2"]


def test_a_retry_reads_what_is_there_and_again_what_comes() -> None:
    run = chain()
    run.retry("a")
    assert run.retry("c") == ["start c~2"]
    assert run.ok("a", digest="new") == ["start b~2"]
    assert run.ok("b", digest="new too") == ["cancel c~2", "start c~3"]


def test_a_question_is_withdrawn_while_what_it_rests_on_runs_again() -> None:
    run = Play(node("a"), gate("g", "a", deadline=100), node("w", "a", approval=True), answer=("g", "w"))
    run.begin()
    run.ok("a")
    run.retry("a")
    assert run.status("g") == run.status("w") == "pending"
    assert run.state.next_due() is None
    assert run.tick(200) == run.answer("g") == run.approve("w") == []
    assert run.ok("a") == ["ask g", "ask w"]


def test_an_approval_holds_for_a_retry_but_not_for_other_inputs() -> None:
    run = Play(node("a"), node("w", "a", approval=True), node("z", "w"), answer="z")
    run.begin()
    run.ok("a")
    run.approve("w")
    run.ok("w")
    assert run.retry("w") == ["start w~2"]
    run.ok("w")
    run.retry("a")
    assert run.ok("a", digest="other words") == ["ask w"]


def test_an_approved_write_that_has_not_started_is_asked_about_again_when_its_inputs_change() -> None:
    run = Play(node("x"), node("a"), node("w", "a", approval=True), answer="w", window=2)
    run.begin()
    run.ok("a")
    run.state.window = 1
    run.approve("w")
    run.retry("a")
    run.state.window = 2
    assert run.tick(0) == ["start a~2"]
    assert run.ok("a", digest="other words") == ["ask w"]


def test_nobody_is_asked_about_values_that_are_being_made_again() -> None:
    run = Play(node("a"), node("w", "a", approval=True), answer="w")
    run.begin()
    step(run.state, NodeEnded(0, 1, Outcome("old", 1)))
    assert run.retry("a") == ["start a~2"]
    assert run.end("w", Outcome(attempts=0, question=run.asked("w"))) == []
    assert (run.status("w"), run.state.questions) == ("pending", {})
    assert run.ok("a", digest="old") == ["ask w"]


def test_what_an_approved_write_asks_again_is_not_approved() -> None:
    run = Play(node("w", approval=True), answer="w")
    run.begin()
    run.approve("w")
    assert run.end("w", Outcome(attempts=0, question=Question("other", "d", "another file"))) == ["ask w"]
    assert run.state.units[0].approved is None


def test_a_rejected_write_and_an_answered_gate_are_asked_about_again_when_retried() -> None:
    run = Play(node("w", approval=True), answer="w")
    run.begin()
    run.reject("w")
    assert run.retry("w") == ["ask w"]
    assert run.approve("w") == ["start w~2"]
    run = Play(gate("g"), answer="g")
    run.begin()
    run.answer("g")
    assert run.retry("g") == ["cancel g", "ask g"]


def test_a_node_given_up_is_skipped_for_good_with_what_needs_it() -> None:
    run = Play(node("a"), node("b", "a"), join("j", "b", policy="settled"), answer="j")
    run.begin()
    assert run.give_up("a") == ["cancel a", "close j", "end done"]
    assert [run.status(name) for name in "ab"] == ["skipped", "skipped"]
    assert run.note("a")[0] == "Skipped"


def test_a_failed_node_given_up_lets_what_it_blocked_go() -> None:
    run = Play(node("a"), node("b", "a"), node("c"), answer=("b", "c"))
    run.begin()
    run.ok("c")
    assert run.fail("a") == ["park a"]
    assert run.give_up("c") == []
    assert run.give_up("a") == ["end partial"]


def test_a_node_given_up_stays_so_when_what_it_needs_changes_until_it_is_retried_itself() -> None:
    run = Play(node("a"), node("b", "a"), node("c"), answer="c")
    run.begin()
    run.ok("a")
    run.give_up("b")
    run.retry("a")
    assert run.ok("a", digest="new") == []
    assert run.retry("b") == ["start b~2"]


def test_a_condition_is_decided_anew_on_the_new_facts() -> None:
    run = Play(node("a"), node("b", **when("a.count", "gt", 3)), node("z"), answer="z")
    run.begin()
    run.ok("a", count=1)
    assert run.status("b") == "skipped"
    run.retry("a")
    assert run.ok("a", digest="new", count=5) == ["start b~2"]


def test_a_condition_is_not_decided_while_one_it_reads_is_about_to_run_again() -> None:
    """In one step x ends with other facts, b falls back on them, a is to run again: c waits for a."""
    run = Play(
        node("x"),
        node("a", "x", rank=9),
        node("b", "x", fallback=("d", 1, {}), **when("x.n", "gt", 0)),
        node("c", "a", "b", **when("a.n", "gt", 0)),
        answer="c",
        window=1,
    )
    run.begin()
    run.ok("x", n=1)
    run.state.window = 0
    run.ok("a", n=1)
    run.retry("x")
    run.state.window = 1
    assert run.tick(0) == ["start x~2"]
    assert run.ok("x", digest="without n") == ["start a~2"]
    assert run.status("c") == "pending"
    assert run.ok("a", n=1) == ["start c"]


def test_a_watcher_runs_again_only_when_the_status_is_another() -> None:
    run = Play(node("a"), node("b", **when("a:status", "eq", "failed")), node("z"), answer="z")
    run.begin()
    assert run.fail("a") == ["start b"]
    run.ok("b")
    run.retry("a")
    assert run.fail("a") == []
    assert run.status("b") == "succeeded"
    run.retry("a")
    assert run.ok("a") == []
    assert run.status("b") == "skipped"


def test_first_keeps_its_value_when_only_a_loser_changes() -> None:
    run = Play(node("a"), node("b"), join("j", "a", "b", policy="first"), node("z", "j"), answer=("z", "b"))
    run.begin()
    run.ok("a")
    run.ok("b")
    run.retry("b")
    assert run.ok("b", digest="new") == []
    run.retry("a")
    assert run.ok("a", digest="new") == ["cancel z", "close j~2", "start z~2"]


def test_a_loser_stays_called_off_when_what_it_needs_changes() -> None:
    run = Play(
        node("x"), node("a"), node("b", "x"), join("j", "a", "b", policy="first"), node("z"), answer=("j", "x", "z")
    )
    run.begin()
    run.ok("x")
    assert run.ok("a") == ["cancel b", "close j"]
    run.retry("x")
    assert run.ok("x", digest="new") == []
    assert run.status("b") == "cancelled"


def test_a_join_runs_again_for_a_changed_input_and_a_tolerant_one_for_a_repaired_one() -> None:
    run = Play(node("a"), node("b"), join("j", "a", "b", policy="settled"), node("z"), answer=("j", "z"))
    run.begin()
    run.fail("a")
    run.ok("b")
    run.retry("a")
    assert run.ok("a") == ["close j~2"]
    assert run.chosen("j") == ["a", "b"]


def test_a_deadline_is_not_lost_when_an_edit_passes_by() -> None:
    run = Play(
        node("x"), node("a"), node("b"), join("j", "a", "b", policy="settled", needs=["x"], deadline=100), answer="j"
    )
    run.begin()
    run.ok("x", "a")
    run.tick(50)
    run.retry("x")
    run.ok("x")
    assert run.tick(50) == ["cancel b", "close j", "end done"]


def test_one_retry_in_a_dense_graph_is_one_pass_and_not_exponential() -> None:
    """Forty layers of joins of everything in the layer before, all failed behind one node."""
    layers = [[f"n{layer}x{place}" for place in range(4)] for layer in range(40)]
    nodes = [node("root")]
    for depth, names in enumerate(layers):
        above = layers[depth - 1] if depth else ["root"]
        nodes += [join(name, *above) for name in names]
    run = Play(*nodes, answer=layers[-1][0])
    run.begin()
    for _ in range(3):
        assert run.fail("root")[-1] == "park root"
        assert run.retry("root")[0].startswith("start root~")
    assert sum(word.startswith("start") for word in run.ok("root")) == 4


def test_a_retry_of_an_item_of_an_old_opening_does_nothing() -> None:
    run = Play(node("l"), each("m", "l"), answer="m")
    run.begin()
    run.ok("l", length=1)
    old = run.unit("m[0]")
    run.retry("l")
    run.ok("l", digest="new", length=2)
    assert run.act(RetryRequested(old)) == run.act(SkipRequested(old)) == []


def loop() -> Play:
    """n has asked for three calls, of which one has ended and one waits for approval; other nodes run beside them."""
    calls = (node("c1"), node("c2"), node("c3", approval=True))
    turn = (join("all", "c1", "c2", "c3", policy="settled"), node("t2", "all", is_successor=True))
    run = Play(node("n", successor="t2"), *calls, *turn, node("x"), node("y", "n"), answer=["y", "x"])
    run.begin()
    run.ok("c1")
    run.end("n", Outcome("said", delegated=True))
    return run


def test_the_writes_of_a_tool_loop_are_approved_together() -> None:
    calls = (node("n_t1_a", approval=True), node("n_t1_b", approval=True), node("n_t1_c"))
    turn = (join("n_t1_all", *(call["id"] for call in calls), policy="settled"), node("n_t2", "n_t1_all"))
    run = Play(node("n"), answer="n")
    run.begin()
    run.grow(*calls, *turn, of="n")
    assert waiting_in(run.state, run.unit("n")) == [run.unit("n_t1_a"), run.unit("n_t1_b")]
    assert run.approve("n") == ["start n_t1_a", "start n_t1_b"]
    assert waiting_in(run.state, run.unit("n_t1_c")) == []


def test_a_looping_model_that_is_given_up_takes_its_calls_with_it() -> None:
    run = loop()
    assert run.give_up("n") == ["cancel c2"]
    assert [run.status(name) for name in ("n", "c1", "c2", "c3", "all", "t2", "y", "x")] == [
        "skipped", "succeeded", "cancelled", "cancelled", "cancelled", "cancelled", "skipped", "running",
    ]  # fmt: skip
    assert run.note("c2") == ("NotNeeded", "the node that needed it was skipped")
    assert run.ok("x") == ["end partial"]


def test_so_does_the_next_turn_of_it() -> None:
    run = loop()
    assert run.give_up("t2") == ["cancel c2"]
    assert (run.status("n"), run.status("c3")) == ("failed", "cancelled")
    assert run.retry("n") == ["start n~2"]


def test_a_call_that_others_read_goes_on() -> None:
    run = Play(
        node("a", successor="s"), node("c"), node("s", "c", is_successor=True), node("z", "c"), answer=["a", "z"]
    )
    run.begin()
    run.fail("a")
    assert run.give_up("a") == []
    assert run.ok("c") == ["start z"]


WRITES = {"effect": "write"}


def twice(run: Play, name: str) -> list[str]:
    return [run.state.path(unit) for unit in repeated(run.state, run.unit(name))]


def test_a_write_behind_a_node_counts_while_it_runs_and_when_it_has_succeeded() -> None:
    run = Play(node("a"), node("w", "a", **WRITES), node("r", "a"), node("z", "w", "r"), answer="z")
    run.begin()
    assert twice(run, "a") == []
    run.ok("a")
    assert twice(run, "a") == ["w"]
    run.ok("w")
    assert (twice(run, "a"), twice(run, "w"), twice(run, "r")) == (["w"], ["w"], [])


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("UnknownOutcome", ["w"]),
        ("WorkerLost", ["w"]),
        ("InvalidResult", ["w"]),
        ("NodeTimeout", ["w"]),
        ("ToolError", []),
    ],
)
def test_a_write_that_failed_counts_unless_it_says_that_it_did_nothing(kind: str, found: list[str]) -> None:
    run = Play(node("a"), node("w", "a", fallback=("none", 1, {}), **WRITES), answer="w")
    run.begin()
    run.ok("a")
    run.fail("w", kind)
    assert twice(run, "w") == twice(run, "a") == found


def written() -> Play:
    run = Play(node("l"), each("m", "l", **WRITES), node("z", "m"), answer="z")
    run.begin()
    run.ok("l", length=2)
    return run


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (Outcome("d", 2), [0]),
        (Outcome(error=("UnknownOutcome", "cut off")), [0]),
        (Outcome(error=("AlreadyWritten", "another text")), [0]),
        (Outcome(error=("NodeTimeout", "late")), []),
    ],
)
def test_a_write_that_the_ledger_knew_before_anybody_was_asked_counts(outcome: Outcome, found: list[int]) -> None:
    state = RunState(Play(node("w", approval=True, **WRITES), answer="w").state.graph)
    step(state, RunStarted())
    assert repeated(state, 0) == []
    step(state, NodeEnded(0, 1, outcome))
    assert repeated(state, 0) == found


def test_a_map_counts_as_soon_as_one_of_its_items_does() -> None:
    run = written()
    assert twice(run, "l") == ["m"], "they run"
    run.ok("m[0]")
    run.fail("m[1]", "ToolError")
    assert (twice(run, "l"), twice(run, "m[0]")) == (["m"], ["m"])
    assert (twice(run, "m"), twice(run, "m[1]")) == ([], []), "only the item that failed runs again"


def test_a_map_over_nothing_and_one_that_only_gathers_again_repeat_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MAX_MANIFEST_BYTES", "MAX_ONLY_MANIFEST_BYTES"):  # so that an activity gathers, and may fail
        monkeypatch.setattr(joins, limit, 0)
    run = written()
    run.ok("m[0]", "m[1]")
    run.fail("m")
    assert (twice(run, "m"), twice(run, "l")) == ([], ["m"])
    run.retry("m")
    run.ok("m")
    assert twice(run, "m") == ["m"]
    empty = Play(node("l"), each("m", "l", **WRITES), answer="m")
    empty.begin()
    empty.ok("l", length=0)
    empty.ok("m")
    assert twice(empty, "l") == []


def test_what_a_tool_loop_has_called_counts_for_its_model_and_for_what_that_reads() -> None:
    run = Play(
        node("a"),
        node("n", "a", kind="llm", successor="n_t2"),
        node("n_t1_1", maker=1, **WRITES),
        join("n_t1_all", "n_t1_1", policy="settled", maker=1),
        node("n_t2", "n_t1_all", kind="llm", successor="n_t3", is_successor=True, maker=1),
        node("n_t2_1", maker=4),
        join("n_t2_all", "n_t2_1", policy="settled", maker=4),
        node("n_t3", "n_t2_all", kind="llm", is_successor=True, maker=4),
        answer="n",
    )
    run.begin()
    run.ok("n_t1_1", "n_t2_1")
    assert (twice(run, "n"), twice(run, "a"), twice(run, "n_t2_1")) == (["n_t1_1"], ["n_t1_1"], [])


def test_a_fallback_that_has_written_counts() -> None:
    run = Play(node("a", successor="w"), node("w", is_successor=True, **WRITES), answer="a")
    run.begin()
    run.fail("a")
    run.ok("w")
    assert twice(run, "a") == ["w"]


def test_a_person_gives_the_result_of_a_failed_call_and_nothing_is_called_for_it() -> None:
    run = Play(node("a", kind="llm"), node("b", "a"), answer="b")
    run.state.budget, run.state.rates = Budget({"calls": 1}), {"": Rate(1)}
    run.begin()
    run.end("a", Outcome(error=("Boom", "it broke"), usage=Usage(10, calls=1)))
    assert run.answer("a", None) == ["start a~2"], "though no call is left"
    assert run.state.budget.held.calls == 0
    run.crash()
    assert run.state.answers == {0: None}
    assert run.ok("a") == ["start b"]
    assert run.state.rates[""].running == 0
    assert run.retry("a") == [], "a retry makes the call"
    assert unpaid(run.state) == [0]


def test_a_failed_write_that_is_answered_asks_for_no_approval() -> None:
    run = Play(node("w", effect="write", approval=True), node("b", "w"), answer="b")
    run.begin()
    run.approve("w")
    run.fail("w", "UnknownOutcome")
    assert repeated(run.state, 0) == [0]
    assert repeated(run.state, 0, runs=False) == []
    run.state.units[0].approved = None
    assert run.answer("w") == ["start w~2"]
    assert run.ok("w") == ["start b"]


def test_a_gate_whose_time_is_up_is_answered_after_all() -> None:
    run = Play(gate("g", deadline=100), node("b", "g"), answer="b")
    run.begin()
    run.tick(200)
    assert run.note("g")[0] == "GateTimeout"
    assert run.answer("g") == ["start g~2"]
    assert run.ok("g") == ["start b"]


def test_the_failed_items_of_a_map_are_answered_one_by_one() -> None:
    run = Play(node("l"), each("m", "l"), node("b", "m"), answer="b")
    run.begin()
    run.ok("l", length=3)
    run.ok("m[0]")
    run.fail("m[1]")
    run.fail("m[2]")
    assert run.answer("m", ["x"]) == [], "the map itself is no call"
    assert run.answer("m[1]") == ["start m[1]~2"]
    assert run.ok("m[1]") == ["park m"]
    assert run.answer("m[2]") == ["start m[2]~2"]
    assert run.ok("m[2]") == ["close m~3", "start b"]
    run.retry("m[1]")
    assert sorted(run.state.answers) == [run.unit("m[2]")]


def test_an_answer_to_a_call_whose_fallback_has_failed_too_leaves_the_fallback_out() -> None:
    run = Play(node("a", successor="f"), node("f", is_successor=True), node("b", "a"), answer="b")
    run.begin()
    run.fail("a")
    run.fail("f")
    assert run.answer("a") == ["start a~2"]
    assert run.ok("a") == ["start b"]
    assert run.status("f") == "skipped"


def reopened(**fields: Any) -> Play:
    """A map of three items, of which one runs and two have ended, opens again with two."""
    run = Play(node("l"), each("m", "l", **fields), answer="m", window=2)
    run.begin()
    run.ok("l", length=3)
    run.ok("m[0]", "m[1]")
    run.retry("l")
    run.ok("l", digest="other", length=2)
    return run


@pytest.mark.parametrize("count", [1, 2])
def test_an_item_behind_one_of_another_map_is_skipped_by_itself(count: int) -> None:
    """Items are numbered one after the other: the only item of a map stands before the first one of the next map."""
    run = Play(node("a"), each("m", "a"), each("n", "m", source=1), answer="n")
    run.begin()
    run.ok("a", length=count)
    for number in range(count):
        run.fail(f"m[{number}]")
    run.act(SkipRequested(run.unit("n[0]")))
    assert (run.status("m[0]"), run.status("n[0]")) == ("failed", "skipped")


def test_a_map_that_opens_again_leaves_nothing_of_its_former_items() -> None:
    run = reopened()
    late = run.state.numbers()[-1] - 2
    assert len(run.state.units) == 2 + 2
    assert [run.state.path(unit) for unit in run.state.numbers()] == ["l", "m", "m[0]", "m[1]"]
    before = dump(run.state)
    assert run.act(NodeEnded(late, 1, Outcome("late", 1))) == []
    assert (run.act(SkipRequested(late)), run.act(RetryRequested(late))) == ([], [])
    assert dump(run.state) == before
    again = load(run.state.graph, before)
    assert (again.numbers(), dump(again)) == (run.state.numbers(), before)
    assert again.path(again.numbers()[-1]) == "m[1]"
    run.ok("m[0]", "m[1]", "m")
    assert run.status("m") == "succeeded"


def test_a_map_opens_again_as_often_as_somebody_retries_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sennit.workflows.plan.scheduling.admission.MAX_UNITS", 8)
    run = reopened()
    for length in (3, 4, 5, 6):
        run.retry("l")
        run.ok("l", digest=str(length), length=length)
        assert run.status("m") == "opened"


def test_what_a_map_has_written_is_known_after_it_opens_again() -> None:
    run = reopened(**WRITES)
    assert [(line.node, line.status) for line in writes_of(run.state, all_made=True)] == [
        ("m[2]", "in flight"), ("m[0]", "made"), ("m[1]", "made"),
    ]  # fmt: skip
