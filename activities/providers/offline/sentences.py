"""Passages of documents and the sentences in them: running text and `key: value` lines."""

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
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$")
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_KEY = re.compile(r"^[^:.!?\d]{2,50}:\s+\S")
_LINK = re.compile(r"\[([^\]]{1,200})\]\([^)\s]{1,400}\)")
_LONGEST = 1_000


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, and the node whose output it came in."""

    path: str
    title: str
    text: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement; `topic` is the heading above it."""

    text: str
    topic: str
    passage: Passage


def passage_of(value: dict[str, Any], node: str = "") -> Passage | None:
    """Return a search hit, a document or a web page as a passage; None for anything else."""
    text = value.get("passage", value.get("text"))
    path = value.get("path", value.get("url"))
    if not isinstance(text, str) or not isinstance(path, str):
        return None
    title = value.get("title")
    return Passage(path, title if isinstance(title, str) and title.strip() else stem_of(path), text, node)


def stem_of(path: str) -> str:
    """Return a file's name as words: `blue-lake` of `lakes/blue-lake.md` is `blue lake`."""
    return re.sub(r"[-_]+", " ", path.rsplit("/", 1)[-1].rsplit(".", 1)[0])


def sentences(passage: Passage) -> list[Sentence]:
    """Return the statements of a passage in order. Rows of tables are none: no cell says what it belongs to."""
    found: list[Sentence] = []
    topic = passage.title
    for heading, text in _blocks(passage.text):
        if heading:
            topic = text
        else:
            found += (Sentence(part, topic, passage) for part in split(text))
    return found


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Yield headings (True) and paragraphs, whose lines were only wrapped."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        heading, table = _HEADING.match(line), line.count("|") >= 2
        if block and (heading or table or not line.strip() or _MARK.match(line) or _KEY.match(_clean(line))):
            yield False, _clean(" ".join(block))
            block = []
        if heading:
            yield True, _clean(heading[1])
        elif line.strip() and not table:
            block.append(_MARK.sub("", line).strip())


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", _EMPHASIS.sub("", _LINK.sub(r"\1", text))).strip()


def split(text: str) -> list[str]:
    """Split running text into sentences of at most 1,000 characters; abbreviations and initials do not end one."""
    parts, start = [], 0
    for match in _END.finditer(text):
        if not _ABBREVIATION.search(text[start : match.end()]):
            parts.append(text[start : match.end()].strip())
            start = match.end()
    parts.append(text[start:].strip())
    return [part[:_LONGEST] for part in parts if part]
