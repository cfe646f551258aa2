"""Answers from what a joiner is given: figures with marks, or the nearest sentences; and the evidence of each mark."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from sennit.activities.providers.offline.figures import FIGURE, Fact, core, find, measure, written
from sennit.activities.providers.offline.questions import Question
from sennit.activities.providers.offline.statements import Passage, Statement, carries, nearest, statements, stems

_CONNECT = "These are rules, no language model. For more, set SENNIT_MODEL and its key: see docs/models.md."
_MARK = re.compile(r"\[\d+\]")
_NUMERAL = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_FORMS = {
    "person": re.compile(r"[^\W\d_a-z]\w+"),
    "time": re.compile(
        r"\b\d{4}\b|\b\d{1,2}[:./]\d\d\b|(?i:\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tues|wednes|thurs|fri|"
        r"satur|sun)[a-z]*\b|\btomorrow\b|\btoday\b)"
    ),
    "duration": re.compile(rf"(?i)\b(?:\d+|{_NUMERAL})[ -](?:second|minute|hour|day|week|month|year)s?\b"),
    "figure": re.compile(rf"{FIGURE}|(?i:\b{_NUMERAL}\b)"),
    "reason": re.compile(r"(?i)\b(?:because|since|so that|due to|in order to|reason)\b"),
}
"""What a sentence must name that answers."""
_DENIES = re.compile(
    r"(?i)\b(?:not|no|never|nobody|none|cannot|\w+n['\u2019]t|would|might|could|perhaps|maybe|unless|if|proposed|rejected|"
    r"formerly|previously|used to|wants?|hopes?|plans? to)\b|\?"
)
_SENTENCE = re.compile(r"(?s)\W*+(?:\w++\W++){3}\w.*[.!?][\"'\u201d\u2019)\]]*")


class Material:
    """A node's inputs by their form; what the run itself was given counts only where nothing else is."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        values = {name: value for name, value in inputs.items() if name != "input"} or inputs
        found = [each for name, value in values.items() for each in _sorted(value, name, 0)]
        self.facts = [(node, each) for node, each in found if isinstance(each, dict)]
        self.results = [each for _, each in found if isinstance(each, int | float)]
        self.passages = [each for _, each in found if isinstance(each, Passage)]


def _sorted(value: Any, node: str, depth: int) -> Iterator[tuple[str, Fact | float | Passage]]:
    match value:
        case str() if value.strip():
            yield node, Passage("", node, value, node)
        case {"id": str() as name, "status": str(), "value": inner} if depth < 12:  # how an input ended
            yield from _sorted(inner, name, depth + 1)
        case {"found": bool()}:
            yield node, value
        case {"expression": str(), "value": int() | float() as result}:
            yield node, result
        case {"passage": str() as text} | {"text": str() as text}:
            path, title = value.get("path", value.get("url", "")), value.get("title") or ""
            yield node, Passage(str(path), str(title), text, node)
        case dict() | list() if depth < 12:
            parts = value if isinstance(value, list) else value.get("items", list(value.values()))
            for part in parts if isinstance(parts, list) else ():
                yield from _sorted(part, node, depth + 1)


@dataclass(slots=True)
class Answer:
    """An answer under construction."""

    lines: list[str] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    partial: bool = False

    def mark(self, node: str, fact: Fact, claim: str) -> str:
        """Return the mark of a claim, such as `[1]`, that the quotation of a fact bears out."""
        piece = {"source": str(fact.get("source") or node), "quote": str(fact.get("quote") or "")}
        self.evidence.append({"n": len(self.evidence) + 1, "node": node, "claim": claim, **piece})
        return f"[{len(self.evidence)}]"

    def quote(self, node: str, fact: Fact) -> str:
        """Return the quotation of a fact with its mark; what looks like a mark in it is none."""
        quote = str(fact.get("quote") or "")
        return f"{_MARK.sub('(...)', quote)} {self.mark(node, fact, quote)}"

    def cannot_tell(self, what: str, node: str, near: Any) -> None:
        """Say what is not told, and quote the nearest sentences."""
        quotes = [self.quote(node or str(fact.get("node")), fact) for fact in near or () if isinstance(fact, dict)]
        self.lines.append(f"I cannot tell {what}.{' The nearest sentences:' if quotes else ''}")
        self.lines += [f"- {quote}" for quote in quotes]
        self.partial = True

    def output(self) -> dict[str, Any]:
        """Return `{answer, evidence}`, with `partial: true` where something is not told."""
        text = "\n".join([*self.lines, *([_CONNECT] if self.partial else [])])
        return {"answer": text, "evidence": self.evidence, **({"partial": True} if self.partial else {})}


