"""What can be asked of a thing: attributes with the words that name them, and how they are compared."""

import re
from dataclasses import dataclass, replace

from activities.providers.offline import vocabulary

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One measurable property.

    `nouns` name it in questions and stand before a figure ("a length of 5 km"); `before` are further words before a
    figure ("stretches 5 km"); `after` stand right behind one ("5 km long"). `dimensions` are those a value may have
    (empty: any) and `unit` the one all values are converted to (empty: the dimension's usual one). `avoid` marks other
    kinds of the property, `requires` words that must be there; `accepts` names attributes whose figure answers too,
    best first. `dated` is a year, and without `scale` a sum or ratio has no meaning.
    """

    name: str
    dimensions: Words = ()
    unit: str = ""
    nouns: Words = ()
    before: Words = ()
    after: Words = ()
    avoid: Words = ()
    requires: Words = ()
    accepts: Words = ()
    dated: bool = False
    scale: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparative or superlative: which attribute, and whether more (1) or less (-1) of it is meant."""

    attribute: str
    sign: int
    superlative: bool


def _words(text: str) -> Words:
    return tuple(word.strip() for word in text.replace("METRO", vocabulary.METRO).split(",") if word.strip())


def _attributes() -> dict[str, Attribute]:
    found = {}
    for stanza in vocabulary.ATTRIBUTES.strip().split("\n\n"):
        head, *lines = stanza.splitlines()
        name, dimensions, unit = (part.strip() for part in head.split("|"))
        fields = [field.partition(": ") for line in lines for field in line.split("; ")]
        lists = {key: _words(text) for key, mark, text in fields if mark}
        flags = [key for key, mark, _ in fields if not mark]
        attribute = Attribute(name, _words(dimensions), unit, dated="dated" in flags, scale="no scale" not in flags)
        found[name] = replace(attribute, **lists)  # type: ignore[arg-type]  # the stanzas name only lists of words
    return found


def _comparisons() -> dict[str, Comparison]:
    found: dict[str, Comparison] = {}
    for line in vocabulary.COMPARED.strip().splitlines():
        attribute, _, words = line.partition(": ")
        for sign, part in zip((1, -1), words.split(", "), strict=True):
            for index, word in enumerate(part.split()):
                found.setdefault(word.replace("_", " "), Comparison(attribute, sign, index % 2 == 1))
    return found


def _events() -> tuple[dict[str, Words], dict[str, str]]:
    told: dict[str, Words] = {}
    nouns: dict[str, str] = {}
    for line in vocabulary.EVENTS.strip().splitlines():
        event, _, rest = line.partition(": ")
        words, _, named_by = rest.partition("; ")
        told[event] = _words(words)
        nouns |= dict.fromkeys(_words(named_by), event)
    return told, nouns


ATTRIBUTES = _attributes()
COMPARISONS = _comparisons()
POSITIVES = {
    word: name
    for entry in vocabulary.POSITIVE.strip().replace("\n", "; ").split("; ")
    for name, _, words in [entry.partition(": ")]
    for word in words.split()
}
EVENTS, _EVENT_NOUNS = _events()
_NEUTRAL = (
    "total",
    "overall",
    "full",
    "maximum",
    "max",
    "top",
    "exact",
    "official",
    "current",
    "approximate",
    "typical",
)
_SYNONYMS = {noun: item.name for item in reversed(ATTRIBUTES.values()) for noun in (item.name, *item.nouns)} | {
    "inhabitants": "population",
    "people": "population",
    "residents": "population",
    "native speakers": "number of native speakers",
    "speakers": "number of speakers",
    "floors": "number of floors",
    "storeys": "number of floors",
    "stories": "number of floors",
}
_PHRASE = re.compile(r"[a-z][a-z' -]*[a-z]$")
_NO_ATTRIBUTE = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|which|what|who|how|when|where|why|and|or|than|it|that|this|of|there|between|"
    r"names?|meaning|capital|reason|history|difference|ratio|sum)\b"
)


def named(phrase: str) -> Attribute | None:
    """Return the attribute that a noun phrase names; an unknown phrase of up to five words names its own."""
    text = re.sub(r"^(?:the|its|their) ", "", _plain(phrase))
    if found := _known(text):
        return found
    first, _, rest = text.partition(" ")
    if first in _NEUTRAL and (found := _known(rest)):
        return found
    if target := re.fullmatch(r"(?:average |mean )?distance (?:from|to) (.+)", text):
        return distance(target[1])
    if text.startswith("number of "):
        return counted(text.removeprefix("number of "))
    if event := _EVENT_NOUNS.get(re.sub(r"^year of (?:its )?", "", text)):
        return dated(event)
    if not _PHRASE.match(text) or len(text.split()) > 5 or _NO_ATTRIBUTE.search(text) or text == "number":
        return None
    return Attribute(text, nouns=(text,), after=(text,) if text.endswith("s") else ())


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip().lower())


def _known(text: str) -> Attribute | None:
    return ATTRIBUTES.get(_SYNONYMS.get(text) or _SYNONYMS.get(singular(text), ""))


def singular(noun: str) -> str:
    """Return a noun phrase with its last word in the singular."""
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    if noun.endswith(("sses", "shes", "ches", "xes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun


def counted(noun: str) -> Attribute | None:
    """Return the attribute of how many `noun` something has."""
    text = _plain(noun)
    if not _PHRASE.match(text) or len(text.split()) > 4 or _NO_ATTRIBUTE.search(text):
        return None
    known = ATTRIBUTES.get(_SYNONYMS.get(text, ""))
    if known is not None and known.dimensions == ("count",):
        return known
    return Attribute(f"number of {text}", ("count",), "", (f"number of {text}", text), (), (text, singular(text)))


def dated(event: str) -> Attribute | None:
    """Return the attribute of the year in which something was `event`, such as "completed"."""
    text = _plain(event)
    if not _PHRASE.match(text) or len(text.split()) > 4:
        return None
    return Attribute(f"year {text}", ("date",), before=EVENTS.get(text, (text,)), dated=True, scale=False)


def distance(target: str) -> Attribute:
    """Return the attribute of how far something is from `target`."""
    asked = _plain(target)
    bare = asked.removeprefix("the ")
    aims = tuple(f"{word} {the}{bare}" for word in ("from", "to") for the in ("the ", ""))
    name = (
        f"distance from {'the ' if asked != bare else ''}{bare.title() if bare in ('sun', 'moon', 'earth') else bare}"
    )
    return Attribute(name, ("length",), "km", ("distance",), before=("lies", "orbits"), after=aims, requires=(bare,))


def is_known(attribute: Attribute) -> bool:
    """Whether the rules know the words for this attribute, so that a missing figure is really missing."""
    return (
        attribute.name in ATTRIBUTES or attribute.name.startswith(("number of ", "distance from ")) or attribute.dated
    )
