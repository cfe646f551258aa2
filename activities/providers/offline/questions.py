"""Reads a question: its shape, and what it asks of what. Rules about wording only, none about the world."""

import re
from dataclasses import dataclass
from typing import Literal

from sennit.activities.limits import MAX_RULED_CHARACTERS
from sennit.activities.providers.offline.figures import COMPARATIVES, UNIT, any_of, core, unit_of
from sennit.activities.providers.offline.statements import stems

Shape = Literal["lookup", "compare", "difference", "sum"]
Groups = dict[str, str | None]

_MORE = any_of(["more", "most", "larger", "largest", "greater", "greatest", "higher", "highest", "bigger", "biggest"])
_LESS = any_of(["less", "least", "fewer", "fewest", "smaller", "smallest", "lower", "lowest"])
_NOUNS = {"long": "length", "high": "height", "tall": "height", "deep": "depth", "wide": "width", "heavy": "mass"}
_NOUNS |= {"fast": "speed", "large": "area", "expensive": "price"}
_COUNTING = ("more", "most", "fewer", "fewest")
_BE, _HAS, _THE, _NAMES = "(?:is|are|was|were)", "(?:has|have)", "(?:the |an? )?", "(?P<names>.+?)"
_A_AND_B, _A_THAN_B = "(?P<a>.+?) and (?:that of )?(?P<b>.+?)", "(?P<a>.+?)(?: have)? than (?P<b>.+?)"
_WHICH, _OF, _SEP = "(?:which|what|who)(?: one| [a-z]+)?", "(?:of|out of|among|between)", "(?: ?[,:;-] ?| )"
_ADJ, _DEGREE = f"(?P<adjective>{any_of(COMPARATIVES)})", f"(?P<degree>{_MORE}|{_LESS})"
_LONG = f"(?P<long>{any_of(_NOUNS)})"
_NOUN, _THINGS = "(?P<noun>(?:number of )?[a-z][a-z -]*?)", "(?P<things>[a-z][a-z -]*?)"
_ALL = "(?:together|combined|in total|in all)"

# The first wording that matches the whole question and makes sense decides.
_WORDINGS: tuple[tuple[Shape, str], ...] = (
    ("compare", f"{_WHICH} {_BE} {_THE}{_ADJ}(?: {_OF})?{_SEP}{_NAMES}"),
    ("compare", f"(?:{_WHICH} )?{_OF} {_NAMES},? (?:{_WHICH} )?{_BE} {_THE}{_ADJ}"),
    ("compare", f"{_WHICH} {_HAS} {_THE}{_DEGREE} {_NOUN} ?[,:;-] ?{_NAMES}"),
    ("compare", f"(?:{_WHICH} )?{_OF} {_NAMES},? (?:{_WHICH} )?{_HAS} {_THE}{_DEGREE} {_NOUN}"),
    ("compare", f"compare {_THE}{_NOUN} of {_NAMES}"),
    ("difference", f"(?:by )?how much {_ADJ} {_BE} {_A_THAN_B}"),
    ("difference", f"how (?:many|much) {_DEGREE} {_THINGS} (?:does|do|{_HAS}) {_A_THAN_B}"),
    ("difference", f"how much {_DEGREE} (?:does|do) (?P<a>.+?) (?P<verb>weigh|cost) than (?P<b>.+?)"),
    ("difference", f"(?:what is )?{_THE}difference in {_NOUN} between {_A_AND_B}"),
    ("difference", f"(?:what is )?{_THE}difference between {_THE}{_NOUN} of {_A_AND_B}"),
    ("sum", f"(?:what {_BE} )?{_THE}(?:combined|total|sum of the) {_NOUN} of {_NAMES}"),
    ("sum", f"how {_LONG} {_BE} {_NAMES} {_ALL}"),
    ("sum", f"how many {_THINGS} (?:do|{_HAS}|live in|are in) {_NAMES} (?:have )?{_ALL}"),
    ("lookup", f"how {_LONG} {_BE} {_NAMES}"),
    ("lookup", f"how much (?:does|do) {_NAMES} (?P<verb>weigh|cost)"),
    ("lookup", f"how many {_THINGS} (?:does|do) {_NAMES} have"),
    ("lookup", f"how many {_THINGS} (?:live |are )(?:there )?(?:in|on|of) {_NAMES}"),
    ("lookup", f"what {_BE} {_THE}{_NOUN} of {_NAMES}"),
    ("lookup", f"what {_BE} {_NAMES}'s? {_NOUN}"),
)
_RULES = [(shape, re.compile(wording, re.IGNORECASE)) for shape, wording in _WORDINGS]

