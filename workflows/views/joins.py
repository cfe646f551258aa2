"""What people see of the value of a join or a map, which no activity has made."""

from collections import ChainMap
from collections.abc import MutableMapping, Sequence

from sennit.workflows.limits import MAX_PREVIEW_CHARACTERS
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.plan.language.nodes import GOES_ON
from sennit.workflows.plan.language.text import cut
from sennit.workflows.plan.scheduling.joins import is_manifest, lost, parts_of
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import SUCCEEDED


def joined(state: RunState, replies: MutableMapping[int, NodeReply]) -> dict[int, NodeReply]:
    """Return a reply for each join or map to which the last step has given its value, with a
    preview from those of the units that have made it.
    """
    found: dict[int, NodeReply] = {}
    for unit in sorted(state.touched):
        if state.units[unit].status != SUCCEEDED or not _is_gathered(state, unit):
            continue
        ref = state.units[unit].digest
        is_known = unit in replies and replies[unit].ref == ref
        if not is_known:
            preview = _preview(state, unit, ChainMap(found, replies))
            found[unit] = NodeReply(
                ref=ref, size=state.units[unit].size, preview=preview, attempt=0
            )
    return found


def _is_gathered(state: RunState, unit: int) -> bool:
    """Whether the value of a unit is a join's, or that of a map which no activity has stored."""
    if state.kind_of(unit) == "map":
        return is_manifest(state.units[unit].digest or "")
    return state.units[unit].chosen is not None and state.kind_of(unit) == "join"


def _preview(state: RunState, join: int, replies: MutableMapping[int, NodeReply]) -> str:
    spec = state.graph.specs[join]
    is_settled = spec.policy in ("settled", "turn")
    nodes: Sequence[int] = spec.inputs
    if not is_settled:
        nodes = parts_of(state, join)
    parts: list[str] = []
    room = MAX_PREVIEW_CHARACTERS
    for node in nodes:
        text = ""
        if node in replies and state.units[node].status == SUCCEEDED:
            text = replies[node].preview
        if is_settled:
            # Such a join says of each input how it has ended.
            status = lost(state, [node])[node][0]
            if spec.policy == "turn" and node not in (state.units[join].chosen or ()):
                status = GOES_ON
            head = f"{state.path(node)} {status}"
            if text:
                head += ": "
            text = head + text
        parts.append(text)
        room -= len(text) + 2
        if room < 0:
            break
    if spec.policy == "first" and parts:
        return cut(parts[0], MAX_PREVIEW_CHARACTERS)
    return cut(f"[{', '.join(parts)}]", MAX_PREVIEW_CHARACTERS)
