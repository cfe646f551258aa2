"""`table`: sorts rows, adds up columns and writes a Markdown table."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeGuard

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from sennit.activities.limits import MAX_CELL_COLUMNS
from sennit.activities.toolbox.errors import ToolArgumentError
from sennit.activities.toolbox.registry import tool
from sennit.workflows.plan.language.text import nearest_or_known, one_line

_NARROWEST_CELL: Final = 12
_PLAIN_DIGITS: Final = 10_000
"""Smaller numbers have no commas, so that a year stays a year."""

Name = Annotated[str, Field(min_length=1, max_length=80)]
Row = dict[str, JsonValue]


def _without_nulls(rows: Any) -> Any:
    if not isinstance(rows, list):
        return rows
    return [row for row in rows if row is not None]


class TableArguments(BaseModel):
    """Which rows, which of their fields, and in which order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Annotated[
        list[Row],
        BeforeValidator(_without_nulls),
        Field(
            max_length=10_000, description="Objects, such as the output of a map; null is left out"
        ),
    ]
    columns: Annotated[
        list[Name], Field(max_length=40, description="Fields to show; all when empty")
    ] = []
    sort_by: Annotated[
        Name | None, Field(description="Field to sort by; the order stays as it is without")
    ] = None
    descending: bool = False
    limit: Annotated[int, Field(ge=1, le=10_000, description="Rows to keep after sorting")] = 10_000
    width: Annotated[
        int,
        Field(ge=20, le=1000, description="Of the text; long cells are cut to fit, if they can"),
    ] = 80


class Table(BaseModel):
    """`count` and `totals` (the sum of each column of numbers) are of all rows, `rows` and `text` of those kept."""  # noqa: E501 - models read it

    count: int
    totals: dict[str, int | float]
    rows: list[Row]
    text: str


@tool(effect="pure", timeout="20s", typical="5ms")
def table(args: TableArguments) -> Table:
    """Sort rows by a field, keep the first ones, add up columns of numbers, and
    write a Markdown table.

    Rows without the field to sort by come last; equal rows stay in their order. A row that is null,
    such as that of a skipped item, is left out.
    """
    fields: dict[str, None] = {}
    for row in args.rows:
        fields |= dict.fromkeys(row)
    known = list(fields)
    asked = [("columns", name) for name in args.columns]
    if args.sort_by:
        asked.append(("sort_by", args.sort_by))
    for argument, name in asked:
        if args.rows and name not in known:
            problem = f"no row has the field {name!r}{nearest_or_known(name, known)}"
            raise ToolArgumentError(problem, tool="table", field=argument)

    columns = args.columns or known
    totals: dict[str, int | float] = {}
    for name in columns:
        values = [row.get(name) for row in args.rows]
        total = _total(values)
        if total is not None:
            totals[name] = total
    kept = _sort(args.rows, args.sort_by, args.descending)[: args.limit]
    return Table(
        count=len(args.rows), totals=totals, rows=kept, text=_markdown(columns, kept, args.width)
    )


def _sort(rows: Sequence[Row], field: str | None, descending: bool) -> list[Row]:
    """Numbers come before text in either direction, and rows without a value come last."""
    if field is None:
        return list(rows)
    numbers: list[tuple[float, Row]] = []
    texts: list[tuple[str, Row]] = []
    rest: list[Row] = []
    for row in rows:
        value = row.get(field)
        if _is_number(value):
            numbers.append((value, row))
        elif isinstance(value, str):
            texts.append((value.casefold(), row))
        else:
            rest.append(row)
    numbers.sort(key=lambda pair: pair[0], reverse=descending)
    texts.sort(key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in (*numbers, *texts)] + rest


def _total(values: Sequence[JsonValue]) -> int | float | None:
    """Return the sum of a column, 0 without rows; None when it holds
    anything but numbers and gaps.
    """
    numbers: list[int | float] = []
    for value in values:
        if _is_number(value):
            numbers.append(value)
        elif value is not None:
            return None
    if values and not numbers:
        return None
    return _rounded(sum(numbers))


def _rounded(value: int | float) -> int | float:
    if not isinstance(value, float):
        return value
    return float(f"{value:.12g}") + 0.0


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _markdown(columns: Sequence[str], rows: Sequence[Row], width: int) -> str:
    """Return the table with its columns aligned; numbers stand on the right."""
    if not columns:
        return ""
    head = list(map(_text, columns))
    body = [_cells(row, columns) for row in rows]

    # A column is as wide as its widest cell, as far as the whole table fits.
    numeric = [_is_numeric(name, rows) for name in columns]
    widths: list[int] = []
    for cells in zip(head, *body, strict=True):
        widths.append(max(3, *map(_cell_width, cells)))
    _narrow(widths, numeric, width - 3 * len(columns) - 1)

    rule: list[str] = []
    for wide, right in zip(widths, numeric, strict=True):
        dashes = "-" * (wide - 1)
        if right:
            rule.append(f"{dashes}:")
        else:
            rule.append(f"{dashes}-")
    lines = [_line(head, widths, numeric), f"| {' | '.join(rule)} |"]
    lines += [_line(cells, widths, numeric) for cells in body]
    return "\n".join(lines)


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    return [_text(row.get(name)) for name in columns]


def _is_numeric(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column holds nothing but numbers and gaps; one without rows is text."""
    for row in rows:
        value = row.get(name)
        if value is not None and not _is_number(value):
            return False
    return bool(rows)


def _narrow(widths: list[int], numeric: Sequence[bool], room: int) -> None:
    """Take from the widest column of text until the table fits or no column can give more."""
    texts = [place for place, right in enumerate(numeric) if not right]
    while texts and sum(widths) > room:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST_CELL:
            return
        widths[widest] -= 1


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = []
    for text, wide, right in zip(cells, widths, numeric, strict=True):
        cell = _cut(text, wide)
        gap = " " * (wide - _cell_width(cell))
        if right:
            padded.append(gap + cell)
        else:
            padded.append(cell + gap)
    return f"| {' | '.join(padded)} |"


def _text(value: JsonValue) -> str:
    """Return a value on one line that cannot end its cell."""
    if value is None:
        return ""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, int | float):
        if abs(value) >= _PLAIN_DIGITS:
            return f"{value:,}"
        return f"{value}"
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _cut(one_line(text).replace("|", "\u00a6"), MAX_CELL_COLUMNS)


def _cut(text: str, width: int) -> str:
    """Return a text of at most this width without its middle, since names differ at both ends."""
    while True:
        over = _cell_width(text) - width
        if over <= 0:
            return text
        half = (len(text) - over) // 2
        text = f"{text[:half].rstrip()}\u2026{text[half + over + 1 :].lstrip()}"


def _cell_width(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for a wide character,
    none for a combining mark.
    """
    width = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        width += 1
        if unicodedata.east_asian_width(char) in ("W", "F"):
            width += 1
    return width
