"""Budgets of tasks: what waits, what is refused, and what counts after a kill, an edit, a retry and in a fork."""

import random
from typing import Any

import pytest
from doubles.plan.pages import added, advanced, begun, paged, restored

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.events import (
    Cancel,
    Decision,
    End,
    NodeEnded,
    Outcome,
    ProgramEdited,
    RetryRequested,
    Start,
    TaskNews,
)
from sennit.workflows.plan.scheduling.ready import grant
from sennit.workflows.plan.scheduling.slices import left_in_tasks, left_of
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import CANCELLED, FAILED, RUNNING, SUCCEEDED


def task(name: str, around: str = "", **limits: int) -> NodeSpec:
    """A task of a script with this budget."""
    return paged(name, "task", key=name, call_site=f"{name}:9", slice=limits, slice_of=around)


def llm(name: str, around: str = "", **fields: Any) -> NodeSpec:
    """A model call in a task."""
    return paged(name, "llm", key=name, slice_of=around, **fields)


def then(*inputs: int, name: str = "main_s2") -> NodeSpec:
    """The next advance, with the calls for which the script waits."""
    return paged(name, "program", inputs=list(inputs))


def started(state: RunState, decisions: list[Decision]) -> list[str]:
    """The calls that start, by their ids."""
    return [state.path(each.units[0]) for each in decisions if isinstance(each, Start)]


def used(state: RunState, name: str, tokens: int, *, generation: int = 1, **fields: Any) -> list[str]:
    """A call ends after so many tokens; what starts then."""
    outcome = Outcome(f"of {name}", usage=Usage(tokens, calls=1), **fields)
    return started(state, step(state, NodeEnded(state.graph.by_id[name], generation, outcome)))


def why(state: RunState, name: str) -> str:
    """How a call has failed, "" if it has not."""
    unit = state.graph.by_id[name]
    return ": ".join(state.notes[unit]) if state.units[unit].status == FAILED else ""


def spent(state: RunState, name: str) -> int:
    """The tokens that a task has used."""
    return state.slices[state.graph.by_id[name]].budget.spent.tokens


def test_the_next_call_of_a_task_that_has_spent_its_budget_fails_and_its_script_goes_on() -> None:
    state = begun()
    assert started(state, added(state, task("t", tokens=1_000), llm("a", "t"), llm("b"), then(2, 3))) == ["a", "b"]
    assert used(state, "a", 1_200) == ["main"], "the program goes on"
    decisions = added(state, llm("c", "t"), llm("d"), then(4, 5, name="main_s3"), past=(2,))
    assert started(state, decisions) == ["main", "d"], "its script is told at once"
    expected = "BudgetExceeded: t:9 has used 1,200 tokens of its budget of 1,000 tokens"
    assert why(state, "c").startswith(expected)
    assert spent(state, "t") == 1_200


def test_calls_of_tools_spend_nothing_and_go_on() -> None:
    state = begun()
    added(state, task("t", tokens=100), llm("a", "t"), then(2))
    used(state, "a", 500)
    decisions = added(state, paged("b", "tool", slice_of="t"), then(3, name="main_s3"), past=(2,))
    assert started(state, decisions) == ["b"]


def test_a_call_waits_while_those_that_run_may_leave_it_room() -> None:
    """The first goes nearly alone; then the mean is what a call reserves."""
    state = begun()
    calls = [llm(name, "t", tokens=300) for name in "abcd"]
    assert started(state, added(state, task("t", tokens=1_000), *calls, then(2, 3, 4, 5))) == ["a", "b", "c"]
    assert used(state, "a", 100)[-1:] == ["d"]
    assert used(state, "b", 100) == []


