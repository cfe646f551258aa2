"""Reads a question: its shape, and what it asks of what. Rules about wording only, none about the world."""

import re
from dataclasses import dataclass
from typing import Literal

from activities.providers.offline import words
from activities.providers.offline.words import Attribute, any_of

Shape = Literal["lookup", "compare", "difference", "sum"]
Groups = dict[str, str | None]

LONGEST = 400
"""Characters of a question that rules may read: some take time in its square."""
_COUNTING = ("more", "most", "fewer", "fewest")
_BE, _HAS, _THE, _NAMES = "(?:is|are|was|were)", "(?:has|have)", "(?:the |an? )?", "(?P<names>.+?)"
_A_AND_B, _A_THAN_B = "(?P<a>.+?) and (?:that of )?(?P<b>.+?)", "(?P<a>.+?)(?: have)? than (?P<b>.+?)"
_WHICH, _OF, _SEP = "(?:which|what|who)(?: one| [a-z]+)?", "(?:of|out of|among|between)", "(?: ?[,:;-] ?| )"
_ADJ, _DEGREE = f"(?P<adjective>{any_of(words.COMPARATIVES)})", f"(?P<degree>{any_of(words.DEGREES)})"
_LONG, _VERB = f"(?P<long>{any_of(words.ADJECTIVES)})", f"(?P<verb>{any_of(words.VERBS)})"
_NOUN, _THINGS = "(?P<noun>(?:number of )?[a-z][a-z -]*?)", "(?P<things>[a-z][a-z -]*?)"
_ALL, _ACT = "(?:together|combined|in total|in all)", "(?P<did>(?:first )?(?!(?:is|are|was|were) )[a-z]+)"

# The first wording that matches the whole question and makes sense decides.
_WORDINGS: tuple[tuple[Shape, str], ...] = (
    ("compare", f"{_WHICH} {_BE} {_THE}{_ADJ}(?: {_OF})?{_SEP}{_NAMES}"),
    ("compare", f"(?:{_WHICH} )?{_OF} {_NAMES},? (?:{_WHICH} )?{_BE} {_THE}{_ADJ}"),
    ("compare", f"{_WHICH} {_HAS} {_THE}{_DEGREE} {_NOUN} ?[,:;-] ?{_NAMES}"),
    ("compare", f"(?:{_WHICH} )?{_OF} {_NAMES},? (?:{_WHICH} )?{_HAS} {_THE}{_DEGREE} {_NOUN}"),
    ("compare", f"compare {_THE}{_NOUN} of {_NAMES}"),
    ("difference", f"(?:by )?how much {_ADJ} {_BE} {_A_THAN_B}"),
    ("difference", f"how (?:many|much) {_DEGREE} {_THINGS} (?:does|do|{_HAS}) {_A_THAN_B}"),
    ("difference", f"(?:what is )?{_THE}difference in {_NOUN} between {_A_AND_B}"),
    ("difference", f"(?:what is )?{_THE}difference between {_THE}{_NOUN} of {_A_AND_B}"),
    ("sum", f"(?:what {_BE} )?{_THE}(?:combined|total|sum of the) {_NOUN} of {_NAMES}"),
    ("sum", f"how {_LONG} {_BE} {_NAMES} {_ALL}"),
    ("sum", f"how many {_THINGS} (?:do|{_HAS}|live in|are in) {_NAMES} (?:have )?{_ALL}"),
    ("lookup", f"how long {_BE} a (?P<verb>day) on {_NAMES}"),
    ("lookup", f"(?:how (?:much|long|fast)|at what temperature) (?:does|do|can) {_NAMES} {_VERB}"),
    ("lookup", f"how {_LONG} {_BE} {_NAMES}"),
    ("lookup", f"how many {_THINGS} (?:does|do) {_NAMES} have"),
    ("lookup", f"how many {_THINGS} (?:live |are )(?:there )?(?:in|on|of) {_NAMES}"),
    ("lookup", f"(?:when|(?:in )?(?:what|which) year) {_BE} {_NAMES} (?P<event>(?:first )?[a-z]+(?:ed|ilt|rn))"),
    ("lookup", f"(?:what {_BE} |list |give )?{_THE}{_NOUN} of {_NAMES}"),
    ("lookup", f"what {_BE} {_NAMES}'s? {_NOUN}"),
    ("lookup", f"who {_ACT} {_NAMES}"),
)
_RULES = [(shape, re.compile(wording, re.IGNORECASE)) for shape, wording in _WORDINGS]

