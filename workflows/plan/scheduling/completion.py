"""How a unit ends: with a value, without one, by its `on_error`, or cancelled. Nothing here looks at other units.

The effects on other units go through the work list (`propagation.py`) and never through recursion. A chain of thousands
of skips costs no stack, and the order is explicit: first in, first out.
"""

from workflows.plan.compile.graph import NodeSpec
from workflows.plan.scheduling import ready
from workflows.plan.scheduling.events import Cancel, ExpansionRequest, Outcome, Question
from workflows.plan.scheduling.state import (
    AWAITING_FALLBACK,
    BLOCKED,
    CANCELLED,
    EXPANDED,
    FAILED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)

NOT_NEEDED = ("NotNeeded", "it is the fallback of a node that did not fail")


def live(status: int) -> bool:
    """Whether a unit runs or may still run, so that it can be cancelled."""
    return status in (PENDING, RUNNING, WAITING, AWAITING_FALLBACK, EXPANDED)


def complete(state: RunState, unit: int, outcome: Outcome) -> None:
    """Take the outcome of a unit that has stopped running."""
    state.expansion_requests.pop(unit, None)
    if outcome.written and unit in state.approved:
        state.approved[unit] = state.approved[unit]._replace(written=outcome.written)
    if outcome.expansion_request is not None:
        _hold(state, unit, outcome, outcome.expansion_request)
    elif outcome.question is not None:
        _ask(state, unit, outcome.question)
    elif outcome.delegated:
        state.status[unit] = AWAITING_FALLBACK
        state.mark(state.spec_of(unit).instead)
    elif outcome.digest is not None:
        succeed(state, unit, outcome)
    elif outcome.again:
        if outcome.objections:
            state.objections[unit] = outcome.objections
        put_back(state, unit)
    elif outcome.skipped:
        end_without_value(state, unit, SKIPPED, ("Skipped", "its condition was false"))
    else:
        fail(state, unit, *(outcome.error or ("Failed", "no reason given")))


def _ask(state: RunState, unit: int, question: Question) -> None:
    """Ask a person; not about values of which some are being made again."""
    state.approved.pop(unit, None)  # what it asks is another thing
    deps = state.graph.deps[state.node_of(unit)]
    if any(live(state.status[dep]) for dep in deps):
        put_back(state, unit)
        return
    state.questions[unit] = question
    wait(state, unit)


def _hold(state: RunState, unit: int, outcome: Outcome, request: ExpansionRequest) -> None:
    """Ask a person about the nodes that a model wants to add, and keep what is needed to continue without a call."""
    state.expansion_requests[unit] = request
    state.size[unit] = outcome.size
    if outcome.facts:
        state.facts[unit] = outcome.facts
    wait(state, unit)


def wait(state: RunState, unit: int) -> None:
    """Wait for a person."""
    state.status[unit] = WAITING
    state.waiting += 1
    spec = state.spec_of(unit)
    if spec.kind == "gate" and spec.deadline:
        state.deadlines[unit] = state.now + spec.deadline


def no_longer_wait(state: RunState, unit: int) -> None:
    """Withdraw what a unit asks a person. The caller decides what follows."""
    state.waiting -= 1
    state.deadlines.pop(unit, None)
    state.questions.pop(unit, None)


def succeed(state: RunState, unit: int, outcome: Outcome) -> None:
    """The unit has a value."""
    state.status[unit] = SUCCEEDED
    state.digest[unit] = outcome.digest
    state.size[unit] = outcome.size
    if outcome.facts:
        state.facts[unit] = outcome.facts
    if outcome.taken_over:
        state.taken_over[unit] = True
    state.work.append(unit)


def fail(state: RunState, unit: int, kind: str, message: str, *, derived: bool = False) -> None:
    """Fail a unit for good and do what its `on_error` says. `derived`: it failed only because of a dependency."""
    spec = state.spec_of(unit)
    item = state.is_item(unit)
    state.notes[unit] = (kind, message)
    fallback = spec.item_fallback if item else spec.fallback
    if fallback is not None:
        digest, size, facts = fallback
        succeed(state, unit, Outcome(digest, size, dict(facts)))
    elif spec.item_skip if item else spec.skip_on_error:
        end_without_value(state, unit, SKIPPED, (kind, message))
    elif spec.instead >= 0 and not item and state.status[spec.instead] == PENDING and not _continues(state, spec):
        state.status[unit] = AWAITING_FALLBACK
        state.mark(spec.instead)
    else:
        if derived:
            state.inherited_failure[unit] = True
        end_without_value(state, unit, FAILED, (kind, message))


