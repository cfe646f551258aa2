"""Answers from what a joiner is given: figures with marks, or the nearest sentences; and the evidence of each mark."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from sennit.activities.providers.offline.figures import Fact, core, find, measure, quotation, written
from sennit.activities.providers.offline.questions import Question
from sennit.activities.providers.offline.statements import Passage, Statement, carries, nearest, statements, stems

_CONNECT = "These are rules, no language model. For more, set SENNIT_MODEL and its key: see docs/models.md."
_MARK = re.compile(r"\[\d+\]")
_FORMS = {
    "person": re.compile(r"[^\W\d_a-z]\w+"),
    "time": re.compile(
        r"\b\d{4}\b|\b\d{1,2}[:./]\d\d\b|(?i:\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tues|wednes|thurs|fri|"
        r"satur|sun)[a-z]*\b|\btomorrow\b|\btoday\b)"
    ),
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
        self.facts = [each for _, each in found if isinstance(each, dict)]
        self.results = [each for _, each in found if isinstance(each, int | float)]
        self.passages = [each for _, each in found if isinstance(each, Passage)]


def _sorted(value: Any, node: str, depth: int) -> Iterator[tuple[str, Fact | float | Passage]]:
    match value:
        case str() if value.strip():
            yield node, Passage("", node, value, node)
        case {"id": str() as name, "status": str(), "value": inner} if depth < 12:  # how an input ended
            yield from _sorted(inner, name, depth + 1)
        case {"found": bool()}:
            yield node, {**value, "node": node}
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

    def mark(self, fact: Fact, claim: str) -> str:
        """Return the mark of a claim, such as `[1]`, that the quotation of a fact bears out."""
        node = str(fact.get("node"))
        piece = {"source": str(fact.get("source") or node), "quote": str(fact.get("quote") or "")}
        self.evidence.append({"n": len(self.evidence) + 1, "node": node, "claim": claim, **piece})
        return f"[{len(self.evidence)}]"

    def quote(self, fact: Fact) -> str:
        """Return the quotation of a fact with its mark; what looks like a mark in it is none."""
        quote = str(fact.get("quote") or "")
        return f"{_MARK.sub('(...)', quote)} {self.mark(fact, quote)}"

    def cannot_tell(self, what: str, near: Any) -> None:
        """Say what is not told, and quote the nearest sentences."""
        quotes = [self.quote(fact) for fact in near or () if isinstance(fact, dict)]
        self.lines.append(f"I cannot tell {what}.{' The nearest sentences:' if quotes else ''}")
        self.lines += [f"- {quote}" for quote in quotes]
        self.partial = True

    def output(self) -> dict[str, Any]:
        """Return `{answer, evidence}`, with `partial: true` where something is not told."""
        text = "\n".join([*self.lines, *([_CONNECT] if self.partial else [])])
        return {"answer": text, "evidence": self.evidence, **({"partial": True} if self.partial else {})}


def concluded(question: Question, material: Material) -> dict[str, Any]:
    """Return the answer from figures; nothing is concluded before every one that it needs is there."""
    said, shown, values, missing = Answer(), [], [], []
    facts = {core(str(fact.get("subject"))): fact for fact in material.facts}
    units = {str(fact.get("unit")) for fact in facts.values() if fact["found"]}
    for subject in question.subjects:
        fact = facts.get(core(subject), {})
        value, year = fact.get("value"), fact.get("year")
        if fact.get("found") is True and isinstance(value, int | float) and abs(value) < 1e300 and value is not True:
            figure = written(value, str(fact.get("unit")))
            mark = said.mark(fact, f"{subject}: {figure}")
            shown.append((subject, f"{figure} {mark}{f' ({year})' if year else ''}"))
            values.append(value)
        else:
            missing.append((f"the {question.property} of {subject}", fact.get("near")))
    if shown:
        whole = not missing and len(units) == 1
        amount = written(abs(material.results[0]), *units) if whole and material.results else ""
        line = _conclusion(question, shown, values, amount) if whole else ""
        said.partial = not line
        said.lines.append(f"{line[:1].upper()}{line[1:]}" if line else f"Found: {_listed(shown)}.")
    for what, near in missing:
        said.cannot_tell(what, near)
    return said.output()


def _listed(shown: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{subject} {figure}" for subject, figure in shown)


def _conclusion(question: Question, shown: list[tuple[str, str]], values: list[float], amount: str) -> str:
    """Return the answer in words; nothing where the arithmetic that it needs is not there."""
    if not amount and (question.leads or question.shape != "compare"):
        return ""
    if question.shape == "sum":
        return f"together {amount}: {_listed(shown)}."
    ranked = [pair for _, pair in sorted(zip(values, shown, strict=True), key=lambda each: -each[0] * question.sign)]
    if len(set(values)) < len(values):
        return f"some are equal: {_listed(ranked)}."
    if question.shape == "difference":
        turned = "it is the other way round. " if question.wins and ranked[0] != shown[0] else ""
        return f"{turned}{'T' if turned else 't'}he difference is {amount}: {_listed(ranked)}."
    lead = f" The difference between {ranked[0][0]} and {ranked[-1][0]} is {amount}." if amount else ""
    return f"{ranked[0][0]} {question.wins}: {ranked[0][1]}, then {_listed(ranked[1:])}.{lead}"


def looked_up(question: Question, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return the one statement that carries the words of a question and names what it asks for; else the nearest."""
    said = Answer()
    if question.kind in ("", "duration", "figure"):
        unit = question.unit or ("days" if question.kind == "duration" else measure(question.words))
        fact = find(question.words, unit, passages)
        if fact["found"]:
            said.lines = [f"{written(fact['value'], fact['unit'])}:"] if question.unit else []
            said.lines.append(said.quote(fact))
        elif question.kind:
            said.cannot_tell("that from the sentences found", fact["near"])
        if said.lines:
            return said.output()
    answers: dict[tuple[str, ...], Statement] = {}
    for each in (each for passage in passages for each in statements(passage)):
        named = _named(question, each)
        if named and carries(question.words, each) and not _DENIES.search(each.text):
            answers[named] = each
    found = [each for each in answers.values() if not each.about] or [*answers.values()]
    if len(found) == 1:
        said.lines = [said.quote(quotation(found[0]))]
    else:
        what = "which of these holds" if found else "that from the sentences found"
        near = found[:3] or nearest(" ".join(sorted(question.words)), passages)
        said.cannot_tell(what, map(quotation, near))
    return said.output()


