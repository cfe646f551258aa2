"""Slices of the budget: what the calls of one task of a script may spend.

A script bounds a task by `task(f, ..., budget=...)`. Its slice is a `Budget` like the run's: a call
reserves what it is expected to use, and books what it has used, in the run's budget and in each
slice that it belongs to, which are those of its task and of the tasks around that. A call waits
while those that run may still leave it room. Once a slice is spent, the next call of a model or an
agent in it fails with `BudgetExceeded`. Calls of tools spend nothing, and go on.

The scheduler decides this, and not the script's process. Only the scheduler knows what runs beside
a call, the further turns of a tool loop, what a sub-agent may have, and what a cancelled call tells
late. It decides by the events of the history alone. What a slice has spent is the sum of what the
calls have used that its task makes as the script is now: when a program goes back, the sums are
made anew, and a call that the script takes over counts by what it has used.
"""

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop
from typing import Any

from sennit.workflows.plan.language.limits import NO_USAGE, Usage, amount_text
from sennit.workflows.plan.scheduling.budget import Amounts, Budget, Slice, ledger
from sennit.workflows.plan.scheduling.call_names import unit_called
from sennit.workflows.plan.scheduling.events import Outcome
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import DELEGATED, RUNNING

BUDGET_EXCEEDED = "BudgetExceeded"
"""The failure of a call whose task has spent its budget."""
PAID_KINDS = ("llm", "agent")
"""The kinds of calls that spend something."""


def slices_of(state: RunState, unit: int) -> list[Slice]:
    """Return the slices that a unit spends from, the innermost first."""
    return [state.slices[holder] for holder in holders_of(state, unit)]


def holders_of(state: RunState, unit: int) -> list[int]:
    """Return what has the slices that a unit spends from: its call itself, and
    the tasks that it is in.
    """
    if not state.slices or state.is_item(unit):
        return []
    graph = state.graph
    holders: list[int] = []
    holder = call_of(state, unit)
    while holder >= 0:
        if holder in state.slices:
            holders.append(holder)
        program = graph.caller_of(holder)
        holder = unit_called(state, program, graph.specs[holder].slice_of)
    return holders


def budgets_of(state: RunState, unit: int) -> Iterator[Budget]:
    """Yield all budgets that a unit spends from: the run's, and its slices."""
    if state.budget is not None:
        yield state.budget
    for opened in slices_of(state, unit):
        yield opened.budget


def left_of(state: RunState, unit: int) -> dict[str, int]:
    """Return what a running unit may still use: of each limit the least that
    its budgets have for it.
    """
    left: dict[str, int] = {}
    for budget in budgets_of(state, unit):
        for name, rest in budget.rest(unit).items():
            known = left.get(name, rest)
            left[name] = min(rest, known)
    return left


def left_in_tasks(state: RunState, program: int) -> dict[str, dict[str, int]]:
    """Return what the slices of a program's running tasks have left, by the ids of the tasks."""
    left: dict[str, dict[str, int]] = {}
    # A script that has gone back may be inside a task whose end it has told before.
    may_run_again = state.units[program].generation > 1
    for holder, its in state.slices.items():
        spec = state.graph.specs[holder]
        if spec.kind != "task" or state.graph.caller_of(holder) != program:
            continue
        if state.units[holder].status == DELEGATED or may_run_again:
            task = state.sessions[program].names.get(holder, spec.id)
            left[task] = {name: its.budget.left(name) for name in its.budget.limits}
    return left


def ledger_of(state: RunState, unit: int) -> dict[str, dict[str, Any]]:
    """Return the limits of a unit's own slice, with what is spent and reserved;
    nothing if it has none.
    """
    its = state.slices.get(unit)
    if its is None:
        return {}
    rows = ledger(its.budget)
    return {name: rows[name] for name in its.budget.limits}


def refusal(state: RunState, unit: int) -> str:
    """Return why a unit may not start because its slice is spent; "" if it may."""
    if state.kind_of(unit) not in PAID_KINDS or unit in state.answers:
        return ""
    for holder in holders_of(state, unit):
        spent = spent_of(state.slices[holder].budget)
        if spent:
            return f"{state.graph.specs[holder].call_site} {spent}"
    return ""


