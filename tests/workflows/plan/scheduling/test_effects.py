"""What a retry may write twice."""

import pytest
from doubles.plan.play import Play, each, join, node
from doubles.plan.samples import TOOLS, llm, skeleton_of

from workflows.plan.compile.graph import Graph
from workflows.plan.edits.tool_loop import expand_tool_calls
from workflows.plan.language.parser import parse_plan
from workflows.plan.scheduling.retry import repeated
from workflows.plan.scheduling.state import SUCCEEDED, RunState

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
    ("kind", "found"), [("UnknownOutcome", ["w"]), ("WorkerLost", ["w"]), ("NodeTimeout", ["w"]), ("ToolError", [])]
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


def test_a_map_counts_as_soon_as_one_of_its_items_does() -> None:
    run = written()
    assert twice(run, "l") == ["m"], "they run"
    run.ok("m[0]")
    run.fail("m[1]", "ToolError")
    assert (twice(run, "l"), twice(run, "m[0]")) == (["m"], ["m"])
    assert (twice(run, "m"), twice(run, "m[1]")) == ([], []), "only the item that failed runs again"


def test_a_map_over_nothing_and_one_that_only_gathers_again_repeat_nothing() -> None:
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
        node("n", "a", kind="llm", instead="n_t2"),
        node("n_t1_1", **WRITES),
        join("n_t1_all", "n_t1_1", policy="settled"),
        node("n_t2", "n_t1_all", kind="llm", instead="n_t3", is_fallback=True),
        node("n_t2_1"),
        join("n_t2_all", "n_t2_1", policy="settled"),
        node("n_t3", "n_t2_all", kind="llm", is_fallback=True),
        answer="n",
    )
    run.begin()
    run.ok("n_t1_1", "n_t2_1")
    assert (twice(run, "n"), twice(run, "a"), twice(run, "n_t2_1")) == (["n_t1_1"], ["n_t1_1"], [])


def test_the_calls_of_a_loop_are_known_by_the_ids_that_they_are_given() -> None:
    grown = parse_plan({"nodes": [llm("n", tools=["note"])], "answer": "$n"})
    asked = [{"id": "1", "name": "note", "arguments": {"text": "pay"}}]
    tools = {"note": TOOLS["note"]}
    for turn, generation in (("n", 2), ("n_g2t2", 1), ("n_g2t3", 3)):
        grown = expand_tool_calls(grown, turn, generation, asked, "digest", tools)
    state = RunState(Graph(skeleton_of(grown, approval="never")))
    calls = [node for node, spec in enumerate(state.graph.specs) if spec.kind == "tool"]
    assert len(calls) == 3
    for call in calls:
        state.status[call] = SUCCEEDED
    assert sorted(repeated(state, 0)) == calls


def test_a_stand_in_that_has_written_counts() -> None:
    run = Play(node("a", instead="w"), node("w", is_fallback=True, **WRITES), answer="a")
    run.begin()
    run.fail("a")
    run.ok("w")
    assert twice(run, "a") == ["w"]
