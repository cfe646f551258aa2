"""The queue of ready units, and the locks, rates and limits that hold some of them back."""

from heapq import heappop, heappush

from workflows.plan.scheduling.budget import Amounts, Budget, Rate
from workflows.plan.scheduling.state import RUNNING, SUCCEEDED, RunState


def queue(state: RunState, unit: int) -> None:
    """Put a unit among the ready ones: by priority, then critical path, then position."""
    state.queued[unit] = True
    node = state.node_of(unit)
    priority, rank, _ = state.graph.keys[node]
    heappush(state.heap, (priority, rank, unit))


def may_start(state: RunState, units: tuple[int, ...]) -> bool:
    """Whether these units may start now; if so, reserve what they are expected to use. If not, they wait for what is
    missing: their provider's rate, a lock or the budget.
    """
    unit = units[0]
    rate = rate_of(state, unit)
    if rate is not None and rate.room <= 0:
        heappush(rate.waiting, (*state.graph.keys[state.node_of(unit)][:2], unit))
        return False
    if not free(state, unit):
        state.waiting_locks.append(unit)
    elif afford(state, units):
        return True
    if rate is not None:
        _requeue(state, rate)
    return False


def rate_of(state: RunState, unit: int) -> Rate | None:
    """Return the rate of the provider that a unit calls, if it is a model call and a rate was declared.

    A unit that only adds approved nodes calls none, nor does one that a person has answered.
    """
    if not state.rates or unit in state.expansion_requests or unit in state.answers:
        return None
    return state.rates.get(state.spec_of(unit).queue) if state.kind_of(unit) == "llm" else None


def _requeue(state: RunState, rate: Rate) -> None:
    """Queue as many waiting units as there is room for, in order."""
    moved, last = 0, -1
    while rate.waiting and moved < rate.room:
        unit = heappop(rate.waiting)[2]
        if state.queued[unit] and unit != last:  # it is there twice if it was cancelled and queued again
            queue(state, unit)
            moved, last = moved + 1, unit


def renew(state: RunState, rates: dict[str, Rate]) -> None:
    """Apply these rates, with what they have counted so far, to a state, and count what runs in it."""
    state.rates = {name: Rate(rate.limit, rate.calls, rate.ended) for name, rate in rates.items()}
    for unit, status in enumerate(state.status if rates else ()):
        rate = rate_of(state, unit) if status == RUNNING else None
        if rate is not None:
            rate.running += 1


def free(state: RunState, unit: int) -> bool:
    """Whether all of a unit's locks are free for it. A lock counts its shared holders; -1 is one exclusive holder."""
    for name, exclusive in state.graph.locks[state.node_of(unit)]:
        holders = state.held.get(name, 0)
        if holders < 0 or (exclusive and holders):
            return False
    return True


def take(state: RunState, unit: int) -> None:
    """Take all of a unit's locks, which are free."""
    for name, exclusive in state.graph.locks[state.node_of(unit)]:
        state.held[name] = state.held.get(name, 0) + (-1 if exclusive else 1)


def release(state: RunState, unit: int) -> None:
    """Free the slot and the locks of a unit that has stopped running, and queue those that waited for a lock.

    What it had reserved counts as spent, unless its outcome has settled that.
    """
    state.running -= 1
    rate = rate_of(state, unit)
    if rate is not None:
        rate.running -= 1
        _requeue(state, rate)
    if state.budget is not None:
        state.budget.settle(unit, None)
        requeue_unpaid(state)
    locks = state.graph.locks[state.node_of(unit)]
    if not locks:
        return
    for name, exclusive in locks:
        state.held[name] -= -1 if exclusive else 1
    for waiter in state.waiting_locks:
        if state.queued[waiter]:
            queue(state, waiter)
    state.waiting_locks.clear()


def afford(state: RunState, units: tuple[int, ...]) -> bool:
    """Reserve what a start of these units is expected to use, or let it wait until budget is freed or raised."""
    budget = state.budget
    if budget is None:
        return True
    if lacking(state, units[0]):
        state.waiting_budget.append(units[0])
        return False
    estimates = [_estimate(state, budget, unit) for unit in units]
    total = Amounts()
    for wanted in estimates:
        total.add(wanted)
    if not budget.affords(total):
        state.waiting_budget.append(units[0])
        return False
    for unit, wanted in zip(units, estimates, strict=True):
        budget.reserve(unit, wanted)
    return True


def lacking(state: RunState, unit: int) -> int:
    """Return how many model calls the budget lacks for the least that a program makes from its start; 0 for none.

    A program that runs again may take over all that programs have called so far, and in a fork any number of calls.
    """
    quote = None if state.is_item(unit) or state.forks else state.graph.specs[unit].quote
    if quote is None or state.budget is None or "calls" not in state.budget.limits:
        return 0
    known = 0
    if state.generation[unit] > 1:
        calls = (node for node, spec in enumerate(state.graph.specs) if spec.page and spec.kind == "llm")
        known = sum(state.status[node] == SUCCEEDED for node in calls)
    return max(0, quote.calls - known - state.budget.left("calls"))


def _estimate(state: RunState, budget: Budget, unit: int) -> Amounts:
    if unit in state.expansion_requests:  # its call is booked already
        return Amounts()
    if unit in state.answers:
        return Amounts(nodes=1)
    spec = state.spec_of(unit)
    return budget.estimate(spec.tokens, model=state.kind_of(unit) == "llm", price=spec.price)


def requeue_unpaid(state: RunState) -> None:
    """Queue the units again that wait for budget."""
    waiting, state.waiting_budget = state.waiting_budget, []
    for unit in waiting:
        if state.queued[unit]:
            queue(state, unit)
