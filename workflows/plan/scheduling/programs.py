"""When the script of a program goes on, what it is told then, and what is known of its calls.

Everything else about a call is as for any unit. The scheduler asks here whenever a call of a
program ends or is reset.
"""

from typing import Any

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.limits import MAX_NOTED_FAILURES
from sennit.workflows.plan.scheduling import ready, slices
from sennit.workflows.plan.scheduling.joins import is_open
from sennit.workflows.plan.scheduling.session import Session
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import CANCELLED, DELEGATED, FAILED, RUNNING, SUCCEEDED

CALL_FAILED = "CallFailed"
"""The failure of a program that does not catch the failure of one of its calls."""
PROGRAM_FAILED = "ProgramFailed"
"""The failure of a program by itself."""


# A script goes on.


def wake(state: RunState, program: int) -> None:
    """Have a program that waits go on if one of the calls for which it waits
    has ended, and else not.
    """
    if state.units[program].status != DELEGATED:
        return
    waits = state.sessions[program].waits
    has_ended = any(not is_open(state.units[call].status) for call in waits)
    if has_ended and not state.units[program].queued:
        ready.queue(state, program)
    elif not has_ended:
        state.units[program].queued = False


def hear(state: RunState, call: int) -> None:
    """Have the program of a call that has ended go on with that, if it waits for the call."""
    program = _waiting_caller(state, call)
    if program < 0:
        return
    is_awaited = call in state.sessions[program].waits
    if is_awaited and not is_open(state.units[call].status):
        ready.queue(state, program)


def tell(state: RunState, program: int) -> None:
    """Have an advance that starts now be told how calls have ended: of all that have meanwhile."""
    session = state.sessions[program]
    if session.has_begun:
        session.last.told = ended(state, session)
        _keep_order(state, session)


def ended(state: RunState, session: Session) -> tuple[int, ...]:
    """Return the calls for which a script waits that have ended."""
    calls: list[int] = []
    for call in session.waits:
        if not is_open(state.units[call].status):
            calls.append(call)
    return tuple(calls)


def _keep_order(state: RunState, session: Session) -> None:
    """Have what a script is told end after what it was told before, whatever the clocks of workers
    say: by these times an edit tells it the same in the same order.
    """
    told = session.last.told
    noted = [state.units[call].ended_at or 0 for call in told]

    # Calls that have ended at the same time go on to do so; every other time is later
    # than the one before it.
    last = last_told(state, session)
    times: dict[int, int] = {}
    for at in sorted(noted):
        if at not in times:
            last = max(at, last + 1)
            times[at] = last

    for call, at in zip(told, noted, strict=True):
        state.units[call].ended_at = times[at]
    state.last_end = max(state.last_end, last)


def last_told(state: RunState, session: Session) -> int:
    """Return when the last call ended of which the script was told before the
    advance that comes next.
    """
    for number in range(session.number - 1, -1, -1):
        told = session.advances[number].told
        if told:
            ends = [state.units[call].ended_at or 0 for call in told]
            return max(ends)
    return 0


def follows(state: RunState, call: int) -> int:
    """Return the program whose script waits for nothing but this call, so that it can go on in
    the same activity, or -1.
    """
    program = _waiting_caller(state, call)
    if program < 0:
        return -1
    waits = state.sessions[program].waits
    is_only = call in waits and len(waits) == 1
    # A call that may expire is not waited for as long as its activity takes.
    if not is_only or state.graph.specs[call].expires:
        return -1
    return program


def _waiting_caller(state: RunState, call: int) -> int:
    """Return the program that has made a call if it waits and is not about to go on, or -1."""
    program = state.graph.caller_of(call)
    if program < 0:
        return -1
    is_waiting = state.units[program].status == DELEGATED and not state.units[program].queued
    return program if is_waiting else -1


def begin_again(state: RunState, program: int) -> None:
    """Have the session of a program that runs again stand at its beginning."""
    if program in state.sessions:
        go_back_to(state, program, 0)


def go_back_to(state: RunState, program: int, number: int) -> None:
    """Have the session of a program stand where it stood before an advance, and its slices with it.
    A call that has waited for one of these does not start before the script has made it again.
    """
    session = state.sessions[program]
    session.go_back(number)
    if not state.slices:
        return
    waiting = slices.close(state, program)
    for call in session.calls:
        enter_slices(state, call)
    for unit in waiting:
        if slices.call_of(state, unit) in session.calls:
            ready.queue(state, unit)
        else:
            state.units[unit].queued = False
            state.waits.open.pop(unit, None)


def enter_slices(state: RunState, call: int) -> None:
    """Count a call that a script has made, or made again, in the slices of its tasks, with what
    it reserves if it runs.
    """
    slices.enter(state, call)
    if not state.slices:
        return
    for unit in slices.with_turns(state, call):
        if state.units[unit].status == RUNNING and state.kind_of(unit) in slices.PAID_KINDS:
            ready.reserve_in_slices(state, unit)


