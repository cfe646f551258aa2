"""The scheduler: `step(state, event) -> decisions`, the only place where a run's state changes.

Pure and total: no clock, no randomness, no I/O, no iteration over sets, no exception for any event. The same function
runs inside the workflow, inside a worker for a group of nodes, under property tests and in the simulator. An event
costs O(degree) of the node it concerns, plus O(log n) for each node it makes ready.
"""

from collections.abc import Callable
from heapq import heappop
from typing import Any

from workflows.plan import ending, flow, joins, ready, revisions
from workflows.plan.decisions import (
    Answered,
    Begun,
    Decision,
    Event,
    GivenUp,
    Judged,
    Retried,
    Settled,
    Start,
    Stopped,
    Ticked,
)
from workflows.plan.state import PARK, PENDING, RUNNING, WAITING, RunState


def step(state: RunState, event: Event) -> list[Decision]:
    """Take one event and return what is to be done now, in order."""
    out: list[Decision] = []
    if state.ended:
        return out
    state.out = out
    _HANDLERS[type(event)](state, event)
    while state.work or state.revised or state.stale:
        if state.work:
            flow.spread(state, state.work.popleft())
        elif state.revised:
            revisions.revise(state, state.revised.popleft())
        else:
            revisions.refresh(state, state.stale.popleft())
    if not state.ended:
        _start_ready(state)
        ending.rest(state)
    return out


def _begun(state: RunState, _: Begun) -> None:
    for node, missing in enumerate(state.missing):
        if missing == state.floor[node] and state.status[node] == PENDING:
            flow.admit(state, node)


def _settled(state: RunState, event: Settled) -> None:
    unit = event.unit
    if state.status[unit] != RUNNING or state.generation[unit] != event.generation:
        return
    ready.release(state, unit)
    outcome = event.outcome
    state.attempts[unit] += outcome.attempts
    state.millis[unit] = state.now - state.started[unit]
    flow.settle(state, unit, outcome)


def _ticked(state: RunState, _: Ticked) -> None:
    due = sorted((at, unit) for unit, at in state.deadlines.items() if at <= state.now)
    for _at, unit in due:
        if state.deadlines.pop(unit, None) is not None and not state.ended:
            _expire(state, unit)


def _expire(state: RunState, unit: int) -> None:
    if unit == PARK:
        ending.end(state, "partial")
    elif state.status[unit] == WAITING:
        state.waiting -= 1
        flow.fail(state, unit, "GateTimeout", "nobody answered in time")
    elif state.status[unit] == PENDING and not state.queued[unit]:
        _close_late(state, unit)


def _close_late(state: RunState, join: int) -> None:
    """A join's deadline: `settled` and `quorum` take what is there, the others fail."""
    spec = state.graph.specs[join]
    if spec.policy in ("settled", "quorum"):
        flow.close(state, join)
        return
    flow.fail(state, join, "JoinDeadline", f"{state.good[join]} of {len(spec.inputs)} inputs were there in time")
    for node in spec.inputs:
        if joins.live(state.status[node]):
            flow.unwant(state, node)


def _answered(state: RunState, event: Answered) -> None:
    if state.status[event.unit] == WAITING:
        state.answers[event.unit] = event.value
        _go_on(state, event.unit)


def _judged(state: RunState, event: Judged) -> None:
    if state.status[event.unit] != WAITING:
        return
    if event.approved:
        state.approved[event.unit] = True
        _go_on(state, event.unit)
    else:
        state.waiting -= 1
        flow.fail(state, event.unit, "Rejected", event.reason or "a person rejected it")


def _go_on(state: RunState, node: int) -> None:
    state.waiting -= 1
    state.status[node] = PENDING
    state.deadlines.pop(node, None)
    flow.enter(state, node)


def _retried(state: RunState, event: Retried) -> None:
    revisions.retry(state, event.unit)


def _given_up(state: RunState, event: GivenUp) -> None:
    revisions.give_up(state, event.unit)


def _stopped(state: RunState, event: Stopped) -> None:
    ending.end(state, event.status)


def _start_ready(state: RunState) -> None:
    """Start ready units while the window has room; those that miss a lock wait for its release."""
    heap, graph = state.heap, state.graph
    while heap and state.running < state.window and not state.draining:
        unit = heappop(heap)[2]
        if not state.queued[unit]:
            continue
        if not ready.take(state, unit):
            state.held_back.append(unit)
            continue
        group = graph.island_of.get(unit) if graph.islands else None
        units = (unit,) if group is None or state.dissolved[group] else graph.islands[group]
        for member in units:
            _mark_started(state, member)
        state.out.append(Start(units))


def _mark_started(state: RunState, unit: int) -> None:
    state.queued[unit] = False
    state.status[unit] = RUNNING
    state.started[unit] = state.now
    state.running += 1
    timed = state.graph.timed
    if timed and unit in timed:
        for join in timed[unit]:
            if join not in state.deadlines and state.status[join] == PENDING and not state.queued[join]:
                state.deadlines[join] = state.now + state.graph.specs[join].deadline


_HANDLERS: dict[type[Any], Callable[[RunState, Any], None]] = {
    Begun: _begun,
    Settled: _settled,
    Ticked: _ticked,
    Answered: _answered,
    Judged: _judged,
    Retried: _retried,
    GivenUp: _given_up,
    Stopped: _stopped,
}
