"""How a unit ends: with a value, without one, by its `on_error`, or cancelled. Nothing
here looks at other units.

The effects on other units go through the work list (`propagation.py`) and never through recursion.
A chain of thousands of skips costs no stack, and the order is explicit: first in, first out.
"""

from sennit.workflows.plan.limits import MAX_NOTE_CHARACTERS, MAX_WHOLE_NOTES
from sennit.workflows.plan.scheduling import programs, ready, slices
from sennit.workflows.plan.scheduling.events import (
    Approval,
    Cancel,
    Effect,
    LookUp,
    Outcome,
    Question,
    WriteStatus,
    Written,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    EXPANDED,
    FAILED,
    IN_DOUBT,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Status,
)

UNKNOWN_OUTCOME, NOT_WRITTEN = "UnknownOutcome", "NotWritten"
"""What the ledger of effects says of a write that left no result."""
REJECTED = "Rejected"
"""The failure of a write that a person, or a rule of the operator, has refused."""
INVALID_RESULT = "InvalidResult"
BAD_OUTPUT = "BadOutput"
"""What a tool has returned is not of the type it declares. A write was made."""
LOST = ("WorkerLost", "Cancelled", INVALID_RESULT)
"""Ends of an activity that nobody asked for, and that say nothing about its write."""
NO_ITEMS = ("Skipped", "the map whose items it goes over has ended without a value")
NOT_NEEDED = ("NotNeeded", "it is the fallback of a node that did not fail")
_MAY_WRITE = ("tool", "agent")
"""The kinds of units whose activities may write."""


def live(status: Status) -> bool:
    """Whether a unit runs or may still run, so that it can be cancelled."""
    return status in (PENDING, RUNNING, WAITING, DELEGATED, EXPANDED, IN_DOUBT)


def complete(state: RunState, unit: int, outcome: Outcome) -> None:
    """Take the outcome of a unit that has stopped running."""
    if outcome.digest is not None:
        _forget_made(state, unit)  # before what a sub-agent tells of now
    _note_below(state, unit, state.units[unit].generation, outcome)
    approval = state.units[unit].approved
    if outcome.written and approval is not None:
        state.units[unit].approved = approval._replace(written=outcome.written)
    if outcome.question is not None:
        _ask(state, unit, outcome.question)
    elif outcome.delegated:
        state.set_status(unit, DELEGATED)
        if state.spec_of(unit).successor >= 0:
            state.mark(state.spec_of(unit).successor)
    elif outcome.digest is not None:
        succeed(state, unit, outcome)
    elif outcome.again:
        _start_again(state, unit, outcome)
    elif outcome.skipped:
        end_without_value(state, unit, SKIPPED, ("Skipped", "its condition was false"))
    elif _is_lost(state, unit, outcome) and unit not in state.resumed:
        state.resumed[unit] = True
        put_back(state, unit)
    else:
        kind, message = outcome.error or ("Failed", "no reason given")
        fail(state, unit, kind, message)


def _start_again(state: RunState, unit: int, outcome: Outcome) -> None:
    """Start a unit once more, with what its activity has found out about it."""
    if outcome.objections:
        state.units[unit].objections = outcome.objections
    if outcome.needs:
        state.units[unit].prompt_tokens = outcome.needs
    if outcome.error is not None:
        state.units[unit].alone = True
    put_back(state, unit)


def _ask(state: RunState, unit: int, question: Question) -> None:
    """Ask a person, unless a rule has decided; not about values of which
    some are being made again.
    """
    state.units[unit].approved = None  # what it asks is another thing
    if _has_live_dependency(state, unit):
        put_back(state, unit)
        return
    if question.ruling == "refuse":
        fail(state, unit, REJECTED, f"the rule {question.rule} of the operator refuses it")
    elif question.ruling == "allow":
        state.units[unit].approved = Approval(
            question.digest, question.target, {}, rule=question.rule
        )
        put_back(state, unit)
    else:
        state.questions[unit] = question
        wait(state, unit)


def _has_live_dependency(state: RunState, unit: int) -> bool:
    """Whether a value that a unit has read is being made again."""
    node = state.node_of(unit)
    # An item does not read all of the map that its own runs behind, but only the item of
    # it that has its place.
    source = state.graph.specs[node].source
    for dep in state.graph.deps[node]:
        if dep != source and live(state.units[dep].status):
            return True
    return state.is_item(unit) and any(live(state.units[dep].status) for dep in state.read_by(unit))


