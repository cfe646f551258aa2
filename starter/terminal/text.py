"""Text from runs as a terminal shows it: fitted to its width, and as JSON."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from sennit.workflows.plan.language.text import DIRECTION_MARKS, one_line


def fit(text: str, width: int) -> str:
    """Return `text` cleaned, on one line, and at most `width` columns wide; what is cut is
    marked by an ellipsis.
    """
    line = one_line(text)
    if cell_len(line) <= width:
        return line
    if width <= 0:
        return ""
    return set_cell_size(line, width - 1).rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `2,000 calls`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}s"


def padded(text: str, width: int) -> str:
    """Return `text` with room behind it, so that it takes `width` columns."""
    return text + " " * (width - cell_len(text))


def columns(rows: Sequence[Sequence[str]], abouts: Iterable[str], width: int) -> str:
    """Return a line a row: its cells below those of the others, and what it is about in
    the room that is left.
    """
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    rest = max(20, width - sum(sizes) - 2 * len(sizes))
    lines: list[str] = []
    for row, about in zip(rows, abouts, strict=True):
        cells = "  ".join(map(padded, row, sizes))
        lines.append(f"{cells}  {fit(about, rest)}".rstrip())
    return "\n".join(lines)


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as JSON that is readable in any script and holds no raw control character."""
    separators = None
    if not indent:
        separators = (",", ":")
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )
    return re.sub(rf"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff{DIRECTION_MARKS}]", _escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
