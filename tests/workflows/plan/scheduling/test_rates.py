"""Model calls of a provider whose rate was declared: never more under way than it takes in a minute."""

import random

from doubles.plan.play import Fields, Play, each, node
from hypothesis import given
from hypothesis import strategies as st

from workflows.plan.scheduling.budget import Amounts, Budget, Rate
from workflows.plan.scheduling.events import NodeEnded, Outcome, RunStarted, Start
from workflows.plan.scheduling.step import step


def asking(*nodes: Fields, window: int = 100, **rates: int) -> Play:
    """A run whose model queues take so many calls a minute."""
    run = Play(*nodes, window=window)
    run.state.rates = {queue: Rate(limit) for queue, limit in rates.items()}
    return run


def calls(count: int, queue: str = "a", **fields: object) -> list[Fields]:
    """So many model calls side by side."""
    return [node(f"{queue}{index}", kind="llm", queue=queue, **fields) for index in range(count)]


def test_a_minutes_allowance_is_under_way_and_the_next_starts_as_one_ends() -> None:
    run = asking(*calls(5), a=2)
    assert run.begin() == ["start a0", "start a1"]
    assert run.ok("a1") == ["start a2"]
    assert run.fail("a0") == ["start a3"]
    assert run.give_up("a2") == ["cancel a2", "start a4"]


def test_other_providers_and_tools_go_on() -> None:
    run = asking(*calls(2), *calls(3, "b"), node("t", queue="a"), node("u", queue="a"), a=1, b=2)
    assert run.begin() == ["start a0", "start b0", "start b1", "start t", "start u"]
    assert run.ok("b0") == ["start b2"]


def test_who_waits_starts_in_order_also_behind_one_that_came_later() -> None:
    first, second, third = calls(3)
    run = asking(
        node("t"), node("late", "t", kind="llm", queue="a", priority=1), first, second, {**third, "rank": 9}, a=1
    )
    assert run.begin() == ["start a2", "start t"]
    assert run.ok("t") == []
    assert run.ok("a2") == ["start late"]
    assert run.ok("late") == ["start a0"]


def test_nodes_that_take_several_calls_count_as_so_many() -> None:
    run = asking(*calls(9), a=4)
    assert len(run.begin()) == 4
    assert run.end("a0", Outcome("x", attempts=3)) == [], "three calls a node: one at a time"
    assert run.ok("a1") == [], "two on the average, and two run"
    assert run.ok("a2") == ["start a4"]
    run.crash()
    assert run.state.rates["a"].room == 0
    assert run.ok("a3") == ["start a5"]


def test_the_items_of_a_map_are_calls_and_the_map_is_none() -> None:
    run = asking(node("l"), each("m", "l", item_kind="llm", queue="a"), a=2)
    run.begin()
    assert run.ok("l", length=3) == ["start m[0]", "start m[1]"]
    assert run.ok("m[1]") == ["start m[2]"]
    run.ok("m[2]")
    assert run.ok("m[0]") == ["start m"]


def test_one_that_lacks_a_lock_or_money_lets_the_next_go_first() -> None:
    lock = [("repo", True)]
    run = asking(node("t", locks=lock, priority=1), *calls(1, locks=lock, priority=1), *calls(2, "b"), a=1)
    run.graph.specs[2].queue = run.graph.specs[3].queue = "a"
    assert run.begin() == ["start t", "start b0"]
    assert run.ok("t") == []
    assert run.ok("b0") == ["start a0"]
    assert run.ok("a0") == ["start b1"]
    dear, cheap = node("d", kind="llm", queue="a", tokens=900), node("c", kind="llm", queue="a", tokens=10)
    run = asking({**dear, "priority": 1}, cheap, a=1)
    run.state.budget = Budget({"tokens": 500})
    run.state.budget.reserve(9, Amounts(tokens=100))
    assert run.begin() == ["start c"]
    assert run.state.waiting_budget == [run.unit("d")]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=25),
    st.integers(1, 5),
    st.integers(1, 8),
    st.randoms(use_true_random=False),
)
def test_no_more_calls_run_than_the_rate_allows_and_none_waits_for_nothing(
    jobs: list[tuple[int, bool]], limit: int, window: int, chance: random.Random
) -> None:
    """`jobs` are (attempts, whether it is a model call), side by side."""
    nodes = [node(f"n{index}", kind="llm" if model else "tool", queue="a") for index, (_, model) in enumerate(jobs)]
    run = asking(*nodes, window=window, a=limit)
    flying = [unit for start in step(run.state, RunStarted()) if isinstance(start, Start) for unit in start.units]
    ended = 0
    while flying:
        rate = run.state.rates["a"]
        models = [unit for unit in flying if jobs[unit][1]]
        assert len(models) == rate.running <= limit
        if len(flying) < window:
            waiting = [unit for unit in range(len(jobs)) if run.state.queued[unit]]
            assert not waiting or (rate.room <= 0 and all(jobs[unit][1] for unit in waiting))
        if chance.random() < 0.3:
            run.crash()
        unit = flying.pop(chance.randrange(len(flying)))
        decisions = step(run.state, NodeEnded(unit, 1, Outcome("x", attempts=jobs[unit][0])))
        flying += [started for start in decisions if isinstance(start, Start) for started in start.units]
        ended += 1
    assert (ended, run.state.ended) == (len(jobs), True)
