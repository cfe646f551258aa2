"""Where the nodes of a graph stand in a picture: in layers, in order, with lanes for
edges that skip layers.

A node's layer is the longest path to it. The order inside a layer comes from barycentre sweeps
(Sugiyama, Tagawa and Toda 1981), the positions from isotonic regression. Everything depends on the
graph alone, never on what has run, so that a picture stands still while its nodes change.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.session import Session

SWEEPS = 6
MAX_NODES = 60
MAX_LINKS = 240


@dataclass(frozen=True, slots=True)
class Layout:
    """A graph in layers. Cells below `count` are nodes; the others are lanes, where
    long edges cross a layer.

    `links` lead from cells to cells of the next layer. A graph too big to draw node by node has
    neither lanes nor links, and its layers are in plan order.
    """

    count: int
    layers: list[list[int]]
    links: list[tuple[int, int]]

    @property
    def whole(self) -> bool:
        """Whether the graph is small enough to draw every node."""
        if self.count > MAX_NODES:
            return False
        return bool(self.links) or len(self.layers) <= 1


def flow_of(
    graph: Graph, sessions: Mapping[int, Session] = MappingProxyType({})
) -> tuple[list[int], list[list[int]]]:
    """Return the nodes to draw, and for each the places in that list of the nodes it comes after.

    A fallback node comes after the node it replaces. What a script has called comes after the calls
    of whose ends the script was told then, and what waits for a program after its last calls.
    """
    shown = list(range(len(graph.specs)))
    told: dict[tuple[int, int], list[int]] = {}
    flow: list[list[int]] = []
    for node in shown:
        spec = graph.specs[node]
        sources: list[int] = []
        for source in (*graph.deps[node], *spec.inputs):
            sources += _ends(graph, sessions, source)
        if node in graph.predecessor:
            sources.append(graph.predecessor[node])

        # A call of a program comes after the calls of whose ends the advance that made it was told.
        program = graph.caller_of(node)
        if program >= 0:
            session = sessions[program]
            number = session.calls.get(node, 0)
            advance = (program, number)
            if advance not in told:
                told[advance] = _told(graph, session, number) or [program]
            sources = told[advance]
        elif spec.maker >= 0 and not sources:
            sources = [spec.maker]
        flow.append(sources)
    return shown, flow


def _ends(graph: Graph, sessions: Mapping[int, Session], node: int) -> list[int]:
    """Return the nodes by which a node ends: the last calls of a program, the
    node itself of any other.
    """
    session = sessions.get(node)
    if session is None or not session.waits:
        return [node]
    return [_last(graph, call) for call in session.waits]


def _told(graph: Graph, session: Session, number: int) -> list[int]:
    """Return the calls of whose ends a script was told as an advance began: of a model that has
    called tools, its last turn.
    """
    return [_last(graph, call) for call in session.told_at_begin(number)]


def _last(graph: Graph, node: int) -> int:
    """Return the last turn of a model call, or the node itself."""
    while graph.specs[node].kind == "llm" and graph.specs[node].successor >= 0:
        node = graph.specs[node].successor
    return node


def levels(sources: Sequence[Sequence[int]]) -> list[int]:
    """Return each node's layer: as early as the nodes it comes after allow. Nodes of
    a cycle are in layer 0.
    """
    level = [0] * len(sources)
    missing = list(map(len, sources))
    targets: list[list[int]] = [[] for _ in sources]
    for node, before in enumerate(sources):
        for source in before:
            targets[source].append(node)

    # A node is ready when the layers of all that it comes after are known.
    ready: deque[int] = deque()
    for node, count in enumerate(missing):
        if not count:
            ready.append(node)
    while ready:
        source = ready.popleft()
        for node in targets[source]:
            level[node] = max(level[node], level[source] + 1)
            missing[node] -= 1
            if not missing[node]:
                ready.append(node)
    return level


def layered(level: Sequence[int]) -> list[list[int]]:
    """Return the nodes by layer, in plan order."""
    if not level:
        return []
    layers: list[list[int]] = [[] for _ in range(max(level) + 1)]
    for node, number in enumerate(level):
        layers[number].append(node)
    return layers


def arrange(sources: Sequence[Sequence[int]]) -> Layout:
    """Return the layout of a graph, given for each node the nodes it comes after."""
    count = len(sources)
    level = levels(sources)
    layers = layered(level)
    if count > MAX_NODES:
        return Layout(count, layers, [])
    links = _links(sources, level, layers)
    if len(links) > MAX_LINKS:
        # The links have put lanes into the layers, which only a drawing of every node has.
        return Layout(count, layered(level), [])
    return Layout(count, _ordered(layers, links), links)


def _links(
    sources: Sequence[Sequence[int]], level: list[int], layers: list[list[int]]
) -> list[tuple[int, int]]:
    """Return every edge as steps from layer to layer, and put the lanes it passes
    through into `layers`.

    Long edges into one node share lanes.
    """
    lanes: dict[tuple[int, int], int] = {}
    links: dict[tuple[int, int], None] = {}
    for node, before in enumerate(sources):
        for source in before:
            cell = source
            for layer in range(level[source] + 1, level[node]):
                key = node, layer
                if key not in lanes:
                    lanes[key] = len(level) + len(lanes)
                    layers[layer].append(lanes[key])
                links[cell, lanes[key]] = None
                cell = lanes[key]
            links[cell, node] = None
    return list(links)


def _ordered(layers: list[list[int]], links: list[tuple[int, int]]) -> list[list[int]]:
    """Return the layers, each in the order of the mean places that its cells are linked to; plan
    order decides between equals.
    """
    above, below = neighbours(links)
    for sweep in range(SWEEPS):
        # Sweeps alternate: down, by what each cell comes after, and up, by what comes after it.
        linked, order = above, layers
        if sweep % 2:
            linked, order = below, layers[::-1]
        place: dict[int, int] = {}
        for layer in layers:
            _note_places(layer, place)
        for layer in order:
            means: dict[int, float] = {}
            for cell in layer:
                ends = [place[end] for end in linked.get(cell, ())]
                means[cell] = _mean(ends, place[cell])
            layer.sort(key=means.__getitem__)
            _note_places(layer, place)
    return layers


def _note_places(layer: Sequence[int], place: dict[int, int]) -> None:
    place.update(zip(layer, range(len(layer)), strict=True))


def neighbours(
    links: Sequence[tuple[int, int]],
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return for each cell those linked to it in the layer before, and in the layer after."""
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for source, node in links:
        above.setdefault(node, []).append(source)
        below.setdefault(source, []).append(node)
    return above, below


