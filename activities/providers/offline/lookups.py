"""Questions about one thing, or the same about several, and those that a sentence of the documents answers."""

import re
from collections.abc import Iterator
from dataclasses import replace

from activities.providers.offline.families import ranked_question
from activities.providers.offline.grammar import BE, NAMES, POSITIVE, VERB, VERBS, attribute_of, terms_of
from activities.providers.offline.questions import Question
from activities.providers.offline.words import (
    ATTRIBUTES,
    COMPARISONS,
    EVENTS,
    Attribute,
    counted,
    dated,
    distance,
    is_known,
    named,
)

_EVENT = "|".join(sorted((*EVENTS, r"[a-z]+ed"), key=len, reverse=True))
_OPENED = {"open": "opened", "finish": "finished", "launch": "launched"}
_RUN = r"(?:run|fly|go|move|swim|get|dive|travel|sprint)"
_LIST = r"(?:list|show|state|name)\s+"


def lookup_question(text: str) -> Question | None:
    """Read `How long is A`, `What is the length of A`, `When was A completed`, `List the lengths of A and B`."""
    for attribute, names, strict in _readings(text):
        if attribute is not None and (ranked := _of_ranked(names, attribute)):
            return replace(ranked, text=text)
        terms = terms_of(names)
        if attribute is None or not terms or strict and len(terms) > 1 and not is_known(attribute):
            continue
        return Question("lookup" if len(terms) == 1 else "list", text, attribute, terms)
    return None


def _of_ranked(names: str, attribute: Attribute) -> Question | None:
    """`How tall is the tallest building` asks which is the tallest."""
    ranked = ranked_question(names)
    same = ranked is not None and ranked.attribute is not None and ranked.attribute.name == attribute.name
    return ranked if same else None


def _readings(text: str) -> Iterator[tuple[Attribute | None, str, bool]]:
    """Yield each way to read the text: (attribute, names, whether the attribute must be a known one for several)."""
    for pattern, name in _FIXED:
        if found := pattern.fullmatch(text):
            yield ATTRIBUTES[name], found["names"], False
    if found := _FAR.fullmatch(text):
        yield distance(found["target"]), found["names"], False
    if found := _BIG_NOUN.fullmatch(text):
        yield _if_known(found["noun"]), found["names"], True
    for pattern in _HOW:
        if found := pattern.fullmatch(text):
            yield attribute_of(found["adj"], None)[0], found["names"], False
    if found := _VERB.fullmatch(text):
        yield ATTRIBUTES[VERBS[found["verb"].lower()]], found["names"], False
    for pattern in _MANY:
        if found := pattern.fullmatch(text):
            yield counted(found["noun"]), found["names"], False
    for pattern in _WHEN:
        if found := pattern.fullmatch(text):
            event = found["event"].lower()
            yield dated(_OPENED.get(event, event)), found["names"], False
    yield from _nouns(text)


def _nouns(text: str) -> Iterator[tuple[Attribute | None, str, bool]]:
    listed = re.match(_LIST, text, re.IGNORECASE)
    body = re.sub(rf"^(?:{_LIST}|what\s+{BE}\s+)", "", text, flags=re.IGNORECASE)
    for found in re.finditer(r"\s+of\s+(?:each\s+of\s+)?", body):
        noun, names = body[: found.start()], body[found.end() :]
        attribute = named(noun) if listed else _if_known(noun)
        if attribute is not None:
            yield attribute, names, False
    if found := _POSSESSIVE.fullmatch(body):
        yield _if_known(found["noun"]), found["names"], True
    if found := _HAVE.fullmatch(text):
        yield _if_known(found["noun"]), found["names"], True


def _if_known(noun: str) -> Attribute | None:
    found = named(noun)
    return found if found is not None and is_known(found) else None


