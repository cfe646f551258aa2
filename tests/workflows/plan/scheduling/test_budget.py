"""A budget shared by all branches, and rates of providers: what starts, what waits, what is booked."""

import random

import pytest
from doubles.plan.pages import added, begun, paged
from doubles.plan.play import Fields, Play, each, node
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec, Quoted
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.budget import Amounts, Budget, Rate
from sennit.workflows.plan.scheduling.events import (
    BudgetRaised,
    CostCharged,
    NodeEnded,
    Outcome,
    ProgramAdvanced,
    ProgramEdited,
    RunStarted,
    Start,
)
from sennit.workflows.plan.scheduling.ready import in_place, missing_calls, unpaid
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step


def calls(count: int, *, tokens: int = 100, **limits: int) -> Play:
    """A run of so many model calls side by side."""
    run = Play(*(node(f"c{index}", kind="llm", tokens=tokens) for index in range(count)))
    run.state.budget = Budget(limits)
    return run


def used(run: Play, name: str, tokens: int, cost: int = 0, attempts: int = 1) -> list[str]:
    return run.end(name, Outcome(f"of {name}", 1, attempts=attempts, usage=Usage(tokens, cost=cost, calls=attempts)))


def test_as_many_start_as_the_budget_may_hold() -> None:
    run = calls(5, tokens=100, calls=3)
    assert run.begin() == ["start c0", "start c1", "start c2"]
    assert used(run, "c0", 100) == []
    assert used(run, "c1", 100) == []
    assert used(run, "c2", 100) == ["park "]
    assert run.status("c3") == "pending"


def test_what_a_call_did_not_use_is_there_for_the_next() -> None:
    run = calls(4, tokens=100)
    run.state.budget = Budget({"tokens": 200})
    assert run.begin() == ["start c0", "start c1"]
    assert used(run, "c0", 20) == []
    assert used(run, "c1", 20) == ["start c2"]
    assert used(run, "c2", 20) == ["start c3"]


def test_a_guess_that_is_too_high_lets_one_call_through_at_a_time() -> None:
    run = calls(3, tokens=5_000)
    run.state.budget = Budget({"tokens": 1_000})
    assert run.begin() == ["start c0"]
    assert used(run, "c0", 600) == ["start c1"]
    assert used(run, "c1", 600) == ["park "], "it overshoots by one call at most"


def test_without_an_estimate_the_mean_of_the_calls_so_far_counts() -> None:
    run = calls(6, tokens=0)
    run.state.budget = Budget({"tokens": 1_000})
    assert run.begin() == ["start c0"]
    assert used(run, "c0", 250) == ["start c1", "start c2", "start c3"]


def priced(count: int, price: int, **limits: int) -> Play:
    run = Play(*(node(f"c{index}", kind="llm", price=price) for index in range(count)))
    run.state.budget = Budget(limits)
    return run


def test_before_a_call_has_cost_something_its_price_is_what_it_is_expected_to_cost() -> None:
    """A thousand tokens at $10 a million are one cent; what the first calls have cost tells better."""
    run = priced(9, 10_000_000, cost=20_000)
    assert run.begin() == ["start c0", "start c1"]
    assert run.state.budget is not None
    assert run.state.budget.held.cost == 20_000
    assert used(run, "c0", 500, 4_000) == ["start c2"]
    assert used(run, "c1", 500, 4_000) == ["start c3", "start c4"]
    run.crash()
    assert used(run, "c2", 500, 4_000) == []


def test_calls_that_cost_nothing_so_far_do_not_hide_the_price_of_the_next() -> None:
    run = priced(9, 10_000_000, cost=20_000)
    run.act(CostCharged(Usage(1_000, calls=1)))
    assert run.begin() == ["start c0", "start c1"]


def test_a_limit_below_the_price_of_one_call_lets_one_start() -> None:
    assert priced(9, 10_000_000, cost=5_000).begin() == ["start c0"]


def test_without_a_known_price_money_bounds_nothing() -> None:
    assert len(priced(9, 0, cost=5_000).begin()) == 9


