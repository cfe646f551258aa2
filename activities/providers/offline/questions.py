"""Reads a goal: which question shapes it has, and of what. Rules about wording only, none about the world."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from activities.providers.offline.names import core, names_in
from activities.providers.offline.sentences import split
from activities.providers.offline.units import PATTERN, unit_of
from activities.providers.offline.words import (
    ATTRIBUTES,
    COMPARISONS,
    POSITIVES,
    Attribute,
    any_of,
    counted,
    dated,
    distance,
    named,
    singular,
)

Shape = Literal["lookup", "compare", "difference", "ratio", "sum", "superlative", "list", "passage"]
By = Literal["", "next", "last"]
Groups = dict[str, str | None]

_MOST_GOAL = 2_000
_MOST_PARTS = 6
_VERBS = {
    "weigh": "mass", "cost": "price", "live": "life span", "run": "speed", "swim": "speed", "fly": "speed",
    "melt": "melting point", "boil": "boiling point", "take to orbit": "orbital period",
}  # fmt: skip
_LESS = ("fewer", "fewest", "less", "least", "lower", "lowest", "smaller", "smallest", "shorter", "shortest")
_GREATER = ("more", "most", "higher", "highest", "larger", "largest", "greater", "greatest", "longer", "longest")

_BE = "(?:is|are|was|were)"
_HAS = "(?:has|have|had)"
_THE = "(?:the |an? )?"
_WHAT = f"(?:what {_BE} )?{_THE}"
_WHICH = "(?:which|what|who)(?: one| [a-z]+)?"
_SEP = r"(?: ?[,:;\u2013\u2014-]+ ?| )"
_ADJ = f"(?P<adj>{any_of(tuple(COMPARISONS))})"
_MOST = f"(?P<adj>{any_of(tuple(item.most for item in COMPARISONS.values()))})"
_LONG = f"(?P<long>{any_of(tuple(POSITIVES))})"
_AIM = r"(?: (?:to|from) (?P<target>(?:the )?\w+))?"
_MORE = f"(?P<more>{any_of((*_LESS, *_GREATER))})"
_EVENT = "(?P<event>first [a-z]+ed|[a-z]+(?:ed|ilt|rn))"
_WHEN = "(?P<when>first|earlier|earliest|last|later|latest)"
_NOUN = "(?P<noun>(?:number of )?[a-z ]+?)"
_NAMES, _FIRST, _SECOND = "(?P<names>.+?)", "(?P<first>.+?)", "(?P<second>.+?)"
_THAT = "(?:that of |those of |the [a-z ]+? of )?"
_TOGETHER = "(?:together|combined|in total|in all|altogether)"
_MUCH = f"how (?:much|far|many (?P<unit>{PATTERN}))"
_KIND = "(?P<family>[a-z][a-z -]*?)"
_HERE = "(?: (?:in|of) (?:all )?(?:the |these |my )?(?:documents|notes|folder|files|corpus))?"
_HEAT = "(?:at )?what temperature"
_VERB = f"(?P<verb>{any_of(tuple(_VERBS))})"
_YEAR = "(?:when|(?:in )?(?:what|which) year)"

# The first that matches and makes sense as a whole decides.
_WORDINGS: tuple[tuple[Shape, str], ...] = (
    ("compare", f"{_WHICH} {_BE} {_THE}{_ADJ}{_AIM}(?: of| out of| among)?{_SEP}{_NAMES}"),
    ("compare", f"{_WHICH} (?:of|out of|among) {_NAMES},? {_BE} {_THE}{_ADJ}{_AIM}"),
    ("compare", f"(?:of|between|among) {_NAMES},? {_WHICH} {_BE} {_THE}{_ADJ}{_AIM}"),
    ("compare", f"{_WHICH} {_HAS} {_THE}{_MORE} {_NOUN} ?[,:;\u2013\u2014-]+ ?{_NAMES}"),
    ("compare", f"{_WHICH} of {_NAMES} {_HAS} {_THE}{_MORE} {_NOUN}"),
    ("compare", f"{_WHICH} {_BE} {_EVENT} {_WHEN}{_SEP}{_NAMES}"),
    ("compare", f"{_WHICH} of {_NAMES} {_BE} {_EVENT} {_WHEN}"),
    ("compare", f"compare {_THE}{_NOUN} of {_FIRST} (?:with|to|against|and) {_THAT}{_SECOND}"),
    ("compare", f"compare {_THE}{_NOUN} of {_NAMES}"),
    ("compare", f"compare {_NAMES} by {_NOUN}"),
    ("difference", f"(?:by )?{_MUCH} {_ADJ} {_BE} {_THE}{_NOUN} of {_FIRST} than {_THAT}{_SECOND}"),
    ("difference", f"(?:by )?{_MUCH} {_ADJ}{_AIM} {_BE} {_FIRST} than {_SECOND}"),
    ("difference", f"by {_MUCH} {_BE} {_FIRST} {_ADJ}{_AIM} than {_SECOND}"),
    ("difference", f"how many {_MORE} {_NOUN} (?:does|do|did|{_HAS}) {_FIRST}(?: {_HAS})? than {_SECOND}"),
    ("difference", f"{_WHAT}difference (?:in|of) {_NOUN} between {_FIRST} and {_SECOND}"),
    ("difference", f"{_WHAT}difference between {_THE}{_NOUN} of {_FIRST} and {_THAT}{_SECOND}"),
    ("ratio", f"how many times (?:as )?(?:{_ADJ}|{_LONG}) (?:as )?{_BE} {_FIRST} (?:than|as) {_SECOND}"),
    ("ratio", f"how many times as {_LONG} as {_SECOND} {_BE} {_FIRST}"),
    ("ratio", f"{_WHAT}ratio (?:of|between) {_THE}{_NOUN} of {_FIRST} (?:to|and) {_THAT}{_SECOND}"),
    ("sum", f"{_WHAT}(?:combined|total|joint|sum of the) {_NOUN} of {_NAMES}"),
    ("sum", f"how {_LONG} {_BE} {_NAMES} {_TOGETHER}"),
    ("sum", f"how many {_NOUN} (?:do|{_HAS}|live in|are in) {_NAMES}(?: have)? {_TOGETHER}(?: have)?"),
    ("superlative", f"(?:(?:what|which|who) {_BE} |name )?{_THE}{_MOST} {_KIND}{_HERE}(?: by {_NOUN})?"),
    ("superlative", f"which {_KIND}{_HERE} {_BE} {_THE}{_MOST}{_AIM}(?: by {_NOUN})?"),
    ("superlative", f"which {_KIND}{_HERE} {_HAS} {_THE}{_MORE} {_NOUN}"),
    ("superlative", f"which {_KIND}{_HERE} {_BE} {_THE}{_EVENT} {_WHEN}"),
    ("list", f"(?:what are |list |give |show )?{_THE}{_NOUN} of (?:all (?:the )?|the |each |every ){_KIND}{_HERE}"),
    ("lookup", f"how long {_BE} (?:a|the) (?P<day>day) on {_NAMES}"),
    ("lookup", f"(?:how (?:much|long|fast)|{_HEAT}) (?:does|do|can) {_NAMES} {_VERB}(?: at| (?:the|around) .+)?"),
    ("lookup", f"how far (?:{_BE}|away is) {_NAMES} (?:away )?(?:from|to) (?P<target>.+)"),
    ("lookup", f"how {_LONG} {_BE} {_NAMES}"),
    ("lookup", f"how {_LONG} {_NAMES} {_BE}"),
    ("lookup", f"how many (?P<things>[a-z ]+?) (?:does|do|did|{_HAS}) {_NAMES}(?: have)?"),
    ("lookup", f"how many (?P<things>[a-z ]+?) (?:live |are )(?:there )?(?:in|on|of) {_NAMES}"),
    ("lookup", f"{_YEAR} {_BE} {_NAMES} {_EVENT}"),
    ("lookup", f"(?:what {_BE} |list |give |show ){_THE}{_NOUN} of (?:each of )?{_NAMES}"),
    ("lookup", f"what {_BE} {_NAMES}'s? {_NOUN}"),
)  # fmt: skip
_RULES = [(shape, re.compile(wording, re.IGNORECASE)) for shape, wording in _WORDINGS]

_POLITE = re.compile(
    r"(?:please|(?:can|could|would|will) you|tell me(?! about)|do you know|find out|find|calculate|give me|also) ",
    re.IGNORECASE,
)
_UNIT = re.compile(rf",? in (?P<unit>{PATTERN})(?=$|,? and\b)")
_IN_YEAR = re.compile(r" in (1\d{3}|20\d{2})$")
_BY_HOW_MUCH = re.compile(r",? and (?:by how (?:much|many(?: \w+)?)|what is the difference)$", re.IGNORECASE)
_LEAD = re.compile(
    rf",? and how (?:much|far|many \w+) {any_of(tuple(COMPARISONS))} is (?:it|that)(?: than the (?P<than>[a-z]+))?$",
    re.IGNORECASE,
)
_REPEATED = re.compile(r",? and how (?P<long>[a-z]+) (?:is|are) (?:it|they|that)$", re.IGNORECASE)
_PARTS = re.compile(r" ?; |,? and (?=(?:in |by )?(?:how|what|which|when|who|where|why)\b)", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|they|he|she)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:(?:in|at|on|by|to|from|for|with) )?(?:who|whom|whose|what|where|when|why|which|how)\b|"
    r"(?:is|are|was|were|does|did|can|has)\b|tell me about ",
    re.IGNORECASE,
)
_NO_KIND = re.compile(
    r"\b(?:in|of|on|from|that|with|and|or|to|at|by|for|than|is|are|it|things?|ones?|names?|which|whose|who|between|has|"
    r"have|the|their)\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question; a `passage` is one that no rule reads. `sign` is 1 where more of the attribute wins.

    `by` asks for the winner's lead over the next or the last; `family` is the kind of thing that a folder-wide question
    ranges over; `unit` the symbol of the unit asked for.
    """

    shape: Shape
    text: str
    attribute: Attribute | None = None
    subjects: tuple[str, ...] = ()
    sign: int = 1
    word: str = ""
    by: By = ""
    family: str = ""
    unit: str = ""
    year: int | None = None


