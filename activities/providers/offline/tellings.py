"""One answer in words, by the shape of its question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from activities.providers.offline.material import Fact
from activities.providers.offline.quantities import rounded, written
from activities.providers.offline.questions import Question, Term
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
    plural,
    superlative,
)
from activities.providers.offline.words import COMPARISONS, Attribute

_MORE = {"more": "larger", "most": "largest", "less": "smaller", "least": "smallest", "": "greater"}
_COUNTED = {"more": "most", "most": "most", "fewer": "fewest", "fewest": "fewest"}
_PLACES = ("", "", "second ", "third ", "fourth ", "fifth ")
# What cannot be told while a figure is missing.
_WHOLE = {"check": "comparison", "difference": "difference", "ratio": "ratio", "sum": "sum", "average": "average"}


@dataclass(slots=True)
class Part:
    """What is known for one question: figures by subject, results of its arithmetic, what is missing and why."""

    question: Question
    citations: Citations
    figures: dict[str, Figure] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    results: dict[str, float] = field(default_factory=dict)
    members: dict[str, Fact] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    searched: bool = False
    truncated: bool = False

    @property
    def attribute(self) -> Attribute:
        """The property asked about."""
        if self.question.attribute is None:
            raise ValueError("a part about figures has an attribute")
        return self.question.attribute

    @property
    def event(self) -> str:
        """What happened, of a dated attribute: "completed"."""
        return self.attribute.name.removeprefix("year ")

    @property
    def display(self) -> Display:
        """How the figures are shown."""
        return display_of(list(self.figures.values()), self.question.unit)

    def cite(self, item: Figure) -> str:
        """A figure with its mark."""
        mixed = len({each.unit.dimension for each in self.figures.values()}) > 1
        return self.citations.figure(item, self.attribute, Display(item.source, item.scale) if mixed else self.display)

    def named(self, items: Sequence[Figure]) -> str:
        """`the Nile 6,650 km [1] and the Rhine 1,230 km [2]`."""
        return listed([f"{item.name} {self.cite(item)}" for item in items])

    def change(self, amount: float) -> str:
        """A difference of figures as it is shown."""
        return self.display.change(abs(amount), next(iter(self.figures.values())).unit)

    def ranked(self) -> list[Figure]:
        """The figures, the one that wins first; an older thing has the smaller year."""
        sign = -self.question.sign if self.counts_back else self.question.sign
        return sorted(self.figures.values(), key=lambda item: -item.value * sign)

    @property
    def counts_back(self) -> bool:
        """Whether ages are told by years, of which the smaller is the older."""
        return self.attribute.name == "age" and all(item.dated for item in self.figures.values())


def tell(part: Part) -> str:
    """Return the answer to a question, what was not found, and where documents give other figures."""
    sentences = []
    if part.figures or part.members:
        sentences.append(_refused(part) or _TELL[part.question.shape](part))
    elif part.question.family:
        sentences.append(f"No document was found that describes a {part.question.family}.")
    if part.question.family:
        sentences += _family_notes(part)
    sentences += [*part.missing, *_dissent(part)]
    return ("\n" if "\n" in sentences[0] else " ").join(sentences)


def _refused(part: Part) -> str:
    """Why figures that were found do not answer; empty when they do."""
    figures, question = list(part.figures.values()), part.question
    if len({item.unit.dimension for item in figures}) > 1:
        return f"These figures measure different things and cannot be set against each other: {part.named(figures)}."
    lacks = _WHOLE.get(question.shape) if len(figures) < len(question.subjects) else None
    if question.shape == "compare" and len(figures) < 2:
        lacks = "comparison"
    return f"The {lacks} cannot be given. Found: {part.named(figures)}." if lacks else ""


def _lookup(part: Part) -> str:
    (item,) = part.figures.values()
    if not item.dated:
        return f"The {of(part.attribute.name, item.name)} is {part.cite(item)}."
    if part.attribute.name == "age":
        return f"{capital(item.name)} was {part.cite(item)}; its age is counted from then."
    preposition = "on" if " on " in item.fact.text("text") else "in"
    return f"{capital(item.name)} was {part.event} {preposition} {part.cite(item)}."


def _list(part: Part) -> str:
    lines = [f"\n- {item.name}: {part.cite(item)}" for item in part.figures.values()]
    return f"{capital(part.attribute.name)}:{''.join(lines)}"


def _compare(part: Part) -> str:
    order = part.ranked()
    best, others = order[0], order[1:]
    scope = "Of those found, " if part.missing else ""
    level = [item for item in order if item.value == best.value]
    if len(level) > 1:
        rest = f"; {part.named(order[len(level) :])}" if len(level) < len(order) else ""
        marks = listed([part.cite(item) for item in level])
        return capital(f"{scope}{listed([item.name for item in level])} are level: {marks}{rest}.")
    head = capital(f"{scope}{best.name} {_wins(part, best)}: {part.cite(best)}")
    if len(others) > 1:
        return f"{head}. The others: {part.named(others)}.{_lead(part, order)}"
    amount = part.results.get("lead")
    margin = f", a difference of {part.change(amount)}" if amount is not None else ""
    return f"{head} against {part.cite(others[0])}{margin}."


def _wins(part: Part, best: Figure, place: str = "") -> str:
    """`is longer`, `is the second longest`, `has more moons`, `has the highest melting point`."""
    word, attribute = part.question.word, part.attribute
    most = len(part.figures) > 2 or bool(part.question.family)
    known = COMPARISONS.get(word)
    if known is not None and attribute.name.split(" from ")[0] in (known.attribute, "size"):
        return f"{be(best.name)} {f'the {place}{superlative(word)}' if most or known.superlative else word}"
    if attribute.dated:
        return f"was {part.event} {place}{'first' if part.question.sign < 0 else 'last'}"
    if attribute.name.startswith("number of ") and word in _COUNTED:
        return f"has {f'the {place}{_COUNTED[word]}' if most else word} {attribute.name.removeprefix('number of ')}"
    more = _MORE.get(word, word)
    return f"has the {place}{superlative(more) if most else more} {attribute.name}"


def _lead(part: Part, order: Sequence[Figure]) -> str:
    amount = part.results.get("lead")
    if amount is None:
        return ""
    word, least = part.question.word, part.question.by == "least"
    more = f"{comparative(word)} than" if word in COMPARISONS else "ahead of"
    end, other = (opposite(word), order[-1]) if least else ("next", order[1])
    return f" It is {part.change(amount)} {more} the {end}, {other.name}."


def _check(part: Part) -> str:
    first, second = (part.figures[term[0]] for term in part.question.terms)
    figures = f"{part.cite(first)} against {part.cite(second)}"
    if first.value == second.value:
        return f"No: both are level, {figures}."
    answer, denied = ("Yes", "") if part.ranked()[0] is first else ("No", "not ")
    return f"{answer}: {first.name} {be(first.name)} {denied}{part.question.word}, {figures}."


def _side(part: Part, term: Term, result: str) -> tuple[str, str]:
    """A term's name and figure; of several things together the sum with its parts."""
    items = [part.figures[name] for name in term]
    names, shown = listed([item.name for item in items]), " + ".join(part.cite(item) for item in items)
    if len(items) == 1:
        return names, shown
    total = part.results.get(result)
    return f"{names} together", f"{part.display.value(total, items[0].unit)} ({shown})" if total is not None else shown


