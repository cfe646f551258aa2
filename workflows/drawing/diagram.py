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
            if not members:
                continue
            parts.append(_boxes(members, style, animated=status == "running"))
            for _, box in members:
                centre = (box.x + left + BADGE // 2, box.y + top + box.height // 2)
                badge_positions.setdefault(status, []).append(centre)
        parts.append(self._names)
        if self.frame.two_lines:
            parts.append(_notes(marks, boxes))
        return f"<g transform='translate({left} {top})'>{''.join(parts)}</g>"


def _edges(layout: Layout, boxes: Sequence[Box], nodes: Sequence[Node], down: bool) -> str:
    """Return the links with an arrowhead where they reach a node."""
    solid: list[str] = []
    dotted: list[str] = []
    straight = len(layout.links) > MAX_CURVES
    for source, target in layout.links:
        line = _line(boxes[source], boxes[target], down, straight=straight)
        is_dotted = source < layout.count and target in nodes[source].dotted
        if is_dotted:
            dotted.append(line)
        else:
            solid.append(line)

    # Where a long edge crosses a layer, its lane is as long as the layer is deep.
    for layer in layout.layers:
        solid += [_through(boxes[cell], down) for cell in layer if cell >= layout.count]

    # All lines of one kind are one path: the board must stay small.
    paths: list[str] = []
    if solid:
        paths.append(f"<path d='{''.join(solid)}'/>")
    if dotted:
        paths.append(f"<path stroke-dasharray='2 5' d='{''.join(dotted)}'/>")
    if not paths:
        return ""

    # Several links may reach a node: it has one arrowhead.
    reached = dict.fromkeys([target for _, target in layout.links if target < layout.count])
    tips = [_entry(boxes[node], down) for node in reached]
    name, outline = "r", "-8-4v8"
    if down:
        name, outline = "d", "-4-8h8"
    heads = _heads(name, outline, tips)
    return f"<g fill='none' stroke='currentColor' stroke-opacity='.45'>{''.join(paths)}</g>{heads}"


def _heads(name: str, outline: str, tips: Sequence[tuple[int, int]]) -> str:
    return markers(name, "fill='currentColor' fill-opacity='.6'", f"<path d='M0 0l{outline}z'/>", tips)


def _grids(frame: Frame) -> str:
    """Return a line around each grid of nodes, to which their common links lead."""
    if not frame.grids:
        return ""
    lines = [f"<rect x='{box.x}' y='{box.y}' width='{box.width}' height='{box.height}'/>" for box in frame.grids]
    return f"<g fill='none' stroke='currentColor' stroke-opacity='.45'>{''.join(lines)}</g>"


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
    """Return a line from one box to the next. A curve leaves and reaches its boxes in the direction of the layers."""
    x, y = _exit(source, down)
    end_x, end_y = _entry(target, down)
    if straight:
        return f"M{x} {y}L{end_x} {end_y}"
    right, below = end_x - x, end_y - y
    if down:
        half = below // 2
        curve = f"0 {half} {right} {half} {right} {below}"
    else:
        half = right // 2
        curve = f"{half} 0 {half} {below} {right} {below}"
    return f"M{x} {y}c{curve}".replace(" -", "-")


def _boxes(members: Sequence[tuple[Mark, Box]], style: Style, *, animated: bool) -> str:
    """Return the boxes of one status. A box with a title is an element of its own; all others are one path."""
    untitled: list[str] = []
    titled: list[str] = []
    bars: list[str] = []
    for mark, box in members:
        outline = f"M{box.x} {box.y}h{box.width}v{box.height}h-{box.width}z"
        if mark.title:
            titled.append(f"<path d='{outline}'><title>{escaped(mark.title)}</title></path>")
        else:
            untitled.append(outline)
        if mark.share:
            length = round((box.width - 8) * mark.share)
            bars.append(f"M{box.x + 4} {box.y + box.height - 4}h{length}")

    parts: list[str] = []
    if animated:
        parts.append(ANIMATION)
    if untitled:
        parts.append(f"<path d='{''.join(untitled)}'/>")
    drawn = f"<g {style.ink} {style.box}>{''.join(parts + titled)}</g>"
    if bars:
        drawn += f"<path stroke='{style.colour}' stroke-width='4' d='{''.join(bars)}'/>"
    return drawn


def _names(frame: Frame, nodes: Sequence[Node], with_badges: bool) -> str:
    """Return the texts, through which the pointer reaches the boxes below."""
    indent = BADGE if with_badges else PADDING
    baseline = 21 if frame.two_lines else 20
    names: dict[int, list[tuple[int, int, str]]] = {}
    descriptions: list[str] = []
    for node, box in zip(nodes, frame.boxes, strict=False):
        left, base = box.x + indent, box.y + baseline
        shared_coordinate = base if frame.down else left
        name = (left, base, clip_name(node.name, frame.name_room))
        names.setdefault(shared_coordinate, []).append(name)
        if frame.two_lines and node.description:
            room = (box.x + box.width - PADDING - left) / (CELL * SMALL)
            description = clip(node.description, room)
            descriptions.append(text_at(left / SMALL, (base + 19) / SMALL, description))
    layers = [_layer_names(layer, frame.down) for layer in names.values()]
    return f"<g pointer-events='none'>{''.join(layers)}{_small(descriptions)}</g>"


def _notes(marks: Sequence[Mark], boxes: Sequence[Box]) -> str:
    """Return the notes, each at the right end of its box."""
    notes: list[str] = []
    for mark, box in zip(marks, boxes, strict=True):
        if mark.note:
            right, base = (box.x + box.width - PADDING) / SMALL, (box.y + 21) / SMALL
            notes.append(text_at(right, base, clip(mark.note, NOTE), " text-anchor='end'"))
    return _small(notes)


def _small(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    return f"<g transform='scale({SMALL})' fill-opacity='.75'>{''.join(texts)}</g>"


def _layer_names(names: Sequence[tuple[int, int, str]], down: bool) -> str:
    """Return the names of one layer. Many names share the coordinate that they have in common, which saves bytes."""
    if len(names) < 5:
        return "".join([text_at(x, y, name) for x, y, name in names])
    layer_x, layer_y, _ = names[0]
    if down:
        moved = [text_at(x, 0, name) for x, _, name in names]
        shift = f"0 {layer_y}"
    else:
        moved = [text_at(0, y, name) for _, y, name in names]
        shift = f"{layer_x} 0"
    return f"<g transform='translate({shift})'>{''.join(moved)}</g>"
