"""One answer in words, by the shape of its question."""

from collections.abc import Callable
from dataclasses import dataclass, field

from activities.providers.offline.citations import Citations, Figure, capital, listed
from activities.providers.offline.quantities import rounded, written
from activities.providers.offline.questions import Question
from activities.providers.offline.units import YEAR, Unit
from activities.providers.offline.words import COMPARISONS, Attribute, of, plural

_MORE = {"more": "larger", "most": "largest", "less": "smaller", "least": "smallest", "": "greater"}


@dataclass(slots=True)
class Part:
    """What is known for one question: figures, the result of its arithmetic, what is missing and why."""

    question: Question
    attribute: Attribute
    citations: Citations
    figures: list[Figure] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    result: float | None = None

    @property
    def unit(self) -> Unit:
        """The unit that figures are shown in: the documents', where they agree and no other is asked for."""
        given = {item.given for item in self.figures}
        return self.figures[0].unit if self.question.unit or len(given) > 1 else self.figures[0].given

    def cite(self, item: Figure) -> str:
        """A figure with its mark."""
        unit = self.unit if self.unit.dimension == item.unit.dimension else item.unit
        return self.citations.figure(item, self.attribute.name, unit)

    def named(self, items: list[Figure]) -> str:
        """`the Nile 6,650 km [1] and the Rhine 1,230 km [2]`."""
        return listed([f"{item.name} {self.cite(item)}" for item in items])

    def change(self, amount: float) -> str:
        """A difference of figures as it is shown; years apart are counted in years."""
        if self.unit is not YEAR:
            return written(rounded(abs(amount) * self.figures[0].unit.factor / self.unit.factor, 8), self.unit)
        return f"{abs(int(amount)):,} year{'' if abs(int(amount)) == 1 else 's'}"

    def ranked(self) -> list[Figure]:
        """The figures, the one that wins first."""
        return sorted(self.figures, key=lambda item: -item.value * self.question.sign)


def tell(part: Part) -> str:
    """Return the answer to a question, what was not found, and where documents give other figures."""
    said = []
    if part.figures:
        said.append(_refused(part) or _TELL[part.question.shape](part))
    elif part.question.family and not part.missing:
        said.append(f"No folder of the documents is named after {plural(part.question.family)}.")
    said += [*part.missing, *_dissent(part)]
    return ("\n" if "\n" in said[0] else " ").join(said)


def _refused(part: Part) -> str:
    """Why figures that were found do not answer; empty when they do."""
    figures, question = part.figures, part.question
    alike = ("", part.attribute.name, *part.attribute.accepts)
    if len({item.unit for item in figures}) > 1 or any(item.fact.text("attribute") not in alike for item in figures):
        return f"These figures measure different things and cannot be set against each other: {part.named(figures)}."
    whole = question.shape in ("difference", "ratio", "sum") and len(figures) < len(question.subjects)
    if whole or (question.shape == "compare" and len(figures) < 2):
        return f"The {question.shape.replace('compare', 'comparison')} cannot be given. Found: {part.named(figures)}."
    return ""


def _lookup(part: Part) -> str:
    item = part.figures[0]
    if item.unit is not YEAR:
        return f"The {of(part.attribute.name, item.name)} is {part.cite(item)}."
    event = "" if part.attribute.name == "year of origin" else f"{part.attribute.event} in "
    return f"{capital(item.name)} was {event}{part.cite(item)}."


def _list(part: Part) -> str:
    items = part.ranked() if part.question.family else part.figures
    return f"{capital(part.attribute.name)}:" + "".join(f"\n- {item.name}: {part.cite(item)}" for item in items)


def _compare(part: Part) -> str:
    order = part.ranked()
    best, others = order[0], order[1:]
    scope = "Of those found, " if part.missing else ""
    level = [item for item in order if item.value == best.value]
    if len(level) > 1:
        rest = f"; {part.named(order[len(level) :])}" if len(level) < len(order) else ""
        return capital(f"{scope}{part.named(level)} are level{rest}.")
    head = capital(f"{scope}{best.name} {_wins(part)}: {part.cite(best)}")
    if len(others) == 1:
        margin = f", a difference of {part.change(part.result)}" if part.result is not None else ""
        return f"{head} against {part.cite(others[0])}{margin}."
    return f"{head}. The others: {part.named(others)}.{_lead(part, order)}"