_FIXED = [
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (rf"how\s+long\s+{BE}\s+(?:a|one|the)\s+day\s+(?:on|of)\s+{NAMES}", "length of a day"),
        (
            r"how\s+long\s+(?:does|do|did)\s+(?P<names>.+?)\s+(?:take|need)\s+to\s+(?:orbit|circle|go\s+(?:a)?round)\b.*",
            "orbital period",
        ),
        (
            r"how\s+long\s+does\s+it\s+take\s+(?:for\s+)?(?P<names>.+?)\s+to\s+(?:orbit|circle|go\s+(?:a)?round)\b.*",
            "orbital period",
        ),
        (r"how\s+(?:long|old)\s+(?:does|do|can|may)\s+(?P<names>.+?)\s+(?:live|get|become)", "life span"),
        (rf"how\s+fast\s+(?:does|do|can|did|may)\s+(?P<names>.+?)\s+{_RUN}", "speed"),
        (r"(?:at\s+)?what\s+temperature\s+(?:does|do)\s+(?P<names>.+?)\s+melt(?:\s+at)?", "melting point"),
        (r"(?:at\s+)?what\s+temperature\s+(?:does|do)\s+(?P<names>.+?)\s+boil(?:\s+at)?", "boiling point"),
        (r"how\s+many\s+people\s+live\s+in\s+(?P<names>.+)", "population"),
        (r"how\s+many\s+(?:inhabitants|people|residents)\s+(?:does|do)\s+(?P<names>.+?)\s+have", "population"),
        (r"how\s+many\s+people\s+speak\s+(?P<names>.+)", "number of speakers"),
        (r"how\s+(?:big|large)\s+an?\s+area\s+(?:does|do)\s+(?P<names>.+?)\s+(?:cover|have)", "area"),
    )
]
_FAR = re.compile(
    r"(?:how\s+far\s+(?:is|are|away\s+is)|what\s+is\s+the\s+(?:average\s+|mean\s+)?distance\s+(?:between|of|from))\s+(?P<names>.+?)\s+"
    r"(?:(?:away\s+)?from|to|and)\s+(?P<target>(?:the\s+)?[\w -]+)",
    re.IGNORECASE,
)
_BIG_NOUN = re.compile(
    rf"how\s+(?:{POSITIVE}|great|much)\s+{BE}\s+the\s+(?P<noun>[a-z ]+?)\s+of\s+{NAMES}", re.IGNORECASE
)
_HOW = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"how\s+(?P<adj>{POSITIVE})\s+{BE}\s+{NAMES}",
        rf"how\s+(?P<adj>{POSITIVE})\s+(?P<names>.+?)\s+{BE}",
        rf"how\s+many\s+[a-z]+\s+(?P<adj>{POSITIVE})\s+{BE}\s+{NAMES}",
    )
]
_VERB = re.compile(rf"how\s+much\s+(?:does|do|did|can|may)\s+(?P<names>.+?)\s+(?P<verb>{VERB})", re.IGNORECASE)
_MANY = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"how\s+many\s+(?P<noun>[a-z ]+?)\s+(?:does|do|did|has|have)\s+(?P<names>.+?)(?:\s+(?:have|got|contain))?",
        r"how\s+many\s+(?P<noun>[a-z ]+?)\s+are\s+(?:there\s+)?(?:in|on|of)\s+(?P<names>.+)",
        r"(?:what\s+is\s+)?the\s+number\s+of\s+(?P<noun>[a-z ]+?)\s+(?:in|on|of)\s+(?P<names>.+)",
    )
]
_WHEN = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:when|(?:in\s+)?(?:what|which)\s+year)\s+(?:was|were)\s+(?P<names>.+?)\s+(?P<event>{_EVENT})",
        r"(?:when|(?:in\s+)?(?:what|which)\s+year)\s+did\s+(?P<names>.+?)\s+(?P<event>open|finish|launch)",
    )
]
_POSSESSIVE = re.compile(r"(?P<names>.+?)'s?\s+(?P<noun>[a-z ]+)", re.IGNORECASE)
_HAVE = re.compile(r"what\s+(?P<noun>[a-z ]+?)\s+(?:does|do|has|have)\s+(?P<names>.+?)(?:\s+have)?", re.IGNORECASE)

_ASKS = re.compile(
    r"(?:(?:in|at|on|by|to|from|for|with)\s+)?(?:who|whom|whose|what|where|when|why|which|how)\b|(?:tell\s+me\s+about|describe)\s",
    re.IGNORECASE,
)
_RECKONS = re.compile(
    r"\b(?:than|together|combined|altogether|in\s+total|difference|ratio|average|times\s+(?:as|more)|sum|total|compare|compared|"
    r"plus|minus|percentage|per\s+cent|percent|both|each|every|all\s+the|it|they|its|their|them|or|would|should|if)\b",
    re.IGNORECASE,
)
_COMPARATIVE = re.compile(
    rf"\b(?:{'|'.join(word for word, item in COMPARISONS.items() if not item.superlative)}|more|less|fewer)\b",
    re.IGNORECASE,
)


def passage_question(text: str) -> Question | None:
    """Read a question that one sentence may answer; None when it asks to compare, count together or judge."""
    if not _ASKS.match(text) or _RECKONS.search(text) or _COMPARATIVE.search(text) or len(text) > 300:
        return None
    if len(re.findall(r"\w+", text)) < 3:
        return None
    return Question("passage", text)
