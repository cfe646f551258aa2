"""The calls of programs: taking them over from a script, and going back when one of
them gets another end.
"""

from collections.abc import Sequence

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.scheduling import ready, reset, slices
from sennit.workflows.plan.scheduling.batch import Batch
from sennit.workflows.plan.scheduling.budget import Amounts
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.cancellation import NOT_MADE, give_up
from sennit.workflows.plan.scheduling.events import Outcome, ProgramAdvanced, TaskNews
from sennit.workflows.plan.scheduling.programs import (
    enter_slices,
    go_back_to,
    hear,
    known_as,
    tell,
    wake,
)
from sennit.workflows.plan.scheduling.session import Advance
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    CANCELLED,
    DELEGATED,
    FAILED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
)

_TASK_ENDS = {"succeeded": SUCCEEDED, "failed": FAILED, "cancelled": CANCELLED}


def append(state: RunState, event: ProgramAdvanced) -> None:
    """Take over the calls with which a script goes on, in time that does not depend on how
    many there were before.

    Calls that it made when it ran before are those that it made then, with how they ended or go on.
    """
    program = event.ended.unit
    session = state.sessions[program]

    # The generations of new calls are looked up first: once the calls are in the
    # graph, their keys mean them.
    calls, fresh = _taken_over(state, program, event.calls)
    generations = [_generation_of(state, spec) for spec in fresh]
    new = state.append(fresh, program)
    for call, generation in zip(new, generations, strict=True):
        state.units[call].generation = generation

    # All calls of the advance are the script's now, the old ones too, and count in the
    # slices of their tasks.
    session.take_calls(calls)
    for call in calls:
        enter_slices(state, call)
        _let_wait_again(state, call)
    for call in new:
        if state.graph.specs[call].kind == "task":
            _begin_task(state, call)
        else:
            state.mark(call)

    # The script waits. Places behind the nodes of the run are those of the calls of this event.
    waits: list[int] = []
    for place in event.waits:
        if place < new.start:
            waits.append(place)
        else:
            waits.append(calls[place - new.start])
    made = [unit_called(state, program, name) for name, _ in event.ends]
    session.end_advance(waits, event.past, made, Advance(event.session))

    # The new calls that the advance has made itself run until their ends are
    # taken in the same step.
    for call, (_, outcome) in zip(made, event.ends, strict=True):
        if call in new:
            _begin(state, call, outcome)

    given_up: list[int] = []
    for name in event.given_up:
        call = unit_called(state, program, name)
        if call >= 0:
            given_up.append(call)
    give_up(state, given_up)


def settle(state: RunState, program: int) -> None:
    """Have a program whose advance has ended go on, if something for which its script waits has
    ended. If it has to wait, what it has not called again is given up.
    """
    wake(state, program)
    if not state.units[program].queued:
        give_up_left(state, program)


def give_up_left(state: RunState, program: int) -> None:
    """Give up what a script has called when it ran before, and has not called again."""
    session = state.sessions[program]
    left = list(session.left)
    session.left = {}
    give_up(state, left, NOT_MADE, spares_writes=False)
    for call in left:
        if state.units[call].status not in (FAILED, CANCELLED):
            session.spared[call] = None


def _taken_over(
    state: RunState, program: int, specs: Sequence[NodeSpec]
) -> tuple[list[int], list[NodeSpec]]:
    """Take over those calls that the program made before. Return the units that all calls have or
    will have, and those that are new.

    A unit that is taken over keeps its id, and people see where the script makes it
    now. A task runs again.
    """
    graph = state.graph
    session = state.sessions[program]
    units: list[int] = []
    fresh: list[NodeSpec] = []
    for spec in specs:
        known = known_as(state, spec)
        if known < 0:
            units.append(len(graph.specs) + len(fresh))
            fresh.append(spec)
            continue
        units.append(known)
        session.take_over(known, spec.id)
        graph.show_as(known, spec)
        if spec.kind == "task":
            _begin_task(state, known)
        else:
            state.taken_over[known] = True
    return units, fresh


