"""The tables of docs/replies.md."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "replies.md"


def rows(section: str) -> list[tuple[str, str, str]]:
    """Return the rows of a section's tables: reply, result, and the equal reply or the words of the error."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [re.split(r"(?<!\\) ?\| ?", line) for line in text.splitlines()]
    known = [cells for cells in lines if len(cells) == 5 and cells[2] in ("read", "repaired", "refused")]
    return [(_plain(reply), result, _plain(expected)) for _, reply, result, expected, _ in known]


def _plain(cell: str) -> str:
    text = cell.strip("`").strip() if cell.startswith("``") else cell.strip("`")
    return text.replace("↵", "\n").replace("\\|", "|").replace("BOM", "\ufeff")