def _continues(state: RunState, spec: NodeSpec) -> bool:
    """Whether what is to run in a node's place is no fallback, but how it went on the last time that it ran."""
    return state.graph.specs[spec.instead].maker >= 0


def end_without_value(state: RunState, unit: int, status: int, note: tuple[str, str] | None = None) -> None:
    """The unit ends, or is blocked, without a value."""
    state.status[unit] = status
    state.queued[unit] = False
    state.expansion_requests.pop(unit, None)
    state.questions.pop(unit, None)
    if note:
        state.notes[unit] = note
    state.work.append(unit)
    if unit in state.graph.group_of:
        ungroup(state, state.graph.group_of[unit])


def put_back(state: RunState, unit: int) -> None:
    """Queue a unit that ran, so that it starts again, alone."""
    state.status[unit] = PENDING
    if state.is_item(unit):
        if supplied(state, state.node_of(unit)):
            ready.queue(state, unit)
    elif unit in state.items:
        ready.queue(state, unit)
    else:
        state.mark(unit)


def supplied(state: RunState, node: int) -> bool:
    """Whether an open map's items may start: not while a node that the map needs is running again."""
    needs = state.graph.specs[node].needs
    return state.status[node] == EXPANDED and all(state.status[need] == SUCCEEDED for need in needs)


def resume(state: RunState, node: int) -> None:
    """Queue an open map's pending items."""
    if supplied(state, node):
        for item in state.items[node]:
            if state.status[item] == PENDING and not state.queued[item]:
                ready.queue(state, item)


def ungroup(state: RunState, group: int) -> None:
    """Have the members of a group start one by one."""
    if state.ungrouped[group]:
        return
    state.ungrouped[group] = True
    for member in state.graph.groups[group]:
        state.floor[member] = 0
        state.queued[member] = False
        if state.status[member] == PENDING:
            state.mark(member)


def cancel(state: RunState, unit: int, status: int, note: tuple[str, str]) -> None:
    """End a live unit and what runs for it: a map's items, or a fallback node. Later results are ignored."""
    stack = [unit]
    while stack:
        here = stack.pop()
        before = state.status[here]
        if before == RUNNING:
            _count_cut_off(state, here)
            ready.release(state, here)
            state.out.append(Cancel(here, state.generation[here]))
        elif before == WAITING:
            no_longer_wait(state, here)
        elif before == EXPANDED:
            stack += [item for item in reversed(state.items[here]) if live(state.status[item])]
        elif before == AWAITING_FALLBACK:
            stack += [node for node in (state.graph.specs[here].instead,) if live(state.status[node])]
        state.deadlines.pop(here, None)
        end_without_value(state, here, status, note)
        status = CANCELLED


def _count_cut_off(state: RunState, unit: int) -> None:
    """Count the attempt that a cancelled unit was on; to put a question together, or to add nodes, is none."""
    spec = state.spec_of(unit)
    if unit not in state.expansion_requests and (unit in state.approved or not spec.approval) and spec.kind != "gate":
        state.attempts[unit] += 1
        state.millis[unit] = state.now - state.started[unit]


def skip_blocked(state: RunState, node: int, note: tuple[str, str] | None = None) -> None:
    """End a blocked or failed node for good, and everything that is blocked behind it: no repair can help them any
    more.

    They counted as ended without a value before, so nothing is counted again.
    """
    stack = [node]
    while stack:
        here = stack.pop()
        state.status[here] = SKIPPED
        if note:
            state.notes[here] = note
        stack += [
            other
            for other in reversed(state.graph.consumers[here])
            if state.status[other] == BLOCKED and here not in state.graph.specs[other].watches
        ]
        not_needed(state, state.graph.specs[here].instead, stack)
        note = None


def not_needed(state: RunState, fallback: int, blocked: list[int]) -> None:
    """Skip a fallback whose node did not fail. A blocked one is added to `blocked`, to end without being counted."""
    if fallback < 0:
        return
    if state.status[fallback] == BLOCKED:
        blocked.append(fallback)
    elif state.status[fallback] == PENDING:
        state.inherited_failure[fallback] = True
        end_without_value(state, fallback, SKIPPED, NOT_NEEDED)
