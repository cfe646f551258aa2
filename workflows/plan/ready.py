"""The ready units in order, and the locks that hold some of them back."""

from heapq import heappush

from workflows.plan.state import RunState


def queue(state: RunState, unit: int) -> None:
    """Put a unit among the ready ones: by priority, then critical path, then position."""
    state.queued[unit] = True
    node = state.node_of(unit)
    priority, rank, _ = state.graph.keys[node]
    heappush(state.heap, (priority, rank, unit))


def take(state: RunState, unit: int) -> bool:
    """Take all of a unit's locks or none. A lock counts its shared holders; -1 is one exclusive holder."""
    locks = state.graph.locks[state.node_of(unit)]
    for name, exclusive in locks:
        holders = state.held.get(name, 0)
        if holders < 0 or (exclusive and holders):
            return False
    for name, exclusive in locks:
        state.held[name] = -1 if exclusive else state.held.get(name, 0) + 1
    return True


def release(state: RunState, unit: int) -> None:
    """A running unit has ended: give back its slot and its locks, and let those who waited for one try again."""
    state.running -= 1
    locks = state.graph.locks[state.node_of(unit)]
    if not locks:
        return
    for name, exclusive in locks:
        state.held[name] -= -1 if exclusive else 1
    for waiter in state.held_back:
        if state.queued[waiter]:
            queue(state, waiter)
    state.held_back.clear()