def spent_of(budget: Budget) -> str:
    """Return which limit a slice has reached, and what to do about it; ""
    if it has reached none.
    """
    for name in budget.short():
        counted = "model calls" if name == "calls" else name
        used = amount_text(counted, getattr(budget.spent, name))
        limit = amount_text(counted, budget.limits[name])
        return f"has used {used} of its budget of {limit}: give it more, or catch {BUDGET_EXCEEDED}"
    return ""


# What calls reserve and use.


def settle(state: RunState, unit: int, outcome: Outcome | None) -> None:
    """Book what an ended start has used in its slices, or all that it had reserved if nobody knows
    that. A call that a fork has taken over counts with what the run before has paid for it.
    """
    for opened in slices_of(state, unit):
        if outcome is None:
            opened.budget.settle(unit, None)
            continue
        used = replace(opened.budget.used(unit, outcome))  # what is reserved is settled as it is
        used.add(Amounts.of(outcome.paid))
        opened.budget.settle(unit, used)


def settle_late(state: RunState, unit: int, generation: int, usage: Usage | None) -> None:
    """Book what a cancelled call has used, and let others of its tasks go on with the rest.

    A slice that an edit has opened anew since then has nothing reserved for that start. It counts
    what the call tells all the same, unless the script has not made the call again: then it counts
    that when the script does.
    """
    for opened in slices_of(state, unit):
        if (unit, generation) in opened.budget.late:
            opened.budget.settle_late(unit, generation, usage)
        elif usage is not None and _is_owed_to(state, opened, unit, generation):
            opened.budget.spent.add(Amounts.of(usage))


def _is_owed_to(state: RunState, opened: Slice, unit: int, generation: int) -> bool:
    """Whether a slice that was opened anew has not counted a start that was cut off before,
    and nothing else will.
    """
    if state.runs(unit, generation):
        return False
    # A write that is in flight.
    if unit in opened.budget.reserved and state.units[unit].status != RUNNING:
        return False
    call = call_of(state, unit)
    program = state.graph.caller_of(call)
    return call in state.sessions[program].calls


def next_waiting(state: RunState, unit: int) -> list[int]:
    """Take the first unit that waits for each slice of a unit out of its queue, and return them."""
    next_units: list[int] = []
    for opened in slices_of(state, unit):
        while opened.waiting:
            _, _, waiting = heappop(opened.waiting)
            if state.is_queued(waiting):  # else it was cancelled
                next_units.append(waiting)
                break
    return next_units


def is_owed(state: RunState) -> bool:
    """Whether a unit waits for what a cancelled call of its task has still to tell."""
    for opened in state.slices.values():
        if not opened.budget.late:
            continue
        for _, _, unit in opened.waiting:
            if state.is_queued(unit):
                return True
    return False


# Calls and tasks of a script.


def enter(state: RunState, unit: int) -> None:
    """Note a call or a task that a script has made, or made again: it opens its slice, and a call
    counts in its slices with what it has used so far.
    """
    limits = state.graph.specs[unit].slice
    if limits:
        state.slices[unit] = Slice(Budget(dict(limits)))
    if not state.slices:
        return
    for part in with_turns(state, unit):
        used = state.used.get(part, NO_USAGE)
        used = used.plus(state.paid.get(part, NO_USAGE))
        for opened in slices_of(state, part):
            opened.budget.spent.add(Amounts.of(used))
            if used.tokens:
                opened.budget.seen += used.calls


def close(state: RunState, program: int) -> list[int]:
    """Close the slices of a program whose script goes back, and return the units that have
    waited for one of them.
    """
    waiting: dict[int, None] = {}
    for holder in list(state.slices):
        if state.graph.caller_of(holder) != program:
            continue
        closed = state.slices.pop(holder)
        for _, _, unit in sorted(closed.waiting):
            if state.is_queued(unit):
                waiting[unit] = None
    return list(waiting)


def call_of(state: RunState, unit: int) -> int:
    """Return the call of a script that a unit belongs to: itself, or the model call whose
    tool loop has made it.
    """
    graph = state.graph
    while graph.caller_of(unit) < 0 and graph.specs[unit].maker >= 0:
        unit = graph.specs[unit].maker
    return unit


def with_turns(state: RunState, call: int) -> list[int]:
    """Return a call of a script, and what the tool loop of that model has made."""
    calls = [call]
    for known in calls:  # which grows
        calls += state.graph.made_by(known)
    return calls
