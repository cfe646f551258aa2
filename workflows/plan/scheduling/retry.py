"""What a person changes while a run goes on: run a node again, give it up, and what follows from either.

When a node that ran again ends as it did before, nothing else happens; if not, those who read it run again in their
turn, with a new generation.
"""

import re

from workflows.plan.scheduling import admission, cancellation, completion, propagation, reset, termination
from workflows.plan.scheduling.state import (
    BLOCKED,
    CANCELLED,
    ENDED,
    EXPANDED,
    FAILED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    RunState,
)

_GIVEN_UP = ("Skipped", "a person skipped it")
_UNSURE = (
    "UnknownOutcome",
    "WorkerLost",
    "StoreUnavailable",
    "NodeTimeout",
    "OutputRefused",
    "SubAgentFailed",
    "RunFailed",
)
"""Failures of what may have written all the same."""
_TURN = re.compile(r"(?P<stem>.*t)(?P<number>\d+)\Z")


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
    """Skip a unit that has no value, for ok, and let what is behind it know. With the calls of its tool loop, which
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
    """Skip an item, and let the map that failed because of it gather again."""
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


def repeated(state: RunState, unit: int) -> list[int]:
    """Return the nodes that may write again what they wrote if a person has this unit run again, in the order found.

    A node writes where its tool or a tool of its sub-agent does; of a map, its items; what a tool loop has called is
    what its model may call again.
    """
    node = state.node_of(unit)
    own = [node] if any(_may_have_written(state, each) for each in again(state, unit)) else []
    return own + [
        other for other in _after(state, node) if any(_may_have_written(state, each) for each in _units(state, other))
    ]


def _units(state: RunState, node: int) -> tuple[int, ...]:
    """Return what does a node's work: itself, or a map's items."""
    return tuple(state.items.get(node, ())) if state.graph.specs[node].kind == "map" else (node,)


def _may_have_written(state: RunState, unit: int) -> bool:
    """Whether a unit writes, and has, or does now, or ended so that nobody knows."""
    if state.spec_of(unit).effect != "write":
        return False
    status, note = state.status[unit], state.notes.get(unit, ("",))[0]
    return status == RUNNING or note in _UNSURE or (status == SUCCEEDED and not note)


def _after(state: RunState, node: int) -> list[int]:
    """Return everything that may run again when a node does, in the order found.

    A node's fallback runs again with it; a node whose fallback runs again does not run itself.
    """
    graph = state.graph
    found = {(node, True): True}
    stack = [(node, True)]
    while stack:
        here, runs = stack.pop()
        fallback, host = graph.specs[here].instead, graph.fallback_for.get(here)
        others = [*graph.consumers[here], *graph.joins[here]]
        if runs and fallback >= 0:
            others += [fallback, *_calls(state, fallback)]
        for other in [(each, True) for each in others] + ([] if host is None else [(host, False)]):
            if other not in found:
                found[other] = True
                stack.append(other)
    return [other for other, runs in found if runs and other != node]


def _calls(state: RunState, turn: int) -> list[int]:
    """Return the calls that led to a turn of a tool loop: `n7_t1_all` joins those before `n7_t2`."""
    graph = state.graph
    found = _TURN.match(graph.specs[turn].id)
    join = graph.by_id.get(f"{found['stem']}{int(found['number']) - 1}_all") if found else None
    return graph.specs[join].inputs if join is not None else []
