"""One answer in words, by the shape of its question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from activities.providers.offline.material import Fact
from activities.providers.offline.questions import Question, Term
from activities.providers.offline.quantities import rounded, written
from activities.providers.offline.wording import (
    Citations,
    Display,
    Figure,
    be,
    capital,
    comparative,
    display_of,
    listed,
    of,
    opposite,
    superlative,
)
from activities.providers.offline.words import COMPARISONS, Attribute

_MORE = {
    "more": "larger",
    "most": "largest",
    "less": "smaller",
    "least": "smallest",
    "fewer": "smaller",
    "fewest": "smallest",
}
_COUNTED = {"more": "most", "most": "most", "fewer": "fewest", "fewest": "fewest"}
_PLACES = ("", "", "second ", "third ", "fourth ", "fifth ")
_NEXT = 2


@dataclass(slots=True)
class Part:
    """What is known for one question: figures by subject, results of its arithmetic, what is missing and why.

    `offered` are results of calculations that the plan did not make for this question; one that fits is taken.
    """

    question: Question
    citations: Citations
    figures: dict[str, Figure] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    results: dict[str, float] = field(default_factory=dict)
    offered: dict[str, tuple[str, float]] = field(default_factory=dict)
    named: dict[str, Fact] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    searched: bool = False
    truncated: bool = False

    @property
    def attribute(self) -> Attribute:
        """The property asked about."""
        if self.question.attribute is None:
            raise ValueError("a part about figures has an attribute")
        return self.question.attribute

    def display(self) -> Display:
        """How the figures are shown."""
        return display_of(list(self.figures.values()), self.question.unit)

    def cite(self, item: Figure) -> str:
        """A figure with its mark."""
        return self.citations.figure(item, self.attribute, self.display())

    def ranked(self) -> list[Figure]:
        """The figures, the one that wins first; an older thing has the smaller year."""
        flip = -1 if self.attribute.name == "age" and all(item.dated for item in self.figures.values()) else 1
        return sorted(self.figures.values(), key=lambda item: -item.value * self.question.sign * flip)


def tell(part: Part) -> str:
    """Return the answer to a question, what was not found, and where documents give other figures."""
    sentences = [_TELL[part.question.shape](part)] if part.figures or part.named else []
    if part.question.family:
        sentences = sentences or [f"No document was found that describes a {part.question.family}."]
        sentences += _family_notes(part)
    sentences += [*part.missing, *_dissent(part)]
    apart = "\n" if "\n" in sentences[0] else " "
    return apart.join(sentences)


def _mixed(part: Part) -> str:
    """The refusal to set different things against each other; empty when all measure the same."""
    dimensions = {item.unit.dimension for item in part.figures.values()}
    if len(dimensions) < 2:
        return ""
    shown = [
        f"{item.name} {part.citations.figure(item, part.attribute, Display(item.unit))}"
        for item in part.figures.values()
    ]
    return f"These figures measure different things and cannot be compared: {listed(shown)}."


def _partial(part: Part, what: str) -> str:
    """What is known when something is missing for `what`."""
    if not part.missing:
        return ""
    found = [f"{item.name} {part.cite(item)}" for item in part.figures.values()]
    return f"{what} cannot be given. Found: {listed(found)}."


def _lookup(part: Part) -> str:
    (item,) = part.figures.values()
    if item.dated and part.attribute.name == "age":
        return f"{capital(item.name)} was {part.cite(item)}; its age is counted from then."
    if item.dated:
        preposition = "on" if " on " in item.fact.text("text") else "in"
        return f"{capital(item.name)} was {_event(part)} {preposition} {part.cite(item)}."
    return f"The {of(part.attribute.name, item.name)} is {part.cite(item)}."


def _event(part: Part) -> str:
    return part.attribute.name.removeprefix("year ")


def _list(part: Part) -> str:
    if mixed := _mixed(part):
        return mixed
    lines = [f"\n- {item.name}: {part.cite(item)}" for item in part.figures.values()]
    return f"{capital(part.attribute.name)}:{''.join(lines)}"


def _compare(part: Part) -> str:
    if mixed := _mixed(part):
        return mixed
    if len(part.figures) < 2:
        return _partial(part, "The comparison")
    order = part.ranked()
    best, others = order[0], order[1:]
    if order[0].value == order[1].value:
        level = [item for item in order if item.value == best.value]
        rest = [f"{item.name} {part.cite(item)}" for item in order if item.value != best.value]
        names = listed([item.name for item in level])
        marks = listed([part.cite(item) for item in level])
        return f"{capital(names)} are level: {marks}{f'; {listed(rest)}' if rest else ''}."
    scope = "Of those found, " if part.missing else ""
    if len(order) == _NEXT:
        margin = _margin(part, order)
        return (
            f"{_start(scope, best.name)} {_wins(part, best)}: {part.cite(best)} against {part.cite(others[0])}{margin}."
        )
    head = f"{_start(scope, best.name)} {_wins(part, best)}: {part.cite(best)}."
    rest = listed([f"{item.name} {part.cite(item)}" for item in others])
    return f"{head} The others: {rest}.{_lead(part, order)}"


def _start(scope: str, name: str) -> str:
    return f"{scope}{name}" if scope else capital(name)


def _wins(part: Part, best: Figure, place: str = "") -> str:
    """`is longer`, `is the second longest`, `has more moons`, `has the highest melting point`, `was completed first`."""
    word, attribute = part.question.word, part.attribute
    most = len(part.figures) > _NEXT or bool(part.question.family)
    known = COMPARISONS.get(word)
    if known is not None and attribute.name.split(" from ")[0] in (known.attribute, "size"):
        return f"{be(best.name)} {f'the {place}{superlative(word)}' if most or known.superlative else word}"
    if attribute.dated:
        return f"was {_event(part)} {place}{'first' if part.question.sign < 0 else 'last'}"
    more = _MORE.get(word, word) or "greater"
    if attribute.name.startswith("number of ") and word in _COUNTED:
        return f"has {f'the {place}{_COUNTED[word]}' if most else word} {attribute.name.removeprefix('number of ')}"
    return f"has the {place}{superlative(more) if most else more} {attribute.name}"


def _margin(part: Part, order: Sequence[Figure]) -> str:
    amount = _result(part, "lead", order[0].value - order[1].value) if part.question.by else None
    return f", a difference of {part.display().change(abs(amount), order[0].unit)}" if amount is not None else ""


def _lead(part: Part, order: Sequence[Figure]) -> str:
    if not part.question.by:
        return ""
    other = order[-1] if part.question.by == "least" else order[1]
    amount = _result(part, "lead", order[0].value - other.value)
    if amount is None:
        return ""
    word = part.question.word
    end = opposite(word, part.attribute) if part.question.by == "least" else "next"
    more = comparative(word) if word in COMPARISONS else "ahead"
    than = "than" if word in COMPARISONS else "of"
    return f" It is {part.display().change(abs(amount), order[0].unit)} {more} {than} the {end}, {other.name}."


def _result(part: Part, name: str, expected: float) -> float | None:
    """The result of the planned calculation, or of one in a person's plan that gives the same."""
    if name in part.results:
        return part.results[name]
    display, unit = part.display(), next(iter(part.figures.values())).unit
    for node, (_, value) in list(part.offered.items()):
        if abs(abs(value) - abs(expected)) <= 1e-9 * max(1.0, abs(expected)):
            del part.offered[node]
            return value
        if unit.dimension == display.unit.dimension and part.display().change(abs(expected), unit) == written(
            abs(value), display.unit
        ):
            del part.offered[node]
            return expected
    return None


