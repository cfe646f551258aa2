"""Retries and skips that a person asks for while a run goes on, and what follows from them.

If a retried node ends as it did before, nothing else happens. Otherwise the nodes that read it run again in turn, under
a new generation.
"""

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
from sennit.workflows.plan.scheduling.state import (
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
    RunState,
)

_CALLS = ("tool", "llm", "agent")
_CHANGED = "changed"
"""As how a unit of a chain ended before, if those behind it have read something else that has changed."""
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


def retry(state: RunState, unit: int, *, is_edited: bool = False) -> None:
    """Run a unit again, with the cancelled nodes that it depends on. Of a map, run the failed items again; if no item
    failed but the map did, gather the items again; else run the whole map again.

    A retried item takes the cancelled items of its map with it. A program that `is_edited` begins again with its new
    script.
    """
    unit, node = failed_in(state, unit), state.node_of(unit)
    if state.is_item(unit) and unit not in state.items.get(node, ()):
        return
    termination.unpark(state)
    state.graph.sort()
    for other in _cancelled_dependencies(state, node):
        reset.reset(state, other)
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
    """Return the unit of an item's chain behind which this one is blocked; this one itself if it is not."""
    items = state.items.get(state.node_of(unit), ())
    while unit in items and state.status[unit] == BLOCKED and unit - 1 == state.before(unit):
        unit -= 1
    return unit


def again(state: RunState, unit: int) -> list[int]:
    """Return what of a unit's own node runs again with it: the node, or items of a map with what follows in their
    chains; none if it only gathers.
    """
    node = state.node_of(unit)
    items = state.items.get(node)
    if not items:
        return [node]
    found = _lost(state, unit) or ([] if _did_not_gather(state, node) else list(items))
    each = state.graph.specs[node].per_item
    rest = [later for first in found for later in range(first, first + each - (first - items.start) % each)]
    return list(dict.fromkeys(rest))


def _lost(state: RunState, unit: int) -> list[int]:
    """Return the items of its map that run again with a unit: an item itself, and the items that have no value."""
    unit = failed_in(state, unit)
    lost = (CANCELLED,) if state.is_item(unit) else (FAILED, CANCELLED, IN_DOUBT)
    items = state.items.get(state.node_of(unit), ())
    return [item for item in items if item == unit or state.status[item] in lost]


def _did_not_gather(state: RunState, node: int) -> bool:
    """Whether a map itself has failed, for another reason than a missing output that only its items can make again."""
    return node in state.notes and state.notes[node][0] != "BodyMissing"


def answer(state: RunState, unit: int, value: Any) -> None:
    """Give a call that has failed this result; what waits for it goes on as after a retry. Nothing is called."""
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
    """Whether a person may give the result of this unit, if it has failed. What stands in for another node takes one
    only while it is in doubt: later its node is to be answered.
    """
    node = state.node_of(unit)
    if state.is_item(unit) and unit not in state.items.get(node, ()):
        return False
    kind = state.kind_of(unit)
    stands_in = state.graph.specs[node].is_successor and state.status[unit] != IN_DOUBT
    return kind == "gate" or (kind in _CALLS and not stands_in)


def _cancelled_dependencies(state: RunState, node: int) -> list[int]:
    """Return the cancelled nodes without which this one could not run."""
    found: dict[int, bool] = {}
    stack = [node]
    while stack:
        here = stack.pop()
        if state.status[here] == SUCCEEDED:
            continue
        for other in (*state.graph.deps[here], *state.graph.specs[here].inputs):
            if state.status[other] == CANCELLED and other not in found:
                found[other] = True
                stack.append(other)
    return list(found)


def _retry_items(state: RunState, node: int, items: list[int]) -> None:
    if state.status[node] != EXPANDED:
        reset.await_fallback_again(state, node)
        reset.stop(state, node)
        reset.forget(state, node)
        state.status[node] = EXPANDED
        reset.reset_fallback(state, node)
        reset.recheck_dependents(state, node)
    for item in items:
        if (
            (state.behind(item) or joins.of_items(state, node))
            and state.status[item] in ENDED
            and item not in state.inherited_failure
        ):
            state.previous_result.setdefault(item, reset.signature(state, item))
        reset.stop(state, item)
        completion.decided(state, item)
        state.generation[item] += 1
        state.generation[node] = max(state.generation[node], state.generation[item])
        state.status[item] = PENDING
        state.digest[item] = None
        state.queued[item] = False
        state.notes.pop(item, None)
        state.answers.pop(item, None)
        state.inherited_failure.pop(item, None)
    _recount_joins(state, node)
    for item in items:
        _hold_back(state, item)
    state.open_inputs[node] = admission.open_units(state, node)
    completion.resume(state, node)


