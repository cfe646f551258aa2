"""Decides whether a run goes on, ends, or is blocked: then nothing can move any more, and it parks for a person."""

from collections.abc import Container, Sequence
from functools import partial

from sennit.workflows.plan.scheduling import completion, joins, programs, ready, slices
from sennit.workflows.plan.scheduling.events import End, EndStatus
from sennit.workflows.plan.scheduling.state import (
    BLOCKED,
    CANCELLED,
    FAILED,
    IN_DOUBT,
    NEXT_TRY,
    PARK,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)

OUTAGES = ("RateLimited", "ServerFailed", "ServerUnreachable")
"""Failures of a model's server that cost nothing, and may be over later though nobody does anything."""
_NO_FAILURES = ("Skipped", "NotNeeded", "Cancelled", "Replaced")
"""Why nodes end without a value that have not failed."""
_CHANGES_NOTHING = ("tool", "llm", "join")
_RUN_OVER = ("Cancelled", "the run has ended without it")
FIRST_PAUSE, LONGEST_PAUSE = 30_000, 600_000
"""Milliseconds until the first attempt after an outage, and at most between two."""


def idle(state: RunState) -> bool:
    """Whether nothing runs, is ready, sleeps or waits for a person, and no more nodes are to come. What waits for
    budget may start once a cancelled call has told what it has used.
    """
    moves = state.ended or state.running or state.waiting or state.heap or state.streaming
    is_owed = state.budget is not None and state.budget.late and ready.unpaid(state)
    return state.begun and not moves and not is_asleep(state) and not is_owed and not slices.is_owed(state)


def is_asleep(state: RunState) -> bool:
    """Whether a program sleeps, so that the run goes on by itself."""
    return any(map(partial(_sleeps, state), state.deadlines))


def _sleeps(state: RunState, unit: int) -> bool:
    return unit >= 0 and state.kind_of(unit) == "tool"


def finish_or_park(state: RunState) -> None:
    """End or park a run in which nothing runs, is ready or waits for a person's answer.

    Nodes that the budget does not cover wait while the run is parked, and otherwise never run.
    """
    if not idle(state):
        return
    failed = blocking_failures(state)
    if failed and state.on_failure == "park":
        park(state)
        return
    if failed and state.on_failure == "fail":
        end(state, "failed")
        return
    unpaid = bool(ready.unpaid(state))
    if unpaid and state.on_failure == "park":
        park(state)
        return
    answered = all(state.status[node] == SUCCEEDED for node in state.graph.execution_plan.answer)
    whole = answered and not (failed or unpaid or any_unknown(state) or lost_maps(state) or _answers_nothing(state))
    end(state, "done" if whole else "partial")


def lost_maps(state: RunState) -> list[int]:
    """Return the maps that have a value although every one of their items has failed: `on_error` has skipped each."""
    return [node for node in state.items if state.status[node] == SUCCEEDED and _is_lost(state, node)]


def _answers_nothing(state: RunState) -> bool:
    """Whether all that the answer is made of was skipped because it had failed."""
    stack = list(state.graph.execution_plan.answer)
    leaves: list[int] = []
    seen: dict[int, None] = {}
    while stack:
        unit = stack.pop()
        if unit in seen:
            continue
        seen[unit] = None
        inputs = [] if state.is_item(unit) else joins.inputs_of(state, unit)
        if inputs and state.status[unit] == SUCCEEDED:
            stack += inputs
        else:
            leaves.append(unit)
    return bool(leaves) and all(_is_lost(state, unit) for unit in leaves)


def _is_lost(state: RunState, unit: int) -> bool:
    """Whether a unit has no value because it has failed, and `on_error` has skipped it; or a map, because all of its
    items have. What a condition or a person has skipped is not lost.
    """
    values = [] if state.is_item(unit) else state.values(unit)
    if values and state.status[unit] == SUCCEEDED:
        return all(_is_lost(state, item) for item in values)
    while state.is_item(unit) and state.status[unit] == SKIPPED and unit in state.inherited_failure:
        unit = state.before(unit)  # of a chain, what has failed is an earlier node
    if state.status[unit] != SKIPPED:
        return False
    return unit in state.notes and state.notes[unit][0] not in _NO_FAILURES


def unused_failures(state: RunState) -> list[int]:
    """Return the failed nodes without which a run is done: nothing uses them, and they have changed nothing."""
    return [unit for unit in state.units_in(FAILED) if not state.is_item(unit) and _is_unused(state, unit)]


def _is_unused(state: RunState, node: int) -> bool:
    """Whether nothing uses a node that only reads, computes or asks a model. What writes, asks a person or goes on by
    itself counts as used: a person wants to know.
    """
    graph, spec = state.graph, state.graph.specs[node]
    if spec.page or node in graph.answering or graph.behind(node):
        return False
    works = [spec, *spec.stages]
    kinds = [work.item_kind if work.kind == "map" else work.kind for work in works]
    return all(work.effect != "write" for work in works) and all(kind in _CHANGES_NOTHING for kind in kinds)


def any_unknown(state: RunState) -> bool:
    """Whether nobody knows of a write whether it was made, and no person has decided what to do about it."""
    return any(effect.status == "unknown" for effects in state.effects.values() for effect in effects)


def park(state: RunState) -> None:
    """Wait for a person, up to the park deadline. What an outage has failed is tried again meanwhile, each time after
    twice as long.
    """
    if state.parked:
        return
    state.parked = True
    state.deadlines[PARK] = state.now + state.park_for
    if outages(state):
        state.deadlines[PARK] = state.park_until or state.deadlines[PARK]
        state.pause = pause_after(state.pause)
        state.deadlines[NEXT_TRY] = state.now + state.pause


