"""The parts of a report: what a run was, its answer, figures, nodes and log. Each is complete without a script."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sennit.starter.report.content import Content
from sennit.starter.report.gantt import gantt, legend, scale_of
from sennit.starter.report.graph import graph
from sennit.starter.report.markup import EMPTY, Markup, cut, element, joined
from sennit.starter.terminal.text import as_json
from sennit.workflows.messages.figures import CallLine
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.figures.lines import plural
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import one_line

_TEXT_ROOM = 700_000
"""Characters of summaries, outputs and errors that all rows have together: a page of 2,000 nodes stays below 3 MB."""
_MOST_OF_ROW, _LEAST_OF_ROW = 1_200, 120
_MOST_OF_ANSWER = 400_000
_MOST_LOG_LINES = 2_000
_MARK = re.compile(r"\[(\d{1,4})\]")
_TIMES_SIGN, _MINUS_SIGN = "\u00d7", "\u2212"
_CAUSES = {
    "dependency": "other calls",
    "slot": "a slot",
    "lock": "a lock",
    "rate": "the rate",
    "budget": "the budget",
    "person": "a person",
}


def section(name: str, title: str, *content: Markup, note: str = "") -> Markup:
    """Return a part of the page with its heading; nothing if it has no content."""
    if not any(content):
        return EMPTY
    head = element("h2", title, element("small", note) if note else EMPTY)
    return element("section", head, *content, id=name)


def header(content: Content) -> Markup:
    """Return what the run was, when it ran, and how it ended."""
    report = content.report
    title = one_line(content.goal) or report.id
    facts: list[Markup | str] = [element("span", report.status, class_=f"status {report.status}")]
    if title != report.id:
        facts.append(element("code", report.id))
    if content.began:
        facts.append(datetime.fromtimestamp(content.began, UTC).strftime("%-d %B %Y, %H:%M UTC"))
    if content.closed:
        facts.append(duration_text(1000 * (content.closed - content.began)))
    nodes = sum(report.counts.values())
    facts.append(plural(nodes, "node"))
    usage = report.usage
    tokens = usage.input_tokens + usage.output_tokens
    if usage.calls:
        facts.append(plural(usage.calls, "model call"))
        facts.append(f"{tokens:,} tokens")
    if usage.cost_usd:
        facts.append(f"${usage.cost_usd:.4f}")
    kind = "long" if len(title) > 140 else None
    return element("header", element("h1", cut(title, 600), class_=kind), element("p", *_dotted(facts), class_="facts"))


def _dotted(facts: Sequence[Markup | str]) -> list[Markup]:
    return [fact if isinstance(fact, Markup) else element("span", fact) for fact in facts]


def answer(report: RunReport) -> Markup:
    """Return the answer, whose marks lead to the evidence, and what is missing."""
    parts: list[Markup] = []
    if report.problem:
        parts.append(element("p", cut(report.problem, 4_000), class_="problem"))
    if isinstance(report.answer, str):
        text = cut(report.answer.strip("\n"), _MOST_OF_ANSWER)
        parts.append(element("div", _with_links(text, report), class_="answer"))
    elif report.answer is not None:
        parts.append(element("pre", cut(as_json(report.answer, indent=2), _MOST_OF_ANSWER), class_="answer"))
    if report.evidence:
        pieces = sorted(report.evidence, key=lambda piece: piece.n)
        rows = [_evidence(piece.n, piece.source or piece.node, piece.quote, piece.claim) for piece in pieces]
        parts.append(element("ol", *rows, class_="evidence"))
    return section("answer", "Answer", *parts)


def _with_links(text: str, report: RunReport) -> Markup:
    known = {piece.n: True for piece in report.evidence}
    parts: list[Markup | str] = []
    past = 0
    for mark in _MARK.finditer(text):
        if int(mark[1]) in known:
            link = element("a", mark[0], href=f"#e{int(mark[1])}")
            parts += [text[past : mark.start()], element("sup", link)]
            past = mark.end()
    return joined(*parts, text[past:])


def _evidence(number: int, source: str, quote: str, claim: str) -> Markup:
    said = element("q", cut(one_line(quote), 600)) if quote.strip() else element("span", cut(one_line(claim), 600))
    return element(
        "li", element("b", f"[{number}]"), element("cite", cut(one_line(source), 200)), said, id=f"e{number}"
    )


def figures_section(figures: Figures) -> Markup:
    """Return the figures: how long, how long one after the other, how short it could be, and the rest beside."""
    if not figures.calls and not figures.subagents:
        return EMPTY
    hero = element("div", _speed_up(figures), _times(figures), class_="hero")
    cards = element("dl", *_cards(figures), class_="cards")
    below = element("div", _waiting(figures), _branches(figures), class_="pair")
    return section("figures", "Figures", hero, cards, below)


def _speed_up(figures: Figures) -> Markup:
    number = f"{figures.speed_up:.1f}{_TIMES_SIGN}" if figures.speed_up is not None else "-"
    saved, kind = f"{duration_text(figures.saved_ms)} saved", "saved"
    if figures.saved_ms < 0:
        saved, kind = f"{duration_text(-figures.saved_ms)} longer", "longer"
    about = element("span", "as fast as one call after another")
    return element("div", element("b", number), about, element("span", saved, class_=kind), class_="speed")


def _times(figures: Figures) -> Markup:
    longest = max(figures.sequential_ms, figures.makespan_ms, 1)
    rows = []
    for name, millis, kind in (
        ("one after the other", figures.sequential_ms, "sequential"),
        ("as it ran", figures.makespan_ms, "makespan"),
        ("critical path", figures.critical_path_ms, "critical"),
    ):
        rows.append(_measure(name, duration_text(millis), millis / longest, kind))
    return element("div", *rows, class_="times")


def _measure(name: str, text: str, share: float, kind: str) -> Markup:
    """Return a bar with its name in front and its value behind."""
    box = element("rect", width=f"{100 * share:.2f}%", height=14, rx=3, class_=f"measure {kind}")
    picture = element("svg", box, width="100%", height=14, aria_hidden="true")
    return element("div", element("span", name), picture, element("b", text), class_="row")


def _cards(figures: Figures) -> list[Markup]:
    found = [("calls", f"{figures.calls:,}")]
    if figures.subagents:
        found.append(("sub-agents", f"{figures.subagents:,}"))
    if figures.mean_width is not None:
        found.append(("at once", f"{figures.mean_width:.1f}"))
    found.append(("at most at once", f"{figures.largest_width:,}"))
    if figures.parallel_ratio is not None:
        found.append(("beside another", f"{figures.parallel_ratio:.0%}"))
    if figures.utilisation is not None:
        found.append((f"of a window of {figures.window:,}", f"{figures.utilisation:.0%}"))
    found.append(("retry" if figures.retries == 1 else "retries", f"{figures.retries:,}"))
    for kind, count in figures.failures.items():
        found.append((f"{kind} failure{'s' * (count != 1)}", f"{count:,}"))
    return [element("div", element("dd", value), element("dt", name)) for name, value in found]


def _waiting(figures: Figures) -> Markup:
    if not figures.waited_ms:
        return EMPTY
    longest = max(figures.waited_ms.values())
    rows = [
        _measure(_CAUSES.get(cause, cause), duration_text(millis), millis / longest, "waited")
        for cause, millis in figures.waited_ms.items()
    ]
    return element("div", element("h3", "Calls have waited for"), *rows, class_="times")


def _branches(figures: Figures) -> Markup:
    if not figures.branches:
        return EMPTY
    has_cost = any(branch.cost_usd for branch in figures.branches)
    most = max(max(branch.cost_usd if has_cost else branch.tokens for branch in figures.branches), 1e-9)
    rows = []
    for branch in figures.branches[:8]:
        amount = branch.cost_usd if has_cost else branch.tokens
        text = f"{branch.tokens:,} tokens" + (f", ${branch.cost_usd:.4f}" if has_cost else "")
        rows.append(_measure(cut(one_line(branch.branch), 40), text, amount / most, "used"))
    left = len(figures.branches) - 8 + figures.branches_left_out
    more = (
        element("p", f"and {plural(left, 'branch', 'branches')} that used less", class_="more") if left > 0 else EMPTY
    )
    return element("div", element("h3", "Used by branch"), *rows, more, class_="times")


def pictures(content: Content) -> list[Markup]:
    """Return the graph, and when each call ran."""
    calls = content.page.calls
    lacks = element("p", content.lacks, class_="lacks") if content.lacks else EMPTY
    shown = section("graph", "Graph", graph(content), lacks, note=plural(len(content.page.flow), "node"))
    zoom = element("span", element("button", _MINUS_SIGN, data_zoom="out", aria_label="show more"),
                   element("button", "+", data_zoom="in", aria_label="show less"), class_="script zoom")  # fmt: skip
    timeline = gantt(calls, dict(content.by_id), scale_of(calls))
    when = section("timeline", "Timeline", joined(legend(), zoom) if timeline else EMPTY, timeline)
    return [shown, when]


def nodes_section(content: Content) -> Markup:
    """Return a table of all nodes, with what each has used, and the beginning of its output or why it failed."""
    nodes = content.nodes
    if not nodes:
        return EMPTY
    room = min(_MOST_OF_ROW, max(_LEAST_OF_ROW, _TEXT_ROOM // len(nodes)))
    first = min((call.began for call in content.page.calls), default=0)
    rows = [_row(node, content.calls.get(node.id), first, room) for node in nodes]
    names = ("node", "status", "began", "time", "tries", "tokens", "cost", "what")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    table = element("table", element("thead", head), element("tbody", *rows), class_="nodes")
    left_out = content.report.nodes_left_out if content.lacks else 0
    more = element("p", f"{left_out:,} nodes are not in the report", class_="lacks") if left_out else EMPTY
    return section("nodes", "Nodes", _filters(content.report.counts), element("div", table, class_="table"), more,
                   note=f"{len(nodes):,}")  # fmt: skip


def _filters(counts: Mapping[str, int]) -> Markup:
    box = element("input", type="search", placeholder="Find a node", aria_label="Find a node", id="find")
    chips = [
        element("button", f"{status} {count:,}", class_=f"chip {status}", data_status=status, aria_pressed="false")
        for status, count in counts.items()
    ]
    return element("p", box, *chips, class_="script filters")


def _row(node: NodeView, call: CallLine | None, first: int, room: int) -> Markup:
    began = duration_text(call.began - first) if call is not None else ""
    millis = call.ended - call.began if call is not None else node.duration_ms
    usage = call.usage if call is not None else None
    tokens = usage.input_tokens + usage.output_tokens if usage is not None else 0
    cost = f"${usage.cost_usd:.4f}" if usage is not None and usage.cost_usd else ""
    classes: str = node.status
    if call is not None and call.critical:
        classes += " critical"
    cells = [
        element("td", element("b", node.id), element("small", _place(node, call))),
        element("td", element("span", node.status, class_=f"status {node.status}")),
        element("td", began, data_value=call.began if call is not None else None),
        element("td", duration_text(millis), data_value=millis),
        element("td", str(node.attempts) if node.attempts > 1 else ""),
        element("td", f"{tokens:,}" if tokens else "", data_value=tokens or None),
        element("td", cost, data_value=usage.cost_usd if usage is not None else None),
        element("td", *_what(node, room)),
    ]
    return element("tr", *cells, class_=classes, data_node=node.id, data_status=node.status)


def _place(node: NodeView, call: CallLine | None) -> str:
    queue = call.queue.removeprefix("sennit.").replace(".", " ") if call is not None else node.kind
    return " · ".join(filter(None, (queue, one_line(node.call_site))))


def _what(node: NodeView, room: int) -> list[Markup]:
    what = cut(one_line(node.summary).removeprefix(node.id).strip(), room // 3)
    found = [element("span", what, class_="does")] if what else []
    said = [name for name, holds in (("taken over", node.taken_over), ("answered by a person", node.answered)) if holds]
    if said:
        found.append(element("em", ", ".join(said)))
    if node.error:
        found.append(element("span", cut(one_line(node.error), room), class_="error"))
    elif node.preview:
        found.append(element("span", cut(one_line(node.preview), 2 * room // 3), class_="output"))
    return found


def log_section(report: RunReport) -> Markup:
    """Return what the run's programs have logged, its warnings, and writes of which nobody knows."""
    warnings = [element("li", cut(one_line(text), 600)) for text in report.warnings[:200]]
    writes = [element("li", element("b", line.node), f" {line.status}") for line in report.writes]
    parts = []
    if writes:
        parts += [element("h3", "Writes that were cut off, or are in doubt"), element("ul", *writes)]
    if warnings:
        parts += [element("h3", "Warnings"), element("ul", *warnings, class_="warnings")]
    lines = report.log[-_MOST_LOG_LINES:]
    if lines:
        parts.append(element("pre", "\n".join(cut(line, 2_000) for line in lines), class_="log"))
    return section("log", "Log", *parts)
