"""The scheduler: `step(state, event) -> decisions`, the only place where a run's state changes.

Deterministic and total: no clock, no randomness, no I/O, no iteration over sets, no exception for
any event. It changes the state that it is given, and nothing else. The same function runs inside
the workflow, inside a worker for a group of nodes, under property tests and in the simulator. An
event costs O(degree) of the node it concerns, plus O(log n) for each node it makes ready.
"""

from collections.abc import Callable
from heapq import heappop
from typing import Any

from sennit.workflows.plan.compile.execution_plan import KEY_CHARACTERS, shown_script
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.limits import MAX_MEMBERS
from sennit.workflows.plan.scheduling import (
    admission,
    cancellation,
    completion,
    extension,
    program_calls,
    programs,
    propagation,
    ready,
    reset,
    retry,
    slices,
    termination,
)
from sennit.workflows.plan.scheduling.batch import Batch
from sennit.workflows.plan.scheduling.budget import Amounts, Budget
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    BudgetRaised,
    CostCharged,
    Decision,
    DrainEnded,
    DrainStarted,
    End,
    Event,
    InputsRead,
    LedgerRead,
    NodeEnded,
    NodesAppended,
    Outcome,
    PlanHeld,
    PlanRejected,
    PlanReplaced,
    ProgramAdvanced,
    ProgramEdited,
    RetryRequested,
    RunStarted,
    SkipRequested,
    Start,
    StopRequested,
    TimeAdvanced,
    Written,
)
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.state import DRAIN, NEXT_TRY, OVERTIME, PARK, RunState
from sennit.workflows.plan.scheduling.unit import (
    FAILED,
    IN_DOUBT,
    PENDING,
    RUNNING,
    SUCCEEDED,
    WAITING,
)

FOLLOWED = ("tool", "llm")
"""Kinds of calls in whose activity the script that waits for them goes on."""


def step(state: RunState, event: Event, now: int | None = None) -> list[Decision]:
    """Take one event and return the decisions, in order. Starts nothing before `RunStarted`
    and after the run's end.

    `now` is the time in milliseconds; None if none has passed since the last step.
    """
    out: list[Decision] = []
    if now is not None:
        state.now = now
    state.touched.clear()

    # A call that ends late still tells what it has used. Any other event counts only for a unit
    # that has not been dropped, and most events only after the run has started.
    kind = type(event)
    unit = getattr(event, "unit", None)
    if isinstance(event, NodeEnded):
        _settle_late(state, event)
    is_dropped = unit is not None and unit not in state.units
    if not state.begun and kind not in _EARLY:
        return out
    if is_dropped and (state.ended or kind is not NodeEnded):
        return out
    state.out = out
    if state.ended:
        _wind_up(state, event)
        return out

    # The event, and everything that follows from it, is known before anything starts.
    if not is_dropped:
        _HANDLERS[kind](state, event)
    _work_off(state)
    if isinstance(event, NodeEnded) and event.more:
        return out

    # What is ready starts. Only then it shows whether anything moves any more.
    if not state.ended:
        _start_ready(state)
        starts = [decision for decision in out if isinstance(decision, Start)]
        ready.share(state, starts)
        termination.finish_or_park(state)
    state.waits.ask(state.now, waits=_waits_for_a_person(state))
    return out


def _settle_late(state: RunState, event: NodeEnded) -> None:
    """Book what a call has used that was cancelled, also one of a unit that was dropped."""
    unit = event.unit
    generation = event.generation
    usage = event.outcome.usage
    if state.budget is not None:
        state.budget.settle_late(unit, generation, usage)
    if unit not in state.units:
        return
    slices.settle_late(state, unit, generation, usage)
    ready.wake_in_slices(state, unit)
    is_late = not state.runs(unit, generation)
    if is_late:
        _count_usage(state, unit, usage)


def _count_usage(state: RunState, unit: int, usage: Usage | None) -> None:
    """Add what a call has used to what its unit has used before; nothing if nobody knows it."""
    if usage is not None and any(usage):
        before = state.used.get(unit, NO_USAGE)
        state.used[unit] = before.plus(usage)


