"""What units wait for: each wait ends as soon as it may, and a wait of thousands costs what a wait of few costs."""

import random

import pytest
from doubles.plan.play import Fields, Play, node

from sennit.workflows.plan.compile.execution_plan import APART, EXCLUSIVE, SHARED
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling import ready
from sennit.workflows.plan.scheduling.budget import Budget, Rate
from sennit.workflows.plan.scheduling.events import BudgetRaised, NodeEnded, Outcome
from sennit.workflows.plan.scheduling.locks import Lock
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import ENDED, RUNNING

ONE = [("file", EXCLUSIVE)]
COUNT = 300


def test_the_first_waiter_goes_next_and_with_it_all_that_want_the_lock_in_the_same_way() -> None:
    lock = Lock()
    lock.take(9, EXCLUSIVE)
    for place, mode in enumerate([SHARED, EXCLUSIVE, APART, SHARED]):
        lock.wait((3, 0, place), mode)
    assert lock.wake() == [], "it is still held"
    lock.holders.clear()
    assert lock.wake() == [(3, 0, 0), (3, 0, 3)]
    assert lock.wake() == [(3, 0, 1)]
    assert lock.wake() == [(3, 0, 2)]
    assert lock.is_unused


def test_a_woken_unit_that_is_given_up_passes_the_lock_on() -> None:
    """The window is full when the lock comes free, so the woken unit is still queued when a person gives it up."""
    run = Play(node("a", locks=ONE), node("b", locks=ONE), node("c", locks=ONE), node("x"), answer="c", window=2)
    assert run.begin() == ["start a", "start x"]
    run.grow(node("first", priority=1))
    assert run.ok("a") == ["start first"]
    assert run.give_up("b") == []
    assert run.ok("x") == ["start c"]


def test_a_woken_unit_that_lacks_another_lock_passes_the_first_one_on() -> None:
    both = [("file", EXCLUSIVE), ("disk", EXCLUSIVE)]
    run = Play(
        node("f", locks=ONE), node("d", locks=[("disk", EXCLUSIVE)]), node("b", locks=both), node("c", locks=ONE)
    )
    assert run.begin() == ["start f", "start d"]
    assert run.ok("f") == ["start c"]
    assert run.ok("c") == []
    assert run.ok("d") == ["start b"]


def test_a_call_that_is_given_up_in_the_queue_passes_its_providers_rate_on() -> None:
    """Two calls end together. The waiter that the first end wakes is given up before anything starts."""
    run = Play(*(node(f"a{number}", kind="llm", queue="q") for number in range(3)), answer="a2")
    run.state.rates = {"q": Rate(1)}
    assert run.begin() == ["start a0"]
    assert run.act(NodeEnded(0, 1, Outcome("x"), more=True)) == []
    assert run.give_up("a1") == ["start a2"]


def test_a_limit_that_somebody_dear_waits_for_does_not_hold_up_those_who_need_none_of_it() -> None:
    run = Play(node("m", kind="llm", tokens=50), node("n", kind="llm", tokens=900, priority=1), node("t"), node("u"))
    run.state.budget = Budget({"tokens": 100, "nodes": 2})
    run.state.budget.reserve(9, run.state.budget.estimate(60, model=False))
    assert run.begin() == ["start t"], "the budget has 40 tokens and one node left"
    run.state.budget.settle(9, run.state.budget.estimate(0, model=False))
    assert run.ok("t") == ["park "]
    assert run.act(BudgetRaised({"nodes": 9})) == ["start n", "start u"]


