"""Finds one property of one thing in passages, with the sentence that gives it, or says that no sentence does."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from activities.providers.offline.figures import Bound, bound_figures
from activities.providers.offline.names import CLOSE, EXACT, fold, mention, relation, same_name
from activities.providers.offline.owners import Subject, about
from activities.providers.offline.quantities import Quantity, quantities
from activities.providers.offline.sentences import Passage, Sentence, sentences
from activities.providers.offline.units import YEAR, Unit, convert, unit_of, usual
from activities.providers.offline.words import ATTRIBUTES, Attribute, singular

_ENOUGH = 1.4
_CLOSE_CALL = 0.6
_DISSENT = re.compile(
    r"(?:some|other|others|older|newer|earlier|recent|different|one|a few|by another|alternatively)\b"
)
_UNCERTAIN = re.compile(r"\b(?:once|formerly|originally|planned|proposed|would|projected|could have|expected|if)\b")
_YEAR_WORDS = re.compile(r"(?:\b(?:as of|in|since|by|from|of|for)|\()\s*(?:the\s+)?$")
_EVENT_WORD = re.compile(
    r"\b(?!measured|counted|estimated|recorded|surveyed|given|quoted|published|based|listed|had|lived)"
    r"\w+(?:ed|own|ilt|egan)\s+(?:in|on|since|by)\s*$"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One fact to look for. `unit` is the symbol to give the value in, `year` the year it must hold for."""

    attribute: Attribute
    subject: str
    unit: str = ""
    year: int | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    score: float
    order: int
    bound: Bound
    attribute: Attribute
    sentence: Sentence
    year: int | None

    @property
    def key(self) -> tuple[float, int, int]:
        return round(self.score, 1), self.year or 0, -self.order


