"""The next turn of a model in a tool loop that starts while some of its calls run: when, and what becomes of them."""

import json
from random import Random
from typing import Any

import pytest
from doubles.plan.play import Fields, Play, join, node

from sennit.workflows.plan.scheduling.snapshot import dump, load


def turn(number: int, *calls: Fields, late: tuple[str, ...] = (), **rule: Any) -> list[Fields]:
    """The calls of a turn, the join behind them and the turn that follows."""
    names = [call["id"] for call in calls]
    rule = {"quorum": 1, "turn_calls": len(names), **rule}
    before = join(f"t{number}_all", *names, *late, policy="turn", **rule)
    return [*calls, before, node(f"t{number + 1}", before["id"], kind="llm")]


def loop(*calls: Fields, **rule: Any) -> Play:
    """A model that has asked for these calls, or for five."""
    run = Play(node("n", kind="llm"), answer="n")
    run.begin()
    calls = calls or tuple(node(f"c{number}") for number in range(1, 6))
    run.grow(*turn(1, *calls, **rule), of="n")
    return run


def told(run: Play, name: str) -> dict[str, str]:
    """Return how calls had ended when the model's next turn could start, as it is told."""
    ends = json.loads(run.digest(name) or "[]")
    return {end["id"]: end.get("status", "succeeded") for end in ends}


def test_the_next_turn_starts_with_the_first_end_and_the_others_go_on() -> None:
    run = loop()
    assert run.fail("c3") == ["close t1_all", "start t2"]
    assert told(run, "t1_all") == {"c1": "running", "c2": "running", "c3": "failed", "c4": "running", "c5": "running"}
    assert run.status("c1") == "running"
    assert run.ok("c1") == []
    assert told(run, "t1_all")["c1"] == "running", "what a turn was told does not change"


def test_a_quorum_counts_ends_of_this_turn_and_takes_all_of_fewer() -> None:
    run = loop(quorum=4)
    assert run.ok("c1", "c2", "c3") == []
    assert run.ok("c5") == ["close t1_all", "start t2"]
    run.grow(*turn(2, node("d1"), node("d2"), late=("c4",), quorum=4), of="t2")
    assert run.ok("c4") == [], "a call of an earlier turn counts for no quorum"
    assert run.ok("d1") == []
    assert run.ok("d2") == ["close t2_all", "start t3"]
    assert told(run, "t2_all") == {"d1": "succeeded", "d2": "succeeded", "c4": "succeeded"}
    assert run.ok("t3") == ["end done"]


def test_a_time_counts_from_the_calls_on_and_needs_one_end() -> None:
    run = loop(deadline=2_000, quorum=0)
    assert run.ok("c1", "c2") == []
    assert run.tick(1_999) == []
    assert run.tick(1) == ["close t1_all", "start t2"]
    run = loop(deadline=2_000, quorum=0)
    assert run.tick(5_000) == []
    assert run.ok("c4") == ["close t1_all", "start t2"]
    run = loop(deadline=2_000, quorum=0)
    assert run.ok("c1", "c2", "c3", "c4") == []
    assert run.ok("c5") == ["close t1_all", "start t2"], "nobody waits when all have ended"
    assert run.state.deadlines == {}


def test_writes_and_what_asks_a_person_are_always_awaited() -> None:
    run = loop(node("c1"), node("c2", effect="write"), node("c3", effect="write", approval=True))
    assert run.ok("c1") == []
    assert run.ok("c2") == []
    assert run.approve("c3") == ["start c3"]
    assert run.ok("c3") == ["close t1_all", "start t2"]


def test_a_write_in_doubt_is_awaited_until_a_person_has_decided() -> None:
    run = loop(node("c1"), node("c2", effect="write"))
    run.ok("c1")
    run.fail("c2", "UnknownOutcome")
    assert run.status("t1_all") == "pending"


def test_a_model_may_wait_for_calls_by_name() -> None:
    run = loop()
    run.ok("c1")
    run.grow(*turn(2, late=("c2", "c3", "c4", "c5"), awaited=["c2", "c4"]), of="t2")
    assert run.ok("c3") == []
    assert run.ok("c2") == []
    assert run.fail("c4") == ["close t2_all", "start t3"]
    assert told(run, "t2_all") == {"c2": "succeeded", "c3": "succeeded", "c4": "failed", "c5": "running"}


def test_a_model_may_cancel_a_call_by_name() -> None:
    run = loop()
    run.ok("c1")
    grown = run.grow(*turn(2, node("d1"), late=("c2", "c3", "c4", "c5"), given_up=["c2"]), of="t2")
    assert grown == ["cancel c2", "start d1"]
    assert run.note("c2") == ("Cancelled", "the model has cancelled it")
    run.ok("d1")
    assert told(run, "t2_all")["c2"] == "cancelled"


def test_a_call_that_ends_before_it_is_cancelled_keeps_its_result() -> None:
    run = loop()
    run.ok("c1", "c2")
    assert run.grow(*turn(2, late=("c2", "c3"), given_up=["c2"]), of="t2") == ["close t2_all", "start t3"]
    assert told(run, "t2_all") == {"c2": "succeeded", "c3": "running"}


def test_the_answer_cancels_the_calls_that_run() -> None:
    run = loop()
    run.ok("c2")
    assert run.ok("t2") == ["cancel c5", "cancel c4", "cancel c3", "cancel c1", "end done"]
    assert run.note("c1") == ("NotNeeded", "the model has answered without it")