def _let_wait_again(state: RunState, call: int) -> None:
    """Queue again what has waited for a slice of the budget when the script went back, and is made
    again now: the script may have given its task no budget this time.
    """
    for unit in slices.with_turns(state, call):
        is_idle = state.units[unit].status == PENDING and not state.units[unit].queued
        if is_idle and state.kind_of(unit) in slices.PAID_KINDS:
            state.mark(unit)


def _generation_of(state: RunState, spec: NodeSpec) -> int:
    """Return the generation of a new unit: that of the unit that has made the call before, for the
    ledger of effects knows the call by that.
    """
    known = state.graph.by_key.get(spec.key)
    if known is None:
        return 1
    return state.units[known].generation


def _begin(state: RunState, unit: int, outcome: Outcome) -> None:
    """Take a call for one that runs, in an activity with others: the advance has made it itself."""
    _occupy(state, unit)
    start = state.now
    if any(outcome.span) and state.is_call(unit):
        start, _ = outcome.span
    elif outcome.at:
        start = outcome.at - outcome.millis
    state.units[unit].started = min(state.now, start)
    if outcome.at and not outcome.again:
        state.units[unit].ended_at = outcome.at
        state.last_end = max(state.last_end, outcome.at)


def _occupy(state: RunState, unit: int) -> None:
    """Count a unit as one that runs in an activity with others, until its end is
    taken in the same step.
    """
    state.set_status(unit, RUNNING)
    state.units[unit].queued = False
    state.running += 1
    ready.enter_batch(state, unit, Batch())
    rate = ready.rate_of(state, unit)
    if rate is not None:
        rate.running += 1
    for budget in slices.budgets_of(state, unit):
        budget.reserve(unit, Amounts(nodes=1))


def follow_at_once(state: RunState, program: int) -> None:
    """Begin the advance with which a script has come to its end in the
    activity of the one before.
    """
    _occupy(state, program)
    tell(state, program)


# Tasks of a script, for people to see.


def _begin_task(state: RunState, task: int) -> None:
    """Note that a task runs. Nothing starts it: its program runs it, and tells how it ends."""
    state.set_status(task, DELEGATED)
    state.units[task].started = state.now
    state.units[task].millis = 0
    state.waits.open.pop(task, None)
    state.notes.pop(task, None)


def note_tasks(state: RunState, program: int, news: Sequence[TaskNews]) -> None:
    """Take what a program tells of its tasks."""
    for told in news:
        node = unit_called(state, program, told.id)
        if node < 0 or state.graph.specs[node].kind != "task":
            continue
        at = min(told.at or state.now, state.now)
        if told.status == "running":
            state.units[node].started = at
            continue
        state.set_status(node, _TASK_ENDS[told.status])
        state.units[node].millis = max(0, at - state.units[node].started)
        if told.error:
            kind, _, message = told.error.partition(": ")
            state.notes[node] = (kind, message)


# A call gets another end.


def go_back(state: RunState, program: int, number: int) -> None:
    """Have a program go on again from where its script stood before an advance;
    with 0 it begins again.

    What it had called from there on stays until the script calls it again, or has to wait for
    something else. What it waits for again, and had given up later, is made again; writes are never
    given up so. Nodes that have read the program's output wait for its new end.
    """
    if number == 0:
        reset.reset(state, program)
        return
    reset.await_fallback_again(state, program)
    reset.stop(state, program)
    reset.forget(state, program)
    go_back_to(state, program, number)
    state.set_status(program, DELEGATED)
    for call in state.sessions[program].waits:
        is_write = state.graph.specs[call].effect == "write"
        if state.units[call].status == CANCELLED and not is_write:
            reset.reset(state, call)
    reset.recheck_dependents(state, program)
    wake(state, program)


def follow_end(state: RunState, call: int, *, same: bool) -> None:
    """A call that ran again has ended: its program goes back to where the script
    was told of another end.
    """
    program = state.graph.caller_of(call)
    if program < 0:
        return
    number = state.sessions[program].told_in(call)
    is_told = number >= 0
    is_over = (
        state.units[program].status in (SKIPPED, CANCELLED)
        or state.units[program].inherited_failure
    )
    if is_told and not same and not is_over:
        go_back(state, program, number)
    else:
        hear(state, call)
