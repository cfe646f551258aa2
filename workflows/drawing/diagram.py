"""A graph drawn node by node: boxes, edges, names."""

from collections.abc import Sequence
from dataclasses import dataclass

from sennit.workflows.drawing.frame import BADGE, NOTE, PADDING, SMALL, Box, Frame, frame_of
from sennit.workflows.drawing.layout import Layout
from sennit.workflows.drawing.rows import Group, rows_of
from sennit.workflows.drawing.styles import ANIMATION, STYLES, BadgePositions, Style, markers
from sennit.workflows.drawing.text import CELL, clip, clip_name, escaped, text_at

MAX_CURVES = 40
"""More links than these are straight, which saves bytes."""


@dataclass(frozen=True, slots=True)
class Node:
    """What never changes of a node: its name, what it does, the nodes to which a dotted edge leads, and the group that
    it belongs to, if a program has called it.
    """

    name: str
    description: str = ""
    dotted: tuple[int, ...] = ()
    group: Group = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """What changes of a node: `note` stands beside the name, `share` is how much is done, `title` is its tooltip."""

    status: str
    note: str = ""
    share: float = 0.0
    title: str = ""


class Diagram:
    """The part of a drawing that depends on the graph alone. Made once for each graph: it is most of the work."""

    def __init__(self, layout: Layout, nodes: Sequence[Node], *, with_badges: bool = True) -> None:
        self.layout = layout
        self.nodes = nodes
        self.with_badges = with_badges
        self.rows = rows_of(layout, [node.name for node in nodes], [node.group for node in nodes])
        if layout.whole:
            self.frame = frame_of(layout, [node.name for node in nodes], [node.description for node in nodes])
            self._edges = _edges(self.frame.edges, self.frame.ends, nodes, self.frame.down) + _grids(self.frame)
            self._names = _names(self.frame, nodes, with_badges)

    def elements(self, marks: Sequence[Mark], badge_positions: BadgePositions, left: int, top: int) -> str:
        """Return the elements of the graph, moved by `left` and `top`, and add where badges go to `badge_positions`."""
        boxes = self.frame.boxes[: len(marks)]
        parts = [self._edges]
        for status, style in STYLES.items():
            members = [(mark, box) for mark, box in zip(marks, boxes, strict=True) if mark.status == status]
            if members:
                parts.append(_group(members, style, animated=status == "running"))
                centres = [(box.x + left + BADGE // 2, box.y + top + box.height // 2) for _, box in members]
                badge_positions.setdefault(status, []).extend(centres)
        notes = _notes(marks, boxes) if self.frame.two_lines else ""
        return f"<g transform='translate({left} {top})'>{''.join(parts)}{self._names}{notes}</g>"


def _edges(layout: Layout, boxes: Sequence[Box], nodes: Sequence[Node], down: bool) -> str:
    """Return the links with an arrowhead where they reach a node."""
    solid: list[str] = []
    dotted: list[str] = []
    straight = len(layout.links) > MAX_CURVES
    for source, node in layout.links:
        line = _line(boxes[source], boxes[node], down, straight=straight)
        exception = source < layout.count and node in nodes[source].dotted
        (dotted if exception else solid).append(line)
    solid += [_through(boxes[cell], down) for layer in layout.layers for cell in layer if cell >= layout.count]
    lines = "".join(
        f"<path{dash} d='{''.join(paths)}'/>"
        for paths, dash in ((solid, ""), (dotted, " stroke-dasharray='2 5'"))
        if paths
    )
    if not lines:
        return ""
    ends = [boxes[node] for node in dict.fromkeys(node for _, node in layout.links if node < layout.count)]
    tip = f"<path d='M0 0l{'-4-8h8' if down else '-8-4v8'}z'/>"
    heads = markers("d" if down else "r", "fill='currentColor' fill-opacity='.6'", tip, [_entry(e, down) for e in ends])
    return f"<g fill='none' stroke='currentColor' stroke-opacity='.45'>{lines}</g>{heads}"


def _grids(frame: Frame) -> str:
    """Return a line around each grid of nodes, to which their common links lead."""
    lines = [f"<rect x='{box.x}' y='{box.y}' width='{box.width}' height='{box.height}'/>" for box in frame.grids]
    return f"<g fill='none' stroke='currentColor' stroke-opacity='.45'>{''.join(lines)}</g>" if lines else ""


def _entry(box: Box, down: bool) -> tuple[int, int]:
    return (box.x + box.width // 2, box.y) if down else (box.x, box.y + box.height // 2)


def _exit(box: Box, down: bool) -> tuple[int, int]:
    return (box.x + box.width // 2, box.y + box.height) if down else (box.x + box.width, box.y + box.height // 2)


def _through(lane: Box, down: bool) -> str:
    x, y = _entry(lane, down)
    return f"M{x} {y}v{lane.height}" if down else f"M{x} {y}h{lane.width}"


def _line(source: Box, node: Box, down: bool, *, straight: bool) -> str:
    """Return a line from one box to the next."""
    (x, y), end = _exit(source, down), _entry(node, down)
    if straight:
        return f"M{x} {y}L{end[0]} {end[1]}"
    across, along = (end[0] - x, end[1] - y) if down else (end[1] - y, end[0] - x)
    half = along // 2
    if down:
        start, bend = f"0 {half} ", f"{across} {half} {across} {along}"
    else:
        start, bend = f"{half} 0 ", f"{half} {across} {along} {across}"
    return f"M{x} {y}c{start}{bend}".replace(" -", "-")


def _group(members: Sequence[tuple[Mark, Box]], style: Style, *, animated: bool) -> str:
    """Return the boxes of one status. A box with a title is an element of its own."""
    common = "".join(_outline(box) for mark, box in members if not mark.title)
    titled = "".join(
        f"<path d='{_outline(box)}'><title>{escaped(mark.title)}</title></path>" for mark, box in members if mark.title
    )
    bars = "".join(
        f"M{box.x + 4} {box.y + box.height - 4}h{round((box.width - 8) * mark.share)}"
        for mark, box in members
        if mark.share
    )
    shared = f"<path d='{common}'/>" if common else ""
    moving = ANIMATION if animated else ""
    bar = f"<path stroke='{style.colour}' stroke-width='4' d='{bars}'/>" if bars else ""
    return f"<g {style.ink} {style.box}>{moving}{shared}{titled}</g>{bar}"


def _outline(box: Box) -> str:
    return f"M{box.x} {box.y}h{box.width}v{box.height}h-{box.width}z"


def _names(frame: Frame, nodes: Sequence[Node], with_badges: bool) -> str:
    """Return the texts, through which the pointer reaches the boxes below."""
    names: dict[int, list[tuple[int, int, str]]] = {}
    descriptions = []
    for node, box in zip(nodes, frame.boxes, strict=False):
        left, base = box.x + (BADGE if with_badges else PADDING), box.y + (21 if frame.two_lines else 20)
        names.setdefault(base if frame.down else left, []).append((left, base, clip_name(node.name, frame.name_room)))
        if frame.two_lines and node.description:
            room = (box.x + box.width - PADDING - left) / (CELL * SMALL)
            descriptions.append(text_at(left / SMALL, (base + 19) / SMALL, clip(node.description, room)))
    rows = "".join(_row(row, frame.down) for row in names.values())
    return f"<g pointer-events='none'>{rows}{_small(descriptions)}</g>"


def _notes(marks: Sequence[Mark], boxes: Sequence[Box]) -> str:
    return _small(
        [
            text_at(
                (box.x + box.width - PADDING) / SMALL, (box.y + 21) / SMALL, clip(mark.note, NOTE), " text-anchor='end'"
            )
            for mark, box in zip(marks, boxes, strict=True)
            if mark.note
        ]
    )


def _small(texts: Sequence[str]) -> str:
    return f"<g transform='scale({SMALL})' fill-opacity='.75'>{''.join(texts)}</g>" if texts else ""


def _row(names: Sequence[tuple[int, int, str]], down: bool) -> str:
    """Return the names of one layer; many names share the coordinate they have in common."""
    if len(names) < 5:
        return "".join(text_at(*name) for name in names)
    moved = "".join(text_at(x if down else 0, 0 if down else y, name) for x, y, name in names)
    x, y, _ = names[0]
    return f"<g transform='translate({0 if down else x} {y if down else 0})'>{moved}</g>"
