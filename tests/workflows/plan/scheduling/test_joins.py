"""When joins close, with which inputs, and what becomes of the rest."""

import json

import pytest
from doubles.plan.play import Fields, Play, gate, join, node, when

ABC = (node("a"), node("b"), node("c"))


def three(policy: str = "all", *more: Fields, **fields: object) -> Play:
    """Three nodes that run and a join of them."""
    run = Play(*ABC, join("j", "a", "b", "c", policy=policy, **fields), *more, answer="j")
    run.begin()
    return run


def test_all_waits_for_every_input_and_takes_their_values_in_inputs_order() -> None:
    run = three()
    assert run.ok("c", "a") == []
    assert run.ok("b") == ["close j", "end done"]
    assert run.chosen("j") == ["a", "b", "c"]
    assert run.digest("j") == '["of a","of b","of c"]'


def test_all_fails_as_soon_as_one_input_has_no_value_while_the_others_finish() -> None:
    run = three("all", join("k", "j", policy="settled"))
    assert run.fail("a") == ["close k"]
    assert run.note("j") == ("JoinFailed", "needs a value from every input of 3, but a gave none (Boom: it broke)")
    assert run.status("b") == "running"


def test_settled_closes_when_every_input_has_ended_however() -> None:
    run = three("settled")
    run.fail("a")
    run.ok("b")
    assert run.ok("c") == ["close j", "end done"]
    assert run.chosen("j") == ["b", "c"]
    lost = {"id": "a", "status": "failed", "error": "Boom: it broke"}
    assert json.loads(run.digest("j") or "") == [lost, {"id": "b", "value": "of b"}, {"id": "c", "value": "of c"}]


def test_first_takes_the_first_value_and_cancels_the_others() -> None:
    run = three("first")
    assert run.fail("a") == []
    assert run.ok("c") == ["cancel b", "close j", "end done"]
    assert (run.chosen("j"), run.digest("j")) == (["c"], "of c")
    assert (run.status("b"), run.note("b")[0]) == ("cancelled", "NotNeeded")


@pytest.mark.parametrize(("policy", "status"), [("settled", "succeeded"), ("all", "failed")])
def test_those_that_a_deadline_has_cancelled_are_told_of_it(policy: str, status: str) -> None:
    run = three(policy, deadline=1_000)
    run.ok("a")
    run.tick(1_000)
    assert run.status("j") == status
    assert run.note("b") == ("NotNeeded", "the join it feeds waits no longer: its deadline has passed")


def test_first_fails_when_no_input_has_a_value() -> None:
    run = three("first")
    run.fail("a")
    run.fail("b")
    assert run.fail("c") == ["park a b c"]
    assert run.note("j")[1] == "needs a value from one input of 3, but a, b, c gave none (Boom: it broke)"


def test_quorum_takes_as_many_values_as_it_asks_for_in_inputs_order() -> None:
    run = three("quorum", quorum=2)
    run.ok("c")
    assert run.ok("a") == ["cancel b", "close j", "end done"]
    assert (run.chosen("j"), run.digest("j")) == (["a", "c"], '["of a","of c"]')


def test_quorum_fails_as_soon_as_it_cannot_be_reached_any_more() -> None:
    run = three("quorum", join("k", "j", policy="settled"), quorum=2)
    run.fail("a")
    assert run.fail("b") == ["close k"]
    assert run.status("j") == "failed"


def test_a_blocked_input_counts_as_lost_until_it_is_repaired() -> None:
    run = Play(
        node("f"), node("a", "f"), node("b"), join("j", "a", "b", policy="settled"), node("z"), answer=("j", "z")
    )
    run.begin()
    run.ok("b")
    assert run.fail("f") == ["close j"]
    assert run.chosen("j") == ["b"]
    assert run.status("a") == "blocked"
    run.retry("f")
    assert run.ok("f") == ["start a"]
    assert run.ok("a") == ["close j~2"]
    assert run.chosen("j") == ["a", "b"]


def test_a_loser_that_somebody_else_wants_goes_on() -> None:
    run = Play(*ABC, join("j", "a", "b", "c", policy="first"), node("d", "b"), answer=("j", "d"))
    run.begin()
    assert run.ok("a") == ["cancel c", "close j"]
    assert run.status("b") == "running"


def test_a_loser_that_the_answer_names_goes_on() -> None:
    run = Play(*ABC, join("j", "a", "b", "c", policy="first"), answer=("j", "c"))
    run.begin()
    assert run.ok("a") == ["cancel b", "close j"]


def test_what_only_a_loser_wanted_is_called_off_with_it_and_so_on_upwards() -> None:
    run = Play(
        node("fast"),
        node("deep"),
        gate("deeper"),
        node("slow", "deep", "deeper"),
        node("shared"),
        node("other", "shared"),
        node("too", "shared"),
        join("j", "fast", "slow", "other", policy="first"),
        answer=("j", "too"),
    )
    run.begin()
    assert run.ok("fast") == ["cancel deep", "close j"]
    assert [run.status(name) for name in ("slow", "deep", "deeper", "other")] == ["cancelled"] * 4
    assert run.status("shared") == "running"


def test_a_node_behind_two_decided_joins_is_called_off_by_the_second() -> None:
    run = Play(*ABC, join("j", "a", "c", policy="first"), join("k", "b", "c", policy="first"), answer=("j", "k"))
    run.begin()
    assert run.ok("a") == ["close j"]
    assert run.ok("b") == ["cancel c", "close k", "end done"]