def test_a_higher_limit_lets_a_parked_run_go_on() -> None:
    run = calls(3, calls=1)
    run.begin()
    assert used(run, "c0", 1) == ["park "]
    assert run.act(BudgetRaised({"calls": 3})) == ["start c1", "start c2"]
    assert not run.state.parked
    assert used(run, "c1", 1) == []
    assert used(run, "c2", 1) == ["end done"]


def test_nobody_raises_it_so_the_run_ends_with_what_there_is() -> None:
    run = calls(2, calls=1)
    run.begin()
    used(run, "c0", 1)
    assert run.tick(1_000_000) == ["end partial"]
    assert (run.status("c0"), run.status("c1")) == ("succeeded", "skipped")


def test_a_run_that_never_parks_ends_partial() -> None:
    run = Play(node("a", kind="llm"), node("b", "a", kind="llm"), on_failure="partial")
    run.state.budget = Budget({"calls": 1})
    run.begin()
    assert used(run, "a", 1) == ["end partial"]


def test_attempts_are_calls_and_what_nobody_knows_counts_in_full() -> None:
    run = calls(2, tokens=70)
    run.state.budget = budget = Budget({"tokens": 10_000})
    run.begin()
    used(run, "c0", 50, 9, attempts=3)
    assert budget.spent == Amounts(50, 9, 3, 1)
    run.end("c1", Outcome(error=("WorkerLost", "gone"), usage=None))
    assert budget.spent.tokens == 120
    assert budget.held == Amounts()


def test_a_planner_is_paid_from_the_same_budget() -> None:
    run = calls(1, calls=1)
    run.act(CostCharged(Usage(10, calls=1)))
    assert run.begin() == ["park "]


def test_items_of_a_map_pay_one_by_one_and_tools_pay_nothing_but_their_node() -> None:
    run = Play(node("l"), each("m", "l", item_kind="llm", tokens=10))
    run.state.budget = Budget({"tokens": 20, "nodes": 3})
    run.begin()
    assert run.ok("l", length=5) == ["start m[0]", "start m[1]"]
    assert run.state.budget.spent == Amounts(nodes=1)


def test_a_snapshot_keeps_limits_and_what_is_spent() -> None:
    run = calls(3, calls=2)
    run.begin()
    used(run, "c0", 30, 5)
    before = run.state.budget
    run.crash()
    assert run.state.budget == before


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 400)), min_size=1, max_size=25),
    st.integers(1, 1_500),
    st.randoms(use_true_random=False),
)
def test_what_is_spent_never_passes_the_limit_by_more_than_one_call(
    jobs: list[tuple[int, int]], limit: int, random: object
) -> None:
    """`jobs` are (estimate, real use); a call that uses more than its estimate may pass the limit by the difference."""
    run = Play(*(node(f"c{index}", kind="llm", tokens=estimate) for index, (estimate, _) in enumerate(jobs)))
    run.state.budget = budget = Budget({"tokens": limit})
    flying = [unit for start in step(run.state, RunStarted()) if isinstance(start, Start) for unit in start.units]
    excess = 0
    while flying:
        unit = flying.pop(random.randrange(len(flying)))  # type: ignore[attr-defined]
        excess += max(0, jobs[unit][1] - budget.reserved[unit].tokens)
        decisions = step(run.state, NodeEnded(unit, 1, Outcome("x", usage=Usage(jobs[unit][1]))))
        flying += [started for start in decisions if isinstance(start, Start) for started in start.units]
        assert budget.held.tokens == sum(held.tokens for held in budget.reserved.values())
        largest = max(max(estimate, real, 1_000) for estimate, real in jobs)
        assert budget.spent.tokens <= limit + largest + excess
    assert run.state.parked or run.state.ended


