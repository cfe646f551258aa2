"""When each call ran: a bar each, in lanes by task queue, with the critical path in a
lane of its own on top.

Positions are percentages of the width, so that bars follow the page, and its script can stretch it.
All of a bar is attributes of SVG: the page forbids styles of single elements.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sennit.starter.report.markup import EMPTY, Markup, Value, cut, element, joined
from sennit.workflows.messages.figures import CallLine
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.language.limits import duration_text

_ROOMY, _CROWDED = 24, 120
"""Up to so many rows in all, bars have room for a name; from so many on they are lines."""
_TALL, _LOW, _LINE = 20, 9, 4
_PATH_HEIGHT = 22
_MOST_ROWS = 400
"""Rows of one lane; what is wider shares its rows."""
_NAMED = 400
"""Bars that may have a name in them: each is a picture in the picture, which cuts the name."""
_NAMED_SHARE = 60
"""A bar that is narrower than this part of the width has no name."""
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000,
120_000, 300_000,
          600_000, 1_800_000, 3_600_000, 10_800_000, 43_200_000, 86_400_000)  # fmt: skip
_TICKS = 8
_ENDED_BADLY = ("failed", "handled", "cancelled", "running")
"""Statuses that have a colour of their own."""
_KEYS = {
    "tool": "tool",
    "model": "model",
    "subagent": "sub-agent",
    "failed": "failed",
    "critical": "critical path",
}
Rows = list[list[CallLine]]


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
        return self.wide(millis - self.begin)

    def wide(self, millis: int) -> str:
        """Return how wide a length of time is."""
        share = 100 * max(0, millis) / self.millis
        return f"{share:.3f}%"


@dataclass(frozen=True, slots=True)
class _Lane:
    """Rows of bars with a name. If they are `named`, bars say which call they are."""

    name: str
    rows: Rows
    height: int
    named: bool


def scale_of(calls: Iterable[CallLine]) -> Scale:
    """Return the scale on which all of these calls fit, with room for the edge of the last bar."""
    found = list(calls)
    begin = min((call.began for call in found), default=0)
    end = max((call.ended for call in found), default=begin + 1)
    room = (end - begin) // 100
    return Scale(begin, end + room)


def gantt(calls: Sequence[CallLine], nodes: Mapping[str, NodeView], scale: Scale) -> Markup:
    """Return the picture of these calls; nothing if there are none."""
    if not calls:
        return EMPTY
    parts = [_axis(scale), _width_of(calls, scale)]
    # The critical path comes first: whoever looks for what to make faster looks there.
    path = [call for call in calls if call.critical]
    path.sort(key=lambda call: call.began)
    lane = _Lane("critical path", [path], _PATH_HEIGHT, named=len(path) <= _NAMED)
    parts.append(_drawn(lane, nodes, scale))
    by_queue = _rows_by_queue(calls)
    height = _height_of(by_queue)
    named = height == _TALL and len(calls) <= _NAMED
    for queue, rows in by_queue.items():
        name = _queue_name(queue)
        lane = _Lane(name, rows, height, named)
        parts.append(_drawn(lane, nodes, scale))
    plot = element("div", *parts, class_="plot")
    return element("div", plot, class_="gantt", tabindex="0")


def _height_of(by_queue: Mapping[str, Rows]) -> int:
    """Return how high a bar may be for all rows to be seen together."""
    rows = sum(map(len, by_queue.values()))
    if rows <= _ROOMY:
        return _TALL
    if rows <= _CROWDED:
        return _LOW
    return _LINE


def _queue_name(queue: str) -> str:
    """Return a task queue as people know it: `tools`, `llm openai`, or
    that calls are sub-agents.
    """
    name = queue.removeprefix("sennit.")
    return name.replace(".", " ") or "sub-agents"


def _rows_by_queue(calls: Sequence[CallLine]) -> dict[str, Rows]:
    """Return for each queue its calls in rows, in which no two overlap as long as there
    is room for more rows.
    """
    lanes: dict[str, Rows] = {}
    ends: dict[str, list[int]] = {}
    for call in sorted(calls, key=lambda call: (call.queue, call.began, call.ended)):
        queue = call.queue if call.kind == "call" else ""
        rows = lanes.setdefault(queue, [])
        free = ends.setdefault(queue, [])
        row = _free_row(free, call.began)
        if row == len(rows):
            rows.append([])
            free.append(0)
        rows[row].append(call)
        free[row] = max(free[row], call.ended)
    return lanes


def _free_row(ends: Sequence[int], began: int) -> int:
    """Return the first row that is free by then, else a new one; with too many, the
    one that is free soonest.
    """
    for number, end in enumerate(ends):
        if end <= began:
            return number
    if len(ends) < _MOST_ROWS:
        return len(ends)
    return ends.index(min(ends))


def _drawn(lane: _Lane, nodes: Mapping[str, NodeView], scale: Scale) -> Markup:
    bars: list[Markup] = []
    busy, count = 0, 0
    for number, row in enumerate(lane.rows):
        top = number * lane.height
        for call in row:
            bars.append(_bar(call, nodes.get(call.node), scale, top, lane))
            busy += call.ended - call.began
            count += 1
    height = max(1, len(lane.rows)) * lane.height
    picture = element("svg", *bars, width="100%", height=height, role="img", aria_label=lane.name)
    kind = "lane path" if lane.height == _PATH_HEIGHT else "lane"
    head = _head(lane.name, f"{count:,} · {duration_text(busy)}")
    return element("div", head, picture, class_=kind)


def _head(name: str, about: str) -> Markup:
    title = element("b", name)
    note = element("small", about)
    return element("div", title, note, class_="lane-name")


def _bar(call: CallLine, node: NodeView | None, scale: Scale, top: int, lane: _Lane) -> Markup:
    kind = _kind(call, node)
    millis = call.ended - call.began
    gap, radius = 0.5, 0
    if lane.height > _LINE:
        gap, radius = 2, 2
    shape: dict[str, Value] = {"x": scale.at(call.began), "width": scale.wide(millis)}
    inner: dict[str, Value] = {"y": top + gap / 2, "height": lane.height - gap, "rx": radius}
    classes = f"bar {kind} critical" if call.critical else f"bar {kind}"
    title = element("title", _title(call, node))
    box = element("rect", title, class_=classes, data_node=call.node, **shape, **inner)
    if not lane.named or millis * _NAMED_SHARE < scale.millis:
        return box
    # The name is in a picture of its own, which ends where the bar does.
    text = element("text", call.node, x=5, y=lane.height / 2 + 3.8, class_=f"on {kind}")
    return joined(box, element("svg", text, y=top, height=lane.height, class_="cut", **shape))


def _kind(call: CallLine, node: NodeView | None) -> str:
    """Return how a bar looks: by how the call ended, or else by what it is."""
    if node is not None and node.status in _ENDED_BADLY:
        return node.status
    if call.kind == "subagent":
        return "subagent"
    is_model = ".llm." in call.queue
    if node is not None:
        is_model = node.kind == "llm"
    return "model" if is_model else "tool"


def _title(call: CallLine, node: NodeView | None) -> str:
    parts = [call.node, duration_text(call.ended - call.began)]
    if node is not None:
        what = node.summary.removeprefix(call.node).strip()
        parts.append(node.status)
        parts.append(cut(what, 60))
    if call.retries:
        parts.append(f"{call.retries} retried")
    if call.critical:
        parts.append("on the critical path")
    return " · ".join(filter(None, parts))


def _axis(scale: Scale) -> Markup:
    """Return lines at round times, at most eight, each with its time beside it."""
    step = _STEPS[-1]
    for each in reversed(_STEPS):
        if scale.millis / each <= _TICKS:
            step = each
    marks: list[Markup] = []
    for at in range(0, scale.millis + 1, step):
        x = scale.wide(at)
        marks.append(element("line", x1=x, x2=x, y1=0, y2="100%"))
        if at + step * 0.7 <= scale.millis:
            marks.append(element("text", _tick(at), x=x, dx=4, y=11))
    return element("svg", *marks, class_="axis", width="100%", aria_hidden="true")


def _tick(millis: int) -> str:
    """Return a time on the axis, as short as it is exact."""
    if millis == 0:
        return "0"
    if millis < 1_000:
        return f"{millis} ms"
    if millis < 60_000:
        return f"{millis / 1000:g} s"
    text = duration_text(millis)
    return text.replace(" 00 s", "").replace(" 00 m", "")


def _width_of(calls: Sequence[CallLine], scale: Scale) -> Markup:
    """Return how many calls were under way at each time, as an area."""
    changes: list[tuple[int, int]] = []
    for call in calls:
        if call.ended > call.began:
            changes.append((call.began, 1))
            changes.append((call.ended, -1))
    changes.sort()
    width, largest = 0, 0
    points = [(0, 0)]
    for at, change in changes:
        x = round(10_000 * (at - scale.begin) / scale.millis)
        for value in (width, width + change):
            if points[-1] != (x, value):
                points.append((x, value))
        width += change
        largest = max(largest, width)
    line: list[str] = []
    for x, value in points:
        y = 100 - 96 * value // max(1, largest)
        line.append(f"{x} {y}")
    area = element("path", d=f"M0 100L{' '.join(line)}L10000 100z")
    frame: dict[str, Value] = {"viewBox": "0 0 10000 100", "preserveAspectRatio": "none"}
    picture = element(
        "svg", area, width="100%", height=48, role="img", aria_label="calls under way", **frame
    )
    head = _head("calls under way", f"at most {largest:,}")
    return element("div", head, picture, class_="lane width")


def legend() -> Markup:
    """Return what the colours mean."""
    keys: list[Markup] = []
    for kind, name in _KEYS.items():
        sample = element("i", class_=f"key {kind}")
        keys.append(element("span", sample, name))
    return element("p", *keys, class_="legend")
