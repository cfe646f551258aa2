"""Decides whether a run goes on, ends, or is blocked: then nothing can move any more, and
it parks for a person.
"""

from collections.abc import Container, Sequence

from sennit.workflows.plan.scheduling import completion, joins, programs, ready, slices
from sennit.workflows.plan.scheduling.events import End, EndStatus
from sennit.workflows.plan.scheduling.state import NEXT_TRY, PARK, RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    FAILED,
    IN_DOUBT,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
)

OUTAGES = ("RateLimited", "ServerFailed", "ServerUnreachable")
"""Failures of a model's server that cost nothing, and may be over later
though nobody does anything.
"""
_NO_FAILURES = ("Skipped", "NotNeeded", "Cancelled", "Replaced")
"""Why nodes end without a value that have not failed."""
_CHANGES_NOTHING = ("tool", "llm", "join")
_SETTLED = (SUCCEEDED, SKIPPED, CANCELLED)
"""Ends of nodes that nobody has to look at."""
_RUN_OVER = ("Cancelled", "the run has ended without it")
FIRST_PAUSE, LONGEST_PAUSE = 30_000, 600_000
"""Milliseconds until the first attempt after an outage, and at most between two."""


def idle(state: RunState) -> bool:
    """Whether nothing runs, is ready, sleeps or waits for a person, and no more nodes are to come.
    What waits for budget may start once a cancelled call has told what it has used.
    """
    if not state.begun or state.ended or state.streaming:
        return False
    if state.running or state.waiting or state.heap:
        return False
    return not is_asleep(state) and not _is_owed(state)


def is_asleep(state: RunState) -> bool:
    """Whether a program sleeps, so that the run goes on by itself."""
    return any(unit >= 0 and state.kind_of(unit) == "tool" for unit in state.deadlines)


def _is_owed(state: RunState) -> bool:
    """Whether a unit waits for what a cancelled call has still to tell of the
    budget, or of a slice.
    """
    if state.budget is not None and state.budget.late and ready.unpaid(state):
        return True
    return slices.is_owed(state)


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
    is_done = not failed and not unpaid and _is_answer_whole(state)
    end(state, "done" if is_done else "partial")


def _is_answer_whole(state: RunState) -> bool:
    """Whether all of the answer is there, no failure is hidden in it, and nobody has to ask
    what became of a write.
    """
    for node in state.graph.execution_plan.answer:
        if state.units[node].status != SUCCEEDED:
            return False
    if any_unknown(state) or lost_maps(state):
        return False
    return not _answers_nothing(state)


def lost_maps(state: RunState) -> list[int]:
    """Return the maps that have a value although every one of their items has failed:
    `on_error` has skipped each.
    """
    maps: list[int] = []
    for node in state.items:
        if state.units[node].status == SUCCEEDED and _is_lost(state, node):
            maps.append(node)
    return maps


def _answers_nothing(state: RunState) -> bool:
    """Whether all that the answer is made of was skipped because it had failed."""
    # A join that has a value is made of its inputs. The leaves are those units
    # that are not such joins.
    stack = list(state.graph.execution_plan.answer)
    leaves: list[int] = []
    seen: dict[int, None] = {}
    while stack:
        unit = stack.pop()
        if unit in seen:
            continue
        seen[unit] = None
        inputs: Sequence[int] = ()
        if not state.is_item(unit):
            inputs = joins.inputs_of(state, unit)
        if inputs and state.units[unit].status == SUCCEEDED:
            stack += inputs
        else:
            leaves.append(unit)
    return _are_all_lost(state, leaves)


def _are_all_lost(state: RunState, units: Sequence[int]) -> bool:
    """Whether each of these units is lost; of no units that is false."""
    return bool(units) and all(_is_lost(state, unit) for unit in units)


