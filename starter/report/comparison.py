"""Two runs on one page: what they cost, what they answered, which nodes came out otherwise, and both timelines."""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from sennit.starter.report.content import Content
from sennit.starter.report.gantt import Scale, gantt, legend, scale_of
from sennit.starter.report.markup import EMPTY, Markup, Value, cut, element, joined
from sennit.starter.report.page import document
from sennit.starter.report.sections import section
from sennit.starter.terminal.text import as_json
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.digests import digest_in
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import one_line

_MOST_WORDS = 4_000
"""Words of each answer that are compared; beyond, both stand as they are."""
_MOST_ROWS = 2_000
_TEXT_ROOM = 600_000
_Measure = tuple[str, float, float, Callable[[float], str], bool | None]
"""Its name, both values, how to write them, and whether less is better, if either is."""
_WORD = re.compile(r"\s+|[^\s]+")


def comparison_page(old: Content, new: Content) -> str:
    """Return a page about two runs, such as an origin and its fork."""
    names = old.report.id, new.report.id
    title = element("h1", element("code", names[0]), " → ", element("code", names[1]))
    goal = element("p", cut(one_line(new.goal), 300), class_="facts")
    parts = [
        element("header", title, goal),
        section("figures", "Figures", _figures(old, new)),
        section("answer", "Answers", _answers(old, new)),
        section("timeline", "Timelines", *_timelines(old, new), note="on one scale"),
        _nodes(old, new),
    ]
    return document(f"{names[0]} and {names[1]}", parts)


def _figures(old: Content, new: Content) -> Markup:
    """Return a table of the figures of both."""
    rows = []
    for name, first, second, form, less_is_better in _measures(old, new):
        kind = "change"
        if first != second and less_is_better is not None:
            kind += " better" if (second < first) == less_is_better else " worse"
        cells = [name, form(first), form(second)]
        last = element("td", _change(first, second), class_=kind)
        rows.append(element("tr", *(element("td", cell) for cell in cells), last))
    names = ("", old.report.id, new.report.id, "change")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    states = element("tr", element("td", "status"), element("td", old.report.status), element("td", new.report.status),
                     element("td", ""))  # fmt: skip
    return element("div", element("table", element("thead", head), element("tbody", states, *rows)), class_="table")


def _measures(old: Content, new: Content) -> list[_Measure]:
    first, second = old.figures, new.figures
    spent, now = old.report.usage, new.report.usage
    return [
        ("makespan", first.makespan_ms, second.makespan_ms, duration_text, True),
        ("critical path", first.critical_path_ms, second.critical_path_ms, duration_text, True),
        ("one after the other", first.sequential_ms, second.sequential_ms, duration_text, None),
        ("speed-up", first.speed_up or 0, second.speed_up or 0, _plain, False),
        ("calls made", first.calls, second.calls, _plain, True),
        ("retries", first.retries, second.retries, _plain, True),
        ("model calls", spent.calls, now.calls, _plain, True),
        ("tokens", spent.input_tokens + spent.output_tokens, now.input_tokens + now.output_tokens, _plain, True),
        ("cost", spent.cost_usd, now.cost_usd, _dollars, True),
    ]


