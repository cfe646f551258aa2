"""Another plan in the place of the one that runs: what is kept, what runs again, what is asked again."""

from typing import Any

from doubles.plan.play import Fields, Play, each, gate, join, node, when

from workflows.plan.language.limits import Usage
from workflows.plan.scheduling.budget import Amounts
from workflows.plan.scheduling.events import BudgetRaised, Outcome, RunStarted
from workflows.plan.scheduling.keeping import replaced
from workflows.plan.scheduling.state import OVERTIME


def begun(*nodes: Fields, **fields: Any) -> Play:
    run = Play(*nodes, **fields)
    run.begin()
    return run


def mend(
    run: Play, *nodes: Fields, alike: dict[str, str], facts: dict[str, Any] | None = None, **fields: Any
) -> list[str]:
    """Go on with these nodes; `alike` says which old ones some of them are."""
    graph, old = Play(*nodes, **fields).graph, run.graph.by_id
    told = {graph.by_id[name]: found for name, found in (facts or {}).items()}
    same = {graph.by_id[name]: old[was] for name, was in alike.items()}
    run.state, _ = replaced(run.state, graph, same, told)
    run.graph = graph
    return run.act(RunStarted())


def test_what_has_ended_well_or_runs_stays_under_its_new_name() -> None:
    run = begun(node("a"), node("b", "a"), node("c"), answer="b")
    run.ok("a", digest="A", count=3)
    run.state.now = 70
    said = mend(run, node("d"), node("x", "d"), node("y", "a"), node("a"), answer=["x", "y"],
                alike={"d": "a", "x": "b"})  # fmt: skip
    assert said == ["start a~2"]
    assert (run.status("d"), run.digest("d"), run.state.facts[0]) == ("succeeded", "A", {"count": 3})
    assert run.status("x") == "running"
    assert run.past_deadline("x", 1) == [], "only its new start counts"
    assert run.ok("x") == []
    assert run.state.millis[1] == 70, "from when it started"
    assert run.ok("a") == ["start y~2"]
    assert run.ok("y") == ["end done"]


def test_what_failed_or_stands_on_what_runs_again_runs_again() -> None:
    old = (node("a"), node("b", "a"), node("c", fallback=("0", 1, {})))
    run = begun(*old, answer=["b", "c"])
    run.ok("a", "b")
    run.retry("a")
    run.fail("c")
    assert run.status("c") == "succeeded"
    assert mend(run, *old, answer=["b", "c"], alike={"a": "a", "b": "b", "c": "c"}) == ["start c~3"]
    assert run.ok("a") == ["start b~3"], "what it was made of may be another now"


def test_a_new_condition_on_what_is_kept_is_decided_on_the_facts_that_come_with_the_plan() -> None:
    run = begun(node("a"), node("b"), answer="a")
    run.ok("a")
    both = (node("a"), node("b"), node("c", **when("a.count", "gt", 2)), node("d", **when("b.count", "gt", 2)))
    said = mend(run, *both, answer=["c", "d"], alike={"a": "a", "b": "b"}, facts={"a": {"count": 3}, "b": {"count": 3}})
    assert said == ["start b~2", "start c~2"], (
        "b was begun anew after its facts were read: they are those of another end"
    )


def test_a_map_stays_with_its_items() -> None:
    run = begun(node("a"), each("m", "a"), answer="m")
    run.ok("a", length=2)
    run.ok("m[0]", "m[1]", "m")
    assert mend(run, node("z"), each("n", "y"), node("y"), answer=["n", "z"], alike={"n": "m", "y": "a"}) == [
        "start z~2"
    ]
    assert [run.status(name) for name in ("n", "n[0]", "n[1]")] == ["succeeded"] * 3
    assert run.retry("n[1]") == ["start n[1]~3"]


def test_what_a_person_said_of_the_same_thing_stays() -> None:
    old = (
        gate("g"),
        node("w", approval=True),
        node("v", approval=True),
        gate("h", "w"),
        node("s", locks=[("l", True)]),
    )
    run = begun(*old, node("r", locks=[("l", True)], approval=True), answer="g")
    run.answer("g")
    run.ok("g")
    run.approve("w")
    run.approve("r")
    said = mend(run, *old, node("r", locks=[("l", True)], approval=True), answer="g",
                alike={name: name for name in ("g", "w", "v", "h", "s", "r")})  # fmt: skip
    assert said == ["ask v"]
    assert run.ok("s") == ["start r~2"], "approved before it could start"
    assert run.ok("w") == ["ask h"]


def test_one_that_stood_in_waits_for_its_node_to_fail_again() -> None:
    old = (node("a", instead="s"), node("s", is_fallback=True))
    run = begun(*old, answer="a")
    run.fail("a")
    run.ok("s")
    assert run.status("a") == "succeeded"
    run.state.ended = False
    assert mend(run, *old, node("z"), answer=["a", "z"], alike={"a": "a", "s": "s"}) == ["start a~2", "start z~2"]
    assert run.fail("a") == ["start s~2"]


def test_an_island_of_which_something_is_kept_starts_in_pieces() -> None:
    run = begun(node("a"), node("b"), answer="b")
    run.ok("a")
    group = (node("a"), node("c", "a"), node("d", "c"))
    said = mend(run, *group, node("z"), answer=["d", "z"], alike={"a": "a"}, groups=[["a", "c", "d"]])
    assert sorted(said) == ["start c~2", "start z~2"], "though something else runs"


def test_a_join_runs_again_and_its_deadline_counts_from_what_is_kept() -> None:
    run = begun(node("a"), node("b"), answer="a")
    run.state.now = 100
    both = join("j", "a", "b", policy="settled", deadline=500)
    assert mend(run, node("a"), node("b"), both, answer="j", alike={"a": "a", "b": "b"}) == []
    assert list(run.state.deadlines.values()) == [600]
    assert run.ok("a", "b") == ["start j~2"]


def test_time_spent_reserved_and_what_is_added_unasked_stay_with_the_run() -> None:
    run = Play(node("a", tokens=10), node("b", tokens=20), node("c", tokens=40), answer="a")
    run.act(BudgetRaised({"tokens": 200}))
    run.begin()
    run.end("a", Outcome("A", 1, usage=Usage(7)))
    run.state.deadlines[OVERTIME], run.state.approve_above = 9_000, 5
    new = (node("x"), node("b", tokens=20), node("a", tokens=10))
    assert mend(run, *new, answer="x", alike={"a": "a", "b": "b"}) == ["start x~2"]
    budget = run.state.budget
    assert budget is not None
    assert budget.spent.tokens == 7 + 40, "nobody knows what the dropped one used"
    assert budget.reserved[1] == Amounts(tokens=20, nodes=1)
    assert budget.held.tokens == 20
    run.end("b", Outcome("B", 1, usage=Usage(5)))
    assert (budget.spent.tokens, budget.held.tokens) == (52, 0)
    assert (run.state.deadlines, run.state.approve_above) == ({OVERTIME: 9_000}, 5)
