"""Reads a question: its shape, and what it asks of what. Rules about wording only, none about the world."""

import re
from dataclasses import dataclass
from typing import Literal

from sennit.activities.limits import MAX_RULED_CHARACTERS
from sennit.activities.providers.offline.figures import COMPARATIVES, UNIT, any_of, core, measure, unit_of
from sennit.activities.providers.offline.statements import stems

Shape = Literal["lookup", "compare", "difference", "sum"]
Groups = dict[str, str | None]

_MORE = any_of(["more", "most", "larger", "largest", "greater", "greatest", "higher", "highest", "bigger", "biggest"])
_LESS = any_of(["less", "least", "fewer", "fewest", "smaller", "smallest", "lower", "lowest"])
_MEASURED = any_of(["long", "high", "tall", "deep", "wide", "heavy", "fast", "large", "old"])
_COUNTING = ("more", "most", "fewer", "fewest")
_BE, _HAS, _THE, _NAMES = "(?:is|are|was|were)", "(?:has|have)", "(?:the |an? )?", "(?P<names>.+?)"
_A_AND_B, _A_THAN_B = "(?P<a>.+?) and (?:that of )?(?P<b>.+?)", "(?P<a>.+?)(?: have)? than (?P<b>.+?)"
_WHICH, _OF, _SEP = "(?:which|what|who)(?: one| [a-z]+)?", "(?:of|out of|among|between)", "(?: ?[,:;-] ?| )"
_ADJ, _DEGREE = f"(?P<adjective>{any_of(COMPARATIVES)})", f"(?P<degree>{_MORE}|{_LESS})"
_NOUN = "(?P<noun>(?:number of )?[a-z][a-z -]*?)"
_IS, _OWNS = f"{_BE} {_THE}{_ADJ}", f"{_HAS} {_THE}{_DEGREE} {_NOUN}"

# The first wording that matches the whole question and makes sense decides.
_WORDINGS: tuple[tuple[Shape, str], ...] = (
    ("compare", f"{_WHICH} (?:{_IS}(?: {_OF})?{_SEP}|{_OWNS} ?[,:;-] ?){_NAMES}"),
    ("compare", f"(?:{_WHICH} )?{_OF} {_NAMES},? (?:{_WHICH} )?(?:{_IS}|{_OWNS})"),
    ("compare", f"compare {_THE}{_NOUN} of {_NAMES}"),
    ("difference", f"(?:by )?how much {_ADJ} {_BE} {_A_THAN_B}"),
    ("difference", f"how (?:many|much) {_DEGREE} {_NOUN} (?:does|do|{_HAS}) {_A_THAN_B}"),
    ("difference", f"how much {_DEGREE} (?:does|do|did) (?P<a>.+?) (?P<cost>cost) than (?P<b>.+?)"),
    ("compare", f"{_WHICH} (?P<cost>costs?) {_DEGREE} ?[,:;-] ?{_NAMES}"),
    ("difference", f"(?:what is )?{_THE}difference (?:in|between) {_THE}{_NOUN} (?:of|between) {_A_AND_B}"),
    ("sum", f"(?:what {_BE} )?{_THE}(?:combined|total|sum of the) {_NOUN} of {_NAMES}"),
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
    r"(?i)(?:in |on |at |by |from |for |to |until |since )?(?:(?P<reason>why)|"
    r"(?P<person>who|whom|whose|(?:what|which) (?:person|company|firm|supplier|provider|dealer|agency))|"
    rf"(?P<duration>how long (?=does|do|did|will|may|must))|(?P<figure>how (?=many|much|{_MEASURED}))|"
    r"(?P<time>when|(?:what|which) (?:day|date|year|time|month))|(?P<place>where)|how|what|which)\b"
)
_TAKES_CARE = re.compile(r"(?i)\b(?:in charge of|looks? after|looked after|(?:takes?|taking) care of|deals? with)\b")
_AMOUNTS = stems("cost population fee rate rent discount budget premium deposit salary percentage")
_NO_LOOK_UP = re.compile(
    rf"(?i)\b(?:and (?:[a-z]+ )?(?:who|what|when|where|which|why|how)|than|{_MORE}|{_LESS}|{any_of(COMPARATIVES)})\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which things. More wins where `sign` is 1, less where it is -1; `leads` asks by how much.

    `words` are those that a statement must carry that answers a look-up, and `kind` says what it must name: a person,
    time, duration, figure or reason, or anything.
    """

    shape: Shape
    words: frozenset[str]
    kind: str = ""
    unit: str = ""
    property: str = ""
    subjects: tuple[str, ...] = ()
    sign: int = 1
    wins: str = ""
    leads: bool = False


def question(goal: str) -> Question | None:
    """Return the question that a goal asks; None when no rule reads all of it."""
    whole = _POLITE.sub("", " ".join(goal.replace("\u2019", "'").split()).rstrip(" ?.!"), count=1)
    whole = _TAKES_CARE.sub("responsible for", whole)
    if len(whole) > MAX_RULED_CHARACTERS or "?" in whole:
        return None
    head, written, _ = (*_IN_UNIT.split(whole, maxsplit=1), "", "")[:3]
    unit = unit_of(written)
    symbol = unit.symbol if unit else ""
    lead = _LEAD.search(head)
    body = head[: lead.start()] if lead else head
    for shape, pattern in _RULES:
        if (match := pattern.fullmatch(body)) and (read := _property(match.groupdict())):
            subjects = _subjects(match.groupdict())
            led = lead is None or (shape == "compare" and (lead["last"] or len(subjects) == 2))
            if led and len(subjects) > 1:
                return Question(shape, frozenset(), "", symbol, read[0], subjects, *read[1:], leads=lead is not None)
    asks = _ASKS.match(head)
    words = stems(head[asks.end() :]) if asks else frozenset()
    is_one = words and not _NO_LOOK_UP.search(head)
    return Question("lookup", words, _kind(asks, words), symbol) if asks and is_one else None


def _kind(asks: re.Match[str], words: frozenset[str]) -> str:
    """Return what a statement must name that answers."""
    is_figure = measure(words) or words & _AMOUNTS
    return asks.lastgroup or ("figure" if is_figure else "")


def _property(groups: Groups) -> tuple[str, int, str] | None:
    """Return the property asked for, whether more (1) or less (-1) of it wins, and the words that say so."""
    said = {key: " ".join(text.lower().split()) for key, text in groups.items() if text}
    if adjective := said.get("adjective"):
        word, sign = COMPARATIVES[adjective]
        return word, sign, f"is {'the ' if adjective.endswith('st') or 'most' in adjective else ''}{adjective}"
    degree, noun = said.get("degree", "greatest"), said.get("noun", "")
    if "cost" in said:
        return "price", -1 if re.fullmatch(_LESS, degree) else 1, f"costs {degree}"
    wins = f"has {'' if degree in _COUNTING else 'the '}{degree} {noun}"
    prop = f"number of {noun}" if degree in _COUNTING else noun
    return (prop, -1 if re.fullmatch(_LESS, degree) else 1, wins) if noun else None


def _subjects(groups: Groups) -> tuple[str, ...]:
    """Return the different names of a match, none when a part of it cannot be a name."""
    parts = _AND.split(groups["names"] or "") if "names" in groups else [groups["a"] or "", groups["b"] or ""]
    names = [re.sub("^(?:both|either) ", "", part.strip(' .:,"[]')) for part in parts]
    good = all(re.search(r"[^\W_]", name) and len(name) <= 100 and not _NO_NAME.search(name) for name in names)
    return tuple({core(name): name for name in names}.values()) if good and len(names) < 25 else ()
