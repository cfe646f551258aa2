"""The graph of a run. Up to some sixty nodes have a box each with its name; more are dots, in columns by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sennit.starter.report.content import Content
from sennit.starter.report.markup import EMPTY, Markup, Value, cut, element
from sennit.workflows.drawing.layout import arrange, layered, levels, neighbours, positions
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


@dataclass(frozen=True, slots=True)
class _Flow:
    """The nodes that are drawn, with the places of those that each comes after."""

    names: Sequence[str]
    after: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a node stands: the middle of its left and of its right edge."""

    left: float
    right: float
    y: float


def graph(content: Content) -> Markup:
    """Return the picture of the graph; nothing if it is not known."""
    lines = content.page.flow
    if not lines:
        return EMPTY
    count = len(lines)
    after = [[place for place in line.after if place < count] for line in lines]
    flow = _Flow([line.node for line in lines], after)
    layout = arrange(flow.after)
    critical = _critical_edges(flow, content)
    if layout.whole:
        return _boxes(flow, content, critical)
    return _dots(flow, content, critical)


def _critical_edges(flow: _Flow, content: Content) -> dict[tuple[int, int], None]:
    """Return the edges between nodes that are both on the critical path, or are containers that it leads through."""
    hot = {call.node.partition("[")[0]: True for call in content.page.calls if call.critical}
    is_hot = [name in hot for name in flow.names]
    is_container = [name not in content.calls for name in flow.names]
    behind = list(is_hot)
    before = list(is_hot)
    order = [node for layer in layered(levels(flow.after)) for node in layer]
    for node in order:
        behind[node] |= is_container[node] and any(behind[source] for source in flow.after[node])
    for node in reversed(order):
        for source in flow.after[node]:
            before[source] |= is_container[source] and before[node]
    marked = [first and second for first, second in zip(behind, before, strict=True)]
    return {(source, node): None for node, after in enumerate(flow.after) if marked[node] for source in after
            if marked[source]}  # fmt: skip


def _is_critical(name: str, content: Content) -> bool:
    call = content.calls.get(name)
    return call is not None and call.critical


def _boxes(flow: _Flow, content: Content, critical: Mapping[tuple[int, int], None]) -> Markup:
    layout = arrange(flow.after)
    cells = sum(map(len, layout.layers))
    sizes = [float(_BOX_HEIGHT)] * layout.count + [float(_LANE)] * (cells - layout.count)
    middles = positions(layout, sizes, _GAP)
    column = {cell: number for number, layer in enumerate(layout.layers) for cell in layer}
    spots = []
    for cell, middle in enumerate(middles):
        left = _MARGIN + column[cell] * (_BOX_WIDTH + _COLUMN_GAP)
        spots.append(_Spot(left, left + _BOX_WIDTH, _MARGIN + middle))
    # An edge that skips layers goes through lanes: it is critical as a whole or not at all.
    hot = _hot_links(layout.links, layout.count, critical)
    parts = []
    for source, node in layout.links:
        kind = "edge critical" if (source, node) in hot else "edge"
        parts.append(element("path", d=_curve(spots[source], spots[node]), class_=kind))
    for cell in range(layout.count, len(spots)):
        kind = "edge critical" if any(cell in link for link in hot) else "edge"
        parts.append(element("path", d=f"M{spots[cell].left} {spots[cell].y:.1f}H{spots[cell].right}", class_=kind))
    parts += [_box(name, spots[number], content) for number, name in enumerate(flow.names)]
    width = _MARGIN * 2 + len(layout.layers) * (_BOX_WIDTH + _COLUMN_GAP) - _COLUMN_GAP
    height = _MARGIN * 2 + max(middle + size / 2 for middle, size in zip(middles, sizes, strict=True))
    return _framed(parts, width, height)


def _hot_links(
    links: Sequence[tuple[int, int]], count: int, critical: Mapping[tuple[int, int], None]
) -> dict[tuple[int, int], None]:
    """Return the links that critical edges are made of."""
    _, below = neighbours(links)
    hot: dict[tuple[int, int], None] = {}
    for source, node in critical:
        # Follow the lanes from the source until they reach the node: each lane leads to one cell.
        for first in below.get(source, ()):
            path, cell = [(source, first)], first
            while cell >= count:
                following = below[cell][0]
                path.append((cell, following))
                cell = following
            if cell == node:
                hot |= dict.fromkeys(path)
    return hot


