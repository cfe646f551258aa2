"""What people see of the value of a join or a map, which no activity has made."""

from collections import ChainMap
from collections.abc import MutableMapping

from sennit.workflows.limits import MAX_PREVIEW_CHARACTERS
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.plan.language.text import cut
from sennit.workflows.plan.scheduling.joins import is_manifest, lost, parts_of
from sennit.workflows.plan.scheduling.state import SUCCEEDED, RunState


def joined(state: RunState, replies: MutableMapping[int, NodeReply]) -> dict[int, NodeReply]:
    """Return a reply for each join or map to which the last step has given its value, with a preview from those of the
    units that have made it.
    """
    found: dict[int, NodeReply] = {}
    for unit in sorted(state.status.touched):
        is_closed = state.status[unit] == SUCCEEDED and _is_gathered(state, unit)
        if is_closed and (unit not in replies or replies[unit].ref != state.digest[unit]):
            preview = _preview(state, unit, ChainMap(found, replies))
            found[unit] = NodeReply(ref=state.digest[unit], size=state.size[unit], preview=preview, attempt=0)
    return found


def _is_gathered(state: RunState, unit: int) -> bool:
    """Whether the value of a unit is a join's, or that of a map which no activity has stored."""
    if state.kind_of(unit) == "map":
        return is_manifest(state.digest[unit] or "")
    return unit in state.chosen and state.kind_of(unit) == "join"


def _preview(state: RunState, join: int, replies: MutableMapping[int, NodeReply]) -> str:
    spec, chosen = state.graph.specs[join], parts_of(state, join)
    parts, room = list[str](), MAX_PREVIEW_CHARACTERS
    for node in spec.inputs if spec.policy == "settled" else chosen:
        text = replies[node].preview if node in replies and state.status[node] == SUCCEEDED else ""
        if spec.policy == "settled":
            text = f"{state.path(node)} {lost(state, [node])[node][0]}" + f": {text}" * bool(text)
        parts.append(text)
        room -= len(text) + 2
        if room < 0:
            break
    text = parts[0] if spec.policy == "first" and parts else f"[{', '.join(parts)}]"
    return cut(text, MAX_PREVIEW_CHARACTERS)