def _wins(part: Part) -> str:
    """`is longer`, `is the longest`, `has more moons`, `has the highest melting point`."""
    question, attribute = part.question, part.attribute
    word = question.word
    most = len(part.figures) > 2 or bool(question.family)
    known = COMPARISONS.get(word)
    if known is not None and attribute.name.split(" from ")[0] == known.attribute:
        return f"is the {known.most}" if most or word == known.most else f"is {known.more}"
    if attribute.dated:
        return f"was {attribute.event} {word}"
    if attribute.name.startswith("number of ") and word in ("more", "most", "fewer", "fewest"):
        amount = {"more": "the most", "fewer": "the fewest"}.get(word, f"the {word}") if most else word
        return f"has {amount} {attribute.name.removeprefix('number of ')}"
    more = _MORE.get(word, word)
    degree = COMPARISONS.get(more)
    shown = more if degree is None else degree.most if most else degree.more
    return f"has the {'greatest' if shown == 'greater' and most else shown} {attribute.name}"


def _lead(part: Part, order: list[Figure]) -> str:
    if part.result is None:
        return ""
    known = COMPARISONS.get(part.question.word)
    more = f"{known.more} than" if known else "ahead of"
    if part.question.by == "next":
        return f" It is {part.change(part.result)} {more} the next, {order[1].name}."
    ends = (item for item in COMPARISONS.values() if known and item.attribute == known.attribute)
    least = next((item.most for item in ends if known and item.sign != known.sign), "last")
    return f" It is {part.change(part.result)} {more} the {least}, {order[-1].name}."


def _difference(part: Part) -> str:
    first, second = part.figures
    word, amount, attribute = part.question.word, part.result, part.attribute
    known = COMPARISONS.get(word)
    if not amount or not (known or word in ("more", "fewer")):
        head = "" if amount is None else f"The difference is {part.change(amount)}: " if amount else "No difference: "
        return capital(f"{head}{first.name} {part.cite(first)}, {second.name} {part.cite(second)}.")
    turned = amount * part.question.sign < 0
    if turned:
        first, second = second, first
    if not known:
        things = attribute.name.removeprefix("number of ")
        said = f"{first.name} has {part.change(amount)} {word} {things} than {second.name}"
    elif attribute.name.split(" from ")[0] == known.attribute:
        said = f"{first.name} is {part.change(amount)} {known.more} than {second.name}"
    else:
        said = f"the {of(attribute.name, first.name)} is {part.change(amount)} {known.more} than that of {second.name}"
    said = f"{said}: {part.cite(first)} against {part.cite(second)}."
    return f"It is the other way round: {said}" if turned else capital(said)


def _sum(part: Part) -> str:
    names, figures = listed([item.name for item in part.figures]), listed([part.cite(item) for item in part.figures])
    if part.result is None:
        return f"The {part.attribute.name} of {names}: {figures}."
    return f"The combined {part.attribute.name} of {names} is {part.change(part.result)}: {figures}."


def _ratio(part: Part) -> str:
    first, second = part.figures
    figures = f"{part.cite(first)} against {part.cite(second)}"
    if part.result is None:
        return f"The ratio cannot be given: {figures}."
    times = f"{'' if rounded(part.result) == part.result else 'about '}{written(rounded(part.result))}"
    return f"The {of(part.attribute.name, first.name)} is {times} times that of {second.name}: {figures}."


def _superlative(part: Part) -> str:
    order, question = part.ranked(), part.question
    given = "year" if part.attribute.dated else part.attribute.name
    if len(order) == 1:
        return f"The documents give the {given} of one {question.family} only: {part.named(order)}."
    among = f"the {len(order)} {plural(question.family)} whose {given} the documents give"
    best = order[0]
    level = listed([other.name for other in order[1:] if other.value == best.value])
    said = f"Of {among}, {best.name} {_wins(part)}: {part.cite(best)}."
    return f"{said}{f' It is level with {level}.' if level else ''} Next: {part.named(order[1:3])}."


def _dissent(part: Part) -> list[str]:
    """Which documents give a second figure, marked; the figures stand in the evidence."""
    others = []
    for item in part.figures if not part.question.family else ():
        if quote := item.fact.text("differs"):
            claim = f"Another figure for the {of(item.fact.text('attribute'), item.name)}"
            others.append(f"{item.name} {part.citations.mark(item.fact.node, claim, item.fact.text('source'), quote)}")
    return [f"The documents also mention other figures for {listed(others)}."] if others else []


_TELL: dict[str, Callable[[Part], str]] = {
    "lookup": _lookup,
    "list": _list,
    "compare": _compare,
    "difference": _difference,
    "sum": _sum,
    "ratio": _ratio,
    "superlative": _superlative,
}