class NotUnderstood(Exception):
    """A goal, or a part of it, that asks nothing, and why."""

    def __init__(self, part: str, why: str = "") -> None:
        super().__init__(part, why)
        self.part = part
        self.why = why


def questions(goal: str) -> tuple[Question, ...]:
    """Return the questions a goal asks, in order. Raises NotUnderstood where a part of it is no question."""
    text = goal.strip()
    if len(text) > _MOST_GOAL:
        raise NotUnderstood(text[:80], f"rules read goals of at most {_MOST_GOAL:,} characters")
    pieces = re.split(r"(?<=\?)\s+|\n\s*\n?", text)
    parts = [part for piece in pieces for part in split(piece.strip()) if re.search(r"\w", part)]
    found: list[Question] = []
    for part in parts:
        found += _sentence(part, found)
    if not found:
        raise NotUnderstood(text[:80])
    if len(found) > _MOST_PARTS:
        raise NotUnderstood(text[:80], f"rules answer at most {_MOST_PARTS} questions at once")
    return tuple(found)


def _sentence(text: str, before: list[Question]) -> list[Question]:
    one = question(_resolved(text, before))
    if one is not None:
        return [one]
    found: list[Question] = []
    for piece in _PARTS.split(_clean(text)):
        said = _resolved(piece, [*before, *found])
        each = question(said)
        if each is None and (not _ASKS.match(said) or len(re.findall(r"\w+", said)) < 3):
            raise NotUnderstood(piece)
        found.append(each or Question("passage", said))
    return found


