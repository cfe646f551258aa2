"""Finds one figure of one thing: units of measure, and how a sentence gives a figure.

A sentence counts only if it begins with the thing and has nothing but plain words up to the figure: nothing is guessed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sennit.activities.providers.offline.statements import Passage, Statement, nearest, statements, stems, unaccented

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
_IMPLIED = {"mass": "heavy", "speed": "fast", "area": "area", "euro": "cost", "dollar": "cost", "pound": "cost"}
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quintillion": 1e18}
COMPARATIVES: dict[str, tuple[str, int]] = {}  # with the word for what is compared, and whether more (1) of it is meant
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
FIGURE = (
    r"(?P<sign>[-\u2212]|minus )?(?P<currency>[€$£])? ?(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
    rf"(?![\d,.]\d)(?: (?P<scale>{any_of(SCALES)})\b)?(?:[\s-]?(?P<unit>{UNIT}))?"
    r"(?P<per>(?: (?:per|an?|each|every) (?!high|long)[a-z]+)+| each)?"
)
_VERB = (
    "(?:is|are|has|have|had|can|costs?|weighs?|holds?|covers?|stands?|measures?|rises?|lies|takes|lives|melts|boils|"
    "reaches|employs|earns|charges|runs|discharges)"
)
_ABOUT = "(?:about|around|roughly|approximately|some)"
_LOWER = "(?-i:[a-z]++(?:-[a-z]++)*+)"
_TAIL = (
    r"(?=$|[.;:)](?!\d)|,(?! (?:if|unless|but|or)\b|\d)| \(| (?:and(?! \d)|as of|in (?:all|total|\d{4})|when|which|"
    r"while|measured|since|above (?:the )?ground|of water|today)\b)"
)
_HOLDS_FOR = re.compile(r"(?: in all)?(?:,? (?:as of|in|since) | \()(\d{4})\b")
_KEY = re.compile(r"^([A-Za-z -]{3,40}): (?=[\d€$£-]|about )")
_COMES_AND_GOES = re.compile(r"^(?:(?:the|an?) )?(?:(?:river|mount|mt\.?) )?|(?: river)?$")
_PLAIN = stems(
    "about approximately around current estimated home known lies mean measures number overall point reaches "
    "rises roughly runs some stands surface takes top total up maximum amount boasts"
)
"""Words between a thing and its figure that do not change what the figure is."""


def unit_of(text: str) -> Unit | None:
    """Return the unit written as `text`, a symbol or a name; counts have none."""
    return _symbols.get(text) or _names.get(re.sub(r"[\s-]+", " ", text.lower()))


def written(value: float, symbol: str) -> str:
    """Return a value as people write it: `6,650 km`, `-110 °C`."""
    number = f"{value:,.8f}".rstrip("0").rstrip(".") if 1e-6 < abs(value) < 1e15 else f"{value:.6g}"
    return f"{number}{'' if not symbol or symbol == '%' else ' '}{symbol}"


def measure(prop: str) -> str:
    """Return the unit in which figures of a property are compared; empty where any will do."""
    return next((_measures[word] for word in sorted(stems(prop)) if word in _measures), "")


def core(name: str) -> str:
    """Return what makes a name: no article, and no `river` or `mount`, which come and go."""
    return _COMES_AND_GOES.sub("", " ".join(name.lower().split())) or name.lower()


def find(prop: str, subject: str, unit: str, passages: Sequence[Passage]) -> Fact:
    """Return `{found: true, value, unit, quote, source, ...}`, or `{found: false, near}` with near sentences."""
    found = [fact for passage in passages for fact in _facts(prop, subject, unit, passage)]
    if all(fact["year"] for fact in found):  # else documents that do not agree tell nothing
        found = [fact for fact in found if fact["year"] == max(other["year"] for other in found)]
    about: Fact = {"subject": subject, "name": subject}
    if len({(fact["value"], fact["unit"]) for fact in found}) == 1:
        return {"found": True, **about, **found[0]}
    quotes = [{"source": fact["source"], "quote": fact["quote"]} for fact in found[:3]]
    near = [{"source": each.passage.path, "quote": each.text} for each in nearest(f"{subject} {prop}", passages, 2)]
    return {"found": False, **about, "near": quotes or near}


def _facts(prop: str, subject: str, unit: str, passage: Passage) -> Iterator[Fact]:
    words = map(re.escape, re.split(r"[\s-]+", unaccented(core(subject))))
    name = rf"(?:the |an? )?(?:(?:river|mount|mt\.?) )?{r'[ -]'.join(words)}(?: river)?(?!\w)"
    patterns = [re.compile(text, re.IGNORECASE) for text in _patterns(name)]
    wanted = stems(prop) - stems("number point amount total")
    for each in statements(passage):
        text = _of_subject(each, subject)
        matches = (pattern.match(text) for pattern in patterns)
        if read := next((fact for match in matches if match and (fact := _value(wanted, unit, match))), None):
            yield {**read, "quote": each.text, "source": passage.path}


def _of_subject(statement: Statement, subject: str) -> str:
    """Return a statement with its thing named, where it stands below that or a pronoun means it."""
    text = unaccented(statement.text)
    if core(subject) != core(statement.about):
        return text
    text = re.sub(r"^(?:It|They|(Its|Their))\b", lambda it: subject + ("'s" if it[1] else ""), text)
    return _KEY.sub(lambda key: f"{key[1]} of {subject} is ", text, count=1)


def _patterns(name: str) -> list[str]:
    """Return how a sentence begins that gives a figure of a thing."""
    start = rf"(?:(?:in|as of|by) (?P<lead>\d{{4}}),? )?{name}(?: \([^()]*\))?(?:, [^,;]{{1,80}},)? "
    figure = rf"(?:{_ABOUT} )?{FIGURE}"
    after = rf"(?P<after>(?:[\s-](?!{any_of(COMPARATIVES)}\b){_LOWER}){{0,3}}?)"
    end = rf"(?P<after>){_TAIL}"
    return [
        rf"{start}(?P<said>{_VERB} (?:{_LOWER} ){{0,8}}?){figure}{after}{_TAIL}",
        rf"(?:the )?(?P<said>[a-z]++(?:-[a-z]++)*+ (?:{_LOWER} ){{0,4}}?)(?:of|for) {name} (?:is|are) {figure}{end}",
        rf"{name}['\u2019]s? (?P<said>[a-z]++ (?:{_LOWER} ){{0,4}}?)(?:is|are) {figure}{end}",
    ]


def _value(wanted: frozenset[str], asked: str, match: re.Match[str]) -> Fact | None:
    """Return value, unit and, where the text says it, the year that it holds for; None for another property."""
    unit = unit_of(match["currency"] or match["unit"] or "")
    if unit is None:
        return None
    implied = {_IMPLIED.get(unit.dimension, "")}
    said = stems(f"{match['said']} {match['after']}")
    target, per = unit_of(asked) if asked else unit, re.sub("^ (?:an?|each|every|per) ", " per ", match["per"] or "")
    is_other = not wanted <= said | implied or bool(said - wanted - _PLAIN - implied)
    if is_other or target is None or target.dimension != unit.dimension or (per and target != unit):
        return None
    number = float(match["number"].replace(",", "")) * SCALES.get((match["scale"] or "").lower(), 1)
    number *= unit.factor / target.factor * (-1 if match["sign"] else 1)
    value = float(f"{number:.{12 if unit == target else 6}g}")
    holds = _HOLDS_FOR.match(match.string, match.end())
    year = match.groupdict().get("lead") or (holds and holds[1])
    return {
        "value": int(value) if value.is_integer() and abs(value) < 1e15 else value,
        "unit": f"{target.symbol}{per}",
        "year": int(year) if year else None,
    }