def test_calls_that_wait_are_refused_once_the_budget_is_spent() -> None:
    state = begun()
    calls = [llm(name, "t") for name in "abcd"]
    assert started(state, added(state, task("t", calls=2), *calls, then(2, 3, 4, 5))) == ["a", "b"]
    used(state, "a", 10)
    assert not why(state, "c")
    used(state, "b", 10)
    assert [bool(why(state, name)) for name in "abcd"] == [False, False, True, True]
    assert state.units[0].status == RUNNING, "its script is told"


def test_siblings_are_untouched_and_nested_tasks_share_the_slice_around_them() -> None:
    state = begun()
    tasks = [task("outer", tokens=1_000), task("x", "outer", tokens=800), task("y", "outer"), task("other", tokens=50)]
    calls = [llm("a", "x"), llm("b", "outer"), llm("c", "other")]
    started(state, added(state, *tasks, *calls, then(5, 6, 7)))
    assert [spent(state, name) for name in ("outer", "x", "other")] == [0, 0, 0]
    used(state, "a", 700)
    used(state, "b", 500)
    used(state, "c", 10)
    assert [spent(state, name) for name in ("outer", "x", "other")] == [1_200, 700, 10]
    step(state, NodeEnded(0, 1, Outcome(again=True, attempts=0)))
    more = [llm("d", "x"), llm("e", "other"), then(8, 9, name="main_s3")]
    assert started(state, added(state, *more, past=(5, 6, 7))) == ["main", "e"]
    assert why(state, "d").startswith("BudgetExceeded: outer:9 has used 1,200")


def test_what_a_task_spends_counts_in_the_run_once() -> None:
    state = begun()
    state.budget = Budget({"tokens": 5_000})
    added(state, task("t", tokens=1_000), llm("a", "t", tokens=100), then(2))
    used(state, "a", 400)
    assert (state.budget.spent.tokens, spent(state, "t")) == (400, 400)
    assert state.budget.held.tokens == 0
    assert left_in_tasks(state, 0) == {"t": {"tokens": 600}}


def test_a_call_may_use_the_least_of_what_the_run_and_its_tasks_have_left() -> None:
    state = begun()
    state.budget = Budget({"tokens": 5_000, "calls": 3})
    added(state, task("t", tokens=700), llm("a", "t", prompt=10, reply=4_000), then(2))
    left = left_of(state, 2)
    assert left == {"tokens": 700, "calls": 3}
    assert grant(state, 2, left) == 700


def test_without_a_budget_of_the_run_the_slice_alone_limits_a_call() -> None:
    state = begun()
    added(state, task("t", tokens=700), llm("a", "t", prompt=10, reply=4_000), llm("b"), then(2, 3))
    assert (left_of(state, 2), left_of(state, 3)) == ({"tokens": 700}, {})
    assert grant(state, 2, left_of(state, 2)) == 700


def test_sub_agents_of_a_task_share_its_slice() -> None:
    state = begun()
    agents = [paged(name, "agent", slice_of="t") for name in "abc"]
    decisions = added(state, task("t", tokens=9_000), *agents, paged("d", "agent"), then(2, 3, 4, 5))
    limits = {state.path(each.units[0]): each.limits for each in decisions if isinstance(each, Start)}
    assert limits == {"a": {"tokens": 3_000}, "b": {"tokens": 3_000}, "c": {"tokens": 3_000}, "d": None}


def test_a_sub_agent_waits_until_its_task_has_something_left_for_it() -> None:
    state = begun()
    assert started(state, added(state, task("t", tokens=9_000), paged("a", "agent", slice_of="t"), then(2))) == ["a"]
    step(state, NodeEnded(0, 1, Outcome(again=True, attempts=0)))
    used(state, "a", 100)
    decisions = added(state, *[paged(name, "agent", slice_of="t") for name in "bc"], then(3, 4, name="s3"), past=(2,))
    assert [each.limits for each in decisions if isinstance(each, Start)] == [{"tokens": 4_450}, {"tokens": 4_450}]


