"""Which property a figure in a sentence gives: the nearest word that names one decides, not the first that fits."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from activities.providers.offline.names import fold
from activities.providers.offline.quantities import Quantity, quantities
from activities.providers.offline.units import COUNT, YEAR
from activities.providers.offline.words import ATTRIBUTES, COMPARISONS, EVENTS, Attribute

_REACH = 70
_EVENT = "event"
_COMPARATIVES = "|".join(word for word, item in COMPARISONS.items() if not item.superlative and " " not in word)
_RELATIVE = re.compile(
    rf"\s*(?:\([^)]*\)\s*)?(?:times\b|(?:{_COMPARATIVES}|more|less|fewer|above|below|after|before|later|earlier|ago|"
    r"from (?=\w+ to))\b(?!\s+(?:mean )?(?:sea|the sea)))"
)
_CHANGE = re.compile(r"\b(?:by|within|every|each|first|last|another|per) (?:about |some |roughly |over |nearly )?$")
_BOUND = re.compile(r"\b(?:more than|less than|over|under|up to|at least|at most|nearly|almost|fewer than) $")
_DATING = re.compile(
    r"(?:\b(?:in|on|since|by|around|about|circa|c\.|ca\.|of|year|late|early|mid|and|to|from|until)|[:,(\u2013-])\s*$"
)
_FILLED = r"(?:\s*\([^)]*\))?(?:\s+(?:or so|more or less|\w+ly))?"


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure and the attribute it gives; `strength` is 1 for a plain naming, less for a hint."""

    quantity: Quantity
    attribute: str
    cue: str
    strength: float


def bound_figures(text: str, asked: Attribute, mask: Iterable[tuple[int, int]] = ()) -> list[Bound]:
    """Return the figures of a clause that give `asked`; spans in `mask` (names with digits) hold none."""
    plain = _masked(text, mask)
    folded = fold(plain)
    found = quantities(plain)
    names = {asked.name, _EVENT} if asked.dated else {asked.name}
    bound = (_bind(folded, item, found, asked) for item in found)
    result = [item for item in bound if item is not None and item.attribute in names]
    return result or _by_superlative(folded, found, asked)


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + re.sub(r"\d", "x", text[start:end]) + text[end:]
    return text


def _bind(text: str, item: Quantity, others: list[Quantity], asked: Attribute) -> Bound | None:
    if _RELATIVE.match(text, item.end) or (_CHANGE.search(text[: item.start]) and item.unit.dimension != "date"):
        return None
    date = item.unit.dimension == "date"
    early = (
        item.unit == COUNT
        and re.fullmatch(r"\d{3}", item.text)
        and re.search(r"(?:ed|built|born) in $", text[: item.start])
    )
    if asked.dated and (date or early):
        return _bind_year(text, replace(item, unit=YEAR), others, asked)
    after = _after(text, item, asked)
    if after is not None:
        return _fitting(item, after, asked, text)
    if item.word and item.unit == COUNT:
        return None
    before = _before(text, item, others, asked)
    return _fitting(item, before, asked, text) if before is not None else None


def _fitting(item: Quantity, cue: tuple[str, str, float], asked: Attribute, text: str) -> Bound | None:
    """A figure whose dimension is none of the attribute's gives nothing; `1500 people` is a count, no year."""
    name, word, strength = cue
    attribute = asked if name == asked.name else ATTRIBUTES[name]
    if item.unit.dimension == "date" and not attribute.dated:
        if attribute.dimensions != ("count",) or re.search(r"\b(?:in|since|by|on|as of) $", text[: item.start]):
            return None
        item = replace(item, unit=COUNT)
    if attribute.dimensions and item.unit.dimension not in attribute.dimensions:
        return None
    if _BOUND.search(text[: item.start]):
        strength -= 0.3
    return Bound(item, name, word, strength)


def _after(text: str, item: Quantity, asked: Attribute) -> tuple[str, str, float] | None:
    """The cue right behind the figure: `5 km long`, `95 known moons`."""
    gap = (
        r"(?:[\s-]+(?!of\b|the\b|and\b|in\b|or\b|to\b|a\b|than\b)[\w'-]+){0,2}?[\s-]+"
        if item.unit == COUNT
        else rf"{_FILLED}[\s,-]+"
    )
    if item.unit.dimension == "date":
        gap = r"[\s-]+"
    best: tuple[str, str, float] | None = None
    for attribute in _rivals(asked):
        pattern = _pattern(attribute.after)
        found = pattern and re.compile(rf"{gap}(?P<cue>{pattern})(?!\w)").match(text, item.end)
        if found and (best is None or len(found["cue"]) > len(best[1])):
            best = attribute.name, found["cue"], 1.0
    return best


