"""A layout with sizes: the boxes of all cells, in columns from left to right or in rows from top to bottom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from sennit.workflows.drawing.layout import Layout, neighbours, positions
from sennit.workflows.drawing.text import CELL, cells

PAGE = 740
"""The width of the page, in units of the picture."""
SMALL = 0.8
"""The scale of the second line of a box."""
MAX_TWO_LINE_NODES = 16
"""The most nodes whose boxes may have two lines."""
NOTE = 9
"""The room for a note beside a name, in small letters."""
_BOX_STYLES = ((True, 18), (False, 18), (False, 12), (False, 8))
"""Whether boxes have two lines, and how many letters of a name they show, best legible first."""
_READABLE_SCALE = 0.62
BADGE = 34
"""The room for a badge before a name."""
PADDING = 10
"""The room between text and the edge of its box."""
MIN_GRID = 8
"""The fewest nodes that stand in a grid: those of a layer that have all their links in common."""
_GRID_GAP = 8
_GAPS = ((46, 10), (38, 18))
"""Between layers and inside a layer; in columns, in rows."""
_LANE = 6


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, by its upper left corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The boxes of all cells; a lane's box is as long as its layer is deep. With `down` the layers are rows."""

    boxes: list[Box]
    width: int
    height: int
    down: bool
    name_room: int
    two_lines: bool
    edges: Layout
    ends: list[Box]
    """What the links of `edges` lead to: a grid has one for all of its nodes."""
    grids: list[Box]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Nodes that stand for one cell, the first of them; each as wide as `size`."""

    cells: list[int]
    size: int
    columns: int

    @property
    def rows(self) -> int:
        return -(-len(self.cells) // self.columns)

    @property
    def width(self) -> int:
        return self.columns * (self.size + _GRID_GAP) + _GRID_GAP

    def height(self, box: int) -> int:
        return self.rows * (box + _GRID_GAP) + _GRID_GAP


def frame_of(layout: Layout, names: Sequence[str], descriptions: Sequence[str]) -> Frame:
    """Return the most legible frame: names are shortened and layers become rows if the page is too narrow, or for a
    grid of nodes, which then takes the width of the page.

    It depends on the graph and its texts, never on what has run.
    """
    grids = _alike(layout)
    for two_lines, room in _BOX_STYLES:
        if two_lines and layout.count > MAX_TWO_LINE_NODES:
            continue
        texts = zip(names, descriptions, strict=True)
        sizes = [_width(name, description, room, two_lines) for name, description in texts]
        right, down = _width_in_columns(layout, sizes), _width_in_rows(layout, sizes)
        if grids or min(right, down) * (1 if two_lines else _READABLE_SCALE) <= PAGE:  # a second line is small already
            break
    if not grids:
        return _frame(layout, sizes, right > PAGE and down < 0.8 * right, room, two_lines, {})
    return _frame(_with_cells(layout, grids), sizes, True, room, two_lines, _placed(layout, grids, sizes))


def _alike(layout: Layout) -> list[list[int]]:
    """Return the nodes that stand in grids: many of one layer that come after the same, and before the same."""
    above, below = neighbours(layout.links)
    found: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for number, layer in enumerate(layout.layers):
        for cell in layer:
            key = number, tuple(sorted(above.get(cell, ()))), tuple(sorted(below.get(cell, ())))
            if cell < layout.count:
                found.setdefault(key, []).append(cell)
    return [sorted(cells) for cells in found.values() if len(cells) >= MIN_GRID]


def _with_cells(layout: Layout, grids: Sequence[Sequence[int]]) -> Layout:
    """Return the layout with one cell for each grid."""
    inside = {cell: True for cells in grids for cell in cells[1:]}
    layers = [[cell for cell in layer if cell not in inside] for layer in layout.layers]
    links = [(source, node) for source, node in layout.links if source not in inside and node not in inside]
    return Layout(layout.count, layers, links)


def _placed(layout: Layout, grids: Sequence[list[int]], sizes: Sequence[int]) -> dict[int, _Grid]:
    """Return the grids by their first cells, each as wide as the page lets it be beside the others of its layer."""
    placed = {}
    for members in grids:
        layer = next(layer for layer in layout.layers if members[0] in layer)
        others = [sizes[cell] + _GAPS[1][1] for cell in layer if cell < layout.count and cell not in members]
        size = max(sizes[cell] for cell in members)
        room = (PAGE - sum(others) - _GRID_GAP) // (size + _GRID_GAP)
        placed[members[0]] = _Grid(members, size, max(2, min(room, len(members))))
    return placed


def _width(name: str, description: str, room: int, two_lines: bool) -> int:
    shown = min(cells(name), room) * CELL
    if two_lines:
        shown = max(shown + (NOTE + 1) * CELL * SMALL, min(cells(description), 26) * CELL * SMALL)
    return BADGE + ceil(shown) + PADDING


def _width_in_columns(layout: Layout, sizes: Sequence[int]) -> int:
    return sum(_deepest(layer, sizes) + _GAPS[0][0] for layer in layout.layers) - _GAPS[0][0]


def _width_in_rows(layout: Layout, sizes: Sequence[int]) -> int:
    count = layout.count
    return max(
        (sum((sizes[cell] if cell < count else _LANE) + _GAPS[1][1] for cell in layer) for layer in layout.layers),
        default=0,
    )


def _deepest(layer: Sequence[int], sizes: Sequence[int]) -> int:
    return max((sizes[cell] for cell in layer if cell < len(sizes)), default=0)


def _frame(
    layout: Layout, sizes: Sequence[int], down: bool, room: int, two_lines: bool, grids: Mapping[int, _Grid]
) -> Frame:
    height = 50 if two_lines else 30
    between, linked = _GAPS[down]
    total = max((cell for layer in layout.layers for cell in layer), default=-1) + 1
    across = [float(height if cell < layout.count else _LANE) for cell in range(max(total, layout.count))]
    if down:
        across[: layout.count] = map(float, sizes)
        for cell, grid in grids.items():
            across[cell] = float(grid.width)
    middles = positions(layout, across, linked)
    boxes = [Box(0, 0, 0, 0)] * len(across)
    edge = 0
    for layer in layout.layers:
        depth = height if down else _deepest(layer, sizes)
        depth = max([depth, *(grids[cell].height(height) for cell in layer if cell in grids)])
        for cell in layer:
            start, extent = round(middles[cell] - across[cell] / 2), round(across[cell])
            boxes[cell] = Box(start, edge, extent, depth) if down else Box(edge, start, depth, extent)
            if grids and cell < layout.count and cell not in grids:
                boxes[cell] = Box(start, edge + (depth - height) // 2, extent, height)
        edge += depth + between
    width = max((box.x + box.width for box in boxes), default=0)
    below = max((box.y + box.height for box in boxes), default=0)
    ends = list(boxes)
    for cell, grid in grids.items():
        left, top = boxes[cell].x + _GRID_GAP, boxes[cell].y + _GRID_GAP
        for place, member in enumerate(grid.cells):
            row, column = divmod(place, grid.columns)
            x, y = left + column * (grid.size + _GRID_GAP), top + row * (height + _GRID_GAP)
            boxes[member] = Box(x, y, grid.size, height)
    return Frame(boxes, width, below, down, room, two_lines, layout, ends, [ends[cell] for cell in grids])
