"""Answers from what a node is given: lines of text, each with the sentence that bears it out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sennit.activities.providers.offline.figures import Figure, find, written
from sennit.activities.providers.offline.questions import Comparison, LookUp, identity
from sennit.activities.providers.offline.sentences import Passage, nearest, says, sentences, stems

_CONNECT = (
    "These are rules, no language model. For more, set SENNIT_MODEL and its key: see "
    "docs/models.md."
)
_WHOLE = re.compile(r"(?s)\W*+(?:\w++\W++){3}\w.*[.!?][\"'\u201d\u2019)\]]*")
"""A sentence of four words or more, with its full stop or another mark at its end."""
_TOO_LARGE = 1e15
"""Numbers from here on are left out: a float rounds large ones, and cannot hold the largest."""


class Material:
    """The inputs of a node by their form. What the run itself was given counts only
    where nothing else is.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self.figures: list[Figure] = []
        self.results: list[float] = []
        self.passages: list[Passage] = []
        outputs = {node: value for node, value in inputs.items() if node != "input"}
        for node, value in (outputs or inputs).items():
            self._add(value, node)

    def _add(self, value: Any, node: str) -> None:
        """Add what a value of a node's output holds. The forms are tried in order; the
        last one takes any object.
        """
        match value:
            # A text that stands alone.
            case str() if value.strip():
                self.passages.append(Passage("", "", value, node))

            # How an input of a join has ended: the value is that of another node.
            case {"id": str() as name, "status": str(), "value": ended, "error": _}:
                self._add(ended, name)

            # A number: a figure from a document, or what an expression has come to. A bool is
            # an int too, and neither.
            case {"value": bool()}:
                pass
            case {"value": int() | float() as number, "quote": str() as quote} if (
                abs(number) < _TOO_LARGE
            ):
                self._add_figure(value, number, quote, node)
            case {"value": int() | float() as number, "expression": str()} if (
                abs(number) < _TOO_LARGE
            ):
                self.results.append(number)

            # A document, or a passage of one.
            case {"text": str() as text} | {"passage": str() as text}:
                self._add_passage(value, text, node)

            # Several values together: a list, what a search has found, or any other object.
            case {"items": list() as parts} | {"near": list() as parts} | list(parts):
                for part in parts:
                    self._add(part, node)
            case dict():
                for part in value.values():
                    self._add(part, node)

    def _add_figure(self, fields: Mapping[str, Any], number: float, quote: str, node: str) -> None:
        source = str(fields.get("source"))
        unit = str(fields.get("unit"))
        subject = fields.get("subject", fields.get("name"))
        sentence = Passage(source, "", quote, node)
        self.figures.append(Figure(number, unit, sentence, str(subject)))

    def _add_passage(self, fields: Mapping[str, Any], text: str, node: str) -> None:
        path = fields.get("path") or fields.get("url") or ""
        title = fields.get("title") or ""
        self.passages.append(Passage(str(path), str(title), text, node))


class Line(NamedTuple):
    """A line of an answer, and the sentence that bears it out."""

    text: str
    sentence: Passage | None = None


def output_of(lines: Sequence[Line]) -> dict[str, Any]:
    """Return `{answer, evidence}` of a joiner, and `partial: true` where something is not told."""
    texts: list[str] = []
    evidence: list[dict[str, Any]] = []
    for claim, sentence in lines:
        # What looks like a mark in a quotation is none.
        text = re.sub(r"\[\d+\]", "(...)", claim)
        if sentence is not None:
            number = len(evidence) + 1
            text += f" [{number}]"
            evidence.append(_evidence(number, claim, sentence))
        texts.append(text)

    output: dict[str, Any] = {"answer": "\n".join(texts), "evidence": evidence}
    if _CONNECT in texts:
        output["partial"] = True
    return output


def _evidence(number: int, claim: str, sentence: Passage) -> dict[str, Any]:
    """Return what bears out the claim that is marked with a number."""
    return {
        "n": number,
        "node": sentence.node,
        "claim": claim,
        "source": sentence.path or sentence.node,
        "quote": sentence.text,
    }


