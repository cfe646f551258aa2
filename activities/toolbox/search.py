"""`search`: the passages of the documents folder that answer a query best."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from activities.toolbox.context import ToolContext
from activities.toolbox.errors import IndexUnusable, ToolArgumentError
from activities.toolbox.index import current_index, discard_index, open_index
from activities.toolbox.paths import documents_root
from activities.toolbox.ranking import Candidate, Hits, Term, rank, terms
from activities.toolbox.registry import tool

_MOST_CANDIDATES: Final = 100
_CANDIDATES: Final = """
SELECT rowid, title_words, place, -bm25(passages, 8.0, 2.0, 1.0) AS lexical
FROM passages WHERE passages MATCH ? ORDER BY lexical DESC, rowid LIMIT ?
"""


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
    items: list[FoundPassage]


@tool(effect="read", timeout="60s", resource="file")
def search(args: SearchArguments, context: ToolContext) -> SearchResult:
    """Search the documents folder and return the passages that answer the query best.

    Words are matched whatever their case, accents and endings; operators and punctuation mean nothing. The
    answer depends on the present content of the documents alone.
    """
    asked = terms(args.query)
    if not asked:
        problem = "has no word to search for"
        raise ToolArgumentError(f"search: query: {problem}", field="query", problem=problem)
    items = _search(documents_root(context.docs), asked, args.k, context)
    return SearchResult(query=args.query, count=len(items), items=items)


def _search(root: Path, asked: list[Term], k: int, context: ToolContext) -> list[FoundPassage]:
    """Search the index; one that is damaged, or removed since it was found, is built again once."""
    try:
        index = current_index(root, context.cache, context.progress)
        return _best(index, asked, k)
    except sqlite3.DatabaseError:
        discard_index(index)
    index = current_index(root, context.cache, context.progress)
    try:
        return _best(index, asked, k)
    except sqlite3.DatabaseError as error:
        raise IndexUnusable(f"the search index cannot be read: {error}", retryable=True) from error


def _best(index: Path, asked: list[Term], k: int) -> list[FoundPassage]:
    with closing(open_index(index)) as connection:
        candidates = _candidates(connection, asked)
        (total,) = connection.execute("PRAGMA user_version").fetchone()
        hits = {term: _hits(connection, term) for term in asked}
        best = rank(candidates, hits, total)[:k]
        return [_passage(connection, row, score) for score, row in best]


def _candidates(connection: sqlite3.Connection, asked: list[Term]) -> list[Candidate]:
    """Collect what may be about the subject and what has the words, or else the related words.

    Titles are asked for on their own: BM25 gives a word next to no weight once half of all passages have it.
    """
    words = _any_of([term.word for term in asked])
    found = _matching(connection, f"title : ({words})") | _matching(connection, words)
    related = [word for term in asked for word in term.kin]
    if related and not found:
        found = _matching(connection, _any_of(related))
    return list(found.values())


def _matching(connection: sqlite3.Connection, match: str) -> dict[int, Candidate]:
    rows = connection.execute(_CANDIDATES, (match, _MOST_CANDIDATES))
    return {row: Candidate(row, title_words, place == 0, lexical) for row, title_words, place, lexical in rows}


def _hits(connection: sqlite3.Connection, term: Term) -> Hits:
    return Hits(
        title=_rows(connection, "title", [term.word]),
        text=_rows(connection, "heading text", [term.word]),
        kin=_rows(connection, "heading text", term.kin),
        units=_rows(connection, "text", term.units),
    )


def _rows(connection: sqlite3.Connection, columns: str, words: Sequence[str]) -> frozenset[int]:
    if not words:
        return frozenset()
    match = f"{{{columns}}} : ({_any_of(words)})"
    found = connection.execute("SELECT rowid FROM passages WHERE passages MATCH ?", (match,))
    return frozenset(row for (row,) in found)


def _any_of(words: Sequence[str]) -> str:
    """Return the FTS5 expression that any of `words` occurs; quoted, so that none is an operator."""
    return " OR ".join(f'"{word}"' for word in words)


def _passage(connection: sqlite3.Connection, row: int, score: float) -> FoundPassage:
    path, title, text = connection.execute("SELECT path, title, text FROM passages WHERE rowid = ?", (row,)).fetchone()
    return FoundPassage(path=path, title=title, passage=text, score=score)