def _waits_for_a_person(state: RunState) -> bool:
    """Whether the run waits for a person, and not only for the end of an outage."""
    if state.ended:
        return False
    return state.waiting > 0 or (state.parked and NEXT_TRY not in state.deadlines)


def _wind_up(state: RunState, event: Event) -> None:
    """Take the ends of the writes that are in flight when a run ends. The last one ends it."""
    if isinstance(event, LedgerRead):
        _read_ledger(state, event)
    if not state.running:
        return
    if isinstance(event, StopRequested) and event.status == "cancelled":
        state.end_status = event.status
    if isinstance(event, NodeEnded):
        _end_node(state, event)
    if not state.running:
        state.out.append(End(state.end_status))


def _read_ledger(state: RunState, event: LedgerRead) -> None:
    """Note what became of writes that were made before the run was reset, where
    the run does not know it.
    """
    for write in event.writes:
        unit = unit_of(state, write)
        if unit is not None:
            completion.note_written(state, unit, write)


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


def _start_run(state: RunState, event: RunStarted) -> None:
    if state.begun:
        return
    state.begun = True
    state.streaming = event.more
    if state.held is not None:
        state.held = None
        termination.unpark(state)
    state.waits.expect(state.units, state.now)
    for node in range(len(state.graph.specs)):
        if not state.units[node].open_deps and state.units[node].status == PENDING:
            admission.admit(state, node)


def _hold_plan(state: RunState, event: PlanHeld) -> None:
    if event.graph is not None:
        extension.start_over(state, event.graph)
    if not state.begun:
        state.held = event.question
        termination.park(state)


def _reject_plan(state: RunState, _: PlanRejected) -> None:
    """Let go of the question about the plan, or about the first step of its only program,
    until there is another.
    """
    for unit in state.units_in(WAITING):
        completion.no_longer_wait(state, unit)
        state.set_status(unit, PENDING)
    state.held = None
    termination.unpark(state)
    state.streaming = True


def _end_node(state: RunState, event: NodeEnded) -> None:
    unit, outcome = event.unit, event.outcome
    if ready.in_flight(state, unit, event.generation):
        if completion.note_end(state, unit, event.generation, outcome):
            _free(state, unit, outcome)
        return
    # An end that comes late, or after a person has changed the unit, counts for nothing.
    if not state.runs(unit, event.generation):
        return

    # What the start has cost is booked, and its slot is free, before its end is carried on.
    is_shared = state.units[unit].batch is not None
    _note_call(state, unit, outcome)
    _free(state, unit, outcome)
    state.units[unit].attempts += _attempts(state, unit, outcome)
    if is_shared:
        state.units[unit].millis = outcome.millis
    else:
        state.units[unit].millis = state.now - _first_start(state, unit)
    if outcome.millis:
        tool = state.spec_of(unit).tool
        state.timings.note(tool, outcome.millis)

    if unit in state.sessions:
        _end_advance(state, unit, outcome)
    else:
        completion.complete(state, unit, outcome)


def _first_start(state: RunState, unit: int) -> int:
    """Return when a unit started; of a map that gathers, when the first of its items did."""
    start = state.units[unit].started
    for item in state.items.get(unit, ()):
        if state.units[item].attempts:
            start = min(start, state.units[item].started)
    return start


def _note_call(state: RunState, unit: int, outcome: Outcome) -> None:
    """Note what a call has used, and when it was under way by itself. Where it has waited since its
    start for a worker, or for another call of its activity, its waiting goes on until then.
    """
    _count_usage(state, unit, outcome.usage)
    if any(outcome.paid):
        state.paid[unit] = outcome.paid

    # Its span is known if its worker says it, and if it was made in this
    # start at the first attempt.
    state.units[unit].span = None
    if not state.is_call(unit) or unit in state.answers:
        return
    began, ended = outcome.span
    if not any(outcome.span) or outcome.attempts != 1:
        return
    if not state.units[unit].started <= began <= ended:  # it was made before, and only found again
        return
    began = min(began, state.now)
    ended = min(ended, state.now)
    state.units[unit].span = began, ended

    # In a shared activity a call may wait first for another one on which it depends,
    # and then for its turn.
    since = state.units[unit].started
    if state.units[unit].batch is not None:
        for dep in state.graph.deps[state.node_of(unit)]:
            span = state.units[dep].span
            if span is not None:
                _, dep_ended = span
                since = max(since, dep_ended)
        since = min(began, since)
    state.waits.total["dependency"] += since - state.units[unit].started
    state.waits.total["slot"] += began - since