def test_the_turns_of_a_models_tool_loop_spend_from_its_own_budget() -> None:
    state = begun()
    own = llm("a", slice={"calls": 1})
    own.call_site = "llm:7"
    added(state, own, llm("b"), then(1, 2))
    assert state.slices[1].budget.limits == {"calls": 1}
    state.graph.go_on_with([paged("a.2", "llm")], 1)
    new = state.add_nodes(range(len(state.graph.specs) - 1, len(state.graph.specs)))
    state.used[1] = Usage(10, calls=1)
    assert left_of(state, new[0]) == {"calls": 0}


def test_a_cancelled_call_counts_with_what_it_tells_late_and_frees_what_waits() -> None:
    state = begun()
    calls = [llm(name, "t", tokens=600) for name in "ab"]
    assert started(state, added(state, task("t", tokens=1_000), *calls, then(2, 3))) == ["a"]
    step(state, NodeEnded(0, 1, Outcome(again=True, attempts=0)))
    decisions = step(state, advanced_with(state, given_up=("a",), past=(2,)))
    assert [type(each) for each in decisions] == [Cancel]
    assert not any(isinstance(each, End) for each in decisions), "the call that waits may still start"
    late = NodeEnded(2, 1, Outcome(error=("Cancelled", "given up"), usage=Usage(150, calls=1)))
    assert started(state, step(state, late)) == ["b"]
    assert spent(state, "t") == 150
    assert state.used[2].tokens == 150, "people see what it has cost"


def advanced_with(state: RunState, **told: Any) -> Any:
    """The program has gone on beside calls that run, and waits for those of before."""
    state.set_status(0, RUNNING)
    state.running += 1
    return advanced(state, then(name="main_s9"), **told)


def test_a_retry_of_a_refused_call_is_refused_again_and_one_that_was_made_counts_twice() -> None:
    state = begun()
    added(state, task("t", calls=1), llm("a", "t"), then(2))
    failed = Outcome(error=("ServerFailed", "500"), usage=Usage(10, calls=1))
    step(state, NodeEnded(2, 1, failed))
    step(state, NodeEnded(0, 1, Outcome(error=("CallFailed", "a has failed"))))
    step(state, RetryRequested(2))
    assert why(state, "a").startswith("BudgetExceeded: t:9 has used 1 model calls")


def test_another_process_goes_on_with_the_same_slices() -> None:
    state = begun()
    calls = [llm(name, "t", tokens=400) for name in "abc"]
    added(state, task("t", tokens=1_000), *calls, then(2, 3, 4))
    again = restored(state)
    for each in (state, again):
        used(each, "a", 300)
        used(each, "b", 800)
    assert why(state, "c") == why(again, "c") != ""
    assert (spent(state, "t"), spent(again, "t")) == (1_100, 1_100)


def test_an_edit_counts_what_its_script_takes_over_and_nothing_else() -> None:
    state = begun()
    added(state, task("t", tokens=1_000), llm("a", "t"), llm("b", "t"), then(2, 3))
    used(state, "a", 600)
    used(state, "b", 300)
    step(state, ProgramEdited(0, "p2"))
    assert state.slices == {}, "its new script has called nothing yet"
    calls = [task("t", tokens=2_000), llm("a", "t"), llm("new", "t")]
    calls[1].id, calls[0].id = "again_a", "again_t"
    calls[1].slice_of = calls[2].slice_of = "again_t"
    added(state, *calls, then(2, 4, name="main_g_s2"))
    its = state.slices[1].budget
    assert (its.limits, its.spent.tokens) == ({"tokens": 2_000}, 600)
    assert state.units[state.graph.by_id["new"]].status == RUNNING


