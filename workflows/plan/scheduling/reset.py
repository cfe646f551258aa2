"""Run again: how a node becomes pending once more, and where that leaves those behind it.

A node that has begun on the old output keeps what it made of it until the new one is known. One that has not is
*refreshed*: where it stands is worked out anew from what it depends on, after all of that has been.
"""

from workflows.plan.scheduling import admission, completion, joins, propagation, ready
from workflows.plan.scheduling.events import Cancel
from workflows.plan.scheduling.state import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    ENDED,
    FAILED,
    OPENED,
    PENDING,
    RUNNING,
    SHOWN,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)


def reopen(state: RunState, node: int) -> None:
    """Make a node pending again under a new generation; whoever has not begun on its old output waits."""
    stand_in_again(state, node)
    _restart(state, node)
    reset_standin(state, node)


def _restart(state: RunState, node: int) -> None:
    stop(state, node)
    forget(state, node)
    drop_items(state, node)
    state.status[node] = PENDING
    state.deadlines.pop(node, None)
    state.armed[node] = False
    state.chosen.pop(node, None)
    state.answers.pop(node, None)
    if node in state.graph.island_of:
        completion.dissolve(state, state.graph.island_of[node])
    for join in state.graph.timed.get(node, ()):
        if not begun(state, join):
            state.late.pop(join, None)
    state.mark(node)
    stir(state, node)


def drop_items(state: RunState, node: int) -> None:
    """Call off a map's items and forget them; the map opens again with new ones."""
    for item in state.items.pop(node, ()):
        if completion.live(state.status[item]):
            completion.call_off(state, item, CANCELLED, ("Replaced", "the map runs again"))
        state.digest[item] = None
        state.notes.pop(item, None)
        state.facts.pop(item, None)


def reset_standin(state: RunState, node: int) -> None:
    """A node runs again, so its stand-in steps back, and the stand-in's own."""
    standin = state.graph.specs[node].instead
    while standin >= 0:
        if begun(state, standin):
            _restart(state, standin)
        standin = state.graph.specs[standin].instead


def stand_in_again(state: RunState, standin: int) -> None:
    """A stand-in runs again: the node whose end it was waits for it once more."""
    ended = state.status[standin]
    host = state.graph.standin_for.get(standin)
    while host is not None and state.status[host] in (FAILED, SUCCEEDED):
        if state.status[host] == SUCCEEDED and ended != SUCCEEDED:
            return
        ended, note = state.status[host], state.notes.get(host)
        forget(state, host)
        state.status[host] = DELEGATED
        if note:
            state.notes[host] = note
        stir(state, host)
        host = state.graph.standin_for.get(host)


def stop(state: RunState, unit: int) -> None:
    """Call a unit's activity back, or withdraw its question; what follows is up to the caller."""
    if state.status[unit] == RUNNING:
        ready.release(state, unit)
        state.out.append(Cancel(unit, state.generation[unit]))
    elif state.status[unit] == WAITING:
        state.waiting -= 1
        state.deadlines.pop(unit, None)
    state.wishes.pop(unit, None)


def withdraw(state: RunState, node: int) -> None:
    """What a node that has not begun would read is in question: what a person said of it does not hold any more."""
    if state.status[node] == WAITING:
        stop(state, node)
        state.status[node] = PENDING
    state.approved.pop(node, None)
    state.answers.pop(node, None)
    state.mark(node)


def forget(state: RunState, node: int) -> None:
    """Drop a node's result, but keep how it ended, to compare with the next end."""
    if state.status[node] in ENDED or state.status[node] == BLOCKED:
        state.prior.setdefault(node, signature(state, node))
    state.generation[node] += 1
    state.digest[node] = None
    state.queued[node] = False
    for column in (state.facts, state.notes, state.derived, state.objections):
        column.pop(node, None)


def signature(state: RunState, node: int) -> str:
    """What others can have seen of a node's end: the digest of its value, or its status and error."""
    status = SKIPPED if state.status[node] == BLOCKED else state.status[node]
    if status == SUCCEEDED:
        return state.digest[node] or ""
    return f"{SHOWN[status]} {': '.join(state.notes.get(node, ()))}"


def stir(state: RunState, node: int) -> None:
    """Recheck those behind a reopened node that have not begun on its output; hold back what an open map has left."""
    for other in (*state.graph.consumers[node], *state.graph.joins[node]):
        if not begun(state, other):
            withdraw(state, other)
        elif state.status[other] == OPENED:
            for item in state.items[other]:
                state.queued[item] = False
    standin = state.graph.specs[node].instead
    if standin >= 0 and not begun(state, standin):
        state.mark(standin)


def begun(state: RunState, node: int) -> bool:
    """Whether a node has used, or is using, its inputs, so that only a changed input concerns it."""
    status = state.status[node]
    if node in state.derived:
        return False
    return status in ENDED or status in (RUNNING, DELEGATED, OPENED) or node in state.items or node in state.wishes


def refresh(state: RunState, node: int) -> None:
    """Work out anew where a node that has not begun stands, from what it depends on."""
    group = state.graph.island_of.get(node)
    if group is not None:
        completion.dissolve(state, group)
    if begun(state, node):
        return
    before, now = state.status[node], _standing(state, node)
    if now == PENDING and before != PENDING:
        stand_in_again(state, node)
    _count(state, node)
    stop(state, node)
    state.queued[node] = False
    state.armed[node] = False
    state.chosen.pop(node, None)
    if now != before:
        _moved(state, node, before, now)
    if now == PENDING and not state.missing[node]:
        admission.admit(state, node)


def _standing(state: RunState, node: int) -> int:
    """Return PENDING, BLOCKED or SKIPPED: what those a node needs have left it."""
    needs = [state.status[dep] for dep in state.graph.specs[node].needs]
    host = state.graph.standin_for.get(node)
    by_host = PENDING if host is None else state.status[host]
    if by_host in (SUCCEEDED, SKIPPED, CANCELLED) or SKIPPED in needs or CANCELLED in needs:
        return SKIPPED
    return BLOCKED if by_host == BLOCKED or FAILED in needs or BLOCKED in needs else PENDING


def _count(state: RunState, node: int) -> None:
    """Count what a node waits for from scratch. A blocked node counts as ended for those who only watch it."""
    spec, hosts = state.graph.specs[node], state.graph.standin_for
    missing = sum(state.status[dep] not in ENDED for dep in spec.needs)
    missing += sum(joins.is_open(state.status[dep]) for dep in spec.watches)
    missing += node in hosts and state.status[hosts[node]] != DELEGATED
    state.missing[node] = missing
    if spec.inputs:
        joins.count(state, node)


def _moved(state: RunState, node: int, before: int, now: int) -> None:
    """A node behind an edit changed sides: those who saw the old one compare, the others recount."""
    if before == BLOCKED or before in ENDED:
        state.prior.setdefault(node, signature(state, node))
    state.status[node] = now
    state.notes.pop(node, None)
    if now == PENDING:
        state.derived.pop(node, None)
    else:
        state.derived[node] = True
    if now != PENDING and node in state.prior:
        state.revised.append(node)
        return
    stir(state, node)
    if now != PENDING:
        propagation.standins(state, node, now)