def test_a_later_answer_cancels_the_calls_of_all_turns() -> None:
    run = loop()
    run.ok("c2")
    run.grow(*turn(2, node("d1"), node("d2"), late=("c1", "c3", "c4", "c5")), of="t2")
    run.ok("c1")
    run.ok("d2")
    gone = run.ok("t3")
    assert sorted(gone) == ["cancel c3", "cancel c4", "cancel c5", "cancel d1", "end done"]


def test_a_turn_that_fails_leaves_the_calls_running_for_its_retry() -> None:
    run = loop()
    run.ok("c2")
    assert run.fail("t2") == []
    run.ok("c1", "c3", "c4")
    assert run.ok("c5") == ["park n"]
    assert run.retry("t2") == ["start t2~2"]
    run.grow(*turn(2, late=("c1", "c3", "c4", "c5")), of="t2")
    assert set(told(run, "t2_all").values()) == {"succeeded"}


def test_whoever_skips_the_loop_cancels_all_its_calls() -> None:
    run = loop()
    run.ok("c2")
    gone = run.give_up("n")
    assert sorted(gone) == ["cancel c1", "cancel c3", "cancel c4", "cancel c5", "cancel t2", "end partial"]


def test_a_call_that_is_skipped_counts_as_ended() -> None:
    run = loop(quorum=2)
    run.ok("c1")
    assert run.give_up("c2") == ["cancel c2", "close t1_all", "start t2"]


def test_a_late_call_that_runs_again_concerns_only_the_turn_that_was_told_of_it() -> None:
    run = loop(quorum=4)
    run.ok("c1", "c2", "c3", "c4")
    run.grow(*turn(2, node("d1"), late=("c5",)), of="t2")
    run.fail("c5")
    run.ok("d1")
    run.retry("c5")
    assert run.ok("c5") == ["cancel t3", "close t2_all~2", "start t3~2"]
    assert run.status("t2") == "delegated"


def test_a_plan_without_such_turns_waits_for_all() -> None:
    run = Play(node("n", kind="llm"), answer="n")
    run.begin()
    calls = [node("c1"), node("c2")]
    run.grow(*calls, join("t1_all", "c1", "c2", policy="settled"), node("t2", "t1_all", kind="llm"), of="n")
    assert run.ok("c1") == []
    assert run.ok("c2") == ["close t1_all", "start t2"]


@pytest.mark.parametrize("seed", range(300))
def test_every_result_is_told_once_in_the_order_of_ends_whatever_happens_between(seed: int) -> None:
    """Loops of any width and rule, with ends in any order, crashes, and calls that are awaited and cancelled."""
    chance = Random(seed)
    run = Play(node("n", kind="llm"), answer="n")
    run.begin()
    asking, number, waiting, ended = "n", 1, list[str](), dict[str, str]()
    times: dict[str, int] = {}
    most = chance.randint(2, 5)
    while number < most:
        calls = [_call(chance, f"c{number}_{index}") for index in range(chance.randint(0, 4))]
        rules: list[Fields] = [{"quorum": chance.randint(1, 4)}, {"quorum": 0, "deadline": 1_000}]
        rule = chance.choice(rules)
        if waiting and chance.random() < 0.4:
            rule["awaited"] = chance.sample(waiting, 1)
        if waiting and chance.random() < 0.3:
            rule["given_up"] = chance.sample(waiting, 1)
        if not calls and not waiting:
            calls = [node(f"c{number}_0")]
        run.grow(*turn(number, *calls, late=tuple(waiting), **rule), of=asking)
        waiting += [call["id"] for call in calls]
        following = f"t{number + 1}"
        while run.status(following) != "running":
            _happen(run, chance, waiting, ended)
        seen = told(run, f"t{number}_all")
        assert seen
        assert set(seen) <= set(waiting)
        for name in waiting:
            if seen[name] != "running":
                times[name] = times.get(name, 0) + 1
                assert ended.get(name, "cancelled") == seen[name]
        waiting = [name for name in waiting if seen[name] == "running"]
        kinds = {name: run.state.spec_of(run.unit(name)).effect for name in waiting}
        assert "write" not in kinds.values()
        asking, number = following, number + 1
    assert all(count == 1 for count in times.values())
    run.ok(asking)
    assert run.decisions[-1] == "end done"
    assert not run.state.running
    assert {run.status(name) for name in waiting} <= {"cancelled", "succeeded", "failed"}


def _call(chance: Random, name: str) -> Fields:
    effect = chance.choice(["read", "read", "read", "write"])
    return node(name, effect=effect)


def _happen(run: Play, chance: Random, waiting: list[str], ended: dict[str, str]) -> None:
    """Have something happen beside the loop, or one of its calls end."""
    if chance.random() < 0.3:
        assert dump(load(run.graph, dump(run.state))) == dump(run.state)
        run.crash()
    open_ones = [name for name in waiting if run.status(name) == "running"]
    if not open_ones or chance.random() < 0.2:
        run.tick(chance.choice([10, 1_000]))
        return
    name = chance.choice(open_ones)
    if chance.random() < 0.3:
        run.fail(name)
        ended[name] = "failed"
    else:
        run.ok(name)
        ended[name] = "succeeded"


def test_a_loop_that_runs_again_gives_up_the_calls_of_its_earlier_turns() -> None:
    run = loop()
    run.ok("c2")
    run.retry("n")
    assert run.grow(*turn(7, node("d1"), node("d2")), of="n")[:4] == [f"cancel c{number}" for number in (5, 4, 3, 1)]
    run.ok("d1")
    assert run.ok("t8") == ["cancel d2", "end done"]
