"""Questions that range over all documents of a kind: the longest river, the lengths of the rivers, which rivers."""

import re
from dataclasses import replace

from activities.providers.offline.grammar import AIM, BE, FEW, MORE, SUPERLATIVE, attribute_of
from activities.providers.offline.owners import singular
from activities.providers.offline.questions import Question
from activities.providers.offline.words import EVENTS, dated, named

_RANKS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_RANK = rf"(?P<rank>{'|'.join(_RANKS)}|(?:top\s+)?(?:{'|'.join(_COUNTS)}|\d{{1,2}}))?[\s-]*"
_FAMILY = r"(?P<family>[a-z][a-z -]*?)"
_ALL = r"(?:all\s+(?:of\s+)?)?(?:the\s+)?"
_HERE = (
    r"(?:\s+(?:(?:in|on|of|from|among)\s+(?:all\s+)?(?:(?:the|this|these|your|my)\s+)?(?:whole\s+)?"
    r"(?:world|earth|planet|solar\s+system|documents?|notes?|folder|corpus|collection|files|them\s+all|all|texts?)|"
    r"(?:are\s+)?(?:there|described|mentioned|covered|listed|here)(?:\s+in\s+the\s+(?:documents?|notes?|folder|corpus|files))?))?"
)
_BY = r"(?:\s+by\s+(?P<by>[a-z ]+))?"
_START = r"(?:(?:what|which|who)\s+(?:is|are|was|were)\s+|name\s+|list\s+|show\s+)?(?:the\s+)?"

_RANKED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_START}{_RANK}(?P<adj>{SUPERLATIVE})\s+{_FAMILY}{_HERE}{_BY}",
        rf"{_START}{_RANK}(?P<adj>closest|nearest|farthest|furthest)\s+{_FAMILY}{AIM}",
        rf"which\s+{_FAMILY}{_HERE}\s+{BE}\s+(?:the\s+)?{_RANK}(?P<adj>{SUPERLATIVE}){AIM}{_HERE}{_BY}",
        rf"which\s+{_FAMILY}{_HERE}\s+(?:has|have)\s+the\s+{_RANK}{MORE}\s+(?P<noun>[a-z ]+?){_HERE}",
        rf"{_START}{_FAMILY}{_HERE}\s+with\s+the\s+{_RANK}{MORE}\s+(?P<noun>[a-z ]+?){_HERE}",
    )
]
_FIRST = re.compile(
    rf"which\s+{_FAMILY}{_HERE}\s+(?:{BE}\s+)?(?:the\s+)?(?P<event>{'|'.join(EVENTS)})\s+(?P<when>first|last|earliest|latest|most\s+recently)",
    re.IGNORECASE,
)
_SORTED = re.compile(
    rf"(?:rank|sort|order|list)\s+{_ALL}{_FAMILY}{_HERE}\s+(?:by|in\s+order\s+of)\s+(?P<noun>[a-z ]+?)"
    r"(?:,?\s+(?P<order>from\s+.+|ascending|descending|.+\s+first))?",
    re.IGNORECASE,
)
_VALUES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?:what\s+are|list|show|name|state)\s+)?(?:the\s+)?(?P<noun>[a-z ]+?)\s+of\s+(?:all\s+(?:of\s+)?(?:the\s+)?|the\s+|each\s+of\s+the\s+|every\s+|each\s+){_FAMILY}{_HERE}",
        rf"list\s+{_ALL}{_FAMILY}{_HERE}\s+(?:and|with)\s+(?:their|its)\s+(?P<noun>[a-z ]+)",
        rf"how\s+(?P<adj>[a-z]+)\s+are\s+(?:all\s+(?:of\s+)?)?the\s+{_FAMILY}{_HERE}",
    )
]
_MEMBERS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:list|name|show)\s+{_ALL}{_FAMILY}{_HERE}",
        rf"(?:which|what)\s+{_FAMILY}\s+(?:are\s+(?:there|described|mentioned|covered|listed)|do\s+(?:the\s+)?(?:documents|notes|you)\s+\w+){_HERE}",
        rf"how\s+many\s+{_FAMILY}\s+(?:are\s+(?:there|described|mentioned|covered|listed)|do\s+(?:the\s+)?(?:documents|notes|you)\s+\w+){_HERE}",
    )
]
_NOT_A_KIND = re.compile(
    r"\b(?:in|of|on|from|that|with|and|or|to|at|by|for|than|is|are|it|thing|things|one|ones|name|names|documents?|notes?|files?|"
    r"there|which|whose|who|between|has|have|the|their)\b"
)


