"""How one unit's end affects the others: counts, admission, skips, joins, maps, fallback nodes."""

from sennit.workflows.plan.scheduling import joins, programs
from sennit.workflows.plan.scheduling.admission import admit, consider, gather, may_open
from sennit.workflows.plan.scheduling.cancellation import cancel_running_calls
from sennit.workflows.plan.scheduling.completion import (
    NO_ITEMS,
    NOT_NEEDED,
    cancel,
    end_without_value,
    fail,
    feed,
    not_needed,
    skip_blocked,
    succeed,
)
from sennit.workflows.plan.scheduling.events import Outcome
from sennit.workflows.plan.scheduling.state import CALLS, RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    ENDED,
    EXPANDED,
    FAILED,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    Status,
)


def propagate(state: RunState, unit: int) -> None:
    """Carry one unit's end to its consumers, joins, map, and the node it falls back for."""
    graph = state.graph
    if state.is_item(unit):
        _item_ended(state, unit)
        return
    if graph.specs[unit].maker >= 0 and state.units[unit].status in ENDED:
        state.units[unit].note_end(state.now)
        state.deadlines.pop(CALLS - unit, None)
    _end_loop(state, unit)

    # Dependents compare the end of a node that ran again with its end before; see `retry.revise`.
    if state.units[unit].previous_result is not None:
        state.revised.append(unit)
        return

    # Maps whose items ran behind its items, then everything that counts it.
    status = state.units[unit].status
    for node in graph.pipes.get(unit, ()):
        if state.runs_behind(node, unit):
            source_ended(state, node, status)
    if state.stale:
        _recount(state, unit)
    else:
        # joins first: one that closes may cancel a consumer before it is admitted
        for join in graph.joins[unit]:
            _count_in(state, join, status)
        for node in graph.consumers[unit]:
            state.units[node].open_deps -= 1
            if status == SUCCEEDED or unit in graph.specs[node].watches:
                if may_open(state, node) and node not in state.items:
                    admit(state, node)
            elif not state.runs_behind(node, unit):
                _block_or_skip(state, node, status)

    # The node that waits for it as its fallback, and the script that has called it.
    notify_fallbacks(state, unit, status)
    programs.hear(state, unit)


def _end_loop(state: RunState, unit: int) -> None:
    """Cancel the calls of a tool loop that its model has come to its answer without."""
    has_answered = state.units[unit].status in (SUCCEEDED, SKIPPED)
    if has_answered and state.graph.specs[unit].kind == "llm":
        cancel_running_calls(state, unit)


def _count_in(state: RunState, join: int, status: Status) -> None:
    """Count an input of a join that has ended."""
    if state.graph.specs[join].of_items:
        joins.count(state, join)
    else:
        state.units[join].open_inputs -= 1
        if status == SUCCEEDED:
            state.units[join].ok_inputs += 1
    if state.units[join].awaiting_inputs:
        consider(state, join)


def _recount(state: RunState, unit: int) -> None:
    """Count the other nodes again: while an edit passes through the graph, their
    counts are not reliable.
    """
    for node in state.graph.consumers[unit]:
        state.mark(node)
    for join in state.graph.joins[unit]:
        state.mark(join)


def _block_or_skip(state: RunState, node: int, cause: int) -> None:
    """Block a node behind a failure, or skip it behind a skip. A skip is stronger."""
    blocking = cause in (FAILED, BLOCKED)
    if state.units[node].status == PENDING:
        state.units[node].inherited_failure = True
        ending = BLOCKED if blocking else SKIPPED
        end_without_value(state, node, ending)
    elif state.units[node].status == BLOCKED and not blocking:
        skip_blocked(state, node)


def source_ended(state: RunState, node: int, status: Status) -> None:
    """Go on with a map whose items ran behind those of a map that has ended: if that was skipped or
    cancelled it ends, else when all its items have ended.
    """
    is_source_gone = status in (SKIPPED, CANCELLED)
    if state.units[node].status == BLOCKED and is_source_gone:
        skip_blocked(state, node)
    elif state.units[node].status == EXPANDED and is_source_gone:
        state.units[node].inherited_failure = True
        cancel(state, node, SKIPPED, NO_ITEMS)
    elif state.units[node].status == EXPANDED and not state.units[node].open_inputs:
        gather(state, node)


def notify_fallbacks(state: RunState, unit: int, status: Status) -> None:
    """Skip the fallback of a node that did not fail, and end the node whose fallback has ended."""
    fallback = state.graph.specs[unit].successor
    if fallback >= 0:
        _release_fallback(state, fallback, status)
    host = state.graph.predecessor.get(unit)
    if host is not None and state.units[host].status == DELEGATED:
        _end_host(state, host, unit, status)


def _release_fallback(state: RunState, fallback: int, status: Status) -> None:
    """Block a fallback whose node is blocked, and skip that of a node that did not fail."""
    if status == BLOCKED and state.units[fallback].status == PENDING:
        _block_or_skip(state, fallback, BLOCKED)
    elif status in (SUCCEEDED, SKIPPED, CANCELLED):
        blocked: list[int] = []
        not_needed(state, fallback, blocked)
        for node in blocked:
            skip_blocked(state, node, NOT_NEEDED)


def _end_host(state: RunState, host: int, fallback: int, status: Status) -> None:
    """End a node as its fallback has ended. The node keeps its own error, if it has one."""
    if status == SUCCEEDED:
        ended = state.units[fallback]
        value = Outcome(ended.digest, ended.size, ended.facts, at=ended.ended_at or 0)
        succeed(state, host, value)
    elif status == FAILED and state.graph.specs[fallback].maker >= 0:
        # The last turn fails as the tool loop does.
        kind, message = state.notes.get(host) or state.notes[fallback]
        fail(state, host, kind, message)
    else:
        note = state.notes.get(host) or state.notes.get(fallback)
        end_without_value(state, host, FAILED, note)


def _item_ended(state: RunState, unit: int) -> None:
    """Carry the end of a unit of an item to what waits for its value, to joins of
    items, and to its map.
    """
    node = state.node_of(unit)
    if state.units[node].status != EXPANDED or unit not in state.items[node]:
        return
    if state.units[unit].previous_result is not None:
        state.revised.append(unit)
        return
    state.units[node].open_inputs -= 1
    for dependent in state.behind(unit):
        feed(state, dependent)
    if unit in state.values(node):
        _tell_joins(state, node, state.units[unit].status)
    if state.units[node].status == EXPANDED and not state.units[node].open_inputs:
        gather(state, node)


def _tell_joins(state: RunState, node: int, status: Status) -> None:
    """Count the end of an item for the joins of its map's items. One that closes
    may cancel the others.
    """
    for join in joins.of_items(state, node):
        if state.stale:
            state.mark(join)
            continue
        state.units[join].open_inputs -= 1
        if status == SUCCEEDED:
            state.units[join].ok_inputs += 1
        if state.units[join].awaiting_inputs:
            consider(state, join)
