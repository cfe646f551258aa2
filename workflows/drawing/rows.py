"""A big graph drawn in rows, with the number of nodes in each status: a row for each group of calls that a program
makes, and for any other graph a row for one layer or several.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from sennit.workflows.drawing.layout import Layout
from sennit.workflows.drawing.styles import STYLES, BadgePositions, markers
from sennit.workflows.drawing.text import CELL, clip, clip_name, text_at

MAX_ROWS = 16
_ROW, _STEP = 30, 42
_LEFT = 264
"""The width of the labels, after which the counts begin."""
_LETTERS = 23
"""The room of a label; each level of groups takes from it."""
_INDENT, _MAX_DEPTH = 2, 4
_PART = 69
"""The least width of a count; nine statuses fit into a row."""
NAMED = 2
URGENT = ("waiting", "failed", "running", "blocked")
WIDTH = _LEFT + _PART * 9
Group = tuple[str, ...]
"""What a call of a program belongs to, from the outermost: phases, tasks, and the call with its line."""

_TIMES = "\N{MULTIPLICATION SIGN}"
_WHOLE = 99
_DETAILS = (
    *((True, True, _WHOLE), (False, True, _WHOLE), (False, True, 3), (False, True, 2), (False, True, 1)),
    *((False, False, _WHOLE), (False, False, 3), (False, False, 2), (False, False, 1)),
)
"""Whether groups have their lines, and phases that differ in a number only stand apart, and how deep groups go. The
first of these that gives few enough rows is taken, or the last.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Some nodes; `depth` is how many rows it belongs to. `number` stands for the name of a layer in a text."""

    name: str
    members: list[int]
    depth: int = 0
    number: str = ""


def rows_of(layout: Layout, names: Sequence[str], groups: Sequence[Group]) -> list[Row]:
    """Return at most 16 rows. Groups stand in the order in which they began, each before those inside it."""
    if not any(groups):
        return _layers(layout, names)
    keys = list(groups)
    for number, layer in enumerate(layout.layers, 1):
        for node in layer:
            if node < layout.count and not groups[node]:
                keys[node] = (f"layer {number}",)
    return rows_by(keys)


def rows_by(keys: Sequence[Group]) -> list[Row]:
    """Return the rows of nodes that all belong to a group."""
    found: dict[Group, list[int]] = {}
    for detail in _DETAILS:
        found = {}
        for node, key in enumerate(keys):
            found.setdefault(_coarser(key, *detail), []).append(node)
        if len(found) <= MAX_ROWS:
            break
    began: dict[Group, int] = {}
    for group, members in found.items():
        for depth in range(1, len(group) + 1):
            began.setdefault(group[:depth], members[0])
    rows = []
    for group in sorted(found, key=lambda group: [began[group[: depth + 1]] for depth in range(len(group))]):
        outer = [depth for depth in range(1, len(group)) if group[:depth] in found]
        name, count = "/".join(group[outer[-1] if outer else 0 :]), len(found[group])
        rows.append(Row(f"{name} {_TIMES}{count:,}" if count > 1 else name, found[group], min(len(outer), _MAX_DEPTH)))
    return rows if len(rows) <= MAX_ROWS else [*rows[: MAX_ROWS - 1], _rest(rows[MAX_ROWS - 1 :])]


def _coarser(group: Group, with_lines: bool, with_numbers: bool, depth: int) -> Group:
    if not with_lines:
        group = tuple(re.sub(r":\d+$", "", part) for part in group)
    return (group if with_numbers else tuple(re.sub(r"\d+", "…", part) for part in group))[:depth]


def _rest(rows: Sequence[Row]) -> Row:
    return Row(f"and {len(rows):,} more groups", [node for row in rows for node in row.members])


def _layers(layout: Layout, names: Sequence[str]) -> list[Row]:
    layers = [[node for node in layer if node < layout.count] for layer in layout.layers]
    run = ceil(len(layers) / MAX_ROWS)
    rows = []
    for start in range(0, len(layers), run):
        some = layers[start : start + run]
        number = f"{start + 1}" if len(some) == 1 else f"{start + 1}-{start + len(some)}"
        members = [node for layer in some for node in layer]
        ends = "…".join([clip_name(names[node], 9) for node in (members[0], members[-1])][: len(members)])
        rows.append(Row(f"layer{'s' * (len(some) > 1)} {number}: {ends}", members, number=number))
    return rows


def rows_height(rows: Sequence[Row]) -> int:
    """Return the height of the rows."""
    return len(rows) * _STEP - (_STEP - _ROW)


def draw_rows(rows: Sequence[Row], statuses: Sequence[str], top: int, badge_positions: BadgePositions) -> str:
    """Return the rows, moved down by `top`, and add where badges go to `badge_positions`."""
    widest = max(len(row.members) for row in rows)
    texts, outlines = [], []
    parts: dict[str, list[str]] = {}
    for number, row in enumerate(rows):
        y, indent = top + number * _STEP, round(row.depth * _INDENT * CELL)
        outlines.append(f"M{2 + indent} {y}h{_LEFT - 16 - indent}v{_ROW}H{2 + indent}z")
        texts.append(text_at(12 + indent, y + 20, clip(row.name, _LETTERS - row.depth * _INDENT)))
        for status, x, width, count in _bar([statuses[node] for node in row.members], widest):
            parts.setdefault(status, []).append(f"M{x} {y}h{width}v{_ROW}h-{width}z")
            badge_positions.setdefault(status, []).append((x + 16, y + _ROW // 2))
            exact = f"{count:,}"
            texts.append(text_at(x + 30, y + 20, exact if 34 + len(exact) * CELL < width else f"{count // 1000}k"))
    boxes = f"<path fill='none' stroke='currentColor' stroke-opacity='.3' d='{''.join(outlines)}'/>"
    tips = [(_LEFT // 2, top + number * _STEP) for number, row in enumerate(rows) if number and row.number]
    flow = markers("d", "fill='currentColor' fill-opacity='.6'", "<path d='M0 0l-4-8h8z'/>", tips) if tips else ""
    bars = [
        f"<path {style.ink} {style.box} d='{''.join(parts[status])}'/>"
        for status, style in STYLES.items()
        if status in parts
    ]
    return "".join([boxes, flow, *bars, *texts])


def row_lines(rows: Sequence[Row], names: Sequence[str], statuses: Sequence[str]) -> list[str]:
    """Return the rows as plain text, for pages that show no pictures: the counts, and the first nodes of each that need
    a look.
    """
    lines = []
    for row in rows:
        counts = Counter(statuses[node] for node in row.members)
        parts = []
        for status in filter(counts.__getitem__, STYLES):
            is_named = status in URGENT or len(row.members) <= NAMED
            those = (names[node] for node in row.members if is_named and statuses[node] == status)
            named = [clip_name(name, 20) for name, _ in zip(those, range(NAMED), strict=False)]
            more = ["…"] * (counts[status] > len(named))
            parts.append(f"{counts[status]:,} {status}" + f" ({', '.join(named + more)})" * bool(named))
        lines.append(f"{'  ' * row.depth}{row.number or row.name}: {', '.join(parts)}")
    return lines


def _bar(statuses: Sequence[str], widest: int) -> list[tuple[str, int, int, int]]:
    """Return (status, x, width, count) of each part of a row's bar; each is wide enough for its count."""
    counts = [(status, statuses.count(status)) for status in STYLES if status in statuses]
    spare = max(0, (WIDTH - _LEFT) * len(statuses) / widest - _PART * len(counts))
    parts, x = [], float(_LEFT)
    for status, count in counts:
        width = _PART + spare * count / len(statuses)
        parts.append((status, round(x), round(x + width) - round(x) - 6, count))
        x += width
    return parts