def wait(state: RunState, unit: int) -> None:
    """Wait for a person."""
    state.set_status(unit, WAITING)
    state.waiting += 1
    state.waits.end(unit, state.now, is_call=state.is_call(unit))
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
    state.set_status(unit, SUCCEEDED)
    state.waits.open.pop(unit, None)
    state.units[unit].digest = outcome.digest
    state.units[unit].size = outcome.size
    if outcome.facts:
        state.units[unit].facts = outcome.facts
    if outcome.taken_over:
        state.taken_over[unit] = True
    if outcome.at and state.spec_of(unit).maker >= 0:
        state.units[unit].ended_at = outcome.at
        state.last_end = max(state.last_end, outcome.at)
    state.work.append(unit)


def fail(state: RunState, unit: int, kind: str, message: str, *, derived: bool = False) -> None:
    """Fail a unit for good and do what its `on_error` says. `derived`: it failed only
    because of a dependency.
    """
    spec = state.spec_of(unit)
    item = state.is_item(unit)
    if len(state.notes) >= MAX_WHOLE_NOTES:
        message = message[:MAX_NOTE_CHARACTERS]
    state.notes[unit] = (kind, message)
    if kind == BAD_OUTPUT and may_write(state, unit):
        _note(state, unit, state.units[unit].generation, "made")

    # Nothing follows from a failure of which nobody knows whether it is one:
    # a person decides first.
    if _is_in_doubt(state, unit, kind):
        _doubt(state, unit, kind, message)
        return

    # Then its `on_error` counts: a value, a skip or another node in its place.
    fallback = spec.item_fallback if item else spec.fallback
    if fallback is not None:
        digest, size, facts = fallback
        succeed(state, unit, Outcome(digest, size, dict(facts)))
        return
    is_skipped = spec.item_skip if item else spec.skip_on_error
    if is_skipped:
        end_without_value(state, unit, SKIPPED, (kind, message))
        return
    if not item and _turn_to_fallback(state, unit):
        return

    # Nothing stands in for it.
    if derived:
        state.units[unit].inherited_failure = True
    end_without_value(state, unit, FAILED, (kind, message))


def _turn_to_fallback(state: RunState, node: int) -> bool:
    """Have the fallback of a node run in its place; return whether there is
    one that may still run.
    """
    graph = state.graph
    fallback = graph.fallback_of(node)
    if fallback < 0 or state.units[fallback].status != PENDING:
        return False
    # The turns with which it went on when it ran before give way to it.
    if fallback != graph.specs[node].successor:
        graph.put_behind(fallback, node)
    state.set_status(node, DELEGATED)
    state.mark(fallback)
    return True


def end_without_value(
    state: RunState, unit: int, status: Status, note: tuple[str, str] | None = None
) -> None:
    """The unit ends, or is blocked, without a value."""
    state.set_status(unit, status)
    state.waits.open.pop(unit, None)
    state.units[unit].queued = False
    state.questions.pop(unit, None)
    if note:
        state.notes[unit] = note
    state.work.append(unit)


def put_back(state: RunState, unit: int) -> None:
    """Queue a unit that ran, so that it starts again."""
    if unit in state.sessions and programs.advance_again(state, unit):
        return
    state.set_status(unit, PENDING)
    if state.is_item(unit):
        feed(state, unit)
    elif unit in state.items:
        ready.queue(state, unit)
    else:
        state.mark(unit)


def supplied(state: RunState, node: int) -> bool:
    """Whether an open map's items may start: not while a node that the map
    needs is running again.
    """
    if state.units[node].status != EXPANDED:
        return False
    spec = state.graph.specs[node]
    for need in spec.needs:
        if need == spec.source:
            continue
        if state.units[need].status != SUCCEEDED:
            return False
    return True


def resume(state: RunState, node: int) -> None:
    """Queue an open map's pending items, as far as what they wait for is there."""
    if supplied(state, node):
        for item in state.items[node]:
            if state.units[item].status == PENDING and not state.units[item].queued:
                _feed(state, item)


def feed(state: RunState, unit: int) -> None:
    """Queue a pending unit of an item, or end it, if what it waits for has ended."""
    if state.units[unit].status != PENDING or state.units[unit].queued:
        return
    if supplied(state, state.node_of(unit)):
        _feed(state, unit)


