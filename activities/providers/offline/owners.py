"""Whose figure a sentence gives: the thing asked about, or something else that the document also tells of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from activities.providers.offline.names import CLOSE, fold, mention, relation
from activities.providers.offline.sentences import Sentence
from activities.providers.offline.words import Attribute, singular

_LEAD = re.compile(
    r"(?:(?:in|as of|by|since|at|with|on|for|from|after|measuring|stretching|standing|rising|covering|weighing|today|"
    r"currently|now|overall|officially|according to|having|reaching|running|extending|spanning|completed|built|opened|"
    r"founded)\b"
    r"(?:[^,(]|,(?=\d{3})|\([^)]*\)){0,90},\s+|(?:in|as of)\s+\d{4}\s+|(?:however|also|today|moreover|note that),?\s+)"
)
_VERBS = re.compile(
    r"(?:can|could|may|might|will|would|do|did|were|are|have|had|held|rose|stood|lay|grew|ran|cost|lost|began|met|reach|"
    r"weigh|live|stretch|hold|measure|cover|contain|run|grow|melt|boil|orbit|take|in|at|on|from|with|of|near|itself|alone|"
    r"now|also|today|still|\w+(?:s|ed|ly))$"
)
_CLASSES = (
    "river mountain peak summit lake sea city town capital metropolis village planet world element metal gas language "
    "tower building skyscraper bridge structure animal bird mammal species country state island park ship car plane "
    "aircraft project company tree"
)
# `The web server alpha`, `Our small dog Rex`: what a name is, in front of it.
_TITLED = r"(?:the|an?|our)\s+(?:(?!(?:of|in|on|at|for|to|from|with|by|and|or|than|is|was|has)\b)[a-z-]+\s+){1,3}?"
_SAME_THING = re.compile(r"(?:rocket|server|machine|ship|car|aircraft|plane|species|programme|program)s?$")
_OTHER_NOUNS = re.compile(r"(?:and|or)$")
_SPLIT = re.compile(
    r";\s+|,?\s+(?:while|whereas|although|though|but|compared (?:with|to)|against|than)\s+|"
    r",?\s+(?:and\s+)?(?=(?:which|whose|who|where)\b)|\s+(?=that\s+(?:is|are|was|has|have|\w+s)\b)|"
    r",\s+and\s+(?=(?:the|its|their|it)\b|[A-Z])|\s+and\s+(?=(?:its|the \w+ (?:is|was|has)|it)\b)|\s+[\u2013\u2014]\s+"
)
_BRACKETS = re.compile(r"\(([^()]*)\)")
_OPENER = re.compile(
    r"(?:about|roughly|approximately|around|nearly|over|almost|more than|just|only|c\.|ca\.|~|≈)?\s*(?:us)?[$€£]?\d"
)
_FILLER = (
    r"(?:(?:total|overall|full|maximum|max|mean|average|main|official|estimated|current|top|approximate|greatest|recorded|"
    r"measured|known|typical|adult|present|surface|exact)\s+){0,3}"
)
_BARE = re.compile(
    r"(?:is|are|was|were|has|had|have|can|may|stands|lies|measures|covers|runs|flows|stretches|rises|holds|weighs|"
    r"reaches)\b"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence with one subject; `owner` is how surely that subject is the thing asked about (0: not)."""

    text: str
    owner: float