def test_a_call_that_waited_for_its_slice_waits_again_when_an_edited_script_makes_it_again() -> None:
    state = begun()
    added(state, task("t", tokens=1_000), llm("a", "t", tokens=900), llm("b", "t", tokens=900), then(2, 3))
    step(state, NodeEnded(0, 1, Outcome(again=True, attempts=0)))
    assert started(state, step(state, ProgramEdited(0, "p2"))) == ["main"], "b does not start outside its slice"
    renewed = [task("t2", tokens=1_000), llm("a2", "t2", tokens=900), llm("b2", "t2", tokens=900)]
    for spec, key in zip(renewed, ("t", "a", "b"), strict=True):
        spec.key = key
    assert started(state, added(state, *renewed, then(2, 3, name="main_g_s2"))) == []
    assert state.slices[1].budget.held.calls == 1
    assert used(state, "a", 100) in (["main", "b"], ["b", "main"]), "they keep their ids"


def test_a_call_that_waited_for_its_slice_starts_when_an_edited_script_makes_it_without_a_budget() -> None:
    state = begun()
    added(state, task("t", tokens=1_000), llm("a", "t", tokens=900), llm("b", "t", tokens=900), then(2, 3))
    step(state, NodeEnded(0, 1, Outcome(again=True, attempts=0)))
    assert started(state, step(state, ProgramEdited(0, "p2"))) == ["main"]
    renewed = [paged("main_r2_1", "llm", key="a", tokens=900), paged("main_r2_2", "llm", key="b", tokens=900)]
    assert started(state, added(state, *renewed, then(2, 3, name="main_g_s2"))) == ["b"]


def test_what_a_call_tells_late_counts_in_the_slice_that_an_edit_has_opened_anew() -> None:
    """The call runs again, in a later generation, when the script is edited."""
    state = begun()
    added(state, task("t", tokens=1_000), llm("a", "t", tokens=300), llm("b", "t", tokens=100), then(2, 3))
    step(state, RetryRequested(2))
    step(state, NodeEnded(0, 1, Outcome(again=True, attempts=0)))
    step(state, ProgramEdited(0, "p2"))
    added(state, task("t", tokens=1_000), llm("a", "t", tokens=300), then(2, name="main_g_s2"))
    late = Outcome(error=("Cancelled", "it was given up"), usage=Usage(70, calls=1))
    step(state, NodeEnded(2, 1, late))
    assert (spent(state, "t"), state.used[2].tokens) == (70, 70)
    used(state, "a", 30, generation=2)
    assert (spent(state, "t"), state.used[2].tokens) == (100, 100)
    assert spent(restored(state), "t") == 100


def test_a_sub_agent_that_writes_and_is_cut_off_counts_once() -> None:
    state = begun()
    added(state, task("t", tokens=1_000), paged("a", "agent", key="a", slice_of="t", effect="write"), then(2))
    step(state, RetryRequested(2))
    step(state, NodeEnded(2, 1, Outcome(error=("Cancelled", ""), usage=Usage(70, calls=1))))
    assert (spent(state, "t"), state.used[2].tokens) == (70, 70)


def test_a_program_is_told_what_its_running_tasks_have_left_and_not_those_that_have_ended() -> None:
    """Else each advance would be given one more line for each task that there ever was."""
    state = begun()
    own = llm("own", slice={"tokens": 50})
    added(state, task("t", tokens=1_000), task("u", tokens=500), llm("a", "t"), own, then(3, 4))
    used(state, "a", 400)
    event = advanced(state, llm("b", "u"), then(5, name="main_s3"))
    event.ended.outcome.tasks = (TaskNews("t", "succeeded", 5),)
    step(state, event)
    assert list(left_in_tasks(state, 0)) == ["u"]
    step(state, ProgramEdited(0, "p2"))
    added(state, task("t", tokens=1_000), llm("a", "t"), then(3, name="main_g_s2"))
    assert left_in_tasks(state, 0) == {"t": {"tokens": 600}}


