"""Whether a run that has come to rest is right: every node is what its inputs, as they are now, make of it.

Each rule looks at one node and its neighbours. Together they leave one possible result, so a run that passes has the
result that a run without crashes, edits and odd orders would have, given the same calls.
"""

from math import ceil

from simulation.world import World, inputs_of

from sennit.workflows.plan.language.conditions import ConditionError
from sennit.workflows.plan.scheduling.joins import inputs_of as inputs_of_join
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    ENDED,
    FAILED,
    IN_DOUBT,
    SKIPPED,
    SUCCEEDED,
    Status,
)

BAD = -2
"""The node's own work failed; what that makes of it is its `on_error`."""


def check_outcomes(state: RunState, world: World) -> None:
    """Assert the rule of every node. The run has parked or ended by itself."""
    touched = _touched(state) | _behind_doubt(state)
    for node in range(len(state.graph.specs)):
        if node in touched:
            continue
        if state.units[node].status == CANCELLED:
            assert node not in state.graph.answering
            continue
        host = state.graph.predecessor.get(node)
        if host is not None and state.units[host].status == CANCELLED:
            continue
        expected = _after_error(state, node, _expected(state, world, node))
        found = _seen(state.units[node].status)
        name = state.graph.specs[node].id
        assert expected == found, f"{name} is {found} ({state.notes.get(node)}), but should be {expected}"


def _touched(state: RunState) -> dict[int, bool]:
    """Return the nodes a person gave up, and those that acted on their status before."""
    given_up = {unit: True for unit, note in state.notes.items() if note[0] == "Skipped"}
    nodes = {state.node_of(unit): True for unit in given_up}
    found = {unit: True for unit in given_up if not state.is_item(unit)}
    for node, spec in enumerate(state.graph.specs):
        if any(dep in nodes for dep in (*spec.watches, *spec.inputs)):
            found[node] = True
        host = state.graph.predecessor.get(node)
        while host is not None:
            if host in found:
                found[node] = True
            host = state.graph.predecessor.get(host)
    return found


def _behind_doubt(state: RunState) -> dict[int, bool]:
    """Return the nodes in doubt and all behind them: those were told nothing, and no `on_error` applies."""
    doubts = [unit for unit in state.numbers() if state.units[unit].status == IN_DOUBT or _was_in_doubt(state, unit)]
    stack = [state.node_of(unit) for unit in doubts]
    found = dict.fromkeys(stack, True)
    while stack:
        here = stack.pop()
        fallback = state.graph.specs[here].successor
        behind = [*state.graph.behind(here), *([fallback] if fallback >= 0 else [])]
        stack += [node for node in behind if node not in found]
        found |= dict.fromkeys(behind, True)
    return found


def _was_in_doubt(state: RunState, unit: int) -> bool:
    return state.units[unit].status == FAILED and state.notes.get(unit, ("",))[0] == "UnknownOutcome"


def _seen(status: Status) -> Status:
    return SKIPPED if status == BLOCKED else status


def _expected(state: RunState, world: World, node: int) -> int:
    spec = state.graph.specs[node]
    needs = [_seen(state.units[need].status) for need in spec.needs]
    if any(need != SUCCEEDED for need in needs):
        return SKIPPED
    host = state.graph.predecessor.get(node)
    if host is not None and not _stood_in(state, host, node):
        return SKIPPED
    if spec.when is not None:
        try:
            if not state.decide(spec.when):
                return SKIPPED
        except ConditionError:
            return BAD
    if spec.kind == "join":
        return _join(state, world, node)
    if spec.kind == "map":
        return _map(state, world, node)
    if spec.approval and state.units[node].approved is None:
        return BAD
    if spec.kind == "gate" and state.notes.get(node, ("",))[0] == "GateTimeout":
        return BAD
    return _called(state, world, node)


