"""A big graph drawn layer by layer: a row for one layer or several, with the number of nodes in each status."""

from collections import Counter
from collections.abc import Sequence
from math import ceil

from workflows.drawing.diagram import Mark, Node
from workflows.drawing.layout import Layout
from workflows.drawing.styles import STYLES, BadgePositions, markers
from workflows.drawing.text import CELL, clip, clip_name, text_at

MAX_ROWS = 16
_ROW, _STEP = 30, 42
_LEFT = 264
"""The width of the labels, after which the counts begin."""
_PART = 69
"""The least width of a count; eight statuses fit into a row."""
NAMED = 2
URGENT = ("waiting", "failed", "running", "blocked")
WIDTH = _LEFT + _PART * 8


def rows_height(layout: Layout) -> int:
    """Return the height of the rows."""
    return len(_rows(layout)) * _STEP - (_STEP - _ROW)


def layer_rows(
    layout: Layout, nodes: Sequence[Node], marks: Sequence[Mark], top: int, badge_positions: BadgePositions
) -> str:
    """Return the rows, moved down by `top`, and add where badges go to `badge_positions`."""
    rows = _rows(layout)
    widest = max(len(members) for _, members in rows)
    texts, outlines = [], []
    parts: dict[str, list[str]] = {}
    for number, (name, members) in enumerate(rows):
        y = top + number * _STEP
        outlines.append(f"M2 {y}h{_LEFT - 16}v{_ROW}h-{_LEFT - 16}z")
        texts.append(text_at(12, y + 20, clip(f"{name}: {_names([nodes[node] for node in members])}", 23)))
        for status, x, width, count in _bar([marks[node].status for node in members], widest):
            parts.setdefault(status, []).append(f"M{x} {y}h{width}v{_ROW}h-{width}z")
            badge_positions.setdefault(status, []).append((x + 16, y + _ROW // 2))
            exact = f"{count:,}"
            texts.append(text_at(x + 30, y + 20, exact if 34 + len(exact) * CELL < width else f"{count // 1000}k"))
    boxes = f"<path fill='none' stroke='currentColor' stroke-opacity='.3' d='{''.join(outlines)}'/>"
    tips = [(_LEFT // 2, top + number * _STEP) for number in range(1, len(rows))]
    flow = markers("d", "fill='currentColor' fill-opacity='.6'", "<path d='M0 0l-4-8h8z'/>", tips) if tips else ""
    bars = [
        f"<path {style.ink} {style.box} d='{''.join(parts[status])}'/>"
        for status, style in STYLES.items()
        if status in parts
    ]
    return "".join([boxes, flow, *bars, *texts])


def layer_lines(layout: Layout, nodes: Sequence[Node], statuses: Sequence[str]) -> list[str]:
    """Return the rows as plain text, for pages that show no pictures: the counts, and the first nodes of each that need
    a look.
    """
    lines = []
    for name, members in _rows(layout):
        parts = []
        for status in STYLES:
            those = [nodes[node].name for node in members if statuses[node] == status]
            named = [clip_name(each, 20) for each in those[:NAMED]] if status in URGENT or len(members) <= NAMED else []
            more = ["…"] * (len(those) > len(named))
            parts += [f"{len(those):,} {status}" + f" ({', '.join(named + more)})" * bool(named)] if those else []
        lines.append(f"{name.partition(' ')[2]}: {', '.join(parts)}")
    return lines


def _names(members: Sequence[Node]) -> str:
    """Return what the nodes of a row are: the functions that a program has called there, or the first and last name."""
    functions = Counter(node.one_of for node in members)
    if functions[""] < len(members):
        return ", ".join(function for function, _ in functions.most_common() if function)
    names = [clip_name(node.name, 9) for node in (members[0], members[-1])]
    return "…".join(names[: len(members)])


def _rows(layout: Layout) -> list[tuple[str, list[int]]]:
    """Return the name and the nodes of each row."""
    layers = [[node for node in layer if node < layout.count] for layer in layout.layers]
    run = ceil(len(layers) / MAX_ROWS)
    rows = []
    for start in range(0, len(layers), run):
        some = layers[start : start + run]
        name = f"layer {start + 1}" if len(some) == 1 else f"layers {start + 1}-{start + len(some)}"
        rows.append((name, [node for layer in some for node in layer]))
    return rows


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