def _plain(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _dollars(value: float) -> str:
    return f"${value:.4f}"


def _change(first: float, second: float) -> str:
    if first == second:
        return "="
    if not first:
        return "new"
    return f"{100 * (second - first) / first:+.0f} %"


def _answers(old: Content, new: Content) -> Markup:
    """Return both answers, with the words marked that only one of them has."""
    first, second = _text(old), _text(new)
    if first == second:
        same = element("p", "Both runs have the same answer.", class_="facts")
        return joined(same, element("div", second, class_="answer"))
    before, after = _WORD.findall(first), _WORD.findall(second)
    marked: tuple[list[Value], list[Value]] = [first], [second]
    if max(len(before), len(after)) <= _MOST_WORDS:
        marked = _marked(before, after)
    columns = [
        element("div", element("h3", content.report.id), element("div", *parts, class_="answer"))
        for content, parts in zip((old, new), marked, strict=True)
    ]
    return element("div", *columns, class_="two")


def _text(content: Content) -> str:
    answer = content.report.answer
    if answer is None:
        return content.report.problem or "(no answer)"
    return answer if isinstance(answer, str) else as_json(answer, indent=2)


def _marked(before: Sequence[str], after: Sequence[str]) -> tuple[list[Value], list[Value]]:
    """Return the words of both, those that only one has as deleted or inserted."""
    old: list[Value] = []
    new: list[Value] = []
    for kind, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        was, now = "".join(before[start:end]), "".join(after[first:last])
        if kind == "equal":
            old.append(was)
            new.append(now)
            continue
        if was:
            old.append(element("del", was))
        if now:
            new.append(element("ins", now))
    return old, new


def _timelines(old: Content, new: Content) -> list[Markup]:
    """Return both timelines, each from its own begin, on the scale of the longer one."""
    longest = max(scale_of(content.page.calls).millis for content in (old, new))
    found = []
    for content in (old, new):
        scale = scale_of(content.page.calls)
        picture = gantt(content.page.calls, dict(content.by_id), Scale(scale.begin, scale.begin + longest))
        if picture:
            found += [element("h3", content.report.id), picture]
    return [legend(), *found] if found else []


def _nodes(old: Content, new: Content) -> Markup:
    """Return the nodes that differ: by their ends, their outputs, or because only one run has them."""
    rows: list[tuple[str, NodeView | None, NodeView | None]] = []
    for node in new.nodes:
        said = _difference(old.by_id.get(node.id), node)
        if said:
            rows.append((said, old.by_id.get(node.id), node))
    rows += [("only before", node, None) for node in old.nodes if node.id not in new.by_id]
    equal = len(new.nodes) + len(old.nodes) - len(rows) - sum(node.id in new.by_id for node in old.nodes)
    taken = sum(node.taken_over for node in new.nodes)
    said = f"{len(rows):,} differ, {max(equal, 0):,} do not; {taken:,} calls were taken over"
    if not rows:
        return section("nodes", "Nodes", element("p", said, class_="facts"))
    room = min(600, max(80, _TEXT_ROOM // len(rows)))
    lines = [_row(kind, first, second, old, new, room) for kind, first, second in rows[:_MOST_ROWS]]
    names = ("node", "what differs", old.report.id, new.report.id)
    head = element("tr", *(element("th", name, scope="col") for name in names))
    table = element("table", element("thead", head), element("tbody", *lines))
    left = len(rows) - _MOST_ROWS
    more = element("p", f"and {left:,} more", class_="more") if left > 0 else EMPTY
    return section("nodes", "Nodes", element("div", table, class_="table"), more, note=said)


def _difference(old: NodeView | None, new: NodeView) -> str:
    """Return how a node came out otherwise, "" if it did not."""
    if old is None:
        return "only after"
    if old.status != new.status:
        return "status"
    if digest_in(old.ref or "") != digest_in(new.ref or ""):
        return "output"
    return "error" if old.error != new.error else ""


def _row(kind: str, first: NodeView | None, second: NodeView | None, old: Content, new: Content, room: int) -> Markup:
    node = second or first
    assert node is not None
    name = element("td", element("b", node.id), element("small", cut(one_line(node.summary).removeprefix(node.id), 80)),
                   class_="name")  # fmt: skip
    cells = [_cell(each, content, room) for each, content in ((first, old), (second, new))]
    return element("tr", name, element("td", kind), *cells)


def _cell(node: NodeView | None, content: Content, room: int) -> Markup:
    if node is None:
        return element("td", "")
    call = content.calls.get(node.id)
    time = duration_text(call.ended - call.began if call is not None else node.duration_ms)
    head = element("span", node.status, class_=f"status {node.status}")
    said = node.error or node.preview
    kind = "error" if node.error else "output"
    again = "taken over" if node.taken_over else time
    return element("td", head, f" {again} ", element("span", cut(one_line(said), room), class_=kind))
