"""The board: what the web UI shows under Current Details, as Markdown around a picture.

The page asks its server to render it in a GET request, so its size counts percent-encoded: many proxies stop at 8 KB.
A board that is too long leaves out, step by step, titles and rows of nodes, questions beyond the first few, and the
boxes of single nodes.

Pages that take HTML for dangerous drop the picture. All else is Markdown and says enough without it: the layers, or the
groups of a program's calls, stand as text in a part that only opens on demand where there is a picture.
"""

import json
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import JsonValue

from sennit.workflows.drawing.diagram import Diagram, Mark, Node
from sennit.workflows.drawing.layout import arrange, flow_of
from sennit.workflows.drawing.picture import picture
from sennit.workflows.drawing.rows import row_lines
from sennit.workflows.drawing.text import cells, clip_name, plain
from sennit.workflows.limits import (
    MAX_BOARD_BYTES,
    MAX_BOARD_WRITES,
    MAX_CODE_CHARACTERS,
    MAX_ROWS_CHARACTERS,
    MAX_USUAL_BOARD_BYTES,
)
from sennit.workflows.messages.result import BlockedOn
from sennit.workflows.messages.views import ended_of
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.figures.lines import figures_lines
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import clean, text_bytes
from sennit.workflows.plan.scheduling.state import BLOCKED, ENDED, EXPANDED, RunState
from sennit.workflows.views.call_sites import groups_of, short_name
from sennit.workflows.views.nodes import drain_waits_for, error_at_place, error_of, is_answered, millis_of
from sennit.workflows.views.shown_run import ShownRun
from sennit.workflows.views.warnings import run_warnings