def _curve(source: _Spot, node: _Spot) -> str:
    middle = (source.right + node.left) / 2
    return f"M{source.right} {source.y:.1f}C{middle} {source.y:.1f} {middle} {node.y:.1f} {node.left} {node.y:.1f}"


def _box(name: str, spot: _Spot, content: Content) -> Markup:
    node, call = content.by_id.get(name), content.calls.get(name)
    status = node.status if node is not None else "pending"
    classes = f"node {status}" + (" critical" if _is_critical(name, content) else "")
    box = element("rect", x=spot.left, y=f"{spot.y - _BOX_HEIGHT / 2:.1f}", width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=7)
    first = element("text", cut(_short(name, node), 19), x=spot.left + 10, y=f"{spot.y - 3:.1f}", class_="name")
    second = element("text", cut(_about(node, call), 23), x=spot.left + 10, y=f"{spot.y + 12:.1f}", class_="about")
    title = element("title", _title(name, node, call))
    return element("g", title, box, first, second, class_=classes, data_node=name)


def _short(name: str, node: NodeView | None) -> str:
    return node.call_site.rpartition("/")[2] if node is not None and node.call_site else name


def _about(node: NodeView | None, call: CallLine | None) -> str:
    """Return the second line of a box: how long it took, and what it is."""
    if node is None:
        return ""
    time = duration_text(_millis(node, call))
    what = node.summary.removeprefix(node.id).strip().partition(" ")[0]
    kind = what.partition("(")[0] if node.kind == "tool" and what else node.kind
    return " · ".join(filter(None, (time or node.status, kind)))


def _millis(node: NodeView, call: CallLine | None) -> int | None:
    return call.ended - call.began if call is not None else node.duration_ms


def _title(name: str, node: NodeView | None, call: CallLine | None) -> str:
    if node is None:
        return name
    parts = [name, node.status, duration_text(_millis(node, call)), cut(node.summary.removeprefix(name).strip(), 60)]
    return " · ".join(filter(None, parts))


def _dots(flow: _Flow, content: Content, critical: Mapping[tuple[int, int], None]) -> Markup:
    layers = layered(levels(flow.after))
    tallest = min(_DOT_ROWS, max(map(len, layers)))
    spots: dict[int, _Spot] = {}
    x = float(_MARGIN)
    for layer in layers:
        rows = min(_DOT_ROWS, len(layer))
        top = _MARGIN + (tallest - rows) * _STEP / 2
        for number, node in enumerate(layer):
            column, row = divmod(number, rows)
            left = x + column * _STEP
            spots[node] = _Spot(left, left + _DOT, top + row * _STEP + _DOT / 2)
        x += -(-len(layer) // rows) * _STEP + _LAYER_GAP
    edges = [(source, node) for node, after in enumerate(flow.after) for source in after if source in spots]
    lines = "".join(_straight(spots[source], spots[node]) for source, node in edges[:_MOST_EDGES])
    marked = "".join(_straight(spots[source], spots[node]) for source, node in critical)
    parts = [element("path", d=lines, class_="edge many"), element("path", d=marked, class_="edge critical")]
    for number, name in enumerate(flow.names):
        parts.append(_dot(name, spots[number], content))
    return _framed(parts, x - _LAYER_GAP + _MARGIN, _MARGIN * 2 + tallest * _STEP)


def _straight(source: _Spot, node: _Spot) -> str:
    return f"M{source.right:g} {source.y:g}L{node.left:g} {node.y:g}"


def _dot(name: str, spot: _Spot, content: Content) -> Markup:
    node, call = content.by_id.get(name), content.calls.get(name)
    status = node.status if node is not None else "pending"
    classes = f"node {status}" + (" critical" if _is_critical(name, content) else "")
    title = element("title", _title(name, node, call))
    shape: dict[str, Value] = {
        "x": f"{spot.left:g}",
        "y": f"{spot.y - _DOT / 2:g}",
        "width": _DOT,
        "height": _DOT,
        "rx": 2.5,
    }
    return element("rect", title, class_=classes, data_node=name, **shape)


def _framed(parts: Sequence[Markup], width: float, height: float) -> Markup:
    picture = element("svg", *parts, viewBox=f"0 0 {width:.0f} {height:.0f}", width=f"{width:.0f}",
                      height=f"{height:.0f}", role="img", aria_label="the graph of the run")  # fmt: skip
    return element("div", picture, class_="graph", tabindex="0")
