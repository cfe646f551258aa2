"""A state as text, to go on from in another process."""

import random

import pytest
from doubles.plan.play import Play, each, gate, join, node, when

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.packing import pack, unpack
from sennit.workflows.plan.limits import MAX_SNAPSHOT_BYTES
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, RunStarted, Start
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import PENDING, WAITING


def test_answers_and_facts_of_any_json_survive() -> None:
    run = Play(gate("g"), node("a"), node("b", "g", "a"), answer="b")
    run.begin()
    run.answer("g", {"text": "naïve, half a pair: \ud83d", "list": [1, 2.5, None, True]})
    run.ok("a", count=float("inf"), name="ü")
    before = (run.state.answers, run.state.units[1].facts)
    run.crash()
    assert (run.state.answers, run.state.units[1].facts) == before
    run.ok("g")
    run.crash()
    assert run.state.answers == {}, "the answer is the gate's output by now"


def test_a_replan_that_waited_for_a_person_in_the_version_before_is_asked_for_again() -> None:
    run = Play(node("j", kind="llm"), answer="j")
    run.begin()
    body = unpack(dump(run.state), MAX_SNAPSHOT_BYTES)
    body["expansion_requests"] = [(0, ["request", 3, "why", [], 0, False])]
    body["status"], body["waiting"], body["running"] = [WAITING], 1, 0
    found = load(run.state.graph, pack(body))
    assert (found.units[0].status, found.units[0].queued, found.waiting) == (PENDING, True, 0)


def test_a_snapshot_of_the_version_before_is_loaded() -> None:
    run = Play(node("a"), node("b", "a"), answer="b")
    run.begin()
    run.state.now = 7
    run.ok("a")
    body = unpack(dump(run.state), MAX_SNAPSHOT_BYTES)
    del body["last_end"], body["most_agents"]
    found = load(run.state.graph, pack(body))
    assert found.last_end == max(unit.ended_at or 0 for unit in run.state.units.values())
    assert found.most_agents == run.state.most_agents


def test_ten_thousand_nodes_fit_forty_bytes_each() -> None:
    """All succeeded, with random digests of 32 characters of base 64 and a fact now and then."""
    count = 10_000
    specs = [NodeSpec(f"n{i}", "tool", needs=[i - 1] if i % 7 else []) for i in range(count)]
    state = RunState(Graph(ExecutionPlan(specs, [count - 1])), window=count)
    made = random.Random(7)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    waiting = step(state, RunStarted())
    while waiting:
        later = []
        for decision in waiting:
            if isinstance(decision, Start):
                unit = decision.units[0]
                state.now += made.randrange(3)
                digest = "".join(made.choices(letters, k=32))
                facts = {"count": made.randrange(9)} if unit % 10 == 0 else None
                later += step(state, NodeEnded(unit, 1, Outcome(digest, made.randrange(5_000), facts)))
        waiting = later
    assert state.ended
    assert len(dump(state)) <= 400_000


@pytest.mark.parametrize(("digests", "most"), [(1, 400_000), (2, 700_000)])
def test_ten_thousand_items_fit_forty_bytes_each_and_thirty_more_in_their_markers(digests: int, most: int) -> None:
    run, made = Play(node("l"), each("m", "l", cap=10_000), answer="m"), random.Random(7)
    run.begin()
    run.ok("l", length=10_000)
    for unit in list(run.state.items[1]):
        run.state.now += made.randrange(3)
        run.act(NodeEnded(unit, 1, Outcome(".".join(made.randbytes(20).hex() for _ in range(digests)), 900)))
    assert len(dump(run.state)) <= most


def test_old_openings_of_a_map_cost_next_to_nothing() -> None:
    """What their items made is not written down any more: a byte or two a unit instead of thirty."""
    run = Play(node("l"), each("m", "l"), answer="m")
    run.begin()
    run.ok("l", length=50)
    once = len(dump(run.state))
    for turn in range(20):
        run.ok(*(f"m[{item}]" for item in range(50)))
        run.retry("l")
        run.ok("l", digest=f"list {turn}", length=50)
    assert len(dump(run.state)) < once + 20 * 50


def test_long_errors_of_many_nodes_are_cut() -> None:
    run = Play(*(node(f"n{number}") for number in range(1_000)), on_failure="partial", window=1_000)
    run.begin()
    for number in range(1_000):
        run.end(f"n{number}", Outcome(error=("HttpStatusError", f"{number} " + "x" * 2_500)))
    sizes = [len(message) for _, message in run.state.notes.values()]
    assert min(sizes[:100]) > 2_500
    assert max(sizes[-700:]) == 500


def test_a_join_of_items_that_a_person_gave_up_is_kept_when_the_map_has_other_items() -> None:
    taking = join("j", "m", policy="first", of_items=True)
    nodes = [node("a"), each("m", "a"), taking, node("z", "j", **when("j.count", "gt", 3))]
    run = Play(*nodes, answer=("z", "m"))
    run.begin()
    run.ok("a", length=2)
    assert run.ok("m[0]") == ["start j"]
    assert run.give_up("j") == ["cancel j"]
    run.retry("a")
    assert run.ok("a", length=1, digest="other") == ["cancel m[1]", "start m[0]~2"]
    run.crash()
    assert run.status("j") == "skipped"