@dataclass(slots=True)
class Subject:
    """The thing asked about, as one document may speak of it."""

    asked: str
    attribute: Attribute
    sentence: Sentence
    about: int = field(init=False)
    names: list[re.Pattern[str]] = field(init=False)
    nouns: str = field(init=False)
    kinds: str = field(init=False)

    def __post_init__(self) -> None:
        title = self.sentence.passage.title
        self.about = about(self.asked, self.sentence)
        self.names = [mention(self.asked)] + ([mention(title)] if self.about == CLOSE else [])
        cues = (*self.attribute.nouns, *self.attribute.before, *self.attribute.after)
        self.nouns = "|".join(re.escape(fold(cue)) for cue in sorted(cues, key=len, reverse=True)) or "(?!)"
        folders = [fold(part) for part in self.sentence.passage.path.split("/")[:-1]]
        kinds = {*_CLASSES.split(), *(singular(part) for part in folders)}
        self.kinds = "|".join(re.escape(kind) for kind in sorted(kinds) if kind)

    def clauses(self) -> Iterator[Clause]:
        """Yield the parts of the sentence, each with its owner; text in brackets is a part of its own."""
        text = self.sentence.text
        main = _BRACKETS.sub(lambda found: " " * len(found[0]), text)
        before, owner, start = "", 0.0, 0
        bounds = [*((found.start(), found.end()) for found in _SPLIT.finditer(main)), (len(text), len(text))]
        for end, following in bounds:
            part = main[start:end]
            owner = self._owner(part, before, owner)
            if owner:
                yield Clause(text[start:end] if _numeric_brackets(text[start:end]) else part, owner)
            else:
                yield from self._mentions(part)
            before, start = part, following
        for found in _BRACKETS.finditer(text):
            if self._ends_with_name(text[: found.start()]):
                yield Clause(found[1], 1.2)

    def _owner(self, part: str, before: str, previous: float) -> float:
        text = fold(part)
        if before and re.match(r"(?:which|who|that|whose|where)\b", text):
            return self._relative(text, before, previous)
        lead = _LEAD.match(text)
        at = lead.end() if lead else 0
        at += len(text[at:]) - len(text[at:].lstrip())
        direct = self._direct(part, text, at)
        if direct is not None:
            return direct
        if before and (_OPENER.match(text) or _BARE.match(text)):
            return previous * 0.9
        if before and re.match(r"(?:its?|their|they)\b", text) and previous:
            return (
                previous * 0.9
                if re.match(rf"it\b|they\b|(?:its|their)\s+(?:[\w-]+\s+){{0,2}}?(?:{self.nouns})", text)
                else 0.0
            )
        return self._anaphor(part, text, at) if self.about else 0.0

    def _direct(self, part: str, text: str, at: int) -> float | None:
        """The part begins with the name, or with `the length of` the name or of another."""
        for name in self.names:
            if found := name.match(text, at):
                return 2.0 if self._continues(part, found.end()) else 0.0
            titled = re.compile(rf"{_TITLED}(?P<name>{name.pattern})").match(text, at)
            if titled and part[at + 1 : titled.start("name")].islower():
                return 1.8 if self._continues(part, titled.end()) else 0.0
        of = re.compile(rf"(?:the |an? )?{_FILLER}(?:{self.nouns})\s+(?:of|for)\s+").match(text, at)
        if not of:
            return None
        named = [found for name in self.names if (found := name.match(text, of.end()))]
        if named:
            return 1.9 if self._continues(part, named[0].end()) else 0.0
        follower = part[of.end() :].removeprefix("the ").lstrip()
        if not follower[:1].isupper():
            return 1.2 if self.about else None
        return 0.0

    def _continues(self, part: str, at: int) -> bool:
        """Whether what follows the name leaves it the subject: no `Nile Delta`, no `Nile's tributary`."""
        rest = part[at:]
        if possessive := re.match(r"['\u2019]s?\s+", rest):
            own = rf"(?:[\w-]+\s+){{0,2}}?(?:{self.nouns})(?!\w)|(?:about |roughly |some )?\d"
            return bool(re.match(own, fold(rest[possessive.end() :])))
        word = re.match(r"\s+([^\W\d_][\w'-]*)", rest)
        if not word:
            return True
        if re.match(rf"(?:{self.nouns})(?!\w)", fold(rest.strip())):
            return True
        if word[1][0].isupper() or _OTHER_NOUNS.match(fold(word[1])):
            return False
        return bool(_VERBS.match(fold(word[1])) or _SAME_THING.match(fold(word[1])))

    def _anaphor(self, part: str, text: str, at: int) -> float:
        """`It is`, `Its length`, `The river is`, `Length: 5 km`, `About 5 km long` in a document about the thing."""
        rest = text[at:]
        if re.match(r"(?:it|they|he|she)\b|this\s+(?:is|was)\b", rest):
            return 1.5
        if re.match(
            rf"(?:(?:its|their|his|her)\s+(?:[\w-]+\s+)?|(?:the|an?)\s+)?{_FILLER}"
            rf"(?:{self.nouns})(?!\w)(?!\s+(?:of|for)\b)",
            rest,
        ):
            return 1.5
        if kind := re.match(rf"(?:the|this|these)\s+(?:{self.kinds})s?(?!\w)", rest):
            return 1.4 if self._continues(part, at + kind.end()) else 0.0
        here = re.search(rf"\bhere\b|\b(?:in|of) the (?:{self.kinds})\b", rest) or any(
            name.search(rest) for name in self.names
        )
        return 1.2 if _OPENER.match(rest) and (here or self.attribute.dimensions != ("count",)) else 0.0

    def _relative(self, text: str, before: str, previous: float) -> float:
        """`, which is 5 km long` belongs to the name it follows, or to the subject of `X is a river that`."""
        if text.startswith("whose") and not re.match(rf"whose\s+(?:[\w-]+\s+){{0,2}}?(?:{self.nouns})", text):
            return 0.0
        if text.startswith("where"):
            return 0.0
        if self._ends_with_name(before):
            return 1.6
        copula = re.search(r"\b(?:is|are|was|were)\s+(?:an?|the|one of the)\s+[^,]*$", before)
        return previous * 0.8 if copula and not re.search(r"[A-Z]\w*\s*$", before) else 0.0

    def _ends_with_name(self, before: str) -> bool:
        folded = fold(before)
        found = [match for name in self.names for match in name.finditer(folded)]
        return any(not folded[match.end() :].strip(" ,") and self._whole(before, match.start()) for match in found)

    def _mentions(self, part: str) -> Iterator[Clause]:
        """The name inside another's clause, with the one figure behind it: `unlike the Nile, 6,650 km long`."""
        text = fold(part)
        for name in self.names:
            for found in name.finditer(text):
                rest = part[found.end() :]
                near = re.match(r"(?:['\u2019]s)?[^A-Z;\d]{0,40}?\d[\d.,]*[^\d;]*", rest)
                if near and self._whole(part, found.start()) and self._continues(part, found.end()):
                    yield Clause(part[found.start() : found.end() + near.end()], 0.9)

    def _whole(self, part: str, at: int) -> bool:
        """Whether no capital word stands before the name: `Blue Nile` is not the Nile."""
        word = re.search(r"([^\W\d_][\w'-]*)\s+$", part[:at])
        return not word or not word[1][0].isupper() or bool(re.match(r"(?:The|In|At|By|From|Of|On|For)$", word[1]))


def about(asked: str, sentence: Sentence) -> int:
    """Return how the document or section of a sentence relates to the thing asked about."""
    passage = sentence.passage
    stem = re.sub(r"[-_]+", " ", passage.path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    return max(relation(asked, passage.title), relation(asked, sentence.topic), relation(asked, stem))


def _numeric_brackets(text: str) -> bool:
    """Whether brackets only repeat a figure in another unit, so that words behind them still belong to it."""
    return all(re.match(r"\s*[\d~≈]", found) for found in _BRACKETS.findall(text))
