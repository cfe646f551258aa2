"""When each call ran: a bar each, in lanes by task queue, with the critical path in a lane of its own on top.

Positions are percentages of the width, so that bars follow the page, and its script can stretch it. All of a bar is
attributes of SVG: the page forbids styles of single elements.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sennit.starter.report.markup import EMPTY, Markup, cut, element, joined
from sennit.workflows.messages.figures import CallLine
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.language.limits import duration_text

_ROOMY, _CROWDED = 24, 120
"""Up to so many rows in all, bars have room for a name; from so many on they are lines."""
_HEIGHTS = (20, 9, 4)
_MOST_ROWS = 400
"""Rows of one lane; what is wider shares its rows."""
_NAMED = 400
"""Bars that may have a name in them: each is a picture in the picture, which cuts the name."""
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
          600_000, 1_800_000, 3_600_000, 10_800_000, 43_200_000, 86_400_000)  # fmt: skip
_TICKS = 8


@dataclass(frozen=True, slots=True)
class Scale:
    """From a time to a place: the whole width lasts from `begin` to `end`, in milliseconds."""

    begin: int
    end: int

    @property
    def millis(self) -> int:
        return max(1, self.end - self.begin)

    def at(self, millis: int) -> str:
        """Return where a time is, in percent of the width."""
        return f"{100 * (millis - self.begin) / self.millis:.3f}%"

    def wide(self, millis: int) -> str:
        """Return how wide a length of time is."""
        return f"{100 * max(0, millis) / self.millis:.3f}%"


def scale_of(calls: Iterable[CallLine]) -> Scale:
    """Return the scale on which all of these calls fit."""
    found = list(calls)
    begin = min((call.began for call in found), default=0)
    end = max((call.ended for call in found), default=begin + 1)
    return Scale(begin, end + (end - begin) // 100)  # room for the edge of the last bar


def gantt(calls: Sequence[CallLine], nodes: dict[str, NodeView], scale: Scale) -> Markup:
    """Return the picture of these calls; nothing if there are none."""
    if not calls:
        return EMPTY
    lanes = _lanes(calls)
    rows = sum(len(lane) for lane in lanes.values())
    height = _HEIGHTS[(rows > _ROOMY) + (rows > _CROWDED)]
    is_named = len(calls) <= _NAMED and height == _HEIGHTS[0]
    parts = [_width_of(calls, scale)]
    path = sorted((call for call in calls if call.critical), key=lambda call: call.began)
    parts.append(_lane("critical path", [path], nodes, scale, 22, is_named=len(path) <= _NAMED))
    for queue, lane in lanes.items():
        parts.append(_lane(_queue_name(queue), lane, nodes, scale, height, is_named=is_named))
    axis = _axis(scale)
    return element("div", element("div", axis, *parts, class_="plot"), class_="gantt", tabindex="0")


def _queue_name(queue: str) -> str:
    """Return a task queue as people know it: `tools`, `llm openai`, or that calls are sub-agents."""
    return queue.removeprefix("sennit.").replace(".", " ") or "sub-agents"


def _lanes(calls: Sequence[CallLine]) -> dict[str, list[list[CallLine]]]:
    """Return for each queue its calls in rows, in which no two overlap as long as there is room for more rows."""
    lanes: dict[str, list[list[CallLine]]] = {}
    free: dict[str, list[int]] = {}
    for call in sorted(calls, key=lambda call: (call.queue, call.began, call.ended)):
        queue = call.queue if call.kind == "call" else ""
        rows, ends = lanes.setdefault(queue, []), free.setdefault(queue, [])
        row = next((number for number, end in enumerate(ends) if end <= call.began), None)
        if row is None and len(rows) < _MOST_ROWS:
            rows.append([])
            ends.append(0)
            row = len(rows) - 1
        elif row is None:
            row = min(range(len(ends)), key=ends.__getitem__)
        rows[row].append(call)
        ends[row] = max(ends[row], call.ended)
    return lanes


def _lane(
    name: str,
    rows: Sequence[Sequence[CallLine]],
    nodes: dict[str, NodeView],
    scale: Scale,
    height: int,
    *,
    is_named: bool,
) -> Markup:
    bars = []
    for number, row in enumerate(rows):
        bars += [_bar(call, nodes.get(call.node), scale, number * height, height, is_named=is_named) for call in row]
    picture = element("svg", *bars, width="100%", height=max(1, len(rows)) * height, role="img", aria_label=name)
    busy = duration_text(sum(call.ended - call.began for row in rows for call in row))
    count = sum(map(len, rows))
    about = element("small", f"{count:,} · {busy}")
    head = element("div", element("b", name), about, class_="lane-name")
    kind = "lane path" if name == "critical path" else "lane"
    return element("div", head, picture, class_=kind)


def _bar(call: CallLine, node: NodeView | None, scale: Scale, y: int, height: int, *, is_named: bool) -> Markup:
    title = element("title", _title(call, node))
    classes = ["bar", _kind(call, node)]
    if call.critical:
        classes.append("critical")
    gap = 2 if height > 6 else 0.5
    size = {"x": scale.at(call.began), "width": scale.wide(call.ended - call.began)}
    shape = {"y": y + gap / 2, "height": height - gap, "rx": 2 if height > 6 else 0, "class_": " ".join(classes)}
    box = element("rect", title, data_node=call.node, **size, **shape)
    if not is_named or (call.ended - call.began) * 60 < scale.millis:
        return box
    text = element("text", call.node, x=5, y=height / 2 + 3.8, class_=f"on {_kind(call, node)}")
    return joined(box, element("svg", text, y=y, height=height, class_="cut", **size))


def _kind(call: CallLine, node: NodeView | None) -> str:
    """Return how a bar looks: by how the call ended, or else by what it is."""
    if node is not None and node.status in ("failed", "handled", "cancelled", "running"):
        return node.status
    if call.kind == "subagent":
        return "subagent"
    return "model" if (node is not None and node.kind == "llm") or ".llm." in call.queue else "tool"


def _title(call: CallLine, node: NodeView | None) -> str:
    parts = [call.node, duration_text(call.ended - call.began)]
    if node is not None:
        parts += [node.status, cut(node.summary.removeprefix(call.node).strip(), 60)]
    if call.retries:
        parts.append(f"{call.retries} retried")
    if call.critical:
        parts.append("on the critical path")
    return " · ".join(filter(None, parts))


def _axis(scale: Scale) -> Markup:
    step = next((step for step in _STEPS if scale.millis / step <= _TICKS), _STEPS[-1])
    marks = []
    for at in range(0, scale.millis + 1, step):
        x = scale.at(scale.begin + at)
        marks.append(element("line", x1=x, x2=x, y1=0, y2="100%"))
        if at + step * 0.7 <= scale.millis:
            marks.append(element("text", _tick(at), x=x, dx=4, y=11))
    return element("svg", *marks, class_="axis", width="100%", aria_hidden="true")


def _tick(millis: int) -> str:
    """Return a time on the axis, as short as it is exact."""
    if millis == 0:
        return "0"
    if millis % 1000 and millis < 10_000:
        return f"{millis} ms" if millis < 1000 else f"{millis / 1000:g} s"
    if millis < 60_000:
        return f"{millis // 1000} s"
    return duration_text(millis).replace(" 00 s", "").replace(" 00 m", "")


def _width_of(calls: Sequence[CallLine], scale: Scale) -> Markup:
    """Return how many calls were under way at each time, as an area."""
    changes: list[tuple[int, int]] = []
    for call in calls:
        if call.ended > call.began:
            changes += [(call.began, 1), (call.ended, -1)]
    changes.sort()
    width, largest, points = 0, 0, [(0, 0)]
    for at, change in changes:
        x = round(10_000 * (at - scale.begin) / scale.millis)
        points.append((x, width))
        width += change
        points.append((x, width))
        largest = max(largest, width)
    top = max(1, largest)
    # Points that no screen can tell apart are one: 2,000 calls have 8,000 of them.
    kept: list[tuple[int, int]] = []
    for x, value in points:
        if len(kept) > 1 and kept[-1] == (x, value):
            continue
        kept.append((x, value))
    line = " ".join(f"{x} {100 - 96 * value // top}" for x, value in kept)
    area = element("path", d=f"M0 100L{line}L10000 100z")
    picture = element("svg", area, viewBox="0 0 10000 100", preserveAspectRatio="none", width="100%", height=48,
                      role="img", aria_label="calls under way")  # fmt: skip
    head = element("div", element("b", "calls under way"), element("small", f"at most {largest:,}"), class_="lane-name")
    return element("div", head, picture, class_="lane width")


def legend() -> Markup:
    """Return what the colours mean."""
    kinds = {"tool": "tool", "model": "model", "subagent": "sub-agent", "failed": "failed", "critical": "critical path"}
    keys = [element("span", element("i", class_=f"key {kind}"), name) for kind, name in kinds.items()]
    return element("p", *keys, class_="legend")
