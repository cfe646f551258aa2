"""Admission of nodes: decide the condition, then queue the node, ask a person, wait for inputs, or open the map."""

import hashlib

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.conditions import ConditionError
from sennit.workflows.plan.limits import MAX_UNITS
from sennit.workflows.plan.scheduling import cancellation, joins, ready
from sennit.workflows.plan.scheduling.completion import (
    REJECTED,
    end_without_value,
    fail,
    live,
    no_longer_wait,
    put_back,
    resume,
    succeed,
    wait,
)
from sennit.workflows.plan.scheduling.events import TOKEN_CHARACTERS, Approval, ApprovalDecided
from sennit.workflows.plan.scheduling.state import (
    BLOCKED,
    CALLS,
    CANCELLED,
    DELEGATED,
    ENDED,
    EXPANDED,
    FAILED,
    ITEMS,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)


def admit(state: RunState, node: int) -> None:
    """Decide the condition of a node whose dependencies have all succeeded, and let it enter."""
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


def may_open(state: RunState, node: int) -> bool:
    """Whether all that a node waits for is there; the map behind whose items it runs need only be open."""
    source = state.graph.specs[node].source
    is_open = source in state.items and live(state.status[source])
    return state.status[node] == PENDING and state.open_deps[node] == is_open


def enter(state: RunState, node: int, spec: NodeSpec) -> None:
    """Queue a node whose condition holds, unless it waits for inputs or for a person, or is a map.

    A question with references, or about a write, is queued too: an activity puts it together, then the node waits. The
    sleep of a program starts when it is over.
    """
    if spec.expires:
        state.deadlines.setdefault(CALLS - node, state.now + spec.expires)
    if spec.inputs:
        state.awaiting_inputs[node] = True
        if spec.of_items:
            joins.count(state, node)
        if spec.policy == "turn" and spec.deadline and node not in state.past_deadline:
            state.deadlines.setdefault(node, state.now + spec.deadline)
        consider(state, node)
    elif spec.kind == "gate" and asks(state, node) and not spec.fills:
        wait(state, node)
        if node in state.graph.timed:
            clock(state, node)
    elif spec.kind == "map":
        _open(state, node)
    elif spec.kind == "tool" and spec.deadline and node not in state.past_deadline:
        state.deadlines.setdefault(node, spec.deadline)
    else:
        ready.queue(state, node)


def asks(state: RunState, unit: int) -> bool:
    """Whether a unit asks a person before it does anything: a gate, and a write that nobody has approved."""
    spec = state.spec_of(unit)
    if spec.kind == "gate" or unit in state.answers:
        return unit not in state.answers
    return spec.approval and unit not in state.approved and (spec.kind != "map" or state.is_item(unit))


def waiting_in(state: RunState, unit: int) -> list[int]:
    """Return what waits for a person in a unit: itself, a map's items, the calls of a script, or those of a model's
    tool loop.
    """
    if state.status[unit] == WAITING:
        return [unit]
    inside = list(state.items.get(unit, ()))
    if unit in state.sessions:
        inside += state.sessions[unit].waits
    turn = state.spec_of(unit).successor
    while turn >= 0 and state.status[unit] == DELEGATED:
        inside += state.graph.calls_before(turn)
        turn = state.graph.specs[turn].successor
    return [each for each in inside if state.status[each] == WAITING]


def decide_write(state: RunState, unit: int, event: ApprovalDecided) -> None:
    """A person has approved what a unit wants to write, or rejected it."""
    asked = state.questions[unit]
    if event.approved:
        state.approved[unit] = Approval(asked.digest, asked.target, event.args, event.by)
        go_on(state, unit)
        return
    state.approved.pop(unit, None)
    no_longer_wait(state, unit)
    fail(state, unit, REJECTED, event.reason or "a person rejected it")


def go_on(state: RunState, unit: int) -> None:
    """Have a unit go on that has waited for a person."""
    no_longer_wait(state, unit)
    if state.is_item(unit):
        put_back(state, unit)
        return
    state.status[unit] = PENDING
    enter(state, unit, state.graph.specs[unit])


def token_of(state: RunState, units: list[int]) -> str:
    """Return what a person names to approve what these units ask, all of it and nothing else."""
    tokens = [state.questions[unit].token() for unit in units if unit in state.questions]
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
    """A join's deadline has passed: it closes with the inputs it has or fails, now or as soon as it is admitted. The
    sleep of a program is over, or its call has expired.
    """
    if join <= CALLS:
        cancellation.expire(state, CALLS - join)
        return
    if state.status[join] in (PENDING, BLOCKED) and not state.queued[join]:
        state.past_deadline[join] = True
        if state.graph.specs[join].kind == "tool":
            ready.queue(state, join)
        if state.awaiting_inputs[join]:
            consider(state, join)