def test_what_a_fork_takes_over_counts_in_the_slice_and_costs_the_run_nothing() -> None:
    state = begun()
    state.budget = Budget({"tokens": 5_000})
    taken = Outcome("of a", attempts=0, usage=NO_USAGE, paid=Usage(1_200, calls=1), taken_over=True, at=5)
    added(state, task("t", tokens=1_000), llm("a", "t"), llm("b", "t"), then(2, 3), ends=(("a", taken),))
    assert (state.budget.spent.tokens, spent(state, "t")) == (0, 1_200)
    assert why(state, "b").startswith("BudgetExceeded: t:9 has used 1,200")
    assert spent(restored(state), "t") == 1_200


@pytest.mark.parametrize("seed", range(40))
def test_at_random_a_slice_is_what_its_calls_have_used_and_nothing_is_forgotten(seed: int) -> None:
    """Calls of tasks in tasks are made, end, and are retried; workers are lost and the script is edited."""
    rng = random.Random(seed)
    state = begun()
    state.budget = Budget({"tokens": 100_000}) if seed % 2 else None
    tasks = [task("t0", tokens=rng.randint(100, 3_000)), task("t1", "t0", calls=rng.randint(1, 6)), task("t2")]
    tasks[2].slice = {"tokens": rng.randint(100, 2_000)}
    calls = [llm(f"c{number}", f"t{rng.randrange(3)}", tokens=rng.choice([0, 50, 400])) for number in range(25)]
    made = [*tasks, *calls]
    added(state, *made, then(*range(4, 4 + len(calls))))
    edits = 0
    for _ in range(400):
        check_sums(state)
        running = [unit for unit in state.units_in(RUNNING) if unit]
        if state.units[0].status == RUNNING:
            # The script waits for the rest again, as long as something is left.
            open_ones = [
                unit for unit in state.sessions[0].waits if state.units[unit].status not in (SUCCEEDED, FAILED)
            ]
            if not open_ones:
                break
            past = tuple(unit for unit in state.sessions[0].waits if unit not in open_ones)
            step(state, advanced(state, then(name=f"main_s{len(state.sessions[0].advances)}"), past=past))
        elif running and rng.random() < 0.8:
            unit = rng.choice(running)
            step(
                state,
                NodeEnded(unit, state.units[unit].generation, Outcome("v", usage=Usage(rng.randint(0, 900), calls=1))),
            )
        elif rng.random() < 0.3:
            state = restored(state)
        elif edits < 2:
            edits += 1
            step(state, ProgramEdited(0, "p2"))
            again = [renewed(spec, edits) for spec in made]
            first = {spec.key: state.graph.by_key[spec.key] for spec in again}
            waits = [first[spec.key] for spec in again if spec.kind == "llm"]
            added(state, *again, then(*waits, name=f"main_g{edits}_s2"))
    else:
        raise AssertionError("something waits for ever")
    check_sums(state)


def renewed(spec: NodeSpec, edit: int) -> NodeSpec:
    """A call as an edited script makes it again: with another id and the same key."""
    again = paged(f"{spec.key}_{edit}", spec.kind, key=spec.key, call_site=spec.call_site, slice=dict(spec.slice))
    again.slice_of = f"{spec.slice_of.partition('_')[0]}_{edit}" if spec.slice_of else ""
    again.tokens = spec.tokens
    return again


def check_sums(state: RunState) -> None:
    for holder, its in state.slices.items():
        inside = [unit for unit in state.sessions[0].calls if is_inside(state, unit, holder)]
        total = sum(state.used.get(unit, NO_USAGE).tokens for unit in inside)
        assert its.budget.spent.tokens == total
        assert its.budget.held.calls == sum(state.units[unit].status == RUNNING for unit in inside)
        assert set(its.budget.reserved) == {unit for unit in inside if state.units[unit].status == RUNNING}
        assert all(state.units[unit].status != CANCELLED for unit in inside)


def is_inside(state: RunState, unit: int, holder: int) -> bool:
    around = state.graph.specs[unit].slice_of
    while around:
        node = unit_called(state, 0, around)
        if node == holder:
            return True
        around = state.graph.specs[node].slice_of
    return False
