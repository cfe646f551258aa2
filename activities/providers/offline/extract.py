"""Finds one property of one thing in passages, with the sentence that gives it, or says that no sentence does.

A figure counts only in a part of a sentence that is plainly about the thing, beside a word that names the property.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from activities.providers.offline.figures import bound
from activities.providers.offline.names import CLOSE, EXACT, bare, fold, mention, relation
from activities.providers.offline.quantities import Quantity, quantities
from activities.providers.offline.sentences import Passage, Sentence, sentences, stem_of
from activities.providers.offline.units import YEAR, Unit, convert, unit_of, usual
from activities.providers.offline.words import ATTRIBUTES, Attribute, any_of, singular

_DISSENT = re.compile(r"(?:some|others?|older|newer|earlier|recent|different|one|a few|by another|alternatively)\b")
_UNCERTAIN = re.compile(
    r"\b(?:once|formerly|originally|planned|proposed|would|will|projected|could have|expected)\b|\bwas\b.*\buntil\b"
)
_AS_OF = re.compile(r"(?:\b(?:as of|in|since|by|from|of|for)|\()\s*(?:the\s+)?$")
_EVENT = re.compile(
    r"\b(?!measured|counted|estimated|recorded|surveyed|given|quoted|published|based|listed|had|lived)"
    r"\w+(?:ed|own|ilt|egan)\s+(?:in|on|since|by)\s*$"
)
_LEAD = re.compile(
    r"(?:(?:in|as of|by|since|at|with|for|from|after|measuring|standing|rising|covering|weighing|today|now|overall|"
    r"officially|according to)\b(?:[^,(]|,(?=\d{3})|\([^)]*\)){0,90},\s+|(?:in|as of)\s+\d{4}\s+|(?:today|now)\s+)"
)
_SPLIT = re.compile(
    r";\s+|,?\s+(?:while|whereas|although|though|but|unlike|like|compared (?:with|to)|against|"
    r"than(?! (?:about |some )?\d))\s+|"
    r",?\s+(?:and\s+)?(?=(?:which|whose|who|where)\b)|\s+(?=that\s+(?:is|are|was|has|have|\w+s)\b)|"
    r",\s+and\s+(?=(?:the|its|their|it)\b|[A-Z])|\s+and\s+(?=(?:its|the \w+ (?:is|was|has)|it)\b)|\s+[\u2013\u2014]\s+"
)
_VERB = re.compile(
    r"\s*(?:$|,|:|(?:can|could|may|might|do|did|were|are|have|had|rose|stood|lay|ran|cost|reach|weigh|live|stretch|hold|"
    r"measure|cover|contain|run|grow|melt|boil|orbit|take|in|at|on|with|now|also|\w+(?:s|ed|ly))\b)"
)
_GOES_ON = re.compile(r"(?:is|are|was|were|has|had|have|can|may|\w+s)\b|(?:about |roughly |some )?\d")
_FILLER = (
    r"(?:(?:total|overall|full|maximum|max|mean|average|main|official|estimated|current|top|approximate|typical|adult|"
    r"surface|known)\s+){0,3}"
)
_PRONOUN = re.compile(r"(?:it|they)\b(?!\s+itself)|(?:its|their)\b")
_CLASSES = "mountain peak lake sea city town planet metal element language tower building bridge animal bird river"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One fact to look for. `unit` is the symbol to give the value in, `year` the year it must hold for."""

    attribute: Attribute
    subject: str
    unit: str = ""
    year: int | None = None


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence; `level` is how its document relates to the thing, `follows` whether the one before is about it."""

    sentence: Sentence
    level: int
    follows: bool

    @property
    def text(self) -> str:
        """The words of the sentence."""
        return self.sentence.text


@dataclass(frozen=True, slots=True)
class _Candidate:
    attribute: Attribute
    figure: Quantity
    cue: str
    said: _Statement
    year: int | None
    value: float
    unit: Unit


def extract(wanted: Wanted, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return the fact as `{found: true, value, unit, text, year, quote, source, ...}`, else `{found: false, reason}`.

    The value is converted to the wanted unit, or to the one unit its dimension is always given in.
    """
    statements = [item for passage in passages for item in _statements(wanted.subject, passage)]
    missing = {
        "found": False,
        "subject": wanted.subject,
        "attribute": wanted.attribute.name,
        "looked_in": list(dict.fromkeys(passage.path for passage in passages)),
    }
    if unclear := _several(wanted.subject, statements):
        return missing | {"reason": f"several documents could be meant: {', '.join(unclear)}"}
    for attribute in (wanted.attribute, *(ATTRIBUTES[name] for name in wanted.attribute.accepts)):
        found = [item for statement in statements for item in _candidates(wanted, attribute, statement)]
        if found:
            return _told(wanted, _best(found), statements)
    when = f" in {wanted.year}" if wanted.year is not None else ""
    return missing | {"reason": f"no passage gives the {wanted.attribute.name} of {wanted.subject}{when}"}


