"""Summaries by quotation: the sentences of a text that say most of what it says.

After SumBasic (Nenkova and Vanderwende, "The Impact of Frequency on Summarization", Microsoft Research, 2005): a
sentence weighs as much as its words are frequent, and what has been said weighs half from then on. The beginning of a
document counts for more, since it says what the document is about.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import sqrt

from activities.providers.offline.grammar import COUNTS
from activities.providers.offline.names import fold, stem
from activities.providers.offline.passages import COMMON, WORD
from activities.providers.offline.sentences import Passage, Sentence, sentences

USUAL_LENGTH = 3
LONGEST = 50
_FEWEST_WORDS = 4
_END = re.compile(r"[.!?][\"'\u201d\u2019)\]]*$")
_ORDER = re.compile(
    r"(?:please\s+)?(?:summari[sz]e|sum\s+up|digest|condense|(?:write|give)\s+(?:me\s+)?an?\s+(?:\w+\s+)?summary)\b",
    re.IGNORECASE,
)
_COUNTS = COUNTS | dict.fromkeys(("a", "an", "one", "single"), 1)
_LENGTH = re.compile(rf"\b(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})[\s-](?:\w+\s)?sentences?\b", re.IGNORECASE)


def wanted_length(instruction: str) -> int | None:
    """Return how many sentences a summary is wanted in, 3 where none are counted; None for any other instruction."""
    if not _ORDER.match(instruction):
        return None
    if found := _LENGTH.search(instruction):
        word = found["count"].lower()
        return min(max(int(word) if word.isdigit() else _COUNTS[word], 1), LONGEST)
    return USUAL_LENGTH


def summary(passages: Sequence[Passage], count: int) -> list[Sentence]:
    """Return the `count` sentences that say most, in the order of the text; of several documents each has its say."""
    items = [item for passage in passages for item in _statements(passage)]
    words = [_words(item.text) for item in items]
    documents = [item.passage.path or item.passage for item in items]
    places = [index - documents.index(document) for index, document in enumerate(documents)]
    weight: dict[str, float] = dict(Counter(word for line in words for word in line))
    told: Counter[str | Passage] = Counter()
    left = list(range(len(items)))
    while left and len(items) - len(left) < count:
        scores = {index: _score(words[index], weight, places[index]) for index in left}
        best = max(left, key=lambda index: (-told[documents[index]], scores[index], -index))
        left.remove(best)
        told[documents[best]] += 1
        weight |= {word: weight[word] / 2 for word in words[best]}
    return [item for index, item in enumerate(items) if index not in left]


def _statements(passage: Passage) -> list[Sentence]:
    """The whole sentences of a passage, without headings and menus; all there is where none is whole."""
    found = list(dict.fromkeys(sentences(passage)))
    whole = [item for item in found if _END.search(item.text) and len(WORD.findall(item.text)) >= _FEWEST_WORDS]
    return whole or found


def _words(text: str) -> list[str]:
    return sorted({stem(word) for word in WORD.findall(fold(text)) if word not in COMMON})


def _score(words: list[str], weight: dict[str, float], place: int) -> float:
    """The weight of the words, shared out so that length alone wins nothing; three times that at the beginning."""
    return sum(weight[word] for word in words) / sqrt(max(len(words), 1)) * (1 + 2 / (1 + place))