def _free(state: RunState, unit: int, outcome: Outcome) -> None:
    """Book what a unit has used, and free its slot and its locks."""
    if state.budget is not None:
        used = state.budget.used(unit, outcome)
        state.budget.settle(unit, used)
    slices.settle(state, unit, outcome)
    rate = ready.rate_of(state, unit)
    if rate is not None:
        rate.count(outcome.attempts)
    ready.release(state, unit)


def _attempts(state: RunState, unit: int, outcome: Outcome) -> int:
    """Return how many more attempts a unit has had. Of a later advance of a program only those
    count that failed: a program in which nothing failed has had one.
    """
    session = state.sessions.get(unit)
    following = 1 if outcome.delegated else 0
    if session is not None and session.number > following:
        return max(0, outcome.attempts - 1)
    return outcome.attempts


def _end_advance(state: RunState, program: int, outcome: Outcome) -> None:
    """Take how an advance of a program has ended. With the program, what its script no longer
    waits for is given up.
    """
    until = min(outcome.at or state.now, state.now)
    state.units[program].millis = max(0, until - state.units[program].started)
    program_calls.note_tasks(state, program, outcome.tasks)
    completion.complete(state, program, outcome)
    has_value = state.units[program].status == SUCCEEDED
    if has_value or _failed_by_itself(outcome):
        program_calls.give_up_left(state, program)
    if has_value:
        cancellation.cancel_unread(state, program)


def _failed_by_itself(outcome: Outcome) -> bool:
    """Whether a script has come to its end by an error of its own; after any other
    failure it may still go on.
    """
    if outcome.error is None:
        return False
    kind, _ = outcome.error
    return kind == programs.PROGRAM_FAILED


def unit_of(state: RunState, write: Written) -> int | None:
    """Return the unit that has made a write, as the run knows it now; None if it has
    not come so far again.
    """
    by_key = state.graph.by_key.get(write.key[:KEY_CHARACTERS])
    if by_key is not None:
        return by_key
    return state.find(write.path)


def _advance_time(state: RunState, event: TimeAdvanced) -> None:
    until = state.now
    if event.until is not None:
        until = event.until
    due: list[tuple[int, int]] = []
    for unit, at in state.deadlines.items():
        if at <= until and unit != DRAIN:
            due.append((at, unit))
    for _at, unit in sorted(due):
        # One that has expired may have closed the others.
        if state.deadlines.pop(unit, None) is not None and not state.ended:
            _expire(state, unit)


def _expire(state: RunState, unit: int) -> None:
    if unit == NEXT_TRY:
        _try_again(state)
    elif unit in (PARK, OVERTIME):
        termination.end(state, "partial")
    elif state.has_status(unit, WAITING):
        completion.no_longer_wait(state, unit)
        completion.fail(state, unit, "GateTimeout", "nobody answered in time")
    else:
        admission.expire(state, unit)


def _try_again(state: RunState) -> None:
    """Retry what an outage has failed. However often that happens, the run does
    not wait longer in all.
    """
    state.park_until = state.deadlines[PARK]
    for unit in termination.outages(state):
        if state.units[unit].status == FAILED:  # and has not been reset with one before it
            retry.retry(state, unit)


def _answer(state: RunState, event: Answered) -> None:
    unit = event.unit
    status = state.units[unit].status
    if status in (FAILED, IN_DOUBT):
        state.park_until = state.pause = 0
        retry.answer(state, unit, event.value)
    elif status == WAITING and state.spec_of(unit).kind == "gate":
        state.answers[unit] = event.value
        admission.go_on(state, unit)


