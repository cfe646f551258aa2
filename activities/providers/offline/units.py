"""Units of measure as data: how they are written, what they measure, how they convert."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DIGITS = 12
_SUPERSCRIPT = {2: "²", 3: "³"}


@dataclass(frozen=True, slots=True)
class Unit:
    """`factor` and `offset` lead to the dimension's base: base = value * factor + offset."""

    symbol: str
    dimension: str
    factor: float = 1.0
    offset: float = 0.0


COUNT = Unit("", "count")
YEAR = Unit("year", "date")

# symbol: (size in the base unit, names, further symbols); a plural "s" is added to the names.
_LENGTH = {
    "mm": (0.001, ("millimetre", "millimeter"), ()),
    "cm": (0.01, ("centimetre", "centimeter"), ()),
    "m": (1.0, ("metre", "meter"), ()),
    "km": (1000.0, ("kilometre", "kilometer"), ("kms",)),
    "in": (0.0254, ("inch", "inches"), ("in.",)),
    "ft": (0.3048, ("foot", "feet"), ()),
    "yd": (0.9144, ("yard",), ()),
    "mi": (1609.344, ("mile",), ()),
    "nmi": (1852.0, ("nautical mile",), ()),
    "AU": (149_597_870_700.0, ("astronomical unit",), ()),
    "ly": (9.4607304725808e15, ("light-year", "light year"), ()),
}
_MASS = {
    "mg": (1e-6, ("milligram", "milligramme"), ()),
    "g": (0.001, ("gram", "gramme"), ()),
    "kg": (1.0, ("kilogram", "kilogramme", "kilo"), ()),
    "t": (1000.0, ("tonne", "metric ton"), ()),
    "lb": (0.45359237, ("pound",), ("lbs",)),
    "oz": (0.028349523125, ("ounce",), ()),
}
_TIME = {
    "seconds": (1.0, ("second",), ("s", "sec")),
    "minutes": (60.0, ("minute",), ("min",)),
    "hours": (3600.0, ("hour",), ("h", "hrs")),
    "days": (86400.0, ("day",), ()),
    "weeks": (604800.0, ("week",), ()),
    "months": (2629800.0, ("month",), ()),
    "years": (31557600.0, ("year",), ("yr", "yrs")),
    "centuries": (3155760000.0, ("century", "centuries"), ()),
}
_VOLUME = {
    "ml": (1e-6, ("millilitre", "milliliter"), ("mL",)),
    "l": (0.001, ("litre", "liter"), ("L",)),
    "gal": (0.003785411784, ("gallon", "US gallon"), ()),
}
_AREA = {"ha": (10_000.0, ("hectare",), ()), "acres": (4046.8564224, ("acre",), ())}
_POWER = {
    "W": (1.0, ("watt",), ()),
    "kW": (1e3, ("kilowatt",), ()),
    "MW": (1e6, ("megawatt",), ()),
    "GW": (1e9, ("gigawatt",), ()),
}
_DATA = {
    "bytes": (1.0, ("byte",), ()),
    "kB": (1e3, ("kilobyte",), ("KB",)),
    "MB": (1e6, ("megabyte",), ()),
    "GB": (1e9, ("gigabyte",), ()),
    "TB": (1e12, ("terabyte",), ()),
}
_SINGLE = {
    "°C": (Unit("°C", "temperature"), ("degree Celsius", "degrees Celsius", "degree centigrade"), ("℃",)),
    "°F": (Unit("°F", "temperature", 5 / 9, -160 / 9), ("degree Fahrenheit", "degrees Fahrenheit"), ("℉",)),
    "K": (Unit("K", "temperature", 1.0, -273.15), ("kelvin",), ()),
    "%": (Unit("%", "share"), ("percent", "per cent"), ()),
    "Da": (Unit("Da", "atomic mass"), ("dalton", "atomic mass unit"), ("u", "amu")),
    "tons": (Unit("tons", "tons"), ("ton", "short ton", "long ton"), ()),
    "$": (Unit("$", "US dollars"), ("dollar", "US dollar"), ("USD",)),
    "€": (Unit("€", "euros"), ("euro",), ("EUR",)),
    "£": (Unit("£", "British pounds"), ("pound sterling", "pounds sterling"), ("GBP",)),
}

