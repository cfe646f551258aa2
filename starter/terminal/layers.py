"""A run's nodes arranged for a screen: layer by layer, and where there is no room for all, folded into bands. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workflows.messages.views import NodeView

_URGENCY = {"failed": 0, "waiting": 1, "running": 2}
_BAR = {
    "succeeded": "█",
    "failed": "✗",
    "skipped": "-",
    "cancelled": "x",
    "running": "▒",
    "waiting": "?",
    "pending": "░",
}


@dataclass(frozen=True, slots=True)
class Band:
    """Layers next to each other: `first` to `last`, counted from 1. `nodes` are those to list, out of all `counts`."""

    first: int
    last: int
    nodes: tuple[NodeView, ...]
    counts: Mapping[str, int]

    @property
    def folded(self) -> bool:
        """Whether some of its nodes are not listed, so that its counts have to be shown."""
        return len(self.nodes) < sum(self.counts.values())

    @property
    def name(self) -> str:
        """Its layers, as `3` or `3-7`."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def layers_of(nodes: Sequence[NodeView]) -> list[list[NodeView]]:
    """Return the nodes by the longest path that leads to each, in plan order; a map's items are in its layer."""
    by_id = {node.id: node for node in nodes}
    depth: dict[str, int] = {}
    for node in nodes:
        path = [node]
        while path:  # not by recursion: a chain may be thousands of nodes long
            at = path[-1]
            needs = [by_id[name] for name in at.needs if name in by_id and name != at.id]
            open_ = [need for need in needs if need.id not in depth]
            if open_ and len(path) <= len(nodes):
                path.append(open_[0])
                continue
            depth[at.id] = 1 + max((depth.get(need.id, 0) for need in needs), default=-1)
            path.pop()
    layers: list[list[NodeView]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        layers[depth[node.id]].append(node)
    return layers


def bands_of(nodes: Sequence[NodeView], room: int) -> list[Band]:
    """Return the layers as bands of at most `room` lines together, if there is room for any nodes at all.

    All nodes are listed when they fit. Otherwise there is a bar for each layer, and many layers in which nothing fails,
    waits or runs share one; below the bars those nodes are listed for which there is room: what failed first, then
    what waits, then what runs.
    """
    bands = [_band(at, at, layer) for at, layer in enumerate(layers_of(nodes), 1)]
    if len(nodes) <= room:
        return bands
    if len(bands) > room // 2:
        bands = _folded(bands)
    if len(bands) > room:
        bands = [*bands[: max(room - 1, 0)], _merged(bands[max(room - 1, 0) :])]
    busy = [node for band in bands for node in band.nodes if node.status in _URGENCY]
    busy.sort(key=lambda node: _URGENCY[node.status])
    listed = {node.id for node in busy[: max(room - len(bands), 0)]}
    left = room - len(bands) - len(listed)
    for band in sorted(bands, key=lambda band: len(band.nodes)):  # with what room is left, small layers are whole
        more = [node.id for node in band.nodes if node.id not in listed]
        if len(more) - 1 <= left:  # its bar goes
            left -= len(more) - 1
            listed.update(more)
    return [replace(band, nodes=tuple(node for node in band.nodes if node.id in listed)) for band in bands]


def _band(first: int, last: int, nodes: Sequence[NodeView]) -> Band:
    return Band(first, last, tuple(nodes), Counter(node.status for node in nodes))


def _folded(bands: Sequence[Band]) -> list[Band]:
    """Return the bands with those next to each other merged in which nothing fails, waits or runs."""
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

    █ succeeded, ✗ failed, ▒ runs, ? waits, ░ to come. Every status that any node has gets at least one sign.
    """
    total = sum(counts.values())
    shares = {status: max(1, counts[status] * width // total) for status in _BAR if counts.get(status)}
    while shares and (spare := width - sum(shares.values())):
        largest = max(shares, key=lambda status: shares[status])
        shares[largest] += max(spare, -1)
    return [(status, _BAR[status] * share) for status, share in shares.items()]