def _feed(state: RunState, unit: int) -> None:
    """Queue a pending unit of an item of a map that is supplied, or end it, by how the
    unit before it has ended.
    """
    before = state.before(unit)
    status = SUCCEEDED if before < 0 else state.units[before].status
    if status == SUCCEEDED:
        for value in state.read_by(unit):
            if state.units[value].status != SUCCEEDED:  # it runs again
                return
        ready.queue(state, unit)
        return
    if not state.is_item(before):
        return
    if status in (SKIPPED, CANCELLED):
        ending = SKIPPED
    elif status in (FAILED, BLOCKED):
        ending = BLOCKED
    else:
        return
    state.units[unit].inherited_failure = True
    end_without_value(state, unit, ending)


def cancel(state: RunState, unit: int, status: Status, note: tuple[str, str]) -> None:
    """End a live unit and what runs for it: a map's items, or a fallback node.
    Later results are ignored.
    """
    stack = [unit]
    while stack:
        here = stack.pop()
        before = state.units[here].status
        if before == RUNNING:
            _count_cut_off(state, here)
            cut_off(state, here)
        elif before == WAITING:
            no_longer_wait(state, here)
        elif before == EXPANDED:
            for item in reversed(state.items[here]):
                if live(state.units[item].status):
                    stack.append(item)
        elif before == DELEGATED:
            spec = state.graph.specs[here]
            # It has run until now, and not only for its first advance.
            if spec.kind in ("program", "task"):
                state.units[here].millis = state.now - state.units[here].started
            if spec.successor >= 0 and live(state.units[spec.successor].status):
                stack.append(spec.successor)
        state.deadlines.pop(here, None)
        end_without_value(state, here, status, note)
        status = CANCELLED


def may_write(state: RunState, unit: int) -> bool:
    """Whether the activity of a running unit may write: a tool that does, or a sub-agent with such
    a tool. What nobody has approved only asks, and what a person has answered calls nothing.
    """
    spec = state.spec_of(unit)
    if spec.effect != "write" or unit in state.answers:
        return False
    if state.kind_of(unit) not in _MAY_WRITE:
        return False
    return state.units[unit].approved is not None or not spec.approval


def cut_off(state: RunState, unit: int) -> None:
    """Stop a running unit. A write keeps its slot and its locks until it is
    known what became of it.
    """
    generation = state.units[unit].generation
    state.out.append(Cancel(unit, generation))
    if may_write(state, unit):
        _note(state, unit, generation, "in flight")
        return
    if state.kind_of(unit) in slices.PAID_KINDS:
        for budget in slices.budgets_of(state, unit):
            budget.put_off(unit, generation)
    ready.release(state, unit)


def note_end(state: RunState, unit: int, generation: int, outcome: Outcome) -> bool:
    """Note what became of a write that was cut off. If its end does not say it, the ledger of
    effects is asked, and False returned: the write goes on to be in flight.
    """
    is_agent = state.kind_of(unit) == "agent"  # it tells of its writes one by one
    status = None if is_agent else fate_of(outcome)
    if status is None and not is_agent:
        state.out.append(LookUp(unit, generation))
        return False

    # What is known of the end takes the place of the note that it was in flight.
    in_flight = Effect(generation, "in flight")
    kept = [effect for effect in state.effects[unit] if effect != in_flight]
    state.effects[unit] = tuple(kept)
    if status is not None:
        _note(state, unit, generation, status)
    _note_below(state, unit, generation, outcome)
    if not state.effects[unit]:
        del state.effects[unit]
    return True


def fate_of(outcome: Outcome) -> WriteStatus | None:
    """Return what became of a write by the end of its activity, None if that does not say it."""
    if outcome.digest is not None:
        return "made"
    if outcome.again or outcome.skipped or outcome.question is not None:
        return "not made"
    if outcome.error is None:
        return None
    kind, _ = outcome.error
    if kind == NOT_WRITTEN:
        return "not made"
    return "unknown" if kind == UNKNOWN_OUTCOME else None


def note_written(state: RunState, unit: int, write: Written) -> None:
    """Note what the ledger of effects says of a write, unless the run knows that by itself."""
    generation = state.units[unit].generation
    if generation == write.generation and state.units[unit].status in (SUCCEEDED, RUNNING):
        return
    if generation > write.generation and write.status == "unknown":
        return  # it runs in a later generation only because a person has decided about this one
    if write.status == "in flight":
        return
    for effect in state.effects.get(unit, ()):
        if effect.generation == write.generation and effect.below == write.below:
            return
    _note(state, unit, write.generation, write.status, write.below)


def _forget_made(state: RunState, unit: int) -> None:
    """A write that has a result now was made before its run was reset: from now on its status tells
    that. The same holds for the writes of a sub-agent.
    """
    _forget_effects(state, unit, "made")


