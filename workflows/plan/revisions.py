"""What a person changes while a run goes on: run a node again, give it up, and what follows from either.

A node that runs again keeps what was made of its old output until the new one is known. If it is the same, nothing
else happens; if not, those who read it run again in their turn, with a new generation.
"""

from workflows.plan import flow, joins, ready
from workflows.plan.decisions import Cancel
from workflows.plan.state import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    FAILED,
    OPENED,
    PARK,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)

_ENDED = (SUCCEEDED, FAILED, SKIPPED, CANCELLED)


def retry(state: RunState, unit: int) -> None:
    """Run a unit again. Of a map, the items that failed; if none did, the map itself."""
    state.parked = False
    state.deadlines.pop(PARK, None)
    if state.is_item(unit):
        _retry_items(state, state.node_of(unit), [unit])
        return
    failed = [item for item in state.items.get(unit, ()) if state.status[item] in (FAILED, CANCELLED)]
    if failed:
        _retry_items(state, unit, failed)
    else:
        reopen(state, unit)


def _retry_items(state: RunState, node: int, items: list[int]) -> None:
    if state.status[node] != OPENED:
        _forget(state, node)
        state.status[node] = OPENED
        _stir(state, node)
    for item in items:
        state.generation[item] += 1
        state.status[item] = PENDING
        state.digest[item] = None
        state.notes.pop(item, None)
        ready.queue(state, item)
    state.left[node] = sum(state.status[item] not in _ENDED for item in state.items[node])


def reopen(state: RunState, node: int) -> None:
    """Make a node pending again under a new generation; whoever has not begun on its old output waits."""
    _stop(state, node)
    state.deadlines.pop(node, None)
    _forget(state, node)
    for item in state.items.pop(node, ()):
        if joins.live(state.status[item]):
            flow.call_off(state, item, CANCELLED, ("Replaced", "the map runs again"))
    state.status[node] = PENDING
    state.armed[node] = False
    state.chosen.pop(node, None)
    state.answers.pop(node, None)
    _reset_standin(state, node)
    if node in state.graph.island_of:
        flow.dissolve(state, state.graph.island_of[node])
    state.stale.append(node)
    _stir(state, node)


def _stop(state: RunState, node: int) -> None:
    if state.status[node] == RUNNING:
        ready.release(state, node)
        state.out.append(Cancel(node, state.generation[node]))
    elif state.status[node] == WAITING:
        state.waiting -= 1
        state.deadlines.pop(node, None)


def _forget(state: RunState, node: int) -> None:
    """Drop a node's result, but keep its digest to compare the next one with."""
    if state.status[node] in (SUCCEEDED, FAILED, SKIPPED, CANCELLED, RUNNING):
        state.prior.setdefault(node, state.digest[node] or "")
    state.generation[node] += 1
    state.digest[node] = None
    state.queued[node] = False
    for column in (state.facts, state.notes, state.derived):
        column.pop(node, None)


def _reset_standin(state: RunState, node: int) -> None:
    standin = state.graph.specs[node].instead
    if standin < 0:
        return
    _stop(state, standin)
    if state.status[standin] != PENDING:
        _forget(state, standin)
        state.prior.pop(standin, None)
        state.status[standin] = PENDING
    state.stale.append(standin)


def _stir(state: RunState, node: int) -> None:
    """Recheck those behind a reopened node that have not begun on its output."""
    for other in (*state.graph.consumers[node], *state.graph.joins[node]):
        if not begun(state, other):
            state.stale.append(other)


def begun(state: RunState, node: int) -> bool:
    """Whether a node has used, or is using, its inputs, so that only a changed input concerns it."""
    status = state.status[node]
    if node in state.derived:
        return False
    return status in _ENDED or status in (RUNNING, DELEGATED, OPENED)


def refresh(state: RunState, node: int) -> None:
    """Work out anew where a node that has not begun stands, from what it depends on."""
    if begun(state, node):
        return
    before = state.status[node]
    _stop(state, node)
    state.queued[node] = False
    state.armed[node] = False
    _count(state, node)
    needs = [state.status[dep] for dep in state.graph.specs[node].needs]
    if any(status in (FAILED, BLOCKED, SKIPPED, CANCELLED) for status in needs):
        now = BLOCKED if FAILED in needs or BLOCKED in needs else SKIPPED
        state.derived[node] = True
    else:
        now = PENDING
        state.derived.pop(node, None)
        state.notes.pop(node, None)
    state.status[node] = now
    if now != before:
        _moved(state, node, before, now)
    if now == PENDING and state.missing[node] == state.floor[node]:
        flow.admit(state, node)


def _count(state: RunState, node: int) -> None:
    """Count what a node waits for from scratch. A blocked node counts as ended for those who only watch it."""
    spec, hosts = state.graph.specs[node], state.graph.standin_for
    missing = sum(state.status[dep] not in _ENDED for dep in spec.needs)
    missing += sum(joins.is_open(state.status[dep]) for dep in spec.watches)
    missing += node in hosts and state.status[hosts[node]] != DELEGATED
    state.missing[node] = missing
    if spec.kind == "join":
        joins.count(state, node)


def _moved(state: RunState, node: int, before: int, now: int) -> None:
    """A node behind an edit changed sides: those behind it recount, and those that went on without it may run again."""
    group = state.graph.island_of.get(node)
    if group is not None:
        flow.dissolve(state, group)
    if before in (BLOCKED, *_ENDED):
        state.prior.setdefault(node, "")
    if now == SKIPPED and node in state.prior:
        state.revised.append(node)
    else:
        _stir(state, node)


def give_up(state: RunState, unit: int) -> None:
    """Skip a unit that has no value, for good, and let what is behind it know."""
    state.parked = False
    state.deadlines.pop(PARK, None)
    before, node = state.status[unit], state.node_of(unit)
    note = ("GivenUp", "a person gave it up")
    if before not in (FAILED, BLOCKED):
        flow.call_off(state, unit, SKIPPED, note)
        return
    state.status[unit] = SKIPPED
    state.notes[unit] = note
    state.derived.pop(unit, None)
    if unit == node:
        _stir(state, unit)
    elif state.status[node] != OPENED:
        _retry_items(state, node, [])
        if not state.left[node]:
            flow.gather(state, node)


def revise(state: RunState, node: int) -> None:
    """A node that ran again has ended: whoever read another output of it runs again too."""
    same = state.status[node] == SUCCEEDED and state.prior.pop(node, "") == state.digest[node]
    state.prior.pop(node, None)
    for other in state.graph.consumers[node]:
        if begun(state, other) and not same:
            reopen(state, other)
        else:
            state.stale.append(other)
    for join in state.graph.joins[node]:
        picky = state.graph.specs[join].policy in ("first", "quorum")
        if not begun(state, join):
            state.stale.append(join)
        elif not same and not (picky and node not in state.chosen.get(join, ())):
            reopen(state, join)
    host = state.graph.standin_for.get(node)
    if host is not None and state.status[host] == DELEGATED:
        state.work.append(node)
