"""A big graph drawn in rows, with the number of nodes in each status: a row for each group of calls
that a program makes, and for any other graph a row for one layer or several.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from sennit.workflows.drawing.layout import Layout
from sennit.workflows.drawing.styles import STYLES, BadgePositions, markers
from sennit.workflows.drawing.text import CELL, clip, clip_name, text_at

MAX_ROWS = 16
_ROW_HEIGHT = 30
_ROW_DISTANCE = 42
_LABEL_WIDTH = 264
"""The width of the labels, after which the bars begin."""
_LABEL_LETTERS = 23
"""The room of a label; each level of groups takes from it."""
_INDENT_LETTERS = 2
_MAX_DEPTH = 4
_LEAST_PART_WIDTH = 69
"""The least width of a part of a bar; nine statuses fit into a row."""
MAX_NAMED_NODES = 2
URGENT_STATUSES = ("waiting", "failed", "running", "blocked")
WIDTH = _LABEL_WIDTH + _LEAST_PART_WIDTH * 9
Group = tuple[str, ...]
"""What a call of a program belongs to, from the outermost: phases, tasks, and
the call with its line.
"""

_TIMES = "\N{MULTIPLICATION SIGN}"
_ANY_DEPTH = 99


@dataclass(frozen=True, slots=True)
class Detail:
    """How finely calls are grouped: whether call sites keep their lines, whether names that differ
    in a number only stand apart, and how deep groups go.
    """

    lines: bool
    numbers: bool
    depth: int = _ANY_DEPTH


_DETAILS = (
    Detail(lines=True, numbers=True),
    Detail(lines=False, numbers=True),
    Detail(lines=False, numbers=True, depth=3),
    Detail(lines=False, numbers=True, depth=2),
    Detail(lines=False, numbers=True, depth=1),
    Detail(lines=False, numbers=False),
    Detail(lines=False, numbers=False, depth=3),
    Detail(lines=False, numbers=False, depth=2),
    Detail(lines=False, numbers=False, depth=1),
)
"""From fine to coarse. The first that gives at most `MAX_ROWS` rows is taken, or the last."""


@dataclass(frozen=True, slots=True)
class Row:
    """Some nodes. `depth` counts the rows that this row belongs to; `number` is the
    layer's, shown in plain text.
    """

    name: str
    members: list[int]
    depth: int = 0
    number: str = ""


@dataclass(frozen=True, slots=True)
class BarPart:
    """The part of a row's bar that shows how many of its nodes have one status."""

    status: str
    x: int
    width: int
    count: int


def rows_of(layout: Layout, names: Sequence[str], groups: Sequence[Group]) -> list[Row]:
    """Return at most 16 rows. Groups stand in the order in which they began, each
    before those inside it.
    """
    if not any(groups):
        return _layer_rows(layout, names)

    # Nodes of the plan belong to no group: they are shown by their layer, among the groups.
    keys = list(groups)
    for number, layer in enumerate(layout.layers, 1):
        for node in layer:
            is_real = node < layout.count
            if is_real and not groups[node]:
                keys[node] = (f"layer {number}",)
    return rows_by(keys)


def rows_by(keys: Sequence[Group]) -> list[Row]:
    """Return the rows of nodes that all belong to a group."""
    members = _grouped(keys)

    # A group begins with its first call. An outer group begins with the first
    # of all groups inside it.
    first_node: dict[Group, int] = {}
    for group, nodes in members.items():
        for depth in range(1, len(group) + 1):
            first_node.setdefault(group[:depth], nodes[0])

    def beginnings(group: Group) -> list[int]:
        depths = range(1, len(group) + 1)
        return [first_node[group[:depth]] for depth in depths]

    # A group that has a row of its own names only what its outer rows do not say already.
    rows = []
    for group in sorted(members, key=beginnings):
        outer_depths: list[int] = []
        for depth in range(1, len(group)):
            if group[:depth] in members:
                outer_depths.append(depth)
        named_from = 0
        if outer_depths:
            named_from = outer_depths[-1]
        name = "/".join(group[named_from:])
        count = len(members[group])
        if count > 1:
            name = f"{name} {_TIMES}{count:,}"
        row_depth = min(len(outer_depths), _MAX_DEPTH)
        rows.append(Row(name, members[group], row_depth))

    # Even the coarsest groups may be too many: the last row stands for the rest.
    if len(rows) <= MAX_ROWS:
        return rows
    shown = rows[: MAX_ROWS - 1]
    return [*shown, _rest(rows[MAX_ROWS - 1 :])]


def _grouped(keys: Sequence[Group]) -> dict[Group, list[int]]:
    """Return the nodes of each group, by the finest detail that gives few enough rows."""
    members: dict[Group, list[int]] = {}
    for detail in _DETAILS:
        members = {}
        for node, key in enumerate(keys):
            group = _coarser(key, detail)
            members.setdefault(group, []).append(node)
        if len(members) <= MAX_ROWS:
            break
    return members


def _coarser(group: Group, detail: Detail) -> Group:
    parts: list[str] = []
    for part in group[: detail.depth]:
        name = part
        if not detail.lines:
            name = re.sub(r":\d+$", "", name)
        if not detail.numbers:
            name = re.sub(r"\d+", "…", name)
        parts.append(name)
    return tuple(parts)


def _rest(rows: Sequence[Row]) -> Row:
    members = []
    for row in rows:
        members += row.members
    return Row(f"and {len(rows):,} more groups", members)