@pytest.mark.parametrize("limits", [{}, {"tokens": 4_000}, {"nodes": 900}])
def test_a_start_costs_the_same_however_many_wait(limits: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts looks at units: with a lock, or a limit that binds, there was one for each end and waiter."""
    looks = 0

    def counted(state: RunState, unit: int) -> bool:
        nonlocal looks
        looks += 1
        return waits(state, unit)

    waits = ready._waits
    monkeypatch.setattr(ready, "_waits", counted)
    kind: Fields = {"kind": "llm", "tokens": 1_000} if limits else {"locks": ONE}
    run = Play(*(node(f"n{number}", **kind) for number in range(COUNT)), answer=f"n{COUNT - 1}")
    run.state.budget = Budget(limits) if limits else None
    run.begin()
    for number in range(COUNT):
        run.end(f"n{number}", Outcome("x", usage=Usage(9, calls=1)))
    assert run.state.ended
    assert looks <= 4 * COUNT


LIMITS: list[dict[str, int]] = [
    {},
    {"tokens": 120},
    {"tokens": 700, "nodes": 9},
    {"calls": 5},
    {"nodes": 6, "calls": 3},
]
SEEDS = 400


def _some_unit(chance: random.Random, number: int) -> Fields:
    names = chance.sample(["a", "b", "c"], chance.randrange(4))
    return node(
        f"n{number}",
        kind=chance.choice(["tool", "llm"]),
        queue="q",
        locks=[(name, chance.choice([SHARED, EXCLUSIVE, APART])) for name in names],
        priority=chance.randint(1, 3),
        tokens=chance.choice([0, 10, 60, 500]),
        effect=chance.choice(["pure", "write"]),
    )


@pytest.mark.parametrize("block", range(4))
def test_no_wake_up_is_lost(block: int) -> None:
    """Whatever ends, is given up, retried or restored: a unit that waits lacks something, and every run comes to an
    end.
    """
    for seed in range(block, SEEDS, 4):
        chance = random.Random(seed)
        nodes = [_some_unit(chance, number) for number in range(chance.randint(1, 14))]
        run = Play(*nodes, window=chance.randint(1, 6), on_failure="partial")
        limits, rate = chance.choice(LIMITS), chance.randrange(3)
        run.state.budget = Budget(dict(limits)) if limits else None
        run.state.rates = {"q": Rate(rate)} if rate else {}
        run.begin()
        for _ in range(8 * len(nodes)):
            _check_waits(run.state, seed)
            if run.state.ended or not run.state.units_in(RUNNING):
                break
            _disturb(run, chance, len(nodes))
        _finish(run, seed)
        assert run.state.ended, seed


def _disturb(run: Play, chance: random.Random, count: int) -> None:
    name, act = f"n{chance.choice(run.state.units_in(RUNNING))}", chance.random()
    over = [unit for unit in range(count) if run.state.units[unit].status in ENDED]
    if act < 0.5:
        run.end(name, Outcome("x", usage=Usage(chance.choice([0, 20, 90]), calls=1)))
    elif act < 0.6:
        run.act(NodeEnded(run.unit(name), run.state.units[run.unit(name)].generation, Outcome("x"), more=True))
        run.give_up(f"n{chance.randrange(count)}")
    elif act < 0.7:
        run.give_up(f"n{chance.randrange(count)}")
    elif act < 0.8 and over:
        run.retry(f"n{chance.choice(over)}")
    elif act < 0.9:
        run.crash()
        run.tick(0)
    else:
        run.fail(name)


def _owed(state: RunState) -> list[tuple[int, int]]:
    """Return the cancelled calls that have not told yet what they used, with their generations."""
    return list(state.budget.late) if state.budget is not None else []


def _finish(run: Play, seed: int) -> None:
    """End all that runs, the writes in flight that were cut off, and the model calls that were cancelled."""
    while run.state.running or _owed(run.state):
        effects = [(unit, each) for unit, found in run.state.effects.items() for each in found]
        in_flight = [(unit, each.generation) for unit, each in effects if each.status == "in flight"]
        running = [(unit, run.state.units[unit].generation) for unit in run.state.units_in(RUNNING)]
        unit, generation = (running or in_flight or _owed(run.state))[0]
        run.act(NodeEnded(unit, generation, Outcome("x", usage=Usage(5, calls=1))))
        _check_waits(run.state, seed)


def _check_waits(state: RunState, seed: int) -> None:
    """Every unit that waits lacks something now, unless the window has no room."""
    if state.ended or state.activities >= state.window:
        return
    in_line = dict.fromkeys(unit for _, _, unit in state.heap)
    first = [heap[0][2] for heap in state.waiting_budget.values()]
    budget_holds = any(ready._lacking(state, unit) for unit in first)
    for unit in state.numbers():
        if not state.units[unit].queued:
            continue
        assert unit not in in_line, f"{seed}: it is ready, and there is room"
        rate = ready.rate_of(state, unit)
        lacks_rate = rate is not None and rate.room <= 0
        taken = [name for name, mode in state.locks_of(unit) if not state.locks.get(name, Lock()).admits(mode)]
        is_unpaid = unit in ready.unpaid(state) and budget_holds
        assert lacks_rate or taken or is_unpaid or ready.in_flight(state, unit), (seed, state.path(unit))
