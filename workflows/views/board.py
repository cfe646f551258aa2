"""The board: what the web UI shows under Current Details, as Markdown around a picture.

The page asks its server to render it in a GET request, so its size counts as it travels, percent-encoded: many proxies
stop at 8 KB. In steps it gives up what can be asked for elsewhere: what boxes tell when pointed at, rows of the table,
questions beyond the first few, boxes for single nodes.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from workflows.drawing.diagram import Diagram, Mark, Node
from workflows.drawing.layout import after, arrange
from workflows.drawing.picture import picture
from workflows.drawing.text import clip_name, plain
from workflows.messages.views import BlockedOn, SubagentView
from workflows.plan.compile.graph import Graph
from workflows.plan.language.limits import duration_text
from workflows.plan.scheduling.state import BLOCKED, ENDED, EXPANDED, SHOWN, RunState
from workflows.views.report import blocked_on, error_of, shown_units

USUAL_SENT = 7_900
"""Bytes as sent up to which nothing is in the way; about 6 KB of text."""
MOST_SENT = 24 * 1024
_LONGEST_CODE = 400
_FIRST = ("waiting", "failed", "running", "blocked", "skipped", "cancelled", "pending", "succeeded")
_URGENT = _FIRST[:2]
_PLACE = {status: place for place, status in enumerate(_FIRST)}
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()"
_MARKUP = re.compile(r"[<>|`*_\[\]&\\~${}:(]|--|(?<=\d)/(?=\d)")
_SYLLABLE = re.compile(r"\S{8}")
_BREAK = "\u200b"
_SPACE = "\u2007"  # cells of a table have no room around them; unlike others this one never breaks a line

Below = Mapping[int, SubagentView]


@dataclass(frozen=True, slots=True)
class _Step:
    """How much is shown: nodes of which statuses are told about in titles and rows, how many rows and questions, nodes
    or only layers. The first step with at most `limit` bytes as sent is taken, or the last."""

    statuses: tuple[str, ...]
    rows: int
    questions: int
    titles: bool = True
    whole: bool = True
    limit: int = USUAL_SENT


_STEPS = (
    _Step(_FIRST, rows=20, questions=6),
    _Step(_FIRST[:4], rows=12, questions=6),
    _Step(_URGENT, rows=6, questions=3),
    _Step(_URGENT, rows=4, questions=2, titles=False, limit=MOST_SENT),
    _Step(_URGENT, rows=4, questions=1, titles=False, whole=False),
)


def board(
    state: RunState, *, run: str, title: str, blocked_children: Below | None = None, notes: Sequence[str] = ()
) -> str:
    """Return the board, at most 24 KB as sent: what is blocked and what to do, the picture, the nodes, `notes`.

    `blocked_children` is what sub-agents wait for. Text from users is escaped: it cannot become markup.
    Notes are short Markdown of our own.
    """
    blocked_children = blocked_children or {}
    units = shown_units(state)
    statuses = [_status(state, unit) for unit in units]
    counts = {status: statuses.count(status) for status in _FIRST if status in statuses}
    blocked = blocked_on(state, run, blocked_children)
    sketch = _sketch_of(state.graph)
    head = _head(run, title, counts)
    ranked = sorted(
        (pair for pair in zip(units, statuses, strict=True) if not state.is_item(pair[0]) or pair[1] in _URGENT),
        key=lambda pair: (_PLACE[pair[1]], pair[0]),
    )
    text, drawn, svg = "", None, ""
    for step in _STEPS:
        how = (step.whole, step.titles and step.statuses) if sketch.layout.whole else None
        if how != drawn or not svg:
            drawn, svg = how, picture(sketch, _marks(state, sketch, step), counts=counts, whole=step.whole)
        listed = [pair for pair in ranked if pair[1] in step.statuses]
        asked, table = (
            _questions(blocked, step.questions),
            _table(state, listed, blocked_children, len(units), step.rows),
        )
        text = "\n".join([*head, *asked, f"<div>{svg}</div>", "", *table, *notes])
        if sent(text) <= step.limit:
            break
    return text


def sent(text: str) -> int:
    """Return how many bytes the web UI sends for this text: all but letters, digits and a few signs count thrice."""
    data = text.encode()
    return len(data) + 2 * len(data.translate(None, _UNRESERVED))


def _status(state: RunState, unit: int) -> str:
    status = state.status[unit]
    return "blocked" if status == BLOCKED and not state.ended else SHOWN[status]


def _head(run: str, title: str, counts: dict[str, int]) -> list[str]:
    done = sum(counts.get(SHOWN[status], 0) for status in ENDED)
    total = sum(counts.values())
    name = quote(run, safe="")
    place = f"namespaces/{{namespace}}/workflows/{name if name != run else '{workflowId}'}/{{runId}}"
    links = [f"[timeline]({place}/timeline)"] if len(name) <= _LONGEST_CODE else []
    if links and counts.get("running"):
        links.insert(0, f"[pending activities]({place}/pending-activities)")
    told = f"{done:,} of {total:,} node{'s' * (total != 1)} ended"
    return [f"**{prose(title, 200)}**", " · ".join([told, *links]), ""]


def _questions(blocked: Sequence[BlockedOn], most: int) -> list[str]:
    """Return what is asked and how to answer. The page keeps line breaks inside a paragraph."""
    lines: list[str] = []
    for item in blocked[:most]:
        asks = {"gate": "asks", "approval": "needs approval", "replan": "wants more nodes"}.get(item.why, "failed")
        lines.append(f"**{prose(item.node, 60)} {asks}:** {prose(item.question, 300)}")
        if item.run:
            name, told = quote(item.run, safe=""), "run of its sub-agent"
            linked = f"[{told}](namespaces/{{namespace}}/workflows/{name})" if len(name) <= _LONGEST_CODE else told
            lines.append(f"→ in the {linked}:")
        lines.append(f"→ Send an Update: `{item.update}` with {_code(json.dumps(item.example, ensure_ascii=False))}")
        refuse = "refuse: `reject`"
        instead = {"approval": refuse, "replan": refuse, "failed": "go on without it: `skip_node`"}.get(item.why)
        if instead:
            lines.append(f"→ or {instead} with {_code(json.dumps({'node': item.node.rpartition('.')[2]}))}")
        lines += [f"→ in a shell: {_code(item.command)}", ""]
    if len(blocked) > most:
        lines += [f"and {len(blocked) - most} more: query `plan` tells all.", ""]
    return lines


def _sketch_of(graph: Graph) -> Diagram:
    """Return the graph's sketch, made anew when nodes have been added."""
    known: Diagram | None = graph.sketch
    if known is None or known.layout.count != len(graph.specs):
        nodes = [
            Node(spec.id, plain(_what(spec.summary), 60), (spec.instead,) if spec.instead >= 0 else ())
            for spec in graph.specs
        ]
        graph.sketch = known = Diagram(arrange(after(graph)), nodes)
    return known


