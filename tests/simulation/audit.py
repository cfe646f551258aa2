"""What must hold of a run's state between any two events, worked out from scratch and compared with the counts."""

from workflows.plan.scheduling.reset import has_started
from workflows.plan.scheduling.state import (
    AWAITING_FALLBACK,
    BLOCKED,
    CANCELLED,
    ENDED,
    EXPANDED,
    FAILED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    RunState,
)
from workflows.plan.scheduling.termination import idle

LOST = (FAILED, SKIPPED, CANCELLED, BLOCKED)


def check_structure(state: RunState) -> None:
    """Compare every count with the statuses it stands for."""
    if state.ended:
        assert not any(status in (PENDING, RUNNING, WAITING) or status >= BLOCKED for status in state.status)
        return
    assert not [*state.work, *state.revised, *state.stale]
    _check_totals(state)
    _check_expansion_requests(state)
    for node in range(len(state.graph.specs)):
        _check_node(state, node)
    if state.begun and idle(state):
        assert state.parked, "nothing can move, but the run has neither parked nor ended"
        stuck = [node for node in range(len(state.graph.specs)) if state.status[node] not in (*ENDED, BLOCKED)]
        assert not stuck, f"{stuck} wait for nothing"
    assert not state.parked or idle(state)


def _check_totals(state: RunState) -> None:
    running = [unit for unit, status in enumerate(state.status) if status == RUNNING]
    assert state.running == len(running)
    assert state.waiting == state.status.count(WAITING)
    held: dict[str, list[bool]] = {}
    for unit in running:
        for name, exclusive in dict(sorted(state.spec_of(unit).locks)).items():
            held.setdefault(name, []).append(exclusive)
    for name, modes in held.items():
        assert len(modes) == 1 or not any(modes), f"{name} is held by {modes}"
        assert state.held[name] == (-1 if modes[0] else len(modes))
    assert all(count == 0 for name, count in state.held.items() if name not in held)
    for queue, rate in state.rates.items():
        calling = [state.spec_of(unit) for unit in running if unit not in state.expansion_requests]
        calls = [spec for spec in calling if spec.calls_model and spec.queue == queue]
        assert len(calls) == rate.running <= rate.limit
        late = [unit for _, _, unit in rate.waiting if state.queued[unit]]
        assert not late or rate.room <= 0 or state.running >= state.window, f"{late} could call {queue!r} now"
    for unit, queued in enumerate(state.queued):
        assert not queued or state.status[unit] == PENDING


def _check_expansion_requests(state: RunState) -> None:
    for unit, request in state.expansion_requests.items():
        if request.approved:
            assert state.status[unit] == RUNNING or state.queued[unit]
        else:
            assert state.status[unit] == WAITING


def _check_node(state: RunState, node: int) -> None:
    spec, status = state.graph.specs[node], state.status[node]
    needs = [state.status[dep] for dep in spec.needs]
    if status == PENDING and not has_started(state, node):
        _check_pending(state, node, needs)
    elif status == BLOCKED:
        host = state.graph.fallback_for.get(node)
        assert FAILED in needs or BLOCKED in needs or (host is not None and state.status[host] == BLOCKED)
        assert SKIPPED not in needs
        assert CANCELLED not in needs
    elif status == EXPANDED:
        assert state.open_inputs[node] == sum(state.status[item] not in ENDED for item in state.items[node]) > 0
    elif status == AWAITING_FALLBACK:
        assert state.status[spec.instead] in (PENDING, RUNNING, WAITING, AWAITING_FALLBACK)
    elif status == WAITING and node not in state.expansion_requests:
        assert node in state.questions or not (spec.approval or spec.fills)
        assert spec.kind == "gate" or spec.approval
        assert all(need == SUCCEEDED for need in needs)


def _check_pending(state: RunState, node: int, needs: list[int]) -> None:
    spec = state.graph.specs[node]
    assert not any(need in LOST for need in needs), f"{spec.id} needs what is lost, and is neither blocked nor skipped"
    missing = sum(need not in ENDED for need in needs)
    missing += sum(state.status[dep] not in (*ENDED, BLOCKED) for dep in spec.watches)
    host = state.graph.fallback_for.get(node)
    missing += host is not None and state.status[host] != AWAITING_FALLBACK
    if not state.begun:
        return
    assert state.open_deps[node] == missing, f"{spec.id} waits for {missing}, counted {state.open_deps[node]}"
    group = state.graph.group_of.get(node)
    gathering = group is not None and not state.ungrouped[group]
    if not missing and not gathering:
        assert state.queued[node] or state.awaiting_inputs[node], f"{spec.id} could go on, but nobody knows"
    if state.queued[node] and not gathering:
        assert not missing
    if spec.inputs and state.awaiting_inputs[node]:
        inputs = [state.status[item] for item in spec.inputs]
        if not state.queued[node]:
            assert state.open_inputs[node] == sum(item not in (*ENDED, BLOCKED) for item in inputs)
            assert state.ok_inputs[node] == inputs.count(SUCCEEDED)
