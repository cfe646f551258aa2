"""Questions that need arithmetic: differences, sums, averages, ratios."""

import re

from activities.providers.offline.grammar import ADJECTIVE, AIM, UNIT, VERB, VERBS, attribute_of, terms_of, unit_in
from activities.providers.offline.questions import By, Question, Shape
from activities.providers.offline.words import ATTRIBUTES, Attribute, named

TOGETHER = r"(?:together|combined|in\s+total|in\s+all|altogether|taken\s+together|put\s+together|added\s+up)"
_PAIR = r"(?P<first>.+?)\s+than\s+(?P<second>.+)"
_MUCH = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:by\s+)?how\s+(?:much|far|many\s+(?P<unit>{UNIT}))\s+(?P<adj>{ADJECTIVE}){AIM}\s+(?:is|are|was|were)\s+{_PAIR}",
        rf"by\s+how\s+(?:much|many\s+(?P<unit>{UNIT}))\s+(?:is|are|was|were)\s+(?P<first>.+?)\s+(?P<adj>{ADJECTIVE}){AIM}\s+than\s+(?P<second>.+)",
        rf"how\s+much\s+(?P<more>more|less|longer|shorter)\s+(?:do|does|can)\s+(?P<first>.+?)\s+(?P<verb>{VERB})\s+than\s+(?P<second>.+)",
    )
]
_MANY_MORE = re.compile(
    r"how\s+many\s+(?P<more>more|fewer)\s+(?P<noun>[a-z ]+?)\s+(?:does|do|did|has|have|are\s+there\s+in|live\s+in|are\s+in)\s+"
    r"(?P<first>.+?)(?:\s+ha(?:ve|s))?\s+than\s+(?:in\s+)?(?P<second>.+)",
    re.IGNORECASE,
)
_DIFFERENCE = r"(?:what\s+is\s+)?(?:the\s+)?difference"
_BETWEEN = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_DIFFERENCE}\s+(?:in|of)\s+(?P<noun>[a-z ]+?)\s+between\s+(?P<names>.+)",
        rf"{_DIFFERENCE}\s+between\s+the\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<names>.+)",
        rf"{_DIFFERENCE}\s+between\s+(?P<names>.+)\s+(?:in|by)\s+(?P<noun>[a-z ]+)",
    )
]
_TIMES = re.compile(
    rf"how\s+many\s+times\s+(?:as\s+)?(?P<adj>{ADJECTIVE}|[a-z]+)\s+(?:(?:is|are|was|were|as)\s+)?(?P<first>.+?)\s+(?:than|as)\s+(?P<second>.+)",
    re.IGNORECASE,
)
_TIMES_TURNED = re.compile(
    r"how\s+many\s+times\s+as\s+(?P<adj>[a-z]+)\s+as\s+(?P<second>.+?)\s+(?:is|are)\s+(?P<first>.+)", re.IGNORECASE
)
_TIMES_NOUN = re.compile(
    r"how\s+many\s+times\s+the\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<second>.+?)\s+is\s+(?:that\s+of\s+|the\s+[a-z ]+?\s+of\s+)?(?P<first>.+)",
    re.IGNORECASE,
)
_RATIOS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:what\s+is\s+)?(?:the\s+)?ratio\s+(?:of|between)\s+the\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<first>.+?)\s+(?:to|and)\s+"
        r"(?:that\s+of\s+|the\s+[a-z ]+?\s+of\s+)?(?P<second>.+)",
        r"(?:what\s+is\s+)?(?:the\s+)?ratio\s+of\s+(?P<first>.+?)\s+to\s+(?P<second>.+)\s+(?:in|by)\s+(?P<noun>[a-z ]+)",
    )
]
_ASK = r"(?:what\s+(?:is|are)\s+)?(?:the\s+)?"
_TOTALS: list[tuple[Shape, re.Pattern[str]]] = [
    (
        "sum",
        re.compile(
            rf"{_ASK}(?:combined|total|joint|summed|added|overall)\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<names>.+)",
            re.IGNORECASE,
        ),
    ),
    ("sum", re.compile(rf"{_ASK}(?:sum|total)\s+of\s+the\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<names>.+)", re.IGNORECASE)),
    ("sum", re.compile(r"(?:add|sum)\s+(?:up\s+)?the\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<names>.+)", re.IGNORECASE)),
    ("sum", re.compile(rf"how\s+(?P<adj>[a-z]+)\s+(?:is|are)\s+(?P<names>.+?)\s+{TOGETHER}", re.IGNORECASE)),
    (
        "sum",
        re.compile(
            rf"how\s+many\s+(?P<noun>[a-z ]+?)\s+(?:do|does|have|live\s+in|are\s+in)\s+(?P<names>.+?)(?:\s+have)?\s+{TOGETHER}(?:\s+have)?",
            re.IGNORECASE,
        ),
    ),
    ("sum", re.compile(rf"how\s+much\s+do\s+(?P<names>.+?)\s+(?P<verb>{VERB})\s+{TOGETHER}", re.IGNORECASE)),
    ("sum", re.compile(rf"{_ASK}(?P<noun>[a-z ]+?)\s+of\s+(?P<names>.+?)\s+{TOGETHER}", re.IGNORECASE)),
    ("average", re.compile(rf"{_ASK}(?:average|mean)\s+(?P<noun>[a-z ]+?)\s+of\s+(?P<names>.+)", re.IGNORECASE)),
    ("average", re.compile(r"how\s+(?P<adj>[a-z]+)\s+are\s+(?P<names>.+)\s+on\s+average", re.IGNORECASE)),
]