def answer(question: Question, material: Material) -> dict[str, Any]:
    """Return the answer to a question; nothing is concluded before every figure that it needs is there."""
    if question.shape == "lookup" and not material.facts:
        return _looked_up(question, material.passages).output()
    said, shown, values, missing = Answer(), [], [], []
    facts = {core(str(fact.get("subject"))): (node, fact) for node, fact in material.facts}
    units = {str(fact.get("unit")) for _, fact in facts.values() if fact["found"]}
    for subject in question.subjects:
        node, fact = facts.get(core(subject), ("", {}))
        value, year = fact.get("value"), fact.get("year")
        if fact.get("found") is True and isinstance(value, int | float) and abs(value) < 1e300 and value is not True:
            figure = written(value, str(fact.get("unit")))
            mark = said.mark(node, fact, f"{subject}: {figure}")
            shown.append((subject, f"{figure} {mark}{f' ({year})' if year else ''}"))
            values.append(value)
        else:
            missing.append((f"the {question.property} of {subject}", node, fact.get("near")))
    if shown:
        whole = not missing and len(units) == 1
        amount = written(abs(material.results[0]), *units) if whole and material.results else ""
        line = _concluded(question, shown, values, amount) if whole else ""
        said.partial = not line
        said.lines.append(f"{line[:1].upper()}{line[1:]}" if line else f"Found: {_listed(shown)}.")
    for what, node, near in missing:
        said.cannot_tell(what, node, near)
    return said.output()


def _looked_up(question: Question, passages: Sequence[Passage]) -> Answer:
    """Return the figure, or the one sentence that carries the words of the question; else those that come near."""
    said, near = Answer(), _nearest(" ".join(sorted(question.words)), passages)
    for subject in question.subjects:
        fact = find(question.property, subject, question.unit, passages)
        if fact["found"]:
            said.lines = [f"{written(fact['value'], fact['unit'])}:"] if question.unit else []
            said.lines.append(said.quote(next(each.node for each in passages if each.path == fact["source"]), fact))
        elif measure(question.property) or question.unit:
            said.cannot_tell(f"the {question.property} of {subject}", "", near)
        if said.lines:
            return said
    answers = {_told(question, each): each for passage in passages for each in _answers(question, passage)}.values()
    found = [each for each in answers if not each.about] or list(answers)
    if len(found) == 1:
        said.lines = [said.quote(found[0].passage.node, _fact(found[0]))]
    else:
        what = "which of these holds" if found else "that from the sentences found"
        said.cannot_tell(what, "", [_fact(each) for each in found[:3]] or near)
    return said


def _answers(question: Question, passage: Passage) -> list[Statement]:
    """Return the statements that carry the words of a question, name what it asks for, and deny nothing."""
    form = _FORMS.get(question.kind)
    return [
        each
        for each in statements(passage)
        if carries(question.words, each)
        and question.topic <= stems(f"{each.text} {each.passage.title}")
        and not _DENIES.search(each.text)
        and (form is None or _named(form, question, each))
    ]


def _named(form: re.Pattern[str], question: Question, statement: Statement) -> tuple[str, ...]:
    """Return what a statement names of the kind that is asked for, beside what the question itself says."""
    return tuple(found[0] for found in form.finditer(statement.text) if not stems(found[0]) & question.words)


def _told(question: Question, statement: Statement) -> tuple[str, ...]:
    """Return what two statements have alike that tell the same."""
    form = _FORMS.get(question.kind)
    return _named(form, question, statement) if form else (statement.text,)


def _fact(statement: Statement) -> Fact:
    return {"node": statement.passage.node, "source": statement.passage.path, "quote": statement.text}


def _nearest(asked: str, passages: Sequence[Passage]) -> list[Fact]:
    return [_fact(each) for each in nearest(asked, passages)]


def _listed(shown: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{subject} {figure}" for subject, figure in shown)


def _concluded(question: Question, shown: list[tuple[str, str]], values: list[float], amount: str) -> str:
    """Return the answer in words; nothing where the arithmetic that it needs is not there."""
    one = shown[0]
    if question.shape == "lookup" or (not amount and (question.leads or question.shape != "compare")):
        return f"{_listed(shown)}." if question.shape == "lookup" else ""
    if question.shape == "sum":
        return f"together {amount}: {_listed(shown)}."
    ranked = [pair for _, pair in sorted(zip(values, shown, strict=True), key=lambda each: -each[0] * question.sign)]
    if len(set(values)) < len(values):
        return f"some are equal: {_listed(ranked)}."
    if question.shape == "difference":
        turned = "it is the other way round. " if question.wins and ranked[0] != one else ""
        return f"{turned}{'T' if turned else 't'}he difference is {amount}: {_listed(ranked)}."
    lead = f" The difference between {ranked[0][0]} and {ranked[-1][0]} is {amount}." if amount else ""
    return f"{ranked[0][0]} {question.wins}: {ranked[0][1]}, then {_listed(ranked[1:])}.{lead}"


def quoted(asked: str, material: Material) -> dict[str, Any]:
    """Return the sentences of the facts where a prompt asks to quote them; else the sentences nearest to it."""
    said, facts = Answer(), [(node, fact) for node, fact in material.facts if fact.get("quote")]
    if facts and re.search(r"\bquote\b", asked, re.IGNORECASE):
        said.lines = [said.quote(node, fact) for node, fact in facts]
    else:
        near = _nearest(asked, material.passages)
        said.cannot_tell("that from the sentences found" if near else "that: nothing was found", "", near)
    return said.output()


def summary(passages: Sequence[Passage], count: int) -> list[tuple[Passage, str]]:
    """Return the first `count` whole sentences, the first of each passage before any second: some words, and a mark."""
    texts = [[each.text for each in statements(passage)] for passage in passages]
    rows = [list(filter(_SENTENCE.fullmatch, found)) or found[:1] for found in texts]
    turns = [zip(passages, turn, strict=True) for turn in zip_longest(*rows)]
    return [(passage, text) for turn in turns for passage, text in turn if text][:count]
