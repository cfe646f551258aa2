"""Which calls start in one activity, and which alone."""

from itertools import pairwise
from typing import Any

import pytest
from doubles.plan.play import Play, each, join, node

from sennit.workflows.plan.fusion.rules import ENOUGH_CALLS
from sennit.workflows.plan.limits import (
    MAX_ISLAND_MILLIS,
    MAX_MEMBERS,
    MAX_PAYLOAD_BYTES,
    MAX_READ_NODES,
    MAX_SHORT_MILLIS,
    MAX_WAVE_MEMBERS,
)
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, TimeAdvanced
from sennit.workflows.run.unit_calls import node_call


def short(name: str, *needs: str, **fields: Any) -> dict[str, Any]:
    """A call that is known to be short."""
    return node(name, *needs, **{"tool": "t", "typical": 20, **fields})


def together(run: Play, *names: str, **fields: Any) -> list[str]:
    """These units end at the same instant."""
    words = []
    for name in names:
        unit = run.unit(name)
        ended = NodeEnded(unit, run.state.units[unit].generation, Outcome(f"of {name}", 1, **fields), more=True)
        words += run.act(ended)
    return words + run.act(TimeAdvanced())


def test_siblings_that_the_same_nodes_read_start_together() -> None:
    nodes = [*(short(name) for name in "abc"), short("d"), node("x", "a", "b", "c", kind="llm"), node("y", "d")]
    run = Play(*nodes, answer=("x", "y"), fuse="auto")
    assert run.begin() == ["start a+b+c", "start d"]


def test_what_becomes_ready_at_one_instant_starts_together() -> None:
    nodes = [node("p", kind="llm"), node("q", kind="llm"), short("a", "p"), short("b", "q")]
    run = Play(*nodes, join("j", "a", "b"), answer="j", fuse="auto")
    assert run.begin() == ["start p", "start q"]
    assert together(run, "p", "q") == ["start a+b"]


ALONE: dict[str, dict[str, Any]] = {
    "a model call": {"kind": "llm"},
    "a write": {"effect": "write"},
    "an approval": {"effect": "write", "approval": True},
    "a lock": {"locks": [("l", 1)]},
    "one attempt": {"attempts": 1},
    "a long call": {"typical": MAX_SHORT_MILLIS + 1},
    "a call of which nobody knows how long it takes": {"typical": 0},
    "another queue": {"queue": "sandbox"},
    "another priority": {"priority": 2},
}


@pytest.mark.parametrize("fields", ALONE.values(), ids=ALONE)
def test_a_call_is_alone_that(fields: dict[str, Any]) -> None:
    run = Play(short("a"), short("b"), short("c", **fields), join("j", "a", "b", "c"), answer="j", fuse="auto")
    words = run.begin()
    assert "start a+b" in words
    assert not any("+c" in word or "c+" in word for word in words)


def test_with_off_every_call_is_alone_and_with_on_none_that_may_share_an_activity_is() -> None:
    nodes = [short("a"), short("b"), node("c", tool="u"), short("d", typical=9_000), join("j", *"abcd")]
    assert Play(*nodes, answer="j", fuse="off").begin() == [f"start {name}" for name in "abcd"]
    assert Play(*nodes, answer="j", fuse="on").begin() == ["start a+b+c+d"]


@pytest.mark.parametrize("fields", [{"policy": "first"}, {"policy": "quorum", "quorum": 1}, {"deadline": 60}])
def test_nothing_below_a_join_that_may_close_early_shares_an_activity(fields: dict[str, Any]) -> None:
    nodes = [short("a"), short("b"), short("c", "a"), short("d", "b"), join("j", "c", "d", **fields)]
    assert Play(*nodes, answer="j", fuse="on").begin() == ["start a", "start b"]


def test_a_chain_runs_in_one_activity_up_to_a_node_that_something_else_reads() -> None:
    nodes = [short("a"), short("b", "a"), short("c", "b"), short("d", "c"), node("x", "c", kind="llm")]
    run = Play(*nodes, answer=("d", "x"), fuse="auto")
    assert run.begin() == ["start a+b+c"]
    assert together(run, "a", "b", "c") == ["start x", "start d"]


