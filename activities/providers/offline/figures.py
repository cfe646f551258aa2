"""Which property a figure in a sentence gives: the nearest word that names one decides, not the first that fits."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from activities.providers.offline.names import fold
from activities.providers.offline.quantities import Quantity, quantities
from activities.providers.offline.units import COUNT, YEAR
from activities.providers.offline.words import ATTRIBUTES, COMPARISONS, Attribute, any_of

_REACH = 70
_COMPARATIVES = any_of(tuple(item.more for item in COMPARISONS.values()))
_RELATIVE = re.compile(
    rf"\s*(?:\([^)]*\)\s*)?(?:times\b|(?:{_COMPARATIVES}|more|less|fewer|above|below|after|before|later|earlier|ago|"
    r"from (?=\w+ to))\b(?!\s+(?:mean )?(?:sea|the sea)))"
)
_CHANGE = re.compile(
    r"\b(?:by|within|every|each|first|last|another|per|than|at least|at most) (?:about |some |roughly )?$"
)
_DENIED = re.compile(r"\b(?:not|never)\b|n't\b")
_ANOTHER = re.compile(r"(?<!\bis )(?<!\bwas )\b(?:its|their|an?|the|of|with) (?:about |roughly )?$")
_AWAY = re.compile(r"\s*(?:from|away|off|north|south|east|west|inland|along|within|inside|of (?:its?|which|them))\b")
_AFTER_NOUN = re.compile(r"[^,;]*")
_AFTER_VERB = re.compile(
    r"\W*(?:(?:to|for|over|about|roughly|around|some|nearly|almost|up|at|an?|the|total|of|on|average|approximately|more|"
    r"than|as|much|between|just|only|out|down|from)\s+)*"
)
_IN_YEAR = (
    r"\s+(?:(?!\w+(?:ed|ilt)\b)[a-z']+\s+){0,4}?(?:in|on|by|around|about)\s+(?:the year |about |\d{1,2} [a-z]+ |[a-z]+ "
    r"\d{1,2}, |[a-z]+ )?$"
)


def bound(text: str, asked: Attribute, names: Iterable[tuple[int, int]] = ()) -> Iterator[tuple[Quantity, str]]:
    """Yield the figures of a clause that give `asked`, each with the word that says so; `names` hold no figure."""
    for start, end in names:
        text = text[:start] + re.sub(r"\d", "x", text[start:end]) + text[end:]
    folded, found = fold(text), quantities(text)
    for item in found:
        before = folded[: item.start]
        year = item.unit is YEAR or (asked.dated and re.fullmatch(r"\d{3}", item.text) is not None)
        if item.vague or year != asked.dated or _DENIED.search(before):
            continue
        if asked.dated:
            if cue := re.search(rf"(?<!\w)({any_of(asked.before)}){_IN_YEAR}", before):
                yield replace(item, unit=YEAR), cue[1]
        elif not _RELATIVE.match(folded, item.end) and not _CHANGE.search(before):
            name, word = _after(folded, item, asked) or _before(folded, item, found, asked) or ("", "")
            if name == asked.name and (not asked.dimensions or item.unit.dimension in asked.dimensions):
                yield item, word


def _after(text: str, item: Quantity, asked: Attribute) -> tuple[str, str] | None:
    """The name of an attribute and its cue right behind the figure: `5 km long`, `95 known moons`.

    `A 5 km long tunnel` gives that of something else.
    """
    gap = r"(?:[\s-]+(?:known|confirmed|official|main|native|whole|different))?[\s-]+"
    if item.unit is not COUNT:
        if _ANOTHER.search(text[: item.start]):
            return None
        gap = r"(?:\s*\([^)]*\))?(?:\s+(?:or so|more or less|\w+ly))?[\s,-]+"
    best: tuple[str, str] | None = None
    for attribute in _rivals(asked):
        found = re.compile(rf"{gap}(?P<cue>{any_of(attribute.after)})(?!\w)").match(text, item.end)
        if found and (best is None or len(found["cue"]) > len(best[1])):
            best = attribute.name, found["cue"]
    return best


def _before(text: str, item: Quantity, others: list[Quantity], asked: Attribute) -> tuple[str, str] | None:
    """The nearest cue before the figure, with no other figure but a year between."""
    if _AWAY.match(text, item.end):
        return None
    blocks = [other.end for other in others if other.end <= item.start and other.unit is not YEAR]
    start = max([item.start - _REACH, 0, *blocks])
    best: tuple[int, int, int, str, str] | None = None
    for attribute in _rivals(asked):
        for found in re.finditer(
            rf"(?<!\w){any_of((*attribute.nouns, *attribute.before))}(?!\w)", text[start : item.start]
        ):
            noun = int(re.fullmatch(any_of(attribute.nouns), found[0]) is not None)
            if not (_AFTER_NOUN if noun else _AFTER_VERB).fullmatch(text, start + found.end(), item.start):
                continue
            key = found.end(), noun, len(found[0]), attribute.name, found[0]
            if best is None or key[:3] > best[:3]:
                best = key
    return best[3:] if best else None


def _rivals(asked: Attribute) -> Iterator[Attribute]:
    yield asked
    yield from (item for item in ATTRIBUTES.values() if item.name not in (asked.name, "size") and not item.dated)
