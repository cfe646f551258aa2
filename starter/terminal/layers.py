"""A run's nodes arranged for a screen: layer by layer, or by the groups of a program's calls, and folded into bands if
there is no room for all. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sennit.starter.terminal.text import fit
from sennit.workflows.drawing.layout import layered, levels
from sennit.workflows.drawing.rows import rows_by
from sennit.workflows.messages.views import NodeView
from sennit.workflows.views.call_sites import group_of

_NAME = 20
"""The room for the name of a group."""
_URGENCY = {"failed": 0, "waiting": 1, "running": 2}
_BAR = {
    "succeeded": "█",
    "failed": "✗",
    "handled": "~",
    "skipped": "-",
    "cancelled": "x",
    "running": "▒",
    "waiting": "?",
    "pending": "░",
}


@dataclass(frozen=True, slots=True)
class Band:
    """Neighbouring layers or groups: `first` to `last`. `nodes` are those to list, out of all `counts`."""

    first: str
    last: str
    nodes: tuple[NodeView, ...]
    counts: Mapping[str, int]

    @property
    def folded(self) -> bool:
        """Whether some of its nodes are not listed, so that its counts have to be shown."""
        return len(self.nodes) < sum(self.counts.values())

    @property
    def name(self) -> str:
        """Its layers, as `3` or `3-7`, or its first group."""
        several = f"-{self.last}" if self.last.isdigit() else " …"
        return self.first if self.first == self.last else f"{self.first}{several}"


def layers_of(nodes: Sequence[NodeView]) -> list[list[NodeView]]:
    """Return the nodes by the longest path that leads to each, in plan order; a map's items are in its layer."""
    index = {node.id: number for number, node in enumerate(nodes)}
    sources = [[index[name] for name in node.needs if name in index and name != node.id] for node in nodes]
    return [[nodes[number] for number in layer] for layer in layered(levels(sources))]


def _sections(nodes: Sequence[NodeView]) -> list[tuple[str, list[NodeView]]]:
    """Return the nodes by group if a program has called any of them, else by layer; each section with its name.

    A node without a place belongs where the one before it does: a tool loop comes after the call that began it.
    """
    groups = [group_of(node.call_site, node.kind) for node in nodes]
    if not any(groups):
        return [(str(at), layer) for at, layer in enumerate(layers_of(nodes), 1)]
    for at, node in enumerate(nodes):
        groups[at] = groups[at] or (groups[at - 1] if at and node.kind != "program" else (node.id,))
    return [
        ("  " * row.depth + fit(row.name, _NAME - 2 * row.depth), [nodes[member] for member in row.members])
        for row in rows_by(groups)
    ]


def bands_of(nodes: Sequence[NodeView], room: int) -> list[Band]:
    """Return the layers as bands of at most `room` lines together, if there is room for any nodes at all.

    All nodes are listed if they fit. Otherwise there is a bar for each layer or group, and neighbours in which nothing
    fails, waits or runs may share one. Nodes that failed, then those that wait, then those that run are listed below
    the bars as far as there is room.
    """
    bands = [_band(name, name, members) for name, members in _sections(nodes)]
    if len(nodes) <= room:
        return bands
    if len(bands) > room // 2:
        bands = _folded(bands)
    if len(bands) > room:
        bands = [*bands[: max(room - 1, 0)], _merged(bands[max(room - 1, 0) :])]
    urgent = [node for band in bands for node in band.nodes if node.status in _URGENCY]
    urgent.sort(key=lambda node: _URGENCY[node.status])
    listed = {node.id for node in urgent[: max(room - len(bands), 0)]}
    left = room - len(bands) - len(listed)
    for band in sorted(bands, key=lambda band: len(band.nodes)):  # list small layers whole in the room that is left
        more = [node.id for node in band.nodes if node.id not in listed]
        if len(more) - 1 <= left:  # its bar goes
            left -= len(more) - 1
            listed.update(more)
    return [replace(band, nodes=tuple(node for node in band.nodes if node.id in listed)) for band in bands]


def _band(first: str, last: str, nodes: Sequence[NodeView]) -> Band:
    return Band(first, last, tuple(nodes), Counter(node.status for node in nodes))


def _folded(bands: Sequence[Band]) -> list[Band]:
    """Return the bands with neighbours merged in which nothing fails, waits or runs."""
    folded: list[Band] = []
    quiet = False
    for band in bands:
        was_quiet, quiet = quiet, not any(status in band.counts for status in _URGENCY)
        folded.append(_merged([folded.pop(), band]) if was_quiet and quiet else band)
    return folded


def _merged(bands: Sequence[Band]) -> Band:
    return _band(bands[0].first, bands[-1].last, [node for band in bands for node in band.nodes])


def bar_of(counts: Mapping[str, int], width: int) -> list[tuple[str, str]]:
    """Return a bar of `width` signs, readable without colour, as pieces of (status, signs).

    █ succeeded, ✗ failed, ▒ runs, ? waits, ░ pending. Every status that any node has gets at least one sign.
    """
    total = sum(counts.values())
    shares = {status: max(1, counts[status] * width // total) for status in _BAR if counts.get(status)}
    while shares and (spare := width - sum(shares.values())):
        largest = max(shares, key=lambda status: shares[status])
        shares[largest] += max(spare, -1)
    return [(status, _BAR[status] * share) for status, share in shares.items()]
