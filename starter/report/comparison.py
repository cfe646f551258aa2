"""Two runs on one page: what they cost, what they answered, which nodes came out
otherwise, and both timelines.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from sennit.starter.report.content import Content
from sennit.starter.report.gantt import Scale, gantt, legend, scale_of
from sennit.starter.report.markup import Markup, Value, cut, element, joined, table
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
_WORD = re.compile(r"\s+|[^\s]+")


@dataclass(frozen=True, slots=True)
class _Measure:
    """A figure of both runs. `less_is_better` is None where neither is."""

    name: str
    before: float
    after: float
    write: Callable[[float], str]
    less_is_better: bool | None = True

    @property
    def change(self) -> str:
        if self.before == self.after:
            return "="
        if not self.before:
            return "new"
        change = (self.after - self.before) / self.before
        return f"{100 * change:+.0f} %"

    @property
    def verdict(self) -> str:
        if self.before == self.after or self.less_is_better is None:
            return "change"
        is_less = self.after < self.before
        return "change better" if is_less == self.less_is_better else "change worse"


@dataclass(frozen=True, slots=True)
class _Difference:
    """A node that came out otherwise, or that only one of the runs has."""

    kind: str
    before: NodeView | None
    after: NodeView | None


def comparison_page(old: Content, new: Content) -> str:
    """Return a page about two runs, such as an origin and its fork."""
    first, second = old.report.id, new.report.id
    title = element("h1", element("code", first), " → ", element("code", second))
    goal = element("p", cut(one_line(new.goal), 300), class_="facts")
    parts = [
        element("header", title, goal),
        section("figures", "Figures", _figures(old, new)),
        section("answer", "Answers", _answers(old, new)),
        section("timeline", "Timelines", *_timelines(old, new), note="on one scale"),
        _nodes(old, new),
    ]
    return document(f"{first} and {second}", parts)


def _figures(old: Content, new: Content) -> Markup:
    """Return a table of the figures of both."""
    rows = [_cells("status", old.report.status, new.report.status, "")]
    for measure in _measures(old, new):
        change = element("span", measure.change, class_=measure.verdict)
        rows.append(
            _cells(
                measure.name, measure.write(measure.before), measure.write(measure.after), change
            )
        )
    return table(("", old.report.id, new.report.id, "change"), rows)


def _cells(*values: Value) -> Markup:
    """Return a row of a table."""
    cells = [element("td", value) for value in values]
    return element("tr", *cells)


def _measures(old: Content, new: Content) -> list[_Measure]:
    was, now = old.figures, new.figures
    spent, spends = old.report.usage, new.report.usage
    tokens = spent.input_tokens + spent.output_tokens
    tokens_now = spends.input_tokens + spends.output_tokens
    return [
        _Measure("makespan", was.makespan_ms, now.makespan_ms, duration_text),
        _Measure("critical path", was.critical_path_ms, now.critical_path_ms, duration_text),
        _Measure("one after the other", was.sequential_ms, now.sequential_ms, duration_text, None),
        _Measure("speed-up", was.speed_up or 0, now.speed_up or 0, _plain, less_is_better=False),
        _Measure("calls made", was.calls, now.calls, _plain),
        _Measure("retries", was.retries, now.retries, _plain),
        _Measure("model calls", spent.calls, spends.calls, _plain),
        _Measure("tokens", tokens, tokens_now, _plain),
        _Measure("cost", spent.cost_usd, spends.cost_usd, _dollars),
    ]


def _plain(value: float) -> str:
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".")


def _dollars(value: float) -> str:
    return f"${value:.4f}"


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
    columns: list[Markup] = []
    for content, parts in zip((old, new), marked, strict=True):
        name = element("h3", content.report.id)
        text = element("div", *parts, class_="answer")
        columns.append(element("div", name, text))
    return element("div", *columns, class_="two")


def _text(content: Content) -> str:
    answer = content.report.answer
    if isinstance(answer, str):
        return answer
    if answer is None:
        return content.report.problem or "(no answer)"
    return as_json(answer, indent=2)


def _marked(before: Sequence[str], after: Sequence[str]) -> tuple[list[Value], list[Value]]:
    """Return the words of both, those that only one has as deleted or inserted."""
    old: list[Value] = []
    new: list[Value] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, first, last in matcher.get_opcodes():
        was = "".join(before[start:end])
        now = "".join(after[first:last])
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
    longest = max(scale_of(old.page.calls).millis, scale_of(new.page.calls).millis)
    found: list[Markup] = []
    for content in (old, new):
        calls = content.page.calls
        begin = scale_of(calls).begin
        picture = gantt(calls, content.by_id, Scale(begin, begin + longest))
        if picture:
            found.append(element("h3", content.report.id))
            found.append(picture)
    if found:
        found.insert(0, legend())
    return found


def _nodes(old: Content, new: Content) -> Markup:
    """Return the nodes that differ: by their ends, their outputs, or because
    only one run has them.
    """
    differences = _differences(old, new)
    taken = sum(node.taken_over for node in new.nodes)
    note = f"{len(differences):,} differ; {taken:,} calls were taken over"
    if not differences:
        return section("nodes", "Nodes", element("p", note, class_="facts"))
    room = _TEXT_ROOM // len(differences)
    room = min(600, max(80, room))
    rows = [_row(difference, old, new, room) for difference in differences[:_MOST_ROWS]]
    parts = [table(("node", "what differs", old.report.id, new.report.id), rows)]
    left = len(differences) - _MOST_ROWS
    if left > 0:
        parts.append(element("p", f"and {left:,} more", class_="more"))
    return section("nodes", "Nodes", *parts, note=note)


def _differences(old: Content, new: Content) -> list[_Difference]:
    found: list[_Difference] = []
    for node in new.nodes:
        before = old.by_id.get(node.id)
        kind = _kind(before, node)
        if kind:
            found.append(_Difference(kind, before, node))
    gone = [node for node in old.nodes if node.id not in new.by_id]
    found += [_Difference("only before", node, None) for node in gone]
    return found


def _kind(before: NodeView | None, after: NodeView) -> str:
    """Return how a node came out otherwise, "" if it did not."""
    if before is None:
        return "only after"
    if before.status != after.status:
        return "status"
    if digest_in(before.ref or "") != digest_in(after.ref or ""):
        return "output"
    if before.error != after.error:
        return "error"
    return ""


def _row(difference: _Difference, old: Content, new: Content, room: int) -> Markup:
    node = difference.after or difference.before
    assert node is not None
    what = one_line(node.summary)
    what = what.removeprefix(node.id)
    about = element("small", cut(what, 80))
    name = element("td", element("b", node.id), about, class_="name")
    kind = element("td", difference.kind)
    return element(
        "tr", name, kind, _cell(difference.before, old, room), _cell(difference.after, new, room)
    )


def _cell(node: NodeView | None, content: Content, room: int) -> Markup:
    if node is None:
        return element("td")
    call = content.calls.get(node.id)
    how = duration_text(node.duration_ms)
    if call is not None:
        how = duration_text(call.ended - call.began)
    if node.taken_over:
        how = "taken over"
    status = element("span", node.status, class_=f"status {node.status}")
    said = element("span", cut(one_line(node.preview), room), class_="output")
    if node.error:
        said = element("span", cut(one_line(node.error), room), class_="error")
    return element("td", status, f" {how} ", said)
