"""Ends or parks a run in which nothing can move any more."""

from collections.abc import Sequence

from workflows.plan.scheduling.events import Cancel, End, EndStatus
from workflows.plan.scheduling.state import (
    AGAIN,
    BLOCKED,
    CANCELLED,
    FAILED,
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
CALL_FAILED = "CallFailed"
"""The failure of a program that does not catch the failure of one of its calls."""
PROGRAM_FAILED = "ProgramFailed"
"""The failure of a program by itself."""
FIRST_PAUSE, LONGEST_PAUSE = 30_000, 600_000
"""Milliseconds until the first attempt after an outage, and at most between two."""


def idle(state: RunState) -> bool:
    """Whether nothing runs, is ready or waits for a person, and no more nodes are to come."""
    return state.begun and not (state.ended or state.running or state.waiting or state.heap or state.streaming)


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
    if state.waiting_budget and state.on_failure == "park":
        park(state)
        return
    answered = all(state.status[node] == SUCCEEDED for node in state.graph.execution_plan.answer)
    end(state, "done" if answered and not failed and not state.waiting_budget else "partial")


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
        pause = state.pause or FIRST_PAUSE
        state.deadlines[AGAIN], state.pause = state.now + pause, longer(pause)


def longer(pause: int) -> int:
    """Return the pause after one that was not enough."""
    return min(2 * pause, LONGEST_PAUSE)


def unpark(state: RunState) -> None:
    """Go on, until nothing can move again."""
    state.parked = False
    state.deadlines.pop(PARK, None)
    state.deadlines.pop(AGAIN, None)


def outages(state: RunState) -> tuple[int, ...]:
    """Return the blocking failures that may be over later: of models, sub-agents, and maps of those."""
    return tuple(node for node in blocking_failures(state) if _is_outage(state, node))


def _is_outage(state: RunState, node: int) -> bool:
    spec = state.graph.specs[node]
    failed = [unit for unit in (node, *state.items.get(node, ())) if state.status[unit] == FAILED]
    calls = spec.calls_model or "agent" in (spec.kind, spec.item_kind)
    return calls and any(state.notes[unit][0] in OUTAGES for unit in failed if unit in state.notes)


def blocking_failures(state: RunState) -> tuple[int, ...]:
    """Return the failed nodes that no tolerant join has excused, in plan order.

    A failure is excused if everything that depends on it has succeeded, or is itself blocked or failed by it and
    excused. A failed node that nothing consumes, or that the answer names, is not excused, except for a call that a
    program does not read, or not any more. Of writes, only those are that the program was told of.
    """
    graph, status = state.graph, state.status
    graph.sort()
    answer = dict.fromkeys(graph.execution_plan.answer)
    excused = [status[node] in (SUCCEEDED, SKIPPED, CANCELLED) for node in range(len(graph.specs))]
    for node in reversed(graph.order):
        if not excused[node] and node not in answer and not _is_unread(state, node):
            behind = graph.behind(node)
            excused[node] = bool(behind or graph.specs[node].page) and all(excused[other] for other in behind)
    hosts = graph.fallback_for
    failed = [node for node in range(len(graph.specs)) if status[node] == FAILED and not excused[node]]
    blamed = [node for node in failed if _is_blamed(state, node, hosts.get(node, -1))]
    roots = [node for node in blamed if not any(status[dep] in (FAILED, BLOCKED) for dep in _read(state, node))]
    return tuple(roots or blamed)


def _is_unread(state: RunState, node: int) -> bool:
    """Whether a program has called this write, and was never told that it has failed."""
    spec, specs = state.graph.specs[node], state.graph.specs
    if spec.maker < 0 or spec.effect != "write" or state.status[node] != FAILED:
        return False
    later = specs[spec.maker].instead
    is_replaced = later < 0 or specs[later].page != spec.page  # its program ran again, and did not call it
    return not is_replaced and not any(_is_told(state, other, node) for other in state.graph.joins[node])


def _is_told(state: RunState, other: int, call: int) -> bool:
    """Whether a join, or a step of a program, has taken notice of how a call ended."""
    if state.graph.specs[other].kind == "program":
        return call in state.chosen.get(other, ())
    return state.status[other] != CANCELLED


def _is_blamed(state: RunState, node: int, host: int) -> bool:
    """Whether a failed node is to blame, and not the node whose fallback it is; of a program, its last step is."""
    specs, status = state.graph.specs, state.status
    if specs[node].kind == "program":
        return specs[node].instead < 0 or status[specs[node].instead] != FAILED
    return host < 0 or status[host] != FAILED


def _read(state: RunState, node: int) -> Sequence[int]:
    """Return the inputs because of which a join may have failed. A program that has ended by the failure of a call has
    read that in its last step, or in an earlier one if it began several calls.
    """
    graph = state.graph
    if graph.specs[node].kind != "program":
        return graph.specs[node].inputs
    if state.notes[node][0] != CALL_FAILED:
        return ()
    step: int | None = node
    while step is not None:
        found = [call for call in state.chosen.get(step, ()) if state.status[call] in (FAILED, BLOCKED)]
        if found:
            return found
        step = graph.fallback_for.get(step)
    return ()


def end(state: RunState, status: EndStatus) -> None:
    """Close the run: cancel what runs, and settle what is pending as skipped, or as cancelled if the run is."""
    state.ended = True
    state.waiting = 0
    state.work.clear()
    state.revised.clear()
    state.stale.clear()
    state.deadlines.clear()
    state.questions.clear()
    state.waiting_budget.clear()
    final = CANCELLED if status == "cancelled" else SKIPPED
    for unit, before in enumerate(state.status):
        if before == RUNNING:
            state.out.append(Cancel(unit, state.generation[unit]))
            state.status[unit] = CANCELLED
        elif before in (PENDING, WAITING, BLOCKED) or before > BLOCKED:
            state.status[unit] = final
    state.running = 0
    state.out.append(End(status))
