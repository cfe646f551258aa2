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

# dimension: symbol factor names / further symbols. The first unit is the one that values are given in when an
# attribute asks for no other. Names take a plural "s" and any case; symbols are as written.
_TABLE = """
length: m 1 metre,meter; km 1e3 kilometre,kilometer / kms; cm 0.01 centimetre,centimeter; mm 0.001 millimetre,millimeter
length: in 0.0254 inch,inches; ft 0.3048 foot,feet; yd 0.9144 yard; mi 1609.344 mile; nmi 1852 nautical mile
length: AU 149597870700 astronomical unit; ly 9460730472580800 light year,light-year
mass: kg 1 kilogram,kilogramme; g 0.001 gram,gramme; mg 1e-6 milligram; t 1e3 tonne,metric ton
mass: lb 0.45359237 pound / lbs; oz 0.028349523125 ounce
tons: tons 1 ton,short ton,long ton
time: days 86400 day; years 31557600 year / yr,yrs; months 2629800 month; weeks 604800 week
time: hours 3600 hour / h,hrs; minutes 60 minute / min; seconds 1 second / s,sec; centuries 3155760000 century
area: ha 10000 hectare; acres 4046.8564224 acre
volume: l 0.001 litre,liter / L; ml 1e-6 millilitre,milliliter / mL; gal 0.003785411784 gallon
speed: knots 0.514444444444 knot / kn
flow: m³/s 1 cubic metres per second,cubic meters per second / m3/s; ft³/s 0.028316846592 cubic feet per second / cfs
density: g/cm³ 1 grams per cubic centimetre,grams per cubic centimeter,gram per cubic centimetre / g/cm3,g/ml
density: kg/m³ 0.001 kilograms per cubic metre,kilograms per cubic meter,grams per litre,grams per liter / kg/m3,g/l
people by area: people/km² 1 people per square kilometre,people per square kilometer,inhabitants per square kilometre
temperature: °C 1 degree Celsius,degrees Celsius,degree centigrade; °F 1 degree Fahrenheit,degrees Fahrenheit
temperature: K 1 kelvin
power: kW 1e3 kilowatt; W 1 watt; MW 1e6 megawatt; GW 1e9 gigawatt
data: MB 1e6 megabyte; kB 1e3 kilobyte / KB; GB 1e9 gigabyte; TB 1e12 terabyte; bytes 1 byte
share: % 1 percent,per cent
atomic mass: Da 1 dalton,atomic mass unit / u,amu
US dollars: $ 1 dollar,US dollar / USD
euros: € 1 euro / EUR
British pounds: £ 1 pound sterling,pounds sterling / GBP
"""
_OFFSETS = {"K": (1.0, -273.15), "°F": (5 / 9, -160 / 9)}
_SPEEDS = (("km/h", 1e3 / 3600, "kph"), ("m/s", 1.0, "mps"), ("mph", 1609.344 / 3600, "mi/h"), ("km/s", 1e3, "kps"))
_SPOKEN = {
    "km/h": "kilomet{} {} hour",
    "m/s": "met{} {} second",
    "mph": "mile{} {} hour",
    "km/s": "kilomet{} {} second",
}
PREFIXED = ("$", "€", "£")

_names: dict[str, Unit] = {}
_symbols: dict[str, Unit] = {}
_usual: dict[str, Unit] = {}


def _enter(unit: Unit, names: list[str], symbols: list[str]) -> None:
    _usual.setdefault(unit.dimension, unit)
    for name in names:
        for ending in ("", "s"):
            _names.setdefault(f"{name.lower()}{ending}", unit)
    for symbol in (unit.symbol, *symbols):
        _symbols.setdefault(symbol, unit)


def _enter_table() -> None:
    for line in _TABLE.strip().splitlines():
        dimension, _, entries = line.partition(": ")
        for entry in entries.split("; "):
            symbol, factor, rest = entry.split(" ", 2)
            names, _, symbols = rest.partition(" / ")
            size, offset = _OFFSETS.get(symbol, (float(factor), 0.0))
            _enter(Unit(symbol, dimension, size, offset), names.split(","), symbols.split(",") if symbols else [])


def _enter_derived() -> None:
    """Squares and cubes of the lengths, and speeds as they are spoken."""
    lengths = [(name, unit) for name, unit in _names.items() if unit.dimension == "length"]
    for power, word, raised, dimension in ((2, "square", "²", "area"), (3, "cubic", "³", "volume")):
        for symbol in ("km", "m", "cm", "mm", "mi", "ft", "in", "yd"):
            size = _symbols[symbol]
            unit = Unit(f"{symbol}{raised}", dimension, size.factor**power)
            names = [f"{word} {name}" for name, length in lengths if length == size]
            _enter(unit, names, [f"{symbol}{power}", f"{symbol}^{power}", f"{word[:2]} {symbol}"])
    for symbol, factor, other in _SPEEDS:
        ends = ("", "s") if symbol == "mph" else ("re", "res", "er", "ers")
        names = [_SPOKEN[symbol].format(end, per) for end in ends for per in ("per", "an", "a", "in an", "in a")]
        _enter(Unit(symbol, "speed", factor), names, [other])


_enter_table()
_usual |= {
    "area": Unit("km²", "area", 1e6),
    "volume": Unit("m³", "volume"),
    "speed": Unit("km/h", "speed", 1000 / 3600),
}
_enter_derived()
del _symbols["in"]  # a preposition far more often than an inch


def _alternatives(spellings: dict[str, Unit]) -> str:
    longest = sorted(spellings, key=lambda text: (-len(text), text))
    return "|".join(re.escape(text).replace(r"\ ", r"[\s-]") for text in longest)


PATTERN = rf"(?:(?i:{_alternatives(_names)})|(?:{_alternatives(_symbols)}))(?![\w²³^]|/\w)"


def unit_of(text: str) -> Unit | None:
    """Return the unit written as `text`, a symbol or a name, singular or plural; else None."""
    name = text.strip().lower()
    return _symbols.get(text) or _names.get(name) or _names.get(re.sub(r"[\s-]+", " ", name))


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


def difference(value: float, source: Unit, target: Unit) -> float:
    """Return a difference of two values in another unit, where an offset plays no part."""
    return tidy(value * source.factor / target.factor)


def tidy(value: float) -> float:
    """Return the value without the noise of binary fractions; whole numbers as int, so they print plainly."""
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
