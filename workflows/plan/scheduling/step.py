"""The scheduler: `step(state, event) -> decisions`, the only place where a run's state changes.

Pure and total: no clock, no randomness, no I/O, no iteration over sets, no exception for any event. The same function
runs inside the workflow, inside a worker for a group of nodes, under property tests and in the simulator. An event
costs O(degree) of the node it concerns, plus O(log n) for each node it makes ready.
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop
from typing import Any

from workflows.plan.compile.graph import shown_script
from workflows.plan.scheduling import (
    admission,
    cancellation,
    completion,
    extension,
    propagation,
    ready,
    reset,
    retry,
    termination,
)
from workflows.plan.scheduling.budget import Amounts, Budget
from workflows.plan.scheduling.events import (
    Answered,
    Approval,
    ApprovalDecided,
    BudgetRaised,
    CostCharged,
    Decision,
    Event,
    Expand,
    NodeEnded,
    NodesAppended,
    Outcome,
    PlanExtended,
    ProgramEdited,
    RetryRequested,
    RunStarted,
    SkipRequested,
    Start,
    StopRequested,
    TimeAdvanced,
)
from workflows.plan.scheduling.state import (
    AGAIN,
    AWAITING_FALLBACK,
    DRAIN,
    FAILED,
    OVERTIME,
    PARK,
    PENDING,
    RUNNING,
    SUCCEEDED,
    WAITING,
    RunState,
)

FOLLOWED = ("tool", "llm", "join")
"""Kinds of nodes whose activity also makes the step of a program that waits for it."""


def step(state: RunState, event: Event) -> list[Decision]:
    """Take one event and return the decisions, in order. Does nothing before `RunStarted` and after the run's end."""
    out: list[Decision] = []
    kind = type(event)
    if state.ended or not (state.begun or kind in _EARLY):
        return out
    state.out = out
    _HANDLERS[kind](state, event)
    _work_off(state)
    if not state.ended:
        _start_ready(state)
        if state.graph.groups and termination.idle(state):
            _ungroup_idle(state)
        termination.finish_or_park(state)
    return out


def _work_off(state: RunState) -> None:
    """Carry every end and every edit through the graph, until nothing is left to do."""
    stale = state.stale
    while state.work or state.revised or stale:
        if state.work:
            propagation.propagate(state, state.work.popleft())
        elif state.revised:
            retry.revise(state, state.revised.popleft())
        else:
            first = heappop(stale)
            while stale and stale[0] == first:
                heappop(stale)
            reset.refresh(state, first[1])


def _ungroup_idle(state: RunState) -> None:
    """Ungroup the groups that still wait: for each other, or for nodes that will not end."""
    for group, waits_for in enumerate(state.gather):
        if waits_for:
            completion.ungroup(state, group)
    _work_off(state)
    _start_ready(state)


def _start_run(state: RunState, _: RunStarted) -> None:
    if state.begun:
        return
    state.begun = True
    for node, missing in enumerate(state.open_deps):
        if missing == state.floor[node] and state.status[node] == PENDING:
            admission.admit(state, node)


def _end_node(state: RunState, event: NodeEnded) -> None:
    unit = event.unit
    if state.status[unit] != RUNNING or state.generation[unit] != event.generation:
        return
    outcome = event.outcome
    if state.budget is not None:
        state.budget.settle(unit, _used(state.budget, unit, outcome))
    rate = ready.rate_of(state, unit)
    if rate is not None:
        rate.count(outcome.attempts)
    ready.release(state, unit)
    state.attempts[unit] += outcome.attempts
    state.millis[unit] = state.now - state.started[unit]
    completion.complete(state, unit, outcome)
    if state.spec_of(unit).kind == "program" and (state.status[unit] == SUCCEEDED or _failed_by_itself(outcome)):
        extension.give_up_rest(state, unit)
    if state.spec_of(unit).kind == "program" and state.status[unit] == SUCCEEDED:
        cancellation.cancel_unread(state, unit)


def _failed_by_itself(outcome: Outcome) -> bool:
    """Whether a script has come to its end by an error of its own; after any other failure it may still go on."""
    return outcome.error is not None and outcome.error[0] == termination.PROGRAM_FAILED


def _used(budget: Budget, unit: int, outcome: Outcome) -> Amounts:
    """Return the usage in an outcome. An attempt whose usage is not known counts with all that it had reserved."""
    usage = outcome.usage
    ends = not outcome.again and outcome.expansion_request is None and outcome.question is None
    if usage is None:
        reserved = budget.reserved.get(unit, Amounts())
        return reserved if ends else replace(reserved, nodes=0)
    return Amounts(usage.tokens, usage.cost, usage.calls, int(ends))  # it is one node, however often it starts


def _advance_time(state: RunState, _: TimeAdvanced) -> None:
    due = sorted((at, unit) for unit, at in state.deadlines.items() if at <= state.now and unit != DRAIN)
    for _at, unit in due:
        if state.deadlines.pop(unit, None) is not None and not state.ended:
            _expire(state, unit)


def _expire(state: RunState, unit: int) -> None:
    if unit == AGAIN:
        _try_again(state)
    elif unit in (PARK, OVERTIME):
        termination.end(state, "partial")
    elif state.status[unit] == WAITING:
        completion.no_longer_wait(state, unit)
        completion.fail(state, unit, "GateTimeout", "nobody answered in time")
    else:
        admission.expire(state, unit)


