"""`search`: the passages of the documents folder that answer a query best."""

import re
import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from sennit.activities.limits import MAX_QUERY_WORDS
from sennit.activities.toolbox.definition import ToolContext
from sennit.activities.toolbox.errors import IndexUnusable, ToolArgumentError
from sennit.activities.toolbox.paths import documents_root
from sennit.activities.toolbox.registry import tool
from sennit.activities.toolbox.search.index import (
    current_index,
    discard_index,
    open_index,
    shortcomings,
)

_BEST: Final = """
SELECT path, title, text,
    round(-2.0 * bm25(passages, 1.0, 0.0, 0.0) - bm25(passages, 0.0, 2.0, 1.0), 4) AS score
FROM passages WHERE passages MATCH ? ORDER BY score DESC, rowid LIMIT ?
"""
"""Titles are scored apart from texts and count twice, so that a text that mentions a thing
never beats its own page.
"""

_WORD: Final = re.compile(r"[^\W_]+")
_COMMON_WORDS: Final = (
    "a about an and any are as at be been by can did do does find for from get give had has have "
    "how i in into is it its list many me more most much my of on or per please s show t tell than "
    "that the their there these this to was we were what when where which while who whose why will "
    "with you"
)
_STOP_WORDS: Final = frozenset(_COMMON_WORDS.split())


class SearchArguments(BaseModel):
    """What to look for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: Annotated[str, Field(min_length=1, max_length=400, description="Words or a question")]
    k: Annotated[int, Field(ge=1, le=20, description="How many passages to return at most")] = 3


class FoundPassage(BaseModel):
    """A passage, verbatim, and the document it stands in."""

    path: str
    title: str
    passage: str
    score: float


class SearchResult(BaseModel):
    """The best passages, best first."""

    query: str
    count: int
    not_read: Annotated[
        list[str], Field(description="What of the folder was not searched, and why")
    ] = []
    items: list[FoundPassage]


@tool(effect="read", timeout="60s", typical="50ms", resource="file")
def search(args: SearchArguments, context: ToolContext) -> SearchResult:
    """Search the documents folder and return the passages that answer the query best; `not_read`
    names the files that were not searched, or only in part. It reads text, Markdown, HTML, PDF, and
    CSV and TSV row by row.

    Words are matched whatever their case, accents and endings; operators and punctuation mean
    nothing. The answer depends on the present content of the documents alone.
    """
    match = _any_word_of(args.query)
    if not match:
        problem = "has no word to search for"
        raise ToolArgumentError(problem, tool="search", field="query")
    return _search(documents_root(context.docs), match, args, context)


def _any_word_of(query: str) -> str:
    """Return the FTS5 expression that any word of `query` occurs; empty when it has none.

    Each word is quoted, so that none is an operator. Stop words count only where
    there is no other word.
    """
    words = _WORD.findall(unicodedata.normalize("NFC", query).lower())
    telling = [word for word in words if word not in _STOP_WORDS] or words
    chosen = list(dict.fromkeys(telling))[:MAX_QUERY_WORDS]
    return " OR ".join(f'"{word}"' for word in chosen)


def _search(root: Path, match: str, args: SearchArguments, context: ToolContext) -> SearchResult:
    """Search the index; one that is damaged, or removed since it was found, is built again once."""
    try:
        index = current_index(root, context.cache, context.progress)
        return _best(index, match, args, context)
    except sqlite3.DatabaseError:
        discard_index(index)
    index = current_index(root, context.cache, context.progress)
    try:
        return _best(index, match, args, context)
    except sqlite3.DatabaseError as error:
        raise IndexUnusable(f"the search index cannot be read: {error}", retryable=True) from error


def _best(index: Path, match: str, args: SearchArguments, context: ToolContext) -> SearchResult:
    missing = shortcomings(index)
    for text in (*missing.not_read, *missing.doubtful):
        context.warn(text)
    with closing(open_index(index)) as connection:
        rows = connection.execute(_BEST, (match, args.k)).fetchall()
    items: list[FoundPassage] = []
    for path, title, text, score in rows:
        items.append(FoundPassage(path=path, title=title, passage=text, score=score))
    return SearchResult(query=args.query, count=len(items), not_read=missing.not_read, items=items)