def _statements(subject: str, passage: Passage) -> Iterator[_Statement]:
    follows = True
    for item in sentences(passage):
        names = (passage.title, item.topic, stem_of(passage.path))
        said = _Statement(item, max(relation(subject, name) for name in names), follows)
        yield said
        text = fold(item.text)
        follows = _opening(subject, said, text, _start(text)) is not None


def _several(subject: str, statements: Sequence[_Statement]) -> list[str]:
    """The titles that could be meant when none is the thing itself and more than one comes close."""
    levels = {item.sentence.passage.title: item.level for item in statements}
    named = any(mention(subject).match(fold(item.text)) for item in statements)
    close = sorted(title for title, level in levels.items() if level == CLOSE)
    return close if len(close) > 1 and EXACT not in levels.values() and not named else []


def _best(found: Sequence[_Candidate]) -> _Candidate:
    """The first figure of the thing's own document; one for a later year goes before one for an earlier."""
    level = max(item.said.level for item in found)
    best, *others = (item for item in found if item.said.level == level)
    for item in others:
        if best.year is not None and item.year is not None and item.year > best.year:
            best = item
    return best


def _candidates(wanted: Wanted, attribute: Attribute, said: _Statement) -> Iterator[_Candidate]:
    if _DISSENT.match(fold(said.text)):
        return
    names = [mention(name) for name in (wanted.subject, said.sentence.passage.title)]
    for clause in _clauses(wanted.subject, attribute, said):
        if _UNCERTAIN.search(fold(clause)):
            continue
        spans = [match.span() for name in names for match in name.finditer(fold(clause))]
        for figure, cue in bound(clause, attribute, spans):
            year = None if attribute.dated else _year(said.text, figure)
            target = unit_of(wanted.unit or attribute.unit) or usual(figure.unit.dimension) or figure.unit
            if _avoided(clause, figure, wanted, attribute) or (wanted.year is not None and year != wanted.year):
                continue
            if target.dimension != figure.unit.dimension:
                if wanted.unit != wanted.attribute.unit:
                    continue
                target = usual(figure.unit.dimension) or figure.unit
            yield _Candidate(attribute, figure, cue, said, year, convert(figure.value, figure.unit, target), target)


def _clauses(subject: str, attribute: Attribute, said: _Statement) -> Iterator[str]:
    """Yield the parts of a sentence that are plainly about the thing."""
    owned, start = False, 0
    text = re.sub(r"\([^()]*\)", lambda found: re.sub(r"[^,]", " ", found[0]), said.text)
    for end, following in [*(found.span() for found in _SPLIT.finditer(text)), (len(text), len(text))]:
        part = text[start:end]
        owned = (owned and bool(_GOES_ON.match(fold(part)))) or _owns(subject, attribute, said, part)
        if owned:
            yield part
        start = following


def _start(text: str) -> int:
    lead = _LEAD.match(text)
    return lead.end() if lead else 0


def _opening(subject: str, said: _Statement, text: str, at: int) -> re.Match[str] | None:
    """What stands for the thing at a place of a text: its name, its kind in its own document, a pronoun."""
    passage = said.sentence.passage
    names = [mention(subject), *([mention(passage.title)] if said.level == CLOSE else [])]
    folders = (singular(fold(name)) for name in passage.path.split("/")[:-1])
    kinds = re.compile(rf"(?:the|this)\s+{any_of((*_CLASSES.split(), *folders))}(?!\w)")
    own = [kinds, *([_PRONOUN] if said.follows else [])] if said.level else []
    return next((found for pattern in (*names, *own) if (found := pattern.match(text, at))), None)


def _owns(subject: str, attribute: Attribute, said: _Statement, part: str) -> bool:
    """Whether a part of a sentence begins with the thing, its property, or a word that stands for it."""
    text = fold(part)
    at = _start(text)
    nouns = any_of((*attribute.nouns, *attribute.before, *attribute.after))
    of = re.compile(rf"(?:the |an? )?{_FILLER}{nouns}\s+(?:of|for)\s+").match(text, at)
    if found := _opening(subject, said, text, of.end() if of else at):
        pronoun = _PRONOUN.fullmatch(found[0])
        own = re.compile(rf"\s+(?:[\w-]+\s+)?{_FILLER}{nouns}(?!\w)(?!\s+(?:of|for)\b)")
        if pronoun is None:
            return _is_subject(part, found.end(), nouns)
        return pronoun[0] in ("it", "they") or own.match(text, found.end()) is not None
    return (
        not of
        and bool(said.level)
        and bool(re.compile(rf"(?:(?:the|an?)\s+)?{_FILLER}{nouns}(?!\w)(?!\s+(?:of|for)\b)").match(text, at))
    )