def test_sub_agents_share_what_is_left_and_give_back_what_they_do_not_use() -> None:
    budget = Budget({"tokens": 1000, "calls": 9})
    budget.reserve(0, Amounts(tokens=400, nodes=1))
    none = Amounts()
    given = budget.share(0, 3, tokens=400, held_by_others=none)
    assert given == {"tokens": 400, "calls": 3}, "what it was given, not a share of it"
    budget.reserve(1, Amounts(nodes=1))
    assert budget.share(1, 2, held_by_others=none) == {"tokens": 300, "calls": 3}
    assert budget.share(2, 1, held_by_others=none) == {"tokens": 300, "calls": 3}
    assert (budget.held.tokens, budget.held.calls, budget.held.nodes) == (1000, 9, 2)
    assert budget.rest(0) == {"tokens": 400, "calls": 3}, "what it holds itself"
    assert budget.lacks(Amounts(tokens=1)) == "tokens"
    budget.settle(0, Amounts(tokens=50, calls=1, nodes=1))
    assert (budget.held.tokens, budget.spent.tokens) == (600, 50)
    assert not budget.lacks(Amounts(tokens=350, calls=2))
    budget.settle(1, None)
    assert budget.spent.tokens == 350, "nobody knows what a killed one has used"


def test_a_call_whose_replan_was_rejected_is_paid_before_it_starts_again() -> None:
    run = calls(1, tokens=100)
    run.state.budget = Budget({"tokens": 1_000})
    run.begin()
    assert run.end("c0", Outcome(again=True, usage=Usage(70, cost=5, calls=1))) == ["start c0"]
    assert run.state.budget.spent == Amounts(70, 5, 1, 0)
    assert used(run, "c0", 30) == ["end done"]
    assert run.state.budget.spent == Amounts(100, 5, 2, 1)


def asking(*nodes: Fields, window: int = 100, **rates: int) -> Play:
    """A run whose model queues take so many calls a minute."""
    run = Play(*nodes, window=window)
    run.state.rates = {queue: Rate(limit) for queue, limit in rates.items()}
    return run


def model_calls(count: int, queue: str = "a", **fields: object) -> list[Fields]:
    """So many model calls side by side."""
    return [node(f"{queue}{index}", kind="llm", queue=queue, **fields) for index in range(count)]


def test_a_minutes_allowance_is_under_way_and_the_next_starts_as_one_ends() -> None:
    run = asking(*model_calls(5), a=2)
    assert run.begin() == ["start a0", "start a1"]
    assert run.ok("a1") == ["start a2"]
    assert run.fail("a0") == ["start a3"]
    assert run.give_up("a2") == ["cancel a2", "start a4"]


def test_other_providers_and_tools_go_on() -> None:
    run = asking(*model_calls(2), *model_calls(3, "b"), node("t", queue="a"), node("u", queue="a"), a=1, b=2)
    assert run.begin() == ["start a0", "start b0", "start b1", "start t", "start u"]
    assert run.ok("b0") == ["start b2"]


def test_who_waits_starts_in_order_also_behind_one_that_came_later() -> None:
    first, second, third = model_calls(3)
    run = asking(
        node("t"), node("late", "t", kind="llm", queue="a", priority=1), first, second, {**third, "rank": 9}, a=1
    )
    assert run.begin() == ["start a2", "start t"]
    assert run.ok("t") == []
    assert run.ok("a2") == ["start late"]
    assert run.ok("late") == ["start a0"]


def test_nodes_that_take_several_calls_count_as_so_many() -> None:
    run = asking(*model_calls(9), a=4)
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
    assert run.ok("m[0]") == ["close m", "end done"]


def test_one_that_lacks_a_lock_or_money_lets_the_next_go_first() -> None:
    lock = [("repo", True)]
    run = asking(node("t", locks=lock, priority=1), *model_calls(1, locks=lock, priority=1), *model_calls(2, "b"), a=1)
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
    assert unpaid(run.state) == [run.unit("d")]


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
            waiting = [unit for unit in range(len(jobs)) if run.state.units[unit].queued]
            assert not waiting or (rate.room <= 0 and all(jobs[unit][1] for unit in waiting))
        if chance.random() < 0.3:
            run.crash()
        unit = flying.pop(chance.randrange(len(flying)))
        decisions = step(run.state, NodeEnded(unit, 1, Outcome("x", attempts=jobs[unit][0])))
        flying += [started for start in decisions if isinstance(start, Start) for started in start.units]
        ended += 1
    assert (ended, run.state.ended) == (len(jobs), True)