def test_a_small_graph_runs_in_one_activity() -> None:
    nodes = [short("a"), short("b", "a"), short("c", "a"), short("d", "b", "c"), short("e", "d"), short("f", "d")]
    run = Play(*nodes, node("x", "e", "f", kind="llm"), answer="x", fuse="auto")
    assert run.begin() == ["start a+b+c+d+e+f"]
    assert together(run, *"abcdef") == ["start x"]


def test_what_nobody_reads_does_not_keep_a_graph_from_running_in_one_activity() -> None:
    """Three layers in which each node reads two of the layer before: the answer is one of the last, and nobody reads
    the others.
    """
    width, layers = 5, 3
    names = [f"n{at}" for at in range(width * layers)]
    before = {at: (names[at - width], names[at - at % width - width + (at + 2) % width]) for at in range(width, 15)}
    nodes = [short(name, *before.get(at, ())) for at, name in enumerate(names)]
    run = Play(*nodes, answer=names[-1], fuse="auto")
    [start] = run.begin()
    assert sorted(start.removeprefix("start ").split("+")) == sorted(names)
    assert together(run, *names) == ["end done"]


def test_the_answer_may_be_read_inside_an_activity_too() -> None:
    """The run ends with its last node, so nobody waits for the answer before that."""
    run = Play(short("a"), short("b", "a"), answer="a", fuse="auto")
    assert run.begin() == ["start a+b"]


def test_nothing_that_nobody_reads_delays_what_somebody_reads() -> None:
    nodes = [short("a"), short("b", "a"), short("lost", "a"), node("x", "b", kind="llm")]
    run = Play(*nodes, answer="x", fuse="auto")
    assert run.begin() == ["start a"]
    assert run.ok("a") == ["start b", "start lost"]


def test_several_workers_each_get_a_part_of_every_layer() -> None:
    nodes = [*(short(name) for name in "abcd"), *(short(f"{name}2", name, "a") for name in "abcd")]
    run = Play(*nodes, answer="a2", fuse="auto", workers={"": 2})
    assert run.begin() == ["start a", "start b", "start c", "start d"]