def _is_subject(part: str, at: int, nouns: str) -> bool:
    """Whether what follows a name leaves it the subject: no `Nile Delta`, no `Nile's tributary`."""
    rest = part[at:]
    if possessive := re.match(r"['\u2019]s?\s+", rest):
        return bool(re.match(rf"(?:[\w-]+\s+){{0,2}}?{nouns}(?!\w)", fold(rest[possessive.end() :])))
    if re.match(rf"\s+{nouns}(?!\w)", fold(rest)):
        return True
    return bool(_VERB.match(rest)) and not re.match(r"\s+[A-Z]|,?\s+and\s", rest)


def _avoided(text: str, figure: Quantity, wanted: Wanted, attribute: Attribute) -> bool:
    """Whether the words around the figure make it another kind of the property: metropolitan, average, per day."""
    folded = fold(text)
    earlier = [item.end for item in quantities(text) if item.end <= figure.start and item.unit is not YEAR]
    near = folded[max([0, *earlier]) : figure.end] + re.split(r"[,;]|\sand\s", folded[figure.end :])[0]
    asked = fold(f"{wanted.attribute.name} {wanted.subject}")
    return any(re.search(rf"\b{word}\b", near) and word not in asked for word in attribute.avoid)


def _year(text: str, figure: Quantity) -> int | None:
    """The year that the figure holds for: `in 2020`, `as of 2020`, `(2020)`; not the year of an event."""
    years, others = [], quantities(text)
    for item in others:
        before = fold(text[: item.start])
        between = (other for other in others if figure.end <= other.start < item.start and other.unit is not YEAR)
        near = all(text[other.start - 1] == "(" for other in between)
        if near and item.unit is YEAR and not item.vague and _AS_OF.search(before) and not _EVENT.search(before):
            years.append((abs(item.start - figure.end), int(item.value)))
    return min(years)[1] if years else None


def _told(wanted: Wanted, chosen: _Candidate, statements: Sequence[_Statement]) -> dict[str, Any]:
    item = chosen.said.sentence
    result = {
        "found": True,
        "subject": wanted.subject,
        "name": shown_name(wanted.subject, item, statements),
        "attribute": chosen.attribute.name,
        "value": chosen.value,
        "unit": chosen.unit.symbol,
        "text": f"{chosen.cue} in {chosen.figure.text}" if chosen.attribute.dated else chosen.figure.text,
        "year": chosen.year,
        "quote": item.text,
        "source": item.passage.path,
    }
    other = _dissent(chosen, statements)
    return result | ({"differs": other} if other else {})


def _dissent(chosen: _Candidate, statements: Sequence[_Statement]) -> str | None:
    """A sentence of the same document, such as "Some books give ...", with another figure for the same thing."""
    cues = any_of(
        tuple(cue for other in ATTRIBUTES.values() if other.name != chosen.attribute.name for cue in other.nouns)
    )
    alike = [
        (item, figure)
        for item in statements
        if item.sentence.passage.path == chosen.said.sentence.passage.path
        for figure in quantities(item.text)
        if figure.unit.dimension == chosen.unit.dimension and figure.unit is not YEAR and not figure.vague
    ]
    if not chosen.value or not alike or alike[0][0] is not chosen.said:
        return None
    for item, figure in alike:
        ratio = convert(figure.value, figure.unit, chosen.unit) / chosen.value
        other = _DISSENT.match(fold(item.text)) and not re.search(rf"\b{cues}\b", fold(item.text))
        if other and 0.5 < ratio < 2 and ratio != 1:
            return item.text
    return None


def shown_name(asked: str, chosen: Sentence, statements: Sequence[_Statement]) -> str:
    """Return the name as the document writes it: article and capitals from its sentences."""
    name = next((name for name in (chosen.passage.title, chosen.topic) if relation(asked, name)), bare(asked))
    text = " ".join(item.text for item in statements if item.sentence.passage == chosen.passage)
    article = "the " if re.search(rf"\b[Tt]he {re.escape(name)}\b", text, re.IGNORECASE) else ""
    lower = re.search(rf"\b{re.escape(name.lower())}\b", text) is not None
    return f"{article}{name.lower() if lower else name}"
