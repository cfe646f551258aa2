"""Resets nodes: makes a node pending again, and follows up on the nodes behind it.

A dependent that has started on the old output keeps its own result until the new output is known. A
dependent that has not started is *refreshed*: its status is worked out again from its dependencies,
once all of those are.
"""

from sennit.workflows.plan.digests import digest_in
from sennit.workflows.plan.scheduling import (
    admission,
    completion,
    joins,
    programs,
    propagation,
    ready,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    ENDED,
    EXPANDED,
    FAILED,
    IN_DOUBT,
    PENDING,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
    WAITING,
    Status,
)

_STARTED = (*ENDED, RUNNING, DELEGATED, EXPANDED, IN_DOUBT)
"""The statuses of nodes that use or have used their inputs."""


def reset(state: RunState, node: int) -> None:
    """Make a node pending again under a new generation. Dependents that have not started
    on its old output wait.
    """
    await_fallback_again(state, node)
    _restart(state, node)
    reset_fallback(state, node)


def _restart(state: RunState, node: int) -> None:
    """Make a node pending again, without the fallbacks before and behind it."""
    stop(state, node)
    forget(state, node)

    # What has grown out of the old output goes: items of maps behind it, joins that have closed
    # with its items, its own items, and what its script has come to.
    for other in state.graph.pipes.get(node, ()):
        if other in state.items and state.units[other].status not in ENDED:
            reset(state, other)
    for join in takers(state, node):
        reset(state, join)
    drop_items(state, node)
    programs.begin_again(state, node)

    # Then the node stands as if it had never started.
    state.set_status(node, PENDING)
    state.deadlines.pop(node, None)
    state.units[node].awaiting_inputs = False
    state.units[node].chosen = None
    for join in state.graph.timed.get(node, ()):
        if not has_started(state, join):
            state.units[join].past_deadline = None
    state.mark(node)
    recheck_dependents(state, node)


def takers(state: RunState, node: int) -> list[int]:
    """Return the joins of a map's items that have closed with the values of some of them."""
    closed: list[int] = []
    for join in joins.of_items(state, node):
        if state.units[join].chosen is None or state.units[join].status in (BLOCKED, CANCELLED):
            continue
        kind = state.notes.get(join, ("",))[0]
        if kind != "Skipped":
            closed.append(join)
    return closed


def drop_items(state: RunState, node: int) -> None:
    """Cancel a map's items and drop them; the map opens again with new ones. Those that write are
    only forgotten: what they have written, and what is still in flight, is to be told.
    """
    for item in state.items.pop(node, ()):
        if completion.live(state.units[item].status):
            completion.cancel(state, item, CANCELLED, ("Replaced", "the map runs again"))
        if state.spec_of(item).effect != "write":
            state.drop(item)
            continue
        state.units[item].digest = None
        state.notes.pop(item, None)
        state.units[item].facts = None
    for join in joins.of_items(state, node):  # of those that are over: they do not run again for it
        state.units[join].chosen = None


def reset_fallback(state: RunState, node: int) -> None:
    """Restart the fallback of a node that runs again, and that fallback's own
    fallback, if they have started.
    """
    fallback = state.graph.specs[node].successor
    while fallback >= 0:
        if has_started(state, fallback):
            _restart(state, fallback)
        fallback = state.graph.specs[fallback].successor


def await_fallback_again(state: RunState, fallback: int) -> None:
    """Have the node whose fallback runs again wait for it once more. It keeps its own error,
    but not the fallback's.
    """
    ended = state.units[fallback].status
    note_of_fallback = state.notes.get(fallback)
    host = state.graph.predecessor.get(fallback)
    while host is not None and state.units[host].status in (FAILED, SUCCEEDED):
        has_own_value = state.units[host].status == SUCCEEDED and ended != SUCCEEDED
        if has_own_value:
            return
        ended = state.units[host].status
        note = state.notes.get(host)
        forget(state, host)
        state.set_status(host, DELEGATED)
        if note and note != note_of_fallback:
            state.notes[host] = note
        recheck_dependents(state, host)
        host = state.graph.predecessor.get(host)


def stop(state: RunState, unit: int) -> None:
    """Cancel a unit's activity, or withdraw its question to a person. The
    caller decides what follows.
    """
    if state.units[unit].status == RUNNING:
        put_off_behind(state, unit)
        completion.cut_off(state, unit)
    elif state.units[unit].status == WAITING:
        completion.no_longer_wait(state, unit)


def put_off_behind(state: RunState, unit: int) -> None:
    """Stop what runs behind a unit in its activity: it may have read there what is now
    made again, or given up.
    """
    for other in ready.behind_in_activity(state, unit):
        completion.cut_off(state, other)
        state.units[other].generation += 1
        state.set_status(other, PENDING)
        state.mark(other)


