"""What a person changes while a run goes on: run a node again, give it up, and what follows from either.

When a node that ran again ends as it did before, nothing else happens; if not, those who read it run again in their
turn, with a new generation.
"""

from workflows.plan.scheduling import admission, cancellation, completion, propagation, reset, termination
from workflows.plan.scheduling.state import (
    BLOCKED,
    CANCELLED,
    ENDED,
    EXPANDED,
    FAILED,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    RunState,
)

_GIVEN_UP = ("Skipped", "a person skipped it")


def retry(state: RunState, unit: int) -> None:
    """Run a unit again, and what was called off above it. Of a map, the items that failed; if none did and the map has,
    it only gathers them again; else the whole map.

    An item takes with it those of its map that were called off.
    """
    node = state.node_of(unit)
    if state.is_item(unit) and unit not in state.items.get(node, ()):
        return
    termination.unpark(state)
    for other in _called_off_above(state, node):
        reset.reset(state, other)
    items = _lost(state, unit)
    if items:
        _retry_items(state, node, items)
    elif state.items.get(node) and _did_not_gather(state, node):
        _gather_again(state, node)
    else:
        reset.reset(state, node)


def again(state: RunState, unit: int) -> list[int]:
    """Return what of a unit's own node runs again with it: the node, or items of a map, none if it only gathers."""
    node = state.node_of(unit)
    items = state.items.get(node)
    return (_lost(state, unit) or ([] if _did_not_gather(state, node) else list(items))) if items else [node]


def _lost(state: RunState, unit: int) -> list[int]:
    """Return the items of its map that run again with a unit: an item itself, and those that have no value."""
    lost = (CANCELLED,) if state.is_item(unit) else (FAILED, CANCELLED)
    items = state.items.get(state.node_of(unit), ())
    return [item for item in items if item == unit or state.status[item] in lost]


def _did_not_gather(state: RunState, node: int) -> bool:
    """Whether a map has failed itself, and not for want of a body that only its items can make again."""
    return node in state.notes and state.notes[node][0] != "BodyMissing"


def _called_off_above(state: RunState, node: int) -> list[int]:
    """Return the called-off nodes without which this one could not run."""
    found: dict[int, bool] = {}
    stack = [node]
    while stack:
        here = stack.pop()
        if state.status[here] == SUCCEEDED:
            continue
        for other in (*state.graph.deps[here], *state.graph.specs[here].inputs):
            if state.status[other] == CANCELLED and other not in found:
                found[other] = True
                stack.append(other)
    return list(found)


def _retry_items(state: RunState, node: int, items: list[int]) -> None:
    if state.status[node] != EXPANDED:
        reset.await_fallback_again(state, node)
        reset.stop(state, node)
        reset.forget(state, node)
        state.status[node] = EXPANDED
        reset.reset_fallback(state, node)
        reset.recheck_dependents(state, node)
    for item in items:
        reset.stop(state, item)
        state.generation[item] += 1
        state.generation[node] = max(state.generation[node], state.generation[item])
        state.status[item] = PENDING
        state.digest[item] = None
        state.queued[item] = False
        state.notes.pop(item, None)
    state.open_inputs[node] = sum(state.status[item] not in ENDED for item in state.items[node])
    completion.resume(state, node)


def skip(state: RunState, unit: int) -> None:
    """Skip a unit that has no value, for good, and let what is behind it know. With the calls of its tool loop, which
    nobody else reads.
    """
    before, node = state.status[unit], state.node_of(unit)
    if before in (SUCCEEDED, SKIPPED, CANCELLED):
        return
    if unit != node and unit not in state.items.get(node, ()):
        return
    termination.unpark(state)
    if before not in (FAILED, BLOCKED):
        gone = cancellation.with_fallbacks(state, unit)
        completion.call_off(state, unit, SKIPPED, _GIVEN_UP)
        cancellation.cancel_calls(state, gone)
    elif unit == node:
        state.inherited_failure.pop(unit, None)
        completion.skip_blocked(state, unit, _GIVEN_UP)
    else:
        _give_up_item(state, unit, node)


def _give_up_item(state: RunState, item: int, node: int) -> None:
    """The map that failed for want of this item gathers again."""
    state.status[item] = SKIPPED
    state.notes[item] = _GIVEN_UP
    if state.notes.get(node, ("", ""))[0] == "MapFailed":
        _gather_again(state, node)


def _gather_again(state: RunState, node: int) -> None:
    _retry_items(state, node, [])
    if not state.open_inputs[node]:
        admission.gather(state, node)


def revise(state: RunState, node: int) -> None:
    """A node that ran again has ended: whoever read another output of it runs again too."""
    status = state.status[node]
    if node not in state.previous_result or completion.live(status):
        return
    same = state.previous_result.pop(node) == reset.signature(state, node)
    for other in state.graph.consumers[node]:
        _follow(state, other, same)
    for join in state.graph.joins[node]:
        _follow(state, join, same or not _concerns(state, join, node))
    propagation.notify_fallbacks(state, node, status)


def _concerns(state: RunState, join: int, node: int) -> bool:
    """Whether a join that has begun took this input: `first` and `quorum` leave some out."""
    picky = state.graph.specs[join].policy in ("first", "quorum")
    return not picky or join not in state.chosen or node in state.chosen[join]


def _follow(state: RunState, other: int, same: bool) -> None:
    if not reset.has_started(state, other):
        if same:
            state.mark(other)
        else:
            reset.withdraw(state, other)
    elif same:
        completion.resume(state, other)
    elif state.status[other] == CANCELLED or state.notes.get(other) == _GIVEN_UP:
        reset.drop_items(state, other)
    else:
        state.approved.pop(other, None)
        reset.reset(state, other)
