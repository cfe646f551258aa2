"""Passages of documents and the sentences in them: running text, `key: value` lines and tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ABBREVIATION = re.compile(
    r"(?:\b(?:approx|ca|c|cf|e\.g|i\.e|etc|vs|St|Mt|Mr|Mrs|Ms|Dr|Prof|No|Nos|Fig|Jr|Sr|Inc|Ltd|U\.S|a\.s\.l|sq|cu|est|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)|(?<![\w.])[A-Z])\.$"
)
_END = re.compile(r"[.!?]['\")\]\u201d\u2019]*(?=\s+[\"'\u201c\u2018(\[]?[A-Z0-9À-Þ\u0410-\u042F])")
_MARK = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_KEY = re.compile(r"^[^:.!?\d]{2,50}:\s+\S")
_LONGEST = 1_000
_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
_LINK = re.compile(r"\[([^\]]{1,200})\]\([^)\s]{1,400}\)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, and the node whose output it came in."""

    path: str
    title: str
    text: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement. `topic` is the heading above it; `line` the text to quote, `text` the one to read."""

    text: str
    line: str
    topic: str
    passage: Passage


def passage_of(value: Any, node: str = "") -> Passage | None:
    """Return a search hit, a document or a web page as a passage; None for anything else."""
    if not isinstance(value, dict):
        return None
    text = value.get("passage", value.get("text"))
    path = value.get("path", value.get("url"))
    if not isinstance(text, str) or not isinstance(path, str):
        return None
    title = value.get("title")
    return Passage(path, title if isinstance(title, str) and title.strip() else _stem(path), text, node)


def _stem(path: str) -> str:
    return re.sub(r"[-_]+", " ", path.rsplit("/", 1)[-1].rsplit(".", 1)[0])


def sentences(passage: Passage) -> list[Sentence]:
    """Return the statements of a passage in order; table rows are read as `row: column value`."""
    found: list[Sentence] = []
    topic = passage.title
    for kind, block in _blocks(passage.text):
        if kind == "heading":
            topic = block[0]
        elif kind == "table":
            found += (Sentence(text, line, topic, passage) for text, line in _rows(block))
        else:
            text = _clean(" ".join(block))
            found += (Sentence(part, part, topic, passage) for part in split(text))
    return found


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Group lines: headings, tables, and paragraphs whose lines were only wrapped."""
    kind, block = "text", list[str]()
    for line in [*text.splitlines(), ""]:
        heading = _HEADING.match(line)
        new = "heading" if heading else "table" if line.count("|") >= 2 else "text"
        starts = not line.strip() or new != kind or bool(_MARK.match(line) or _KEY.match(_clean(line)))
        if (starts or heading) and not (new == kind == "table") and block:
            yield kind, block
            block = []
        kind = new
        if heading:
            yield "heading", [_clean(heading[2])]
        elif line.strip():
            block.append(line if new == "table" else _MARK.sub("", line).strip())


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", _EMPHASIS.sub("", _LINK.sub(r"\1", text))).strip()


def split(text: str) -> list[str]:
    """Split running text into sentences of at most 1,000 characters; abbreviations and initials do not end one."""
    parts, start = [], 0
    for match in _END.finditer(text):
        if _ABBREVIATION.search(text[start : match.end()]):
            continue
        parts.append(text[start : match.end()].strip())
        start = match.end()
    parts.append(text[start:].strip())
    return [part[:_LONGEST] for part in parts if part]


def _rows(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Read a table: with a header row each cell is named by its column, without one rows are `key: value`."""
    table = [[_clean(cell) for cell in line.strip().strip("|").split("|")] for line in lines if not _RULE.match(line)]
    headed = len(lines) > 1 and bool(_RULE.match(lines[1])) and len(table) > 1
    header = table[0] if headed else []
    for row, line in zip(
        table[1:] if headed else table, [item for item in lines if not _RULE.match(item)][bool(headed) :], strict=True
    ):
        quote = _clean(line.strip().strip("|").replace("|", " | "))
        if not header or (len(row) == 2 and not _names_rows(header)):
            yield f"{row[0]}: {' '.join(row[1:])}", quote
            continue
        for name, cell in zip(header[1:], row[1:], strict=False):
            if cell:
                yield f"{row[0]}: {_labelled(name, cell)}", quote


def _names_rows(header: list[str]) -> bool:
    return bool(header[0]) and header[0].lower() not in (
        "property",
        "key",
        "attribute",
        "fact",
        "field",
        "item",
        "name",
        "",
    )


def _labelled(column: str, cell: str) -> str:
    """Join a column's name with a cell, the unit in brackets after the number: `Length (km)`, `6,650`."""
    unit = re.search(r"\s*[(\[]([^)\]]{1,20})[)\]]\s*$", column)
    if unit and re.search(r"\d\s*$", cell):
        return f"{column[: unit.start()]} {cell} {unit[1]}"
    return f"{column} {cell}"