def withdraw(state: RunState, node: int) -> None:
    """Withdraw the question to a person about a node that has not started, because the
    node's inputs may change.

    An approval stays: it holds for the same values only.
    """
    if state.units[node].status == WAITING:
        stop(state, node)
        state.set_status(node, PENDING)
    state.answers.pop(node, None)
    state.mark(node)


def forget(state: RunState, node: int) -> None:
    """Drop a node's result, but keep how it ended, to compare with its next end."""
    status = state.units[node].status
    if status in ENDED or status == BLOCKED:
        keep_result(state, node)
    completion.decided(state, node)
    state.units[node].begin_again(is_of_program=state.spec_of(node).maker >= 0)
    state.notes.pop(node, None)
    state.taken_over.pop(node, None)
    state.answers.pop(node, None)


def keep_result(state: RunState, unit: int) -> None:
    """Keep how a unit has ended, to compare its next end with it. What is kept already stays: that
    is what others have seen.
    """
    if state.units[unit].previous_result is None:
        state.units[unit].previous_result = signature(state, unit)


def ends_as_before(state: RunState, unit: int) -> bool:
    """Whether a unit has ended as it did before it ran again, which is not kept any longer."""
    before = state.units[unit].previous_result
    state.units[unit].previous_result = None
    return before == signature(state, unit)


def signature(state: RunState, node: int) -> str:
    """Return what other nodes can see of a node's end: the digest of its value,
    or its status and error.
    """
    status = state.units[node].status
    if status == SUCCEEDED:
        return digest_in(state.units[node].digest or "")
    if status == BLOCKED:
        status = SKIPPED
    note = ": ".join(state.notes.get(node, ()))
    return f"{STATUS_NAMES[status]} {note}"


def recheck_dependents(state: RunState, node: int) -> None:
    """Recheck the dependents of a reset node that have not started on its output, and hold back
    pending items of open maps.
    """
    for dependent in (*state.graph.consumers[node], *state.graph.joins[node]):
        if not has_started(state, dependent):
            withdraw(state, dependent)
        elif state.units[dependent].status == EXPANDED and not state.runs_behind(dependent, node):
            for item in state.items[dependent]:
                state.units[item].queued = False
    fallback = state.graph.specs[node].successor
    if fallback >= 0 and not has_started(state, fallback):
        state.mark(fallback)
    program = state.graph.caller_of(node)
    if program >= 0:
        programs.wake(state, program)


def has_started(state: RunState, node: int) -> bool:
    """Whether a node uses or has used its inputs, so that only a changed input concerns it."""
    if state.units[node].inherited_failure:
        return False
    return state.units[node].status in _STARTED or node in state.items


def refresh(state: RunState, node: int) -> None:
    """Work out the status of a node that has not started again, from its dependencies."""
    if has_started(state, node):
        return
    before = state.units[node].status
    now = _standing(state, node)
    if now == PENDING and before != PENDING:
        await_fallback_again(state, node)

    # The node waits from scratch, for what is missing now.
    _count(state, node)
    stop(state, node)
    state.units[node].queued = False
    state.units[node].awaiting_inputs = False
    state.units[node].chosen = None

    # Dependents hear of its status before it may start.
    if now != before:
        _moved(state, node, before, now)
    if now == PENDING and admission.may_open(state, node):
        admission.admit(state, node)


def _standing(state: RunState, node: int) -> Status:
    """Return PENDING, BLOCKED or SKIPPED, according to the dependencies of a node."""
    needs = [state.units[dep].status for dep in state.graph.specs[node].needs]
    host = state.graph.predecessor.get(node)
    by_host = PENDING if host is None else state.units[host].status
    if by_host in (SUCCEEDED, SKIPPED, CANCELLED) or SKIPPED in needs or CANCELLED in needs:
        return SKIPPED
    if by_host == BLOCKED or FAILED in needs or BLOCKED in needs:
        return BLOCKED
    return PENDING


def _count(state: RunState, node: int) -> None:
    """Count from scratch what a node waits for. A blocked node counts as ended for joins
    that tolerate failures.
    """
    spec = state.graph.specs[node]
    missing = 0
    for dep in spec.needs:
        if state.units[dep].status not in ENDED:
            missing += 1
    for dep in spec.watches:
        if joins.is_open(state.units[dep].status):
            missing += 1
    host = state.graph.predecessor.get(node)
    if host is not None and state.units[host].status != DELEGATED:
        missing += 1
    state.units[node].open_deps = missing
    if spec.inputs:
        joins.count(state, node)


def _moved(state: RunState, node: int, before: Status, now: Status) -> None:
    """Change the status of a node: dependents that saw its old end compare, and
    the others are rechecked.
    """
    if before == BLOCKED or before in ENDED:
        keep_result(state, node)
    state.set_status(node, now)
    state.notes.pop(node, None)
    state.units[node].inherited_failure = now != PENDING
    if now != PENDING and state.units[node].previous_result is not None:
        state.revised.append(node)
        return
    recheck_dependents(state, node)
    if now != PENDING:
        propagation.notify_fallbacks(state, node, now)
