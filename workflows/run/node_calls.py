"""What an activity is told of the units it runs: paths, and the digests of the outputs they read."""

from typing import Any

from workflows.messages.contracts import NodeCall
from workflows.plan.compile.graph import NodeSpec
from workflows.plan.scheduling.state import SHOWN, SUCCEEDED, RunState

LOSS_CHARACTERS = 300
LOST_CHARACTERS = 100_000
"""What a model or a join is told of its lost inputs, each and all together: one payload holds 2 MiB."""

Units = tuple[int, ...]


def node_call(state: RunState, run: str, plan: str, units: Units) -> NodeCall:
    """Return what an activity needs to run these units: paths, and the digests of the outputs they read."""
    fields: dict[str, Any] = {"run": run, "plan": plan, "nodes": tuple(state.address(unit) for unit in units)}
    first = units[0]
    spec = state.spec_of(first)
    if state.is_item(first) or (spec.kind not in ("join", "map", "gate")):
        fields |= _reads(state, units)
    if spec.inputs:
        fields |= _gathered(state, first, spec, fields.get("refs", {}))
    elif spec.kind == "map" and not state.is_item(first):
        fields["items"] = tuple(state.digest[item] for item in state.items[first])
    elif spec.kind == "gate":
        fields["answer"] = state.answers.get(first)
    return NodeCall(**fields)


def _gathered(state: RunState, unit: int, spec: NodeSpec, refs: dict[str, str]) -> dict[str, Any]:
    """Return what a join, or a model that is told of others' ends, gets beside what it reads."""
    chosen = state.chosen[unit]
    found: dict[str, Any] = {"refs": refs | {state.path(node): state.digest[node] or "" for node in chosen}}
    if spec.policy == "settled":
        lost = [node for node in spec.inputs if node not in dict.fromkeys(chosen)]
        room = min(LOSS_CHARACTERS, LOST_CHARACTERS // max(1, len(lost)))
        found["lost"] = {state.path(node): _loss(state, node, room) for node in lost}
    return found


def _reads(state: RunState, units: Units) -> dict[str, Any]:
    inside = dict.fromkeys(units)
    nodes = dict.fromkeys(node for unit in units for node in state.spec_of(unit).reads if node not in inside)
    if len(units) > 1:
        nodes |= dict.fromkeys(node for unit in units for node in state.spec_of(unit).needs if node not in inside)
    refs = {state.path(node): state.digest[node] or "" for node in nodes if state.status[node] == SUCCEEDED}
    return {"refs": refs} if refs else {}


def _loss(state: RunState, node: int, room: int) -> tuple[str, str | None]:
    note = state.notes.get(node)
    shown = SHOWN[state.status[node]]
    return ("skipped" if shown == "pending" else shown), (f"{note[0]}: {note[1]}"[:room] if note else None)


def weight(call: NodeCall) -> int:
    """Return roughly how many bytes the command to start this call takes."""
    size = 600 + sum(len(path) + 4 for path in call.nodes) + 44 * len(call.items)
    size += sum(len(name) + len(digest) + 6 for name, digest in call.refs.items())
    size += sum(
        len(name) + len(status) + len((error or "").encode()) + 10 for name, (status, error) in call.lost.items()
    )
    return size + (len(str(call.answer).encode()) if call.answer is not None else 0)
