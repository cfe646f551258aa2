"""Questions that set named things against each other: which is longer, is A longer than B."""

import re

from activities.providers.offline.grammar import (
    ADJECTIVE,
    AIM,
    BE,
    FEW,
    MORE,
    NAMES,
    VERB,
    VERBS,
    WHICH,
    attribute_of,
    terms_of,
)
from activities.providers.offline.questions import By, Question
from activities.providers.offline.words import ATTRIBUTES, EVENTS, dated, named

_EVENT = "|".join(sorted(EVENTS, key=len, reverse=True))
_GAP = r"\s*[,:;\u2013\u2014-]+\s*"
_ADJECTIVE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{WHICH}\s+{BE}\s+(?:the\s+)?(?P<adj>{ADJECTIVE})(?:\s+[a-z]+)?{AIM}{_GAP}(?:is\s+it\s+)?{NAMES}",
        rf"{WHICH}\s+{BE}\s+(?:the\s+)?(?P<adj>{ADJECTIVE}){AIM}\s+{NAMES}",
        rf"{WHICH}\s+(?:of|out of|among)\s+(?:these:?\s+)?{NAMES}\s*,?\s+{BE}\s+(?:the\s+)?(?P<adj>{ADJECTIVE}){AIM}(?:\s+(?:one|[a-z]+))?",
        rf"(?:of|between|among|out of)\s+{NAMES}\s*,?\s+{WHICH}\s+{BE}\s+(?:the\s+)?(?P<adj>{ADJECTIVE}){AIM}(?:\s+one)?",
        rf"{NAMES}{_GAP}{WHICH}\s+{BE}\s+(?:the\s+)?(?P<adj>{ADJECTIVE}){AIM}(?:\s+one)?",
        rf"{BE}\s+{NAMES}\s+(?P<adj>{ADJECTIVE})",
    )
]
_HAS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{WHICH}\s+(?:has|have|had)\s+(?:the\s+|a\s+)?{MORE}\s+(?P<noun>[a-z ]+?){_GAP}{NAMES}",
        rf"{WHICH}\s+of\s+{NAMES}\s+(?:has|have|had)\s+(?:the\s+|a\s+)?{MORE}\s+(?P<noun>[a-z ]+)",
        rf"(?:of|between|among)\s+{NAMES}\s*,?\s+{WHICH}\s+(?:has|have|had)\s+(?:the\s+|a\s+)?{MORE}\s+(?P<noun>[a-z ]+)",
    )
]
_FIRST = re.compile(
    rf"{WHICH}\s+(?:{BE}\s+)?(?P<event>{_EVENT})\s+(?P<when>first|earlier|earliest|last|later|latest|(?:most|more)\s+recently)"
    rf"(?:{_GAP}|\s+){NAMES}",
    re.IGNORECASE,
)
_VERB = re.compile(
    rf"{WHICH}\s+(?P<verb>{VERB})\s+(?:the\s+)?(?P<more>more|most|less|least|longer|longest|shorter|shortest)(?:{_GAP}|\s+){NAMES}",
    re.IGNORECASE,
)
_DEGREE = re.compile(
    rf"{WHICH}\s+(?P<verb>melts|boils)\s+at\s+(?:a|the)\s+(?P<more>higher|highest|lower|lowest)\s+temperature(?:{_GAP}|\s+){NAMES}",
    re.IGNORECASE,
)
_COMMAND = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"compare\s+the\s+(?P<noun>[a-z ]+?)\s+of\s+{NAMES}",
        rf"compare\s+{NAMES}\s+(?:by|in\s+terms\s+of|with\s+respect\s+to)\s+(?:their\s+)?(?P<noun>[a-z ]+)",
        rf"(?:rank|sort|order)\s+{NAMES}\s+(?:by|in\s+order\s+of)\s+(?:their\s+)?(?P<noun>[a-z ]+)",
    )
]
_IS_MORE = re.compile(rf"{BE}\s+(?P<first>.+?)\s+(?P<adj>{ADJECTIVE}){AIM}\s+than\s+(?P<second>.+)", re.IGNORECASE)


def by_adjective(text: str, by: By) -> Question | None:
    """`Which is longer, A or B`, `Which of A, B and C is the longest`."""
    for pattern in _ADJECTIVE:
        found = pattern.fullmatch(text)
        terms = terms_of(found["names"]) if found else None
        if found and terms and len(terms) > 1:
            attribute, sign = attribute_of(found["adj"], found.groupdict().get("target"))
            if attribute is not None:
                return Question("compare", text, attribute, terms, sign, found["adj"].lower(), by)
    return None


def by_noun(text: str, by: By) -> Question | None:
    """`Which has the higher melting point, A or B`, `Which of A and B has more moons`."""
    for pattern in _HAS:
        found = pattern.fullmatch(text)
        terms = terms_of(found["names"]) if found else None
        if not found or not terms or len(terms) < 2:
            continue
        more = found["more"].lower()
        attribute = named(found["noun"])
        if more in ("more", "most", "fewer", "fewest") and (attribute is None or attribute.name not in ATTRIBUTES):
            attribute = named(f"number of {found['noun']}")
        if attribute is not None:
            return Question("compare", text, attribute, terms, -1 if more in FEW else 1, more, by)
    return None


def by_event(text: str, by: By) -> Question | None:
    """`Which was completed first, A or B`."""
    found = _FIRST.fullmatch(text)
    terms = terms_of(found["names"]) if found else None
    attribute = dated(found["event"]) if found else None
    if not found or not terms or len(terms) < 2 or attribute is None:
        return None
    when = found["when"].lower()
    return Question("compare", text, attribute, terms, -1 if when in ("first", "earlier", "earliest") else 1, when, by)


def by_verb(text: str, by: By) -> Question | None:
    """`Which weighs more, A or B`, `Which melts at the higher temperature, A or B`."""
    found = _VERB.fullmatch(text) or _DEGREE.fullmatch(text)
    terms = terms_of(found["names"]) if found else None
    if not found or not terms or len(terms) < 2:
        return None
    points = {"melts": "melting point", "boils": "boiling point"}
    verb, more = found["verb"].lower(), found["more"].lower()
    attribute = ATTRIBUTES[points.get(verb) or VERBS[verb]]
    return Question("compare", text, attribute, terms, -1 if more in FEW else 1, more, by)


def by_command(text: str, by: By) -> Question | None:
    """`Compare the lengths of A and B`, `Compare A and B by length`, `Rank A, B and C by length`."""
    for pattern in _COMMAND:
        found = pattern.fullmatch(text)
        names = (
            re.sub(r"\s+(?:with|to|against)\s+(?:(?:that|those)\s+of\s+)?", " and ", found["names"]) if found else ""
        )
        terms = terms_of(names) if found else None
        attribute = named(found["noun"]) if found else None
        if terms and len(terms) > 1 and attribute is not None:
            return Question("compare", text, attribute, terms, 1, "", by)
    return None


def check(text: str, by: By) -> Question | None:
    """`Is A longer than B`."""
    found = _IS_MORE.fullmatch(text)
    if not found or by:
        return None
    attribute, sign = attribute_of(found["adj"], found["target"])
    terms = (terms_of(found["first"]) or ()) + (terms_of(found["second"]) or ())
    if attribute is None or len(terms) != 2:
        return None
    return Question("check", text, attribute, terms, sign, found["adj"].lower())
