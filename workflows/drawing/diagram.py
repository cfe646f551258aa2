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
_MIN_SHARING_NAMES = 5
_FAINT_LINES = "fill='none' stroke='currentColor' stroke-opacity='.45'"


@dataclass(frozen=True, slots=True)
class Node:
    """What never changes of a node: its name, what it does, the nodes to which a dotted edge leads,
    and the group that it belongs to, if a program has called it.
    """

    name: str
    description: str = ""
    dotted: tuple[int, ...] = ()
    group: Group = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """What changes of a node: `note` stands beside the name, `share` is how much is done,
    `title` is its tooltip.
    """

    status: str
    note: str = ""
    share: float = 0.0
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a node as it is shown, and where it begins."""

    x: int
    y: int
    text: str


class Diagram:
    """The part of a drawing that depends on the graph alone. Made once for each graph:
    it is most of the work.
    """

    def __init__(self, layout: Layout, nodes: Sequence[Node], *, with_badges: bool = True) -> None:
        self.layout = layout
        self.nodes = nodes
        self.with_badges = with_badges
        names = [node.name for node in nodes]
        groups = [node.group for node in nodes]
        self.rows = rows_of(layout, names, groups)
        if layout.whole:
            descriptions = [node.description for node in nodes]
            frame = frame_of(layout, names, descriptions)
            edges = _edges(frame.edges, frame.ends, nodes, frame.down)
            self.frame = frame
            self._edges = edges + _grids(frame)
            self._names = _names(frame, nodes, with_badges)

    def elements(
        self, marks: Sequence[Mark], badge_positions: BadgePositions, left: int, top: int
    ) -> str:
        """Return the elements of the graph, moved by `left` and `top`, and add where badges
        go to `badge_positions`.
        """
        boxes = self.frame.boxes[: len(marks)]
        by_status: dict[str, list[tuple[Mark, Box]]] = {}
        for mark, box in zip(marks, boxes, strict=True):
            by_status.setdefault(mark.status, []).append((mark, box))
            x = box.x + left + BADGE // 2
            y = box.y + top + box.height // 2
            badge_positions.setdefault(mark.status, []).append((x, y))

        # Lines lie below the boxes, and texts above them.
        parts = [self._edges]
        for status, style in STYLES.items():
            if status in by_status:
                parts.append(_boxes(by_status[status], style, animated=status == "running"))
        parts.append(self._names)
        if self.frame.two_lines:
            parts.append(_notes(marks, boxes))
        drawn = "".join(parts)
        return f"<g transform='translate({left} {top})'>{drawn}</g>"


def _edges(layout: Layout, boxes: Sequence[Box], nodes: Sequence[Node], down: bool) -> str:
    """Return the links with an arrowhead where they reach a node."""
    solid: list[str] = []
    dotted: list[str] = []
    # Several links may reach a node: it has one arrowhead.
    tips: dict[int, tuple[int, int]] = {}
    is_straight = len(layout.links) > MAX_CURVES
    for source, target in layout.links:
        line = _line(boxes[source], boxes[target], down, straight=is_straight)
        if source < layout.count and target in nodes[source].dotted:
            dotted.append(line)
        else:
            solid.append(line)
        if target < layout.count:
            tips[target] = _entry(boxes[target], down)

    # Where a long edge crosses a layer, its lane is as long as the layer is deep.
    for layer in layout.layers:
        for cell in layer:
            if cell >= layout.count:
                solid.append(_through(boxes[cell], down))

    # All lines of one kind are one path: the board must stay small.
    paths = ""
    if solid:
        path = "".join(solid)
        paths += f"<path d='{path}'/>"
    if dotted:
        path = "".join(dotted)
        paths += f"<path stroke-dasharray='2 5' d='{path}'/>"
    if not paths:
        return ""
    heads = _heads(list(tips.values()), down)
    return f"<g {_FAINT_LINES}>{paths}</g>{heads}"


def _heads(tips: Sequence[tuple[int, int]], down: bool) -> str:
    """Return an arrowhead at each tip, in the direction of the layers."""
    name = "r"
    outline = "-8-4v8"
    if down:
        name = "d"
        outline = "-4-8h8"
    return markers(
        name, "fill='currentColor' fill-opacity='.6'", f"<path d='M0 0l{outline}z'/>", tips
    )


def _grids(frame: Frame) -> str:
    """Return a line around each grid of nodes, to which their common links lead."""
    if not frame.grids:
        return ""
    lines = ""
    for box in frame.grids:
        lines += f"<rect x='{box.x}' y='{box.y}' width='{box.width}' height='{box.height}'/>"
    return f"<g {_FAINT_LINES}>{lines}</g>"


def _entry(box: Box, down: bool) -> tuple[int, int]:
    """Return where links reach a box."""
    if down:
        return box.x + box.width // 2, box.y
    return box.x, box.y + box.height // 2


def _exit(box: Box, down: bool) -> tuple[int, int]:
    """Return where links leave a box."""
    if down:
        return box.x + box.width // 2, box.y + box.height
    return box.x + box.width, box.y + box.height // 2


def _through(lane: Box, down: bool) -> str:
    x, y = _entry(lane, down)
    if down:
        return f"M{x} {y}v{lane.height}"
    return f"M{x} {y}h{lane.width}"


def _line(source: Box, target: Box, down: bool, *, straight: bool) -> str:
    """Return a line from one box to the next. A curve leaves and reaches its boxes in the
    direction of the layers.
    """
    x, y = _exit(source, down)
    end_x, end_y = _entry(target, down)
    if straight:
        return f"M{x} {y}L{end_x} {end_y}"
    right = end_x - x
    below = end_y - y
    if down:
        half = below // 2
        curve = f"0 {half} {right} {half} {right} {below}"
    else:
        half = right // 2
        curve = f"{half} 0 {half} {below} {right} {below}"
    return f"M{x} {y}c{curve}".replace(" -", "-")


def _boxes(members: Sequence[tuple[Mark, Box]], style: Style, *, animated: bool) -> str:
    """Return the boxes of one status. A box with a title is an element of its own;
    all others are one path.
    """
    untitled = ""
    titled = ""
    bars = ""
    for mark, box in members:
        outline = f"M{box.x} {box.y}h{box.width}v{box.height}h-{box.width}z"
        if mark.title:
            titled += f"<path d='{outline}'><title>{escaped(mark.title)}</title></path>"
        else:
            untitled += outline
        if mark.share:
            length = round((box.width - 8) * mark.share)
            bars += f"M{box.x + 4} {box.y + box.height - 4}h{length}"

    inside = ""
    if animated:
        inside += ANIMATION
    if untitled:
        inside += f"<path d='{untitled}'/>"
    drawn = f"<g {style.ink} {style.box}>{inside}{titled}</g>"
    if bars:
        drawn += f"<path stroke='{style.colour}' stroke-width='4' d='{bars}'/>"
    return drawn


def _names(frame: Frame, nodes: Sequence[Node], with_badges: bool) -> str:
    """Return the texts, through which the pointer reaches the boxes below."""
    indent = BADGE if with_badges else PADDING
    baseline = 21 if frame.two_lines else 20
    layers: dict[int, list[_Name]] = {}
    descriptions: list[str] = []
    for node, box in zip(nodes, frame.boxes, strict=False):
        shown = clip_name(node.name, frame.name_room)
        name = _Name(box.x + indent, box.y + baseline, shown)
        layer = name.y if frame.down else name.x
        layers.setdefault(layer, []).append(name)
        if frame.two_lines and node.description:
            width = box.x + box.width - PADDING - name.x
            description = clip(node.description, width / (CELL * SMALL))
            base = (name.y + 19) / SMALL
            descriptions.append(text_at(name.x / SMALL, base, description))
    texts = ""
    for names in layers.values():
        texts += _layer_names(names, frame.down)
    return f"<g pointer-events='none'>{texts}{_small(descriptions)}</g>"


def _notes(marks: Sequence[Mark], boxes: Sequence[Box]) -> str:
    """Return the notes, each at the right end of its box."""
    notes: list[str] = []
    for mark, box in zip(marks, boxes, strict=True):
        if mark.note:
            right = (box.x + box.width - PADDING) / SMALL
            base = (box.y + 21) / SMALL
            note = clip(mark.note, NOTE)
            notes.append(text_at(right, base, note, " text-anchor='end'"))
    return _small(notes)


def _small(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    inside = "".join(texts)
    return f"<g transform='scale({SMALL})' fill-opacity='.75'>{inside}</g>"


def _layer_names(names: Sequence[_Name], down: bool) -> str:
    """Return the names of one layer. Many names share the coordinate that they have in
    common, which saves bytes.
    """
    texts = ""
    if len(names) < _MIN_SHARING_NAMES:
        for name in names:
            texts += text_at(name.x, name.y, name.text)
        return texts
    if down:
        for name in names:
            texts += text_at(name.x, 0, name.text)
        return f"<g transform='translate(0 {names[0].y})'>{texts}</g>"
    for name in names:
        texts += text_at(0, name.y, name.text)
    return f"<g transform='translate({names[0].x} 0)'>{texts}</g>"
