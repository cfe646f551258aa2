"""Admission of nodes: decide the condition, then queue the node, ask a person, wait for
inputs, or open the map.
"""

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
from sennit.workflows.plan.scheduling.state import CALLS, ITEMS, RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    ENDED,
    EXPANDED,
    FAILED,
    PENDING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Status,
)

_OVER = (*ENDED, BLOCKED)
"""The statuses of an item for which its map does not wait any more."""


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
    """Whether all that a node waits for is there; the map behind whose items it
    runs need only be open.
    """
    if state.units[node].status != PENDING:
        return False
    missing = state.units[node].open_deps
    source = state.graph.specs[node].source
    if source in state.items and live(state.units[source].status):
        missing -= 1
    return missing == 0


def enter(state: RunState, node: int, spec: NodeSpec) -> None:
    """Queue a node whose condition holds, unless it waits for inputs or for a person, or is a map.

    A question with references, or about a write, is queued too: an activity puts it together, then
    the node waits. The sleep of a program starts when it is over.
    """
    if spec.expires:
        expires_at = state.now + spec.expires
        state.deadlines.setdefault(CALLS - node, expires_at)
    if spec.inputs:
        state.units[node].awaiting_inputs = True
        if spec.of_items:
            joins.count(state, node)
        if spec.policy == "turn" and spec.deadline and state.units[node].past_deadline is None:
            state.deadlines.setdefault(node, state.now + spec.deadline)
        consider(state, node)
    elif spec.kind == "gate" and asks(state, node) and not spec.fills:
        wait(state, node)
        if node in state.graph.timed:
            clock(state, node)
    elif spec.kind == "map":
        _open(state, node)
    elif spec.kind == "tool" and spec.deadline and state.units[node].past_deadline is None:
        state.deadlines.setdefault(node, spec.deadline)
    else:
        ready.queue(state, node)


def asks(state: RunState, unit: int) -> bool:
    """Whether a unit asks a person before it does anything: a gate, and a write
    that nobody has approved.
    """
    spec = state.spec_of(unit)
    if unit in state.answers:
        return False
    if spec.kind == "gate":
        return True
    if spec.kind == "map" and not state.is_item(unit):  # its items ask
        return False
    return spec.approval and state.units[unit].approved is None


def waiting_in(state: RunState, unit: int) -> list[int]:
    """Return what waits for a person in a unit: itself, a map's items, the calls of a script, or
    those of a model's tool loop.
    """
    if state.units[unit].status == WAITING:
        return [unit]
    members = list(state.items.get(unit, ()))
    if unit in state.sessions:
        members += state.sessions[unit].waits
    turn = state.spec_of(unit).successor
    while turn >= 0 and state.units[unit].status == DELEGATED:
        members += state.graph.calls_before(turn)
        turn = state.graph.specs[turn].successor
    return [member for member in members if state.units[member].status == WAITING]


def decide_write(state: RunState, unit: int, event: ApprovalDecided) -> None:
    """A person has approved what a unit wants to write, or rejected it."""
    asked = state.questions[unit]
    if event.approved:
        approval = Approval(asked.digest, asked.target, event.args, event.by)
        state.units[unit].approved = approval
        go_on(state, unit)
        return
    state.units[unit].approved = None
    no_longer_wait(state, unit)
    fail(state, unit, REJECTED, event.reason or "a person rejected it")


def go_on(state: RunState, unit: int) -> None:
    """Have a unit go on that has waited for a person."""
    no_longer_wait(state, unit)
    if state.is_item(unit):
        put_back(state, unit)
        return
    state.set_status(unit, PENDING)
    enter(state, unit, state.graph.specs[unit])


def token_of(state: RunState, units: list[int]) -> str:
    """Return what a person names to approve what these units ask, all of it and nothing else."""
    tokens: list[str] = []
    for unit in units:
        if unit in state.questions:
            tokens.append(state.questions[unit].token())
    if len(tokens) == 1:
        return tokens[0]
    digest = hashlib.sha256(" ".join(tokens).encode())
    return digest.hexdigest()[:TOKEN_CHARACTERS]


