"""A layout with sizes: the boxes of all cells, in columns from left to right or in rows from top to bottom."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from workflows.drawing.layout import Layout, positions
from workflows.drawing.text import CELL, cells

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


def frame_of(layout: Layout, names: Sequence[str], descriptions: Sequence[str]) -> Frame:
    """Return the most legible frame: names are shortened and layers become rows if the page is too narrow.

    It depends on the graph and its texts, never on what has run.
    """
    for two_lines, room in _BOX_STYLES:
        if two_lines and layout.count > MAX_TWO_LINE_NODES:
            continue
        texts = zip(names, descriptions, strict=True)
        sizes = [_width(name, description, room, two_lines) for name, description in texts]
        right, down = _width_in_columns(layout, sizes), _width_in_rows(layout, sizes)
        if min(right, down) * (1 if two_lines else _READABLE_SCALE) <= PAGE:  # a second line is small already
            break
    stacked = right > PAGE and down < 0.8 * right
    return _frame(layout, sizes, stacked, room, two_lines)


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


def _frame(layout: Layout, sizes: Sequence[int], down: bool, room: int, two_lines: bool) -> Frame:
    height = 50 if two_lines else 30
    between, linked = _GAPS[down]
    total = sum(map(len, layout.layers))
    across = [float(height if cell < layout.count else _LANE) for cell in range(total)]
    if down:
        across[: layout.count] = map(float, sizes)
    middles = positions(layout, across, linked)
    boxes = [Box(0, 0, 0, 0)] * total
    edge = 0
    for layer in layout.layers:
        depth = height if down else _deepest(layer, sizes)
        for cell in layer:
            start, extent = round(middles[cell] - across[cell] / 2), round(across[cell])
            boxes[cell] = Box(start, edge, extent, depth) if down else Box(edge, start, depth, extent)
        edge += depth + between
    width = max((box.x + box.width for box in boxes), default=0)
    return Frame(boxes, width, max((box.y + box.height for box in boxes), default=0), down, room, two_lines)