def test_a_call_that_was_cut_off_and_starts_again_counts_with_what_it_had_reserved_but_as_no_node() -> None:
    run = calls(1, tokens=100)
    run.state.budget = budget = Budget({"tokens": 1_000})
    run.begin()
    run.end("c0", Outcome(again=True, attempts=0, usage=None))
    assert (budget.spent.tokens, budget.spent.calls, budget.spent.nodes) == (100, 1, 0)


def begun_with(calls: int, *, spent: int = 0, forks: bool = False) -> Play:
    """A program that makes at least 6 model calls, behind a model call."""
    main = node("main", "a", kind="program", quote=Quoted("calls 6", 6, 100, 0))
    run = Play(node("a", kind="llm"), main, answer="main")
    run.state.budget, run.state.forks = Budget({"calls": calls}), forks
    run.begin()
    run.end("a", Outcome("of a", 1, usage=Usage(10, calls=1 + spent)))
    return run


def test_a_program_whose_least_is_more_than_the_budget_has_left_does_not_begin() -> None:
    run = begun_with(6)
    assert (run.status("main"), run.state.parked) == ("pending", True)
    assert missing_calls(run.state, 1) == 1
    assert run.act(BudgetRaised({"calls": 7})) == ["start main"]


def test_a_fork_begins_because_nobody_knows_what_it_takes_over() -> None:
    assert begun_with(2, forks=True).status("main") == "running"


@pytest.mark.parametrize("calls", [7, 8])
def test_a_program_begins_if_the_budget_has_its_least_left(calls: int) -> None:
    assert begun_with(calls).status("main") == "running"


def test_a_program_that_runs_again_may_take_over_what_it_has_called() -> None:
    run = begun_with(9, spent=1)
    unit = run.unit("main")
    call = NodeSpec("main_1", "llm", page="p", key="k")
    run.act(ProgramAdvanced(NodeEnded(unit, 1, Outcome("s", delegated=True)), [call], "s2", (2,)))
    run.end("main_1", Outcome("of it", 1, usage=Usage(10, calls=3)))
    again = run.act(ProgramEdited(unit, "q", quote=Quoted("calls 6", 6, 100, 0)))
    assert "start main~2" not in again
    assert missing_calls(run.state, unit) == 1
    assert "start main~2" in run.act(BudgetRaised({"calls": 10}))


def test_sub_agents_share_what_those_with_a_part_of_their_own_leave() -> None:
    specs = [NodeSpec(name, "agent", calls=2) for name in ("sub", "two")]
    specs.append(NodeSpec("own", "agent", calls=2, tokens=6_000))
    state = RunState(Graph(ExecutionPlan(specs, [0])))
    step(state, BudgetRaised({"tokens": 12_000, "calls": 12}))
    limits = [decision.limits for decision in step(state, RunStarted()) if isinstance(decision, Start)]
    assert limits == [{"tokens": 3_000, "calls": 5}, {"tokens": 3_000, "calls": 5}, {"tokens": 6_000, "calls": 2}]


def agents(count: int, *, each_calls: int = 2, **limits: int) -> tuple[Play, Budget]:
    """A run of so many sub-agents side by side, each of which is expected to make so many calls."""
    run = Play(*(node(f"a{index}", kind="agent", calls=each_calls) for index in range(count)))
    run.state.budget = Budget(limits)
    return run, run.state.budget


