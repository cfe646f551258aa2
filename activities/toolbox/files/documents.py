"""A document's title, its text, and the passages that are searched."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from sennit.activities.limits import MAX_PASSAGE_CHARACTERS, MAX_TITLE_CHARACTERS
from sennit.activities.limits import MAX_PDF_BYTES as PDF_BYTES
from sennit.activities.toolbox.errors import DocumentUnreadable
from sennit.activities.toolbox.files.encodings import NotText, decoded
from sennit.activities.toolbox.files.markup import html_to_text
from sennit.activities.toolbox.files.pdf import is_pdf, pdf_text
from sennit.activities.toolbox.files.tables import TABLES, is_table, table_rows

_SHORT_PARAGRAPH: Final = 200
_HTML: Final = (".html", ".htm")
_MARKDOWN: Final = (".md", ".markdown")
_PDF: Final = ".pdf"
SEARCHABLE: Final = (*_HTML, *_MARKDOWN, ".txt", _PDF, *TABLES)
"""Endings, in lower case, of the files that are searched."""

_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?\n)??---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE: Final = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE)
_HEADING: Final = re.compile(r"(#{1,6})[ \t]++(.*)")
_FENCE: Final = re.compile(r"\s{0,3}(```|~~~)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document as text; headings are Markdown when the document has them. `encoding`
    is what it was read by.
    """

    title: str
    text: str
    encoding: str = "utf-8"

    @property
    def is_taken_for(self) -> str:
        """The encoding, if nothing in the document says that it is that."""
        return self.encoding if self.encoding in ("windows-1252", "latin-1") else ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph or a few short ones, verbatim, and the headings above it."""

    heading: str
    text: str


def most_bytes(path: str, usual: int) -> int:
    """Return how much of the file at `path` to read: `usual`, or a PDF whole."""
    if not path.lower().endswith(_PDF):
        return usual
    return PDF_BYTES + 1


def readable_text(
    path: str, content: bytes, *, whole: bool = True, of_pdf: Callable[[bytes], str] = pdf_text
) -> ReadableDocument:
    """Return title and text of the document at `path`. `whole` says whether `content` is all of it,
    `of_pdf` how the text of a PDF is found. Raises DocumentUnreadable for what is no text.
    """
    suffix = PurePosixPath(path).suffix.lower()
    try:
        if is_pdf(content):
            text, encoding = of_pdf(content), "pdf"
        else:
            text, encoding = decoded(content, whole=whole, html=suffix in _HTML)
    except NotText as problem:
        raise DocumentUnreadable(f"{path!r} {problem}") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if suffix in _HTML:
        title, text = html_to_text(text)
    elif suffix in _MARKDOWN:
        title, text = _markdown_title(text)
    elif suffix == ".txt":
        title = _first_line(text)
    fallback = PurePosixPath(path).stem.replace("_", " ").replace("-", " ").strip()
    return ReadableDocument(title[:MAX_TITLE_CHARACTERS] or fallback, text, encoding)


def passages(path: str, document: ReadableDocument, *, whole: bool = True) -> list[Passage]:
    """Divide the document at `path` into passages of at most 700 characters; its title stands for
    an empty one. Each row of a table is a passage of its own, with the names of its columns.

    Raises DocumentUnreadable for a table that cannot be divided into rows.
    """
    if is_table(path):
        try:
            rows = list(table_rows(path, document.text, whole=whole))
        except NotText as problem:
            raise DocumentUnreadable(f"{path!r} {problem}") from None
        passages: list[Passage] = []
        for row in rows:
            for piece in _pieces(row):
                passages.append(Passage("", piece))
        return passages or [Passage("", document.title)]
    found: list[Passage] = []
    for heading, paragraph in _paragraphs(document):
        last = None
        if found:
            last = found[-1]
        joined = ""
        if last:
            joined = f"{last.text}\n\n{paragraph}"
        if (
            last
            and last.heading == heading
            and len(last.text) < _SHORT_PARAGRAPH
            and len(joined) <= MAX_PASSAGE_CHARACTERS
        ):
            found[-1] = Passage(heading, joined)
        else:
            for piece in _pieces(paragraph):
                found.append(Passage(heading, piece))
    return found or [Passage("", document.title)]


def _markdown_title(text: str) -> tuple[str, str]:
    title = ""
    if front := _FRONT_MATTER.match(text):
        named = _FRONT_TITLE.search(front[1] or "")
        title = ""
        if named:
            title = named[1].strip().strip("\"'")
        text = text[front.end() :]
    if not title:
        for line in text.split("\n"):
            heading = _HEADING.fullmatch(line)
            if heading:
                title = _heading_text(heading)
                break
    return title, text


def _first_line(text: str) -> str:
    """The first line is a title if it is short, stands alone and does not end like a sentence."""
    first, _, rest = text.lstrip().partition("\n")
    is_alone = not rest.split("\n", 1)[0].strip(" =-")
    ends_like_sentence = first.rstrip().endswith((".", ":", ","))
    if not is_alone or len(first) > 80 or ends_like_sentence:
        return ""
    return first.strip()


def _heading_text(found: re.Match[str]) -> str:
    return found[2].strip().rstrip("#").strip()


def _paragraphs(document: ReadableDocument) -> Iterator[tuple[str, str]]:
    """Yield each paragraph with the headings above it; the title itself is no heading."""
    levels: dict[int, str] = {}
    lines: list[str] = []
    fenced = False
    heading = ""
    for line in (*document.text.split("\n"), ""):
        if _FENCE.match(line):
            fenced = not fenced
        found = None
        if not fenced:
            found = _HEADING.fullmatch(line)
        if found or not line.strip():
            if lines:
                yield heading, "\n".join(lines).strip()
            lines = []
        else:
            lines.append(line.rstrip())
        if found:
            level = len(found[1])
            levels = {above: text for above, text in levels.items() if above < level}
            levels[level] = _heading_text(found)
            headings = [text for text in levels.values() if text != document.title]
            heading = " > ".join(headings)
    if lines:
        yield heading, "\n".join(lines).strip()


def _pieces(paragraph: str) -> Iterator[str]:
    """Divide a long paragraph at sentence ends, then at spaces, then anywhere."""
    start = 0
    while len(paragraph) - start > MAX_PASSAGE_CHARACTERS:
        window = paragraph[start : start + MAX_PASSAGE_CHARACTERS]
        ends = [found.start() for found in _SENTENCE_END.finditer(window)]
        cut = window.rfind(" ")
        if ends:
            cut = ends[-1]
        elif cut <= 0:
            cut = MAX_PASSAGE_CHARACTERS
        yield window[:cut].strip()
        start += cut
        while start < len(paragraph) and paragraph[start].isspace():
            start += 1
    if paragraph[start:].strip():
        yield paragraph[start:].strip()
