"""How one unit's end affects the others: counts, admission, skips, joins, maps, fallback nodes."""

from workflows.plan.scheduling.admission import admit, consider, gather
from workflows.plan.scheduling.completion import NOT_NEEDED, end_without_value, fail, not_needed, skip_blocked, succeed
from workflows.plan.scheduling.events import Outcome
from workflows.plan.scheduling.state import (
    AWAITING_FALLBACK,
    BLOCKED,
    CANCELLED,
    EXPANDED,
    FAILED,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    RunState,
)


def propagate(state: RunState, unit: int) -> None:
    """Carry one unit's end to its consumers, joins, map, and the node it falls back for."""
    graph = state.graph
    if unit >= len(graph.specs):
        _item_ended(state, unit)
        return
    if unit in state.previous_result:
        state.revised.append(unit)
        return
    status = state.status[unit]
    if state.stale:
        _recount(state, unit)
    else:
        # joins first: one that closes may cancel a consumer before it is admitted
        for join in graph.joins[unit]:
            state.open_inputs[join] -= 1
            state.ok_inputs[join] += status == SUCCEEDED
            if state.awaiting_inputs[join]:
                consider(state, join)
        for node in graph.consumers[unit]:
            state.open_deps[node] -= 1
            if status == SUCCEEDED or unit in graph.specs[node].watches:
                if state.open_deps[node] == state.floor[node] and state.status[node] == PENDING:
                    admit(state, node)
            else:
                _block_or_skip(state, node, status)
    notify_fallbacks(state, unit, status)


def _recount(state: RunState, unit: int) -> None:
    """Count the other nodes again: while an edit passes through the graph, their counts are not reliable."""
    for node in state.graph.consumers[unit]:
        state.mark(node)
    for join in state.graph.joins[unit]:
        state.mark(join)


def _block_or_skip(state: RunState, node: int, cause: int) -> None:
    """Block a node behind a failure, or skip it behind a skip. A skip is stronger."""
    blocking = cause in (FAILED, BLOCKED)
    if state.status[node] == PENDING:
        state.inherited_failure[node] = True
        end_without_value(state, node, BLOCKED if blocking else SKIPPED)
    elif state.status[node] == BLOCKED and not blocking:
        skip_blocked(state, node)


def notify_fallbacks(state: RunState, unit: int, status: int) -> None:
    """Skip the fallback of a node that did not fail, and end the node whose fallback has ended."""
    fallback = state.graph.specs[unit].instead
    if fallback >= 0 and status == BLOCKED and state.status[fallback] == PENDING:
        _block_or_skip(state, fallback, BLOCKED)
    elif fallback >= 0 and status in (SUCCEEDED, SKIPPED, CANCELLED):
        blocked: list[int] = []
        not_needed(state, fallback, blocked)
        for node in blocked:
            skip_blocked(state, node, NOT_NEEDED)
    host = state.graph.fallback_for.get(unit)
    if host is None or state.status[host] != AWAITING_FALLBACK:
        return
    if state.graph.specs[host].kind == "program":
        state.millis[host] = state.now - state.started[host]
    if status == SUCCEEDED:
        succeed(state, host, Outcome(state.digest[unit], state.size[unit], state.facts.get(unit)))
    elif status == FAILED and state.graph.specs[unit].maker >= 0:  # a program's last step fails as the program does
        fail(state, host, *(state.notes.get(host) or state.notes[unit]))
    else:
        end_without_value(state, host, FAILED, state.notes.get(host) or state.notes.get(unit))


def _item_ended(state: RunState, unit: int) -> None:
    node = state.node_of(unit)
    if state.status[node] != EXPANDED or unit not in state.items[node]:
        return
    state.open_inputs[node] -= 1
    if not state.open_inputs[node]:
        gather(state, node)
