"""How figures, names and lists are written in an answer, and the evidence that its marks stand on."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.providers.offline.material import Fact
from activities.providers.offline.quantities import read_quantity, rounded, written
from activities.providers.offline.units import COUNT, YEAR, Unit, convert, difference, unit_of
from activities.providers.offline.words import COMPARISONS, Attribute

_CONVERTED_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """A found value of a named thing. `source` and `scale` are the unit and scale word of the document."""

    name: str
    fact: Fact
    value: float
    unit: Unit
    source: Unit
    scale: str

    @property
    def dated(self) -> bool:
        """Whether the value is a year."""
        return self.unit is YEAR


@dataclass(frozen=True, slots=True)
class Display:
    """The unit and scale word that all figures of one answer are shown in; with a scale word as the document has it."""

    unit: Unit
    scale: str = ""
    spelled: str = ""

    def value(self, amount: float, unit: Unit, digits: int = 8) -> str:
        """Return an amount as it is shown, to so many significant digits."""
        return self._written(rounded(convert(amount, unit, self.unit), digits))

    def change(self, amount: float, unit: Unit) -> str:
        """Return a difference of two amounts as it is shown; years apart are counted in years."""
        if unit is YEAR:
            return f"{abs(int(amount)):,} year{'' if abs(int(amount)) == 1 else 's'}"
        return self._written(rounded(difference(amount, unit, self.unit), 8))

    def _written(self, amount: float) -> str:
        text = written(amount, self.unit, self.scale)
        return f"{text.split(' ')[0]} {self.spelled}" if self.spelled else text


def figure_of(name: str, fact: Fact) -> Figure | None:
    """Return the figure of a found fact; None when it has no number."""
    value, symbol = fact.value.get("value"), fact.text("unit")
    if not fact.found or not isinstance(value, int | float) or isinstance(value, bool):
        return None
    unit = YEAR if symbol == YEAR.symbol else COUNT if not symbol else unit_of(symbol) or Unit(symbol, symbol)
    given = read_quantity(fact.text("text"))
    if given is None or given.unit.dimension != unit.dimension:
        return Figure(name, fact, value, unit, unit, "")
    return Figure(name, fact, value, unit, given.unit, given.scale)


def display_of(figures: Sequence[Figure], wanted: str) -> Display:
    """Return how to show figures of one dimension: as asked, else as most documents have it."""
    asked = unit_of(wanted) if wanted else None
    if asked is not None and all(asked.dimension == item.unit.dimension for item in figures):
        return Display(asked)
    most = Counter(item.source for item in figures)
    shown = max(figures, key=lambda item: (most[item.source], item.source == item.unit, abs(item.value)))
    scale = shown.scale if all(item.scale == shown.scale for item in figures) else ""
    spelled = re.sub(r"^.*?[\d.](?=\s)", "", shown.fact.text("text")).strip() if scale else ""
    return Display(shown.source, scale, spelled)


@dataclass(slots=True)
class Citations:
    """The evidence of an answer; the same quotation for the same claim has one number."""

    evidence: list[dict[str, Any]] = field(default_factory=list)

    def mark(self, node: str, claim: str, source: str, quote: str) -> str:
        """Return the mark of a claim, such as `[1]`."""
        for item in self.evidence:
            if (item["source"], item["quote"], item["claim"]) == (source, quote, claim):
                return f"[{item['n']}]"
        number = len(self.evidence) + 1
        self.evidence.append({"n": number, "node": node, "claim": claim, "source": source, "quote": quote})
        return f"[{number}]"

    def figure(self, item: Figure, attribute: Attribute, display: Display) -> str:
        """Return a figure with its mark, and in brackets what it holds for: `6,650 km [1] (2020)`."""
        shown = shown_figure(item, attribute, display)
        named = item.fact.text("attribute") or attribute.name
        claim = f"{capital(item.name)}: {shown}" if item.dated else f"The {of(named, item.name)} is {shown}"
        year = item.fact.value.get("year")
        notes = [named] if named not in (attribute.name, "origin") else []
        if isinstance(year, int) and not isinstance(year, bool):
            claim += f" ({year})"
            notes.append(str(year))
        if item.source.symbol != display.unit.symbol and not item.dated:
            notes.append(f"{item.fact.text('text')} in the source")
        mark = self.mark(item.fact.node, claim, item.fact.text("source"), item.fact.text("quote"))
        return f"{shown} {mark} ({'; '.join(notes)})" if notes else f"{shown} {mark}"


def shown_figure(item: Figure, attribute: Attribute, display: Display) -> str:
    """Return a figure without mark: a range as the document has it, an event with its date."""
    text = item.fact.text("text")
    if item.dated:
        given = read_quantity(text)
        date = given.text if given is not None else written(item.value, YEAR)
        return date if attribute.dated else text
    shown = display.value(item.value, item.unit, 12 if item.source == display.unit else _CONVERTED_DIGITS)
    return f"{text} (middle {shown})" if isinstance(item.fact.value.get("range"), list) else shown


def of(attribute: str, name: str) -> str:
    """Return `length of the Nile`, `distance of Mars from the Sun`, `length of a day on Mars`."""
    if attribute.startswith("distance from "):
        return f"distance of {name} {attribute.removeprefix('distance ')}"
    return f"{attribute} {'on' if attribute.endswith('a day') else 'of'} {name}"


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Return `A, B and C`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def capital(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]


def be(name: str) -> str:
    """Return the verb for a name: several things, or a plural common noun, are."""
    last = name.split()[-1] if name.split() else ""
    plural = (
        last.endswith("s") and last == last.lower() and not last.endswith("ss") and not name.startswith(("a ", "an "))
    )
    return "are" if " and " in name or plural else "is"


def comparative(word: str) -> str:
    """Return "longer" for "longest"; any other word as it is."""
    words = list(COMPARISONS)
    found = COMPARISONS.get(word)
    if found is None or not found.superlative:
        return word
    return words[words.index(word) - 1]


def superlative(word: str) -> str:
    """Return "longest" for "longer"; any other word as it is."""
    words = list(COMPARISONS)
    found = COMPARISONS.get(word)
    if found is None or found.superlative:
        return word
    return words[words.index(word) + 1]


def opposite(word: str) -> str:
    """Return the superlative of the other end: "shortest" for "longest"; "last" for any other word."""
    found = COMPARISONS.get(word)
    ends = (
        name for name, item in COMPARISONS.items() if found and item.superlative and item.attribute == found.attribute
    )
    return next((name for name in ends if found and COMPARISONS[name].sign == -found.sign), "last")


def plural(noun: str) -> str:
    """Return the plural of a common noun."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