def test_no_sub_agent_starts_without_a_call_for_it() -> None:
    run, budget = agents(5, calls=3)
    assert run.begin() == ["start a0"]
    assert budget.reserved[0].calls == 2, "for its plan and its answer"
    assert used(run, "a0", 10) == ["start a1"]
    assert used(run, "a1", 10) == ["start a2"], "it has the last call"
    assert used(run, "a2", 10) == ["park "]
    assert (budget.spent.calls, budget.held) == (3, Amounts())
    assert run.act(BudgetRaised({"calls": 9})) == ["start a3", "start a4"]
    assert [budget.reserved[unit].calls for unit in (3, 4)] == [3, 3]


def test_a_sub_agent_has_at_least_what_its_calls_are_expected_to_use() -> None:
    """Two have room at once. Those that wait start when these have used less."""
    run, budget = agents(4, tokens=4_000)
    assert run.begin() == ["start a0", "start a1"]
    assert [budget.reserved[unit].tokens for unit in (0, 1)] == [2_000, 2_000]
    assert used(run, "a0", 300, attempts=3) == ["start a2", "start a3"]
    assert budget.held.tokens + budget.spent.tokens == 4_000


def test_runs_that_may_call_no_model_start_whatever_is_left() -> None:
    run, budget = agents(5, each_calls=0, tokens=1)
    budget.spent.tokens = 1
    assert len(run.begin()) == 5


def test_a_script_whose_sub_agents_begin_one_by_one_has_them_run_side_by_side() -> None:
    """The first one gets all that is left, because nobody knows of the others. They do not wait for its end."""
    state = begun()
    state.budget = Budget({"tokens": 5_000})
    nap = paged("nap", "tool", key="nap")
    first = added(state, paged("a", "agent", key="a", calls=2), nap, paged("s2", "program", inputs=[2]))
    assert [each.limits for each in first if isinstance(each, Start)] == [{"tokens": 5_000}, None]
    step(state, NodeEnded(state.graph.by_id["nap"], 1, Outcome("v")))
    more = [paged(name, "agent", key=name, calls=2) for name in "bcd"]
    later = added(state, *more, paged("s3", "program", inputs=[4, 5]), past=(2,))
    assert [each.limits for each in later if isinstance(each, Start)] == [{"tokens": 2_000}], "and no more have room"


def test_sub_agents_of_a_map_share_with_those_that_have_not_started() -> None:
    """Two of four items start beside another sub-agent, and a map that is not open yet counts as one."""
    agents = {"item_kind": "agent"}
    run = Play(node("l"), node("o"), node("sub", "l", kind="agent"), each("m", "l", **agents), each("n", "o", **agents))
    run.state.budget = Budget({"tokens": 8_000})
    run.state.window = 4
    run.begin()
    out = step(run.state, NodeEnded(0, 1, Outcome("of l", 1, {"length": 4})))
    limits = [decision.limits for decision in out if isinstance(decision, Start)]
    assert limits == [{"tokens": 8_000 // 6}] * 3
    assert run.state.budget.held.tokens == 3 * (8_000 // 6)


def test_a_step_reserves_the_nodes_of_the_calls_that_it_may_make_itself() -> None:
    """Half of what is left, so that others have some; each call counts as a node when the step says how it ended."""
    main = NodeSpec("main", "program")
    state = RunState(Graph(ExecutionPlan([main], [0])), timings=Timings("auto"))
    state.budget = budget = Budget({"nodes": 11})
    step(state, RunStarted())
    assert budget.reserved[0].nodes == 1 + 5
    assert in_place(state, 0, {}) == {"fuse": "auto", "usual": {}, "repeats": False, "left": {"nodes": 5}}
    made = [NodeSpec(f"main_{number}", "tool", page="p", key=f"{number}", in_place=True) for number in range(3)]
    ends = tuple((spec.id, Outcome("v", millis=20)) for spec in made)
    ended = NodeEnded(0, 1, Outcome("s", delegated=True))
    out = step(state, ProgramAdvanced(ended, made, "s2", (3,), ends=ends))
    assert (budget.spent.nodes, budget.reserved[0].nodes) == (4, 1 + 3)
    assert [each.units for each in out if isinstance(each, Start)] == [(0,)]
    assert (state.running, state.activities, state.units[1].millis) == (1, 1, 20)
