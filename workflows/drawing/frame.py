"""Where boxes and edges stand in the plane: a layout with sizes, from left to right or from top to bottom."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from workflows.drawing.layout import Layout, places
from workflows.drawing.text import CELL, cells

PAGE = 740
"""The width that is seen at once, in units of the picture."""
SMALL = 0.8
"""How big the second line of a box is, to the first."""
ROOMY = 16
"""Up to so many nodes may have boxes with two lines."""
NOTE = 9
"""How many small letters there are for a note beside a name."""
_STYLES = ((True, 18), (False, 18), (False, 12), (False, 8))
"""Whether boxes have two lines, and how many letters of a name they show; the best to read comes first."""
_READABLE = 0.62
BADGE = 34
"""The room for a badge before a name."""
EDGE = 10
"""The room between text and the edge of its box."""
_GAPS = ((46, 10), (38, 18))
"""Between layers and inside a layer; from left to right, from top to bottom."""
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
    """Boxes of all cells; a lane's box is as long as its layer is deep. `down` tells that layers follow downwards."""

    boxes: list[Box]
    width: int
    height: int
    down: bool
    name_room: int
    two_lines: bool


def frame_of(layout: Layout, names: Sequence[str], whats: Sequence[str]) -> Frame:
    """Return the frame in which most can be read: names are shortened and layers stacked as the page demands.

    It depends on the graph and its texts, never on what has run.
    """
    for two_lines, room in _STYLES:
        if two_lines and layout.count > ROOMY:
            continue
        sizes = [_width(name, what, room, two_lines) for name, what in zip(names, whats, strict=True)]
        right, down = _length(layout, sizes), _breadth(layout, sizes)
        if min(right, down) * (1 if two_lines else _READABLE) <= PAGE:  # a second line is small already
            break
    stacked = right > PAGE and down < 0.8 * right
    return _placed(layout, sizes, stacked, room, two_lines)


def _width(name: str, what: str, room: int, two_lines: bool) -> int:
    shown = min(cells(name), room) * CELL
    if two_lines:
        shown = max(shown + (NOTE + 1) * CELL * SMALL, min(cells(what), 26) * CELL * SMALL)
    return BADGE + ceil(shown) + EDGE


def _length(layout: Layout, sizes: Sequence[int]) -> int:
    """How wide the layers are side by side."""
    return sum(_deepest(layer, sizes) + _GAPS[0][0] for layer in layout.layers) - _GAPS[0][0]


def _breadth(layout: Layout, sizes: Sequence[int]) -> int:
    """How wide the layers are below each other."""
    count = layout.count
    return max(
        (sum((sizes[cell] if cell < count else _LANE) + _GAPS[1][1] for cell in layer) for layer in layout.layers),
        default=0,
    )


def _deepest(layer: Sequence[int], sizes: Sequence[int]) -> int:
    return max((sizes[cell] for cell in layer if cell < len(sizes)), default=0)


def _placed(layout: Layout, sizes: Sequence[int], down: bool, room: int, two_lines: bool) -> Frame:
    height = 50 if two_lines else 30
    between, beside = _GAPS[down]
    total = sum(map(len, layout.layers))
    across = [float(height if cell < layout.count else _LANE) for cell in range(total)]
    if down:
        across[: layout.count] = map(float, sizes)
    middles = places(layout, across, beside)
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
