"""A big graph layer by layer: one row a layer, or a run of layers, with its nodes counted by status."""

from collections.abc import Sequence
from math import ceil

from workflows.drawing.diagram import Mark, Node
from workflows.drawing.layout import Layout
from workflows.drawing.styles import LOOKS, Spots, stamped
from workflows.drawing.text import CELL, clip, clip_name, text_at

MOST_ROWS = 16
_ROW, _STEP = 30, 42
_LEFT = 264
"""Where the counts begin."""
_PART = 69
"""The least width of a count: there is room for one of each status."""
WIDTH = _LEFT + _PART * 8


def height_of(layout: Layout) -> int:
    """Return how high the picture is."""
    return len(_rows(layout)) * _STEP - (_STEP - _ROW)


def strata(layout: Layout, nodes: Sequence[Node], marks: Sequence[Mark], top: int, spots: Spots) -> str:
    """Return the elements of the picture, `top` units down, and note where badges go."""
    rows = _rows(layout)
    widest = max(len(members) for _, members in rows)
    texts, outlines = [], []
    parts: dict[str, list[str]] = {}
    for number, (name, members) in enumerate(rows):
        y = top + number * _STEP
        outlines.append(f"M2 {y}h{_LEFT - 16}v{_ROW}h-{_LEFT - 16}z")
        first, last = (clip_name(nodes[node].name, 9) for node in (members[0], members[-1]))
        told = f"{name}: {first}" + (f"…{last}" if len(members) > 1 else "")
        texts.append(text_at(12, y + 20, clip(told, 23)))
        for status, x, width, count in _bar([marks[node].status for node in members], widest):
            parts.setdefault(status, []).append(f"M{x} {y}h{width}v{_ROW}h-{width}z")
            spots.setdefault(status, []).append((x + 16, y + _ROW // 2))
            exact = f"{count:,}"
            texts.append(text_at(x + 30, y + 20, exact if 34 + len(exact) * CELL < width else f"{count // 1000}k"))
    boxes = f"<path fill='none' stroke='currentColor' stroke-opacity='.3' d='{''.join(outlines)}'/>"
    tips = [(_LEFT // 2, top + number * _STEP) for number in range(1, len(rows))]
    flow = stamped("d", "fill='currentColor' fill-opacity='.6'", "<path d='M0 0l-4-8h8z'/>", tips) if tips else ""
    bars = [
        f"<path {look.ink} {look.box} d='{''.join(parts[status])}'/>"
        for status, look in LOOKS.items()
        if status in parts
    ]
    return "".join([boxes, flow, *bars, *texts])


def _rows(layout: Layout) -> list[tuple[str, list[int]]]:
    """Return each row's name and nodes."""
    layers = [[node for node in layer if node < layout.count] for layer in layout.layers]
    run = ceil(len(layers) / MOST_ROWS)
    rows = []
    for start in range(0, len(layers), run):
        some = layers[start : start + run]
        name = f"layer {start + 1}" if len(some) == 1 else f"layers {start + 1}-{start + len(some)}"
        rows.append((name, [node for layer in some for node in layer]))
    return rows


def _bar(statuses: Sequence[str], widest: int) -> list[tuple[str, int, int, int]]:
    """Return (status, x, width, count) of each part of a row's bar; none is too narrow for its count."""
    counts = [(status, statuses.count(status)) for status in LOOKS if status in statuses]
    spare = max(0, (WIDTH - _LEFT) * len(statuses) / widest - _PART * len(counts))
    parts, x = [], float(_LEFT)
    for status, count in counts:
        width = _PART + spare * count / len(statuses)
        parts.append((status, round(x), round(x + width) - round(x) - 6, count))
        x += width
    return parts
