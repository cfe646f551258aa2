"""Answers by quotation: the sentence that a question's own words point to, and the sentences nearest to a prompt."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from activities.providers.offline.names import fold, relation, stem
from activities.providers.offline.sentences import Passage, Sentence, sentences
from activities.providers.offline.words import COMPARISONS

_COMMON_WORDS = (
    "a about an and any are as at be been by can could did do does for from had has have how i in into is it its me of "
    "on or that the their them there these they this those to was were what when where which while who whom whose why "
    "will with you your tell describe please give name called much many kind sort type lie lies located find situated "
    "happen happens get between one ones also some such than then make makes"
)
COMMON = frozenset(_COMMON_WORDS.split())
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_PLACE = re.compile(
    r"\b(?:in|at|on|near|between|off|along|above|below|through|into|from)\s+(?:the\s+)?(?:[\w-]+\s+){0,2}?[A-Z]"
)
_PERSON = re.compile(
    r"\b(?!The\b|In\b|It\b|Its\b)[A-Z][\w'\u2019-]+\s+(?:(?:de|van|von|da|of|the|and)\s+)?[A-Z][\w'\u2019-]+"
)
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b|\bcentury\b|\bAD\s\d|\bBC\b")
_CAUSE = re.compile(r"\b(?:because|since|so that|due to|owing to|as a result|therefore|in order)\b")
_KINDS = {"where": _PLACE, "who": _PERSON, "whom": _PERSON, "when": _YEAR, "why": _CAUSE}
_DEFINE = re.compile(
    r"(?:what|who)\s+(?:is|are|was|were)\s+(?P<name>.+)|(?:tell\s+me\s+about|describe)\s+(?P<thing>.+)", re.IGNORECASE
)
_NOT_FIRST = re.compile(r"\b(?:second|third|fourth|fifth|\d+(?:nd|rd|th)|one of|among)\b|\b(?:not|never|no)\b")
_MOST_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question taken apart: names that must be meant, other words that should be there, the kind of answer."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    kind: re.Pattern[str] | None
    defined: str = ""


def find_quote(question: str, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return `{found, text, quote, source}` of the sentence that answers best, or `{found: false, reason}`."""
    asked = _asked(question)
    best: tuple[float, Sentence] | None = None
    for passage in passages:
        for place, item in enumerate(sentences(passage)):
            score = _score(asked, item, place)
            if score > 0 and (best is None or score > best[0]):
                best = score, item
    if best is None:
        reason = "no sentence of the passages holds the words of the question"
        return {"found": False, "reason": reason, "looked_in": list(dict.fromkeys(item.path for item in passages))}
    quote = best[1].line
    return {
        "found": True,
        "subject": best[1].passage.title,
        "text": quote,
        "quote": quote,
        "source": best[1].passage.path,
    }


def _asked(question: str) -> _Asked:
    text = question.strip(" ?.!")
    first, _, rest = text.partition(" ")
    if defined := _DEFINE.fullmatch(text):
        name = (defined["name"] or defined["thing"]).strip()
        if not re.search(r"\s(?:of|in|that|for|by|with)\s", name):
            return _Asked((), (), None, name)
    names = [word for word in WORD.findall(rest) if word[0].isupper() or word[0].isdigit()]
    words = [word for word in WORD.findall(fold(rest)) if word not in COMMON]
    proper = {fold(name) for name in names}
    plain = tuple(dict.fromkeys(stem(word) for word in words if word not in proper))
    return _Asked(
        tuple(dict.fromkeys(fold(name).removesuffix("'s") for name in names)), plain, _KINDS.get(first.lower())
    )


def _score(asked: _Asked, item: Sentence, place: int) -> float:
    if asked.defined:
        return _definition(asked.defined, item, place)
    text = fold(item.text)
    here = set(WORD.findall(text))
    about = set(WORD.findall(fold(f"{item.passage.title} {item.topic} {' '.join(item.passage.path.split('/'))}")))
    inside = sum(1 for name in asked.names if name in here)
    if any(name not in here and name not in about for name in asked.names):
        return 0.0
    stems, kinds = {stem(word) for word in here}, {stem(word) for word in about}
    hits = sum(1 for word in asked.words if word in stems)
    given = sum(1 for word in asked.words if word in kinds - stems)
    if hits + given + len(asked.names) < 2 or (asked.words and not hits):
        return 0.0
    if asked.words and (hits + given) * 3 < len(asked.words) * 2:
        return 0.0
    told = re.sub("|".join(map(re.escape, asked.names)) or "(?!)", "", item.text, flags=re.IGNORECASE)
    if asked.kind is not None and not asked.kind.search(told):
        return 0.0
    if not _ranks_alike(asked.words, text):
        return 0.0
    if not asked.words and (asked.kind is None or place > 2):
        return 0.0
    return 2.0 * hits + 0.6 * inside + 0.5 - 0.05 * place - 0.001 * len(item.text)


def _ranks_alike(words: tuple[str, ...], text: str) -> bool:
    """Whether each superlative asked for stands in the text, neither as the third nor as one of several."""
    ranks = [word for word, item in COMPARISONS.items() if item.superlative]
    for word in (*ranks, "most", "least", "fewest", "best", "worst", "first", "last", "only"):
        if stem(word) in words:
            found = re.search(rf"(?P<before>(?:[\w-]+\s+){{0,4}}){word}\b", text)
            if not found or _NOT_FIRST.search(found["before"]):
                return False
    return True


def _definition(name: str, item: Sentence, place: int) -> float:
    """What a thing is: the sentence that begins with it, the earlier in its own document the better."""
    level = relation(name, item.passage.title)
    starts = re.match(rf"(?:the |an? )?{re.escape(re.sub(r'^(?:the|an?) ', '', fold(name)))}\b", fold(item.text))
    if level == 0 and not (starts and re.search(r"\b(?:is|are|was|were)\s+(?:an?|the|one)\b", item.text)):
        return 0.0
    return level + bool(starts) + 0.5 * bool(re.search(r"\bis\s+(?:an?|the)\b", item.text)) - 0.1 * place


def nearest(prompt: str, passages: Sequence[Passage], most: int = _MOST_SENTENCES) -> list[Sentence]:
    """Return the sentences with most words of the prompt, in the order given; the first one if none has any."""
    wanted = {stem(word) for word in WORD.findall(fold(prompt)) if word not in COMMON}
    items = list(dict.fromkeys(item for passage in passages for item in sentences(passage)))
    scored = []
    for index, item in enumerate(items):
        has = {stem(word) for word in WORD.findall(fold(item.text))}
        title = {stem(word) for word in WORD.findall(fold(item.passage.title))}
        hits = len(wanted & has) + 0.5 * len(wanted & title - has)
        scored.append((hits / (1 + 0.02 * len(has)), -index))
    best = sorted(scored, reverse=True)[:most]
    chosen = [-place for score, place in best if score > 0] or [-place for _, place in best[:1]]
    return [items[index] for index in sorted(chosen)]