def _sides(part: Part, *, turned: bool = False) -> tuple[tuple[str, str], tuple[str, str]]:
    """Both terms, each with its figure, the second first if `turned`."""
    left, right = zip(part.question.terms, ("left_total", "right_total"), strict=True)
    first, second = (right, left) if turned else (left, right)
    return _side(part, *first), _side(part, *second)


def _difference(part: Part) -> str:
    word, amount = part.question.word, part.results.get("difference")
    counted = word in ("more", "fewer")
    if not amount or (word not in COMPARISONS and not counted):
        (first, one), (second, two) = _sides(part)
        head = "" if amount is None else f"The difference is {part.change(amount)}: " if amount else "No difference: "
        return capital(f"{head}{first} {one}, {second} {two}.")
    turned = amount * part.question.sign * (-1 if part.counts_back else 1) < 0
    (first, one), (second, two) = _sides(part, turned=turned)
    more = f"{be(first)} {part.change(amount)} {comparative(word)}"
    if counted:
        more = f"has {part.change(amount)} {word} {part.attribute.name.removeprefix('number of ')}"
    elif part.attribute.name.split(" from ")[0] not in (COMPARISONS[word].attribute, "size"):
        first, second = f"the {of(part.attribute.name, first)}", f"that of {second}"
        more = f"is {part.change(amount)} {comparative(word)}"
    sentence = f"{first} {more} than {second}: {one} against {two}."
    return f"It is the other way round: {sentence}" if turned else capital(sentence)