def _forget_effects(state: RunState, unit: int, status: WriteStatus) -> None:
    """Forget which writes of a unit had this status as it ran last."""
    generation = state.units[unit].generation
    kept: list[Effect] = []
    for effect in state.effects.get(unit, ()):
        if effect.generation != generation or effect.status != status:
            kept.append(effect)
    if kept:
        state.effects[unit] = tuple(kept)
    else:
        state.effects.pop(unit, None)


def _note(
    state: RunState, unit: int, generation: int, status: WriteStatus, below: str = ""
) -> None:
    """Note what became of a write, once."""
    effect = Effect(generation, status, below)
    known = state.effects.get(unit, ())
    if effect not in known:
        state.effects[unit] = (*known, effect)


def _note_below(state: RunState, unit: int, generation: int, outcome: Outcome) -> None:
    """Keep what a sub-agent says of its writes, or that nobody can say it."""
    if outcome.effects is None:
        _note(state, unit, generation, "unknown")
        return
    for path, status in outcome.effects:
        _note(state, unit, generation, status, path)


def _is_lost(state: RunState, unit: int, outcome: Outcome) -> bool:
    """Whether a write has ended without a word: by the loss of its workers,
    or by a stranger's hand.
    """
    if outcome.error is None:
        return False
    kind, _ = outcome.error
    return kind in LOST and may_write(state, unit)


def _is_in_doubt(state: RunState, unit: int, kind: str) -> bool:
    """Whether a failed unit may have written all the same, or a part of it."""
    unit_kind = state.kind_of(unit)
    if state.spec_of(unit).effect != "write" or unit_kind not in _MAY_WRITE:
        return False
    if kind == INVALID_RESULT and unit_kind == "agent":
        return _unknown(state, unit)  # what it has written it has told itself
    if kind == UNKNOWN_OUTCOME or _unknown(state, unit):
        return True
    return kind in LOST and may_write(state, unit)


def _unknown(state: RunState, unit: int) -> bool:
    """Whether it is noted of a unit that nobody knows whether it has written, as it ran last."""
    generation = state.units[unit].generation
    effects = state.effects.get(unit, ())
    return any(effect.generation == generation and effect.status == "unknown" for effect in effects)


def _doubt(state: RunState, unit: int, kind: str, message: str) -> None:
    """Wait for a person before any other node is told: not even `on_error` may
    take it for a failure.
    """
    if kind in LOST:
        state.notes[unit] = (UNKNOWN_OUTCOME, f"{message}; whether it took effect is not known")
    state.set_status(unit, IN_DOUBT)
    state.units[unit].queued = False
    if not _unknown(state, unit):
        _note(state, unit, state.units[unit].generation, "unknown")


def decided(state: RunState, unit: int) -> None:
    """Forget the doubt about a unit's writes: a person has decided that it runs again,
    or what its result is.
    """
    state.resumed.pop(unit, None)
    _forget_effects(state, unit, "unknown")


def _count_cut_off(state: RunState, unit: int) -> None:
    """Count the attempt that a cancelled unit was on; to put a question together is none."""
    spec = state.spec_of(unit)
    only_asks = spec.approval and state.units[unit].approved is None
    if only_asks or spec.kind == "gate":
        return
    state.units[unit].attempts += 1
    state.units[unit].millis = state.now - state.units[unit].started


def skip_blocked(state: RunState, node: int, note: tuple[str, str] | None = None) -> None:
    """End a blocked or failed node for good, and everything that is blocked behind it: no repair
    can help them any more.

    They counted as ended without a value before, so nothing is counted again.
    """
    stack = [node]
    while stack:
        here = stack.pop()
        state.set_status(here, SKIPPED)
        if note:
            state.notes[here] = note
        for dependent in reversed(state.graph.consumers[here]):
            if (
                state.units[dependent].status == BLOCKED
                and here not in state.graph.specs[dependent].watches
            ):
                stack.append(dependent)
        not_needed(state, state.graph.specs[here].successor, stack)
        note = None


def not_needed(state: RunState, fallback: int, blocked: list[int]) -> None:
    """Skip a fallback whose node did not fail. A blocked one is added to `blocked`, to end
    without being counted.
    """
    if fallback < 0:
        return
    if state.units[fallback].status == BLOCKED:
        blocked.append(fallback)
    elif state.units[fallback].status == PENDING:
        state.units[fallback].inherited_failure = True
        end_without_value(state, fallback, SKIPPED, NOT_NEEDED)
