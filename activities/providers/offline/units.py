"""Units of measure as data: how they are written, what they measure, how they convert."""

import re
from dataclasses import dataclass

_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Unit:
    """`factor` and `offset` lead to the dimension's base: base = value * factor + offset."""

    symbol: str
    dimension: str
    factor: float = 1.0
    offset: float = 0.0


COUNT = Unit("", "count")
YEAR = Unit("year", "date")
MONEY = ("$", "€", "£")

# dimension: symbol factor names / further symbols. The first unit is the one that values are given in when an
# attribute asks for no other. Names are in the singular and in any case; symbols are as written.
_TABLE = """
length: m 1 metre; km 1e3 kilometre / kms; cm 0.01 centimetre; mm 0.001 millimetre; in 0.0254 inch; ft 0.3048 foot,feet
length: yd 0.9144 yard; mi 1609.344 mile; nmi 1852 nautical mile; AU 149597870700 astronomical unit
length: ly 9460730472580800 light year
mass: kg 1 kilogram; g 0.001 gram; mg 1e-6 milligram; t 1e3 tonne,metric ton; lb 0.45359237 pound / lbs
time: days 86400 day; years 31557600 year / yr,yrs; months 2629800 month; weeks 604800 week; hours 3600 hour / h
time: minutes 60 minute / min; seconds 1 second / sec; centuries 3155760000 century
area: km² 1e6 square kilometre / km2,sq km; m² 1 square metre / m2,sq m; ha 1e4 hectare; acres 4046.8564224 acre
area: mi² 2589988.110336 square mile / mi2,sq mi; ft² 0.09290304 square foot,square feet / ft2,sq ft
volume: km³ 1e9 cubic kilometre / km3,cu km; m³ 1 cubic metre / m3,cu m; l 0.001 litre / L; ml 1e-6 millilitre / mL
speed: km/h 0.277777777777778 kilometre per hour,kilometre an hour / kph; m/s 1 metre per second,metre a second
speed: mph 0.44704 mile per hour,mile an hour; km/s 1e3 kilometre per second; knots 0.514444444444 knot / kn
flow: m³/s 1 cubic metre per second / m3/s; ft³/s 0.028316846592 cubic foot per second,cubic feet per second / cfs
density: g/cm³ 1 gram per cubic centimetre / g/cm3,g/ml; kg/m³ 0.001 kilogram per cubic metre / kg/m3,g/l
people by area: people/km² 1 people per square kilometre,inhabitants per square kilometre
temperature: °C 1 degree Celsius,degrees Celsius; °F 1 degree Fahrenheit,degrees Fahrenheit; K 1 kelvin
power: kW 1e3 kilowatt; W 1 watt; MW 1e6 megawatt; GW 1e9 gigawatt
data: MB 1e6 megabyte; kB 1e3 kilobyte / KB; GB 1e9 gigabyte; TB 1e12 terabyte; bytes 1 byte
share: % 1 percent,per cent
atomic mass: Da 1 dalton,atomic mass unit / u
US dollars: $ 1 dollar,US dollar / USD
euros: € 1 euro / EUR
British pounds: £ 1 pound sterling,pounds sterling / GBP
"""
_OFFSETS = {"K": (1.0, -273.15), "°F": (5 / 9, -160 / 9)}
_names: dict[str, Unit] = {}
_symbols: dict[str, Unit] = {}
_usual: dict[str, Unit] = {}


def _enter(unit: Unit, names: list[str], symbols: list[str]) -> None:
    _usual.setdefault(unit.dimension, unit)
    for name in names:
        head, per, tail = name.lower().partition(next((word for word in (" per ", " an ", " a ") if word in name), "|"))
        for spelled in (f"{head}{per}{tail}", f"{head}s{per}{tail}"):
            _names.setdefault(spelled, unit)
            _names.setdefault(re.sub(r"(met|lit)re", r"\1er", spelled), unit)
    for symbol in (unit.symbol, *symbols):
        _symbols.setdefault(symbol, unit)


for _line in _TABLE.strip().splitlines():
    _dimension, _, _entries = _line.partition(": ")
    for _entry in _entries.split("; "):
        _symbol, _factor, _rest = _entry.split(" ", 2)
        _spelled, _, _others = _rest.partition(" / ")
        _size, _offset = _OFFSETS.get(_symbol, (float(_factor), 0.0))
        _enter(Unit(_symbol, _dimension, _size, _offset), _spelled.split(","), _others.split(",") if _others else [])
_names |= {"inches": _names["inch"], "centuries": _names["century"]}
del _symbols["in"]  # a preposition far more often than an inch


def _alternatives(spellings: dict[str, Unit]) -> str:
    longest = sorted(spellings, key=lambda text: (-len(text), text))
    return "|".join(re.escape(text).replace(r"\ ", r"[\s-]") for text in longest)


PATTERN = rf"(?:(?i:{_alternatives(_names)})|(?:{_alternatives(_symbols)}))(?![\w²³^]|/\w)"


def unit_of(text: str) -> Unit | None:
    """Return the unit written as `text`, a symbol or a name, singular or plural; else None."""
    return _symbols.get(text) or _names.get(re.sub(r"[\s-]+", " ", text.strip().lower()))


def usual(dimension: str) -> Unit | None:
    """Return the unit in which values of `dimension` are given, None where none is listed."""
    return _usual.get(dimension)


def convert(value: float, source: Unit, target: Unit) -> float:
    """Return `value` in another unit, to 12 significant digits. Raises ValueError across dimensions."""
    if source.dimension != target.dimension:
        raise ValueError(f"{source.symbol} measures {source.dimension}, {target.symbol} {target.dimension}")
    if source == target:
        return tidy(value)
    return tidy((value * source.factor + source.offset - target.offset) / target.factor)


def tidy(value: float) -> float:
    """Return the value without the noise of binary fractions; whole numbers as int, so they print plainly."""
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
