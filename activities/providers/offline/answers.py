"""Answers from what a joiner is given: figures with marks, or the nearest sentences; and the evidence of each mark."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from activities.providers.offline.facts import Fact, Passage, nearest, sentences
from activities.providers.offline.questions import Question, core
from activities.providers.offline.words import written

_CONNECT = "These are rules, no language model. For more, set SENNIT_MODEL and its key: see Models in the README."
_MARK = re.compile(r"\[\d+\]")
_FOUR_WORDS = re.compile(r"\W*+(?:\w++\W++){3}\w")


class Material:
    """A node's inputs by their form; what the run itself was given counts only where nothing else is."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        given = {name: value for name, value in inputs.items() if name != "input"} or inputs
        found = [each for name, value in given.items() for each in _sorted(value, name, 0)]
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
    said, shown, values, missing = Answer(), [], [], []
    facts = {core(str(fact.get("subject"))): (node, fact) for node, fact in material.facts}
    units = {str(fact.get("unit")) for _, fact in facts.values() if fact["found"]}
    for subject in question.subjects:
        node, fact = facts.get(core(subject), ("", {}))
        value, year = fact.get("value"), fact.get("year")
        if fact.get("found") is True and question.attribute.did:
            said.lines.append(said.quote(node, fact))
        elif fact.get("found") is True and isinstance(value, int | float) and abs(value) < 1e300 and value is not True:
            figure = str(fact.get("text") or written(value, str(fact.get("unit"))))
            mark = said.mark(node, fact, f"{subject}: {figure}")
            shown.append((subject, f"{figure} {mark}{f' ({year})' if year else ''}"))
            values.append(value)
        else:
            missing.append((question.attribute.phrase.format(subject), node, fact.get("near")))
    if shown:
        whole = not missing and len(units) == 1
        amount = written(abs(material.results[0]), *units) if whole and material.results else ""
        line = _concluded(question, shown, values, amount) if whole else ""
        said.partial = not line
        said.lines.append(f"{line[:1].upper()}{line[1:]}" if line else f"Found: {_listed(shown)}.")
    for what, node, near in missing:
        said.cannot_tell(f"the {what}", node, near)
    return said.output()


def _listed(shown: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{subject} {figure}" for subject, figure in shown)


def _concluded(question: Question, shown: list[tuple[str, str]], values: list[float], amount: str) -> str:
    """Return the answer in words; nothing where the arithmetic that it needs is not there."""
    one, phrase = shown[0], question.attribute.phrase
    if question.shape == "lookup" and len(shown) == 1:
        return f"{one[0]} was {one[1]}." if question.attribute.happened else f"the {phrase.format(one[0])} is {one[1]}."
    if question.shape == "lookup" or (not amount and (question.leads or question.shape != "compare")):
        return f"{_listed(shown)}." if question.shape == "lookup" else ""
    if question.shape == "sum":
        return f"the {phrase.format(' and '.join(question.subjects))} together is {amount}: {_listed(shown)}."
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
        items = nearest(asked, material.passages)
        near = [{"node": item.node, "source": item.path, "quote": text} for item, text in items]
        said.cannot_tell("that from the sentences found" if near else "that: nothing was found", "", near)
    return said.output()


def _whole(text: str) -> bool:
    """Whether a text is a sentence: some words, and a mark at its end."""
    return _FOUR_WORDS.match(text) is not None and text.rstrip("\"'\u201d\u2019)]").endswith((".", "!", "?"))


def summary(passages: Sequence[Passage], count: int) -> list[tuple[Passage, str]]:
    """Return the first `count` whole sentences, the first of each passage before any second."""
    texts = [sentences(passage) for passage in passages]
    rows = [[text for text in found if _whole(text)] or found[:1] for found in texts]
    turns = [zip(passages, turn, strict=True) for turn in zip_longest(*rows)]
    return [(passage, text) for turn in turns for passage, text in turn if text][:count]
