"""Admission of nodes: decide the condition, then queue the node, ask a person, wait for inputs, or open the map."""

import hashlib

from workflows.plan.compile.graph import NodeSpec
from workflows.plan.language.conditions import ConditionError
from workflows.plan.scheduling import cancellation, joins, ready
from workflows.plan.scheduling.completion import end_without_value, fail, resume, wait
from workflows.plan.scheduling.events import TOKEN_CHARACTERS
from workflows.plan.scheduling.state import (
    AWAITING_FALLBACK,
    BLOCKED,
    CANCELLED,
    EXPANDED,
    FAILED,
    PENDING,
    SKIPPED,
    WAITING,
    RunState,
)

MAX_UNITS = 20_000
"""Nodes and items of maps that one run may have."""


def admit(state: RunState, node: int) -> None:
    """Decide the condition of a node whose dependencies have all succeeded, and let it enter."""
    group = state.graph.group_of.get(node)
    if group is not None and not state.ungrouped[group]:
        state.gather[group] -= 1
        if not state.gather[group]:
            ready.queue(state, state.graph.groups[group][0])
        return
    spec = state.graph.specs[node]
    if spec.when is not None:
        try:
            holds = state.decide(spec.when)
        except ConditionError as error:
            fail(state, node, "ConditionError", str(error))
            return
        if not holds:
            end_without_value(state, node, SKIPPED, ("Skipped", "its condition was false"))
            return
    enter(state, node, spec)


def enter(state: RunState, node: int, spec: NodeSpec) -> None:
    """Queue a node whose condition holds, unless it waits for inputs or for a person, or is a map.

    A question with references, or about a write, is queued too: an activity puts it together, then the node waits.
    """
    if spec.inputs:
        state.awaiting_inputs[node] = True
        consider(state, node)
    elif spec.kind == "gate" and asks(state, node) and not spec.fills:
        wait(state, node)
        if node in state.graph.timed:
            clock(state, node)
    elif spec.kind == "map":
        _open(state, node)
    else:
        ready.queue(state, node)


def asks(state: RunState, unit: int) -> bool:
    """Whether a unit asks a person before it does anything: a gate, and a write that nobody has approved."""
    spec = state.spec_of(unit)
    if spec.kind == "gate" or unit in state.answers:
        return unit not in state.answers
    return spec.approval and unit not in state.approved and (spec.kind != "map" or state.is_item(unit))


def waiting_in(state: RunState, unit: int) -> list[int]:
    """Return what waits for a person in a unit: itself, a map's items, or the calls of a model's tool loop."""
    if state.status[unit] == WAITING:
        return [unit]
    inside = list(state.items.get(unit, ()))
    turn = state.spec_of(unit).instead
    while turn >= 0 and state.status[unit] == AWAITING_FALLBACK:
        inside += state.graph.calls_before(turn)
        turn = state.graph.specs[turn].instead
    return [each for each in inside if state.status[each] == WAITING]


def token_of(state: RunState, units: list[int]) -> str:
    """Return what a person names to approve what these units ask, all of it and nothing else."""
    tokens = [state.questions[unit].token for unit in units if unit in state.questions]
    if len(tokens) == 1:
        return tokens[0]
    return hashlib.sha256(" ".join(tokens).encode()).hexdigest()[:TOKEN_CHARACTERS]


def clock(state: RunState, node: int) -> None:
    """Set the deadlines of the joins that read this node. They count from the first input that starts or waits."""
    for join in state.graph.timed[node]:
        open_still = state.status[join] in (PENDING, BLOCKED) and not state.queued[join]
        if open_still and join not in state.deadlines and not state.past_deadline.get(join):
            state.deadlines[join] = state.now + state.graph.specs[join].deadline


def expire(state: RunState, join: int) -> None:
    """A join's deadline has passed: it closes with the inputs it has or fails, now or as soon as it is admitted."""
    if state.status[join] in (PENDING, BLOCKED) and not state.queued[join]:
        state.past_deadline[join] = True
        if state.awaiting_inputs[join]:
            consider(state, join)


def consider(state: RunState, join: int) -> None:
    """Close an admitted join if its policy says so, or fail it."""
    if state.status[join] != PENDING or state.queued[join]:
        return
    spec = state.graph.specs[join]
    late = state.past_deadline.get(join)
    ruling = joins.outcome(spec, state.open_inputs[join], state.ok_inputs[join], late)
    if ruling == joins.WAIT:
        return
    state.deadlines.pop(join, None)
    if late:
        state.past_deadline[join] = False
    if ruling == joins.CLOSE:
        state.chosen[join] = joins.winners(state, join)
        ready.queue(state, join)
        if state.open_inputs[join] and spec.policy != "any":
            cancellation.cancel_inputs(state, [join], cancellation.LATE if late else cancellation.DECIDED)
    elif ruling == joins.FAIL:
        fail(state, join, "JoinFailed", joins.reason(state, join), derived=True)
    else:
        fail(state, join, "JoinDeadline", f"{state.ok_inputs[join]} of {len(spec.inputs)} inputs were there in time")
        cancellation.cancel_inputs(state, [join], cancellation.LATE)


def _open(state: RunState, node: int) -> None:
    """Append one unit for each item of a map, or queue the map at once when there are none."""
    count = _length(state, node)
    if isinstance(count, str):
        fail(state, node, "MapFailed", count)
        return
    append_items(state, node, count)
    if node in state.graph.timed:
        clock(state, node)
    if not count:
        ready.queue(state, node)
        return
    state.status[node] = EXPANDED
    resume(state, node)


def gather(state: RunState, node: int) -> None:
    """Queue a map whose items have all ended, or fail it if an item failed."""
    failed = [item for item in state.items[node] if state.status[item] in (FAILED, CANCELLED)]
    state.status[node] = PENDING
    if not failed:
        ready.queue(state, node)
        return
    first = failed[0]
    error = ": ".join(state.notes.get(first, ("", "")))
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    fail(state, node, "MapFailed", f"{state.path(first)}{more} failed: {error}")


def _length(state: RunState, node: int) -> int | str:
    """Return how many items the map has, or why it cannot open."""
    spec = state.graph.specs[node]
    if spec.over is None:
        count = spec.length
    else:
        source, name = spec.over[0], spec.over[1]
        fact = state.facts.get(source, {}).get(name)
        if not isinstance(fact, int) or isinstance(fact, bool) or fact < 0:
            return f"the output of {state.graph.specs[source].id} has no list at `{name}`"
        count = fact
    if count < 0:
        return "what it goes over is not a list"
    if count > spec.cap:
        return f"its list has {count} items; max_items is {spec.cap}"
    if len(state.status) + count > MAX_UNITS:
        return f"{count} more items would make over {MAX_UNITS} units in one run"
    return count


def append_items(state: RunState, node: int, count: int) -> range:
    """Append one unit for each item, in the map's generation, and return them."""
    first = len(state.status)
    state.status += [PENDING] * count
    state.generation += [state.generation[node]] * count
    state.digest += [None] * count
    for column in (state.size, state.attempts, state.millis, state.started):
        column += [0] * count
    state.queued += [False] * count
    state.owner += [(node, item) for item in range(count)]
    state.items[node] = range(first, first + count)
    state.open_inputs[node] = count
    return state.items[node]
