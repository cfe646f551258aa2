"""Finds the figure of a thing: a number and its unit, in a sentence that says what it
is of and nothing else.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sennit.activities.providers.offline.sentences import Passage, sentences, stems

# Values are never converted: those in different units are not compared.
_SYMBOLS = {
    "kilometre": "km", "kilometer": "km", "metre": "m", "meter": "m", "centimetre": "cm",
    "mile": "mi", "feet": "ft", "kilogram": "kg", "tonne": "t", "litre": "l", "euro": "€",
    "EUR": "€", "dollar": "$", "USD": "$", "GBP": "£",
}  # fmt: skip
_UNIT = rf"(?:{'|'.join(_SYMBOLS)})s?|(?:km|cm|kg|mi|ft|°C|[mtl])\b|[€$£%]"
_FIGURE = re.compile(
    r"(?<![\w.,/\[\u2212\u2013-])(?P<currency>[€$£]?)(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)"
    r"(?:\.\d+)?)"
    rf"(?![\d,.:/\u2013-]\d)(?:[ -]?(?P<unit>{_UNIT})(?![\w²³/]))?"
)
# Where a sentence goes on to say something else than what its figure is of.
_TAIL = re.compile(r"[(;:]|[.,](?!\d)(?! (?:if|unless|but|or)\b)| (?:as of|in|since) \d{4}\b")
_UNSURE = re.compile(r"(?i)[?|]|\b(?:was|were|will|would|could|should|might)\b")
_PLAIN = stems("approximately around roughly current known estimated maximum total")


class Figure(NamedTuple):
    """A value in a unit, the sentence that gives it, and the thing that it is
    of, once that is known.
    """

    value: float
    unit: str
    sentence: Passage
    subject: str = ""


def symbol_of(unit: str) -> str:
    """Return the symbol of a unit that is written in any way; an unknown unit stays as it is."""
    return _SYMBOLS.get(unit.removesuffix("s"), unit)


def written(value: float, unit: str) -> str:
    """Return a value as people write it: `6,650 km`."""
    return f"{value:,.8f}".rstrip("0").rstrip(".") + f" {unit}".rstrip()


def find(words: frozenset[str], passages: Sequence[Passage]) -> list[Figure]:
    """Return the figures that sentences plainly give of what the words name, each once:
    documents may disagree.
    """
    found: dict[tuple[float, str], Figure] = {}
    for sentence in sentences(passages):
        figure = _figure(words, sentence)
        if figure:
            found.setdefault((figure.value, figure.unit), figure)
    return list(found.values())


def _figure(words: frozenset[str], sentence: Passage) -> Figure | None:
    text = sentence.text
    for match in _FIGURE.finditer(text):
        # A number of the name itself, as in `Taipei 101`, is not the figure.
        if stems(match["number"]) <= words:
            continue
        tail = _TAIL.search(text, match.end())
        end = tail.start() if tail else None
        said = stems(f"{text[: match.start()]} {text[match.end() : end]}")
        # Any other word, or another number, may make it the figure of something else.
        if not words or not words <= said <= words | _PLAIN or _UNSURE.search(text):
            return None
        number = match["number"].replace(",", "")
        value = float(number) if "." in number else int(number)
        return Figure(value, symbol_of(match["currency"] or match["unit"] or ""), sentence)
    return None
