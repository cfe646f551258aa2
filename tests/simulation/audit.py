"""What must hold of a run's state between any two events, worked out from scratch and compared with the counts."""

from sennit.workflows.plan.compile.execution_plan import APART, SHARED
from sennit.workflows.plan.scheduling.batch import Batch
from sennit.workflows.plan.scheduling.joins import inputs_of
from sennit.workflows.plan.scheduling.reset import has_started
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.termination import idle
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
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

LOST = (FAILED, SKIPPED, CANCELLED, BLOCKED)


def check_structure(state: RunState, *, more: bool = False) -> None:
    """Compare every count with the statuses it stands for. With `more` events to come at this instant, nothing has been
    started yet, nor has the run ended.
    """
    if state.ended:
        statuses = [unit.status for unit in state.units.values()]
        assert not any(status in (PENDING, RUNNING, WAITING) or status >= BLOCKED for status in statuses)
        assert state.running == len(_leaving(state))
        return
    assert not [*state.work, *state.revised, *state.stale]
    _check_totals(state)
    for node in range(len(state.graph.specs)):
        _check_node(state, node)
    if state.begun and idle(state) and not more:
        assert state.parked, "nothing can move, but the run has neither parked nor ended"
        stuck = [node for node in range(len(state.graph.specs)) if state.units[node].status not in (*ENDED, BLOCKED)]
        assert not stuck or state.units_in(IN_DOUBT), f"{stuck} wait for nothing"
    assert not state.parked or idle(state)


def _check_totals(state: RunState) -> None:
    running = state.units_in(RUNNING)
    leaving = _leaving(state)
    assert state.running == len(running) + len(leaving)
    assert state.waiting == len(state.units_in(WAITING))
    _check_batches(state)
    held: dict[str, list[int]] = {}
    for unit in running + leaving:
        for name, mode in state.locks_of(unit):
            held.setdefault(name, []).append(mode)
    for name, modes in held.items():
        assert len(modes) == 1 or modes in ([SHARED] * len(modes), [APART] * len(modes)), f"{name} is held by {modes}"
        assert (state.locks[name].mode, len(state.locks[name].holders)) == (modes[0], len(modes))
    assert all(not lock.holders for name, lock in state.locks.items() if name not in held)
    for queue, rate in state.rates.items():
        calling = [state.spec_of(unit) for unit in running]
        calls = [spec for spec in calling if spec.calls_model and spec.queue == queue]
        assert len(calls) == rate.running <= rate.limit
        late = [unit for _, _, unit in rate.waiting if state.units[unit].queued]
        is_full = state.activities >= state.window or state.running >= state.in_flight
        assert not late or rate.room <= 0 or is_full, f"{late} could call {queue!r} now"
    for record in state.units.values():
        assert not record.queued or record.status == PENDING


def _check_batches(state: RunState) -> None:
    batches: dict[Batch, list[int]] = {}
    for unit, record in state.units.items():
        if record.batch is not None:
            batches.setdefault(record.batch, []).append(unit)
    for batch, units in batches.items():
        assert sorted(batch.members) == sorted(units)
    assert state.batch_count == len(batches)
    assert state.batch_members == sum(map(len, batches.values()))


def _leaving(state: RunState) -> list[int]:
    """Return the units of which a write was cut off, and is in flight. None of them may run again before its end."""
    found = [unit for unit, effects in state.effects.items() for each in effects if each.status == "in flight"]
    assert len(dict.fromkeys(found)) == len(found)
    assert not any(state.units[unit].status == RUNNING for unit in found)
    return found


def _check_node(state: RunState, node: int) -> None:
    spec, status = state.graph.specs[node], state.units[node].status
    needs = [state.units[dep].status for dep in spec.needs]
    if status == PENDING and not has_started(state, node):
        _check_pending(state, node, needs)
    elif status == BLOCKED:
        host = state.graph.predecessor.get(node)
        assert FAILED in needs or BLOCKED in needs or (host is not None and state.units[host].status == BLOCKED)
        assert SKIPPED not in needs
        assert CANCELLED not in needs
    elif status == EXPANDED:
        left = sum(state.units[item].status not in (*ENDED, BLOCKED) for item in state.items[node])
        assert state.units[node].open_inputs == left
        assert left or (spec.source >= 0 and state.units[spec.source].status not in (*ENDED, BLOCKED))
    elif status == DELEGATED:
        assert state.units[spec.successor].status in (PENDING, RUNNING, WAITING, DELEGATED, IN_DOUBT)
    elif status == WAITING:
        assert node in state.questions or not (spec.approval or spec.fills)
        assert spec.kind == "gate" or spec.approval
        assert all(need == SUCCEEDED for need in needs)


def _check_pending(state: RunState, node: int, needs: list[Status]) -> None:
    spec = state.graph.specs[node]
    assert not any(need in LOST for need in needs), f"{spec.id} needs what is lost, and is neither blocked nor skipped"
    missing = sum(need not in ENDED for need in needs)
    missing += sum(state.units[dep].status not in (*ENDED, BLOCKED) for dep in spec.watches)
    host = state.graph.predecessor.get(node)
    missing += host is not None and state.units[host].status != DELEGATED
    if not state.begun:
        return
    assert state.units[node].open_deps == missing, (
        f"{spec.id} waits for {missing}, counted {state.units[node].open_deps}"
    )
    source_open = spec.source >= 0 and state.units[spec.source].status == EXPANDED
    assert not source_open or missing > 1, f"{spec.id} could open, but nobody knows"
    if not missing:
        assert state.units[node].queued or state.units[node].awaiting_inputs, f"{spec.id} could go on, but nobody knows"
    if state.units[node].queued:
        assert not missing
    if spec.inputs and state.units[node].awaiting_inputs:
        inputs = [state.units[item].status for item in inputs_of(state, node)]
        is_open = not spec.of_items or spec.inputs[0] in state.items
        if not state.units[node].queued and is_open:
            assert state.units[node].open_inputs == sum(item not in (*ENDED, BLOCKED) for item in inputs)
            assert state.units[node].ok_inputs == inputs.count(SUCCEEDED)
