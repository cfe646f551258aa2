"""Answers from what a joiner is given: figures with marks, or the nearest sentences; and the evidence of each mark."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.providers.offline.facts import Fact, Passage, nearest, sentences
from activities.providers.offline.questions import Question, core
from activities.providers.offline.words import written

Output = dict[str, Any]
Quote = tuple[str, str, str]
"""Node, source, and the words of it."""
Pairs = Sequence[tuple[str, str]]
"""Things with their figures as they are shown."""

_CONNECT = (
    "The offline rules tell only what a sentence says plainly. For more, connect a language model: set SENNIT_MODEL "
    "and its key, as the README says under Models."
)
_DEEPEST = 12
_MARK = re.compile(r"\[\d+\]")
_WHOLE = re.compile(r"\w+\W+\w+\W+\w+\W+\w.*[.!?][\"'\u201d\u2019)\]]*$", re.DOTALL)


@dataclass(slots=True)
class Material:
    """A node's inputs by their form: facts with their nodes, results of calculations, and all that can be quoted."""

    facts: list[tuple[str, Fact]] = field(default_factory=list)
    results: list[float] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)


def material_of(inputs: Mapping[str, Any]) -> Material:
    """Sort a node's inputs. What the run itself was given counts only where nothing else is."""
    found = Material()
    for name, value in inputs.items():
        if name != "input" or len(inputs) == 1:
            _sort(value, name, found, 0)
    return found


def _sort(value: Any, node: str, into: Material, depth: int) -> None:
    match value:
        case str() if value.strip():
            into.passages.append(Passage("", node, value, node))
        case {"id": str() as name, "status": str(), "value": inner} if depth < _DEEPEST:  # how an input ended
            _sort(inner, name, into, depth + 1)
        case {"found": bool()}:
            into.facts.append((node, value))
        case {"expression": str(), "value": int() | float() as result}:
            into.results.append(result)
        case {"passage": str() as text} | {"text": str() as text}:
            path = str(value.get("path", value.get("url", "")))
            into.passages.append(Passage(path, str(value.get("title") or ""), text, node))
        case {"items": list() as parts} | (list() as parts) if depth < _DEEPEST:
            for part in parts:
                _sort(part, node, into, depth + 1)
        case dict() if depth < _DEEPEST:
            _sort(list(value.values()), node, into, depth + 1)


@dataclass(slots=True)
class Answer:
    """An answer under construction."""

    lines: list[str] = field(default_factory=list)
    evidence: list[Output] = field(default_factory=list)
    partial: bool = False

    def mark(self, quote: Quote, claim: str) -> str:
        """Return the mark of a claim, such as `[1]`."""
        number, (node, source, words) = len(self.evidence) + 1, quote
        self.evidence.append({"n": number, "node": node, "claim": claim, "source": source or node, "quote": words})
        return f"[{number}]"

    def quote(self, quote: Quote) -> str:
        """Return a sentence with its mark; what looks like a mark in it is none."""
        return f"{_MARK.sub('(...)', quote[2])} {self.mark(quote, quote[2])}"

    def figure(self, subject: str, node: str, fact: Fact) -> str:
        """Return `6,650 km [1] (2020)`, or `completed in 1889 [1]`."""
        text, year = str(fact.get("text") or ""), fact.get("year")
        shown = text if " in " in text else written(fact["value"], fact["unit"])
        return f"{shown} {self.mark(_quote(node, fact), f'{subject}: {shown}')}{f' ({year})' if year else ''}"

    def cannot_tell(self, what: str, near: Sequence[Quote]) -> None:
        """Say what is not told, and quote the nearest sentences."""
        self.partial = True
        self.lines.append(f"I cannot tell {what}.{' The nearest sentences:' if near else ''}")
        self.lines += [f"- {self.quote(quote)}" for quote in near]

    def output(self) -> Output:
        """Return `{answer, evidence}`, with `partial: true` where something is not told."""
        whole: Output = {"answer": "\n".join(self.lines), "evidence": self.evidence}
        return whole | {"answer": f"{whole['answer']}\n{_CONNECT}", "partial": True} if self.partial else whole


def _quote(node: str, fact: Fact) -> Quote:
    return node, str(fact.get("source") or ""), str(fact.get("quote") or "")