def consider(state: RunState, join: int) -> None:
    """Close an admitted join if its policy says so, or fail it."""
    if state.status[join] != PENDING or state.queued[join]:
        return
    spec = state.graph.specs[join]
    if spec.policy == "turn":
        _consider_turn(state, join, spec)
        return
    late = state.past_deadline.get(join)
    total = joins.total(state, join)
    ruling = joins.outcome(spec, state.open_inputs[join], state.ok_inputs[join], late, total)
    if ruling == joins.WAIT:
        return
    state.deadlines.pop(join, None)
    if late:
        state.past_deadline[join] = False
    if ruling == joins.CLOSE:
        state.chosen[join] = joins.winners(state, join)
        if state.open_inputs[join]:
            cancellation.cancel_inputs(state, [join], cancellation.LATE if late else cancellation.DECIDED)
        _close(state, join, spec)
    elif ruling == joins.FAIL:
        fail(state, join, "JoinFailed", joins.reason(state, join), derived=True)
    else:
        fail(state, join, "JoinDeadline", f"{state.ok_inputs[join]} of {total} inputs were there in time")
        cancellation.cancel_inputs(state, [join], cancellation.LATE)


def _consider_turn(state: RunState, join: int, spec: NodeSpec) -> None:
    """Close the join before a model's next turn if that may start. The calls that have not ended go on."""
    if not joins.may_turn_start(state, join):
        return
    state.deadlines.pop(join, None)
    if join in state.past_deadline:
        state.past_deadline[join] = False
    state.chosen[join] = joins.ended_inputs(state, join)
    _close(state, join, spec)


def _close(state: RunState, join: int, spec: NodeSpec) -> None:
    """Give a join or a map its value; what an activity is needed for is queued."""
    outcome = joins.outcome_of(state, join) if spec.kind in ("join", "map") else None
    if outcome is None:
        ready.queue(state, join)
        return
    if join in state.graph.timed:
        clock(state, join)
    succeed(state, join, outcome)


def _open(state: RunState, node: int) -> None:
    """Append the units of each item of a map, or queue the map at once when there are none.

    One that was blocked behind items of another map, which run again, goes on with its own.
    """
    for unit in state.items.get(node, ()):
        if state.status[unit] == BLOCKED:
            state.status[unit] = PENDING
            del state.inherited_failure[unit]
    if node not in state.items:
        count = _length(state, node)
        if isinstance(count, str):
            fail(state, node, "MapFailed", count)
            return
        append_items(state, node, count)
    state.open_inputs[node] = open_units(state, node)
    if node in state.graph.timed:
        clock(state, node)
    for join in joins.of_items(state, node):
        joins.count(state, join)
        if state.awaiting_inputs[join]:
            consider(state, join)
    if state.status[node] == PENDING:  # no join has closed
        _begin_items(state, node)


def _begin_items(state: RunState, node: int) -> None:
    """Queue the items of a map that has opened, and open those that run behind them."""
    state.status[node] = EXPANDED
    resume(state, node)
    if not state.open_inputs[node]:
        gather(state, node)
    for other in state.graph.pipes.get(node, ()):
        if state.stale:  # what it waits for may have to be counted again
            state.mark(other)
        elif may_open(state, other) and other not in state.items:
            admit(state, other)


def open_units(state: RunState, node: int) -> int:
    """Return how many units of an open map's items have not ended."""
    return sum(state.status[unit] not in (*ENDED, BLOCKED) for unit in state.items[node])


def gather(state: RunState, node: int) -> None:
    """Give a map whose items have all ended its value, or fail it if an item failed. If they ran behind the items of
    another map, it waits for the end of that, and has a value only if that has one.
    """
    source = state.graph.specs[node].source
    before = SUCCEEDED if source < 0 else state.status[source]
    if before != SUCCEEDED:
        if before in (FAILED, BLOCKED, SKIPPED, CANCELLED):
            state.inherited_failure[node] = True
            end_without_value(state, node, BLOCKED if before in (FAILED, BLOCKED) else SKIPPED)
        return
    failed = [item for item in state.items[node] if state.status[item] in (FAILED, CANCELLED)]
    state.status[node] = PENDING
    if not failed:
        begun = [state.started[item] for item in state.items[node] if state.attempts[item]]
        state.millis[node] = state.now - min(begun, default=state.now)
        _close(state, node, state.graph.specs[node])
        return
    first = failed[0]
    error = ": ".join(state.notes.get(first, ("", "")))
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    fail(state, node, "MapFailed", f"{state.path(first)}{more} failed: {error}")


def _length(state: RunState, node: int) -> int | str:
    """Return how many items the map has, or why it cannot open."""
    spec = state.graph.specs[node]
    if spec.source >= 0:
        count = len(state.values(spec.source))
    elif spec.over is None:
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
    if len(state.status) + count * spec.per_item > MAX_UNITS:
        return f"{count} more items would make over {MAX_UNITS:,} units in one run"
    if spec.agents_per_item:
        agents = count * spec.agents_per_item
        before = sum(len(state.values(other)) * state.graph.specs[other].agents_per_item for other in state.items)
        if before + agents > state.most_agents:
            return f"{agents:,} more sub-agents would make over {state.most_agents:,} in the maps of this run"
    return count


def append_items(state: RunState, node: int, count: int) -> range:
    """Append the units of each item, in the map's generation, and return them."""
    first, units = ITEMS + len(state.owner), count * state.graph.specs[node].per_item
    state.items[node] = range(first, first + units)
    state.owner += [(node, place) for place in range(units)]
    state.add(state.items[node], state.generation[node])
    return state.items[node]