def _resolved(text: str, before: list[Question]) -> str:
    """Put the one thing just asked about in the place of a pronoun."""
    names = before[-1].subjects if before else ()
    return _PRONOUN.sub(lambda _: names[0], text, count=1) if len(names) == 1 else text


def _clean(text: str) -> str:
    """Return a sentence without politeness, contractions, doubled spaces and end marks."""
    words = re.sub(r"[?.!\s]+$", "", re.sub(r"\s+", " ", text.replace("\u2019", "'")).strip())
    for _ in range(4):
        words = _POLITE.sub("", words, count=1) if _POLITE.match(words) else words
    return re.sub(r"^(what|who|how|where|which)'s ", r"\1 is ", words, flags=re.IGNORECASE)


def question(text: str) -> Question | None:
    """Return the question about a property that one sentence asks; None when no rule reads all of it."""
    head, symbol = _clean(text), ""
    if (found := _UNIT.search(head)) and (unit := unit_of(found["unit"])):
        head, symbol = head[: found.start()] + head[found.end() :], unit.symbol
    if year := _IN_YEAR.search(head):
        head = head[: year.start()]
    head, by, repeated = _tail(head)
    for shape, pattern in _RULES:
        match = pattern.fullmatch(head)
        one = _read(shape, match.groupdict()) if match else None
        if one is None or one.attribute is None:
            continue
        asked = unit_of(one.unit or symbol)
        sizes = ("time",) if one.attribute.dated else one.attribute.dimensions
        fits = asked is None or not sizes or asked.dimension in sizes
        leads = not by or (one.shape == "compare" and (by == "last" or len(one.subjects) <= _MOST_PARTS))
        ranked = one.shape in ("compare", "superlative") and POSITIVES.get(repeated) == one.attribute.name
        timed = not year or not (one.attribute.dated or one.family)
        if not (fits and leads and timed and (ranked or not repeated)):
            return None
        symbol = asked.symbol if asked and not one.attribute.dated else ""
        return replace(one, text=text.strip(), by=by, unit=symbol, year=int(year[1]) if year else None)
    return None