def _is_lost(state: RunState, unit: int) -> bool:
    """Whether a unit has no value because it has failed, and `on_error` has skipped it; or a map,
    because all of its items have. What a condition or a person has skipped is not lost.
    """
    if state.units[unit].status == SUCCEEDED:
        return not state.is_item(unit) and _are_all_lost(state, state.values(unit))

    # In a chain, the failure is noted at an earlier unit of the item.
    while (
        state.is_item(unit)
        and state.units[unit].status == SKIPPED
        and state.units[unit].inherited_failure
    ):
        unit = state.before(unit)
    note = state.notes.get(unit)
    if state.units[unit].status != SKIPPED or note is None:
        return False
    kind, _ = note
    return kind not in _NO_FAILURES


def unused_failures(state: RunState) -> list[int]:
    """Return the failed nodes without which a run is done: nothing uses them, and
    they have changed nothing.
    """
    return [node for node in _failed_nodes(state) if _is_unused(state, node)]


def _failed_nodes(state: RunState) -> list[int]:
    """Return the nodes that have failed, without items of maps, in plan order."""
    nodes = range(len(state.graph.specs))
    return [node for node in nodes if state.units[node].status == FAILED]


def _is_unused(state: RunState, node: int) -> bool:
    """Whether nothing uses a node that only reads, computes or asks a model. What writes, asks a
    person or goes on by itself counts as used: a person wants to know.
    """
    graph = state.graph
    spec = graph.specs[node]
    if spec.page or node in graph.answering or graph.behind(node):
        return False
    for work in (spec, *spec.stages):
        kind = work.item_kind if work.kind == "map" else work.kind
        if work.effect == "write" or kind not in _CHANGES_NOTHING:
            return False
    return True


def any_unknown(state: RunState) -> bool:
    """Whether nobody knows of a write whether it was made, and no person has
    decided what to do about it.
    """
    for effects in state.effects.values():
        for effect in effects:
            if effect.status == "unknown":
                return True
    return False


def park(state: RunState) -> None:
    """Wait for a person, up to the park deadline. What an outage has failed is tried again
    meanwhile, each time after twice as long.
    """
    if state.parked:
        return
    state.parked = True
    state.deadlines[PARK] = state.now + state.park_for
    if outages(state):
        if state.park_until:
            state.deadlines[PARK] = state.park_until
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
    """Return the blocking failures that may be over later: of models,
    sub-agents, and maps of those.
    """
    nodes: list[int] = []
    for node in blocking_failures(state):
        if _is_outage(state, node):
            nodes.append(node)
    return tuple(nodes)


def _is_outage(state: RunState, node: int) -> bool:
    """Whether a model or a sub-agent has failed by an outage: the node
    itself, or an item of a map.
    """
    spec = state.spec_of(node)
    if not spec.calls_model and "agent" not in (spec.kind, spec.item_kind):
        return False
    for unit in (node, *state.items.get(node, ())):
        note = state.notes.get(unit)
        if state.units[unit].status == FAILED and note is not None and note[0] in OUTAGES:
            return True
    return False


def blocking_failures(state: RunState) -> tuple[int, ...]:
    """Return the writes in doubt, and the failed nodes that no tolerant join has
    excused, in plan order.

    A failure is excused if everything that depends on it has succeeded, or is itself blocked or
    failed by it and excused. A failed node that the answer names is not excused, nor is one
    that nothing consumes, except for reads, computations and model calls, for a call that a
    program does not read, or not any more, and for one that its script has caught. Of writes,
    only those are that the program was told of. What a script has called when it ran before,
    and not again, blocks nothing.
    """
    in_doubt = state.units_in(IN_DOUBT)
    failed = _failed_nodes(state)
    if not failed:
        return tuple(in_doubt)

    # A failure blocks nothing if it is excused, if a script has caught it, or if no script makes
    # its call any more. A fallback that fails is not to blame either: its node has failed with it.
    excused = _excused(state)
    caught = _caught(state, excused)
    blamed: list[int] = []
    for node in failed:
        if excused[node] or node in caught or programs.is_replaced(state, node):
            continue
        if _is_blamed(state, node):
            blamed.append(node)

    # A person mends the failures from which others follow. If each follows from another
    # one, all of them block.
    roots = [node for node in blamed if not _follows_from_another(state, node)]
    return tuple(sorted([*in_doubt, *(roots or blamed)]))