def clock(state: RunState, node: int) -> None:
    """Set the deadlines of the joins that read this node, from the time of the event. They count
    from the first input that starts or waits.
    """
    for join in state.graph.timed[node]:
        if not _is_undecided(state, join):
            continue
        if join not in state.deadlines and not state.units[join].past_deadline:
            deadline = state.graph.specs[join].deadline
            state.deadlines[join] = state.now + deadline


def _is_undecided(state: RunState, join: int) -> bool:
    """Whether a join, or the sleep of a program, has not ended, so that its
    deadline still matters.
    """
    return state.units[join].status in (PENDING, BLOCKED) and not state.units[join].queued


def expire(state: RunState, join: int) -> None:
    """A join's deadline has passed: it closes with the inputs it has or fails, now or as soon as it
    is admitted. The sleep of a program is over, or its call has expired.
    """
    if join <= CALLS:
        cancellation.expire(state, CALLS - join)
        return
    if not _is_undecided(state, join):
        return
    state.units[join].past_deadline = True
    if state.graph.specs[join].kind == "tool":
        ready.queue(state, join)
    if state.units[join].awaiting_inputs:
        consider(state, join)


def consider(state: RunState, join: int) -> None:
    """Close an admitted join if its policy says so, or fail it."""
    if state.units[join].status != PENDING or state.units[join].queued:
        return
    spec = state.graph.specs[join]
    if spec.policy == "turn":
        _consider_turn(state, join, spec)
        return
    late = state.units[join].past_deadline
    open_inputs, ok = state.units[join].open_inputs, state.units[join].ok_inputs
    total = joins.total(state, join)
    ruling = joins.outcome(spec, open_inputs, ok, late, total)
    if ruling == joins.WAIT:
        return

    # The join is decided, and its deadline does not matter any more.
    state.deadlines.pop(join, None)
    if late:
        state.units[join].past_deadline = False
    if ruling == joins.CLOSE:
        state.units[join].chosen = joins.winners(state, join)
        if open_inputs:
            note = cancellation.LATE if late else cancellation.DECIDED
            cancellation.cancel_inputs(state, [join], note)
        _close(state, join, spec)
    elif ruling == joins.FAIL:
        fail(state, join, "JoinFailed", joins.reason(state, join), derived=True)
    else:
        fail(state, join, "JoinDeadline", f"{ok} of {total} inputs were there in time")
        cancellation.cancel_inputs(state, [join], cancellation.LATE)


def _consider_turn(state: RunState, join: int, spec: NodeSpec) -> None:
    """Close the join before a model's next turn if that may start. The calls
    that have not ended go on.
    """
    if not joins.may_turn_start(state, join):
        return
    state.deadlines.pop(join, None)
    if state.units[join].past_deadline is not None:
        state.units[join].past_deadline = False
    state.units[join].chosen = joins.ended_inputs(state, join)
    _close(state, join, spec)


def _close(state: RunState, join: int, spec: NodeSpec) -> None:
    """Give a join or a map its value; what an activity is needed for is queued."""
    outcome = None
    if spec.kind in ("join", "map"):
        outcome = joins.outcome_of(state, join)
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
        if state.units[unit].status == BLOCKED:
            state.set_status(unit, PENDING)
            state.units[unit].inherited_failure = False
    if node not in state.items:
        count = _length(state, node)
        if isinstance(count, str):
            fail(state, node, "MapFailed", count)
            return
        append_items(state, node, count)
    state.units[node].open_inputs = open_units(state, node)
    if node in state.graph.timed:
        clock(state, node)
    for join in joins.of_items(state, node):
        joins.count(state, join)
        if state.units[join].awaiting_inputs:
            consider(state, join)
    if state.units[node].status == PENDING:  # no join has closed
        _begin_items(state, node)