def extract(wanted: Wanted, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return the fact as `{found: true, value, unit, text, year, quote, source, ...}`, else `{found: false, reason}`.

    The value is converted to the wanted unit, or to the one unit its dimension is always given in.
    """
    statements = [item for passage in passages for item in sentences(passage)]
    unclear = _several(wanted.subject, statements)
    if unclear:
        return _missing(wanted, passages, f"several documents could be meant: {', '.join(unclear)}")
    attributes = [wanted.attribute, *(ATTRIBUTES[name] for name in wanted.attribute.accepts)]
    for attribute in attributes:
        candidates = _candidates(wanted, attribute, statements)
        for candidate in _ordered(candidates):
            value = _value(candidate, wanted)
            if value is not None:
                return _found(wanted, candidate, *value, statements)
    if wanted.year is not None:
        reason = f"no passage gives the {wanted.attribute.name} of {wanted.subject} in {wanted.year}"
    else:
        reason = f"no passage gives the {_said(wanted.attribute)} of {wanted.subject}"
    return _missing(wanted, passages, reason)


def _ordered(candidates: list[_Candidate]) -> list[_Candidate]:
    """The best first; a figure for a later year goes before an older one of the same document."""
    order = sorted(candidates, key=lambda item: item.key, reverse=True)
    if not order or order[0].year is None:
        return order
    best = order[0]
    near = (
        item
        for item in order
        if item.score >= best.score - _CLOSE_CALL and item.sentence.passage == best.sentence.passage
    )
    newest = max(near, key=lambda item: item.year or 0)
    return [newest, *(item for item in order if item is not newest)]


def _said(attribute: Attribute) -> str:
    return "year" if attribute.name == "origin" else attribute.name


def _missing(wanted: Wanted, passages: Sequence[Passage], reason: str) -> dict[str, Any]:
    looked = list(dict.fromkeys(passage.path for passage in passages))
    return {
        "found": False,
        "subject": wanted.subject,
        "attribute": wanted.attribute.name,
        "reason": reason,
        "looked_in": looked,
    }


def _several(subject: str, statements: Iterable[Sentence]) -> list[str]:
    """The titles that could be meant when none is the thing itself and more than one comes close."""
    titles: dict[str, int] = {}
    for item in statements:
        if mention(subject).match(fold(item.text)):
            return []
        titles[item.passage.title] = max(titles.get(item.passage.title, 0), about(subject, item))
    if EXACT in titles.values():
        return []
    close = [title for title, level in titles.items() if level == CLOSE]
    return sorted(close) if len(close) > 1 else []


def _candidates(wanted: Wanted, attribute: Attribute, statements: Sequence[Sentence]) -> list[_Candidate]:
    found = []
    for order, item in enumerate(statements):
        subject = Subject(wanted.subject, attribute, item)
        for clause in subject.clauses():
            if clause.owner <= 0:
                continue
            spans = [match.span() for name in subject.names for match in name.finditer(fold(clause.text))]
            for bound in bound_figures(clause.text, attribute, spans):
                if _avoided(clause.text, bound.quantity, wanted, attribute):
                    continue
                year = None if attribute.dated else _year(item.text, bound.quantity)
                if wanted.year is not None and year != wanted.year:
                    continue
                score = clause.owner + bound.strength + 0.3 * subject.about
                score -= bool(_UNCERTAIN.search(fold(clause.text))) + 0.7 * bool(_DISSENT.match(fold(item.text)))
                if score >= _ENOUGH:
                    found.append(_Candidate(score, order, bound, attribute, item, year))
    return found


def _avoided(text: str, quantity: Quantity, wanted: Wanted, attribute: Attribute) -> bool:
    """Whether the words around the figure make it another kind of the property: metropolitan, average, per day."""
    folded = fold(text)
    if any(not re.search(rf"\b{re.escape(fold(word))}\b", folded) for word in attribute.requires):
        return True
    earlier = [item.end for item in quantities(text) if item.end <= quantity.start and item.unit is not YEAR]
    near = folded[max([0, *earlier]) : quantity.end] + re.split(r"[,;]|\sand\s", folded[quantity.end :])[0]
    asked = fold(f"{wanted.attribute.name} {wanted.subject}")
    return any(re.search(rf"\b{word}\b", near) and word not in asked for word in attribute.avoid)


def _year(text: str, quantity: Quantity) -> int | None:
    """The year that the figure holds for: `in 2020`, `as of 2020`, `(2020)`; not the year of an event."""
    years = []
    for item in quantities(text):
        before = fold(text[: item.start])
        if quantity.start < item.end and item.start < quantity.end:
            continue
        if item.unit is YEAR and item.text.isdigit() and _YEAR_WORDS.search(before) and not _EVENT_WORD.search(before):
            years.append((abs(item.start - quantity.end), int(item.value)))
    return min(years)[1] if years else None


def _value(candidate: _Candidate, wanted: Wanted) -> tuple[float, Unit] | None:
    """The figure in the unit wanted; None when it measures something else."""
    quantity = candidate.bound.quantity
    target = (
        unit_of(wanted.unit) or unit_of(candidate.attribute.unit) or usual(quantity.unit.dimension) or quantity.unit
    )
    if target.dimension != quantity.unit.dimension:
        if wanted.unit and wanted.unit != wanted.attribute.unit:
            return None
        target = usual(quantity.unit.dimension) or quantity.unit
    return convert(quantity.value, quantity.unit, target), target


def _found(
    wanted: Wanted, candidate: _Candidate, value: float, unit: Unit, statements: Sequence[Sentence]
) -> dict[str, Any]:
    item, quantity = candidate.sentence, candidate.bound.quantity
    text = quantity.text if not candidate.attribute.dated else _event(candidate, quantity)
    result: dict[str, Any] = {
        "found": True,
        "subject": wanted.subject,
        "name": shown_name(wanted.subject, item, statements),
        "attribute": candidate.attribute.name,
        "value": value,
        "unit": unit.symbol,
        "text": text,
        "year": candidate.year,
        "quote": item.line,
        "source": item.passage.path,
    }
    if quantity.low is not None and quantity.high is not None:
        result["range"] = [convert(end, quantity.unit, unit) for end in (quantity.low, quantity.high)]
    other = _dissent(candidate, statements)
    return result | ({"differs": other} if other else {})


def _event(candidate: _Candidate, quantity: Quantity) -> str:
    """What happened when: `completed in 1889`, `opened on 27 May 1937`."""
    cue = candidate.bound.cue
    event = cue if cue.endswith(("ed", "born", "built")) else candidate.attribute.name.removeprefix("year ")
    return f"{event} {'on' if re.search('[0-9] ?[A-Za-z]|[a-z] [0-9]{1,2},', quantity.text) else 'in'} {quantity.text}"


def _dissent(chosen: _Candidate, statements: Sequence[Sentence]) -> str | None:
    """A later sentence of the same document that gives another figure for the same thing."""
    figure = chosen.bound.quantity
    for item in statements:
        if item.passage.path != chosen.sentence.passage.path or not _DISSENT.match(fold(item.text)):
            continue
        for other in quantities(item.text):
            near = other.unit.dimension == figure.unit.dimension and not other.word
            if near and other.text != figure.text and figure.value and figure.unit is not YEAR:
                ratio = convert(other.value, other.unit, figure.unit) / figure.value
                if 0.5 < ratio < 2 and ratio != 1 and _same_matter(item.text, other, chosen):
                    return item.line
    return None


def _same_matter(text: str, figure: Quantity, chosen: _Candidate) -> bool:
    own = {item.quantity.start for item in bound_figures(text, chosen.attribute)}
    if figure.start in own:
        return True
    rivals = (item for item in ATTRIBUTES.values() if item.name != chosen.attribute.name and not item.dated)
    claimed = {item.quantity.start for rival in rivals for item in bound_figures(text, rival)}
    return figure.start not in claimed and bool(
        re.search(r"\b(?:give|gives|put|puts|list|lists|say|estimate|quote|state|print|stop|count|include)s?\b", text)
    )


def shown_name(asked: str, chosen: Sentence, statements: Iterable[Sentence]) -> str:
    """Return the name as the document writes it: article and capitals from its sentences."""
    bare = re.sub(r"^(?:the|an?) ", "", asked, flags=re.IGNORECASE)
    given = asked[: len(asked) - len(bare)].lower()
    title = next((name for name in (chosen.passage.title, chosen.topic) if relation(asked, name)), bare)
    pattern = re.compile(rf"(?<!\w)((?:the )?)({re.escape(fold(title))})(?!\w)")
    seen = [
        (match, item)
        for item in statements
        for match in pattern.finditer(fold(item.text))
        if item.passage == chosen.passage
    ]
    article = "the " if given == "the " or _mostly(seen) else given if fold(title) == fold(bare) else ""
    inner = [item.text[match.start(2) : match.end(2)] for match, item in seen if match.start(2) > 0]
    lower = any(text[:1].islower() for text in inner)
    return article + (title[:1].lower() + title[1:] if lower else title)


def _mostly(seen: list[tuple[re.Match[str], Sentence]]) -> bool:
    return sum(1 for match, _ in seen if match[1]) * 2 > len(seen)


def of_kind(passage: Passage, family: str) -> bool:
    """Whether a document is about a member of a family: by its folder, or by what its first sentences say it is."""
    wanted = tuple(singular(word) for word in fold(family).split())
    for part in passage.path.split("/")[:-1]:
        if tuple(singular(word) for word in re.findall(r"[^\W_]+", fold(part))) == wanted:
            return True
    noun = r"[\s-]+".join(re.escape(word) for word in wanted)
    head = r"(?:(?!of\b|in\b|on\b|that\b|which\b)[\w'-]+\s+){0,5}?"
    kind = re.compile(rf"\b(?:is|was|are|were)\s+(?:an?|the|one of the)\s+{head}{noun}s?\b")
    for item in sentences(passage)[:3]:
        if mention(passage.title).match(fold(item.text)) and kind.search(fold(item.text)):
            return True
    return False


def same_subject(left: str, right: str) -> bool:
    """Whether two findings are about the same thing."""
    return same_name(left, right)


def quote_of(title: str, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return the name of what a document describes, with its first sentence."""
    statements = [item for passage in passages for item in sentences(passage)]
    if not statements:
        return {
            "found": True,
            "subject": title,
            "name": title,
            "text": title,
            "quote": title,
            "source": passages[0].path,
        }
    name = shown_name(title, statements[0], statements)
    return {
        "found": True,
        "subject": title,
        "name": name,
        "text": title,
        "quote": statements[0].line,
        "source": passages[0].path,
    }