def _stood_in(state: RunState, host: int, node: int) -> bool:
    """Whether the host came to need its fallback; a host that failed without it had no use of one that was lost."""
    status = state.units[host].status
    return status == FAILED or (status == SUCCEEDED and state.units[node].status == SUCCEEDED)


def _called(state: RunState, world: World, unit: int) -> int:
    """Return how the unit's last call ended, which must have read what is there now."""
    inputs, outcome = world.records[unit]
    now = inputs_of(state, unit)
    if state.spec_of(unit).kind == "gate":  # its answer is its output by now, and need not be kept
        inputs, now = inputs[:-1], now[:-1]
    assert inputs == now, f"{state.path(unit)} was made of {inputs}, but there is {now}"
    if outcome.digest is None:
        return BAD
    if state.units[unit].status == SUCCEEDED:
        assert state.units[unit].digest == outcome.digest
    return SUCCEEDED


def _join(state: RunState, world: World, node: int) -> int:
    spec = state.graph.specs[node]
    inputs = inputs_of_join(state, node)
    statuses = [_seen(state.units[item].status) for item in inputs]
    good = statuses.count(SUCCEEDED)
    if state.notes.get(node, ("",))[0] == "JoinDeadline":
        return BAD
    if spec.policy == "turn":
        assert all(state.units[item].status in (*ENDED, BLOCKED) for item in (state.units[node].chosen or ()))
        assert all(item in (state.units[node].chosen or ()) for item in spec.awaited)
        return _called(state, world, node)
    if state.units[node].past_deadline is not None and state.units[node].chosen is not None:
        return SUCCEEDED if world.records[node][1].digest is not None else BAD
    wanted = {"all": len(spec.inputs), "settled": 0, "first": 1, "quorum": spec.quorum}[spec.policy]
    wanted = max(1, ceil(-wanted * len(inputs) / 100)) if wanted < 0 else wanted
    if good < wanted:
        return BAD
    taken = state.units[node].chosen or ()
    assert all(state.units[item].status == SUCCEEDED for item in taken)
    assert len(taken) == {"all": good, "settled": good}.get(spec.policy, wanted)
    return _called(state, world, node)


def _map(state: RunState, world: World, node: int) -> int:
    spec = state.graph.specs[node]
    assert spec.over is not None
    count = (state.units[spec.over[0]].facts or {}).get(spec.over[1])
    count = len(state.values(spec.source)) if spec.source >= 0 else count
    if count is None or count > spec.cap:
        return BAD
    items = state.items[node]
    assert len(state.values(node)) == count
    for item in items:
        _item(state, world, item)
    if any(state.units[item].status in (FAILED, CANCELLED) for item in items):
        return BAD
    return _called(state, world, node)


def _item(state: RunState, world: World, item: int) -> None:
    if state.notes.get(item, ("",))[0] == "Skipped":
        return
    spec, before = state.spec_of(item), state.before(item)
    if before >= 0 and state.units[before].status != SUCCEEDED:
        blocked = (BLOCKED, SKIPPED) if state.ended else (BLOCKED,)
        assert state.units[item].status in (
            (SKIPPED,) if state.units[before].status in (SKIPPED, CANCELLED) else blocked
        )
        return
    ended = BAD if spec.approval and state.units[item].approved is None else _called(state, world, item)
    expected = FAILED
    if ended == SUCCEEDED or spec.item_fallback:
        expected = SUCCEEDED
    elif spec.item_skip:
        expected = SKIPPED
    assert state.units[item].status == expected


def _after_error(state: RunState, node: int, ended: int) -> int:
    spec = state.graph.specs[node]
    if ended != BAD:
        return ended
    if spec.fallback is not None:
        assert state.units[node].digest == spec.fallback[0]
        return SUCCEEDED
    if spec.skip_on_error:
        return SKIPPED
    if spec.successor >= 0 and state.units[spec.successor].status == SUCCEEDED:
        assert state.units[node].digest == state.units[spec.successor].digest
        return SUCCEEDED
    return FAILED