def _before(text: str, item: Quantity, others: list[Quantity], asked: Attribute) -> tuple[str, str, float] | None:
    """The nearest cue before the figure, with no other figure but a year between."""
    blocks = [
        other.end for other in others if other.end <= item.start and other.unit.dimension != "date" and not other.word
    ]
    start = max([item.start - _REACH, 0, *blocks])
    best: tuple[int, int, str, str, float] | None = None
    for attribute in _rivals(asked):
        for cues, strength in ((attribute.nouns, 1.0), (attribute.before, 0.8)):
            pattern = _pattern(cues)
            for found in re.finditer(rf"(?<!\w){pattern}(?!\w)", text[start : item.start]) if pattern else ():
                key = (found.end(), len(found[0]))
                if best is None or key > best[:2] or (key == best[:2] and attribute.name == asked.name):
                    best = *key, attribute.name, found[0], strength
    return _named_before(text[start : start + best[0] - len(best[3])], best[2:]) if best else None


def _named_before(text: str, cue: tuple[str, str, float]) -> tuple[str, str, float]:
    """`The basin covers 5 km²` gives the basin: a noun right before a verb that fits several attributes."""
    for attribute in ATTRIBUTES.values() if cue[2] < 1 else ():
        if ATTRIBUTES.get(cue[0], attribute).dimensions == attribute.dimensions and attribute.nouns:
            found = re.search(rf"(?<!\w){_pattern(attribute.nouns)}\s+$", text)
            if found:
                return attribute.name, found[0].strip(), 1.0
    return cue


def _rivals(asked: Attribute) -> Iterator[Attribute]:
    yield asked
    for attribute in ATTRIBUTES.values():
        if attribute.name != asked.name and not attribute.dated and attribute.name != "size":
            yield attribute


@lru_cache(maxsize=512)
def _pattern(cues: tuple[str, ...]) -> str:
    ordered = sorted(cues, key=lambda cue: (-len(cue), cue))
    return f"(?:{'|'.join(_spaced(cue) for cue in ordered)})" if cues else ""


def _spaced(cue: str) -> str:
    return r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", fold(cue)))


def _bind_year(text: str, item: Quantity, others: list[Quantity], asked: Attribute) -> Bound | None:
    """A year tells when something happened if the nearest event before it does, or it opens the clause."""
    if re.match(r"\s*(?:-|\u2013|\u2014|to|and)\s*$", text[item.end : _next_year(item, others)]):
        return None
    events = _pattern(tuple(dict.fromkeys((*asked.before, *(word for words in EVENTS.values() for word in words)))))
    start = max(0, item.start - _REACH)
    found = list(re.finditer(rf"(?<!\w){events}(?!\w)", text[start : item.start]))
    if (found and _DATING.search(text[: item.start])) or (found and start + found[-1].end() >= item.start - 1):
        cue = found[-1][0]
        return Bound(item, asked.name, cue, 1.0) if cue in _folded(asked.before) else None
    later = re.search(rf"(?<!\w){events}(?!\w)", text[item.end :])
    if (
        later
        and re.fullmatch(r"\s*(?:in|on|since|by)\s+(?:the year )?", text[: item.start])
        and later[0] in _folded(asked.before)
    ):
        return Bound(item, asked.name, later[0], 0.8)
    return None


def _next_year(item: Quantity, others: list[Quantity]) -> int:
    return min(
        (other.start for other in others if other.start >= item.end and other.unit.dimension == "date"),
        default=item.end,
    )


def _folded(cues: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(fold(cue) for cue in cues)


def _by_superlative(text: str, found: list[Quantity], asked: Attribute) -> list[Bound]:
    """`At 8,849 metres it is the highest`: the only figure of its dimension, beside a word that ranks by it."""
    fitting = [
        item
        for item in found
        if item.unit.dimension in asked.dimensions and item.unit.dimension not in ("count", "date")
    ]
    ranks = [word for word, item in COMPARISONS.items() if item.attribute == asked.name and item.superlative]
    if not fitting or not ranks or not re.search(rf"\b(?:{'|'.join(ranks)})\b", text):
        return []
    first = fitting[0]
    if _RELATIVE.match(text, first.end) or not re.search(
        r"\b(?:at|with|of|measuring|[(:])\s*(?:about |some |roughly )?$", text[: first.start]
    ):
        return []
    return [Bound(first, asked.name, "superlative", 0.5)]