def _decide_approval(state: RunState, event: ApprovalDecided) -> None:
    for unit in admission.waiting_in(state, event.unit):
        if unit in state.questions and state.spec_of(unit).kind != "gate":
            admission.decide_write(state, unit, event)


def _retry(state: RunState, event: RetryRequested) -> None:
    state.park_until = state.pause = 0
    retry.retry(state, event.unit)
    for unit in event.others:
        # And has not been reset with one before it.
        if state.has_status(unit, FAILED, IN_DOUBT):
            retry.retry(state, unit)


def _raise_budget(state: RunState, event: BudgetRaised) -> None:
    if state.budget is None:
        state.budget = Budget()
    state.budget.limits |= event.limits
    if event.ceilings is not None:
        state.budget.ceilings = event.ceilings
    if event.millis is not None:
        state.deadlines[OVERTIME] = state.now + event.millis
    if state.held is None:
        termination.unpark(state)


def _charge(state: RunState, event: CostCharged) -> None:
    if state.budget is not None:
        state.budget.spent.add(Amounts.of(event.usage))


def _append(state: RunState, event: NodesAppended) -> None:
    extension.append(state, event)
    if event.ended is not None:
        _end_node(state, event.ended)


def _advance(state: RunState, event: ProgramAdvanced) -> None:
    """Take over what a script has called, and then the ends of its activity and of the
    calls that this has made.
    """
    program = event.ended.unit
    generation = event.ended.generation
    if not state.runs(program, generation):
        return
    program_calls.append(state, event)
    _end_node(state, event.ended)
    for name, outcome in event.ends:
        unit = unit_called(state, program, name)
        _end_node(state, NodeEnded(unit, state.units[unit].generation, outcome))
    if event.end is None:
        program_calls.settle(state, program)
    else:
        _work_off(state)
        program_calls.follow_at_once(state, program)
        _end_node(state, NodeEnded(program, generation, event.end))


def _replace(state: RunState, event: PlanReplaced) -> None:
    extension.start_over(state, event.graph)
    _start_run(state, RunStarted())


def _read_inputs(state: RunState, event: InputsRead) -> None:
    if event.unit in state.sessions:
        programs.tell(state, event.unit)


def _drain(state: RunState, event: DrainStarted | DrainEnded) -> None:
    state.draining = isinstance(event, DrainStarted)
    state.deadlines.pop(DRAIN, None)
    if isinstance(event, DrainStarted) and event.millis is not None:
        state.deadlines[DRAIN] = state.now + event.millis


def _edit(state: RunState, event: ProgramEdited) -> None:
    state.park_until = state.pause = 0
    spec = state.graph.specs[event.unit]
    spec.page = event.page
    spec.script = shown_script(event.script)
    spec.quote = event.quote
    retry.retry(state, event.unit, is_edited=True)


def _stop(state: RunState, event: StopRequested) -> None:
    termination.end(state, event.status)


def _start_ready(state: RunState) -> None:
    """Start ready units while the window has room. Those that lack a lock, a rate
    or budget wait for it.

    Short calls that may share an activity are gathered, and start together.
    """
    heap = state.heap
    short_calls: dict[ready.Likeness, list[int]] = {}
    batches: dict[tuple[ready.Likeness, tuple[int, ...]], Batch] = {}
    while True:
        # The first ready unit, if it still is one.
        ready.wake_paid(state)
        if not heap:
            break
        unit = heap[0][2]
        if not state.is_queued(unit):  # it was cancelled, or has started
            heappop(heap)
            ready.pass_on(state, unit)
            ready.wake_in_slices(state, unit)
            continue

        # A short call goes beside one like it that has started in this step, as long as there
        # are not too many of them.
        likeness = ready.likeness_of(state, unit)
        batch_key = None
        batch = None
        if likeness is not None:
            batch_key = (likeness, ready.readers(state, unit))
            batch = batches.get(batch_key)
        if batch is not None and len(batch.members) >= MAX_MEMBERS:
            batch = None

        # Beside another one it takes no room of the window, which counts activities.
        if (
            state.draining
            or (state.activities >= state.window and batch is None)
            or state.running >= state.in_flight
        ):
            break
        heappop(heap)
        refusal = slices.refusal(state, unit)
        if refusal:
            _refuse(state, unit, refusal)
            continue
        if not ready.may_start(state, unit):
            continue
        _mark_started(state, unit)
        if likeness is None or batch_key is None:
            _start_alone(state, unit)
            continue
        if batch is None:
            batch = Batch()
            batches[batch_key] = batch
        ready.enter_batch(state, unit, batch)
        short_calls.setdefault(likeness, []).append(unit)

    # Only now all short calls of this step are known.
    for likeness, units in short_calls.items():
        _start_together(state, likeness, units)


