"""A script with what each of its lines has called, as a line profiler shows it. Pure."""

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size

from sennit.starter.terminal.text import counted, fit
from sennit.workflows.messages.views import ScriptLine, ScriptView
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import clean, one_line

_NAMED = ("failed", "waiting", "running", "pending", "handled", "skipped", "cancelled")
_GAP = "  "
_Cells = tuple[str, str, str, str]
_NOTHING = ("", "", "", "")
_CALLED = 1
"""The column of what a line has called."""
_NUMBERS = 4
"""The last column before the code."""


def script_text(view: ScriptView, width: int | None = None) -> str:
    """Return the script line by line: its number, what it has called, the time, tokens and
    dollars of that, the code.

    Lines are cut at `width`, if it is given.
    """
    source = [clean(line).expandtabs(4).rstrip() for line in view.script.splitlines()]
    called = {line.line: _cells(line) for line in view.lines}
    rows: list[tuple[str, ...]] = []
    for number, text in enumerate(source, 1):
        cells = called.pop(number, _NOTHING)
        rows.append((str(number), *cells, text))
    for cells in called.values():
        rows.append(("", *cells, "(in lines that are not known)"))

    widths = [_width(rows, column) for column in range(_NUMBERS + 1)]
    lines: list[str] = []
    for row in rows:
        line = _line(row, widths)
        if width is not None and cell_len(line) > width:
            line = set_cell_size(line, width - 1).rstrip() + "…"
        lines.append(line)
    return "\n".join(lines)


def _width(rows: list[tuple[str, ...]], column: int) -> int:
    return max([cell_len(row[column]) for row in rows], default=0)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    """Return a row; the second column stands to the left, numbers to the right, and
    empty columns are left out.
    """
    parts: list[str] = []
    for column, width in enumerate(widths):
        if not width:
            continue
        room = " " * (width - cell_len(row[column]))
        if column == _CALLED:
            parts.append(row[column] + room)
        else:
            parts.append(room + row[column])
    code = row[-1]
    return _GAP.join([*parts, code]).rstrip()


def _cells(line: ScriptLine) -> _Cells:
    parts: list[str] = []
    if line.error:
        parts.append(f"✗ {one_line(line.error)}")
    parts += [_counted(line.tasks, "task"), _counted(line.calls, "call")]
    if line.taken_over:
        parts.append(f"{line.taken_over} taken over")
    called = fit(", ".join(filter(None, parts)), 60)

    time, tokens, dollars = "", "", ""
    if line.duration_ms:
        time = duration_text(line.duration_ms)
    used = line.usage.input_tokens + line.usage.output_tokens
    if used:
        tokens = f"{used:,} tokens"
    if line.usage.cost_usd:
        dollars = f"${line.usage.cost_usd:.4f}"
    return called, time, tokens, dollars


def _counted(counts: Mapping[str, int], noun: str) -> str:
    """Return `34 calls, 2 failed`, or `2 calls failed` if all did; "" for none."""
    total = sum(counts.values())
    if not total:
        return ""
    several = counted(total, noun)
    named = [status for status in _NAMED if counts.get(status)]
    if named and counts[named[0]] == total:
        return f"{several} {named[0]}"
    parts = [f"{counts[status]:,} {status}" for status in named]
    return ", ".join([several, *parts])