def pause_after(last: int) -> int:
    """Return the pause before the first try again, or after one that was not enough."""
    return min(2 * last, LONGEST_PAUSE) or FIRST_PAUSE


def unpark(state: RunState) -> None:
    """Go on, until nothing can move again."""
    state.parked = False
    state.deadlines.pop(PARK, None)
    state.deadlines.pop(NEXT_TRY, None)


def outages(state: RunState) -> tuple[int, ...]:
    """Return the blocking failures that may be over later: of models, sub-agents, and maps of those."""
    return tuple(node for node in blocking_failures(state) if _is_outage(state, node))


def _is_outage(state: RunState, node: int) -> bool:
    spec = state.spec_of(node)
    failed = [unit for unit in (node, *state.items.get(node, ())) if state.status[unit] == FAILED]
    calls = spec.calls_model or "agent" in (spec.kind, spec.item_kind)
    return calls and any(state.notes[unit][0] in OUTAGES for unit in failed if unit in state.notes)


def blocking_failures(state: RunState) -> tuple[int, ...]:
    """Return the writes in doubt, and the failed nodes that no tolerant join has excused, in plan order.

    A failure is excused if everything that depends on it has succeeded, or is itself blocked or failed by it and
    excused. A failed node that the answer names is not excused, nor is one that nothing consumes, except for reads,
    computations and model calls, for a call that a program does not read, or not any more, and for one that its script
    has caught. Of writes, only those are that the program was told of. What a script has called when it ran before, and
    not again, blocks nothing.
    """
    graph, status = state.graph, state.status
    failed = [node for node in range(len(graph.specs)) if status[node] == FAILED]
    if not failed:
        return tuple(state.units_in(IN_DOUBT))
    excused = _excused(state)
    caught = _caught(state, excused)
    failed = [node for node in failed if not excused[node] and node not in caught]
    failed = [node for node in failed if not programs.is_replaced(state, node)]
    blamed = [node for node in failed if _is_blamed(state, node)]
    roots = [node for node in blamed if not any(status[dep] in (FAILED, BLOCKED) for dep in _read(state, node))]
    return tuple(sorted((*state.units_in(IN_DOUBT), *(roots or blamed))))


def handled(state: RunState) -> dict[int, None]:
    """Return the calls and tasks of programs that have failed, and whose failure a script has caught."""
    return _caught(state, _excused(state)) if state.units_in(FAILED) else {}


def _caught(state: RunState, excused: Sequence[bool]) -> dict[int, None]:
    failed = [unit for unit in state.units_in(FAILED) if not state.is_item(unit) and state.graph.specs[unit].page]
    if not failed:
        return {}
    raised = dict.fromkeys(call for program in state.sessions for call in programs.failures_read(state, program))
    return dict.fromkeys(node for node in failed if excused[node] or _is_caught(state, node, raised))


def _is_caught(state: RunState, call: int, raised: Container[int]) -> bool:
    """Whether a script was told of the failure of a call and has gone on, or the loop of a model was."""
    if any(state.status[join] == SUCCEEDED for join in state.graph.joins[call]):
        return True
    return call not in raised and programs.has_taken_notice(state, call)


def _excused(state: RunState) -> list[bool]:
    """Return of each node whether nobody has to look at it: it has succeeded, or its failure is excused."""
    graph, status = state.graph, state.status
    answer = dict.fromkeys(graph.execution_plan.answer)
    excused = [status[node] in (SUCCEEDED, SKIPPED, CANCELLED) for node in range(len(graph.specs))]
    order = graph.order()[::-1]
    # No edge says that a call comes before its program, by which it is excused: so the second time that is known.
    if state.sessions:
        order += order
    for node in order:
        if excused[node] or node in answer or _is_unread(state, node):
            continue
        behind = graph.behind(node)
        is_needless = bool(behind or graph.specs[node].page) or _is_unused(state, node)
        excused[node] = is_needless and all(excused[other] for other in behind)
    return excused


def _is_unread(state: RunState, node: int) -> bool:
    """Whether a script has called this write, and was never told that it has failed."""
    is_write = state.graph.specs[node].effect == "write" and state.status[node] == FAILED
    if not is_write or state.graph.caller_of(node) < 0 or programs.is_left_behind(state, node):
        return False
    return not programs.is_told(state, node)


def _is_blamed(state: RunState, node: int) -> bool:
    """Whether a failed node is to blame, and not the node whose fallback it is."""
    host = state.graph.predecessor.get(node)
    return host is None or state.status[host] != FAILED


def _read(state: RunState, node: int) -> Sequence[int]:
    """Return the inputs because of which a join may have failed, or the calls because of which a program has."""
    if state.graph.specs[node].kind == "program":
        return programs.failures_read(state, node)
    return state.graph.specs[node].inputs


def end(state: RunState, status: EndStatus) -> None:
    """Close the run: cancel what runs, and settle what is pending as skipped, or as cancelled if the run is. It is over
    as soon as no write of it is in flight any more.
    """
    state.ended, state.end_status = True, status
    state.waiting = 0
    state.work.clear()
    state.revised.clear()
    state.stale.clear()
    state.deadlines.clear()
    state.questions.clear()
    state.held = None
    state.waiting_budget.clear()
    state.waiting_own.clear()
    for lock in state.locks.values():  # their holders may have writes in flight
        lock.waiting.clear()
    final = CANCELLED if status == "cancelled" else SKIPPED
    for unit in state.units():
        before = state.status[unit]
        if before == RUNNING:
            completion.cut_off(state, unit)
            state.status[unit], state.notes[unit] = CANCELLED, _RUN_OVER
        elif before == IN_DOUBT:
            state.status[unit] = FAILED
        elif before in (PENDING, WAITING, BLOCKED) or before > BLOCKED:
            state.status[unit] = final
    if not state.running:
        state.out.append(End(status))