def summary(passages: Sequence[Passage], count: int) -> list[Line]:
    """Return the first whole sentences, the first one of each passage before any second one."""
    by_passage = [_telling_lines(passage) for passage in passages]
    longest = max(map(len, by_passage), default=0)

    # The passages take turns.
    in_turn: list[Line] = []
    for place in range(longest):
        for lines in by_passage:
            if place < len(lines):
                in_turn.append(lines[place])
    return in_turn[:count]


def _telling_lines(passage: Passage) -> list[Line]:
    """Return the whole sentences of a passage; if it has none, its first line."""
    lines = _quoted(sentences([passage]))
    # A menu or a heading is no sentence.
    whole = [line for line in lines if _WHOLE.fullmatch(line.text)]
    return whole or lines[:1]


def _quoted(quotations: Iterable[Passage]) -> list[Line]:
    """Return a line for each sentence, which bears itself out."""
    return [Line(sentence.text, sentence) for sentence in quotations]


def compared(asked: Comparison, material: Material) -> list[Line]:
    """Return what wins and by how much, or the sum; nothing is concluded
    where a figure is missing.
    """
    # Each subject is called as the question calls it.
    known = {identity(figure.subject): figure for figure in material.figures}
    ranked: list[Figure] = []
    missing: list[str] = []
    for name, subject in asked.subjects.items():
        if name in known:
            ranked.append(known[name]._replace(subject=subject))
        else:
            missing.append(f"the {asked.property} of {subject}")

    # The figures that are there are told in any case, and the winner first.
    ranked.sort(key=lambda figure: figure.value, reverse=not asked.least)
    lines: list[Line] = []
    for figure in ranked:
        value = written(figure.value, figure.unit)
        lines.append(Line(f"{figure.subject}: {value}", figure.sentence))

    # Without a figure of each subject, in one unit, and without the sum that is
    # asked for, nothing follows.
    units = {figure.unit for figure in ranked}
    lacks_sum = asked.adds and not material.results
    if missing or len(units) > 1 or lacks_sum:
        unknown = " and ".join(missing) or "which: they are in different units"
        return [*lines, *cannot_tell(unknown, stems(unknown), material.passages)]

    conclusion = _conclusion(asked, ranked, material.results)
    return [Line(conclusion), *lines]


def _conclusion(asked: Comparison, ranked: Sequence[Figure], results: Sequence[float]) -> str:
    """Return what follows from figures in one unit, the winner's first. The first of the `results`,
    if there is any, is their sum or the difference between the greatest and the least.
    """
    winner = ranked[0]
    loser = ranked[-1]
    result = ""
    if results:
        result = written(results[0], winner.unit)
    if asked.adds:
        return f"Together {result}."

    values = {figure.value for figure in ranked}
    if len(values) < len(ranked):
        return "Some are equal."

    name = winner.subject
    conclusion = f"{name[0].upper()}{name[1:]} {asked.wins}."
    if result:
        conclusion += f" The difference between {name} and {loser.subject} is {result}."
    return conclusion


def looked_up(asked: LookUp, passages: Sequence[Passage]) -> list[Line]:
    """Return the one sentence that answers; where several differ, or none does, that
    the rules cannot tell.
    """
    # The same sentence may stand in several documents, and counts once.
    by_text: dict[str, Passage] = {}
    for sentence in sentences(passages):
        if _may_answer(asked, sentence.text):
            by_text[sentence.text] = sentence
    answering = list(by_text.values())

    # Of several, one may plainly give the figure.
    if len(answering) > 1:
        figures = find(asked.words, answering)
        if len(figures) == 1:
            answering = [figures[0].sentence]

    if len(answering) == 1:
        return _quoted(answering)
    if answering:
        return cannot_tell("which of these holds", asked.words, answering)
    return cannot_tell("that from the sentences found", asked.words, passages)


def _may_answer(asked: LookUp, text: str) -> bool:
    """Whether a sentence says what is asked, in the form of an answer."""
    # A question says nothing, and neither does the row of a table without its head.
    if "?" in text or "|" in text:
        return False
    return says(asked.words, text) and asked.form.search(text) is not None


def cannot_tell(unknown: str, words: frozenset[str], passages: Sequence[Passage]) -> list[Line]:
    """Return that no sentence tells something, and the sentences nearest to it."""
    lines = _quoted(nearest(words, passages))
    opening = f"I cannot tell {unknown}."
    if lines:
        opening += " The nearest sentences:"
    return [Line(opening), *lines, Line(_CONNECT)]