_MOST_OF_ANSWER, _MOST_LINES = 600, 12
_STATUSES = ("waiting", "failed", "running", "blocked", "handled", "skipped", "cancelled", "pending", "succeeded")
_URGENT = _STATUSES[:2]
_OUTER = ("program", "task", "join")
"""What fails because something in it has failed: its row comes after that."""
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()"
_MARKUP = re.compile(r"[<>|`*_\[\]&\\~${}:(]|--|(?<=\d)/(?=\d)")
_PLACEHOLDER = re.compile(r"\{(?=\w+\})")  # the page puts the run's names there, in code too
_WIDEST, _FOLD, _LONGEST_WORD = 64, "↳ ", 20
_BREAK = "\u200b"
_SPACE = "\u2007"  # cells of a table have no padding; unlike others this space never breaks a line
_LOG_ROWS = 8
_ASKS = {
    "gate": "asks",
    "approval": "needs approval",
    "budget": "needs budget",
    "plan": "the plan needs approval",
    "planning": "planning failed",
    "frozen": "frozen",
}
_ALTERNATIVES = {
    "reject": "refuse",
    "skip_node": "go on without it",
    "answer": "give its result yourself",
    "edit_plan": "put another plan in its place",
    "edit_program": "give the program another script",
    "retry_node": "run it again",
}
_BOUNDS = {"slot": "a slot", "lock": "a lock", "rate": "the rate of their provider", "budget": "budget"}
"""What limits how many items of a map run at once."""
_OF_YOURS = {"answer": "a `value`", "edit_plan": "a `plan`", "edit_program": "a `script`"}


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much is shown: of which statuses nodes have titles and rows, how many rows and questions, how many characters
    of the values that a question is about, and whether nodes have boxes of their own.

    The first detail with at most `limit` bytes as sent is taken, or the last.
    """

    statuses: tuple[str, ...]
    rows: int
    questions: int
    shown: int
    nodes: bool = True
    limit: int = MAX_USUAL_BOARD_BYTES


@dataclass(frozen=True, slots=True)
class RunEnd:
    """What a run that is over has come to."""

    answer: JsonValue = None
    problem: str = ""
    figures: Figures | None = None


@dataclass(slots=True)
class _Row:
    """A row of the table: a unit, and how many more items of its map have ended or wait in just the same way."""

    unit: int
    status: str
    more: int = 0


_DETAILS = (
    _Detail(_STATUSES, rows=20, questions=6, shown=1_000),
    _Detail(_URGENT, rows=6, questions=4, shown=300, limit=MAX_BOARD_BYTES),
    _Detail(_URGENT, rows=4, questions=1, shown=300, nodes=False),
)


def board(run: ShownRun, *, title: str, notes: Sequence[str] = (), end: RunEnd = RunEnd()) -> str:
    """Return the board, at most 24 KB as sent: how the run ended, what is blocked and what to do, the picture, the
    nodes, `notes`.

    Text from users is escaped, so that it cannot become markup. Notes are short Markdown of our own.
    """
    state, name = run.state, run.run
    statuses = [_status(run, unit) for unit in run.units]
    numbers = Counter(_status(run, unit) for unit in run.counted)
    counts = {status: numbers[status] for status in _STATUSES if status in numbers}
    shown, diagram = _diagram_of(state.graph)
    drawn_statuses = [_status(run, node) for node in shown]
    head = [*_quote(run), *_draining(state), *_writes(run)]
    ranked = sorted(
        (pair for pair in zip(run.units, statuses, strict=True) if not state.is_item(pair[0]) or pair[1] in _URGENT),
        key=lambda pair: (_STATUSES.index(pair[1]), state.spec_of(pair[0]).kind in _OUTER, pair[0]),
    )
    ranked_rows = _grouped(run, ranked)
    rows_text = _rows_text(state.graph, shown, diagram, drawn_statuses, name)
    text, pictures = "", dict[object, str]()
    for detail in _DETAILS:
        drawn = (detail.nodes, detail.statuses) if diagram.layout.whole else None
        if drawn not in pictures:
            marks = _marks(state, shown, drawn_statuses, detail if diagram.layout.whole and detail.nodes else None)
            pictures[drawn] = picture(diagram, marks, counts=counts, whole=detail.nodes)
        rows = [row for row in ranked_rows if row.status in detail.statuses]
        questions = _questions(run.blocked, name, detail)
        table = _table(run, rows, detail.rows)
        first = [*_head(name, title, counts, len(state.together)), *_end(end, name, detail)]
        text = "\n".join([*first, *head, *questions, f"<div>{pictures[drawn]}</div>", "", *table, *rows_text, *notes])
        if sent_bytes(text) <= detail.limit:
            break
    return text


def _end(end: RunEnd, run: str, detail: _Detail) -> list[str]:
    """Return the answer of a run that is over, or why there is none, and its figures."""
    figures = [prose(line, 300) for line in figures_lines(end.figures)] if end.figures is not None else []
    if figures:
        figures.append("")
    return [*_answer(end, run, detail), *figures]


def _answer(end: RunEnd, run: str, detail: _Detail) -> list[str]:
    """Return the answer, or why there is none: lines of a text, and of anything else JSON."""
    answer = end.answer
    why = [f"**why:** {prose(end.problem, 600)}", ""] if end.problem else []
    if answer is None:
        return why
    most = min(detail.shown, _MOST_OF_ANSWER)
    if not isinstance(answer, str):
        text = json.dumps(answer, ensure_ascii=False, indent=1)
        text = text if text.count("\n") < _MOST_LINES else json.dumps(answer, ensure_ascii=False)
        return [*_block(text, most, run, "output"), *why]
    text = answer.strip()
    lines = [prose(line, most) for line in clean(text[:most]).splitlines() if line.strip()]
    whole = f"… the whole: {_code(shlex.join(['sennit', 'output', run]))}"
    return [*lines, *([whole] if len(text) > most else []), "", *why]


def log_rows(lines: Sequence[str]) -> list[str]:
    """Return the last lines of the log, for the notes of a board."""
    rows = [f"- {prose(line, 160)}" for line in lines[-_LOG_ROWS:]]
    more = [f"- … {len(lines) - _LOG_ROWS:,} lines before these"] if len(lines) > _LOG_ROWS else []
    return ["**log**", "", *more, *rows, ""] if rows else []


def board_without_plan(run: str, title: str, outage: Sequence[BlockedOn]) -> str:
    """Return the board of a run that has no plan yet: what it waits for and what to do."""
    return "\n".join([f"**{prose(title, 200)}**", "", *_questions(outage, run, _DETAILS[0])])


def sent_bytes(text: str) -> int:
    """Return how many bytes the web UI sends for a text: all but letters, digits and a few signs count thrice."""
    data = text.encode()
    return len(data) + 2 * len(data.translate(None, _UNRESERVED))


def _status(run: ShownRun, unit: int) -> str:
    return "blocked" if run.state.status[unit] == BLOCKED and not run.state.ended else run.status(unit)


def _head(run: str, title: str, counts: dict[str, int], shared: int) -> list[str]:
    """Return the title, how many nodes have ended, and where to look. Shared activities tell of ends once a second."""
    ended = ended_of(counts)
    total = sum(counts.values())
    source = f", as {shared:,} shared activit{'ies' if shared > 1 else 'y'} last reported" if shared else ""
    parts = [f"{ended:,} of {total:,} node{'s' * (total != 1)} ended{source}"]
    name = quote(run, safe="")
    page = f"namespaces/{{namespace}}/workflows/{name if name != run else '{workflowId}'}/{{runId}}"
    if len(name) <= MAX_CODE_CHARACTERS:
        parts += [f"[pending activities]({page}/pending-activities)"] if counts.get("running") else []
        parts.append(f"[timeline]({page}/timeline)")
    return [f"**{prose(title, 200)}**", " · ".join(parts), ""]


def _quote(run: ShownRun) -> list[str]:
    """Return what the run's programs can cost, and what people have to know although the run goes on."""
    lines = [f"quote: {text}" for text in [run.quote] if text] + run_warnings(run.state)
    return [*(prose(line, 300) for line in lines), *([""] if lines else [])]


