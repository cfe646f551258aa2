"""The board: what the web UI shows under Current Details, as Markdown within a few kilobytes."""

from workflows.plan.state import SHOWN, RunState
from workflows.reporting import blocked_on, counts, error_of, kind_of, shown_units

MOST_ROWS = 40
MOST_BYTES = 6 * 1024
_ORDER = {"waiting": 0, "failed": 1, "running": 2, "pending": 3, "skipped": 4, "cancelled": 5, "succeeded": 6}


def board(state: RunState, *, run: str, title: str) -> str:
    """Return the board. Of a big plan the rows that need a look come first, and the rest are counted."""
    lines = [f"**{_cell(title, 200)}**", "", ", ".join(f"{count} {status}" for status, count in counts(state).items())]
    for item in blocked_on(state, run):
        example = str(item.example).replace("'", '"')
        lines += ["", f"**{item.node}** {_cell(item.question, 300)}", ""]
        lines += [f"- update `{item.update}` with `{_code(example)}`", f"- `{_code(item.command)}`"]
    lines += ["", *_table(state)]
    text = "\n".join(lines)
    while len(text.encode()) > MOST_BYTES and len(lines) > 4:
        lines = [*lines[:-2], "| … | | | | |"] if lines[-1] != "| … | | | | |" else [*lines[:-3], lines[-1]]
        text = "\n".join(lines)
    return text


def _table(state: RunState) -> list[str]:
    units = shown_units(state)
    if len(units) > MOST_ROWS:
        units = sorted(units, key=lambda unit: (_ORDER[SHOWN[state.status[unit]]], unit))[:MOST_ROWS]
    rows = [_row(state, unit) for unit in units]
    return ["| node | kind | status | ms | |", "|---|---|---|---|---|", *rows]


def _row(state: RunState, unit: int) -> str:
    attempts = state.attempts[unit]
    spent = str(state.millis[unit]) if attempts else ""
    tries = f" x{attempts}" if attempts > 1 else ""
    note = error_of(state, unit) or (state.spec_of(unit).summary.partition(" ")[2] if not state.is_item(unit) else "")
    status = SHOWN[state.status[unit]] + tries
    return f"| `{state.path(unit)}` | {kind_of(state, unit)} | {status} | {spent} | {_cell(note, 90)} |"


def _cell(text: str, most: int) -> str:
    """Return text that stays inside one table cell and renders as itself: no markup, no links, no line breaks."""
    line = " ".join(text.split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return "".join(f"&#{ord(char)};" if char in "<>|`*_[]()#&\\!~$" else char for char in line)


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("|", "¦")[:300]
