"""The graph of a run. Up to some sixty nodes have a box each with its name; more are
dots, in columns by layer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sennit.starter.report.content import Content
from sennit.starter.report.markup import EMPTY, Markup, Value, cut, element
from sennit.workflows.drawing.layout import Layout, arrange, layered, levels, neighbours, positions
from sennit.workflows.messages.figures import CallLine
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.language.limits import duration_text

_BOX_WIDTH, _BOX_HEIGHT, _GAP, _COLUMN_GAP = 148, 38, 12, 46
_LANE = 6
_DOT, _STEP = 10, 15
_DOT_ROWS = 28
_LAYER_GAP = 54
_MOST_EDGES = 5_000
"""Lines between dots: with more, nobody sees any."""
_MARGIN = 10
Edges = dict[tuple[int, int], None]


@dataclass(frozen=True, slots=True)
class _Flow:
    """The nodes that are drawn, with the places of those that each comes after, and the
    edges of the critical path.
    """

    names: Sequence[str]
    after: Sequence[Sequence[int]]
    critical: Edges


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a node stands: its left and its right edge, and the height of its middle."""

    left: float
    right: float
    y: float


def graph(content: Content) -> Markup:
    """Return the picture of the graph; nothing if it is not known."""
    names: list[str] = []
    after: list[list[int]] = []
    for line in content.page.flow:
        names.append(line.node)
        after.append([place for place in line.after if place < len(content.page.flow)])
    if not names:
        return EMPTY
    flow = _Flow(names, after, _critical_edges(names, after, content))
    layout = arrange(after)
    if layout.whole:
        return _boxes(flow, layout, content)
    return _dots(flow, content)


def _critical_edges(
    names: Sequence[str], after: Sequence[Sequence[int]], content: Content
) -> Edges:
    """Return the edges between nodes that are both on the critical path, or are containers
    that it leads through.
    """
    hot = {call.node.partition("[")[0] for call in content.page.calls if call.critical}
    is_reached = [name in hot for name in names]
    goes_on = list(is_reached)

    # A container is on the path if the path comes to it, and goes on behind it.
    order: list[int] = []
    for layer in layered(levels(after)):
        order += layer
    for node in order:
        if names[node] not in content.calls and any(is_reached[source] for source in after[node]):
            is_reached[node] = True
    for node in reversed(order):
        for source in after[node]:
            if names[source] not in content.calls and goes_on[node]:
                goes_on[source] = True

    edges: Edges = {}
    for node, sources in enumerate(after):
        if not (is_reached[node] and goes_on[node]):
            continue
        for source in sources:
            if is_reached[source] and goes_on[source]:
                edges[source, node] = None
    return edges


def _boxes(flow: _Flow, layout: Layout, content: Content) -> Markup:
    spots = _spots_of(layout)
    hot = _hot_links(layout, flow.critical)
    parts: list[Markup] = []
    for link in layout.links:
        source, node = link
        line = _curve(spots[source], spots[node])
        parts.append(element("path", d=line, class_=_edge(link in hot)))
    # A lane is a piece of an edge that goes straight through a layer.
    ends: set[int] = set()
    for link in hot:
        ends.update(link)
    for cell in range(layout.count, len(spots)):
        spot = spots[cell]
        line = f"M{spot.left:g} {spot.y:.1f}H{spot.right:g}"
        parts.append(element("path", d=line, class_=_edge(cell in ends)))
    for number, name in enumerate(flow.names):
        parts.append(_box(name, spots[number], content))
    width = max(spot.right for spot in spots) + _MARGIN
    height = max(spot.y for spot in spots) + _BOX_HEIGHT / 2 + _MARGIN
    return _framed(parts, width, height)


def _edge(is_critical: bool) -> str:
    return "edge critical" if is_critical else "edge"


def _spots_of(layout: Layout) -> list[_Spot]:
    """Return where all cells of a layout stand, the lanes behind the nodes."""
    sizes = [float(_BOX_HEIGHT)] * layout.count
    lanes = sum(map(len, layout.layers)) - layout.count
    sizes += [float(_LANE)] * lanes
    lefts = [0.0] * len(sizes)
    for number, layer in enumerate(layout.layers):
        for cell in layer:
            lefts[cell] = _MARGIN + number * (_BOX_WIDTH + _COLUMN_GAP)
    middles = positions(layout, sizes, _GAP)
    spots: list[_Spot] = []
    for left, middle in zip(lefts, middles, strict=True):
        spots.append(_Spot(left, left + _BOX_WIDTH, middle + _MARGIN))
    return spots


def _hot_links(layout: Layout, critical: Edges) -> Edges:
    """Return the links that critical edges are made of: an edge that skips
    layers goes through lanes.
    """
    _, below = neighbours(layout.links)
    hot: Edges = {}
    for source, node in critical:
        for first in below.get(source, ()):
            links = [(source, first)]
            # Each lane leads to one cell.
            while links[-1][1] >= layout.count:
                lane = links[-1][1]
                links.append((lane, below[lane][0]))
            if links[-1][1] == node:
                hot |= dict.fromkeys(links)
    return hot