def _named(question: Question, statement: Statement) -> tuple[str, ...]:
    """Return what a statement names of the kind that is asked for, beside what the question itself says."""
    if question.kind not in _FORMS:
        return (statement.text,)
    named = (found[0] for found in _FORMS[question.kind].finditer(statement.text))
    return tuple(name for name in named if not stems(name) & question.words)


def quoted(asked: str, material: Material) -> dict[str, Any]:
    """Return the sentences of the facts where a prompt asks to quote them; else the sentences nearest to it."""
    said, facts = Answer(), [fact for fact in material.facts if fact.get("quote")]
    if facts and re.search(r"\bquote\b", asked, re.IGNORECASE):
        said.lines = [said.quote(fact) for fact in facts]
    else:
        near = nearest(asked, material.passages)
        what = "that from the sentences found" if near else "that: nothing was found"
        said.cannot_tell(what, map(quotation, near))
    return said.output()


def summary(passages: Sequence[Passage], count: int) -> list[Statement]:
    """Return the first `count` whole sentences, the first of each passage before any second: some words, and a mark."""
    texts = [list(statements(passage)) for passage in passages]
    rows = [[each for each in found if _SENTENCE.fullmatch(each.text)] or found[:1] for found in texts]
    return [each for turn in zip_longest(*rows) for each in turn if each][:count]
