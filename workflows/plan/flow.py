"""How one unit's end moves the others: admission, success, failure, skipping, calling off.

Every change of a unit that others depend on goes through the work list, never through recursion, so that a chain of
thousands of skips costs no stack and the order is explicit: first in, first out.
"""

from workflows.plan import joins, maps, ready
from workflows.plan.conditions import ConditionError
from workflows.plan.decisions import Ask, Cancel, Outcome
from workflows.plan.state import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    FAILED,
    OPENED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)


def settle(state: RunState, unit: int, outcome: Outcome) -> None:
    """Take the outcome of a unit that no longer runs."""
    if outcome.digest is not None:
        succeed(state, unit, outcome)
    elif outcome.again:
        put_back(state, unit)
    elif outcome.skipped:
        lose(state, unit, SKIPPED, ("Skipped", "its condition was false"))
    else:
        fail(state, unit, *(outcome.error or ("Failed", "no reason given")))


def succeed(state: RunState, unit: int, outcome: Outcome) -> None:
    """The unit has a value."""
    state.status[unit] = SUCCEEDED
    state.digest[unit] = outcome.digest
    state.size[unit] = outcome.size
    if outcome.facts:
        state.facts[unit] = outcome.facts
    state.work.append(unit)


def fail(state: RunState, unit: int, kind: str, message: str, *, derived: bool = False) -> None:
    """The unit has failed for good: do what its `on_error` says."""
    spec = state.spec_of(unit)
    item = state.is_item(unit)
    state.notes[unit] = (kind, message)
    fallback = spec.item_fallback if item else spec.fallback
    if fallback is not None:
        digest, size, facts = fallback
        succeed(state, unit, Outcome(digest, size, dict(facts)))
    elif spec.item_skip if item else spec.skip_on_error:
        lose(state, unit, SKIPPED, (kind, message))
    elif spec.instead >= 0 and not item and state.status[spec.instead] == PENDING:
        state.status[unit] = DELEGATED
        state.missing[spec.instead] -= 1
        if not state.missing[spec.instead]:
            admit(state, spec.instead)
    else:
        if derived:
            state.derived[unit] = True
        lose(state, unit, FAILED, (kind, message))


def lose(state: RunState, unit: int, status: int, note: tuple[str, str] | None = None) -> None:
    """The unit ends, or is blocked, without a value."""
    state.status[unit] = status
    state.queued[unit] = False
    if note:
        state.notes[unit] = note
    state.work.append(unit)


def spread(state: RunState, unit: int) -> None:
    """Carry one unit's end to its consumers, joins, map, and the node it stands in for."""
    graph = state.graph
    if unit >= len(graph.specs):
        _item_ended(state, unit)
        return
    status = state.status[unit]
    if unit in state.prior and status != BLOCKED:
        state.revised.append(unit)
        return
    for node in graph.consumers[unit]:
        state.missing[node] -= 1
        if state.status[node] != PENDING:
            continue
        if status == SUCCEEDED or unit in graph.specs[node].watches:
            if state.missing[node] == state.floor[node]:
                admit(state, node)
        else:
            _doom(state, node, status)
    for join in graph.joins[unit]:
        _arrived(state, join, status == SUCCEEDED)
    _standins(state, unit, status)


def _doom(state: RunState, node: int, cause: int) -> None:
    """A needed node gave no value: behind a failure wait blocked, behind a skip be skipped."""
    state.derived[node] = True
    lose(state, node, BLOCKED if cause in (FAILED, BLOCKED) else SKIPPED)
    if node in state.graph.island_of:
        dissolve(state, state.graph.island_of[node])


def _standins(state: RunState, unit: int, status: int) -> None:
    spec = state.graph.specs[unit]
    unneeded = spec.instead >= 0 and status in (SUCCEEDED, SKIPPED, CANCELLED)
    if unneeded and state.status[spec.instead] == PENDING and state.missing[spec.instead]:
        lose(state, spec.instead, SKIPPED, ("NotNeeded", f"{spec.id} did not fail"))
    host = state.graph.standin_for.get(unit)
    if host is None or state.status[host] != DELEGATED:
        return
    if status == SUCCEEDED:
        succeed(state, host, Outcome(state.digest[unit], state.size[unit], state.facts.get(unit)))
    else:
        lose(state, host, FAILED, state.notes.get(host))


def _arrived(state: RunState, join: int, good: bool) -> None:
    state.left[join] -= 1
    state.good[join] += good
    if state.armed[join]:
        consider(state, join)


def consider(state: RunState, join: int) -> None:
    """Close an admitted join if its policy says so, or fail it."""
    if state.status[join] != PENDING or state.queued[join]:
        return
    spec = state.graph.specs[join]
    ruling = joins.verdict(spec, state.left[join], state.good[join])
    if ruling == joins.CLOSE:
        close(state, join)
    elif ruling == joins.FAIL:
        state.deadlines.pop(join, None)
        fail(state, join, "JoinFailed", joins.reason(state, join), derived=True)