_PER = ("per", "an", "a", "in an", "in a")
_SPEED = (
    ("km", "km/h", 3600.0, ("kph", "kmh")),
    ("mi", "mph", 3600.0, ("mi/h",)),
    ("km", "km/s", 1.0, ()),
    ("m", "m/s", 1.0, ()),
    ("ft", "ft/s", 1.0, ("fps",)),
)
_COMPOUND: tuple[tuple[str, str, float, tuple[str, ...], tuple[str, ...]], ...] = (
    ("knots", "speed", 1852.0 / 3600.0, ("knot",), ("kn",)),
    ("m³/s", "flow", 1.0, ("cubic metres per second", "cubic meters per second"), ("m3/s", "m^3/s")),
    ("ft³/s", "flow", 0.3048**3, ("cubic feet per second",), ("cfs", "ft3/s")),
    (
        "g/cm³",
        "density",
        1.0,
        ("grams per cubic centimetre", "grams per cubic centimeter", "gram per cubic centimetre"),
        ("g/cm3", "g/cm^3", "g/ml", "g/mL"),
    ),
    (
        "kg/m³",
        "density",
        0.001,
        ("kilograms per cubic metre", "kilograms per cubic meter", "grams per litre", "grams per liter"),
        ("kg/m3", "kg/m^3", "g/l", "g/L"),
    ),
    (
        "people/km²",
        "people by area",
        1.0,
        ("people per square kilometre", "people per square kilometer", "inhabitants per square kilometre"),
        ("people/km2", "inhabitants/km²", "inhabitants/km2"),
    ),
)

# The unit that values of a dimension are given in unless an attribute says otherwise.
CANONICAL = {
    "length": "m",
    "area": "km²",
    "volume": "m³",
    "mass": "kg",
    "time": "days",
    "speed": "km/h",
    "flow": "m³/s",
    "density": "g/cm³",
    "temperature": "°C",
    "power": "kW",
    "data": "MB",
    "people by area": "people/km²",
}
PREFIXED = ("$", "€", "£")


def _plain() -> Iterator[tuple[Unit, tuple[str, ...], tuple[str, ...]]]:
    tables = (
        ("length", _LENGTH),
        ("mass", _MASS),
        ("time", _TIME),
        ("volume", _VOLUME),
        ("area", _AREA),
        ("power", _POWER),
        ("data", _DATA),
    )
    for dimension, table in tables:
        for symbol, (factor, names, symbols) in table.items():
            yield Unit(symbol, dimension, factor), names, (symbol, *symbols)
    for symbol, (unit, names, symbols) in _SINGLE.items():
        yield unit, names, (symbol, *symbols)


def _powers() -> Iterator[tuple[Unit, tuple[str, ...], tuple[str, ...]]]:
    for symbol, (factor, names, _) in _LENGTH.items():
        for power, word, short, dimension in ((2, "square", "sq", "area"), (3, "cubic", "cu", "volume")):
            raised = f"{symbol}{_SUPERSCRIPT[power]}"
            spelled = (f"{symbol}{power}", f"{symbol}^{power}", f"{short} {symbol}", f"{short}. {symbol}")
            unit = Unit(raised, dimension, factor**power)
            yield unit, tuple(f"{word} {name}" for name in names), (raised, *spelled)


def _rates() -> Iterator[tuple[Unit, tuple[str, ...], tuple[str, ...]]]:
    for symbol, word, seconds, extra in _SPEED:
        factor, names, _ = _LENGTH[symbol]
        every = "hour" if seconds == 3600.0 else "second"
        spelled = tuple(f"{name}{s} {per} {every}" for name in names for s in _plural(name) for per in _PER)
        yield Unit(word, "speed", factor / seconds), spelled, (word, *extra)
    for symbol, dimension, amount, names, symbols in _COMPOUND:
        yield Unit(symbol, dimension, amount), names, (symbol, *symbols)


def _plural(name: str) -> tuple[str, ...]:
    return ("",) if name in ("feet", "inches") else ("", "s")


def _collect() -> tuple[dict[str, Unit], dict[str, Unit]]:
    names: dict[str, Unit] = {}
    symbols: dict[str, Unit] = {}
    for source in (_plain, _powers, _rates):
        for unit, spelled, short in source():
            for name in spelled:
                for ending in _plural(name):
                    names.setdefault(f"{name}{ending}".lower(), unit)
            for symbol in short:
                symbols.setdefault(symbol, unit)
    del symbols["in"]  # a preposition far more often than an inch
    return names, symbols


_NAMES, _SYMBOLS = _collect()


def _alternatives(spellings: dict[str, Unit]) -> str:
    longest = sorted(spellings, key=lambda text: (-len(text), text))
    return "|".join(re.escape(text).replace(r"\ ", r"[\s-]") for text in longest)


PATTERN = rf"(?:(?i:{_alternatives(_NAMES)})|(?:{_alternatives(_SYMBOLS)}))(?![\w²³^]|/\w)"


def unit_of(text: str) -> Unit | None:
    """Return the unit written as `text`, a symbol or a name, singular or plural; else None."""
    found = _SYMBOLS.get(text) or _NAMES.get(re.sub(r"[\s-]+", " ", text).strip().lower())
    if found is None and "-" in text:
        found = _NAMES.get(text.lower())
    return found


def canonical(dimension: str) -> Unit | None:
    """Return the unit in which values of `dimension` are given, None for those with a single unit."""
    symbol = CANONICAL.get(dimension)
    return _SYMBOLS[symbol] if symbol else None


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
