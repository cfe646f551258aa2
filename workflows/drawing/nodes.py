"""A graph node by node: boxes, edges, names."""

from collections.abc import Sequence
from dataclasses import dataclass

from workflows.drawing.frame import NOTE, SMALL, Box, Frame
from workflows.drawing.lettering import CELL, clip, clip_name, escaped, text_at
from workflows.drawing.looks import LOOKS, STIRRING, Look, Spots, stamped
from workflows.plan.layout import Layout

CURVED = 40
"""More links than these get a simpler curve, for the bytes it saves."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A node as it is drawn: `note` is a few signs beside its name, `share` how much of it is done, `title` what is
    told when it is pointed at. `dotted` are the nodes to which it leads only by way of exception."""

    name: str
    what: str = ""
    status: str = "planned"
    note: str = ""
    share: float = 0.0
    title: str = ""
    dotted: tuple[int, ...] = ()


def drawn(layout: Layout, frame: Frame, marks: Sequence[Mark], top: int, spots: Spots) -> str:
    """Return the elements of a graph, `top` units down, and note where badges go."""
    boxes = [Box(box.x + 2, box.y + top, box.width, box.height) for box in frame.boxes]
    parts = [_edges(layout, boxes, marks, frame.down)]
    for status, look in LOOKS.items():
        members = [(mark, box) for mark, box in zip(marks, boxes, strict=False) if mark.status == status]
        if members:
            parts.append(_group(members, look, stirring=status == "running"))
            spots.setdefault(status, []).extend((box.x + 17, box.y + box.height // 2) for _, box in members)
    parts.append(_names(frame, marks, boxes))
    return "".join(parts)


def _edges(layout: Layout, boxes: Sequence[Box], marks: Sequence[Mark], down: bool) -> str:
    """Return the links as curves, with an arrow's head where they reach a node."""
    solid: list[str] = []
    dotted: list[str] = []
    terse = len(layout.links) > CURVED
    for source, node in layout.links:
        curve = _curve(boxes[source], boxes[node], down, lane=node >= layout.count, terse=terse)
        exception = source < layout.count and node in marks[source].dotted
        (dotted if exception else solid).append(curve)
    lines = "".join(
        f"<path{dash} d='{''.join(curves)}'/>"
        for curves, dash in ((solid, ""), (dotted, " stroke-dasharray='2 5'"))
        if curves
    )
    if not lines:
        return ""
    ends = [boxes[node] for node in dict.fromkeys(node for _, node in layout.links if node < layout.count)]
    tip = f"<path d='M0 0l{'-4-8h8' if down else '-8-4v8'}z'/>"
    heads = stamped(
        "d" if down else "r", "fill='currentColor' fill-opacity='.6'", tip, [_entry(box, down) for box in ends]
    )
    return f"<g fill='none' stroke='currentColor' stroke-opacity='.45'>{lines}</g>{heads}"


def _entry(box: Box, down: bool) -> tuple[int, int]:
    return (box.x + box.width // 2, box.y) if down else (box.x, box.y + box.height // 2)


def _curve(source: Box, node: Box, down: bool, *, lane: bool, terse: bool) -> str:
    """Return a curve from one box to the next, and on through it if it is a lane."""
    x, y = _entry(source, down)
    x, y = (x, y + source.height) if down else (x + source.width, y)
    end = _entry(node, down)
    across, along = (end[0] - x, end[1] - y) if down else (end[1] - y, end[0] - x)
    half = along // 2
    if down:
        start, bend = f"0 {half} ", f"{across} {half} {across} {along}"
    else:
        start, bend = f"{half} 0 ", f"{half} {across} {along} {across}"
    curve = f"s{bend}" if terse else f"c{start}{bend}"
    path = curve if across else f"v{along}" if down else f"h{along}"
    through = (f"v{node.height}" if down else f"h{node.width}") if lane else ""
    return f"M{x} {y}{path}{through}".replace(" -", "-")


def _group(members: Sequence[tuple[Mark, Box]], look: Look, *, stirring: bool) -> str:
    """Return the boxes of one status. Those with a title are elements of their own."""
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
    moving = STIRRING if stirring else ""
    bar = f"<path stroke='{look.colour}' stroke-width='4' d='{bars}'/>" if bars else ""
    return f"<g {look.ink} {look.box}>{moving}{shared}{titled}</g>{bar}"


def _outline(box: Box) -> str:
    return f"M{box.x} {box.y}h{box.width}v{box.height}h-{box.width}z"


def _names(frame: Frame, marks: Sequence[Mark], boxes: Sequence[Box]) -> str:
    """Return the texts: pointing at one points at the box below it."""
    names, rest = [], []
    for mark, box in zip(marks, boxes, strict=False):
        left = box.x + (32 if LOOKS[mark.status].badge else 12)
        base = box.y + (21 if frame.two_lines else 20)
        names.append(text_at(left, base, clip_name(mark.name, frame.name_room)))
        if frame.two_lines:
            room = (box.x + box.width - 8 - left) / (CELL * SMALL)
            if mark.what:
                rest.append(text_at(left / SMALL, (base + 19) / SMALL, clip(mark.what, room)))
            if mark.note:
                end = (box.x + box.width - 8) / SMALL
                rest.append(text_at(end, base / SMALL, clip(mark.note, NOTE), " text-anchor='end'"))
    small = f"<g transform='scale({SMALL})' fill-opacity='.75'>{''.join(rest)}</g>" if rest else ""
    return f"<g pointer-events='none'>{''.join(names)}{small}</g>"