def _total(part: Part) -> str:
    items = [part.figures[name] for name in part.question.terms[0]]
    result, kind = ("total", "combined") if part.question.shape == "sum" else ("average", "average")
    names, figures = listed([item.name for item in items]), listed([part.cite(item) for item in items])
    amount = part.results.get(result)
    if amount is None:
        return f"The {part.attribute.name} of {names}: {figures}."
    shown = part.display.value(rounded(amount, 6) if kind == "average" else amount, items[0].unit)
    return f"The {kind} {part.attribute.name} of {names} is {shown}: {figures}."


def _ratio(part: Part) -> str:
    (first, one), (second, two) = _sides(part)
    amount = part.results.get("ratio")
    if amount is None:
        return f"The ratio cannot be given: {one} against {two}."
    times = f"{'' if rounded(amount) == amount else 'about '}{written(rounded(amount))}"
    return f"The {of(part.attribute.name, first)} is {times} times that of {second}: {one} against {two}."


def _superlative(part: Part) -> str:
    order, question = part.ranked(), part.question
    among = f"the {len(order)} {plural(question.family)} whose {_given(part)} the documents give"
    if len(order) == 1:
        return f"The documents give the {_given(part)} of one {question.family} only: {part.named(order)}."
    if question.top > 1:
        lines = [f"\n{place}. {item.name}: {part.cite(item)}" for place, item in enumerate(order[: question.top], 1)]
        head = f"Of {among}, the first {len(lines)}" if len(lines) < len(order) else capital(among)
        return f"{head}:{''.join(lines)}"
    if question.rank > len(order):
        return f"There are only {among}: {part.named(order)}."
    item = order[question.rank - 1]
    shown = f"Of {among}, {item.name} {_wins(part, item, _PLACES[question.rank])}: {part.cite(item)}."
    level = listed([other.name for other in order if other.value == item.value and other is not item])
    near, label = (order[1:3], "Next") if question.rank == 1 else (order[: question.rank - 1], "Before it")
    return f"{shown}{f' It is level with {level}.' if level else ''}{f' {label}: {part.named(near)}.' if near else ''}"


def _given(part: Part) -> str:
    return "year" if part.attribute.dated else part.attribute.name


def _members(part: Part) -> str:
    items = []
    for fact in part.members.values():
        name = fact.text("name") or fact.text("subject")
        claim = f"{capital(name)} is described"
        items.append((name, part.citations.mark(fact.node, claim, fact.text("source"), fact.text("quote"))))
    kinds = part.question.family if len(items) == 1 else plural(part.question.family)
    return f"The documents describe {len(items)} {kinds}: {listed([f'{name} {mark}' for name, mark in items])}."


def _family_notes(part: Part) -> list[str]:
    notes = []
    if part.lacking:
        notes.append(f"No {_given(part)} was found for {listed(part.lacking)}.")
    if part.searched and (part.figures or part.members):
        notes.append(f"They were found by a search for “{part.question.family}”, so there may be more.")
    if part.truncated:
        notes.append("Only the first files of the folder were read.")
    return notes


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
