"""What the rules know, as data: units of measure, and the words that name and compare properties of things."""

import re
from collections.abc import Iterable
from typing import NamedTuple

Words = tuple[str, ...]


class Unit(NamedTuple):
    """A unit of measure, as a multiple of the base unit of its dimension."""

    symbol: str
    dimension: str
    factor: float = 1.0


class Attribute(NamedTuple):
    """One property; `verbs` stand before its figure, `after` behind it, and a `unit` of None allows any."""

    phrase: str
    unit: str | None = None
    nouns: Words = ()
    verbs: Words = ()
    after: Words = ()
    happened: Words = ()  # asks for a year
    did: str = ""  # asks for a person


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
"""
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quintillion": 1e18}

# name | unit | further nouns | verbs | words behind the figure; those of one word ask, too | more of it | less of it
_ATTRIBUTES = """
length | km | | | long, in length | longer, longest | shorter, shortest
height | m | | | high, tall, in height | higher, highest, taller, tallest | lower, lowest
depth | m | maximum depth | | deep, in depth | deeper, deepest | shallower, shallowest
diameter | km | mean diameter | | across, in diameter | |
area | km² | surface area, total area | covers | in area | |
volume | km³ | | holds | | |
discharge | m³/s | | discharges | | |
mass | kg | weight | weighs, weigh, can weigh | heavy | heavier, heaviest | lighter, lightest
speed | km/h | top speed, maximum speed | | fast | faster, fastest | slower, slowest
melting point | °C | | melts at | | |
boiling point | °C | | boils at | | |
population | | people, inhabitant, resident | is home to | people, inhabitants, residents | |
number of speakers | | | | speakers, speakers in all | |
life span | years | lifespan | lives for, can live for | | |
orbital period | days | | | to orbit the sun | |
length of a day | hours | day | | | |
"""
VERBS = {"weigh": "mass", "live": "life span", "run": "speed", "melt": "melting point", "day": "length of a day"}
_MORE = "more most larger largest greater greatest higher highest bigger biggest"
_LESS = "less least fewer fewest smaller smallest lower lowest"
DEGREES = dict.fromkeys(_MORE.split(), 1) | dict.fromkeys(_LESS.split(), -1)
_EVENTS = (("built", "completed", "constructed"), ("opened", "inaugurated"), ("founded", "established"))

ATTRIBUTES: dict[str, Attribute] = {}
ADJECTIVES: dict[str, str] = {}
COMPARATIVES: dict[str, tuple[str, int]] = {}  # with the attribute and whether more (1) or less (-1) of it is meant
_names: dict[str, Unit] = {}
_symbols = {"": Unit("", "count")}


def _words(text: str) -> Words:
    return tuple(word.strip() for word in text.split(",") if word.strip())


for _line in _UNITS.strip().splitlines():
    _dimension, _, _entries = _line.partition(": ")
    for _symbol, _factor, _spelled in (entry.split(" ", 2) for entry in _entries.split("; ")):
        _unit = _symbols[_symbol] = Unit(_symbol, _dimension, float(_factor))
        for _name in _words(_spelled.lower()):
            for _form in (_name, re.sub("^(.+?)(?= per| celsius| fahrenheit|$)", r"\1s", _name)):
                _names[_form] = _names[re.sub("(met|lit)re", r"\1er", _form)] = _unit
for _line in _ATTRIBUTES.strip().splitlines():
    _name, _symbol, *_rest = (part.strip() for part in _line.split("|"))
    _nouns, _verbs, _after, _more, _less = map(_words, _rest)
    _attribute = Attribute(f"{_name} of {{}}", _symbol, (_name, *_nouns), _verbs, _after)
    ATTRIBUTES |= dict.fromkeys(_attribute.nouns, _attribute)
    ADJECTIVES |= {word: _name for word in _after if " " not in word and _symbol}
    COMPARATIVES |= dict.fromkeys(_more, (_name, 1)) | dict.fromkeys(_less, (_name, -1))


def any_of(texts: Iterable[str]) -> str:
    """Return a pattern for any of the texts, the longest first; it matches nothing where there are none."""
    found = sorted(filter(None, texts), key=lambda text: (-len(text), text))
    return f"(?:{'|'.join(map(re.escape, found)) or '(?!)'})"


UNIT = rf"(?:(?i:{any_of(_names)})|(?-i:{any_of(_symbols)}))(?![\w²³^/])"
FIGURE = (
    r"(?P<sign>[-\u2212]|minus )?(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?![\d,.]\d)"
    rf"(?: (?P<scale>{any_of(SCALES)})\b)?(?:[\s-]?(?P<unit>{UNIT}))?"
)


def unit_of(text: str) -> Unit | None:
    """Return the unit written as `text`, a symbol or a name; counts have none."""
    return _symbols.get(text) or _names.get(re.sub(r"[\s-]+", " ", text.lower()))


def written(value: float, symbol: str) -> str:
    """Return a value as people write it: `6,650 km`, `-110 °C`."""
    number = f"{value:,.8f}".rstrip("0").rstrip(".") if 1e-6 < abs(value) < 1e15 else f"{value:.6g}"
    return f"{number}{'' if not symbol else ' '}{symbol}"


def read_phrase(text: str) -> tuple[Attribute, str] | None:
    """Return attribute and thing of `length of the Nile`; a noun that is not in the table means a figure so named."""
    if found := re.fullmatch("year in which (?P<thing>.+) was (?P<event>[a-z ]+)", text):
        alike = next((events for events in _EVENTS if events[0] == found["event"]), (found["event"],))
        return Attribute(f"year in which {{}} was {found['event']}", happened=alike), found["thing"]
    if found := re.fullmatch("person who (?P<did>(?:first )?[a-z]+) (?P<thing>.+)", text):
        return Attribute(f"person who {found['did']} {{}}", did=found["did"]), found["thing"]
    cuts = [(text[: cut.start()].lower(), text[cut.end() :]) for cut in re.finditer("(?<!^number) of ", text)]
    known = [cut for cut in cuts if {cut[0], cut[0].removesuffix("s")} & ATTRIBUTES.keys()]
    noun, thing = (known[-1:] or cuts[:1] or [("", "")])[0]
    if things := re.fullmatch("number of ([a-z -]+?)s?", noun):
        return Attribute(f"{noun} of {{}}", "", (noun,), after=(things[1], f"{things[1]}s")), thing
    other = ATTRIBUTES.get(noun.removesuffix("s"), Attribute(f"{noun} of {{}}", None, (noun,)))
    valid = known or re.fullmatch("[a-z]+(?:[ -][a-z]+){0,3}", noun)
    return (ATTRIBUTES.get(noun, other), thing) if valid else None
