"""Splits documents into sentences, and tells which sentences say the words of a question."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_OWN_LINE = re.compile(r"\s*(?:$|\||\*\*|[-*+•]\s|\d{1,2}[.)]\s|[^\W\d_][\w ]{0,40}:\s)")
_MARKUP = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+|\*\*|__|`")
_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?]\W))(?<!\b(?:St|Mt|Dr|Mr|vs|No)\.)(?<!\b[A-Z]\.)\s+(?=\W?[^\W_a-z])"
)
_NAME = re.compile(r"\b[^\W\d_a-z][\w&-]*(?: [^\W\d_a-z][\w&-]*)*(?:['\u2019]s? +\w+)?")
_COMMON = re.compile(
    r"(?:an?|about|after|all|also|and|any|are|as|at|be|been|by|can|could|did|do|does|each|every"
    r"|for|from|had|has|have"
    r"|his|her|how|i|in|is|its?|many|me|mount|much|must|my|now|number|of|on|or|our|per|river|s"
    r"|should|so|still|tell|that"
    r"|the|their|them|there|these|they|this|to|us|was|we|were|what|when|where|which|who|will|with"
    r"|would|you|your)"
)
# Stems that a question and a document may use for each other.
_SAME = {
    "length": "long",
    "height": "high",
    "tall": "high",
    "depth": "deep",
    "pric": "cost",
    "peopl": "population",
}


class Passage(NamedTuple):
    """A piece of a document, down to one sentence, and the node whose output brought it."""

    path: str
    title: str
    text: str
    node: str


def sentences(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield the sentences, list items and rows of passages, each of at most 1,000
    characters, without headings.
    """
    for passage in passages:
        # A line goes on with the one above, unless it is an item, a row of a table or `Key: value`.
        blocks: list[list[str]] = [[]]
        for line in passage.text.splitlines():
            heading = _HEADING.match(line)
            if heading or _OWN_LINE.match(line):
                blocks.append([])
            if not heading:
                blocks[-1].append(_MARKUP.sub("", line).strip())
        for block in blocks:
            for text in filter(None, _END.split(" ".join(block).strip())):
                yield passage._replace(text=text[:1_000])


def stems(text: str) -> frozenset[str]:
    """Return the words of a text without their endings, and without words that any text has."""
    found = set()
    for word in re.findall(r"[^\W_]+", text.lower()):
        if not _COMMON.fullmatch(word):
            singular = re.sub(r"(?<=\w\w[^s])s$", "", word)
            stem = re.sub(r"(?<=\w{3})(?:ing|ed|e|y|i)$", "", singular)
            found.add(_SAME.get(stem, stem))
    return frozenset(found)


def says(words: frozenset[str], text: str) -> bool:
    """Return whether a text says all words, and of the same things: `Blue Nile` and `Nile's
    delta` are not `Nile`.
    """
    for name in _NAME.findall(text):
        named = stems(name)
        if named & words and not named <= words:
            return False
    return words <= stems(text)


def nearest(words: frozenset[str], passages: Sequence[Passage]) -> list[Passage]:
    """Return up to three sentences that say most of the words, else the first sentence."""
    scores: dict[Passage, int] = {}
    for sentence in sentences(passages):
        scores[sentence] = len(words & stems(f"{sentence.text} {sentence.title}"))
    best = sorted(scores, key=lambda sentence: -scores[sentence])[:3]
    return [sentence for sentence in best if scores[sentence]] or best[:1]
