"""Numbers in running text: figures with scale and unit, ranges, counts, years; and how they are written."""

import re
from dataclasses import dataclass, replace

from activities.providers.offline.units import COUNT, PATTERN, PREFIXED, YEAR, Unit, tidy, unit_of

SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    "quadrillion": 1e15,
    "quintillion": 1e18,
    "sextillion": 1e21,
}
_COUNTING = (
    "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_WORDS = {name: value for value, name in enumerate(_COUNTING.split())} | _TENS
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_NUM = r"(?:\d{1,3}(?:[,\u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?"
_FIGURE = re.compile(
    rf"(?<![\w.,:/])(?P<money>(?:US)?[$€£]\s?)?(?P<sign>[-\u2212]|[Mm]inus\s)?"
    rf"(?P<low>{_NUM})(?:(?:\s?[-\u2013\u2014]\s?|\sto\s)(?P<high>{_NUM}))?"
    r"(?:\s*[\u00d7x·]\s*10\s?(?:\^?\s?\(?(?P<power>[-\u2212]?\d{1,3})\)?|(?P<raised>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))"
    r"|[eE](?P<exp>[+-]?\d{1,3}))?"
    rf"(?:[\s-](?P<scale>{'|'.join(SCALES)})\b)?"
    rf"(?:[\s\u00a0-]?(?P<unit>{PATTERN}))?"
)
_COUNTED = re.compile(rf"\b(?P<low>{'|'.join(_WORDS)})\b(?:[\s-](?P<unit>{PATTERN}))?", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween\s(?P<first>{_NUM})\sand\s$", re.IGNORECASE)
_RATE = re.compile(r"\s?(?:per\s\w|/\w|(?:in\s)?an?\s(?:second|minute|hour|day|week|month|year)\b)")
_BROKEN = re.compile(r"[^\W\d]|\d|[:/]\d|-\w|[.,]\d")
_DAY_BEFORE = re.compile(
    rf"(?:\b\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH},?\s|\b{_MONTH}\s(?:\d{{1,2}}(?:st|nd|rd|th)?,\s)?)$"
)
_ERA = re.compile(r"\s(?:BCE?|AD|CE)\b")
_AD = re.compile(r"\bAD\s$")
_ISO_REST = re.compile(r"-\d{2}-\d{2}\b")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SPOKEN = re.compile(r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)$")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure at `start:end` of a text. `value` is in `unit`, scale word applied; of a range, the middle."""

    value: float
    unit: Unit
    start: int
    end: int
    text: str
    scale: str = ""
    high: float | None = None
    low: float | None = None
    word: bool = False


def quantities(text: str) -> list[Quantity]:
    """Return the figures of a text in the order written; days of dates and ordinals are none."""
    found: list[Quantity] = []
    position = 0
    while match := _FIGURE.search(text, position):
        item = _figure(match, text)
        position = max(match.end("low"), item.end if item else 0)
        if item is not None:
            found = [other for other in found if other.end <= item.start]
            found.append(item)
    figures = tuple(found)
    for match in _COUNTED.finditer(text):
        if all(match.end() <= other.start or match.start() >= other.end for other in figures):
            found.append(_counted(match))
    return sorted(found, key=lambda item: item.start)


def read_quantity(text: str) -> Quantity | None:
    """Return the figure that a short text such as `6,650 kilometres` gives."""
    found = quantities(text)
    return found[0] if found else None


def _figure(match: re.Match[str], text: str) -> Quantity | None:
    unit = unit_of(match["unit"]) if match["unit"] else None
    prefix = (match["money"] or "").strip().removeprefix("US")
    if prefix in PREFIXED and unit is None:
        unit = unit_of(prefix)
    rest = text[match.end() :]
    plain = unit is None and not (match["scale"] or match["power"] or match["raised"] or match["exp"])
    if _is_year(match["low"]) and not match["sign"] and (plain or match["unit"] == "s"):
        return _year(match, text)
    if (unit is None and _BROKEN.match(rest)) or (match["unit"] and _RATE.match(rest)):
        return None
    if plain and float(_bare(match["low"])) < 2100 and (era := _ERA.match(rest) or _AD.search(text[: match.start()])):
        return _dated(match, text, era)
    if plain and _in_date(match, text):
        return None
    return _measure(match, text, unit or COUNT)


def _measure(match: re.Match[str], text: str, unit: Unit) -> Quantity:
    power = match["power"] or (match["raised"] or "").translate(_RAISED) or match["exp"] or "0"
    size = SCALES.get(match["scale"] or "", 1.0) * float(f"1e{power.replace(chr(0x2212), '-')}")
    low = float(_bare(match["low"])) * size * (-1 if match["sign"] else 1)
    high = float(_bare(match["high"])) * size if match["high"] else None
    start = match.start()
    if high is None and (before := _BETWEEN.search(text[:start])):
        low, high, start = float(_bare(before["first"])) * size, low, before.start()
    middle = low if high is None else (low + high) / 2
    written = text[start : match.end()].strip()
    value = Quantity(tidy(middle), unit, start, match.end(), written, match["scale"] or "")
    return value if high is None else replace(value, low=tidy(low), high=tidy(high))


def _counted(match: re.Match[str]) -> Quantity:
    unit = unit_of(match["unit"]) if match["unit"] else None
    value = _WORDS[match["low"].lower()]
    return Quantity(value, unit or COUNT, match.start(), match.end(), match[0], word=True)


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isdigit() and 1000 <= int(text) <= 2100


def _year(match: re.Match[str], text: str) -> Quantity | None:
    """A bare number of four digits is a year; the day before it belongs to its text."""
    low, end = match["low"], match.end("low")
    if match["money"]:
        return None
    iso = _ISO_REST.match(text, end)
    if iso is None and re.match(r"[^\W\d]|[.,]\d|[:/]\d", text[end:]):
        return None
    era = _ERA.match(text, end)
    day = _DAY_BEFORE.search(text[: match.start("low")])
    start = day.start() if day else match.start("low")
    end = iso.end() if iso else era.end() if era else end
    sign = -1 if era and "B" in era[0] else 1
    return Quantity(sign * int(low), YEAR, start, end, text[start:end])


def _dated(match: re.Match[str], text: str, era: re.Match[str]) -> Quantity:
    before = era[0].startswith("AD")
    start = match.start("low") - (len(era[0]) if before else 0)
    end = match.end("low") + (0 if before else len(era[0]))
    sign = -1 if "B" in era[0] else 1
    return Quantity(sign * int(float(_bare(match["low"]))), YEAR, start, end, text[start:end])


def _in_date(match: re.Match[str], text: str) -> bool:
    """Whether the number is the day of a date: `27 May`, `May 27`."""
    after = re.match(rf"(?:st|nd|rd|th)?\s{_MONTH}\b", text[match.end() :])
    before = re.search(rf"\b{_MONTH}\s$", text[: match.start()])
    return bool(after or before) and match["low"].isdigit() and int(match["low"]) <= 31


def _bare(number: str) -> str:
    return re.sub(r"[,\u00a0\u202f]", "", number)


def written(value: float, unit: Unit = COUNT, scale: str = "") -> str:
    """Return a value as people write it: `6,650 km`, `778.5 million km`, `-110 °C`, `$5`."""
    if unit is YEAR or unit.dimension == "date":
        return f"{-int(value)} BC" if value < 0 else f"{int(value)}"
    number = f"{_grouped(value / SCALES[scale])} {scale}" if scale else _grouped(value)
    if unit.symbol in PREFIXED:
        return f"{unit.symbol}{number}"
    symbol = unit.symbol
    if _grouped(value) in ("1", "-1") and not scale and _SPOKEN.match(symbol):
        symbol = symbol.removesuffix("s")
    return f"{number}{'' if symbol == '%' else ' '}{symbol}".strip()


def _grouped(value: float) -> str:
    whole = tidy(value)
    if abs(whole) >= 1e21 or 0 < abs(whole) < 1e-6:
        return f"{whole:.6g}"
    text = f"{whole:,}" if isinstance(whole, int) else f"{whole:,.10f}".rstrip("0").rstrip(".")
    return text if text != "-0" else "0"


def rounded(value: float, digits: int = 3) -> float:
    """Return the value to so many significant digits, whole numbers never cut."""
    if abs(value) >= 10 ** (digits - 1):
        return tidy(round(value))
    return tidy(float(f"{value:.{digits}g}"))
