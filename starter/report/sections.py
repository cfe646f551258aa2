"""The parts of a report: what a run was, its answer, figures, nodes and log. Each is
complete without a script.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sennit.starter.report.content import Content
from sennit.starter.report.gantt import gantt, legend, scale_of
from sennit.starter.report.graph import graph
from sennit.starter.report.markup import EMPTY, Markup, Value, cut, element, joined, table
from sennit.starter.terminal.text import as_json
from sennit.workflows.messages.contracts import Evidence
from sennit.workflows.messages.figures import CallLine
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.views import NodeView
from sennit.workflows.plan.figures.figures import BranchUsage, Figures
from sennit.workflows.plan.figures.lines import plural
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import one_line

_TEXT_ROOM = 700_000
"""Characters of summaries, outputs and errors that all rows have together: a page of 2,000
nodes stays below 3 MB.
"""
_MOST_OF_ROW, _LEAST_OF_ROW = 1_200, 120
_MOST_OF_ANSWER = 400_000
_MOST_LOG_LINES = 2_000
_LONG_TITLE = 140
_SHOWN_BRANCHES = 8
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
_COLUMNS = ("node", "status", "began", "time", "tries", "tokens", "cost", "what")


def section(name: str, title: str, *content: Markup, note: str = "") -> Markup:
    """Return a part of the page with its heading; nothing if it has no content."""
    if not any(content):
        return EMPTY
    small = element("small", note)
    head = element("h2", title, small)
    return element("section", head, *content, id=name)


def header(content: Content) -> Markup:
    """Return what the run was, when it ran, and how it ended."""
    report = content.report
    title = one_line(content.goal) or report.id
    facts = [element("span", report.status, class_=f"status {report.status}")]
    if title != report.id:
        facts.append(element("code", report.id))
    facts += [element("span", text) for text in _when(content)]
    facts += [element("span", text) for text in _used(report)]
    size = None
    if len(title) > _LONG_TITLE:
        size = "long"
    head = element("h1", cut(title, 600), class_=size)
    return element("header", head, element("p", *facts, class_="facts"))


def _when(content: Content) -> list[str]:
    found: list[str] = []
    if content.began:
        began = datetime.fromtimestamp(content.began, UTC)
        found.append(began.strftime("%-d %B %Y, %H:%M UTC"))
    if content.closed:
        took = content.closed - content.began
        found.append(duration_text(1000 * took))
    return found


def _used(report: RunReport) -> list[str]:
    usage = report.usage
    nodes = sum(report.counts.values())
    found = [plural(nodes, "node")]
    if usage.calls:
        tokens = usage.input_tokens + usage.output_tokens
        found.append(plural(usage.calls, "model call"))
        found.append(f"{tokens:,} tokens")
    if usage.cost_usd:
        found.append(f"${usage.cost_usd:.4f}")
    return found


def answer(report: RunReport) -> Markup:
    """Return the answer, whose marks lead to the evidence, and what is missing."""
    parts: list[Markup] = []
    if report.problem:
        parts.append(element("p", cut(report.problem, 4_000), class_="problem"))
    if isinstance(report.answer, str):
        text = cut(report.answer.strip("\n"), _MOST_OF_ANSWER)
        parts.append(element("div", _with_links(text, report), class_="answer"))
    elif report.answer is not None:
        text = as_json(report.answer, indent=2)
        parts.append(element("pre", cut(text, _MOST_OF_ANSWER), class_="answer"))
    if report.evidence:
        pieces = sorted(report.evidence, key=lambda piece: piece.n)
        parts.append(element("ol", *map(_evidence, pieces), class_="evidence"))
    return section("answer", "Answer", *parts)


def _with_links(text: str, report: RunReport) -> Markup:
    """Return a text whose marks lead to the evidence that there is."""
    known = {piece.n: True for piece in report.evidence}
    parts: list[Value] = []
    past = 0
    for mark in _MARK.finditer(text):
        number = int(mark[1])
        if number not in known:
            continue
        parts.append(text[past : mark.start()])
        link = element("a", mark[0], href=f"#e{number}")
        parts.append(element("sup", link))
        past = mark.end()
    return joined(*parts, text[past:])


def _evidence(piece: Evidence) -> Markup:
    mark = element("b", f"[{piece.n}]")
    where = one_line(piece.source or piece.node)
    source = element("cite", cut(where, 200))
    said = element("span", cut(one_line(piece.claim), 600))
    if piece.quote.strip():
        said = element("q", cut(one_line(piece.quote), 600))
    return element("li", mark, source, said, id=f"e{piece.n}")


def figures_section(figures: Figures) -> Markup:
    """Return the figures: how long, how long one after the other, how short it could
    be, and the rest beside.
    """
    if not figures.calls and not figures.subagents:
        return EMPTY
    hero = element("div", _speed_up(figures), _times(figures), class_="hero")
    cards = element("dl", *_cards(figures), class_="cards")
    below = element("div", _waiting(figures), _branches(figures), class_="pair")
    return section("figures", "Figures", hero, cards, below)


def _speed_up(figures: Figures) -> Markup:
    number = "-"
    if figures.speed_up is not None:
        number = f"{figures.speed_up:.1f}{_TIMES_SIGN}"
    saved = element("span", f"{duration_text(figures.saved_ms)} saved", class_="saved")
    if figures.saved_ms < 0:
        saved = element("span", f"{duration_text(-figures.saved_ms)} longer", class_="longer")
    about = element("span", "as fast as one call after another")
    return element("div", element("b", number), about, saved, class_="speed")


def _times(figures: Figures) -> Markup:
    longest = max(figures.sequential_ms, figures.makespan_ms, 1)
    measures = {
        "one after the other": (figures.sequential_ms, "sequential"),
        "as it ran": (figures.makespan_ms, "makespan"),
        "critical path": (figures.critical_path_ms, "critical"),
    }
    rows: list[Markup] = []
    for name, (millis, kind) in measures.items():
        rows.append(_measure(name, duration_text(millis), millis / longest, kind))
    return element("div", *rows, class_="times")


def _measure(name: str, text: str, share: float, kind: str) -> Markup:
    """Return a bar with its name in front and its value behind."""
    width = f"{100 * share:.2f}%"
    box = element("rect", width=width, height=14, rx=3, class_=f"measure {kind}")
    picture = element("svg", box, width="100%", height=14, aria_hidden="true")
    head = element("span", name)
    value = element("b", text)
    return element("div", head, picture, value, class_="row")


def _cards(figures: Figures) -> list[Markup]:
    found = {"calls": f"{figures.calls:,}"}
    if figures.subagents:
        found["sub-agents"] = f"{figures.subagents:,}"
    if figures.mean_width is not None:
        found["at once"] = f"{figures.mean_width:.1f}"
    found["at most at once"] = f"{figures.largest_width:,}"
    if figures.parallel_ratio is not None:
        found["beside another"] = f"{figures.parallel_ratio:.0%}"
    if figures.utilisation is not None:
        found[f"of a window of {figures.window:,}"] = f"{figures.utilisation:.0%}"
    if figures.speculation is not None:
        found["early calls of use"] = (
            f"{figures.speculation.hits:,} of {figures.speculation.calls:,}"
        )
    found["retries"] = f"{figures.retries:,}"
    for kind, count in figures.failures.items():
        found[f"{kind} failures"] = f"{count:,}"
    cards: list[Markup] = []
    for name, value in found.items():
        shown = element("dd", value)
        cards.append(element("div", shown, element("dt", name)))
    return cards


def _waiting(figures: Figures) -> Markup:
    if not figures.waited_ms:
        return EMPTY
    longest = max(figures.waited_ms.values())
    rows = [element("h3", "Calls have waited for")]
    for cause, millis in figures.waited_ms.items():
        name = _CAUSES.get(cause, cause)
        rows.append(_measure(name, duration_text(millis), millis / longest, "waited"))
    return element("div", *rows, class_="times")


def _branches(figures: Figures) -> Markup:
    if not figures.branches:
        return EMPTY
    rows = [element("h3", "Used by branch")]
    dearest = figures.branches[0]
    most = max(branch.tokens for branch in figures.branches)
    for branch in figures.branches[:_SHOWN_BRANCHES]:
        share = branch.tokens / max(1, most)
        if dearest.cost_usd:
            share = branch.cost_usd / dearest.cost_usd
        name = cut(one_line(branch.branch), 40)
        rows.append(_measure(name, _spent(branch), share, "used"))
    left = len(figures.branches) - _SHOWN_BRANCHES + figures.branches_left_out
    if left > 0:
        rows.append(
            element("p", f"and {plural(left, 'branch', 'branches')} that used less", class_="more")
        )
    return element("div", *rows, class_="times")


def _spent(branch: BranchUsage) -> str:
    text = f"{branch.tokens:,} tokens"
    if branch.cost_usd:
        text += f", ${branch.cost_usd:.4f}"
    return text


def pictures(content: Content) -> list[Markup]:
    """Return the graph, and when each call ran."""
    lacks = EMPTY
    if content.lacks:
        lacks = element("p", content.lacks, class_="lacks")
    nodes = plural(len(content.page.flow), "node")
    shown = section("graph", "Graph", graph(content), lacks, note=nodes)
    calls = content.page.calls
    timeline = gantt(calls, content.by_id, scale_of(calls))
    if not timeline:
        return [shown]
    narrower = element("button", _MINUS_SIGN, data_zoom="out", aria_label="show more of the time")
    wider = element("button", "+", data_zoom="in", aria_label="show less of the time")
    zoom = element("span", narrower, wider, class_="script zoom")
    return [shown, section("timeline", "Timeline", legend(), zoom, timeline)]


def nodes_section(content: Content) -> Markup:
    """Return a table of all nodes, with what each has used, and the beginning of its
    output or why it failed.
    """
    nodes = content.nodes
    if not nodes:
        return EMPTY
    room = _TEXT_ROOM // len(nodes)
    room = min(_MOST_OF_ROW, max(_LEAST_OF_ROW, room))
    first = min((call.began for call in content.page.calls), default=0)
    rows = [_row(node, content.calls.get(node.id), first, room) for node in nodes]
    shown = table(_COLUMNS, rows, class_="nodes")
    left_out = content.report.nodes_left_out
    more = EMPTY
    if content.lacks and left_out:
        more = element("p", f"{left_out:,} nodes are not in the report", class_="lacks")
    return section(
        "nodes", "Nodes", _filters(content.report.counts), shown, more, note=f"{len(nodes):,}"
    )


def _filters(counts: Mapping[str, int]) -> Markup:
    box = element(
        "input", type="search", placeholder="Find a node", aria_label="Find a node", id="find"
    )
    parts = [box]
    for status, count in counts.items():
        kind = f"chip {status}"
        parts.append(
            element(
                "button",
                f"{status} {count:,}",
                class_=kind,
                data_status=status,
                aria_pressed="false",
            )
        )
    return element("p", *parts, class_="script filters")


def _row(node: NodeView, call: CallLine | None, first: int, room: int) -> Markup:
    name = element("td", element("b", node.id), element("small", _place(node, call)))
    status = element("span", node.status, class_=f"status {node.status}")
    tries = ""
    if node.attempts > 1:
        tries = str(node.attempts)
    cells = [name, element("td", status), *_measured(node, call, first)]
    cells.insert(4, element("td", tries))
    cells.append(element("td", *_what(node, room)))
    classes: str = node.status
    if call is not None and call.critical:
        classes += " critical"
    return element("tr", *cells, class_=classes, data_node=node.id, data_status=node.status)


def _measured(node: NodeView, call: CallLine | None, first: int) -> list[Markup]:
    """Return the cells with numbers: when it began, how long it took, its tokens and its cost. Each
    has its value for the script to sort by.
    """
    if call is None:
        time = element("td", duration_text(node.duration_ms), data_value=node.duration_ms)
        return [element("td"), time, element("td"), element("td")]
    millis = call.ended - call.began
    usage = call.usage
    tokens = usage.input_tokens + usage.output_tokens
    cells = [
        element("td", duration_text(call.began - first), data_value=call.began),
        element("td", duration_text(millis), data_value=millis),
    ]
    if not tokens:
        return [*cells, element("td"), element("td")]
    cells.append(element("td", f"{tokens:,}", data_value=tokens))
    cost = ""
    if usage.cost_usd:
        cost = f"${usage.cost_usd:.4f}"
    cells.append(element("td", cost, data_value=usage.cost_usd))
    return cells


def _place(node: NodeView, call: CallLine | None) -> str:
    """Return where a node ran, or what it is, and its place in its script."""
    place: str = node.kind
    if call is not None and call.queue:
        queue = call.queue.removeprefix("sennit.")
        place = queue.replace(".", " ")
    if node.call_site:
        place += f" · {one_line(node.call_site)}"
    return place


def _what(node: NodeView, room: int) -> list[Markup]:
    """Return what a node does, and the beginning of what came of it."""
    found: list[Markup] = []
    what = one_line(node.summary)
    what = what.removeprefix(node.id).strip()
    if what:
        found.append(element("span", cut(what, room // 3)))
    if node.taken_over:
        found.append(element("em", "taken over"))
    if node.answered:
        found.append(element("em", "answered by a person"))
    if node.error:
        error = one_line(node.error)
        found.append(element("span", cut(error, room), class_="error"))
    elif node.preview:
        output = one_line(node.preview)
        found.append(element("span", cut(output, 2 * room // 3), class_="output"))
    return found


def log_section(report: RunReport) -> Markup:
    """Return what the run's programs have logged, its warnings, and writes
    of which nobody knows.
    """
    writes: list[Markup] = []
    for line in report.writes:
        name = element("b", line.node)
        writes.append(element("li", name, f" {line.status}"))
    warnings = [element("li", cut(one_line(text), 600)) for text in report.warnings[:200]]
    parts = [
        *_listed("Writes that were cut off, or are in doubt", writes),
        *_listed("Warnings", warnings),
    ]
    lines = report.log[-_MOST_LOG_LINES:]
    if lines:
        text = "\n".join(cut(line, 2_000) for line in lines)
        parts.append(element("pre", text, class_="log"))
    return section("log", "Log", *parts)


def _listed(title: str, items: Sequence[Markup]) -> list[Markup]:
    if not items:
        return []
    return [element("h3", title), element("ul", *items)]