def test_an_input_that_runs_again_for_one_join_is_not_called_off_by_another() -> None:
    run = Play(
        *ABC,
        node("x"),
        join("j", "a", "c", policy="first"),
        join("k", "b", "c", policy="first", needs=["x"]),
        answer=("j", "k"),
    )
    run.begin()
    run.ok("c")
    run.ok("b")
    run.retry("c")
    assert run.ok("x") == ["close k"]
    assert run.status("c") == "running"


def test_the_map_and_the_fallback_of_a_loser_are_cancelled_too() -> None:
    run = Play(
        node("a"),
        node("list"),
        {"id": "m", "kind": "map", "needs": ["list"], "over": ("list", "length"), "cap": 9},
        node("b", successor="s"),
        node("s", is_successor=True),
        join("j", "a", "m", "b", policy="first"),
        answer="j",
    )
    run.begin()
    run.ok("list", length=2)
    run.fail("b")
    run.tick(7)
    assert sorted(run.ok("a")) == ["cancel m[0]", "cancel m[1]", "cancel s", "close j", "end done"]
    cut_off = [run.unit(name) for name in ("m[0]", "m[1]", "s")]
    assert [(run.state.units[unit].attempts, run.state.units[unit].millis) for unit in cut_off] == [(1, 7)] * 3


def test_a_deadline_counts_from_the_first_start_of_an_input() -> None:
    run = Play(
        node("x"), node("a", "x"), node("b", "x"), join("j", "a", "b", policy="settled", deadline=100), answer="j"
    )
    run.begin()
    run.tick(1_000)
    run.ok("x")
    assert run.tick(99) == []
    run.ok("b")
    assert run.tick(1) == ["cancel a", "close j", "end done"]
    assert run.chosen("j") == ["b"]


def test_a_gate_that_asks_and_a_map_that_opens_start_a_deadline() -> None:
    run = Play(gate("g"), join("j", "g", policy="settled", deadline=50), answer="j")
    run.begin()
    assert run.tick(50) == ["close j", "end done"]
    assert run.status("g") == "cancelled"
    items = {"id": "m", "kind": "map", "length": 2, "cap": 5}
    run = Play(items, join("j", "m", policy="settled", deadline=50), answer="j")
    run.begin()
    assert run.tick(50) == ["cancel m[0]", "cancel m[1]", "close j", "end done"]


def test_at_its_deadline_a_quorum_takes_what_is_there_and_all_and_first_fail() -> None:
    run = three("quorum", quorum=3, deadline=50)
    run.ok("a")
    assert run.tick(50) == ["cancel c", "cancel b", "close j", "end done"]
    for policy in ("all", "first"):
        run = three(policy, deadline=50)
        if policy == "all":
            run.ok("a")
        assert run.tick(50)[-1] == "park j"
        assert run.note("j")[0] == "JoinDeadline"
        assert run.status("c") == "cancelled"


def test_a_deadline_that_passes_before_the_join_is_admitted_closes_it_then_and_not_before() -> None:
    run = Play(
        node("a"), node("b"), node("x"), join("j", "a", "b", policy="settled", needs=["x"], deadline=50), answer="j"
    )
    run.begin()
    run.ok("a")
    assert run.tick(50) == []
    assert run.status("b") == "running"
    assert run.ok("x") == ["cancel b", "close j", "end done"]


def test_an_input_run_again_before_the_join_is_admitted_gets_its_time_anew() -> None:
    run = Play(
        node("a"), node("b"), node("x"), join("j", "a", "b", policy="settled", needs=["x"], deadline=50), answer="j"
    )
    run.begin()
    run.ok("a")
    run.tick(50)
    run.retry("b")
    assert run.ok("x") == []
    assert run.tick(49) == []
    assert run.ok("b") == ["close j", "end done"]


def test_to_retry_a_join_that_missed_its_deadline_runs_again_what_was_called_off() -> None:
    run = three("all", deadline=50)
    run.ok("a")
    assert run.tick(50) == ["cancel c", "cancel b", "park j"]
    assert run.retry("j") == ["start b~2", "start c~2"]
    run.ok("b")
    assert run.ok("c") == ["close j~2", "end done"]


def test_a_loser_can_be_run_again_with_what_was_called_off_above_it() -> None:
    run = Play(node("a"), node("x"), node("b", "x"), join("j", "a", "b", policy="first"), node("z"), answer=("j", "z"))
    run.begin()
    run.ok("a")
    assert run.retry("b") == ["start x~2"]
    assert run.ok("x") == ["start b~2"]
    run.ok("z")
    assert run.ok("b") == ["end done"]


def test_a_join_may_have_needs_and_a_condition_beside_its_inputs() -> None:
    run = Play(node("x"), *ABC, join("j", "a", "b", policy="first", **when("x.go", "eq", True)), answer="j")
    run.begin()
    assert run.ok("a") == []
    assert run.ok("x", go=True) == ["cancel b", "close j"]


def test_a_join_that_fails_does_what_its_on_error_says() -> None:
    run = three("all", fallback=("none", 1, {}))
    run.fail("a")
    assert run.digest("j") == "none"
    run = three("all", node("s", is_successor=True), successor="s")
    assert run.fail("a") == ["start s"]


@pytest.mark.parametrize("policy", ["all", "first"])
def test_the_fallback_of_a_join_is_not_called_off_with_its_inputs(policy: str) -> None:
    nodes = [node("a"), node("b"), join("j", "a", "b", policy=policy, deadline=50, successor="s")]
    run = Play(*nodes, node("s", is_successor=True), answer="j")
    run.begin()
    if policy == "all":
        assert run.tick(50)[-1] == "start s"
        assert run.ok("s") == ["end done"]
    else:
        assert run.ok("a") == ["cancel b", "close j", "end done"]
        assert run.status("s") == "skipped"