def _marks(state: RunState, sketch: Diagram, step: _Step) -> list[Mark]:
    """Return how the nodes are; of a graph drawn by layers only the statuses count."""
    statuses = [_status(state, node) for node in range(len(state.graph.specs))]
    if not (sketch.layout.whole and step.whole):
        return [Mark(status) for status in statuses]
    told = step.statuses if step.titles else ()
    return [
        Mark(
            status,
            _note(state, node),
            _share(state, node),
            _title(state, node, status) if status in told else "",
        )
        for node, status in enumerate(statuses)
    ]


def _what(summary: str) -> str:
    """Return a summary without id and sources, which the picture shows."""
    return summary.partition(" ")[2].rpartition(" <- ")[0] or summary.partition(" ")[2]


def _note(state: RunState, node: int) -> str:
    """Return what stands beside a node's name: how many items of a map have ended, or the time it took."""
    items = state.items.get(node, ())
    if items and state.status[node] == EXPANDED:
        return f"{_ended(state, items)}/{len(items)}"
    return duration_text(state.millis[node]) if state.attempts[node] else ""


def _time(state: RunState, unit: int) -> str:
    attempts = state.attempts[unit]
    tries = f", {attempts} tries" if attempts > 1 else ""
    return duration_text(state.millis[unit]) + tries if attempts else ""


def _ended(state: RunState, items: Sequence[int]) -> int:
    return sum(state.status[item] in ENDED for item in items)


def _share(state: RunState, node: int) -> float:
    items = state.items.get(node, ())
    return _ended(state, items) / len(items) if items else 0.0


def _title(state: RunState, node: int, status: str) -> str:
    told = [state.graph.specs[node].summary, status, _time(state, node), error_of(state, node) or ""]
    return plain(" · ".join(filter(None, told)), 200)


def _table(
    state: RunState, listed: Sequence[tuple[int, str]], blocked_children: Below, total: int, most: int
) -> list[str]:
    rows = [_row(state, unit, status, blocked_children) for unit, status in listed[:most]]
    if not rows:
        return []
    if total > len(rows):
        rows.append(f"| … | {_SPACE}{total - len(rows):,}\u00a0more | | |")
    return [f"| node | {_SPACE}status | {_SPACE}time{_SPACE} | |", "|:--|:--|--:|:--|", *rows, ""]


def _row(state: RunState, unit: int, status: str, blocked_children: Below) -> str:
    waits = "its sub-agent waits" if unit in blocked_children else ""
    note = waits or error_of(state, unit) or ("" if state.is_item(unit) else _what(state.spec_of(unit).summary))
    name, time = clip_name(state.path(unit), 20), _time(state, unit).replace(" ", "\u00a0").replace(",\u00a0", ", ")
    cells = (f"`{name}`", _SPACE + status, f"{_SPACE}{time}{_SPACE}" if time else "", prose(note, 80, word=20))
    return f"| {' | '.join(cells)} |"


def prose(text: str, most: int, *, word: int = 30) -> str:
    """Return text from anybody as Markdown that renders as just that text, on one line that can be broken.

    Words of `word` letters and more may be broken too, so that nothing gets wider than the screen.
    """
    line = re.sub(rf"\S{{{word},}}", lambda long: _SYLLABLE.sub(rf"\g<0>{_BREAK}", long[0]), plain(text, most))
    turned = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in line) if not line.isascii() else False
    shown = _MARKUP.sub(lambda found: "".join(f"&#{ord(sign)};" for sign in found[0]), line).replace(_BREAK, "<wbr>")
    return f"\u2068{shown}\u2069" if turned else shown


def _code(text: str) -> str:
    """Return text to be copied, exactly as it is; what is too long to paste is only named."""
    if len(text.encode(errors="replace")) > _LONGEST_CODE or not text.isprintable():
        return "what query `plan` tells: it is too long to show here"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