def _layer_rows(layout: Layout, names: Sequence[str]) -> list[Row]:
    """Return a row for each layer, or for as many neighbouring layers as it takes
    to have at most 16 rows.
    """
    # The layout has invented nodes where an edge passes a layer: they have no
    # name and are not shown.
    layers = []
    for layer in layout.layers:
        nodes = [node for node in layer if node < layout.count]
        layers.append(nodes)

    layers_in_row = ceil(len(layers) / MAX_ROWS)
    rows = []
    for start in range(0, len(layers), layers_in_row):
        row_layers = layers[start : start + layers_in_row]
        members = []
        for layer in row_layers:
            members += layer
        if len(row_layers) == 1:
            number = f"{start + 1}"
            label = f"layer {number}"
        else:
            last = start + len(row_layers)
            number = f"{start + 1}-{last}"
            label = f"layers {number}"
        ends = clip_name(names[members[0]], 9)
        if len(members) > 1:
            last_name = names[members[-1]]
            ends += "…" + clip_name(last_name, 9)
        rows.append(Row(f"{label}: {ends}", members, number=number))
    return rows


def rows_height(rows: Sequence[Row]) -> int:
    """Return the height of the rows."""
    return (len(rows) - 1) * _ROW_DISTANCE + _ROW_HEIGHT


def draw_rows(
    rows: Sequence[Row], statuses: Sequence[str], top: int, badge_positions: BadgePositions
) -> str:
    """Return the rows, moved down by `top`, and add where badges go to `badge_positions`."""
    widest = max(len(row.members) for row in rows)
    texts: list[str] = []
    outlines: list[str] = []
    arrows: list[tuple[int, int]] = []
    outlines_of: dict[str, list[str]] = {}
    for place, row in enumerate(rows):
        y = top + place * _ROW_DISTANCE
        text_y = y + 20

        # The label, in a box that is indented like its group.
        indent = round(row.depth * _INDENT_LETTERS * CELL)
        width = _LABEL_WIDTH - 16 - indent
        outlines.append(f"M{2 + indent} {y}h{width}v{_ROW_HEIGHT}H{2 + indent}z")
        room = _LABEL_LETTERS - row.depth * _INDENT_LETTERS
        label = clip(row.name, room)
        texts.append(text_at(12 + indent, text_y, label))

        # Layers follow each other, so that an arrow leads to each but the first; groups do not.
        if place and row.number:
            arrows.append((_LABEL_WIDTH // 2, y))

        # The bar, a part for each status. All parts of one status are one path: the
        # board must stay small.
        row_statuses = [statuses[node] for node in row.members]
        for part in _bar(row_statuses, widest):
            outline = f"M{part.x} {y}h{part.width}v{_ROW_HEIGHT}h-{part.width}z"
            outlines_of.setdefault(part.status, []).append(outline)
            badge = (part.x + 16, y + _ROW_HEIGHT // 2)
            badge_positions.setdefault(part.status, []).append(badge)
            count = _count_text(part)
            texts.append(text_at(part.x + 30, text_y, count))

    boxes = "".join(outlines)
    drawn = [f"<path fill='none' stroke='currentColor' stroke-opacity='.3' d='{boxes}'/>"]
    if arrows:
        head = "<path d='M0 0l-4-8h8z'/>"
        drawn.append(markers("d", "fill='currentColor' fill-opacity='.6'", head, arrows))
    for status, style in STYLES.items():
        if status in outlines_of:
            bars = "".join(outlines_of[status])
            drawn.append(f"<path {style.ink} {style.box} d='{bars}'/>")
    return "".join(drawn + texts)


def _count_text(part: BarPart) -> str:
    """Return the count exactly if it fits into its part, else in thousands."""
    exact = f"{part.count:,}"
    if 34 + len(exact) * CELL < part.width:
        return exact
    return f"{part.count // 1000}k"


def row_lines(rows: Sequence[Row], names: Sequence[str], statuses: Sequence[str]) -> list[str]:
    """Return the rows as plain text, for pages that show no pictures: the counts, and the first
    nodes of each that need a look.
    """
    lines = []
    for row in rows:
        counts: Counter[str] = Counter()
        for node in row.members:
            counts[statuses[node]] += 1
        parts = []
        for status in STYLES:
            if counts[status]:
                named = _named_nodes(row, status, names, statuses)
                parts.append(f"{counts[status]:,} {status}{named}")
        indent = "  " * row.depth
        label = row.number or row.name
        counted = ", ".join(parts)
        lines.append(f"{indent}{label}: {counted}")
    return lines


def _named_nodes(row: Row, status: str, names: Sequence[str], statuses: Sequence[str]) -> str:
    """Return the first nodes of a status in brackets, "" where nobody needs their names."""
    if status not in URGENT_STATUSES and len(row.members) > MAX_NAMED_NODES:
        return ""
    nodes = [node for node in row.members if statuses[node] == status]
    shown: list[str] = []
    for node in nodes[:MAX_NAMED_NODES]:
        shown.append(clip_name(names[node], 20))
    if len(nodes) > MAX_NAMED_NODES:
        shown.append("…")
    listed = ", ".join(shown)
    return f" ({listed})"


def _bar(statuses: Sequence[str], widest: int) -> Iterator[BarPart]:
    """Yield the parts of a row's bar from left to right. Each is wide enough for its count, and the
    bar of the row with the most nodes takes the whole width.
    """
    counts = Counter(statuses)
    bar_width = (WIDTH - _LABEL_WIDTH) * len(statuses) / widest
    spare = max(0, bar_width - _LEAST_PART_WIDTH * len(counts))
    left = float(_LABEL_WIDTH)
    for status in STYLES:
        count = counts[status]
        if count:
            width = _LEAST_PART_WIDTH + spare * count / len(statuses)
            right = left + width
            # The edges are rounded, not the width, so that no gap between two parts
            # is wider than another.
            x = round(left)
            shown_width = round(right) - x - 6
            yield BarPart(status, x, shown_width, count)
            left = right
