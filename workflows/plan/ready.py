"""The ready units in order, and the locks that hold some of them back."""

from heapq import heappush

from workflows.plan.budget import Amounts, Budget
from workflows.plan.state import RunState


def queue(state: RunState, unit: int) -> None:
    """Put a unit among the ready ones: by priority, then critical path, then position."""
    state.queued[unit] = True
    node = state.node_of(unit)
    priority, rank, _ = state.graph.keys[node]
    heappush(state.heap, (priority, rank, unit))


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
    """A running unit has ended: give back its slot and its locks, and let those who waited for one try again.

    What it had reserved is spent, unless its outcome has said better.
    """
    state.running -= 1
    if state.budget is not None:
        state.budget.settle(unit, None)
        price_again(state)
    locks = state.graph.locks[state.node_of(unit)]
    if not locks:
        return
    for name, exclusive in locks:
        state.held[name] -= -1 if exclusive else 1
    for waiter in state.held_back:
        if state.queued[waiter]:
            queue(state, waiter)
    state.held_back.clear()


def afford(state: RunState, units: tuple[int, ...]) -> bool:
    """Reserve what a start of these units is expected to take, or let it wait until something is settled or raised."""
    budget = state.budget
    if budget is None:
        return True
    estimates = [_estimate(state, budget, unit) for unit in units]
    total = Amounts()
    for wanted in estimates:
        total.add(wanted)
    if not budget.affords(total):
        state.unpaid.append(units[0])
        return False
    for unit, wanted in zip(units, estimates, strict=True):
        budget.reserve(unit, wanted)
    return True


def _estimate(state: RunState, budget: Budget, unit: int) -> Amounts:
    spec = state.spec_of(unit)
    kind = spec.item_kind if state.is_item(unit) else spec.kind
    return budget.estimate(spec.tokens, model=kind == "llm")


def price_again(state: RunState) -> None:
    """Let what could not be afforded try again."""
    waiting, state.unpaid = state.unpaid, []
    for unit in waiting:
        if state.queued[unit]:
            queue(state, unit)