def _refuse(state: RunState, unit: int, why: str) -> None:
    """Fail a call whose task has spent its budget, and have its script go on with that."""
    completion.fail(state, unit, slices.BUDGET_EXCEEDED, why)
    ready.pass_on(state, unit)
    ready.wake_in_slices(state, unit)
    _work_off(state)


def _start_alone(state: RunState, unit: int) -> None:
    asks = admission.asks(state, unit)
    following = -1
    if not asks:
        following = _following(state, unit)
    state.out.append(Start((unit,), asks, following))


def _start_together(state: RunState, likeness: ready.Likeness, units: list[int]) -> None:
    for group in ready.groups_of(state, likeness, units):
        for unit in group:
            if state.units[unit].status != RUNNING:
                _mark_started(state, unit)
        if len(group) > 1:
            state.out.append(Start(tuple(group)))
        else:
            ready.leave_batch(state, group[0])
            _start_alone(state, group[0])


def _following(state: RunState, unit: int) -> int:
    """Start the program whose script waits for nothing but this unit with
    it, and return it, or -1.
    """
    if state.is_item(unit) or state.graph.specs[unit].kind not in FOLLOWED:
        return -1
    program = programs.follows(state, unit)
    if program >= 0:
        _mark_started(state, program)
        state.sessions[program].last.told = (unit,)
    return program


def _mark_started(state: RunState, unit: int) -> None:
    ready.take(state, unit)
    state.waits.end(unit, state.now, is_call=state.is_call(unit))
    state.units[unit].queued = False
    state.set_status(unit, RUNNING)
    state.running += 1
    if state.kind_of(unit) == "program":
        _begin_advance(state, unit)
    else:
        state.units[unit].started = state.now
    rate = ready.rate_of(state, unit)
    if rate is not None:
        rate.running += 1
    if unit in state.graph.timed:
        admission.clock(state, unit)


def _begin_advance(state: RunState, program: int) -> None:
    """Note that an advance of a program is under way. The program has
    started with its first one.
    """
    session = state.sessions.setdefault(program, Session())
    if session.has_begun:
        session.last.told = programs.ended(state, session)
    else:
        state.units[program].started = state.now
        state.units[program].note_end(state.now)


_EARLY = (
    RunStarted,
    PlanHeld,
    PlanRejected,
    PlanReplaced,
    TimeAdvanced,
    StopRequested,
    BudgetRaised,
    CostCharged,
    LedgerRead,
)
_HANDLERS: dict[type[Any], Callable[[RunState, Any], None]] = {
    RunStarted: _start_run,
    PlanHeld: _hold_plan,
    PlanRejected: _reject_plan,
    NodeEnded: _end_node,
    TimeAdvanced: _advance_time,
    Answered: _answer,
    ApprovalDecided: _decide_approval,
    RetryRequested: _retry,
    SkipRequested: lambda state, event: retry.skip(state, event.unit),
    NodesAppended: _append,
    ProgramAdvanced: _advance,
    PlanReplaced: _replace,
    InputsRead: _read_inputs,
    DrainStarted: _drain,
    DrainEnded: _drain,
    ProgramEdited: _edit,
    BudgetRaised: _raise_budget,
    CostCharged: _charge,
    LedgerRead: _read_ledger,
    StopRequested: _stop,
}