def test_a_chain_that_takes_long_is_cut() -> None:
    count, millis = 10, MAX_SHORT_MILLIS // 2
    nodes = [short(f"n{at}", *([f"n{at - 1}"] if at else []), typical=millis) for at in range(count)]
    run = Play(*nodes, answer=f"n{count - 1}", fuse="auto")
    first = [f"n{at}" for at in range(MAX_ISLAND_MILLIS // millis)]
    assert run.begin() == [f"start {'+'.join(first)}"]


def test_a_large_graph_is_cut_behind_its_levels() -> None:
    """Each node waits for two of the level before: no part of the graph has ends that the same nodes read."""
    wide, deep = 10, 60
    names = [[f"n{level}_{at}" for at in range(wide)] for level in range(deep)]
    nodes = [short(name) for name in names[0]]
    for before, level in pairwise(names):
        nodes += [short(name, before[at], before[at - 1]) for at, name in enumerate(level)]
    run = Play(*nodes, answer=names[-1], fuse="auto", in_flight=100)
    starts = run.begin()
    while starts != ["end done"]:
        [start] = starts
        group = start.removeprefix("start ").split("+")
        assert len(group) == 10 * wide
        starts = together(run, *group)


def test_the_first_calls_of_a_tool_tell_how_long_it_takes() -> None:
    names = [f"n{at}" for at in range(ENOUGH_CALLS + 4)]
    run = Play(*(node(name, tool="u") for name in names), join("j", *names), answer="j", fuse="auto", window=3)
    told, rest = names[:ENOUGH_CALLS], names[ENOUGH_CALLS:]
    assert run.begin() == [f"start {name}" for name in told]
    assert together(run, *told, millis=40) == [f"start {'+'.join(rest)}"]


def test_a_declaration_that_the_run_disproves_counts_no_more() -> None:
    names = [f"n{at}" for at in range(ENOUGH_CALLS)]
    nodes = [*(short(name) for name in names), node("x", *names, kind="llm"), short("y", "x"), short("z", "x")]
    run = Play(*nodes, answer=("y", "z"), fuse="auto")
    run.begin()
    together(run, *names, millis=5 * MAX_SHORT_MILLIS)
    assert run.ok("x") == ["start y", "start z"]


def test_the_window_counts_activities_and_nodes_in_flight_have_a_bound_of_their_own() -> None:
    names = [f"n{at}" for at in range(8)]
    nodes = [*(short(name) for name in names), node("x", kind="llm"), join("j", "x", *names)]
    run = Play(*nodes, answer="j", fuse="auto", window=2, in_flight=6)
    assert run.begin() == [f"start {'+'.join(names[:6])}"]
    assert (run.state.running, run.state.activities) == (6, 1)
    assert together(run, *names[:6]) == ["start x", "start n6+n7"]


def test_every_worker_gets_a_part() -> None:
    names = [f"n{at}" for at in range(6)]
    run = Play(*(short(name) for name in names), join("j", *names), answer="j", fuse="auto", workers={"": 2})
    assert run.begin() == ["start n0+n1+n2", "start n3+n4+n5"]


def test_the_items_of_a_map_share_as_many_activities_as_they_need() -> None:
    items = each("m", "a", tool="t", typical=20, cap=9_000)
    run = Play(node("a", kind="llm"), items, answer="m", fuse="auto", in_flight=5_000)
    run.begin()
    starts = run.ok("a", length=2 * MAX_MEMBERS + 1)
    assert [word.count("+") + 1 for word in starts] == [683, 683, 683]


def test_while_items_wait_others_run_in_several_activities_so_that_they_begin_with_the_end_of_one() -> None:
    items = each("m", "a", tool="t", typical=20, cap=9_000)
    run = Play(node("a", kind="llm"), items, answer="m", fuse="auto", in_flight=4 * MAX_WAVE_MEMBERS)
    run.begin()
    starts = run.ok("a", length=5 * MAX_WAVE_MEMBERS)
    assert [word.count("+") + 1 for word in starts] == [MAX_WAVE_MEMBERS] * 4


def test_each_map_has_the_values_of_its_own_items_also_if_they_end_at_the_same_instant() -> None:
    maps = [each(name, "list", tool="t", typical=20) for name in "mn"]
    run = Play(node("list", kind="llm"), *maps, short("z", "m"), answer=("n", "z"), fuse="auto")
    run.begin()
    run.ok("list", length=1)
    assert together(run, "m[0]", "n[0]") == ["close m", "close n", "start z"]
    assert (run.digest("m"), run.digest("n")) == ('["of m[0]"]', '["of n[0]"]')


def test_a_call_that_has_failed_beside_others_starts_again_alone() -> None:
    run = Play(short("a"), short("b"), short("c"), join("j", *"abc"), answer="j", fuse="auto")
    run.begin()
    for name, outcome in (
        ("a", Outcome(error=("Busy", "not now"), attempts=0, again=True)),
        ("b", Outcome(attempts=0, again=True)),
        ("c", Outcome(attempts=0, again=True)),
    ):
        run.act(NodeEnded(run.unit(name), 1, outcome, more=True))
    assert run.act(TimeAdvanced()) == ["start a", "start b+c"]


def test_what_ran_behind_a_node_in_its_activity_runs_again_with_it() -> None:
    run = Play(short("a"), short("b", "a"), short("c", "b"), answer="c", fuse="auto")
    assert run.begin() == ["start a+b+c"]
    assert run.retry("a") == ["cancel b", "cancel c", "cancel a", "start a~2+b~2+c~2"]
    assert run.past_deadline("c", 1) == []
    assert together(run, "a", "b", "c") == ["end done"]


def test_a_node_that_fails_blocks_what_was_to_run_behind_it() -> None:
    run = Play(short("a"), short("b", "a"), answer="b", fuse="auto")
    run.begin()
    run.act(NodeEnded(run.unit("a"), 1, Outcome(error=("Boom", "it broke")), more=True))
    run.act(NodeEnded(run.unit("b"), 1, Outcome(attempts=0, again=True), more=True))
    assert run.act(TimeAdvanced()) == ["park a"]
    assert run.status("b") == "blocked"
    assert run.retry("a") == ["start a~2+b"]


def test_a_budget_of_nodes_covers_each_call() -> None:
    names = [f"n{at}" for at in range(5)]
    run = Play(*(short(name) for name in names), short("z", *names), answer="z", fuse="auto")
    run.state.budget = Budget({"nodes": 3})
    assert run.begin() == ["start n0+n1+n2"]
    assert together(run, "n0", "n1", "n2") == ["park "]


def test_a_snapshot_keeps_what_shares_an_activity() -> None:
    run = Play(short("a"), short("b"), join("j", "a", "b"), answer="j", fuse="auto")
    run.begin()
    run.crash()
    assert run.state.activities == 1
    assert together(run, "a", "b")[0] == "close j"


def test_what_ran_behind_a_node_that_a_person_gives_up_is_skipped_though_it_may_have_ended() -> None:
    run = Play(short("a"), short("b", "a"), short("c", "b"), answer="c", fuse="auto")
    assert run.begin() == ["start a+b+c"]
    assert run.give_up("a") == ["cancel b", "cancel c", "cancel a", "end partial"]
    assert together(run, "b", "c") == []
    assert [run.status(name) for name in "abc"] == ["skipped"] * 3


def test_no_activity_has_more_members_than_its_replies_can_travel_with_however_small_the_window() -> None:
    items = each("m", "a", tool="t", typical=20, cap=9_000)
    run = Play(node("a", kind="llm"), items, answer="m", fuse="auto", window=2, in_flight=3 * MAX_MEMBERS)
    run.begin()
    assert [word.count("+") + 1 for word in run.ok("a", length=3 * MAX_MEMBERS)] == [MAX_MEMBERS, MAX_MEMBERS]
    assert (run.state.running, run.state.activities) == (2 * MAX_MEMBERS, 2)


def test_no_activity_has_too_many_members_because_what_hangs_together_stays_together() -> None:
    parts = [[f"p{part}_{place}" for place in range(MAX_MEMBERS * 3 // 5)] for part in range(5)]
    ends = [short(f"e{part}", *names) for part, names in enumerate(parts)]
    nodes = [*(short(name) for names in parts for name in names), *ends, join("j", *(f"e{part}" for part in range(5)))]
    counts = [word.count("+") + 1 for word in Play(*nodes, answer="j", fuse="auto", in_flight=5_000).begin()]
    assert counts == [MAX_MEMBERS * 3 // 5 + 1] * 5


def test_calls_with_long_manifests_are_alone_so_that_the_input_of_no_activity_is_too_long() -> None:
    """Each consumer may be given the manifests of 64 joins: one payload does not hold those of 250 consumers."""
    inputs, count = [f"s{place}" for place in range(MAX_READ_NODES)], MAX_WAVE_MEMBERS
    joins = [join(f"j{place}", *inputs) for place in range(2 * count)]
    first = len(inputs)
    pairs = [(2 * place, 2 * place + 1) for place in range(count)]
    calls = [short(f"c{a}", f"j{a}", f"j{b}", reads=[first + a, first + b]) for a, b in pairs]
    end = node("z", *(call["id"] for call in calls), kind="llm")
    run = Play(*(node(name, kind="llm") for name in inputs), *joins, *calls, end, answer="z", fuse="auto", window=500)
    run.begin()
    starts = [word.removeprefix("start ") for word in run.ok(*inputs, digest="a" * 81) if word.startswith("start")]
    sizes = [_size(run, word.split("+")) for word in starts]
    assert len(sizes) == count
    assert max(sizes) < MAX_PAYLOAD_BYTES // 2


def _size(run: Play, names: list[str]) -> int:
    return len(node_call(run.state, "run", "plan", tuple(map(run.unit, names))).model_dump_json())
