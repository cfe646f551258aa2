"""Finds one figure of one thing: units of measure, and the one statement that gives a value in them.

A statement counts only if it says the words that are wanted and no others up to its figure, so that the figure can be
of nothing else: nothing is guessed.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sennit.activities.providers.offline.statements import Passage, Statement, around, nearest, statements, stems

Fact = dict[str, Any]


class Unit(NamedTuple):
    """A unit of measure, as a multiple of the base unit of its dimension."""

    symbol: str
    dimension: str
    factor: float = 1.0


# dimension: symbol factor name,name; ...
_UNITS = """
length: m 1 metre; km 1e3 kilometre; cm 0.01 centimetre; mm 0.001 millimetre; ft 0.3048 foot,feet; mi 1609.344 mile
mass: kg 1 kilogram; g 0.001 gram; t 1e3 tonne; lb 0.45359237 pound
time: days 86400 day; years 31557600 year; hours 3600 hour,h; minutes 60 minute,min; seconds 1 second
area: km² 1e6 square kilometre,km2; m² 1 square metre,m2; ha 1e4 hectare; acres 4046.8564224 acre
volume: km³ 1e9 cubic kilometre,km3; m³ 1 cubic metre,m3; l 0.001 litre
speed: km/h 0.277777777777778 kilometre per hour; m/s 1 metre per second; mph 0.44704 mile per hour
flow: m³/s 1 cubic metre per second,m3/s
density: g/cm³ 1 gram per cubic centimetre,g/cm3
temperature: °C 1 degree Celsius
share: % 1 percent
euro: € 1 euro,EUR
dollar: $ 1 dollar,USD
pound: £ 1 GBP
"""
# what is compared | the unit for it | more of it | less of it; words of several parts have a +
_COMPARISONS = """
length | km | longer longest | shorter shortest
height | m | higher highest taller tallest | lower lowest
depth | m | deeper deepest | shallower shallowest
width | m | wider widest | narrower narrowest
mass | kg | heavier heaviest | lighter lightest
speed | km/h | faster fastest | slower slowest
area | km² | |
price | | more+expensive most+expensive | cheaper cheapest less+expensive least+expensive
"""
_IMPLIED_WORDS = {
    "mass": "heavy",
    "speed": "fast",
    "area": "area",
    "time": "long last take run",
    "euro": "cost",
    "dollar": "cost",
    "pound": "cost",
}
_SMALL = "two three four five six seven eight nine ten eleven twelve"
_WORDS = {word: number for number, word in enumerate(_SMALL.split(), 2)}
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quintillion": 1e18}
COMPARATIVES: dict[str, tuple[str, int]] = {}  # with the word for what is compared, and whether more (1) of it is meant
_IMPLIED = {dimension: stems(words) for dimension, words in _IMPLIED_WORDS.items()}
"""What a figure says by its unit alone: `5 kg` says how heavy something is."""
_measures: dict[str, str] = {}
_names: dict[str, Unit] = {}
_symbols = {"": Unit("", "count")}

for _line in _UNITS.strip().splitlines():
    _dimension, _, _entries = _line.partition(": ")
    for _symbol, _factor, _spelled in (entry.split(" ", 2) for entry in _entries.split("; ")):
        _unit = _symbols[_symbol] = Unit(_symbol, _dimension, float(_factor))
        for _name in _spelled.lower().split(","):
            for _form in (_name, re.sub("^(.+?)(?= per| celsius|$)", r"\1s", _name)):
                _names[_form] = _names[re.sub("(met|lit)re", r"\1er", _form)] = _unit
for _line in _COMPARISONS.strip().splitlines():
    _word, _symbol, *_both = (part.strip() for part in _line.split("|"))
    _measures |= {word: _symbol for word in stems(_word) if _symbol}
    for _sign, _forms in zip((1, -1), _both, strict=True):
        COMPARATIVES |= {form.replace("+", " "): (_word, _sign) for form in _forms.split()}


def any_of(texts: Iterable[str]) -> str:
    """Return a pattern for any of the texts, the longest first; it matches nothing where there are none."""
    found = sorted(filter(None, texts), key=lambda text: (-len(text), text))
    return f"(?:{'|'.join(map(re.escape, found)) or '(?!)'})"


UNIT = rf"(?:(?i:{any_of(_names)})|(?-i:{any_of(_symbols)}))(?![\w²³^/])"
_FIGURE = re.compile(
    r"(?<![\w.,/\u2013-])(?P<sign>[-\u2212]|minus )?(?P<currency>[€$£])? ?"
    rf"(?P<number>(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|\b{any_of(_WORDS)}\b)"
    rf"(?![\d,.:/\u2013-]\d)(?: (?P<scale>{any_of(SCALES)})\b)?(?:[\s-]?(?P<unit>{UNIT}))?"
    r"(?P<per>(?: (?:per|an?|each|every) (?!high|long)[a-z]+)+| each)?",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\(|[.;:](?!\d)|,(?! (?:if|unless|but|or)\b)| (?:as of|in|since) \d{4}\b| and(?! \d)\b|"
    r" (?:when|which|while|measured)\b"
)
"""Where what a figure is of ends: from there on a statement says something else."""
_ASIDE = re.compile(r"\([^()]*\)|, [^,;]{1,80},")
_LEAD = re.compile(r"^(?:In|As of|By) (\d{4}),? ")
_HOLDS_FOR = re.compile(r"[\w -]*?(?:,? (?:as of|in|since) | \()(\d{4})\b")
_IS_OTHER = re.compile(rf"(?i)\b(?:was|were|will|could|should|{any_of(COMPARATIVES)})\b")
_COMES_AND_GOES = re.compile(r"^(?:(?:the|an?) )?(?:(?:river|mount|mt\.?) )?|(?: river)?$")
_GENERIC = stems("number point amount total river mount mt")
"""Words of a question that a statement may leave out."""
_PLAIN = _GENERIC | stems("approximately around roughly current estimated today known home up maximum")
"""Words beside a thing and its figure that do not change what the figure is."""


def unit_of(text: str) -> Unit | None:
    """Return the unit written as `text`, a symbol or a name; counts have none."""
    return _symbols.get(text) or _names.get(re.sub(r"[\s-]+", " ", text.lower()))


def written(value: float, symbol: str) -> str:
    """Return a value as people write it: `6,650 km`, `-110 °C`."""
    number = f"{value:,.8f}".rstrip("0").rstrip(".") if 1e-6 < abs(value) < 1e15 else f"{value:.6g}"
    return f"{number}{'' if not symbol or symbol == '%' else ' '}{symbol}"


def measure(words: frozenset[str]) -> str:
    """Return the unit in which figures of what the words name are compared; empty where any will do."""
    return next((_measures[word] for word in sorted(words) if word in _measures), "")


def core(name: str) -> str:
    """Return what makes a name: no article, and no `river` or `mount`, which come and go."""
    return _COMES_AND_GOES.sub("", " ".join(name.lower().split())) or name.lower()


def find(words: frozenset[str], unit: str, passages: Sequence[Passage]) -> Fact:
    """Return `{found: true, value, unit, quote, source, ...}`, or `{found: false, near}` with near sentences."""
    each_read = [(each, _figure(words, unit, each)) for passage in passages for each in statements(passage)]
    facts = [{**quotation(each), **fact} for each, fact in each_read if fact]
    if all(fact["year"] for fact in facts):  # else documents that do not agree tell nothing
        facts = [fact for fact in facts if fact["year"] == max(other["year"] for other in facts)]
    if len({(fact["value"], fact["unit"]) for fact in facts}) == 1:
        return {"found": True, **facts[0]}
    near = facts or [quotation(each) for each in nearest(" ".join(sorted(words)), passages)]
    return {"found": False, "near": near[:3]}


def quotation(statement: Statement) -> Fact:
    """Return a statement as evidence."""
    return {"node": statement.passage.node, "source": statement.passage.path, "quote": statement.text}


def _figure(words: frozenset[str], asked: str, statement: Statement) -> Fact | None:
    """Return value, unit and, where the text says it, the year that it holds for; None for another thing's figure."""
    if "?" in statement.says:
        return None
    lead = _LEAD.match(statement.says)
    text = statement.says[lead.end() :] if lead else statement.says
    for found in _FIGURE.finditer(text):
        unit = unit_of(found["currency"] or found["unit"] or "")
        target = unit_of(asked) if asked else unit
        if unit is None or target is None or target.dimension != unit.dimension:
            continue
        tail = _TAIL.search(text, found.end())
        said = f"{_ASIDE.sub('', text[: found.start()])} {text[found.end() : tail.start() if tail else None]}"
        implied = _implied(found, unit)
        wanted, stated = words - _GENERIC - implied, stems(said)
        stands = stated | around(wanted, statement) if statement.is_item or statement.key else stated
        per = re.sub("^ (?:an?|each|every|per) ", " per ", found["per"] or "")
        is_other = "cost" in wanted - stated  # a heading that says `Prices` makes no weight a price
        is_meant = (
            bool(wanted)
            and wanted <= stands
            and not is_other
            and stated <= words | _PLAIN | implied
            and not _IS_OTHER.search(said)
        )
        if is_meant and (unit == target or not per):
            holds = lead or _HOLDS_FOR.match(text, found.end())
            return {**_value(found, unit, target, per), "year": int(holds[1]) if holds else None}
        if found["number"] not in words:  # else it may be part of a name
            return None
    return None


def implied(statement: Statement) -> frozenset[str]:
    """Return the words that the figures of a statement say by their units."""
    found = (each for each in _FIGURE.finditer(statement.says) if each["currency"] or each["unit"])
    units = ((each, unit_of(each["currency"] or each["unit"])) for each in found)
    return frozenset[str]().union(*(_implied(each, unit) for each, unit in units if unit))


def _implied(found: re.Match[str], unit: Unit) -> frozenset[str]:
    return stems(found["unit"] or "") | _IMPLIED.get(unit.dimension, frozenset())


def _value(found: re.Match[str], unit: Unit, target: Unit, per: str) -> Fact:
    number = float(_WORDS.get(found["number"].lower()) or found["number"].replace(",", "")) * SCALES.get(
        (found["scale"] or "").lower(), 1
    )
    number *= unit.factor / target.factor * (-1 if found["sign"] else 1)
    value = float(f"{number:.{12 if unit == target else 6}g}")
    is_whole = value.is_integer() and abs(value) < 1e15
    return {"value": int(value) if is_whole else value, "unit": f"{target.symbol}{per}"}