def _try_again(state: RunState) -> None:
    """Retry what an outage has failed. However often that happens, the run does not wait longer in all."""
    state.park_until = state.deadlines[PARK]
    for unit in termination.outages(state):
        if state.status[unit] == FAILED:
            retry.retry(state, unit)


def _answer(state: RunState, event: Answered) -> None:
    if state.status[event.unit] == FAILED:
        state.park_until = state.pause = 0
        retry.answer(state, event.unit, event.value)
    elif state.status[event.unit] == WAITING and state.spec_of(event.unit).kind == "gate":
        state.answers[event.unit] = event.value
        _go_on(state, event.unit)


def _decide_approval(state: RunState, event: ApprovalDecided) -> None:
    if event.unit in state.expansion_requests and state.status[event.unit] == WAITING:
        extension.decide(state, event.unit, None if event.approved else event.reason)
        return
    for unit in admission.waiting_in(state, event.unit):
        if unit in state.questions and state.spec_of(unit).kind != "gate":
            _decide_write(state, unit, event)


def _decide_write(state: RunState, unit: int, event: ApprovalDecided) -> None:
    asked = state.questions[unit]
    if event.approved:
        state.approved[unit] = Approval(asked.digest, asked.target, event.args, event.by)
        _go_on(state, unit)
        return
    state.approved.pop(unit, None)
    completion.no_longer_wait(state, unit)
    completion.fail(state, unit, "Rejected", event.reason or "a person rejected it")


def _go_on(state: RunState, unit: int) -> None:
    completion.no_longer_wait(state, unit)
    if state.is_item(unit):
        completion.put_back(state, unit)
        return
    state.status[unit] = PENDING
    admission.enter(state, unit, state.graph.specs[unit])


def _retry(state: RunState, event: RetryRequested) -> None:
    state.park_until = state.pause = 0
    retry.retry(state, event.unit)
    for unit in event.others:
        if state.status[unit] == FAILED:  # and has not been reset with one before it
            retry.retry(state, unit)


def _skip(state: RunState, event: SkipRequested) -> None:
    retry.skip(state, event.unit)


def _raise_budget(state: RunState, event: BudgetRaised) -> None:
    if state.budget is None:
        state.budget = Budget()
    state.budget.limits |= event.limits
    termination.unpark(state)
    ready.requeue_unpaid(state)


def _charge(state: RunState, event: CostCharged) -> None:
    if state.budget is not None:
        state.budget.spent.add(Amounts(event.usage.tokens, event.usage.cost, event.usage.calls))


def _append(state: RunState, event: NodesAppended) -> None:
    extension.append(state, event)
    _end_node(state, event.step)


def _edit(state: RunState, event: ProgramEdited) -> None:
    state.park_until = state.pause = 0
    spec = state.graph.specs[event.unit]
    spec.page, spec.script, spec.quote = event.page, shown_script(event.script), event.quote
    retry.retry(state, event.unit)


def _stop(state: RunState, event: StopRequested) -> None:
    termination.end(state, event.status)


def _start_ready(state: RunState) -> None:
    """Start ready units while the window has room. Those that lack a lock, a rate or budget wait for it.

    A group larger than the window starts when nothing else runs.
    """
    heap, graph, queued = state.heap, state.graph, state.queued
    while heap:
        unit = heap[0][2]
        if not queued[unit]:
            heappop(heap)
            continue
        if state.draining or state.running >= state.window:
            return
        group = graph.group_of.get(unit) if graph.groups else None
        units = (unit,) if group is None or state.ungrouped[group] else graph.groups[group]
        if state.running and state.running + len(units) > state.window:
            return
        heappop(heap)
        if not ready.may_start(state, units):
            continue
        ready.take(state, unit)
        for member in units:
            _mark_started(state, member)
        if unit in state.expansion_requests:
            state.out.append(Expand(unit))
        else:
            asks = admission.asks(state, unit)
            state.out.append(Start(units, asks, -1 if asks else _following(state, unit)))


def _following(state: RunState, unit: int) -> int:
    """Start the step of a program that waits for nothing but this unit with it, and return it, or -1."""
    maker = -1 if state.is_item(unit) else state.graph.specs[unit].maker
    following = state.graph.specs[maker].instead if maker >= 0 else -1
    if following < 0 or state.graph.specs[unit].kind not in FOLLOWED or state.status[following] != PENDING:
        return -1
    if state.graph.specs[following].inputs != [unit] or state.status[maker] != AWAITING_FALLBACK:
        return -1
    state.chosen[following] = (unit,)
    _mark_started(state, following)
    return following


def _mark_started(state: RunState, unit: int) -> None:
    state.queued[unit] = False
    state.status[unit] = RUNNING
    state.started[unit] = state.now - (state.millis[unit] if unit in state.expansion_requests else 0)
    state.running += 1
    rate = ready.rate_of(state, unit)
    if rate is not None:
        rate.running += 1
    if unit in state.graph.timed:
        admission.clock(state, unit)


_EARLY = (RunStarted, StopRequested, BudgetRaised, CostCharged)
_HANDLERS: dict[type[Any], Callable[[RunState, Any], None]] = {
    RunStarted: _start_run,
    NodeEnded: _end_node,
    TimeAdvanced: _advance_time,
    Answered: _answer,
    ApprovalDecided: _decide_approval,
    RetryRequested: _retry,
    SkipRequested: _skip,
    PlanExtended: extension.extend,
    NodesAppended: _append,
    ProgramEdited: _edit,
    BudgetRaised: _raise_budget,
    CostCharged: _charge,
    StopRequested: _stop,
}