def handled(state: RunState) -> dict[int, None]:
    """Return the calls and tasks of programs that have failed, and whose
    failure a script has caught.
    """
    if not _failed_nodes(state):
        return {}
    return _caught(state, _excused(state))


def _caught(state: RunState, excused: Sequence[bool]) -> dict[int, None]:
    """Return the failed calls and tasks of programs that are excused, or whose
    failure a script has caught.
    """
    failed = [node for node in _failed_nodes(state) if state.graph.specs[node].page]
    if not failed:
        return {}

    # A program that has failed because of a call has not caught that failure.
    raised: dict[int, None] = {}
    for program in state.sessions:
        raised |= dict.fromkeys(programs.failures_read(state, program))

    caught: dict[int, None] = {}
    for node in failed:
        if excused[node] or _is_caught(state, node, raised):
            caught[node] = None
    return caught


def _is_caught(state: RunState, call: int, raised: Container[int]) -> bool:
    """Whether a script was told of the failure of a call and has gone on, or
    the loop of a model was.
    """
    for join in state.graph.joins[call]:
        if state.units[join].status == SUCCEEDED:
            return True
    return call not in raised and programs.has_taken_notice(state, call)


def _excused(state: RunState) -> list[bool]:
    """Return of each node whether nobody has to look at it: it has succeeded, or
    its failure is excused.
    """
    graph = state.graph
    answer = dict.fromkeys(graph.execution_plan.answer)
    excused: list[bool] = []
    for node in range(len(graph.specs)):
        excused.append(state.units[node].status in _SETTLED)

    # From the end of the plan to its beginning, for a node is excused by those that depend on it.
    order = graph.order()[::-1]
    # No edge says that a call comes before its program, by which it is excused: so the
    # second time that is known.
    if state.sessions:
        order += order
    for node in order:
        if excused[node] or node in answer or _is_unread(state, node):
            continue
        excused[node] = _is_excused(state, node, excused)
    return excused


def _is_excused(state: RunState, node: int, excused: Sequence[bool]) -> bool:
    """Whether the end of a node concerns nobody: all that depend on it are
    excused, or nobody needs it.
    """
    dependents = state.graph.behind(node)
    for dependent in dependents:
        if not excused[dependent]:
            return False
    if dependents or state.graph.specs[node].page:
        return True
    return _is_unused(state, node)


def _is_unread(state: RunState, node: int) -> bool:
    """Whether a script has called this write, and was never told that it has failed."""
    if state.graph.specs[node].effect != "write" or state.units[node].status != FAILED:
        return False
    if state.graph.caller_of(node) < 0 or programs.is_left_behind(state, node):
        return False
    return not programs.is_told(state, node)


def _is_blamed(state: RunState, node: int) -> bool:
    """Whether a failed node is to blame, and not the node whose fallback it is."""
    host = state.graph.predecessor.get(node)
    return host is None or state.units[host].status != FAILED


def _follows_from_another(state: RunState, node: int) -> bool:
    """Whether a join has failed because of an input, or a program because of a call."""
    spec = state.graph.specs[node]
    causes = spec.inputs
    if spec.kind == "program":
        causes = programs.failures_read(state, node)
    return any(state.units[cause].status in (FAILED, BLOCKED) for cause in causes)


def end(state: RunState, status: EndStatus) -> None:
    """Close the run: cancel what runs, and settle what is pending as skipped, or as cancelled if
    the run is. It is over as soon as no write of it is in flight any more.
    """
    # From now on nothing waits, sleeps or is to be worked out.
    state.ended = True
    state.end_status = status
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

    # Each unit gets a status that is an end.
    final = CANCELLED if status == "cancelled" else SKIPPED
    for unit in state.numbers():
        before = state.units[unit].status
        if before == RUNNING:
            completion.cut_off(state, unit)
            state.set_status(unit, CANCELLED)
            state.notes[unit] = _RUN_OVER
        elif before == IN_DOUBT:
            state.set_status(unit, FAILED)
        elif before in (PENDING, WAITING, BLOCKED) or before > BLOCKED:
            state.set_status(unit, final)

    # A write that was cut off goes on to run until its end is told.
    if not state.running:
        state.out.append(End(status))