def advance_again(state: RunState, program: int) -> bool:
    """Put an advance back that has not ended; return whether it is not the first one, which
    starts as any node does.
    """
    session = state.sessions[program]
    if not session.has_begun:
        return False
    session.last.told = ()
    state.set_status(program, DELEGATED)
    wake(state, program)
    return True


def retried_from(state: RunState, program: int) -> int:
    """Return the advance from which a program goes on when a person has it run again: the one that
    has failed, unless that was the fault of the script or of a call; then the first one.
    """
    kind = state.notes.get(program, ("",))[0]
    if state.units[program].status != FAILED or kind in (CALL_FAILED, PROGRAM_FAILED):
        return 0
    session = state.sessions.get(program)
    return 0 if session is None else session.number


# The activities of programs.


def advance_number(state: RunState, unit: int) -> int:
    """Return which advance a program makes now, from 1 on; 1 for any other unit."""
    session = state.sessions.get(unit)
    if session is None:
        return 1
    return session.number + 1


def log_name(state: RunState, unit: int) -> str:
    """Return under which name is kept what the activity of a unit logs: an advance that is
    made again says it once.
    """
    session = state.sessions.get(unit)
    if session is None or not session.has_begun:
        return state.path(unit)
    return session.last.session


# What is known of calls.


def known_as(state: RunState, spec: NodeSpec) -> int:
    """Return the unit that takes the place of a call of a script, because the program has made
    that call before; or -1.

    What has failed or was cancelled is made again, and what a person confirms
    asks: by a unit of its own.
    """
    if not spec.key:
        return -1
    known = state.graph.by_key.get(spec.key, -1)
    if known < 0 or spec.kind == "task":
        return known
    status = state.units[known].status
    is_asked = spec.confirms and status == SUCCEEDED
    if is_asked or status in (FAILED, CANCELLED):
        return -1
    return known


def is_left_behind(state: RunState, node: int) -> bool:
    """Whether a script made this call when it ran before, and has not made it again."""
    program = state.graph.caller_of(node)
    return program >= 0 and node not in state.sessions[program].calls


def is_replaced(state: RunState, node: int) -> bool:
    """Whether a call was left behind, or belongs to the tool loop of one that was."""
    while node >= 0:
        if is_left_behind(state, node):
            return True
        node = state.graph.specs[node].maker
    return False


def is_told(state: RunState, call: int) -> bool:
    """Whether the script of a program was told, or is being told, how its call has ended."""
    program = state.graph.caller_of(call)
    return program >= 0 and state.sessions[program].is_told(call)


def has_gone_on(state: RunState, call: int) -> bool:
    """Whether a script was told how its call has ended, and has come to another wait, or to the
    program's end without an error.
    """
    program = state.graph.caller_of(call)
    if program < 0:
        return False
    session = state.sessions[program]
    if call in session.heard:
        return True
    return call in session.last.told and state.units[program].status == SUCCEEDED


def has_taken_notice(state: RunState, call: int) -> bool:
    """Whether a script was told how its call has ended, and has come to
    another wait or to its end.
    """
    if not is_told(state, call):
        return False
    program = state.graph.caller_of(call)
    return state.units[program].status != RUNNING or call in state.sessions[program].heard


def failures_read(state: RunState, program: int) -> list[int]:
    """Return the failed calls because of which a program has failed: those of which
    its script was told last.
    """
    session = state.sessions.get(program)
    kind = state.notes.get(program, ("",))[0]
    if session is None or kind != CALL_FAILED:
        return []
    for advance in reversed(session.advances):
        failed = [call for call in advance.told if state.units[call].status == FAILED]
        if failed:
            return failed
    return []


def beginning(state: RunState, program: int) -> dict[str, Any]:
    """Return the fields of the first advance of a program: when it `ends` to wait, which is when it
    began for the first time, `since` when it began again, and which of its calls had `failed` then.
    """
    fields: dict[str, Any] = {}
    if state.units[program].generation > 1:
        fields["since"] = max(state.now, state.last_end)
        fields["failed"] = tuple(_failed_before(state, program))
    if state.units[program].ended_at is not None:
        path = state.path(program)
        fields["ends"] = {path: state.units[program].ended_at}
    return fields


def _failed_before(state: RunState, program: int) -> list[str]:
    """Return what the calls of a program are known by that have failed or were cancelled, as far as
    none of them may have written anything.
    """
    graph = state.graph
    marks: list[str] = []
    for call in graph.made_by(program):
        spec = graph.specs[call]
        is_latest = graph.by_key.get(spec.key) == call
        is_lost = state.units[call].status in (FAILED, CANCELLED)
        if not (is_latest and is_lost and spec.kind in ("tool", "llm")):
            continue
        parts = slices.with_turns(state, call)
        if not any(graph.specs[part].effect == "write" for part in parts):
            marks.append(spec.key)
    return marks[:MAX_NOTED_FAILURES]