def _draining(state: RunState) -> list[str]:
    """Return why nothing starts while the run drains, and what it waits for."""
    names = [f"`{clip_name(name, 20)}`" for name in drain_waits_for(state)[:5]]
    why = "The history is long, so the run is about to continue as new. Nothing starts until these have ended:"
    return [f"{why} {', '.join(names)}{' …' * (state.running > len(names))}", ""] if names else []


def _writes(run: ShownRun) -> list[str]:
    """Return what became of writes that were cut off, or of which nobody knows whether they were made."""
    lines = run.writes
    named = [f"`{clip_name(line.node, 40)}` {line.status}" for line in lines[:MAX_BOARD_WRITES]]
    more = f" and {len(lines) - MAX_BOARD_WRITES} more" if len(lines) > MAX_BOARD_WRITES else ""
    return [f"Writes that were cut off, or are in doubt: {', '.join(named)}{more}", ""] if lines else []


def _questions(blocked: Sequence[BlockedOn], run: str, detail: _Detail) -> list[str]:
    """Return what the run asks and how to answer. The page keeps line breaks inside a paragraph."""
    lines: list[str] = []
    for item in blocked[: detail.questions]:
        asks = f"{prose(item.node, 60)} {_ASKS.get(item.why, 'failed')}".strip()
        lines.append(f"**{asks}:** {prose(item.question, 300)}")
        lines += _block(item.shown, detail.shown, item.run or run)
        if item.run:
            name, words = quote(item.run, safe=""), "run of its sub-agent"
            whole = f"[{words}](namespaces/{{namespace}}/workflows/{name})"
            link = whole if len(name) <= MAX_CODE_CHARACTERS else words
            lines.append(f"→ in the {link}:")
        lines.append(f"→ Send an Update: `{item.update}` with {_code(json.dumps(item.example, ensure_ascii=False))}")
        about: dict[str, JsonValue] = {"node": item.node.rpartition(".")[2]}
        if not item.node:
            about = {**item.example, "reason": "…"}
        example = _code(json.dumps(about, ensure_ascii=False))
        for other in item.also:
            lines.append(f"→ or {_ALTERNATIVES[other]}: `{other}` with {_OF_YOURS.get(other, example)}")
        lines += [f"→ in a shell: {_code(item.command)}", ""]
    if len(blocked) > detail.questions:
        lines += [f"and {len(blocked) - detail.questions} more: the query `plan` lists them all.", ""]
    return lines


