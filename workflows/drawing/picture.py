"""A whole picture: progress and a legend on top, the graph below."""

from collections.abc import Mapping, Sequence

from sennit.workflows.drawing.diagram import Diagram, Mark
from sennit.workflows.drawing.frame import PAGE
from sennit.workflows.drawing.rows import WIDTH, draw_rows, rows_height
from sennit.workflows.drawing.styles import STYLES, BadgePositions, badges
from sennit.workflows.drawing.text import CELL, text_at

UNIT = 0.75
"""Pixels per unit, as long as the picture fits the page."""
_LEGEND_WIDTH = 560
_BAR, _LINE = 8, 26
_FAINT = ("pending", "blocked")
_ATTRIBUTES = (
    "font-family='monospace' fill='currentColor' stroke-linejoin='round' stroke-linecap='round'"
)
_STANDALONE = (
    " xmlns='http://www.w3.org/2000/svg' font-size='16' color='#1f2328'"
    "><style>@media(prefers-color-scheme:dark){svg{color:#f0f3f6}}</style"
)


def picture(
    diagram: Diagram,
    marks: Sequence[Mark],
    *,
    counts: Mapping[str, int] | None = None,
    whole: bool = True,
    standalone: bool = False,
) -> str:
    """Return one `<svg>` element on one line.

    `counts` are the statuses of all units of the run, for the bar and the legend. Without `whole`,
    and for a graph too big to draw node by node, each group or layer is one row. `standalone` makes
    it a file that needs no page around it.
    """
    badge_positions: BadgePositions = {}
    frame = None
    if whole and diagram.layout.whole:
        frame = diagram.frame
    width = WIDTH
    if frame is not None:
        least_width = _LEGEND_WIDTH if counts else 0
        width = max(frame.width + 4, least_width)

    # Progress and legend come first: the graph begins below them.
    head = ""
    top = 3
    if counts:
        head, top = _head(counts, width, badge_positions)
    if frame is not None:
        body = diagram.elements(marks, badge_positions, 2, top)
        body_height = frame.height
    else:
        statuses = [mark.status for mark in marks]
        body = draw_rows(diagram.rows, statuses, top, badge_positions)
        body_height = rows_height(diagram.rows)

    # The badges of all parts are drawn together, each shape once.
    signs = ""
    if diagram.with_badges:
        signs = f"<g pointer-events='none'>{badges(badge_positions)}</g>"
    height = top + body_height + 3
    return _sheet(head + body + signs, width, height, standalone=standalone)


def _sheet(content: str, width: int, height: int, *, standalone: bool) -> str:
    """Return the element. It shrinks with the page and never grows: its height bounds its scale."""
    if standalone:
        size = f"width='{round(width * UNIT)}'"
        attributes = _ATTRIBUTES + _STANDALONE
    else:
        scale = min(UNIT, PAGE * UNIT / width)
        shown = round(height * scale)
        size = f"width='100%' height='{shown}' preserveAspectRatio='xMinYMin'"
        attributes = _ATTRIBUTES
    return f"<svg {size} viewBox='0 0 {width} {height}' {attributes}>{content}</svg>"


def _head(
    counts: Mapping[str, int], width: int, badge_positions: BadgePositions
) -> tuple[str, int]:
    """Return the bar of progress with the counts below, which are the legend, and its height."""
    shown = [status for status in STYLES if counts.get(status)]
    total = sum(counts[status] for status in shown)
    bars: list[str] = []
    texts: list[str] = []
    x = 2
    line = _BAR + 18
    counted = 0
    for status in shown:
        count = counts[status]
        # The part of the bar. Its ends are rounded, so that no part begins before
        # the one before it ends.
        begin = round(width * counted / total)
        counted += count
        end = round(width * counted / total)
        faint = ""
        if status in _FAINT:
            faint = " opacity='.4'"
        colour = STYLES[status].colour
        bars.append(f"<path stroke='{colour}'{faint} d='M{begin} 4h{end - begin}'/>")

        # The entry of the legend, on a new line where this one is full.
        label = f"{count:,} {status}"
        text_width = (len(label) + 2) * CELL
        label_width = 26 + round(text_width)
        is_full = x + label_width > width + 18
        if is_full and x > 2:
            x = 2
            line += _LINE
        badge_positions.setdefault(status, []).append((x + 10, line))
        texts.append(text_at(x + 26, line + 5, label))
        x += label_width
    bar = "".join(bars)
    legend = "".join(texts)
    return f"<g stroke-width='{_BAR}' stroke-linecap='butt'>{bar}</g>{legend}", line + 30