def _check(part: Part) -> str:
    if mixed := _mixed(part):
        return mixed
    if len(part.figures) < len(part.question.subjects):
        return _partial(part, "The comparison")
    first, second = (part.figures[term[0]] for term in part.question.terms)
    figures = f"{part.cite(first)} against {part.cite(second)}"
    if first.value == second.value:
        return f"No: both are level, {figures}."
    yes = part.ranked()[0] is first
    return f"{'Yes' if yes else 'No'}: {first.name} {be(first.name)} {'' if yes else 'not '}{part.question.word}, {figures}."


def _together(part: Part, term: Term) -> str:
    names = listed([part.figures[name].name for name in term])
    return f"{names} together" if len(term) > 1 else names


def _summed(part: Part, term: Term, result: str) -> str:
    """A term's figure; of several things the sum with its parts."""
    shown = " + ".join(part.cite(part.figures[name]) for name in term)
    if len(term) < 2:
        return shown
    unit = part.figures[term[0]].unit
    total = part.results.get(result)
    return f"{part.display().value(total, unit)} ({shown})" if total is not None else shown


def _difference(part: Part) -> str:
    if mixed := _mixed(part):
        return mixed
    if len(part.figures) < len(part.question.subjects):
        return _partial(part, "The difference")
    (left, right), unit = part.question.terms, next(iter(part.figures.values())).unit
    expected = sum(part.figures[name].value for name in left) - sum(part.figures[name].value for name in right)
    amount = _result(part, "difference", expected)
    first, second = _together(part, left), _together(part, right)
    one, two = _summed(part, left, "left_total"), _summed(part, right, "right_total")
    if amount is None:
        return f"{capital(first)}: {one}; {second}: {two}."
    if amount == 0:
        return f"There is no difference: {first} {one}, {second} {two}."
    shown = part.display().change(abs(amount), unit)
    older = part.attribute.name == "age" and next(iter(part.figures.values())).dated
    turned = amount * part.question.sign * (-1 if older else 1) < 0
    word = part.question.word
    if word not in COMPARISONS and word not in ("more", "fewer"):
        return f"The difference is {shown}: {first} {one}, {second} {two}."
    if turned:
        first, second, one, two = second, first, two, one
    said = f"{be(first)} {shown} {comparative(word)}"
    if word not in COMPARISONS:
        said = f"has {shown} {word} {part.attribute.name.removeprefix('number of ')}"
    sentence = f"{first} {said} than {second}: {one} against {two}."
    return f"It is the other way round: {sentence}" if turned else capital(sentence)


