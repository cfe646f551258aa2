"""A run's nodes arranged for a screen: layer by layer, or by the groups of a program's calls, and
folded into bands if there is no room for all. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

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
    """Neighbouring layers or groups: `first` to `last`. `nodes` are those to
    list, out of all `counts`.
    """

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
        if self.first == self.last:
            return self.first
        if self.last.isdigit():
            return f"{self.first}-{self.last}"
        return f"{self.first} …"


def layers_of(nodes: Sequence[NodeView]) -> list[list[NodeView]]:
    """Return the nodes by the longest path that leads to each, in plan order; a map's
    items are in its layer.
    """
    index = {node.id: number for number, node in enumerate(nodes)}
    sources: list[list[int]] = []
    for node in nodes:
        needed: list[int] = []
        for name in node.needs:
            if name in index and name != node.id:
                needed.append(index[name])
        sources.append(needed)
    return [_of(nodes, layer) for layer in layered(levels(sources))]


def _of(nodes: Sequence[NodeView], numbers: Sequence[int]) -> list[NodeView]:
    return [nodes[number] for number in numbers]


def _sections(nodes: Sequence[NodeView]) -> list[tuple[str, list[NodeView]]]:
    """Return the nodes by group if a program has called any of them, else by layer; each
    section with its name.

    A node without a place belongs where the one before it does: a tool loop comes after
    the call that began it.
    """
    groups = [group_of(node.call_site, node.kind) for node in nodes]
    if not any(groups):
        layers = layers_of(nodes)
        return [(str(number), layer) for number, layer in enumerate(layers, 1)]

    for number, node in enumerate(nodes):
        if groups[number]:
            continue
        if number and node.kind != "program":
            groups[number] = groups[number - 1]
        else:
            groups[number] = (node.id,)

    # Groups inside others are indented. The indent takes from the room of the name.
    sections: list[tuple[str, list[NodeView]]] = []
    for row in rows_by(groups):
        indent = "  " * row.depth
        name = fit(row.name, _NAME - len(indent))
        sections.append((indent + name, _of(nodes, row.members)))
    return sections


def bands_of(nodes: Sequence[NodeView], room: int) -> list[Band]:
    """Return the layers as bands of at most `room` lines together, if there is
    room for any nodes at all.

    All nodes are listed if they fit. Otherwise there is a bar for each layer or group, and
    neighbours in which nothing fails, waits or runs may share one. Nodes that failed, then those
    that wait, then those that run are listed below the bars as far as there is room.
    """
    bands: list[Band] = []
    for name, members in _sections(nodes):
        bands.append(_band(name, name, members))
    if len(nodes) <= room:
        return bands
    # Too many: quiet neighbours share a band, and if that is not enough, all that find no
    # room share the last one.
    if len(bands) > room // 2:
        bands = _folded(bands)
    if len(bands) > room:
        kept = max(room - 1, 0)
        bands = [*bands[:kept], _merged(bands[kept:])]

    # Below the bars, the nodes that need a look.
    urgent = [node for node in _nodes_of(bands) if node.status in _URGENCY]
    urgent.sort(key=lambda node: _URGENCY[node.status])
    listed: set[str] = set()
    for node in urgent[: max(room - len(bands), 0)]:
        listed.add(node.id)

    # In the room that is left, small bands are listed whole. A band that is
    # listed whole needs no bar.
    left = room - len(bands) - len(listed)
    for band in sorted(bands, key=lambda band: len(band.nodes)):
        more = [node.id for node in band.nodes if node.id not in listed]
        needed = len(more) - 1
        if needed <= left:
            left -= needed
            listed.update(more)
    return [_with_listed(band, listed) for band in bands]


def _with_listed(band: Band, listed: set[str]) -> Band:
    nodes = [node for node in band.nodes if node.id in listed]
    return replace(band, nodes=tuple(nodes))


def _nodes_of(bands: Sequence[Band]) -> list[NodeView]:
    nodes: list[NodeView] = []
    for band in bands:
        nodes += band.nodes
    return nodes


def _band(first: str, last: str, nodes: Sequence[NodeView]) -> Band:
    counts = Counter(map(attrgetter("status"), nodes))
    return Band(first, last, tuple(nodes), counts)


def _folded(bands: Sequence[Band]) -> list[Band]:
    """Return the bands with neighbours merged in which nothing fails, waits or runs."""
    folded: list[Band] = []
    was_quiet = False
    for band in bands:
        is_quiet = _URGENCY.keys().isdisjoint(band.counts)
        if was_quiet and is_quiet:
            folded[-1] = _merged([folded[-1], band])
        else:
            folded.append(band)
        was_quiet = is_quiet
    return folded


def _merged(bands: Sequence[Band]) -> Band:
    return _band(bands[0].first, bands[-1].last, _nodes_of(bands))


def bar_of(counts: Mapping[str, int], width: int) -> list[tuple[str, str]]:
    """Return a bar of `width` signs, readable without colour, as pieces of (status, signs).

    █ succeeded, ✗ failed, ▒ runs, ? waits, ░ pending. Every status that any node has
    gets at least one sign.
    """
    total = sum(counts.values())
    shares: dict[str, int] = {}
    for status in _BAR:
        if counts.get(status):
            shares[status] = max(1, counts[status] * width // total)
    if not shares:
        return []

    # What is left over goes to the largest share at once. What is too much is taken from the
    # largest, sign by sign.
    spare = width - sum(shares.values())
    while spare:
        largest = max(shares, key=lambda status: shares[status])
        change = max(spare, -1)
        shares[largest] += change
        spare -= change
    return [(status, _BAR[status] * share) for status, share in shares.items()]