_POLITE = re.compile(r"(?i)(?:(?:please|(?:can|could) you|tell me(?! about)|do you know) )+")
_IN_UNIT = re.compile(rf"(?i),? in ({UNIT})$")
_LEAD = re.compile(rf"(?i),? and (?:by how (?:much|many [a-z]+)|how much {_ADJ} is it than the (?P<last>[a-z]+st))$")
_NO_NAME = re.compile(
    r"(?i)\b(?:is|are|was|do|does|did|has|have|can|which|what|who|how|when|where|why|than|it|by|not)\b"
)
_AND = re.compile(r"\s*[,;]\s*(?:(?:and|or) )?|\s+(?:and|or|vs\.?|versus)\s+")
_ASKS = re.compile(
    r"(?i)(?:in |on |at |by |from |for |to )?(?:(?P<person>who|whom|whose)|(?P<reason>why)|"
    r"(?P<duration>how long (?=does|do|did|will|may|must))|(?P<figure>how (?:many|much))|"
    r"(?P<time>when|(?:what|which) (?:day|date|year|time|month))|where|how|what|which)\b"
)
_NO_LOOK_UP = re.compile(
    rf"(?i)\b(?:and (?:who|what|when|where|which|why|how)|than|{_MORE}|{_LESS}|{any_of(COMPARATIVES)})\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which things. More wins where `sign` is 1, less where it is -1; `leads` asks by how much.

    `words` are those that a sentence must carry that answers a look-up, and `kind` says what it must name: a person,
    time, duration, figure or reason, or anything. The words of its `topic` may also stand in the title.
    """

    shape: Shape
    words: frozenset[str]
    topic: frozenset[str]
    kind: str = ""
    property: str = ""
    subjects: tuple[str, ...] = ()
    sign: int = 1
    wins: str = ""
    leads: bool = False
    unit: str = ""


def question(goal: str) -> Question | None:
    """Return the question that a goal asks; None when no rule reads all of it."""
    whole = _POLITE.sub("", " ".join(goal.replace("\u2019", "'").split()).rstrip(" ?.!"), count=1)
    if len(whole) > MAX_RULED_CHARACTERS or "?" in whole:
        return None
    head, unit, _ = (*_IN_UNIT.split(whole, maxsplit=1), "", "")[:3]
    lead = _LEAD.search(head)
    head = head[: lead.start()] if lead else head
    asks = _ASKS.match(head)
    said, _, topic = head[asks.end() if asks else 0 :].partition(" about ")
    words, topics, kind = stems(said), stems(topic), _kind(asks, head)
    for shape, pattern in _RULES:
        if (match := pattern.fullmatch(head)) and (read := _property(match.groupdict())):
            subjects, symbol = _subjects(match.groupdict()), unit_of(unit)
            led = lead is None or (shape == "compare" and (lead["last"] or len(subjects) == 2))
            if led and len(subjects) >= (1 if shape == "lookup" else 2):
                asked = symbol.symbol if symbol else ""
                return Question(shape, words, topics, kind, read[0], subjects, *read[1:], lead is not None, asked)
    is_one = asks is not None and bool(words) and head == whole and not _NO_LOOK_UP.search(head)
    return Question("lookup", words, topics, kind) if is_one else None


def _kind(asks: re.Match[str] | None, text: str) -> str:
    """Return what a sentence must name that answers."""
    named = [name for name, found in asks.groupdict().items() if found] if asks else []
    if named:
        return named[0]
    return "figure" if stems(text) & {"cost", "population"} else ""


def _property(groups: Groups) -> tuple[str, int, str] | None:
    """Return the property asked for, whether more (1) or less (-1) of it wins, and the words that say so."""
    said = {key: " ".join(text.lower().split()) for key, text in groups.items() if text}
    if adjective := said.get("adjective"):
        word, sign = COMPARATIVES[adjective]
        return word, sign, f"is {'the ' if adjective.endswith('st') or 'most' in adjective else ''}{adjective}"
    noun, degree = said.get("things") or said.get("noun") or "", said.get("degree", "greatest")
    sign = -1 if re.fullmatch(_LESS, degree) else 1
    if noun:
        is_count = "things" in said or degree in _COUNTING
        wins = f"has {'' if degree in _COUNTING else 'the '}{degree} {noun}"
        return f"number of {noun}" if is_count else noun, sign, wins
    asked = said.get("long") or said.get("verb")
    return ({**_NOUNS, "weigh": "mass", "cost": "price"}[asked], sign, said.get("degree", "")) if asked else None


def _subjects(groups: Groups) -> tuple[str, ...]:
    """Return the different names of a match, none when a part of it cannot be a name."""
    parts = _AND.split(groups["names"] or "") if "names" in groups else [groups["a"] or "", groups["b"] or ""]
    names = [re.sub("^(?:both|either) ", "", part.strip(' .:,"[]')) for part in parts]
    good = all(re.search(r"[^\W_]", name) and len(name) <= 100 and not _NO_NAME.search(name) for name in names)
    return tuple({core(name): name for name in names}.values()) if good and len(names) < 25 else ()
