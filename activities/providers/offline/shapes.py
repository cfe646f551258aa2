"""Reads a goal: which question shapes it has, and of what. Rules about wording only, none about the world."""

import re
from dataclasses import replace

from activities.providers.offline.grammar import COMPARED, clean, unit_in
from activities.providers.offline.questions import By, Question
from activities.providers.offline.quoting import passage_question
from activities.providers.offline.reading import attribute_of, read
from activities.providers.offline.rules import RULES
from activities.providers.offline.sentences import split
from activities.providers.offline.words import COMPARISONS

_MOST_GOAL = 2_000
_MOST_PARTS = 6
_HOW_MUCH = re.compile(
    r",? and (?:by how (?:much|many(?: \w+)?)|what is the difference(?: between (?:them|the two))?)$", re.IGNORECASE
)
_DISTANCE = re.compile(
    rf",? and how (?:much|far|many \w+) (?:{COMPARED}) (?:is it|it is|is that)(?: than (?:the )?(?P<than>[a-z -]+))?$",
    re.IGNORECASE,
)
_REPEATED = re.compile(r",? and how (?P<adj>[a-z]+) (?:is it|are they|it is|is that)$", re.IGNORECASE)
_NEXT = re.compile(r"(?:next|second|runner-up|others?|other one)(?: [a-z]+)?")
_PARTS = re.compile(r" ?; |,? and (?=(?:also )?(?:(?:in|by) )?(?:how|what|which|when|who|where|why)\b)", re.IGNORECASE)
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
    year = re.search(r" in (1\d{3}|20\d{2})$", head)
    head, by, repeated = _tail(head[: year.start()] if year else head)
    for shape, pattern in RULES:
        match = pattern.fullmatch(head)
        found = read(shape, match.groupdict()) if match else None
        if found is not None:
            whole = replace(
                found, text=text.strip(), by=by, unit=found.unit or unit, year=int(year[1]) if year else None
            )
            return whole if _covers(whole, repeated) else None
    return None


def _covers(found: Question, repeated: str) -> bool:
    """Whether the reading leaves no part of the sentence unanswered."""
    attribute = found.attribute
    if found.by and (found.shape != "compare" or (found.by == "next" and len(found.terms) > _MOST_PARTS)):
        return False
    if found.year is not None and (attribute is None or attribute.dated or found.family):
        return False
    if not repeated:
        return True
    again = attribute_of(repeated, None)[0]
    ranked = found.shape in ("compare", "superlative")
    return ranked and again is not None and attribute is not None and again.name == attribute.name


def _tail(text: str) -> tuple[str, By, str]:
    """Cut what asks for the winner's lead, or for its own figure: (rest, lead over whom, adjective of the figure)."""
    if found := _HOW_MUCH.search(text):
        return text[: found.start()], "next", ""
    if found := _DISTANCE.search(text):
        than = (found["than"] or "next").lower()
        if than in COMPARISONS and COMPARISONS[than].superlative:
            return text[: found.start()], "least", ""
        if _NEXT.fullmatch(than):
            return text[: found.start()], "next", ""
    if found := _REPEATED.search(text):
        return text[: found.start()], "", found["adj"].lower()
    return text, "", ""
