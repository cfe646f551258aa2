"""The rows of a CSV or TSV file as text, each with the names of its columns."""

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import PurePosixPath
from typing import Final

from sennit.activities.toolbox.files.encodings import NotText

TABLES: Final = (".csv", ".tsv")
_CSV_DELIMITERS: Final = (",", ";", "\t")


def is_table(path: str) -> bool:
    """Whether a file is a table by its ending."""
    return PurePosixPath(path).suffix.lower() in TABLES


def table_rows(path: str, text: str, *, whole: bool = True) -> Iterator[str]:
    """Yield each row below the header as `column: value; column: value`, without its empty cells;
    of a table that has no rows the names of its columns.

    A TSV file is divided by tabs. A CSV file is divided by whichever of comma, semicolon and tab
    divides its header into the most columns, the comma before the others. The last row of a file
    that is not `whole` may be cut, and is left out. Raises NotText for a file in which a
    quotation mark does not end.
    """
    delimiter = "\t"
    if not path.lower().endswith(".tsv"):
        delimiter = _delimiter_of(text)
    header: list[str] = []
    held: str | None = None  # the row before, until another one shows that it is complete
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in rows:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [" ".join(cell.split()) for cell in cells]
                continue
            if held:
                yield held
            held = _row_text(header, cells)
    except csv.Error as error:
        raise NotText(f"is no table: line {rows.line_num}: {error}") from None
    if held and whole:
        yield held
    if held is None:
        yield "columns: " + "; ".join(filter(None, header))


def _row_text(header: list[str], cells: list[str]) -> str:
    """Return the cells of a row with their columns; a cell beyond the header
    is named by its place.
    """
    parts: list[str] = []
    for place, cell in enumerate(cells):
        value = " ".join(cell.split())
        name = ""
        if place < len(header):
            name = header[place]
        if value:
            parts.append(f"{name or f'column {place + 1}'}: {value}")
    return "; ".join(parts)


def _delimiter_of(text: str) -> str:
    """Return what divides the first row into the most columns."""
    best, most_columns = _CSV_DELIMITERS[0], 0
    for delimiter in _CSV_DELIMITERS:
        try:
            header = next(csv.reader(StringIO(text.lstrip(), newline=""), delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(header) > most_columns:
            best, most_columns = delimiter, len(header)
    return best