def _block(text: str, most: int, run: str, command: str = "status") -> list[str]:
    """Return text as a block of code, at most so many characters of it: as it is, and never markup."""
    text = clean(text)
    if not text.strip():
        return []
    left = len(text) - most
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    lines = [part for line in _PLACEHOLDER.sub("{\u2060", text[:most]).split("\n") for part in _folded(line)]
    more = [f"… {left:,} more characters: {_code(shlex.join(['sennit', command, run]))}"] if left > 0 else []
    return [fence, *lines, fence, *more]


def _folded(line: str) -> list[str]:
    """Return a line in parts that are no wider than the page: it does not fold a block of code itself."""
    parts = [""]
    width = 0.0
    for char in line:
        width += cells(char)
        if width > _WIDEST:
            kept, space, word = parts[-1].rpartition(" ")
            word = word if len(word) < _LONGEST_WORD else ""
            parts[-1] = kept + space if word else parts[-1]
            parts.append(_FOLD + word)
            width = cells(parts[-1]) + cells(char)
        parts[-1] += char
    return parts


def _rows_text(graph: Graph, shown: Sequence[int], diagram: Diagram, statuses: Sequence[str], run: str) -> list[str]:
    """Return the groups or layers as text. The empty lines make the block Markdown although tags stand around it."""
    if not statuses:
        return []
    names = [spec.call_site or spec.id for spec in map(graph.specs.__getitem__, shown)]
    block = _block("\n".join(row_lines(diagram.rows, names, statuses)), MAX_ROWS_CHARACTERS, run)
    title = "layers" if all(row.number for row in diagram.rows) else "groups"
    return [f"<details><summary>{title}</summary>", "", *block, "", "</details>", ""]


def _diagram_of(graph: Graph) -> tuple[list[int], Diagram]:
    """Return the nodes that are drawn and their diagram, made again if nodes were added."""
    known: tuple[int, list[int], Diagram] | None = graph.sketch
    if known is None or known[0] != len(graph.specs):
        shown, sources = flow_of(graph)
        place = {node: number for number, node in enumerate(shown)}
        groups = groups_of(graph)
        nodes = [
            Node(
                short_name(spec),
                plain(_what(spec.summary), 60),
                (place[spec.successor],) if spec.successor in place else (),
                groups[node],
            )
            for node, spec in ((node, graph.specs[node]) for node in shown)
        ]
        graph.sketch = known = len(graph.specs), shown, Diagram(arrange(sources), nodes)
    return known[1:]


def _marks(state: RunState, shown: Sequence[int], statuses: Sequence[str], detail: _Detail | None) -> list[Mark]:
    """Return what the nodes show; of a graph drawn in rows, without a detail, only the statuses count."""
    if detail is None:
        return [Mark(status) for status in statuses]
    marks = []
    for node, status in zip(shown, statuses, strict=True):
        items = state.values(node)
        ended = sum(state.status[item] in ENDED for item in items)
        millis = millis_of(state, node)
        note = duration_text(millis) if millis is not None else ""
        if items and state.status[node] == EXPANDED:
            note = f"{ended}/{len(items)}"
        share = ended / len(items) if items else 0.0
        marks.append(Mark(status, note, share, _title(state, node, status) if status in detail.statuses else ""))
    return marks


def _title(state: RunState, node: int, status: str) -> str:
    parts = [state.graph.specs[node].summary, status, _time(state, node), error_of(state, node) or ""]
    return plain(" · ".join(filter(None, parts)), 200)


def _what(summary: str) -> str:
    """Return a summary without id and sources, which the picture shows."""
    return summary.partition(" ")[2].rpartition(" <- ")[0] or summary.partition(" ")[2]


def _time(state: RunState, unit: int) -> str:
    attempts, millis = state.attempts[unit], millis_of(state, unit)
    tries = f", {attempts} tries" if attempts > 1 else ""
    again = ", answered" * is_answered(state, unit) + ", taken over" * (unit in state.taken_over)
    return duration_text(millis) + tries + again if millis is not None else again.removeprefix(", ")