def _total(part: Part) -> str:
    (term,) = part.question.terms
    kind = "combined" if part.question.shape == "sum" else "average"
    if mixed := _mixed(part):
        return mixed
    if len(part.figures) < len(term):
        return _partial(part, f"The {kind} {part.attribute.name}")
    items = [part.figures[name] for name in term]
    expected = sum(item.value for item in items) / (1 if kind == "combined" else len(items))
    amount = _result(part, "total" if kind == "combined" else "average", expected)
    names, figures = listed([item.name for item in items]), listed([part.cite(item) for item in items])
    if amount is None:
        return f"The {part.attribute.name} of {names}: {figures}."
    shown = part.display().value(amount if kind == "combined" else rounded(amount, 6), items[0].unit)
    return f"The {kind} {part.attribute.name} of {names} is {shown}: {figures}."


def _ratio(part: Part) -> str:
    if mixed := _mixed(part):
        return mixed
    if len(part.figures) < len(part.question.subjects):
        return _partial(part, "The ratio")
    left, right = part.question.terms
    below = sum(part.figures[name].value for name in right)
    one, two = _summed(part, left, "left_total"), _summed(part, right, "right_total")
    amount = _result(part, "ratio", sum(part.figures[name].value for name in left) / below) if below else None
    if amount is None:
        return f"The ratio cannot be given: {one} against {two}."
    shown = rounded(amount)
    about = "" if shown == amount else "about "
    first, second = _together(part, left), _together(part, right)
    return (
        f"The {part.attribute.name} of {first} is {about}{written(shown)} times that of {second}: {one} against {two}."
    )


def _superlative(part: Part) -> str:
    if mixed := _mixed(part):
        return mixed
    order, question = part.ranked(), part.question
    kinds = question.family if len(order) == 1 else _plural(question.family)
    among = f"the {len(order)} {kinds} whose {_given(part)} the documents give"
    if question.top > 1:
        lines = [f"\n{place}. {item.name}: {part.cite(item)}" for place, item in enumerate(order[: question.top], 1)]
        return (
            f"{f'Of {among}, the first {len(lines)}' if len(lines) < len(order) else capital(among)}:{''.join(lines)}"
        )
    if question.rank > len(order):
        return f"There are only {among}: {listed([f'{item.name} {part.cite(item)}' for item in order])}."
    item, place = order[question.rank - 1], _PLACES[question.rank]
    shown = f"Of {among}, {item.name} {_wins(part, item, place)}: {part.cite(item)}."
    level = [other.name for other in order if other.value == item.value and other is not item]
    near, label = (order[1:3], "Next") if question.rank == 1 else (order[: question.rank - 1], "Before it")
    tied = f" It is level with {listed(level)}." if level else ""
    return (
        shown + tied + (f" {label}: {listed([f'{other.name} {part.cite(other)}' for other in near])}." if near else "")
    )


def _given(part: Part) -> str:
    return "year" if part.attribute.dated else part.attribute.name


def _members(part: Part) -> str:
    items = []
    for fact in part.named.values():
        name = fact.text("name")
        mark = part.citations.mark(fact.node, f"{capital(name)} is described", fact.text("source"), fact.text("quote"))
        items.append(f"{name} {mark}")
    count = len(items)
    noun = part.question.family if count == 1 else _plural(part.question.family)
    return f"The documents describe {count} {noun}: {listed(sorted(items, key=str.lower))}."


def _family_notes(part: Part) -> list[str]:
    notes = []
    if part.lacking:
        notes.append(f"No {_given(part)} was found for {listed(sorted(part.lacking))}.")
    if part.searched and (part.figures or part.named):
        notes.append(f"They were found by a search for “{part.question.family}”, so there may be more.")
    if part.truncated:
        notes.append("Only the first files of the folder were read.")
    return notes


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def _dissent(part: Part) -> list[str]:
    """Which documents give a second figure, marked; the figures stand in the evidence."""
    others = []
    for item in part.figures.values() if not part.question.family else ():
        if quote := item.fact.text("differs"):
            claim = f"Another figure for the {of(item.fact.text('attribute'), item.name)}"
            others.append(f"{item.name} {part.citations.mark(item.fact.node, claim, item.fact.text('source'), quote)}")
    return [f"The documents also mention other figures for {listed(others)}."] if others else []


_TELL: dict[str, Callable[[Part], str]] = {
    "lookup": _lookup,
    "list": _list,
    "compare": _compare,
    "check": _check,
    "difference": _difference,
    "sum": _total,
    "average": _total,
    "ratio": _ratio,
    "superlative": _superlative,
    "members": _members,
}