def _has_read(state: RunState, join: int, item: int) -> bool:
    """Whether a join of a map's items has come to its end with this one, or because too few have a value."""
    if join in state.chosen:
        return item in state.chosen[join] and join in reset.takers(state, state.node_of(item))
    return state.status[join] in (SUCCEEDED, FAILED) and join not in state.inherited_failure


def _hold_back(state: RunState, unit: int) -> None:
    """Have what waits for a unit of an item wait again, if it has not started."""
    for other in state.behind(unit):
        node = state.node_of(other)
        state.queued[other] = False
        if state.status[other] == WAITING:
            reset.stop(state, other)
            state.status[other] = PENDING
        if other in state.inherited_failure and state.status[node] == EXPANDED:
            state.status[other] = PENDING
            del state.inherited_failure[other]
            state.open_inputs[node] += 1
            _recount_joins(state, node)
            _hold_back(state, other)


def _recount_joins(state: RunState, node: int) -> None:
    """Have the joins of a map's items count them again."""
    for join in joins.of_items(state, node):
        state.mark(join)


def _revise_item(state: RunState, unit: int) -> None:
    """A unit of an item that ran again has ended: what has read a different output of it runs again too."""
    node, same = state.node_of(unit), state.previous_result.pop(unit) == reset.signature(state, unit)
    state.open_inputs[node] = admission.open_units(state, node)
    stack = [unit]
    while stack:
        for other in state.behind(stack.pop()):
            if other in state.inherited_failure or (not same and state.status[other] != PENDING):
                _retry_items(state, state.node_of(other), [other])
                if other in state.previous_result and other + 1 in state.behind(other):
                    state.previous_result[other] = _CHANGED
            elif state.status[other] == SUCCEEDED:
                stack.append(other)
            completion.feed(state, other)
    for join in [] if same else joins.of_items(state, node):
        if _has_read(state, join, unit):
            reset.reset(state, join)
    _recount_joins(state, node)
    if not state.open_inputs[node]:
        admission.gather(state, node)


def skip(state: RunState, unit: int) -> None:
    """Skip a unit that has no value, for good, and notify its dependents. The calls of its tool loop, which nothing
    else reads, are cancelled.
    """
    unit = failed_in(state, unit)
    before, node = state.status[unit], state.node_of(unit)
    if before in (SUCCEEDED, SKIPPED, CANCELLED):
        return
    if unit != node and unit not in state.items.get(node, ()):
        return
    termination.unpark(state)
    state.graph.sort()
    if before not in (FAILED, BLOCKED):
        gone = cancellation.with_fallbacks(state, unit)
        reset.put_off_behind(state, unit)
        completion.cancel(state, unit, SKIPPED, _GIVEN_UP)
        fallbacks = [node for node in gone if node in state.graph.predecessor]
        cancellation.cancel_inputs(state, fallbacks, cancellation.CONSUMER_SKIPPED, off=gone)
        if unit in state.sessions:
            cancellation.cancel_calls(state, unit)
    elif unit == node:
        state.inherited_failure.pop(unit, None)
        completion.skip_blocked(state, unit, _GIVEN_UP)
        program_calls.follow_end(state, unit, same=False)
    else:
        _give_up_item(state, unit, node)


def _give_up_item(state: RunState, item: int, node: int) -> None:
    """Skip an item, and let the map that failed because of it gather again."""
    state.status[item] = SKIPPED
    state.notes[item] = _GIVEN_UP
    stack = [item]
    while stack:
        others = [other for other in state.behind(stack.pop()) if state.status[other] == BLOCKED]
        for other in others:
            state.status[other] = SKIPPED
        stack += others
    if state.notes.get(node, ("", ""))[0] == "MapFailed":
        _gather_again(state, node)


def _gather_again(state: RunState, node: int) -> None:
    _retry_items(state, node, [])
    if not state.open_inputs[node]:
        admission.gather(state, node)


def revise(state: RunState, node: int) -> None:
    """A retried node has ended: every node that has read a different output of it runs again too."""
    status = state.status[node]
    if node not in state.previous_result or completion.live(status):
        return
    if state.is_item(node):
        if state.status[state.node_of(node)] == EXPANDED:
            _revise_item(state, node)
        return
    same = state.previous_result.pop(node) == reset.signature(state, node)
    for other in state.graph.consumers[node]:
        _follow(state, other, node, same=same)
    for join in state.graph.joins[node]:
        _follow(state, join, node, same=same or not _concerns(state, join, node))
    propagation.notify_fallbacks(state, node, status)
    program_calls.follow_end(state, node, same=same)


