"""Maps: one unit an item; the value is that of the items, which an activity stores if it is long."""

import pytest
from doubles.plan.play import Play, each, node

from sennit.workflows.plan.scheduling import joins
from sennit.workflows.plan.scheduling.events import Outcome


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """An activity stores what a map or a join has gathered."""
    monkeypatch.setattr(joins, "MAX_MANIFEST_BYTES", 0)
    for limit in ("MAX_MANIFEST_BYTES", "MAX_ONLY_MANIFEST_BYTES"):
        monkeypatch.setattr(joins, limit, 0)


def opened(length: int = 3, *, window: int = 100, **fields: object) -> Play:
    """A map over a list of this length, just opened."""
    run = Play(node("l"), each("m", "l", **fields), node("z", "m"), answer="z", window=window)
    run.begin()
    run.ok("l", length=length)
    return run


def test_a_map_starts_one_unit_an_item_and_has_their_values_when_all_have_ended() -> None:
    run = Play(node("l"), each("m", "l"), node("z", "m"), answer="z")
    run.begin()
    assert run.ok("l", length=3) == ["start m[0]", "start m[1]", "start m[2]"]
    assert run.status("m") == "opened"
    assert run.ok("m[2]", "m[0]") == []
    assert run.ok("m[1]") == ["close m", "start z"]
    assert run.digest("m") == '["of m[0]","of m[1]","of m[2]"]'


def test_the_maps_of_a_run_start_so_many_sub_agents_and_no_more() -> None:
    agents = {"item_kind": "agent"}
    run = Play(node("l"), each("m", "l", **agents), each("n", "l", **agents), answer=["m", "n"])
    run.state.most_agents = 5
    run.begin()
    run.ok("l", length=3)
    assert (run.status("m"), run.status("n")) == ("opened", "failed")
    assert run.note("n") == ("MapFailed", "3 more sub-agents would make over 5 in the maps of this run")


@pytest.mark.usefixtures("stores")
def test_a_map_of_many_values_gathers() -> None:
    run = opened(2)
    run.ok("m[0]")
    assert run.ok("m[1]") == ["start m"]
    assert run.ok("m") == ["start z"]


def test_a_map_over_an_empty_list_has_its_value_at_once() -> None:
    run = Play(node("l"), each("m", "l"), answer="m")
    run.begin()
    assert run.ok("l", length=0) == ["close m", "end done"]
    assert run.digest("m") == "[]"


def test_items_are_started_in_order_as_the_window_has_room() -> None:
    run = opened(4, window=2)
    assert [run.status(f"m[{item}]") for item in range(4)] == ["running", "running", "pending", "pending"]
    assert run.ok("m[1]") == ["start m[2]"]


def test_an_item_that_fails_fails_the_map_when_the_others_have_ended() -> None:
    run = opened()
    assert run.fail("m[1]") == []
    run.ok("m[0]")
    assert run.ok("m[2]") == ["park m"]
    assert run.note("m") == ("MapFailed", "m[1] failed: Boom: it broke")


def test_items_may_be_skipped_or_fall_back_instead() -> None:
    run = opened(2, item_skip=True)
    run.fail("m[0]")
    assert run.ok("m[1]") == ["close m", "start z"]
    assert (run.status("m[0]"), run.digest("m")) == ("skipped", '[null,"of m[1]"]')
    run = opened(1, item_fallback=("none", 1, {}))
    assert run.fail("m[0]") == ["close m", "start z"]
    assert (run.digest("m[0]"), run.digest("m")) == ("none", '["none"]')


def test_to_retry_a_map_runs_only_the_items_that_failed() -> None:
    run = opened()
    run.ok("m[0]")
    run.fail("m[1]")
    run.fail("m[2]")
    assert run.retry("m") == ["start m[1]~2", "start m[2]~2"]
    run.ok("m[1]")
    assert run.ok("m[2]") == ["close m~2", "start z"]


@pytest.mark.usefixtures("stores")
def test_to_retry_a_map_whose_gathering_failed_only_gathers_again() -> None:
    run = opened(2, item_skip=True)
    run.ok("m[0]")
    run.fail("m[1]")
    run.fail("m")
    assert run.retry("m") == ["start m~2"]
    assert run.ok("m") == ["start z"]
    assert run.retry("m") == ["start m[0]~3", "start m[1]~3"], "one that has its value runs again"


@pytest.mark.usefixtures("stores")
def test_a_map_that_falls_back_for_want_of_its_gathering_gathers_again_too() -> None:
    run = opened(1, fallback=("none", 1, {}))
    run.ok("m[0]")
    assert run.fail("m") == ["start z"]
    assert run.retry("m") == ["start m~2"]
    assert run.ok("m") == ["cancel z", "start z~2"]


