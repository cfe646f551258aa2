"""A script with what each of its lines has called, as a line profiler shows it. Pure."""

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size

from sennit.starter.terminal.text import fit
from sennit.workflows.messages.views import ScriptLine, ScriptView
from sennit.workflows.plan.language.limits import duration_text
from sennit.workflows.plan.language.text import clean, one_line

_NAMED = ("failed", "waiting", "running", "pending", "handled", "skipped", "cancelled")
_GAP = "  "
_Cells = tuple[str, str, str, str]
_NOTHING = ("", "", "", "")


def script_text(view: ScriptView, width: int | None = None) -> str:
    """Return the script line by line: its number, what it has called, the time, tokens and dollars of that, the code.

    Lines are cut at `width`, if it is given.
    """
    source = [clean(line).expandtabs(4).rstrip() for line in view.script.splitlines()]
    called = {line.line: _cells(line) for line in view.lines}
    rows = [(str(number), *called.get(number, _NOTHING), text) for number, text in enumerate(source, 1)]
    others = [cells for line, cells in called.items() if not 1 <= line <= len(source)]
    rows += [("", *cells, "(in lines that are not known)") for cells in others]
    widths = [max(cell_len(row[column]) for row in rows) if rows else 0 for column in range(5)]
    lines = [_line(row, widths) for row in rows]
    return "\n".join(line if width is None or cell_len(line) <= width else _cut(line, width) for line in lines)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    """Return a row; the second column stands to the left, numbers to the right, and empty columns are left out."""
    parts = []
    for column, width in enumerate(widths):
        room = " " * (width - cell_len(row[column]))
        if width:
            parts.append(row[column] + room if column == 1 else room + row[column])
    return f"{_GAP.join(parts)}{_GAP}{row[-1]}".rstrip()


def _cut(line: str, width: int) -> str:
    return set_cell_size(line, width - 1).rstrip() + "…"


def _cells(line: ScriptLine) -> _Cells:
    used = line.usage.input_tokens + line.usage.output_tokens
    parts = [f"✗ {one_line(line.error)}"] if line.error else []
    parts += [_counted(line.tasks, "task"), _counted(line.calls, "call")]
    parts += [f"{line.taken_over} taken over"] if line.taken_over else []
    return (
        fit(", ".join(filter(None, parts)), 60),
        duration_text(line.duration_ms) if line.duration_ms else "",
        f"{used:,} tokens" if used else "",
        f"${line.usage.cost_usd:.4f}" if line.usage.cost_usd else "",
    )


def _counted(counts: Mapping[str, int], noun: str) -> str:
    """Return `34 calls, 2 failed`, or `2 calls failed` if all did; "" for none."""
    total = sum(counts.values())
    if not total:
        return ""
    several = f"{total:,} {noun}{'s' * (total != 1)}"
    named = [status for status in _NAMED if counts.get(status)]
    if named and counts[named[0]] == total:
        return f"{several} {named[0]}"
    return ", ".join([several, *(f"{counts[status]:,} {status}" for status in named)])
