"""Figures in an answer, and the evidence that its marks stand on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.providers.offline.material import Fact
from activities.providers.offline.quantities import quantities, rounded, written
from activities.providers.offline.units import COUNT, YEAR, Unit, convert, unit_of
from activities.providers.offline.words import of

_CONVERTED_DIGITS = 5
_TOO_MUCH = 1e300


@dataclass(frozen=True, slots=True)
class Figure:
    """A found value of a named thing; `given` is the unit of the document."""

    name: str
    fact: Fact
    value: float
    unit: Unit
    given: Unit


def figure_of(name: str, fact: Fact) -> Figure | None:
    """Return the figure of a found fact; None when it has no number that can be reckoned with."""
    value, symbol = fact.value.get("value"), fact.text("unit")
    if not fact.found or not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _TOO_MUCH:
        return None
    unit = YEAR if symbol == YEAR.symbol else COUNT if not symbol else unit_of(symbol) or Unit(symbol, symbol)
    said = quantities(fact.text("text"))
    given = said[0].unit if said and said[0].unit.dimension == unit.dimension else unit
    return Figure(name, fact, value, unit, given)


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

    def figure(self, item: Figure, asked: str, unit: Unit) -> str:
        """Return a figure in `unit` with its mark, and in brackets what it holds for: `6,650 km [1] (2020)`."""
        said = item.fact.text("attribute") or asked
        digits = 12 if unit == item.given else _CONVERTED_DIGITS
        shown = written(rounded(convert(item.value, item.unit, unit), digits), unit)
        claim = f"The {of(said, item.name)} is {shown}"
        if item.unit is YEAR:
            told = item.fact.text("text") or shown
            shown = told if asked == "year of origin" else told.rpartition(" in ")[2]
            claim = f"{capital(item.name)}: {told}"
        notes = [said] if said != asked else []
        year = item.fact.value.get("year")
        if isinstance(year, int) and not isinstance(year, bool):
            claim += f" ({year})"
            notes.append(str(year))
        if unit != item.given or "e+" in shown:
            notes.append(f"{item.fact.text('text')} in the source")
        mark = self.mark(item.fact.node, claim, item.fact.text("source"), item.fact.text("quote"))
        return f"{shown} {mark} ({'; '.join(notes)})" if notes else f"{shown} {mark}"


def listed(parts: Sequence[str]) -> str:
    """Return `A, B and C`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def capital(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]