def _curve(source: _Spot, node: _Spot) -> str:
    middle = (source.right + node.left) / 2
    start = f"{source.y:.1f}"
    end = f"{node.y:.1f}"
    bend = f"C{middle:g} {start} {middle:g} {end}"
    return f"M{source.right:g} {start}{bend} {node.left:g} {end}"


def _box(name: str, spot: _Spot, content: Content) -> Markup:
    node = content.by_id.get(name)
    call = content.calls.get(name)
    top = spot.y - _BOX_HEIGHT / 2
    left = spot.left + 10
    shape: dict[str, Value] = {"width": _BOX_WIDTH, "height": _BOX_HEIGHT, "rx": 7}
    box = element("rect", x=f"{spot.left:g}", y=f"{top:.1f}", **shape)
    what = cut(_short(name, node), 19)
    first = element("text", what, x=f"{left:g}", y=f"{spot.y - 3:.1f}", class_="name")
    about = cut(_about(node, call), 23)
    second = element("text", about, x=f"{left:g}", y=f"{spot.y + 12:.1f}", class_="about")
    title = element("title", _title(name, node, call))
    return element("g", title, box, first, second, class_=_classes(node, call), data_node=name)


def _classes(node: NodeView | None, call: CallLine | None) -> str:
    status: str = node.status if node is not None else "pending"
    if call is not None and call.critical:
        return f"node {status} critical"
    return f"node {status}"


def _short(name: str, node: NodeView | None) -> str:
    """Return what a box is called: of a call of a program the end of its place."""
    if node is None or not node.call_site:
        return name
    return node.call_site.rpartition("/")[2]


def _about(node: NodeView | None, call: CallLine | None) -> str:
    """Return the second line of a box: how long it took, and what it is."""
    if node is None:
        return ""
    kind: str = node.kind
    if node.kind == "tool" and not node.call_site:
        words = node.summary.removeprefix(node.id).split()
        if words:
            kind = words[0]
    return f"{_time(node, call) or node.status} · {kind}"


def _time(node: NodeView, call: CallLine | None) -> str:
    if call is not None:
        return duration_text(call.ended - call.began)
    return duration_text(node.duration_ms)


def _title(name: str, node: NodeView | None, call: CallLine | None) -> str:
    if node is None:
        return name
    what = node.summary.removeprefix(name).strip()
    parts = (name, node.status, _time(node, call), cut(what, 60))
    return " · ".join(filter(None, parts))


def _dots(flow: _Flow, content: Content) -> Markup:
    layers = layered(levels(flow.after))
    tallest = min(_DOT_ROWS, max(map(len, layers)))
    spots: dict[int, _Spot] = {}
    x = float(_MARGIN)
    for layer in layers:
        rows = min(_DOT_ROWS, len(layer))
        top = _MARGIN + (tallest - rows) * _STEP / 2 + _DOT / 2
        for number, node in enumerate(layer):
            column, row = divmod(number, rows)
            left = x + column * _STEP
            spots[node] = _Spot(left, left + _DOT, top + row * _STEP)
        columns = -(-len(layer) // rows)
        x += columns * _STEP + _LAYER_GAP
    lines = _lines(_edges_of(flow), spots)
    parts = [element("path", d=lines, class_="edge many")]
    lines = _lines(flow.critical, spots)
    parts.append(element("path", d=lines, class_="edge critical"))
    for number, name in enumerate(flow.names):
        parts.append(_dot(name, spots[number], content))
    return _framed(parts, x - _LAYER_GAP + _MARGIN, tallest * _STEP + 2 * _MARGIN)


def _edges_of(flow: _Flow) -> Edges:
    """Return the edges, no more than anybody can see."""
    edges: Edges = {}
    for node, sources in enumerate(flow.after):
        if len(edges) >= _MOST_EDGES:
            break
        for source in sources:
            edges[source, node] = None
    return edges


def _lines(edges: Edges, spots: Mapping[int, _Spot]) -> str:
    lines: list[str] = []
    for source, node in edges:
        start, end = spots[source], spots[node]
        lines.append(f"M{start.right:g} {start.y:g}L{end.left:g} {end.y:g}")
    return "".join(lines)


def _dot(name: str, spot: _Spot, content: Content) -> Markup:
    node = content.by_id.get(name)
    call = content.calls.get(name)
    title = element("title", _title(name, node, call))
    top = spot.y - _DOT / 2
    shape: dict[str, Value] = {"width": _DOT, "height": _DOT, "rx": 2.5}
    kind = _classes(node, call)
    return element(
        "rect", title, x=f"{spot.left:g}", y=f"{top:g}", class_=kind, data_node=name, **shape
    )


def _framed(parts: Sequence[Markup], width: float, height: float) -> Markup:
    wide = f"{width:.0f}"
    high = f"{height:.0f}"
    size: dict[str, Value] = {"viewBox": f"0 0 {wide} {high}", "width": wide, "height": high}
    picture = element("svg", *parts, role="img", aria_label="the graph of the run", **size)
    return element("div", picture, class_="graph", tabindex="0")
