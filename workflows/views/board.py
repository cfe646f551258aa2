"""The board: what the web UI shows under Current Details, as Markdown around a picture.

The page asks its server to render it in a GET request, so its size counts percent-encoded: many
proxies stop at 8 KB. A board that is too long leaves out, step by step, titles and rows of nodes,
questions beyond the first few, and the boxes of single nodes.

Pages that take HTML for dangerous drop the picture. All else is Markdown and says enough without
it: the layers, or the groups of a program's calls, stand as text in a part that only opens on
demand where there is a picture.
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
from sennit.workflows.plan.scheduling.slices import ledger_of
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import BLOCKED, ENDED, EXPANDED
from sennit.workflows.views.call_sites import groups_of, short_name
from sennit.workflows.views.nodes import (
    drain_waits_for,
    error_at_place,
    error_of,
    is_answered,
    millis_of,
)
from sennit.workflows.views.shown_run import ShownRun
from sennit.workflows.views.warnings import run_warnings

_MOST_OF_ANSWER, _MOST_LINES = 600, 12
_STATUSES = (
    "waiting",
    "failed",
    "running",
    "blocked",
    "handled",
    "skipped",
    "cancelled",
    "pending",
    "succeeded",
)
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
_NAMED_WHILE_DRAINING = 5
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
_BOUNDS = {
    "slot": "a slot",
    "lock": "a lock",
    "rate": "the rate of their provider",
    "budget": "budget",
}
"""What limits how many items of a map run at once."""
_OF_YOURS = {"answer": "a `value`", "edit_plan": "a `plan`", "edit_program": "a `script`"}


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much is shown: of which statuses nodes have titles and rows, how many rows and
    questions, how many characters of the values that a question is about, and whether nodes
    have boxes of their own.

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
    """A row of the table: a unit, and how many more items of its map have ended or
    wait in just the same way.
    """

    unit: int
    status: str
    more: int = 0


_DETAILS = (
    _Detail(_STATUSES, rows=20, questions=6, shown=1_000),
    _Detail(_URGENT, rows=6, questions=4, shown=300, limit=MAX_BOARD_BYTES),
    _Detail(_URGENT, rows=4, questions=1, shown=300, nodes=False),
)


def board(run: ShownRun, *, title: str, notes: Sequence[str] = (), end: RunEnd = RunEnd()) -> str:
    """Return the board of a run, at most 24 KB as sent: how the run ended, what is blocked and what
    to do, the picture, the nodes, `notes`. All of it comes from `run` and its scheduler's state.

    Text from users is escaped, so that it cannot become markup. Notes are
    short Markdown of our own.
    """
    state = run.state
    shown, diagram = _diagram_of(state)
    drawn_statuses = [_status(run, node) for node in shown]

    # Some parts are the same in every detail.
    counts = _counts(run)
    head = _head(run.run, title, counts, state.batch_count)
    hints = [*_quote(run), *_draining(state), *_writes(run)]
    rows = _rows(run)
    groups = _groups_text(state.graph, shown, diagram, drawn_statuses, run.run)

    # The first detail whose board is short enough is taken.
    text = ""
    drawing = ""
    for detail in _DETAILS:
        # A graph that is too big for boxes looks the same in every detail.
        if diagram.layout.whole or not drawing:
            has_boxes = diagram.layout.whole and detail.nodes
            marks = _marks(state, shown, drawn_statuses, detail if has_boxes else None)
            drawing = picture(diagram, marks, counts=counts, whole=detail.nodes)
        lines = [*head, *_end(end, run.run, detail), *hints]
        lines += _questions(run.blocked, run.run, detail)
        lines += [f"<div>{drawing}</div>", ""]
        lines += _table(run, rows, detail)
        lines += [*groups, *notes]
        text = "\n".join(lines)
        if sent_bytes(text) <= detail.limit:
            break
    return text


def _counts(run: ShownRun) -> dict[str, int]:
    """Return how many of the counted units have each status, in the order of the legend."""
    numbers: Counter[str] = Counter()
    for unit in run.counted:
        numbers[_status(run, unit)] += 1
    return {status: numbers[status] for status in _STATUSES if status in numbers}


def _end(end: RunEnd, run: str, detail: _Detail) -> list[str]:
    """Return the answer of a run that is over, or why there is none, and its figures."""
    lines = _answer(end, run, detail)
    if end.figures is None:
        return lines
    figures = [prose(line, 300) for line in figures_lines(end.figures)]
    if figures:
        figures.append("")
    return [*lines, *figures]


def _answer(end: RunEnd, run: str, detail: _Detail) -> list[str]:
    """Return the answer, or why there is none: lines of a text, and of anything else JSON."""
    reason = []
    if end.problem:
        reason = [f"**why:** {prose(end.problem, 600)}", ""]
    if end.answer is None:
        return reason
    most = min(detail.shown, _MOST_OF_ANSWER)
    if isinstance(end.answer, str):
        return [*_answer_lines(end.answer.strip(), most, run), *reason]

    # A value that takes many lines when it is indented stands on one.
    text = json.dumps(end.answer, ensure_ascii=False, indent=1)
    if text.count("\n") >= _MOST_LINES:
        text = json.dumps(end.answer, ensure_ascii=False)
    return [*_block(text, most, run, "output"), *reason]


def _answer_lines(text: str, most: int, run: str) -> list[str]:
    """Return the first characters of an answer, and where the whole of a longer one is."""
    lines: list[str] = []
    for line in clean(text[:most]).splitlines():
        if line.strip():
            lines.append(prose(line, most))
    if len(text) > most:
        command = shlex.join(["sennit", "output", run])
        lines.append(f"… the whole: {_code(command)}")
    lines.append("")
    return lines


def log_rows(lines: Sequence[str]) -> list[str]:
    """Return the last lines of the log, for the notes of a board."""
    if not lines:
        return []
    rows = ["**log**", ""]
    earlier = len(lines) - _LOG_ROWS
    if earlier > 0:
        rows.append(f"- … {earlier:,} lines before these")
    for line in lines[-_LOG_ROWS:]:
        rows.append(f"- {prose(line, 160)}")
    rows.append("")
    return rows


def board_without_plan(run: str, title: str, outage: Sequence[BlockedOn], note: str = "") -> str:
    """Return the board of a run that has no plan yet: what it waits for and what to do, or
    a note on why it waits.
    """
    lines = [f"**{prose(title, 200)}**", ""]
    lines += _questions(outage, run, _DETAILS[0])
    if note:
        lines.append(prose(note, 200))
    return "\n".join(lines)


def sent_bytes(text: str) -> int:
    """Return how many bytes the web UI sends for a text: all but letters, digits and a
    few signs count thrice.
    """
    data = text.encode()
    escaped = data.translate(None, _UNRESERVED)
    return len(data) + 2 * len(escaped)


def _status(run: ShownRun, unit: int) -> str:
    """Return the status of a unit as people see it. While the run goes on, a unit behind a
    failed one is blocked.
    """
    is_blocked = run.state.units[unit].status == BLOCKED
    if is_blocked and not run.state.ended:
        return "blocked"
    return run.status(unit)


def _head(run: str, title: str, counts: dict[str, int], shared: int) -> list[str]:
    """Return the title, how many nodes have ended, and where to look. Shared activities tell
    of ends once a second.
    """
    total = sum(counts.values())
    nodes = _number_of(total, "node", "nodes")
    progress = f"{ended_of(counts):,} of {nodes} ended"
    if shared:
        activities = _number_of(shared, "shared activity", "shared activities")
        progress += f", as {activities} last reported"
    parts = [progress]

    # Only a workflow id that needs no escapes can be left to the page, which fills it in.
    name = quote(run, safe="")
    if len(name) <= MAX_CODE_CHARACTERS:
        workflow = "{workflowId}"
        if name != run:
            workflow = name
        page = f"namespaces/{{namespace}}/workflows/{workflow}/{{runId}}"
        if counts.get("running"):
            parts.append(f"[pending activities]({page}/pending-activities)")
        parts.append(f"[timeline]({page}/timeline)")
    return [f"**{prose(title, 200)}**", " · ".join(parts), ""]


def _number_of(count: int, singular: str, plural: str) -> str:
    """Return a count with its noun: "1 node", "2,000 nodes"."""
    noun = singular if count == 1 else plural
    return f"{count:,} {noun}"


def _quote(run: ShownRun) -> list[str]:
    """Return what the run's programs can cost, and what people have to know
    although the run goes on.
    """
    lines = []
    if run.quote:
        lines.append(prose(f"quote: {run.quote}", 300))
    for warning in run_warnings(run.state):
        lines.append(prose(warning, 300))
    if lines:
        lines.append("")
    return lines


def _draining(state: RunState) -> list[str]:
    """Return why nothing starts while the run drains, and what it waits for."""
    names: list[str] = []
    for name in drain_waits_for(state)[:_NAMED_WHILE_DRAINING]:
        names.append(f"`{clip_name(name, 20)}`")
    if not names:
        return []
    listed = ", ".join(names)
    if state.running > len(names):
        listed += " …"
    why = (
        "The history is long, so the run is about to continue as new. Nothing starts until these "
        "have ended:"
    )
    return [f"{why} {listed}", ""]


def _writes(run: ShownRun) -> list[str]:
    """Return what became of writes that were cut off, or of which nobody knows
    whether they were made.
    """
    if not run.writes:
        return []
    named: list[str] = []
    for line in run.writes[:MAX_BOARD_WRITES]:
        named.append(f"`{clip_name(line.node, 40)}` {line.status}")
    listed = ", ".join(named)
    left = len(run.writes) - MAX_BOARD_WRITES
    if left > 0:
        listed += f" and {left} more"
    return [f"Writes that were cut off, or are in doubt: {listed}", ""]


def _questions(blocked: Sequence[BlockedOn], run: str, detail: _Detail) -> list[str]:
    """Return what the run asks and how to answer. The page keeps line breaks inside a paragraph."""
    lines: list[str] = []
    for item in blocked[: detail.questions]:
        # The question, and the values that it is about.
        why = _ASKS.get(item.why, "failed")
        asks = f"{prose(item.node, 60)} {why}".strip()
        question = prose(item.question, 300)
        lines.append(f"**{asks}:** {question}")
        lines += _block(item.shown, detail.shown, item.run or run)

        # The ways to answer it.
        if item.run:
            lines.append(f"→ in the {_run_link(item.run)}:")
        example = json.dumps(item.example, ensure_ascii=False)
        lines.append(f"→ Send an Update: `{item.update}` with {_code(example)}")
        lines += _alternatives(item)
        lines += [f"→ in a shell: {_code(item.command)}", ""]
    left = len(blocked) - detail.questions
    if left > 0:
        lines += [f"and {left} more: the query `plan` lists them all.", ""]
    return lines


def _run_link(run: str) -> str:
    """Return a link to the run of a sub-agent; the bare words where its id is too long for one."""
    name = quote(run, safe="")
    words = "run of its sub-agent"
    if len(name) > MAX_CODE_CHARACTERS:
        return words
    return f"[{words}](namespaces/{{namespace}}/workflows/{name})"


def _alternatives(item: BlockedOn) -> list[str]:
    """Return what else a person may send, each with what it takes."""
    name = item.node.rpartition(".")[2]
    arguments: dict[str, JsonValue] = {"node": name}
    if not item.node:
        arguments = {**item.example, "reason": "…"}
    example = _code(json.dumps(arguments, ensure_ascii=False))
    lines = []
    for update in item.also:
        takes = _OF_YOURS.get(update, example)
        lines.append(f"→ or {_ALTERNATIVES[update]}: `{update}` with {takes}")
    return lines


def _block(text: str, most: int, run: str, command: str = "status") -> list[str]:
    """Return text as a block of code, at most so many characters of it: as
    it is, and never markup.
    """
    text = clean(text)
    if not text.strip():
        return []
    fence = _fence(text, 3)
    lines = [fence]
    for line in _PLACEHOLDER.sub("{\u2060", text[:most]).split("\n"):
        lines += _folded(line)
    lines.append(fence)
    left = len(text) - most
    if left > 0:
        whole = shlex.join(["sennit", command, run])
        lines.append(f"… {left:,} more characters: {_code(whole)}")
    return lines


def _fence(text: str, least: int) -> str:
    """Return backticks that end a code after this text: more than it has in a
    row, and at least so many.
    """
    runs = re.findall("`+", text)
    longest = max(map(len, runs), default=0)
    return "`" * max(least, longest + 1)


def _folded(line: str) -> list[str]:
    """Return a line in parts that are no wider than the page: it does not fold
    a block of code itself.
    """
    parts = [""]
    width = 0.0
    for char in line:
        width += cells(char)
        if width > _WIDEST:
            # A short word moves to the next part as a whole; a long one is broken.
            kept, space, word = parts[-1].rpartition(" ")
            if len(word) < _LONGEST_WORD:
                parts[-1] = kept + space
            else:
                word = ""
            parts.append(_FOLD + word)
            width = cells(parts[-1]) + cells(char)
        parts[-1] += char
    return parts


def _groups_text(
    graph: Graph, shown: Sequence[int], diagram: Diagram, statuses: Sequence[str], run: str
) -> list[str]:
    """Return the groups or layers as text. The empty lines make the block Markdown
    although tags stand around it.
    """
    if not statuses:
        return []
    names: list[str] = []
    for node in shown:
        spec = graph.specs[node]
        names.append(spec.call_site or spec.id)
    text = "\n".join(row_lines(diagram.rows, names, statuses))
    block = _block(text, MAX_ROWS_CHARACTERS, run)
    title = "groups"
    if all(row.number for row in diagram.rows):
        title = "layers"
    return [f"<details><summary>{title}</summary>", "", *block, "", "</details>", ""]


@dataclass(frozen=True, slots=True)
class _Sketch:
    """How a graph is drawn, kept with it while it has so many nodes."""

    count: int
    shown: list[int]
    diagram: Diagram


def _diagram_of(state: RunState) -> tuple[list[int], Diagram]:
    """Return the nodes that are drawn and their diagram, made again if nodes were added."""
    graph = state.graph
    sketch: _Sketch | None = graph.sketch
    if sketch is None or sketch.count != len(graph.specs):
        shown, sources = flow_of(graph, state.sessions)
        diagram = Diagram(arrange(sources), _drawn_nodes(graph, shown))
        sketch = _Sketch(len(graph.specs), shown, diagram)
        graph.sketch = sketch
    return sketch.shown, sketch.diagram


def _drawn_nodes(graph: Graph, shown: Sequence[int]) -> list[Node]:
    places = {node: place for place, node in enumerate(shown)}
    groups = groups_of(graph)
    nodes = []
    for node in shown:
        spec = graph.specs[node]
        dotted: tuple[int, ...] = ()
        if spec.successor in places:
            dotted = (places[spec.successor],)
        description = plain(_what(spec.summary), 60)
        nodes.append(Node(short_name(spec), description, dotted, groups[node]))
    return nodes


def _marks(
    state: RunState, shown: Sequence[int], statuses: Sequence[str], detail: _Detail | None
) -> list[Mark]:
    """Return what the nodes show; of a graph drawn in rows, without a detail,
    only the statuses count.
    """
    if detail is None:
        return [Mark(status) for status in statuses]
    marks = []
    for node, status in zip(shown, statuses, strict=True):
        title = ""
        if status in detail.statuses:
            title = _title(state, node, status)
        note = ""
        millis = millis_of(state, node)
        if millis is not None:
            note = duration_text(millis)

        # An open map shows how many of its items have ended, in the place of its time.
        share = 0.0
        items = state.values(node)
        if items:
            ended = 0
            for item in items:
                if state.units[item].status in ENDED:
                    ended += 1
            share = ended / len(items)
            if state.units[node].status == EXPANDED:
                note = f"{ended}/{len(items)}"
        marks.append(Mark(status, note, share, title))
    return marks


def _title(state: RunState, node: int, status: str) -> str:
    summary = state.graph.specs[node].summary
    time = _time(state, node)
    error = error_of(state, node)
    parts = filter(None, (summary, status, time, error))
    return plain(" · ".join(parts), 200)


def _what(summary: str) -> str:
    """Return a summary without id and sources, which the picture shows."""
    text = summary.partition(" ")[2]
    return text.rpartition(" <- ")[0] or text


def _time(state: RunState, unit: int) -> str:
    """Return how long a unit took, in how many attempts, and whether this
    run has called it at all.
    """
    parts = []
    millis = millis_of(state, unit)
    if millis is not None:
        parts.append(duration_text(millis))
        if state.units[unit].attempts > 1:
            parts.append(f"{state.units[unit].attempts} tries")
    if is_answered(state, unit):
        parts.append("answered")
    if unit in state.taken_over:
        parts.append("taken over")
    return ", ".join(parts)


def _rows(run: ShownRun) -> list[_Row]:
    """Return the rows of the table, the most urgent first. Of items only those that need a look
    have one. Items of one map that have the same status for the same reason share one, so that an
    outage that fails a hundred items takes one row.
    """
    ranks: list[tuple[int, bool, int]] = []
    for unit in run.units:
        status = _status(run, unit)
        if not run.state.is_item(unit) or status in _URGENT:
            is_outer = run.state.spec_of(unit).kind in _OUTER
            ranks.append((_STATUSES.index(status), is_outer, unit))

    rows: list[_Row] = []
    shared: dict[tuple[int, str, str | None], _Row] = {}
    for rank, _, unit in sorted(ranks):
        row = _Row(unit, _STATUSES[rank])
        # An item that asks a person something of its own keeps its row.
        if run.state.is_item(unit) and unit not in run.state.questions:
            key = (run.state.node_of(unit), row.status, error_of(run.state, unit))
            if key in shared:
                shared[key].more += 1
                continue
            shared[key] = row
        rows.append(row)
    return rows


def _table(run: ShownRun, rows: Sequence[_Row], detail: _Detail) -> list[str]:
    listed = [row for row in rows if row.status in detail.statuses]
    shown = listed[: detail.rows]
    if not shown:
        return []
    lines = [f"| node | {_SPACE}status | {_SPACE}time{_SPACE} | |", "|:--|:--|--:|:--|"]
    left = len(run.units)
    for row in shown:
        lines.append(_row(run, row))
        left -= 1 + row.more
    if left:
        lines.append(f"| … | {_SPACE}{left:,}\u00a0more | | |")
    lines.append("")
    return lines


def _row(run: ShownRun, row: _Row) -> str:
    path = run.state.path(row.unit)
    name = f"`{clip_name(path, 20)}`"
    if row.more:
        name += f" +{row.more:,}"
    time = _time(run.state, row.unit)
    if time:
        time = time.replace(" ", "\u00a0").replace(",\u00a0", f",{_SPACE} ")
        time = f"{_SPACE}{time}{_SPACE}"
    note = prose(_note(run, row), 80, word=20)
    return f"| {name} | {_SPACE}{row.status} | {time} | {note} |"


def _note(run: ShownRun, row: _Row) -> str:
    """Return what a row says of its unit: what it waits for, why it failed, how its
    items go, or what it does.
    """
    state = run.state
    if row.unit in run.children:
        return "its sub-agent waits"
    progress = error_at_place(state, row.unit) or _items_of(run, row.unit)
    if progress:
        return progress

    # The question of a gate stands above the table.
    spec = state.spec_of(row.unit)
    if spec.kind == "gate" and row.status == "waiting" and spec.call_site:
        return spec.call_site
    if state.is_item(row.unit):
        return ""
    parts = _budget_of(state, row.unit)
    parts.append(_what(spec.summary))
    return " · ".join(parts)


def _budget_of(state: RunState, unit: int) -> list[str]:
    """Return what a task with a budget of its own has spent of each limit."""
    spent: list[str] = []
    for name, row in ledger_of(state, unit).items():
        spent.append(f"{name} {row['spent']:,} of {row['limit']:,}")
    return spent


def _items_of(run: ShownRun, node: int) -> str:
    """Return how many items of an open map have which status, "" for any other node."""
    if run.state.units[node].status != EXPANDED:
        return ""
    items = run.state.values(node)
    numbers: Counter[str] = Counter()
    for item in items:
        numbers[run.status(item)] += 1
    parts: list[str] = []
    for status in _STATUSES:
        if status in numbers:
            parts.append(f"{numbers[status]:,} {status}")
    listed = ", ".join(parts)
    bound = _bound_of(run.state, node)
    return f"{len(items):,} items: {listed}{bound}"


def _bound_of(state: RunState, node: int) -> str:
    """Return what keeps most of the items of a map from starting that could start,
    "" where nothing does.
    """
    waits: Counter[str] = Counter()
    for item in state.items[node]:
        if item in state.waits.open:
            cause, _ = state.waits.open[item]
            waits[cause] += 1
    del waits["dependency"]
    if not waits:
        return ""
    bound, count = waits.most_common(1)[0]
    return f"; {count:,} wait for {_BOUNDS[bound]}"


def prose(text: str, most: int, *, word: int = 30) -> str:
    """Return any text as Markdown that renders as just that text, on one line.

    The line may break inside words of `word` letters and more, so that nothing gets
    wider than the screen.
    """
    line = re.sub(rf"\S{{{word},}}", _with_breaks, plain(text, most))
    escaped = _MARKUP.sub(_as_entities, line).replace(_BREAK, "<wbr>")
    directions = map(unicodedata.bidirectional, line)
    if any(direction in ("R", "AL") for direction in directions):
        return f"\u2068{escaped}\u2069"
    return escaped


def _with_breaks(word: re.Match[str]) -> str:
    return re.sub(r"\S{8}", rf"\g<0>{_BREAK}", word[0])


def _as_entities(signs: re.Match[str]) -> str:
    return "".join(f"&#{ord(sign)};" for sign in signs[0])


def _code(text: str) -> str:
    """Return text to be copied, exactly as it is; if it is too long to paste, where to find it."""
    if text_bytes(text) > MAX_CODE_CHARACTERS or not text.isprintable():
        return "the example in the query `plan`: it is too long to show here"
    fence = _fence(text, 1)
    if len(fence) > 1:
        text = f" {text} "
    return f"{fence}{text}{fence}"