def _begin_items(state: RunState, node: int) -> None:
    """Queue the items of a map that has opened, and open those that run behind them."""
    state.set_status(node, EXPANDED)
    resume(state, node)
    if not state.units[node].open_inputs:
        gather(state, node)
    for other in state.graph.pipes.get(node, ()):
        if state.stale:  # what it waits for may have to be counted again
            state.mark(other)
        elif may_open(state, other) and other not in state.items:
            admit(state, other)


def open_units(state: RunState, node: int) -> int:
    """Return how many units of an open map's items have not ended."""
    open_units = 0
    for unit in state.items[node]:
        if state.units[unit].status not in _OVER:
            open_units += 1
    return open_units


def gather(state: RunState, node: int) -> None:
    """Give a map whose items have all ended its value, or fail it if an item failed. If
    they ran behind the items of another map, it waits for the end of that, and has a
    value only if that has one.
    """
    spec = state.graph.specs[node]
    if spec.source >= 0:
        source_status = state.units[spec.source].status
        if source_status in (FAILED, BLOCKED):
            _end_behind(state, node, BLOCKED)
            return
        if source_status in (SKIPPED, CANCELLED):
            _end_behind(state, node, SKIPPED)
            return
        if source_status != SUCCEEDED:
            return

    failed = [item for item in state.items[node] if state.units[item].status in (FAILED, CANCELLED)]
    state.set_status(node, PENDING)
    if failed:
        fail(state, node, "MapFailed", _failure_of(state, failed))
        return

    # The map has run since the first of its items has started.
    starts: list[int] = []
    for item in state.items[node]:
        if state.units[item].attempts:
            starts.append(state.units[item].started)
    began = min(starts, default=state.now)
    state.units[node].millis = state.now - began
    _close(state, node, spec)


def _end_behind(state: RunState, node: int, status: Status) -> None:
    """End a map without a value because the map behind whose items its own ran
    has ended without one.
    """
    state.units[node].inherited_failure = True
    end_without_value(state, node, status)


def _failure_of(state: RunState, failed: list[int]) -> str:
    """Return why a map has failed: by the first of its items that have, and how many there are."""
    item = failed[0]
    error = ": ".join(state.notes.get(item, ("", "")))
    more = ""
    if len(failed) > 1:
        more = f" and {len(failed) - 1} more"
    return f"{state.path(item)}{more} failed: {error}"


def _length(state: RunState, node: int) -> int | str:
    """Return how many items the map has, or why it cannot open."""
    spec = state.graph.specs[node]
    if spec.source >= 0:
        count = len(state.values(spec.source))
    elif spec.over is None:
        count = spec.length
    else:
        source, name = spec.over
        facts = state.units[source].facts or {}
        fact = facts.get(name)
        if not isinstance(fact, int) or isinstance(fact, bool) or fact < 0:
            source_id = state.graph.specs[source].id
            return f"the output of {source_id} has no list at `{name}`"
        count = fact
    if count < 0:
        return "what it goes over is not a list"
    if count > spec.cap:
        return f"its list has {count} items; max_items is {spec.cap}"
    units = len(state.units) + count * spec.per_item
    if units > MAX_UNITS:
        return f"{count} more items would make over {MAX_UNITS:,} units in one run"
    if spec.agents_per_item:
        agents = count * spec.agents_per_item
        if _mapped_agents(state) + agents > state.most_agents:
            return (
                f"{agents:,} more sub-agents would make over {state.most_agents:,} in the maps of "
                "this run"
            )
    return count


def _mapped_agents(state: RunState) -> int:
    """Return how many sub-agents the items of all open maps start."""
    agents = 0
    for node in state.items:
        items = len(state.values(node))
        agents += items * state.graph.specs[node].agents_per_item
    return agents


def append_items(state: RunState, node: int, count: int) -> range:
    """Append the units of each item, in the map's generation, and return them."""
    first = ITEMS + len(state.owner)
    size = count * state.graph.specs[node].per_item
    units = range(first, first + size)
    state.items[node] = units
    state.owner += [(node, place) for place in range(size)]
    state.add(units, state.units[node].generation)
    return units