def difference(text: str, by: By) -> Question | None:
    """`How much longer is A than B`, `By how much is A longer than B`, `How many more moons has A than B`."""
    for pattern in _MUCH if not by else ():
        found = pattern.fullmatch(text)
        if not found:
            continue
        groups = found.groupdict()
        if verb := groups.get("verb"):
            sign = -1 if groups["more"].lower() in ("less", "shorter") else 1
            return _two(
                text, "difference", ATTRIBUTES[VERBS[verb.lower()]], found["first"], found["second"], sign, verb
            )
        attribute, sign = attribute_of(groups["adj"], groups.get("target"))
        asked = _two(
            text, "difference", attribute, found["first"], found["second"], sign, groups["adj"], groups.get("unit")
        )
        if asked is not None:
            return asked
    if not by and (found := _MANY_MORE.fullmatch(text)):
        attribute = named(f"number of {found['noun']}")
        sign = -1 if found["more"].lower() == "fewer" else 1
        return _two(text, "difference", attribute, found["first"], found["second"], sign, found["more"])
    return None


def difference_between(text: str, by: By) -> Question | None:
    """`What is the difference in length between A and B`."""
    for pattern in _BETWEEN if not by else ():
        found = pattern.fullmatch(text)
        attribute = named(found["noun"]) if found else None
        terms = terms_of(re.sub(r"\s+and\s+that\s+of\s+", " and ", found["names"])) if found else None
        if attribute is not None and terms and len(terms) == 2:
            return Question("difference", text, attribute, terms)
    return None


def ratio(text: str, by: By) -> Question | None:
    """`How many times longer is A than B`, `What is the ratio of the length of A to that of B`."""
    if by:
        return None
    if found := _TIMES_NOUN.fullmatch(text):
        return _two(text, "ratio", named(found["noun"]), found["first"], found["second"], 1, "")
    if found := _TIMES_TURNED.fullmatch(text) or _TIMES.fullmatch(text):
        attribute, sign = attribute_of(found["adj"], None)
        return _two(text, "ratio", attribute, found["first"], found["second"], sign, found["adj"])
    for pattern in _RATIOS:
        if found := pattern.fullmatch(text):
            return _two(text, "ratio", named(found["noun"]), found["first"], found["second"], 1, "")
    return None


def total(text: str, by: By) -> Question | None:
    """`What is the combined length of A and B`, `How long are A and B together`, `the average height of A and B`."""
    for shape, pattern in _TOTALS if not by else ():
        found = pattern.fullmatch(text)
        attribute = _summed(found.groupdict()) if found else None
        names = re.sub(rf"\s+{TOGETHER}$", "", found["names"], flags=re.IGNORECASE) if found else ""
        terms = terms_of(names) if found else None
        if attribute is not None and terms and len(terms) > 1:
            return Question(shape, text, attribute, (tuple(name for term in terms for name in term),))
    return None


def _summed(groups: dict[str, str | None]) -> Attribute | None:
    if adjective := groups.get("adj"):
        return attribute_of(adjective, None)[0]
    if verb := groups.get("verb"):
        return ATTRIBUTES[VERBS[verb.lower()]]
    noun = groups.get("noun") or ""
    found = named(noun)
    return (
        found
        if found is not None and found.name in ATTRIBUTES
        else named(f"number of {noun}")
        if noun.endswith("s")
        else found
    )


def _two(
    text: str,
    shape: Shape,
    attribute: Attribute | None,
    first: str,
    second: str,
    sign: int,
    word: str,
    unit: str | None = None,
) -> Question | None:
    """A question of two terms, each one thing or several taken together."""
    together = re.search(rf"\s{TOGETHER}\b", f"{first} {second}", re.IGNORECASE)
    sides = [terms_of(re.sub(rf"\s+{TOGETHER}\b", "", part, flags=re.IGNORECASE)) for part in (first, second)]
    left, right = sides
    if attribute is None or not left or not right or (len(left) > 1 or len(right) > 1) and not together:
        return None
    terms = tuple(tuple(name for term in side for name in term) for side in (left, right))
    symbol = unit_in(f"x in {unit}")[1] if unit else ""
    return Question(shape, text, attribute, terms, sign, word.lower(), unit=symbol)