def _mean(positions: Sequence[float], otherwise: float) -> float:
    if not positions:
        return otherwise
    return sum(positions) / len(positions)


def positions(layout: Layout, sizes: Sequence[float], gap: float) -> list[float]:
    """Return the middle of each cell across its layer, from 0 up; cells of a layer never overlap.

    `sizes` are the extents of the cells, `gap` is the least distance between two of them. Each cell
    is pulled to the mean of its neighbours, as far as the cells beside it allow.
    """
    # All layers begin centred on a common axis.
    middle = [0.0] * len(sizes)
    for layer in layout.layers:
        edge = 0.0
        for cell in layer:
            middle[cell] = edge + sizes[cell] / 2
            edge += sizes[cell] + gap
        for cell in layer:
            middle[cell] -= (edge - gap) / 2

    above, below = neighbours(layout.links)
    for sweep in range(SWEEPS):
        # The first sweep goes back from the last layer: each cell moves towards those of
        # the layer just placed.
        near, far, order = above, below, layout.layers
        if sweep % 2 == 0:
            near, far, order = below, above, layout.layers[::-1]
        for layer in order:
            preferred: list[float] = []
            for cell in layer:
                ends = near.get(cell) or far.get(cell) or []
                middles = [middle[end] for end in ends]
                preferred.append(_mean(middles, middle[cell]))
            separated = _separated(layer, preferred, sizes, gap)
            for cell, place in zip(layer, separated, strict=True):
                middle[cell] = place

    # The outermost edge moves to 0.
    least = float("inf")
    for place, size in zip(middle, sizes, strict=True):
        least = min(least, place - size / 2)
    return [place - least for place in middle]


class _Block(NamedTuple):
    """Neighbouring cells that are shifted together: the sum of the shifts that they
    prefer, and their number.
    """

    total: float
    length: int

    @property
    def shift(self) -> float:
        return self.total / self.length


def _separated(
    layer: list[int], preferred: list[float], sizes: Sequence[float], gap: float
) -> list[float]:
    """Return the positions nearest to the preferred ones, by least squares, that
    keep order and distance.
    """
    offsets: list[float] = []
    edge = 0.0
    for cell in layer:
        offsets.append(edge + sizes[cell] / 2)
        edge += sizes[cell] + gap
    # Cells that would overlap form a block, which is shifted as a whole: to the mean of
    # what its cells prefer.
    blocks: list[_Block] = []
    for place, offset in zip(preferred, offsets, strict=True):
        block = _Block(place - offset, 1)
        while blocks and blocks[-1].shift > block.shift:
            earlier = blocks.pop()
            total = block.total + earlier.total
            block = _Block(total, block.length + earlier.length)
        blocks.append(block)

    shifts: list[float] = []
    for block in blocks:
        shifts += [block.shift] * block.length
    separated: list[float] = []
    for shift, offset in zip(shifts, offsets, strict=True):
        separated.append(shift + offset)
    return separated