@pytest.mark.usefixtures("stores")
def test_the_items_run_again_where_what_one_of_them_made_is_gone() -> None:
    run = opened(1)
    run.ok("m[0]")
    run.fail("m", "BodyMissing")
    assert run.retry("m") == ["start m[0]~2"]


def test_one_item_may_be_retried_also_after_the_map_has_succeeded() -> None:
    run = opened(2)
    assert run.ok("m[0]", "m[1]") == ["close m", "start z"]
    assert run.retry("m[1]") == ["start m[1]~2"]
    assert run.ok("m[1]", digest="new") == ["cancel z", "close m~2", "start z~2"]


def test_to_retry_an_item_that_runs_stops_it_first() -> None:
    run = opened(1)
    assert run.retry("m[0]") == ["cancel m[0]", "start m[0]~2"]
    assert run.state.running == 1


def test_an_item_given_up_is_left_out() -> None:
    run = opened(2)
    run.fail("m[0]")
    assert run.ok("m[1]") == ["park m"]
    assert run.give_up("m[0]") == ["close m~2", "start z"]
    assert run.status("m[0]") == "skipped"


def test_another_list_opens_the_map_again_with_new_units() -> None:
    run = opened(2)
    assert run.retry("l") == ["start l~2"]
    run.ok("m[0]")
    assert run.ok("l", digest="longer", length=3) == ["cancel m[1]", "start m[0]~2", "start m[1]~2", "start m[2]~2"]


def test_an_address_is_never_used_twice() -> None:
    """An item that was retried more often than its map was opened pushes the map's generation on."""
    run = opened(1)
    for _ in range(3):
        run.retry("m[0]")
    run.retry("l")
    run.ok("l", digest="other", length=1)
    starts = [word for word in run.decisions if word.startswith("start")]
    assert len(set(starts)) == len(starts)


def test_while_the_list_is_made_again_no_further_item_starts() -> None:
    run = opened(3, window=2)
    run.retry("l")
    assert run.ok("m[0]") == ["start l~2"]
    assert run.ok("m[1]") == []
    assert run.ok("l") == ["start m[2]"]


def writes(count: int = 3) -> Play:
    """An open map of writes, each of which waits for a person."""
    run = Play(node("l"), each("m", "l", approval=True, effect="write"), answer="m")
    run.begin()
    assert run.ok("l", length=count) == [f"ask m[{item}]" for item in range(count)]
    return run


def test_the_writes_of_a_map_are_approved_together_or_one_by_one() -> None:
    assert writes().approve("m") == ["start m[0]", "start m[1]", "start m[2]"]
    run = writes()
    assert run.approve("m[1]") == ["start m[1]"]
    assert run.approve("m[1]") == []
    run.crash()
    assert run.reject("m") == []
    assert [run.status(f"m[{item}]") for item in range(3)] == ["failed", "running", "failed"]
    assert run.ok("m[1]") == ["park m"]
    assert run.note("m") == ("MapFailed", "m[0] and 1 more failed: Rejected: no")


def test_the_writes_of_a_map_run_once_its_list_has_not_changed() -> None:
    run = writes(2)
    run.retry("l")
    assert run.approve("m[0]") == [], "the list is being made again"
    assert run.ok("l", length=2) == ["start m[0]"]
    run = writes(2)
    run.retry("l")
    assert run.ok("l", length=1, digest="another list") == ["ask m[0]"]
    assert run.state.waiting == 1


@pytest.mark.parametrize("end", ["give_up", "retry"])
def test_a_map_of_writes_that_wait_is_given_up_or_run_again(end: str) -> None:
    run = writes(2)
    asked = getattr(run, end)("m")
    assert asked == (["ask m[0]", "ask m[1]"] if end == "retry" else ["end partial"])
    assert len(run.state.questions) == run.state.waiting == (2 if end == "retry" else 0)


def test_a_list_that_is_none_or_too_long_fails_the_map_with_a_sentence() -> None:
    run = Play(node("l"), each("m", "l"), answer="m")
    run.begin()
    assert run.ok("l") == ["park m"]
    assert run.note("m")[1] == "the output of l has no list at `length`"
    run = opened(3, cap=2)
    assert run.note("m")[1] == "its list has 3 items; max_items is 2"
    run = opened(-1)
    assert run.status("m") == "failed"
    run = opened(60_000, cap=100_000)
    assert "over 16,000 units" in run.note("m")[1]


def test_a_map_over_a_list_known_beforehand_needs_no_node() -> None:
    run = Play({"id": "m", "kind": "map", "length": 2, "cap": 5}, answer="m")
    assert run.begin() == ["start m[0]", "start m[1]"]
    run = Play({"id": "m", "kind": "map", "length": -1, "cap": 5}, answer="m")
    assert run.begin() == ["park m"]


def test_a_group_s_item_that_is_to_run_alone_starts_again_under_its_address() -> None:
    run = opened(1)
    assert run.end("m[0]", Outcome(again=True)) == ["start m[0]"]