def answer(question: Question, material: Material) -> Output:
    """Return the answer to a question; nothing is concluded before every figure that it needs is there."""
    said, phrase = Answer(), question.attribute.phrase
    facts = {core(str(fact.get("subject"))): (node, fact) for node, fact in material.facts}
    asked = [(subject, *facts.get(core(subject), ("", {}))) for subject in question.subjects]
    found = [(subject, node, fact) for subject, node, fact in asked if _is_told(question, fact)]
    if question.attribute.did:
        said.lines += [said.quote(_quote(node, fact)) for _, node, fact in found]
    elif found:
        shown = [(subject, said.figure(subject, node, fact)) for subject, node, fact in found]
        whole = len(found) == len(asked) and len({fact["unit"] for *_, fact in found}) == 1
        line = _concluded(question, shown, [fact for *_, fact in found], material.results) if whole else ""
        said.partial = not line
        said.lines.append(line or f"Found: {_listed(shown)}.")
    for subject, node, fact in asked:
        if not _is_told(question, fact):
            near = [each for each in fact.get("near") or () if isinstance(each, dict)]
            said.cannot_tell(f"the {phrase.format(subject)}", [_quote(node, each) for each in near])
    return said.output()


def _is_told(question: Question, fact: Fact) -> bool:
    value = fact.get("value")
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return fact.get("found") is True and (number or bool(question.attribute.did)) and isinstance(fact.get("unit"), str)


def _concluded(question: Question, shown: Pairs, facts: Sequence[Fact], results: Sequence[float]) -> str:
    """Return the answer in words; nothing where the arithmetic that it needs is not there."""
    phrase, values = question.attribute.phrase, [fact["value"] for fact in facts]
    if question.shape == "lookup":
        one, figure = shown[0]
        single = f"{one} was {figure}." if question.attribute.happened else f"The {phrase.format(one)} is {figure}."
        return _capital(single if len(shown) == 1 else f"{_listed(shown)}.")
    if not results and (question.leads or question.shape != "compare"):
        return ""
    amount = written(abs(results[0]), facts[0]["unit"]) if results else ""
    if question.shape == "sum":
        names = " and ".join(subject for subject, _ in shown)
        return f"The {phrase.format(names)} together is {amount}: {_listed(shown)}."
    order = sorted(range(len(shown)), key=lambda index: -values[index] * question.sign)
    ranked = [shown[index] for index in order]
    if len(set(values)) < len(values):
        return f"Some are equal: {_listed(ranked)}."
    if question.shape == "difference":
        turned = "It is the other way round. " if question.wins and order[0] else ""
        return f"{turned}The difference is {amount}: {_listed(ranked)}."
    lead = f" The difference between {ranked[0][0]} and {ranked[-1][0]} is {amount}." if amount else ""
    return _capital(f"{ranked[0][0]} {question.wins}: {ranked[0][1]}, then {_listed(ranked[1:])}.{lead}")


def _listed(shown: Pairs) -> str:
    return ", ".join(f"{subject} {figure}" for subject, figure in shown)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def quoted(asked: str, material: Material) -> Output:
    """Return the sentences of the facts where a prompt asks to quote them; else the sentences nearest to it."""
    said = Answer()
    quotes = [_quote(node, fact) for node, fact in material.facts if fact.get("quote")]
    if quotes and re.search(r"\bquote\b", asked, re.IGNORECASE):
        said.lines = [said.quote(quote) for quote in quotes]
    else:
        near = [(passage.node, passage.path, text) for passage, text in nearest(asked, material.passages)]
        said.cannot_tell("that from the sentences found" if near else "that: nothing was found", quotes or near)
    return said.output()


def summary(passages: Sequence[Passage], count: int) -> list[tuple[Passage, str]]:
    """Return the first `count` whole sentences, each document's first before any second, in the documents' order."""
    documents: dict[str, list[tuple[Passage, str]]] = {}
    for passage in passages:
        texts = sentences(passage)
        whole = [text for text in texts if _WHOLE.search(text)] or texts[:1]
        documents.setdefault(passage.path or passage.text, []).extend((passage, text) for text in whole)
    rows = list(documents.values())
    turns = sorted((place, row) for row, found in enumerate(rows) for place in range(len(found)))[:count]
    return [rows[row][place] for row, place in sorted((row, place) for place, row in turns)]


def summarised(passages: Sequence[Passage], count: int) -> Output:
    """Return a summary with a mark for each of its sentences."""
    said = Answer()
    said.lines = [" ".join(said.quote((item.node, item.path, text)) for item, text in summary(passages, count))]
    return said.output()
