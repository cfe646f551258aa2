"""Answers from what a node is given: lines of text, each with the sentence that bears it out."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sennit.activities.providers.offline.figures import Figure, find, written
from sennit.activities.providers.offline.questions import Comparison, LookUp, identity
from sennit.activities.providers.offline.sentences import Passage, nearest, says, sentences, stems

_CONNECT = "These are rules, no language model. For more, set SENNIT_MODEL and its key: see docs/models.md."
_WHOLE = re.compile(r"(?s)\W*+(?:\w++\W++){3}\w.*[.!?][\"'\u201d\u2019)\]]*")


class Material:
    """The inputs of a node by their form. What the run itself was given counts only where nothing else is."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self.figures: list[Figure] = []
        self.results: list[float] = []
        self.passages: list[Passage] = []
        outputs = {node: value for node, value in inputs.items() if node != "input"}
        for node, value in (outputs or inputs).items():
            self._add(value, node)

    def _add(self, value: Any, node: str) -> None:
        match value:
            case str() if value.strip():
                self.passages.append(Passage("", "", value, node))
            case {"id": str() as name, "status": str(), "value": ended, "error": _}:
                self._add(ended, name)
            case {"value": bool()}:
                pass
            case {"value": int() | float() as number, "quote": str() as quote} if abs(number) < 1e15:
                sentence = Passage(str(value.get("source")), "", quote, node)
                subject = value.get("subject", value.get("name"))
                self.figures.append(Figure(number, str(value.get("unit")), sentence, str(subject)))
            case {"value": int() | float() as number, "expression": str()} if abs(number) < 1e15:
                self.results.append(number)
            case {"text": str() as text} | {"passage": str() as text}:
                path, title = value.get("path") or value.get("url"), value.get("title")
                self.passages.append(Passage(str(path or ""), str(title or ""), text, node))
            case {"items": list() as parts} | {"near": list() as parts} | list(parts):
                for part in parts:
                    self._add(part, node)
            case dict():
                self._add(list(value.values()), node)


class Line(NamedTuple):
    """A line of an answer, and the sentence that bears it out."""

    text: str
    sentence: Passage | None = None


def output_of(lines: Sequence[Line]) -> dict[str, Any]:
    """Return `{answer, evidence}` of a joiner, and `partial: true` where something is not told."""
    texts: list[str] = []
    evidence: list[dict[str, Any]] = []
    for text, sentence in lines:
        # What looks like a mark in a quotation is none.
        texts.append(re.sub(r"\[\d+\]", "(...)", text))
        if sentence:
            number = len(evidence) + 1
            texts[-1] += f" [{number}]"
            source = sentence.path or sentence.node
            claim = {"n": number, "node": sentence.node, "claim": text}
            evidence.append({**claim, "source": source, "quote": sentence.text})
    output: dict[str, Any] = {"answer": "\n".join(texts), "evidence": evidence}
    if _CONNECT in texts:
        output["partial"] = True
    return output


def summary(passages: Sequence[Passage], count: int) -> list[Line]:
    """Return the first whole sentences, the first one of each passage before any second one."""
    numbered: list[tuple[int, Line]] = []
    for passage in passages:
        lines = [Line(sentence.text, sentence) for sentence in sentences([passage])]
        # A menu or a heading is no sentence.
        whole = [line for line in lines if _WHOLE.fullmatch(line.text)]
        numbered += enumerate(whole or lines[:1])
    numbered.sort(key=lambda pair: pair[0])
    return [line for _, line in numbered[:count]]


def compared(asked: Comparison, material: Material) -> list[Line]:
    """Return what wins and by how much, or the sum; nothing is concluded where a figure is missing."""
    known = {identity(figure.subject): figure for figure in material.figures}
    ranked: list[Figure] = []
    missing: list[str] = []
    for name, subject in asked.subjects.items():
        if name in known:
            ranked.append(known[name]._replace(subject=subject))
        else:
            missing.append(f"the {asked.property} of {subject}")
    ranked.sort(key=lambda figure: figure.value, reverse=not asked.least)
    lines = [Line(f"{figure.subject}: {written(figure.value, figure.unit)}", figure.sentence) for figure in ranked]
    units = {figure.unit for figure in ranked}
    if missing or len(units) > 1 or (asked.adds and not material.results):
        what = " and ".join(missing) or "which: they are in different units"
        return [*lines, *cannot_tell(what, stems(what), material.passages)]

    # Every figure is there, in one unit.
    result = written(material.results[0], *units) if material.results else ""
    winner, last = ranked[0].subject, ranked[-1].subject
    conclusion = f"{winner[0].upper()}{winner[1:]} {asked.wins}."
    if asked.adds:
        conclusion = f"Together {result}."
    elif len({figure.value for figure in ranked}) < len(ranked):
        conclusion = "Some are equal."
    elif result:
        conclusion += f" The difference between {winner} and {last} is {result}."
    return [Line(conclusion), *lines]


def looked_up(asked: LookUp, passages: Sequence[Passage]) -> list[Line]:
    """Return the one sentence that answers; where several differ, or none does, that the rules cannot tell."""
    found: dict[str, Passage] = {}
    for sentence in sentences(passages):
        # A question says nothing, and neither does the row of a table without its head.
        is_statement = "?" not in sentence.text and "|" not in sentence.text
        if is_statement and says(asked.words, sentence.text) and asked.form.search(sentence.text):
            found[sentence.text] = sentence
    if len(found) > 1:
        # Of several, one may plainly give the figure.
        figures = find(asked.words, list(found.values()))
        if len(figures) == 1:
            found = {figures[0].sentence.text: figures[0].sentence}
    if len(found) == 1:
        return [Line(text, sentence) for text, sentence in found.items()]
    if found:
        return cannot_tell("which of these holds", asked.words, list(found.values()))
    return cannot_tell("that from the sentences found", asked.words, passages)


def cannot_tell(what: str, words: frozenset[str], passages: Sequence[Passage]) -> list[Line]:
    """Return that no sentence tells something, and the sentences nearest to it."""
    lines = [Line(sentence.text, sentence) for sentence in nearest(words, passages)]
    opening = f"I cannot tell {what}."
    if lines:
        opening += " The nearest sentences:"
    return [Line(opening), *lines, Line(_CONNECT)]