def _concerns(state: RunState, join: int, node: int) -> bool:
    """Whether a join that has started took this input: `first`, `quorum` and `turn` leave some out."""
    if state.graph.specs[join].of_items:  # it was told of each item
        return join not in state.chosen
    picky = state.graph.specs[join].policy in ("first", "quorum", "turn")
    return not picky or join not in state.chosen or node in state.chosen[join]


def _follow(state: RunState, other: int, node: int, *, same: bool) -> None:
    if not reset.has_started(state, other):
        if same:
            state.mark(other)
        else:
            reset.withdraw(state, other)
    elif same and not state.runs_behind(other, node):
        completion.resume(state, other)
    elif state.status[other] == CANCELLED or state.notes.get(other) == _GIVEN_UP:
        if reset.takers(state, other):
            reset.reset(state, other)
        reset.drop_items(state, other)
    elif not state.runs_behind(other, node):
        reset.reset(state, other)
    else:  # what has changed was told item by item
        if state.status[node] != SUCCEEDED and state.status[other] in ENDED:
            _retry_items(state, other, [])
        propagation.source_ended(state, other, state.status[node])


def is_passed(state: RunState, unit: int) -> bool:
    """Whether a script was told how a failed unit ended, by itself or by the end of a tool loop, and has gone on."""
    graph, stack = state.graph, [state.node_of(unit)]
    seen = dict.fromkeys(stack)
    while stack:
        here = stack.pop()
        if programs.has_gone_on(state, here):
            return True
        host = graph.predecessor.get(here)
        hosts = [] if host is None else [host]
        readers = [node for node in (*graph.joins[here], *hosts) if node not in seen]
        seen |= dict.fromkeys(readers)
        stack += readers
    return False


def repeated(state: RunState, unit: int, *, runs: bool = True) -> list[int]:
    """Return the nodes that may repeat a write if a person has this unit run again, in the order found: itself, those
    that were cancelled and run again for it, and those behind it. If it gets a result without that it `runs`, only
    those behind it.

    A node writes if its tool or a tool of its sub-agent does; a map writes if its items do. The model of a tool loop
    may repeat every call that it has made.
    """
    node = state.node_of(unit)
    written = [node] if runs and any(_may_have_written(state, each) for each in again(state, unit)) else []
    before = _cancelled_dependencies(state, node) if runs else []
    others = dict.fromkeys([*before, *_after(state, node, runs=runs)])
    return written + [other for other in others if any(_may_have_written(state, each) for each in _units(state, other))]


def _units(state: RunState, node: int) -> tuple[int, ...]:
    """Return the units that do a node's work: itself, or a map's items."""
    return tuple(state.items.get(node, ())) if state.graph.specs[node].kind == "map" else (node,)


def _may_have_written(state: RunState, unit: int) -> bool:
    """Whether a unit writes, and has run, runs now, or ended without a known outcome.

    What nobody has approved only asks, unless it finds that it wrote before its run was reset.
    """
    if state.spec_of(unit).effect != "write":
        return False
    status, note, generation = state.status[unit], state.notes.get(unit, ("",))[0], state.generation[unit]
    if any(each.generation == generation and each.status != "not made" for each in state.effects.get(unit, ())):
        return True
    if (status == SUCCEEDED and not note) or note in _WRITTEN:
        return True
    return (status == RUNNING or note in _UNSURE) and not admission.asks(state, unit)


def _after(state: RunState, node: int, *, runs: bool = True) -> list[int]:
    """Return everything that may run again when a node does, or gets another result, in the order found.

    A node's fallback runs again with it; a node whose fallback runs again does not run itself. A program makes those
    calls again that its script has made since it was told the end that changes.
    """
    graph = state.graph
    found = {(node, runs): True}
    stack = [(node, runs)]
    while stack:
        here, runs = stack.pop()
        readers = [(other, True) for other in (*graph.consumers[here], *graph.joins[here])]
        if here == node and runs and here in state.sessions:
            number = programs.retried_from(state, here)
            readers += [(call, True) for call in state.sessions[here].made_from(number)]
        fallback, host = graph.specs[here].successor, graph.predecessor.get(here)
        if runs and fallback >= 0:
            readers += [(other, True) for other in (fallback, *graph.calls_before(fallback))]
        if host is not None:
            readers.append((host, False))
        program = graph.caller_of(here)
        if program >= 0 and programs.is_told(state, here):
            readers.append((program, False))
            number = state.sessions[program].told_in(here)
            readers += [(call, True) for call in state.sessions[program].made_from(number)]
        for reader in readers:
            if reader not in found:
                found[reader] = True
                stack.append(reader)
    return [other for other, also_runs in found if also_runs and other != node]
