"""Retries and skips that a person asks for while a run goes on, and what follows from them.

If a retried node ends as it did before, nothing else happens. Otherwise the nodes that read it run
again in turn, under a new generation.
"""

from collections.abc import Sequence
from typing import Any

from sennit.workflows.plan.scheduling import (
    admission,
    cancellation,
    completion,
    joins,
    program_calls,
    programs,
    propagation,
    reset,
    termination,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    ENDED,
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

_CALLS = ("tool", "llm", "agent")
_CHANGED = "changed"
"""As how a unit of a chain ended before, if those behind it have read something
else that has changed.
"""
_GIVEN_UP = ("Skipped", "a person skipped it")
_WRITTEN = ("UnknownOutcome", "AlreadyWritten")
_UNSURE = (
    "WorkerLost",
    "InvalidResult",
    "StoreUnavailable",
    "NodeTimeout",
    "OutputRefused",
    "SubAgentFailed",
    "RunFailed",
)
"""What the ledger of effects says, and other failures of what may have written all the same."""
_Affected = tuple[int, bool]
"""A node that a retry of another one concerns, and whether it runs again; else it
only gets another result.
"""


def retry(state: RunState, unit: int, *, is_edited: bool = False) -> None:
    """Run a unit again, with the cancelled nodes that it depends on. Of a map, run the failed items
    again; if no item failed but the map did, gather the items again; else run the whole map again.

    A retried item takes the cancelled items of its map with it. A program that `is_edited` begins
    again with its new script.
    """
    node = state.node_of(unit)
    unit = failed_in(state, unit)
    if state.is_item(unit) and unit not in state.items.get(node, ()):
        return
    termination.unpark(state)
    state.graph.sort()
    for other in _cancelled_dependencies(state, node):
        reset.reset(state, other)

    # Less than the whole node may run again: a part of a program, or items of a map.
    items = _lost(state, unit)
    if node in state.sessions:
        number = 0 if is_edited else programs.retried_from(state, node)
        program_calls.go_back(state, node, number)
    elif items:
        _retry_items(state, node, items)
    elif state.items.get(node) and _did_not_gather(state, node):
        _gather_again(state, node)
    else:
        reset.reset(state, node)


def failed_in(state: RunState, unit: int) -> int:
    """Return the unit of an item's chain behind which this one is blocked; this
    one itself if it is not.
    """
    items = state.items.get(state.node_of(unit), ())
    while (
        unit - 1 in items and state.units[unit].status == BLOCKED and state.before(unit) == unit - 1
    ):
        unit -= 1
    return unit


def again(state: RunState, unit: int) -> list[int]:
    """Return what of a unit's own node runs again with it: the node, or items of a map with what
    follows in their chains; none if it only gathers.
    """
    node = state.node_of(unit)
    items = state.items.get(node)
    if not items:
        return [node]

    # The items that have no value, or all of them if the map runs again as a whole.
    rerun: Sequence[int] = _lost(state, unit)
    if not rerun and not _did_not_gather(state, node):
        rerun = items

    # What follows a unit in its chain has read its value.
    per_item = state.graph.specs[node].per_item
    units: dict[int, None] = {}
    for item in rerun:
        stage = (item - items.start) % per_item
        end_of_chain = item + per_item - stage
        units |= dict.fromkeys(range(item, end_of_chain))
    return list(units)


def _lost(state: RunState, unit: int) -> list[int]:
    """Return the items of its map that run again with a unit: an item itself, and the
    items that have no value.
    """
    unit = failed_in(state, unit)
    statuses: tuple[Status, ...] = (FAILED, CANCELLED, IN_DOUBT)
    if state.is_item(unit):
        statuses = (CANCELLED,)
    lost: list[int] = []
    for item in state.items.get(state.node_of(unit), ()):
        if item == unit or state.units[item].status in statuses:
            lost.append(item)
    return lost


def _did_not_gather(state: RunState, node: int) -> bool:
    """Whether a map itself has failed, for another reason than a missing output that only
    its items can make again.
    """
    note = state.notes.get(node)
    return note is not None and note[0] != "BodyMissing"


def answer(state: RunState, unit: int, value: Any) -> None:
    """Give a call that has failed this result; what waits for it goes on as after a
    retry. Nothing is called.
    """
    if takes_answer(state, unit):
        start_over(state, unit)
        state.answers[unit] = value


def start_over(state: RunState, unit: int) -> None:
    """Make a unit pending under a new generation, and nothing else that it depends on."""
    node = state.node_of(unit)
    termination.unpark(state)
    state.graph.sort()
    if unit == node:
        reset.reset(state, node)
    else:
        _retry_items(state, node, [unit])


def takes_answer(state: RunState, unit: int) -> bool:
    """Whether a person may give the result of this unit, if it has failed. What stands in for
    another node takes one only while it is in doubt: later its node is to be answered.
    """
    node = state.node_of(unit)
    if state.is_item(unit) and unit not in state.items.get(node, ()):
        return False
    kind = state.kind_of(unit)
    if kind == "gate":
        return True
    if kind not in _CALLS:
        return False
    return not state.graph.specs[node].is_successor or state.units[unit].status == IN_DOUBT


def _cancelled_dependencies(state: RunState, node: int) -> list[int]:
    """Return the cancelled nodes without which this one could not run."""
    graph = state.graph
    cancelled: dict[int, None] = {}
    stack = [node]
    while stack:
        here = stack.pop()
        if state.units[here].status == SUCCEEDED:
            continue
        for dep in (*graph.deps[here], *graph.specs[here].inputs):
            if state.units[dep].status == CANCELLED and dep not in cancelled:
                cancelled[dep] = None
                stack.append(dep)
    return list(cancelled)


def _retry_items(state: RunState, node: int, items: list[int]) -> None:
    """Make units of a map's items pending under a new generation, and have the map
    gather again when they end.
    """
    # A map that has ended opens again, as it was.
    if state.units[node].status != EXPANDED:
        reset.await_fallback_again(state, node)
        reset.stop(state, node)
        reset.forget(state, node)
        state.set_status(node, EXPANDED)
        reset.reset_fallback(state, node)
        reset.recheck_dependents(state, node)

    # The units lose their values, and how they ended.
    for item in items:
        _keep_previous_end(state, item)
        reset.stop(state, item)
        completion.decided(state, item)
        state.units[item].generation += 1
        state.units[node].generation = max(
            state.units[node].generation, state.units[item].generation
        )
        state.set_status(item, PENDING)
        state.units[item].digest = None
        state.units[item].queued = False
        state.notes.pop(item, None)
        state.answers.pop(item, None)
        state.units[item].inherited_failure = False

    # All of them are pending before anything starts: else a unit could start on a
    # value that is made again.
    _recount_joins(state, node)
    for item in items:
        _hold_back(state, item)
    state.units[node].open_inputs = admission.open_units(state, node)
    completion.resume(state, node)


def _keep_previous_end(state: RunState, item: int) -> None:
    """Keep how a unit of an item has ended, to compare with its next end, if anything
    but its map reads that.
    """
    if state.units[item].status not in ENDED or state.units[item].inherited_failure:
        return
    if state.behind(item) or joins.of_items(state, state.node_of(item)):
        reset.keep_result(state, item)


def _has_read(state: RunState, join: int, item: int) -> bool:
    """Whether a join of a map's items has come to its end with this one, or
    because too few have a value.
    """
    chosen = state.units[join].chosen
    if chosen is not None:
        is_taken = item in chosen
        return is_taken and join in reset.takers(state, state.node_of(item))
    has_ended = state.units[join].status in (SUCCEEDED, FAILED)
    return has_ended and not state.units[join].inherited_failure


def _hold_back(state: RunState, unit: int) -> None:
    """Have what waits for a unit of an item wait again, if it has not started."""
    for dependent in state.behind(unit):
        node = state.node_of(dependent)
        state.units[dependent].queued = False
        if state.units[dependent].status == WAITING:
            reset.stop(state, dependent)
            state.set_status(dependent, PENDING)
        if state.units[dependent].inherited_failure and state.units[node].status == EXPANDED:
            state.set_status(dependent, PENDING)
            state.units[dependent].inherited_failure = False
            state.units[node].open_inputs += 1
            _recount_joins(state, node)
            _hold_back(state, dependent)


def _recount_joins(state: RunState, node: int) -> None:
    """Have the joins of a map's items count them again."""
    for join in joins.of_items(state, node):
        state.mark(join)


def _revise_item(state: RunState, unit: int) -> None:
    """A unit of an item that ran again has ended: what has read a different
    output of it runs again too.
    """
    node = state.node_of(unit)
    same = reset.ends_as_before(state, unit)
    state.units[node].open_inputs = admission.open_units(state, node)

    # The units that need its value, in its chain and in maps that run behind its own. If it has
    # ended as before, those with a value stay as they are, and the walk goes on behind them: units
    # there may have been blocked.
    stack = [unit]
    while stack:
        for dependent in state.behind(stack.pop()):
            has_read_another = not same and state.units[dependent].status != PENDING
            if state.units[dependent].inherited_failure or has_read_another:
                _retry_items(state, state.node_of(dependent), [dependent])
                record = state.units[dependent]
                had_ended = record.previous_result is not None
                if had_ended and dependent + 1 in state.behind(dependent):
                    record.previous_result = _CHANGED
            elif state.units[dependent].status == SUCCEEDED:
                stack.append(dependent)
            completion.feed(state, dependent)

    # The joins that take the values of items, and the map itself.
    if not same:
        for join in joins.of_items(state, node):
            if _has_read(state, join, unit):
                reset.reset(state, join)
    _recount_joins(state, node)
    if not state.units[node].open_inputs:
        admission.gather(state, node)


def skip(state: RunState, unit: int) -> None:
    """Skip a unit that has no value, for good, and notify its dependents. The calls of its tool
    loop, which nothing else reads, are cancelled.
    """
    unit = failed_in(state, unit)
    node = state.node_of(unit)
    before = state.units[unit].status
    if before in (SUCCEEDED, SKIPPED, CANCELLED):
        return
    is_dropped = unit != node and unit not in state.items.get(node, ())
    if is_dropped:
        return
    termination.unpark(state)
    state.graph.sort()
    if before not in (FAILED, BLOCKED):
        gone = cancellation.with_fallbacks(state, unit)
        reset.put_off_behind(state, unit)
        completion.cancel(state, unit, SKIPPED, _GIVEN_UP)
        fallbacks = [skipped for skipped in gone if skipped in state.graph.predecessor]
        cancellation.cancel_inputs(state, fallbacks, cancellation.CONSUMER_SKIPPED, off=gone)
        if unit in state.sessions:
            cancellation.cancel_calls(state, unit)
    elif unit == node:
        state.units[unit].inherited_failure = False
        completion.skip_blocked(state, unit, _GIVEN_UP)
        program_calls.follow_end(state, unit, same=False)
    else:
        _give_up_item(state, unit, node)


def _give_up_item(state: RunState, item: int, node: int) -> None:
    """Skip an item, and let the map that failed because of it gather again."""
    state.set_status(item, SKIPPED)
    state.notes[item] = _GIVEN_UP
    stack = [item]
    while stack:
        for dependent in state.behind(stack.pop()):
            if state.units[dependent].status == BLOCKED:
                state.set_status(dependent, SKIPPED)
                stack.append(dependent)
    if state.notes.get(node, ("", ""))[0] == "MapFailed":
        _gather_again(state, node)


def _gather_again(state: RunState, node: int) -> None:
    """Open a map again that has ended, to gather the values of its items once more."""
    _retry_items(state, node, [])
    if not state.units[node].open_inputs:
        admission.gather(state, node)


def revise(state: RunState, node: int) -> None:
    """A retried node has ended: every node that has read a different
    output of it runs again too.
    """
    status = state.units[node].status
    if state.units[node].previous_result is None or completion.live(status):
        return
    if state.is_item(node):
        if state.units[state.node_of(node)].status == EXPANDED:
            _revise_item(state, node)
        return
    same = reset.ends_as_before(state, node)
    for consumer in state.graph.consumers[node]:
        _follow(state, consumer, node, same=same)
    for join in state.graph.joins[node]:
        is_untouched = same or not _concerns(state, join, node)
        _follow(state, join, node, same=is_untouched)
    propagation.notify_fallbacks(state, node, status)
    program_calls.follow_end(state, node, same=same)


def _concerns(state: RunState, join: int, node: int) -> bool:
    """Whether a join that has started took this input: `first`, `quorum` and
    `turn` leave some out.
    """
    chosen = state.units[join].chosen
    if chosen is None:
        return True
    spec = state.graph.specs[join]
    if spec.of_items:  # it was told of each item
        return False
    return spec.policy not in ("first", "quorum", "turn") or node in chosen


def _follow(state: RunState, dependent: int, node: int, *, same: bool) -> None:
    """Go on with a dependent of a node that ran again, which has ended the `same` way as
    before or another way.
    """
    if not reset.has_started(state, dependent):
        if same:
            state.mark(dependent)
        else:
            reset.withdraw(state, dependent)
        return
    runs_behind = state.runs_behind(dependent, node)
    is_given_up = (
        state.units[dependent].status == CANCELLED or state.notes.get(dependent) == _GIVEN_UP
    )
    if same and not runs_behind:
        completion.resume(state, dependent)
    elif is_given_up:
        if reset.takers(state, dependent):
            reset.reset(state, dependent)
        reset.drop_items(state, dependent)
    elif not runs_behind:
        reset.reset(state, dependent)
    else:  # what has changed was told item by item
        if state.units[node].status != SUCCEEDED and state.units[dependent].status in ENDED:
            _retry_items(state, dependent, [])
        propagation.source_ended(state, dependent, state.units[node].status)


def is_passed(state: RunState, unit: int) -> bool:
    """Whether a script was told how a failed unit ended, by itself or by the end of a tool
    loop, and has gone on.
    """
    graph = state.graph
    stack = [state.node_of(unit)]
    seen = dict.fromkeys(stack)
    while stack:
        here = stack.pop()
        if programs.has_gone_on(state, here):
            return True
        readers = list(graph.joins[here])
        host = graph.predecessor.get(here)
        if host is not None:
            readers.append(host)
        for reader in readers:
            if reader not in seen:
                seen[reader] = None
                stack.append(reader)
    return False


def repeated(state: RunState, unit: int, *, runs: bool = True) -> list[int]:
    """Return the nodes that may repeat a write if a person has this unit run again, in the order
    found: itself, those that were cancelled and run again for it, and those behind it. If it gets a
    result without that it `runs`, only those behind it.

    A node writes if its tool or a tool of its sub-agent does; a map writes if its items do. The
    model of a tool loop may repeat every call that it has made.
    """
    node = state.node_of(unit)
    written: list[int] = []
    rerun: dict[int, None] = {}
    if runs:
        if _has_any_written(state, again(state, unit)):
            written.append(node)
        rerun |= dict.fromkeys(_cancelled_dependencies(state, node))
    rerun |= dict.fromkeys(_after(state, node, runs=runs))
    for candidate in rerun:
        if _has_any_written(state, _units(state, candidate)):
            written.append(candidate)
    return written


def _units(state: RunState, node: int) -> Sequence[int]:
    """Return the units that do a node's work: itself, or a map's items."""
    if state.graph.specs[node].kind == "map":
        return state.items.get(node, ())
    return (node,)


def _has_any_written(state: RunState, units: Sequence[int]) -> bool:
    """Whether one of these units may have written something."""
    return any(_may_have_written(state, unit) for unit in units)


def _may_have_written(state: RunState, unit: int) -> bool:
    """Whether a unit writes, and has run, runs now, or ended without a known outcome.

    What nobody has approved only asks, unless it finds that it wrote before its run was reset.
    """
    if state.spec_of(unit).effect != "write":
        return False

    # The run may know of a write that its status does not tell.
    generation = state.units[unit].generation
    for effect in state.effects.get(unit, ()):
        if effect.generation == generation and effect.status != "not made":
            return True

    # How it ended tells it.
    status = state.units[unit].status
    kind = state.notes.get(unit, ("",))[0]
    if kind in _WRITTEN or (status == SUCCEEDED and not kind):
        return True
    may_write = status == RUNNING or kind in _UNSURE
    return may_write and not admission.asks(state, unit)


def _after(state: RunState, node: int, *, runs: bool = True) -> list[int]:
    """Return everything that may run again when a node does, or gets another
    result, in the order found.

    A node's fallback runs again with it; a node whose fallback runs again does not run itself. A
    program makes those calls again that its script has made since it was told the end that changes.
    """
    graph = state.graph
    start = (node, runs)
    seen = {start: None}
    stack = [start]
    while stack:
        here, here_runs = stack.pop()
        affected = _all_rerun([*graph.consumers[here], *graph.joins[here]])
        if here == node and here_runs and here in state.sessions:
            number = programs.retried_from(state, here)
            affected += _all_rerun(state.sessions[here].made_from(number))

        # A fallback runs again with its node, and not the other way round.
        fallback = graph.specs[here].successor
        if here_runs and fallback >= 0:
            affected += _all_rerun([fallback, *graph.calls_before(fallback)])
        host = graph.predecessor.get(here)
        if host is not None:
            affected.append((host, False))

        # The script of a program goes on from where it was told this end.
        program = graph.caller_of(here)
        if program >= 0 and programs.is_told(state, here):
            affected.append((program, False))
            number = state.sessions[program].told_in(here)
            affected += _all_rerun(state.sessions[program].made_from(number))

        for entry in affected:
            if entry not in seen:
                seen[entry] = None
                stack.append(entry)
    return [reader for reader, is_rerun in seen if is_rerun and reader != node]


def _all_rerun(nodes: Sequence[int]) -> list[_Affected]:
    """Return these nodes as some that run again."""
    return [(node, True) for node in nodes]
