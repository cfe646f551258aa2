"""A whole picture: what is done and what the signs mean on top, the graph below."""

from collections.abc import Mapping, Sequence

from workflows.drawing.diagram import Diagram, Mark
from workflows.drawing.frame import PAGE
from workflows.drawing.layers import WIDTH, height_of, strata
from workflows.drawing.styles import LOOKS, Spots, badges
from workflows.drawing.text import CELL, text_at

UNIT = 0.75
"""Pixels a unit, as long as the picture fits the page."""
_LEGEND_LEAST = 560
_BAR, _LINE = 8, 26
_ATTRIBUTES = "font-family='monospace' fill='currentColor' stroke-linejoin='round' stroke-linecap='round'"
_ALONE = (
    " xmlns='http://www.w3.org/2000/svg' font-size='16' color='#1f2328'"
    "><style>@media(prefers-color-scheme:dark){svg{color:#f0f3f6}}</style"
)


def picture(
    sketch: Diagram,
    marks: Sequence[Mark],
    *,
    counts: Mapping[str, int] | None = None,
    whole: bool = True,
    standalone: bool = False,
) -> str:
    """Return one `<svg>` element on one line.

    `counts` are the statuses of everything the run has, for the bar and the legend. Without `whole`, and for a graph
    too big to draw node by node, each layer is one row. `standalone` makes it a file that needs no page around it.
    """
    frame = sketch.frame if whole and sketch.layout.whole else None
    width = max(frame.width + 4, _LEGEND_LEAST if counts else 0) if frame else WIDTH
    spots: Spots = {}
    head, top = _head(counts, width, spots) if counts else ("", 3)
    height = top + (frame.height if frame else height_of(sketch.layout)) + 3
    body = sketch.elements(marks, spots, 2, top) if frame else strata(sketch.layout, sketch.nodes, marks, top, spots)
    signs = f"<g pointer-events='none'>{badges(spots)}</g>" if sketch.with_badges else ""
    return _sheet(head + body + signs, width, height, standalone=standalone)


def _sheet(content: str, width: int, height: int, *, standalone: bool) -> str:
    """Return the element. It is never bigger than life and shrinks with the page: its height bounds its scale."""
    shown = round(height * min(UNIT, PAGE * UNIT / width))
    size = f"width='100%' height='{shown}' preserveAspectRatio='xMinYMin'"
    if standalone:
        size = f"width='{round(width * UNIT)}'"
    return f"<svg {size} viewBox='0 0 {width} {height}' {_ATTRIBUTES}{_ALONE if standalone else ''}>{content}</svg>"


def _head(counts: Mapping[str, int], width: int, spots: Spots) -> tuple[str, int]:
    """Return the bar of progress with the counts below, which explain the badges, and where the rest begins."""
    known = [(status, counts[status]) for status in LOOKS if counts.get(status)]
    total = sum(count for _, count in known)
    bars, texts = [], []
    x, line, edge = 2, _BAR + 18, 0
    for status, count in known:
        begin, end = round(width * edge / total), round(width * (edge + count) / total)
        edge += count
        faint = " opacity='.4'" if status in ("pending", "blocked") else ""
        bars.append(f"<path stroke='{LOOKS[status].colour}'{faint} d='M{begin} 4h{end - begin}'/>")
        told = f"{count:,} {status}"
        needs = 26 + round((len(told) + 2) * CELL)
        if x + needs > width + 20 and x > 2:
            x, line = 2, line + _LINE
        spots.setdefault(status, []).append((x + 10, line))
        texts.append(text_at(x + 26, line + 5, told))
        x += needs
    return f"<g stroke-width='{_BAR}' stroke-linecap='butt'>{''.join(bars)}</g>{''.join(texts)}", line + 30
