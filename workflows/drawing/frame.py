"""A layout with sizes: the boxes of all cells, in columns from left to right or in
rows from top to bottom.
"""

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
    """The boxes of all cells; a lane's box is as long as its layer is deep. With
    `down` the layers are rows.
    """

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

    def box(self, place: int, around: Box, height: int) -> Box:
        """Return the box of one of the nodes, given that of the grid."""
        row, column = divmod(place, self.columns)
        x = around.x + _GRID_GAP + column * (self.size + _GRID_GAP)
        y = around.y + _GRID_GAP + row * (height + _GRID_GAP)
        return Box(x, y, self.size, height)


def frame_of(layout: Layout, names: Sequence[str], descriptions: Sequence[str]) -> Frame:
    """Return the most legible frame: names are shortened and layers become rows if the page is too
    narrow, or for a grid of nodes, which then takes the width of the page.

    It depends on the graph and its texts, never on what has run.
    """
    grids = _alike(layout)
    for two_lines, room in _BOX_STYLES:
        if two_lines and layout.count > MAX_TWO_LINE_NODES:
            continue
        sizes = []
        for name, description in zip(names, descriptions, strict=True):
            sizes.append(_width(name, description, room, two_lines))
        in_columns = _width_in_columns(layout, sizes)
        in_rows = _width_in_rows(layout, sizes)
        # A second line is small already: boxes with one may not shrink.
        scale = _READABLE_SCALE
        if two_lines:
            scale = 1.0
        if grids or min(in_columns, in_rows) * scale <= PAGE:
            break
    if grids:
        placed = _placed(layout, grids, sizes)
        return _frame(_with_cells(layout, grids), sizes, True, room, two_lines, placed)
    down = in_columns > PAGE and in_rows < 0.8 * in_columns
    return _frame(layout, sizes, down, room, two_lines, {})


def _alike(layout: Layout) -> list[list[int]]:
    """Return the nodes that stand in grids: many of one layer that come after the
    same, and before the same.
    """
    above, below = neighbours(layout.links)
    alike: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for number, layer in enumerate(layout.layers):
        for cell in layer:
            if cell < layout.count:
                sources = tuple(sorted(above.get(cell, ())))
                targets = tuple(sorted(below.get(cell, ())))
                alike.setdefault((number, sources, targets), []).append(cell)

    grids: list[list[int]] = []
    for members in alike.values():
        if len(members) >= MIN_GRID:
            grids.append(sorted(members))
    return grids


def _with_cells(layout: Layout, grids: Sequence[Sequence[int]]) -> Layout:
    """Return the layout with one cell for each grid."""
    inside: dict[int, bool] = {}
    for cells_of_grid in grids:
        inside |= dict.fromkeys(cells_of_grid[1:], True)
    layers: list[list[int]] = []
    for layer in layout.layers:
        kept = [cell for cell in layer if cell not in inside]
        layers.append(kept)
    links: list[tuple[int, int]] = []
    for source, target in layout.links:
        if source not in inside and target not in inside:
            links.append((source, target))
    return Layout(layout.count, layers, links)


def _placed(layout: Layout, grids: Sequence[list[int]], sizes: Sequence[int]) -> dict[int, _Grid]:
    """Return the grids by their first cells, each as wide as the page lets it be beside
    the others of its layer.
    """
    layer_of: dict[int, list[int]] = {}
    for layer in layout.layers:
        layer_of |= dict.fromkeys(layer, layer)
    placed = {}
    for members in grids:
        room = PAGE - _GRID_GAP
        for cell in layer_of[members[0]]:
            if cell < layout.count and cell not in members:
                room -= sizes[cell] + _GAPS[1][1]
        size = max(sizes[cell] for cell in members)
        columns = min(room // (size + _GRID_GAP), len(members))
        grid = _Grid(members, size, max(2, columns))
        placed[members[0]] = grid
    return placed


def _width(name: str, description: str, room: int, two_lines: bool) -> int:
    shown = min(cells(name), room) * CELL
    if two_lines:
        with_note = shown + (NOTE + 1) * CELL * SMALL
        second_line = min(cells(description), 26) * CELL * SMALL
        shown = max(with_note, second_line)
    return BADGE + ceil(shown) + PADDING


def _width_in_columns(layout: Layout, sizes: Sequence[int]) -> int:
    between = _GAPS[0][0]
    width = -between
    for layer in layout.layers:
        width += _deepest(layer, sizes) + between
    return width


def _width_in_rows(layout: Layout, sizes: Sequence[int]) -> int:
    gap = _GAPS[1][1]
    widest = 0
    for layer in layout.layers:
        width = 0
        for cell in layer:
            extent = _LANE
            if cell < layout.count:
                extent = sizes[cell]
            width += extent + gap
        widest = max(widest, width)
    return widest


def _deepest(layer: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the size of the largest node of a layer; lanes have none."""
    deepest = 0
    for cell in layer:
        if cell < len(sizes):
            deepest = max(deepest, sizes[cell])
    return deepest


def _frame(
    layout: Layout,
    sizes: Sequence[int],
    down: bool,
    room: int,
    two_lines: bool,
    grids: Mapping[int, _Grid],
) -> Frame:
    height = 50 if two_lines else 30
    between, gap = _GAPS[down]

    # Layer by layer, the boxes of its cells.
    across = _extents(layout, sizes, down, height, grids)
    middles = positions(layout, across, gap)
    boxes = [Box(0, 0, 0, 0)] * len(across)
    edge = 0
    right = 0
    bottom = 0
    for layer in layout.layers:
        depth = height
        if not down:
            depth = _deepest(layer, sizes)
        for cell in layer:
            if cell in grids:
                depth = max(depth, grids[cell].height(height))
        for cell in layer:
            start = round(middles[cell] - across[cell] / 2)
            extent = round(across[cell])
            is_beside_grid = bool(grids) and cell < layout.count and cell not in grids
            if is_beside_grid:
                centred = edge + (depth - height) // 2
                box = Box(start, centred, extent, height)
            elif down:
                box = Box(start, edge, extent, depth)
            else:
                box = Box(edge, start, depth, extent)
            boxes[cell] = box
            right = max(right, box.x + box.width)
            bottom = max(bottom, box.y + box.height)
        edge += depth + between

    # Links lead to the whole grid, so its box is kept before its nodes get theirs.
    ends = list(boxes)
    for cell, grid in grids.items():
        for place, member in enumerate(grid.cells):
            boxes[member] = grid.box(place, ends[cell], height)
    grid_boxes = [ends[cell] for cell in grids]
    return Frame(boxes, right, bottom, down, room, two_lines, layout, ends, grid_boxes)


def _extents(
    layout: Layout, sizes: Sequence[int], down: bool, height: int, grids: Mapping[int, _Grid]
) -> list[float]:
    """Return how much room each cell takes across its layer: a node its box, a lane a line, a
    grid all of its nodes.
    """
    last_cell = layout.count - 1
    for layer in layout.layers:
        last_cell = max(last_cell, max(layer, default=-1))
    extents = [float(_LANE)] * (last_cell + 1)
    for node in range(layout.count):
        if down:
            extents[node] = float(sizes[node])
        else:
            extents[node] = float(height)
    for cell, grid in grids.items():
        extents[cell] = float(grid.width)
    return extents
