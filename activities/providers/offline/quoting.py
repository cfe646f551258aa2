"""Answers by quotation: the sentences nearest to a prompt, and those of a text that say most of what it says.

Summaries are after SumBasic (Nenkova and Vanderwende, "The Impact of Frequency on Summarization", Microsoft Research,
2005): a sentence weighs as much as its words are frequent, and what has been said weighs half from then on. The
beginning of a document counts for more, since it says what the document is about.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import sqrt

from activities.providers.offline.citations import Citations
from activities.providers.offline.names import WORD, fold, stem
from activities.providers.offline.sentences import Passage, Sentence, sentences

_MOST = 3
_LONGEST = 50
_FEWEST_WORDS = 4
_COMMON_WORDS = (
    "a about an and any are as at be been by can could did do does for from had has have how i in into is it its me of "
    "on or that the their them there these they this those to was were what when where which while who whom whose why "
    "will with you your tell describe please"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_WHOLE = re.compile(r"[.!?][\"'\u201d\u2019)\]]*$")
_ORDER = re.compile(
    r"(?:please\s+)?(?:summari[sz]e|sum\s+up|digest|condense|(?:write|give)\s+(?:me\s+)?an?\s+(?:\w+\s+)?summary)\b",
    re.IGNORECASE,
)
_COUNTED = "one two three four five six seven eight nine ten"
_COUNTS = {word: number for number, word in enumerate(_COUNTED.split(), 1)} | dict.fromkeys(("a", "an", "single"), 1)
_LENGTH = re.compile(rf"\b(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})[\s-](?:\w+\s)?sentences?\b", re.IGNORECASE)


def wanted_length(instruction: str) -> int | None:
    """Return how many sentences a summary is wanted in, 3 where none are counted; None for any other instruction."""
    if not _ORDER.match(instruction):
        return None
    if found := _LENGTH.search(instruction):
        word = found["count"].lower()
        return min(max(int(word) if word.isdigit() else _COUNTS[word], 1), _LONGEST)
    return _MOST


def _words(text: str) -> list[str]:
    return sorted({stem(word) for word in WORD.findall(fold(text)) if word not in _COMMON})


def nearest(prompt: str, passages: Sequence[Passage]) -> list[Sentence]:
    """Return the three sentences with most words of the prompt, in the order given; the first one if none has any."""
    wanted = set(_words(prompt))
    items = list(dict.fromkeys(item for passage in passages for item in sentences(passage)))
    scored = []
    for index, item in enumerate(items):
        has, title = set(_words(item.text)), set(_words(item.passage.title))
        scored.append(((len(wanted & has) + 0.5 * len(wanted & title - has)) / (1 + 0.02 * len(has)), -index))
    best = sorted(scored, reverse=True)[:_MOST]
    chosen = [-place for score, place in best if score > 0] or [-place for _, place in best[:1]]
    return [items[index] for index in sorted(chosen)]


def cited(chosen: Sequence[Sentence], citations: Citations) -> list[str]:
    """Return sentences, each with its mark."""
    lines = []
    for item in chosen:
        source = item.passage.path or item.passage.node
        lines.append(f"{item.text} {citations.mark(item.passage.node, item.text, source, item.text)}")
    return lines


def summary(passages: Sequence[Passage], count: int) -> list[Sentence]:
    """Return the `count` sentences that say most, in the order of the text; of several documents each has its say."""
    items = [item for passage in passages for item in _statements(passage)]
    words = [_words(item.text) for item in items]
    documents = [item.passage.path or item.passage for item in items]
    weight: dict[str, float] = dict(Counter(word for line in words for word in line))
    told: Counter[str | Passage] = Counter()
    left = list(range(len(items)))

    def score(index: int) -> float:
        """The weight of the words, shared out so that length alone wins nothing; three times that at the beginning."""
        place = index - documents.index(documents[index])
        return sum(weight[word] for word in words[index]) / sqrt(max(len(words[index]), 1)) * (1 + 2 / (1 + place))

    while left and len(items) - len(left) < count:
        best = max(left, key=lambda index: (-told[documents[index]], score(index), -index))
        left.remove(best)
        told[documents[best]] += 1
        weight |= {word: weight[word] / 2 for word in words[best]}
    return [item for index, item in enumerate(items) if index not in left]


def _statements(passage: Passage) -> list[Sentence]:
    """The whole sentences of a passage, without headings and menus; all there is where none is whole."""
    found = list(dict.fromkeys(sentences(passage)))
    whole = [item for item in found if _WHOLE.search(item.text) and len(WORD.findall(item.text)) >= _FEWEST_WORDS]
    return whole or found
