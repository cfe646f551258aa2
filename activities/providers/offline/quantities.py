"""Numbers in running text: figures with scale and unit, counts, years; and how they are written."""

import re
from dataclasses import dataclass

from activities.providers.offline.units import COUNT, MONEY, PATTERN, YEAR, Unit, tidy, unit_of

_SCALES = {
    name: 10.0 ** (3 * power)
    for power, name in enumerate(("thousand", "million", "billion", "trillion", "quadrillion", "quintillion"), 1)
}
_NUMBER = r"(?:\d{1,3}(?:[,\u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?"
_FIGURE = re.compile(
    r"(?<![\w.,:/-])(?:(?P<era>AD\s)|(?P<money>(?:US)?[$€£])\s?)?(?P<sign>[-\u2212]|[Mm]inus\s)?"
    rf"(?P<low>{_NUMBER})(?P<range>(?:\s?[-\u2013\u2014]\s?|\sto\s){_NUMBER})?"
    r"(?:\s*[\u00d7x·]\s*10\s?\^?\s?(?P<power>[-\u2212]?\d{1,3}|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)|[eE](?P<exp>[+-]?\d{1,3}))?"
    rf"(?:[\s-](?P<scale>{'|'.join(_SCALES)})\b)?(?:[\s\u00a0-]?(?P<unit>{PATTERN}))?"
)
_RATE = re.compile(r"\s?(?:per\s\w|/\w|(?:in\s)?an?\s(?:second|minute|hour|day|week|month|year)\b)")
_BROKEN = re.compile(r"[^\W\d]|\d|[:/-][\w]|[.,]\d|\s(?:BCE?|times)\b")
_BETWEEN = re.compile(r"\bbetween\s[\d,. ]*(?:\sand\s)?$", re.IGNORECASE)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻\u2212", "0123456789--")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure at `start:end` of a text. `value` is in `unit`, scale word applied.

    `vague` is a range, a rate or a number of some other form: it stands in the way of words, but gives no figure.
    """

    value: float
    unit: Unit
    start: int
    end: int
    text: str
    vague: bool = False


def quantities(text: str) -> list[Quantity]:
    """Return the figures of a text in the order written. A bare number of four digits is a year."""
    return [_figure(match, text) for match in _FIGURE.finditer(text)]


def _figure(match: re.Match[str], text: str) -> Quantity:
    sign = (match["money"] or "").removeprefix("US")
    unit = unit_of(match["unit"] or sign) or COUNT
    low = re.sub(r"[,\u00a0\u202f]", "", match["low"])
    power = (match["power"] or match["exp"] or "0").translate(_RAISED)
    value = tidy(float(low) * _SCALES.get(match["scale"] or "", 1.0) * float(f"1e{power}"))
    plain = match.end() == match.end("low") and match.start("low") - match.start() in (0, len(match["era"] or ""))
    if plain and (match["era"] or (len(match["low"]) == 4 and 1000 <= value <= 2100)):
        unit = YEAR
    rest = text[match.end() :]
    broken = (_BROKEN if unit in (COUNT, YEAR) else _RATE).match(rest)
    vague = bool(match["range"] or broken or _BETWEEN.search(text[: match.start()]))
    if match["sign"]:
        value = -value
    return Quantity(value, unit, match.start(), match.end(), match[0].strip(), vague)


def written(value: float, unit: Unit = COUNT) -> str:
    """Return a value as people write it: `6,650 km`, `-110 °C`, `$5`, `1889`."""
    if unit is YEAR:
        return f"{int(value)}"
    whole = tidy(value)
    if abs(whole) >= 1e15 or 0 < abs(whole) < 1e-6:
        number = f"{whole:.6g}"
    else:
        number = f"{whole:,}" if isinstance(whole, int) else f"{whole:,.10f}".rstrip("0").rstrip(".")
    if unit.symbol in MONEY:
        return f"{unit.symbol}{number}"
    symbol = unit.symbol.removesuffix("s") if unit.dimension == "time" and number == "1" else unit.symbol
    return f"{number}{'' if symbol == '%' else ' '}{symbol}".strip()


def rounded(value: float, digits: int = 3) -> float:
    """Return the value to so many significant digits, whole numbers never cut."""
    if abs(value) >= 10 ** (digits - 1):
        return tidy(round(value))
    return tidy(float(f"{value:.{digits}g}"))
