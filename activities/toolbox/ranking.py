"""Words of a query, and which passages answer it best.

A question names a subject and often a quantity ("length of the Nile"). Plain BM25 prefers whichever passage
repeats the rarer word; here the document about the subject comes first, then the passage that has the quantity,
under its own name or a related word ("6,650 kilometres long").
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

MOST_TERMS: Final = 16

_WORD: Final = re.compile(r"[^\W_]+")
_COMMON_WORDS: Final = (
    "a about an and any are as at be been by can did do does find for from get give had has have how i in into is "
    "it its list many me more most much my of on or per please s show t tell than that the their there these this "
    "to was we were what when where which while who whose why will with you"
)
_STOP_WORDS: Final = frozenset(_COMMON_WORDS.split())
_QUANTITIES: Final = tuple(
    (frozenset(names.split()), frozenset(units.split()))
    for names, units in (
        ("length long longer longest", "kilometres kilometers km miles"),
        ("height high higher highest tall taller tallest elevation altitude", "metres meters feet"),
        ("depth deep deeper deepest", "metres meters feet"),
        ("width wide wider widest broad", "metres meters feet"),
        ("area surface size large larger largest", "square hectares"),
        ("size large larger largest big bigger biggest", ""),
        ("diameter across radius", "kilometres kilometers km"),
        ("population inhabitants people residents populous", "million"),
        ("mass weight heavy heavier heaviest weighs", "kilograms tonnes tons"),
        ("speed fast faster fastest velocity", "kilometres kilometers miles"),
        ("age old older oldest lifespan", "years"),
        ("temperature hot hotter hottest cold colder coldest warm", "degrees celsius"),
        ("distance far farther farthest away", "kilometres kilometers km miles"),
        ("discharge discharges flow flows carries", "cubic"),
        ("volume holds", "cubic"),
        ("cost price cheap cheaper cheapest expensive", "dollars euros"),
        ("founded established created started founding", ""),
        ("built completed finished opened construction", ""),
        ("born birth", ""),
        ("died death", ""),
        ("speakers spoken speak speaks", "million"),
    )
)
_QUANTITY_AS_SUBJECT: Final = 0.3
"""A document titled "Length" is seldom what a question about some length is about."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query, the words that may stand for it, and the units that hint at it."""

    word: str
    kin: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hits:
    """The passages that have a term: in the document's title, in their text, by a related word, by a unit."""

    title: Set[int]
    text: Set[int]
    kin: Set[int]
    units: Set[int]

    def worth(self, row: int) -> float:
        """How well a passage covers the term, from 0 to 1."""
        graded = ((self.text, 1.0), (self.kin, 0.8), (self.title, 0.6), (self.units, 0.4))
        return next((worth for rows, worth in graded if row in rows), 0.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may answer."""

    row: int
    title_words: int
    leads: bool
    """Whether it is the first of its document, where the main facts stand."""
    lexical: float
    """BM25; higher is better."""


def words(text: str) -> list[str]:
    """Return the words of `text` in lower case, without the most common ones unless there are no others."""
    found = _WORD.findall(unicodedata.normalize("NFC", text).lower())
    return [word for word in found if word not in _STOP_WORDS] or found


def terms(query: str) -> list[Term]:
    """Return the distinct terms of a query in its order, at most 16."""
    distinct = list(dict.fromkeys(words(query)))[:MOST_TERMS]
    return [_term(word, distinct) for word in distinct]


def rank(candidates: Sequence[Candidate], hits: Mapping[Term, Hits], total: int) -> list[tuple[float, int]]:
    """Return (score, row) of every candidate, best first; equal scores keep the order of rows."""
    weights = {
        term: math.log(1 + total / len(present))
        for term, found in hits.items()
        if (present := found.title | found.text | found.kin)
    }
    best = max((each.lexical for each in candidates), default=0.0) or 1.0
    scored = [(_score(each, hits, weights) + 0.3 * each.lexical / best, each.row) for each in candidates]
    return sorted(((round(score, 4), row) for score, row in scored), key=lambda pair: (-pair[0], pair[1]))


def _score(candidate: Candidate, hits: Mapping[Term, Hits], weights: Mapping[Term, float]) -> float:
    about = subjects = covered = whole = 0.0
    in_title = 0
    for term, weight in weights.items():
        found = hits[term]
        subject = weight * (_QUANTITY_AS_SUBJECT if term.kin else 1.0)
        subjects += subject
        whole += weight
        if candidate.row in found.title:
            about += subject
            in_title += 1
        covered += weight * found.worth(candidate.row)
    exact = min(1.0, in_title / max(1, candidate.title_words))
    subject_share = about / (subjects or 1.0) * (0.3 + 0.7 * exact)
    covered_share = covered / (whole or 1.0)
    return 2.0 * subject_share + 1.5 * covered_share + 0.1 * candidate.leads


def _term(word: str, asked: Sequence[str]) -> Term:
    kin: set[str] = set()
    units: set[str] = set()
    for names, measured_in in _QUANTITIES:
        if word in names:
            kin |= names
            units |= measured_in
    return Term(word, tuple(sorted(kin.difference(asked))), tuple(sorted(units.difference(asked))))