def _grouped(run: ShownRun, ranked: Sequence[tuple[int, str]]) -> list[_Row]:
    """Return the rows in this order. Items of one map that have the same status for the same reason share one, so that
    an outage that fails a hundred items takes one row.
    """
    rows: list[_Row] = []
    known: dict[tuple[int, str, str | None], _Row] = {}
    for unit, status in ranked:
        row = _Row(unit, status)
        if run.state.is_item(unit) and unit not in run.state.questions:
            likeness = run.state.node_of(unit), status, error_of(run.state, unit)
            if likeness in known:
                known[likeness].more += 1
                continue
            known[likeness] = row
        rows.append(row)
    return rows


def _table(run: ShownRun, shown: Sequence[_Row], most: int) -> list[str]:
    shown = shown[:most]
    rows = [_row(run, each) for each in shown]
    if not rows:
        return []
    left = len(run.units) - sum(1 + each.more for each in shown)
    if left:
        rows.append(f"| … | {_SPACE}{left:,}\u00a0more | | |")
    return [f"| node | {_SPACE}status | {_SPACE}time{_SPACE} | |", "|:--|:--|--:|:--|", *rows, ""]


def _row(run: ShownRun, row: _Row) -> str:
    unit, status = row.unit, row.status
    waits, state = "its sub-agent waits" if unit in run.children else "", run.state
    spec = state.spec_of(unit)
    is_asked = spec.kind == "gate" and status == "waiting"  # its question stands above
    what = (is_asked and spec.call_site) or ("" if state.is_item(unit) else _what(spec.summary))
    note = waits or error_at_place(state, unit) or _items_of(run, unit) or what
    time = _time(state, unit).replace(" ", "\u00a0").replace(",\u00a0", f",{_SPACE} ")
    name = f"`{clip_name(state.shown(unit), 20)}`"
    if row.more:
        name += f" +{row.more:,}"
    cells = (name, _SPACE + status, f"{_SPACE}{time}{_SPACE}" if time else "", prose(note, 80, word=20))
    return f"| {' | '.join(cells)} |"


def _items_of(run: ShownRun, node: int) -> str:
    """Return how many items of an open map have which status, "" for any other node."""
    if run.state.status[node] != EXPANDED:
        return ""
    numbers = Counter(run.status(item) for item in run.state.values(node))
    items = [f"{numbers[status]:,} {status}" for status in _STATUSES if status in numbers]
    return f"{len(run.state.values(node)):,} items: {', '.join(items)}{_bound_of(run.state, node)}"


def _bound_of(state: RunState, node: int) -> str:
    """Return what keeps most of the items of a map from starting that could start, "" where nothing does."""
    waits = Counter(state.waits.open[item][0] for item in state.items[node] if item in state.waits.open)
    del waits["dependency"]
    if not waits:
        return ""
    cause, count = waits.most_common(1)[0]
    return f"; {count:,} wait for {_BOUNDS[cause]}"


def prose(text: str, most: int, *, word: int = 30) -> str:
    """Return any text as Markdown that renders as just that text, on one line.

    The line may break inside words of `word` letters and more, so that nothing gets wider than the screen.
    """
    line = plain(text, most)
    line = re.sub(rf"\S{{{word},}}", lambda long: re.sub(r"\S{8}", rf"\g<0>{_BREAK}", long[0]), line)
    right_to_left = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in line)
    escaped = _MARKUP.sub(lambda found: "".join(f"&#{ord(sign)};" for sign in found[0]), line)
    escaped = escaped.replace(_BREAK, "<wbr>")
    return f"\u2068{escaped}\u2069" if right_to_left else escaped


def _code(text: str) -> str:
    """Return text to be copied, exactly as it is; if it is too long to paste, where to find it."""
    if text_bytes(text) > MAX_CODE_CHARACTERS or not text.isprintable():
        return "the example in the query `plan`: it is too long to show here"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