def ranked_question(text: str) -> Question | None:
    """Read `What is the longest river`, `Which planet has the most moons`, `the three highest mountains`."""
    for pattern in _RANKED:
        found = pattern.fullmatch(text)
        family = kind_of(found["family"]) if found else None
        if not found or family is None:
            continue
        groups = found.groupdict()
        if groups.get("adj"):
            attribute, sign = attribute_of(groups["adj"], groups.get("target"))
            if groups.get("by"):
                attribute = named(groups["by"])
            word = groups["adj"].lower()
        else:
            attribute = named(groups["noun"])
            if groups["more"].lower() in ("most", "fewest", "more", "fewer") and not _known(groups["noun"]):
                attribute = named(f"number of {groups['noun']}")
            sign = -1 if groups["more"].lower() in FEW else 1
            word = groups["more"].lower()
        if attribute is None:
            continue
        question = Question("superlative", text, attribute, (), sign, word, family=family)
        return _placed(question, (groups.get("rank") or "").lower())
    found = _FIRST.fullmatch(text)
    family = kind_of(found["family"]) if found else None
    if found and family and (event := dated(found["event"])):
        sign = -1 if found["when"].lower() in ("first", "earliest") else 1
        return Question("superlative", text, event, (), sign, found["when"].lower(), family=family)
    return None


def _known(noun: str) -> bool:
    found = named(noun)
    return found is not None and found.name.startswith("number of")


def _placed(question: Question, rank: str) -> Question:
    if rank in _RANKS:
        return replace(question, rank=_RANKS[rank])
    count = rank.removeprefix("top").strip()
    top = _COUNTS.get(count) or (int(count) if count.isdigit() else 1)
    return replace(question, top=max(1, min(top, 50)))


def family_question(text: str) -> Question | None:
    """Read `List the rivers`, `List the lengths of the rivers`, `Rank the rivers by length`, `How many rivers are there`."""
    found = _SORTED.fullmatch(text)
    family = kind_of(found["family"], plural=True) if found else None
    if found and family and (attribute := named(found["noun"])) is not None:
        up = re.search(
            r"from\s+(?:short|small|low|least|light|young|slow|cold)|ascending|smallest|shortest|lowest",
            found["order"] or "",
        )
        return Question("superlative", text, attribute, (), -1 if up else 1, "ranked", family=family, top=50)
    for pattern in _VALUES:
        found = pattern.fullmatch(text)
        family = kind_of(found["family"], plural=True) if found else None
        if found and family:
            groups = found.groupdict()
            attribute = named(groups["noun"]) if groups.get("noun") else attribute_of(groups["adj"], None)[0]
            if attribute is not None:
                return Question("list", text, attribute, family=family)
    for pattern in _MEMBERS:
        found = pattern.fullmatch(text)
        family = kind_of(found["family"], plural=True) if found else None
        if family:
            return Question("members", text, family=family)
    return None


def kind_of(text: str, *, plural: bool = False) -> str | None:
    """Return the kind of thing in the singular: lower-case words, none of them a preposition or verb."""
    words = text.strip()
    if words != words.lower() or not 0 < len(words.split()) <= 3 or _NOT_A_KIND.search(words):
        return None
    head, _, last = words.rpartition(" ")
    one = singular(last)
    if plural and one == last:
        return None
    return f"{head} {one}".strip()
