"""Reads what a goal asks: one thing to look up, or one property of several
things to compare or to add.
"""

import re
from typing import NamedTuple

from sennit.activities.limits import MAX_RULED_CHARACTERS
from sennit.activities.providers.offline.sentences import stems

_ADJECTIVES = {
    "long": "length",
    "short": "length",
    "high": "height",
    "tall": "height",
    "low": "height",
}
_ADJECTIVES |= {
    "deep": "depth",
    "cheap": "price",
    "more expensive": "price",
    "most expensive": "price",
}
_LEAST = ("short", "low", "cheap")
_ADJECTIVE = f"(?P<adjective>{'|'.join(_ADJECTIVES)})(?P<degree>er|est|(?<=expensive))"
_IS, _NAMES = f"(?P<wins>is (?:the )?{_ADJECTIVE})", "(?P<names>.+?)"
_NOUN, _HOW_MUCH = "(?P<noun>[a-z][a-z -]*?)", "(?:,? and (?:by how much|how much .+ than the .+))?"
_RULES = (
    re.compile(rf"(?i)which {_IS}(?:,|:| of) {_NAMES}{_HOW_MUCH}"),
    re.compile(rf"(?i)which of {_NAMES} {_IS}{_HOW_MUCH}"),
    re.compile(rf"(?i)how much (?P<more>{_ADJECTIVE}) is {_NAMES}"),
    re.compile(rf"(?i)(?:compare|what is the difference between) the {_NOUN} of {_NAMES}"),
    re.compile(rf"(?i)what is the (?P<sum>total|combined) {_NOUN} of {_NAMES}"),
)
_BETWEEN_NAMES = re.compile(r"\s*[,;]\s*(?:(?:and|or) )?|\s+(?:and|or|than)\s+")
_NO_NAME = re.compile(
    r"(?i)\b(?:is|are|was|do|does|did|has|have|can|which|what|who|how|when|where|why|not)\b"
)
_NO_LOOK_UP = re.compile(
    rf"(?i)\b(?:and (?:who|what|when|where|which|why|how)|than|{_ADJECTIVE})\b"
)
_WHEN = re.compile(r"(?i)(?:(?:until|since) )?(?:when|(?:what|which) (?:day|date|year|month))\b")
_HOW_MANY = re.compile(
    r"(?i)(?:how (?:much|many|(?=long|high|tall|deep))|what (?=does .* cost$|is the [a-z ]+ of ))\b"
)
_WHO = re.compile(r"(?i)(?:who|what|which) (?:(?P<verb>is|are|was|were) )?(?P<rest>.+)")


class LookUp(NamedTuple):
    """A sentence answers that says all `words` and has the `form` of an answer."""

    words: frozenset[str]
    form: re.Pattern[str]


class Comparison(NamedTuple):
    """A property of `subjects`, by what tells them from each other; `wins` is said of that
    with most, or `least`.
    """

    property: str
    subjects: dict[str, str]
    wins: str
    least: bool
    adds: bool


def question(goal: str) -> LookUp | Comparison | None:
    """Return what a goal asks; None when no rule reads all of it."""
    text = " ".join(goal.split()).rstrip(" ?.!")
    if len(text) > MAX_RULED_CHARACTERS or "?" in text:
        return None
    for rule in _RULES:
        match = rule.fullmatch(text)
        comparison = _comparison(match.groupdict("")) if match else None
        if comparison:
            return comparison
    return None if _NO_LOOK_UP.search(text) else _look_up(text)


def _look_up(text: str) -> LookUp | None:
    """Return what a goal looks up, and how a sentence must be that answers."""
    # A number answers that the question does not say itself, and a year only where the
    # question asks for a time.
    for asks, other in ((_WHEN, "x"), (_HOW_MANY, r"(?:1[5-9]|20)\d\d")):
        match = asks.match(text)
        if match:
            others = "|".join([other, *re.findall(r"\d+", text)])
            return _asked(text[match.end() :], rf"\b(?!(?:{others})\b)\d")
    match = _WHO.fullmatch(text)
    if not match:
        return None
    # `Who owns the van` is answered by `... owns the van`, and `Who is the owner` also
    # by `The owner is ...`.
    verb, rest = match["verb"], re.escape(match["rest"])
    if verb:
        return _asked(match["rest"], rf"\w {verb} {rest}\b|\b{rest} {verb} \S")
    return _asked(match["rest"], rf"\w {rest}\b")


def _asked(rest: str, form: str) -> LookUp | None:
    words = stems(rest)
    if not words:
        return None
    return LookUp(words, re.compile(form, re.IGNORECASE))


def identity(name: str) -> str:
    """Return what tells a thing from others: `the river Oder` is `the Oder`."""
    return " ".join(sorted(stems(name))) or name.lower()


def _comparison(said: dict[str, str]) -> Comparison | None:
    """Return what a goal compares or adds; None where one of its parts can be no name."""
    subjects: dict[str, str] = {}
    for part in _BETWEEN_NAMES.split(said["names"]):
        name = part.strip(' .:"[]')
        if not name or _NO_NAME.search(name):
            return None
        subjects[identity(name)] = name
    if not 1 < len(subjects) < 25:
        return None
    noun, adjective = said.get("noun"), said.get("adjective", "").lower()
    if noun:
        return Comparison(
            noun, subjects, f"has the greatest {noun}", least=False, adds="sum" in said
        )
    wins = said.get("wins") or f"is {said['more']}"
    return Comparison(_ADJECTIVES[adjective], subjects, wins, least=adjective in _LEAST, adds=False)