def close(state: RunState, join: int) -> None:
    """Fix the inputs a join takes, call off those it no longer wants, and queue it."""
    state.deadlines.pop(join, None)
    state.chosen[join] = joins.winners(state, join)
    ready.queue(state, join)
    for node in state.graph.specs[join].inputs:
        if node not in state.chosen[join] and joins.live(state.status[node]):
            unwant(state, node)


def unwant(state: RunState, node: int) -> None:
    """One consumer fewer; a live node that nobody wants any more is called off, and so on upwards."""
    stack = [node]
    while stack:
        here = stack.pop()
        state.demand[here] -= 1
        if state.demand[here] > 0 or not joins.live(state.status[here]):
            continue
        call_off(state, here, CANCELLED, ("NotNeeded", "the join it feeds is already decided"))
        spec = state.graph.specs[here]
        stack.extend(reversed((*state.graph.deps[here], *spec.inputs)))
        if spec.instead >= 0:
            stack.append(spec.instead)


def call_off(state: RunState, unit: int, status: int, note: tuple[str, str]) -> None:
    """End a unit that may be running, waiting or open; its late result will be ignored."""
    before = state.status[unit]
    if before == RUNNING:
        ready.release(state, unit)
        state.out.append(Cancel(unit, state.generation[unit]))
    elif before == WAITING:
        state.waiting -= 1
    elif before == OPENED:
        for item in state.items[unit]:
            if joins.live(state.status[item]):
                call_off(state, item, CANCELLED, note)
    state.deadlines.pop(unit, None)
    lose(state, unit, status, note)


def admit(state: RunState, node: int) -> None:
    """Everything the node depends on has ended well: decide its condition, then queue, ask, arm or open it."""
    group = state.graph.island_of.get(node)
    if group is not None and not state.dissolved[group]:
        state.gather[group] -= 1
        if not state.gather[group]:
            ready.queue(state, state.graph.islands[group][0])
        return
    spec = state.graph.specs[node]
    if spec.when is not None:
        try:
            holds = state.decide(spec.when)
        except ConditionError as error:
            fail(state, node, "ConditionError", str(error))
            return
        if not holds:
            lose(state, node, SKIPPED, ("Skipped", "its condition was false"))
            return
    enter(state, node)


def enter(state: RunState, node: int) -> None:
    """Queue, ask, arm or open an admitted node; called again when a person has answered."""
    spec = state.graph.specs[node]
    if spec.kind == "gate" and node not in state.answers:
        wait(state, node)
    elif spec.kind == "join":
        state.armed[node] = True
        consider(state, node)
    elif spec.approval and node not in state.approved:
        wait(state, node)
    elif spec.kind == "map":
        _open(state, node)
    else:
        ready.queue(state, node)


def wait(state: RunState, node: int) -> None:
    """Ask a person."""
    state.status[node] = WAITING
    state.waiting += 1
    spec = state.graph.specs[node]
    if spec.kind == "gate" and spec.deadline:
        state.deadlines[node] = state.now + spec.deadline
    state.out.append(Ask(node))


def put_back(state: RunState, unit: int) -> None:
    """A group's member is to be started again, alone."""
    state.status[unit] = PENDING
    group = state.graph.island_of.get(unit)
    if group is not None:
        dissolve(state, group)
    if state.is_item(unit):
        ready.queue(state, unit)
    else:
        state.stale.append(unit)


def dissolve(state: RunState, group: int) -> None:
    """The island no longer starts as one: its members go their own ways."""
    if state.dissolved[group]:
        return
    state.dissolved[group] = True
    for member in state.graph.islands[group]:
        state.floor[member] = 0
        state.queued[member] = False
        if state.status[member] == PENDING and not state.missing[member]:
            admit(state, member)


def _open(state: RunState, node: int) -> None:
    """A map's list is known: append one unit an item, or gather at once when there is none."""
    count = maps.length(state, node)
    if isinstance(count, str):
        fail(state, node, "MapFailed", count)
        return
    items = maps.append(state, node, count)
    if not count:
        ready.queue(state, node)
        return
    state.status[node] = OPENED
    for unit in items:
        ready.queue(state, unit)


def _item_ended(state: RunState, unit: int) -> None:
    node, _ = state.owner[unit - len(state.graph.specs)]
    if state.status[node] != OPENED or unit not in state.items[node]:
        return
    state.left[node] -= 1
    if not state.left[node]:
        gather(state, node)


def gather(state: RunState, node: int) -> None:
    """Every item of an open map has ended: collect their values, or fail if an item did."""
    failed = [item for item in state.items[node] if state.status[item] in (FAILED, CANCELLED)]
    state.status[node] = PENDING
    if not failed:
        ready.queue(state, node)
        return
    first = failed[0]
    error = ": ".join(state.notes.get(first, ("", "")))
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    fail(state, node, "MapFailed", f"{state.path(first)}{more} failed: {error}", derived=True)