_POLITE = re.compile(r"(?i)(?:(?:please|(?:can|could) you|tell me(?! about)|do you know) )+")
_IN_UNIT = re.compile(rf"(?i),? in ({words.UNIT})$")
_LEAD = re.compile(rf"(?i),? and (?:by how (?:much|many [a-z]+)|how much {_ADJ} is it than the (?P<last>[a-z]+st))$")
_NO_NAME = re.compile(
    r"(?i)\b(?:is|are|was|do|does|did|has|have|can|which|what|who|how|when|where|why|than|it|by|not)\b"
)
_AND = re.compile(r"\s*[,;]\s*(?:(?:and|or) )?|\s+(?:and|or|vs\.?|versus)\s+")
_COMES_AND_GOES = re.compile(r"^(?:(?:the|an?) )?(?:(?:river|mount|mt\.?) )?|(?: river)?$")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which things. More wins where `sign` is 1, less where it is -1; `leads` asks by how much."""

    shape: Shape
    attribute: Attribute
    subjects: tuple[str, ...]
    sign: int = 1
    wins: str = ""
    leads: bool = False
    unit: str = ""


def question(goal: str) -> Question | None:
    """Return the question that a goal asks; None when no rule reads all of it."""
    head = _POLITE.sub("", " ".join(goal.replace("\u2019", "'").split()).rstrip(" ?.!"), count=1)
    head, unit, _ = (*_IN_UNIT.split(head, maxsplit=1), "", "")[:3]
    lead = _LEAD.search(head)
    head = head[: lead.start()] if lead else head
    for shape, pattern in _RULES if len(head) <= LONGEST else ():
        if (match := pattern.fullmatch(head)) and (read := _attribute(match.groupdict())):
            subjects, symbol = _subjects(match.groupdict()), words.unit_of(unit)
            led = lead is None or (shape == "compare" and (lead["last"] or len(subjects) == 2))
            if led and len(subjects) >= (1 if shape == "lookup" else 2):
                return Question(shape, read[0], subjects, *read[1:], lead is not None, symbol.symbol if symbol else "")
    return None


def _attribute(groups: Groups) -> tuple[Attribute, int, str] | None:
    """Return the attribute asked for, whether more (1) or less (-1) of it wins, and the words that say so."""
    said = {key: " ".join(text.lower().split()) for key, text in groups.items() if text}
    noun, sign, wins = said.get("things") or said.get("noun") or "", 1, ""
    if adjective := said.get("adjective"):
        noun, sign = words.COMPARATIVES[adjective]
        wins = f"is {'the ' if adjective.endswith('st') else ''}{adjective}"
    elif noun:
        degree = said.get("degree", "greatest")
        sign, wins = words.DEGREES[degree], f"has {'' if degree in _COUNTING else 'the '}{degree} {noun}"
        known = {noun, noun.removesuffix("s")} & words.ATTRIBUTES.keys()
        noun = f"number of {noun}" if not known and ("things" in said or degree in _COUNTING) else noun
    noun = noun or words.VERBS.get(said.get("verb", "")) or words.ADJECTIVES.get(said.get("long", ""), "")
    phrase = f"year in which it was {said['event']}" if "event" in said else f"{noun} of it"
    read = words.read_phrase(f"person who {said['did']} it" if "did" in said else phrase)
    return (read[0], sign, wins) if read else None


def _subjects(groups: Groups) -> tuple[str, ...]:
    """Return the different names of a match, none when a part of it cannot be a name."""
    parts = _AND.split(groups["names"] or "") if "names" in groups else [groups["a"] or "", groups["b"] or ""]
    names = [re.sub("^(?:both|either) ", "", part.strip(' .:,"[]')) for part in parts]
    good = all(re.search(r"[^\W_]", name) and len(name) <= 100 and not _NO_NAME.search(name) for name in names)
    return tuple({core(name): name for name in names}.values()) if good and len(names) < 25 else ()


def core(name: str) -> str:
    """Return what makes a name: no article, and no `river` or `mount`, which come and go."""
    return _COMES_AND_GOES.sub("", " ".join(name.lower().split())) or name.lower()
