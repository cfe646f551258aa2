"""Reads a goal: which question shapes it has, and of what. Rules about wording only, none about the world."""

import re
from collections.abc import Callable
from dataclasses import replace

from activities.providers.offline import comparing, reckoning
from activities.providers.offline.families import family_question, ranked_question
from activities.providers.offline.grammar import ADJECTIVE, attribute_of, clean, unit_in
from activities.providers.offline.lookups import lookup_question, passage_question
from activities.providers.offline.questions import By, Question
from activities.providers.offline.sentences import split
from activities.providers.offline.words import COMPARISONS

_MOST_GOAL = 2_000
_MOST_PARTS = 6
_MOST_RANKED = 6
_HOW_MUCH = re.compile(r",?\s+and\s+by\s+how\s+(?:much|many\s+\w+)(?:\s+(?:does\s+it|is\s+it)\s+\w+)?$", re.IGNORECASE)
_MARGIN = re.compile(r",?\s+and\s+what\s+is\s+the\s+difference(?:\s+between\s+(?:them|the\s+two))?$", re.IGNORECASE)
_DISTANCE = re.compile(
    rf",?\s+and\s+how\s+(?:much|far|many\s+\w+)\s+(?P<adj>{ADJECTIVE})\s+(?:is\s+it|it\s+is|is\s+that)(?:\s+than\s+(?:the\s+)?(?P<than>[a-z -]+))?$",
    re.IGNORECASE,
)
_REPEATED = re.compile(r",?\s+and\s+how\s+(?P<adj>[a-z]+)\s+(?:is\s+it|are\s+they|it\s+is|is\s+that)$", re.IGNORECASE)
_PARTS = re.compile(
    r"\s*;\s+|,?\s+and\s+(?=(?:also\s+)?(?:(?:in|by)\s+)?(?:how|what|which|when|who|where|why)\b)", re.IGNORECASE
)
_PRONOUN = re.compile(r"\b(?:it|they|he|she)\b", re.IGNORECASE)
_BREAK = re.compile(r"(?<=\?)\s+|\n\s*\n?")


class NotUnderstood(Exception):
    """A goal, or a part of it, that no rule reads. `part` is that part, `whole` whether there is no other."""

    def __init__(self, part: str, *, whole: bool, why: str = "") -> None:
        super().__init__(part)
        self.part = part
        self.whole = whole
        self.why = why


def questions(goal: str) -> tuple[Question, ...]:
    """Return the questions a goal asks, in order. Raises NotUnderstood unless every part of it is understood."""
    text = goal.strip()
    if len(text) > _MOST_GOAL:
        raise NotUnderstood(text[:80], whole=True, why=f"rules read goals of at most {_MOST_GOAL:,} characters")
    parts = [part for piece in _BREAK.split(text) for part in split(piece.strip()) if re.search(r"\w", part)]
    found: list[Question] = []
    for part in parts:
        found += _sentence(part, found, whole=len(parts) == 1)
    if not found:
        raise NotUnderstood(text[:80], whole=True)
    if len(found) > _MOST_PARTS:
        raise NotUnderstood(text[:80], whole=True, why=f"rules answer at most {_MOST_PARTS} questions at once")
    return tuple(found)


def _sentence(text: str, before: list[Question], *, whole: bool) -> list[Question]:
    one = question(_resolved(text, before))
    if one is not None:
        return [one]
    pieces = _PARTS.split(clean(text))
    found: list[Question] = []
    for piece in pieces:
        said = _resolved(piece, [*before, *found])
        each = question(said) or passage_question(clean(said))
        if each is None:
            raise NotUnderstood(text if len(pieces) == 1 else piece, whole=whole and len(pieces) == 1)
        found.append(each)
    return found


def _resolved(text: str, before: list[Question]) -> str:
    """Put the one thing just asked about in the place of a pronoun."""
    names = before[-1].subjects if before else ()
    return _PRONOUN.sub(lambda _: names[0], text, count=1) if len(names) == 1 else text


def question(text: str) -> Question | None:
    """Return the question about a property that one sentence asks; None when no rule reads it."""
    head, unit = unit_in(clean(text))
    head, year = _year(head)
    head, by, repeated = _tail(head)
    for rule in _RULES:
        found = rule(head, by)
        if found is not None:
            return _checked(replace(found, text=text.strip(), unit=found.unit or unit, year=year), repeated)
    return None


def _checked(found: Question, repeated: str) -> Question | None:
    """Drop a reading that would leave a part of the sentence unanswered."""
    attribute = found.attribute
    if found.year is not None and (attribute is None or attribute.dated or found.family):
        return None
    if repeated and (
        attribute is None or found.shape not in ("compare", "superlative") or not _asks_same(repeated, found)
    ):
        return None
    if found.shape in ("sum", "ratio") and attribute is not None and not attribute.scale:
        return None
    if found.by == "next" and len(found.terms) > _MOST_RANKED:
        return None
    return found


def _asks_same(word: str, found: Question) -> bool:
    """Whether `and how long is it` asks for the very property that decided."""
    again = attribute_of(word, None)[0]
    return again is not None and found.attribute is not None and again.name == found.attribute.name


def _year(text: str) -> tuple[str, int | None]:
    found = re.search(r"\s+in\s+(1\d{3}|20\d{2})$", text)
    return (text[: found.start()], int(found[1])) if found else (text, None)


def _tail(text: str) -> tuple[str, By, str]:
    """Cut what asks for the winner's lead, or for its own figure: (rest, lead over whom, adjective of the figure)."""
    if found := _HOW_MUCH.search(text) or _MARGIN.search(text):
        return text[: found.start()], "next", ""
    if found := _DISTANCE.search(text):
        than = (found["than"] or "next").lower()
        known = COMPARISONS.get(than)
        if known is not None and known.superlative:
            return text[: found.start()], "least", ""
        if re.fullmatch(r"(?:next|second|runner-up|others?|other\s+one)(?:\s+[a-z]+)?", than):
            return text[: found.start()], "next", ""
    if found := _REPEATED.search(text):
        return text[: found.start()], "", found["adj"].lower()
    return text, "", ""


_RULES: tuple[Callable[[str, By], Question | None], ...] = (
    comparing.by_adjective,
    comparing.by_noun,
    comparing.by_event,
    comparing.by_verb,
    comparing.by_command,
    reckoning.difference,
    reckoning.difference_between,
    reckoning.ratio,
    comparing.check,
    reckoning.total,
    lambda text, by: None if by else ranked_question(text),
    lambda text, by: None if by else family_question(text),
    lambda text, by: None if by else lookup_question(text),
)