def _tail(text: str) -> tuple[str, By, str]:
    """Cut what asks for the winner's lead, or for its own figure: (rest, lead over whom, adjective of the figure)."""
    if found := _BY_HOW_MUCH.search(text):
        return text[: found.start()], "next", ""
    if found := _LEAD.search(text):
        than = (found["than"] or "next").lower()
        if than in COMPARISONS or than in ("next", "second", "other"):
            return text[: found.start()], "last" if than in COMPARISONS else "next", ""
    if found := _REPEATED.search(text):
        return text[: found.start()], "", found["long"].lower()
    return text, "", ""


def _read(shape: Shape, groups: Groups) -> Question | None:
    """Return the question that the groups of a match make; None when a name, kind or attribute is none."""
    attribute, sign, word = _property(groups)
    if attribute is None or (shape in ("sum", "ratio") and not attribute.scale):
        return None
    unit = unit_of(groups.get("unit") or "")
    one = Question(shape, "", attribute, (), sign, word, unit=unit.symbol if unit else "")
    if "family" in groups:
        family = _kind(groups["family"] or "", plural=shape == "list")
        return replace(one, family=family) if family else None
    listed = names_in(re.sub(f" {_TOGETHER}$", "", groups.get("names") or "", flags=re.IGNORECASE))
    sides = [names_in(groups.get(side) or "") for side in ("first", "second")]
    both = (*sides[0], *sides[1]) if [len(side) for side in sides] == [1, 1] else ()
    subjects = tuple({core(name): name for name in listed or both}.values())
    if shape == "lookup":
        return replace(one, shape="lookup" if len(subjects) == 1 else "list", subjects=subjects) if subjects else None
    return replace(one, subjects=subjects) if len(subjects) > 1 else None


def _property(groups: Groups) -> tuple[Attribute | None, int, str]:
    """The attribute asked for, whether more (1) or less (-1) of it wins, and the word that said so."""
    adjective, noun, long = ((groups.get(key) or "").lower() for key in ("adj", "noun", "long"))
    more, verb, event = ((groups.get(key) or "").lower() for key in ("more", "verb", "event"))
    if groups.get("day"):
        return ATTRIBUTES["length of a day"], 1, ""
    if adjective:
        found = COMPARISONS[re.sub(r"\s+", " ", adjective)]
        target = groups.get("target")
        if noun:
            return None if found.attribute == "year of origin" else named(noun), found.sign, adjective
        if (found.attribute == "distance") != bool(target):
            return None, 1, ""
        return distance(target) if target else ATTRIBUTES[found.attribute], found.sign, adjective
    if long:
        return ATTRIBUTES[POSITIVES[long]], 1, long
    if verb:
        return ATTRIBUTES[_VERBS[verb]], 1, ""
    if target := groups.get("target"):
        return distance(target), 1, ""
    if things := groups.get("things"):
        return counted(things), 1, ""
    if event:
        when = (groups.get("when") or "").lower()
        early = when in ("first", "earlier", "earliest")
        return dated(event), -1 if early else 1, "first" if early else "last"
    known = named(noun)
    if more in ("more", "most", "fewer", "fewest") and (known is None or known.name not in ATTRIBUTES):
        known = counted(noun)
    return known, -1 if more in _LESS else 1, more


def _kind(text: str, *, plural: bool) -> str:
    """Return the kind of thing in the singular, lower-case words, none of them a preposition or verb; else nothing."""
    words = text.strip()
    if words != words.lower() or not 0 < len(words.split()) <= 3 or _NO_KIND.search(words):
        return ""
    one = singular(words)
    return "" if plural and one == words else one
