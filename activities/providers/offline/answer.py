"""Answers questions from what a joiner is given: plain sentences with marks, and the evidence behind each mark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.providers.offline.extract import Wanted, extract, of_kind, quote_of
from activities.providers.offline.material import Fact, Material
from activities.providers.offline.names import core, same_name
from activities.providers.offline.passages import find_quote
from activities.providers.offline.plans import Layout, layout
from activities.providers.offline.questions import Question
from activities.providers.offline.sentences import Passage
from activities.providers.offline.tellings import Part, tell
from activities.providers.offline.wording import Citations, capital, figure_of, listed, of
from activities.providers.offline.words import Attribute, named

_DOCUMENTS_NAMED = 5


@dataclass(slots=True)
class Answering:
    """Answers the questions of one goal from one node's inputs."""

    goal: str
    material: Material
    plan: Layout
    citations: Citations = field(default_factory=Citations)

    def part(self, index: int, question: Question) -> str:
        """Return the answer to one question."""
        if question.shape == "passage":
            return self._quoted(index, question)
        if question.family:
            return tell(self._family(index, question))
        part = Part(question, self.citations)
        for subject in question.subjects:
            self._add(part, subject, self._fact(index, question, subject))
        for (owner, name), node in self.plan.results.items():
            if owner == index and node in self.material.results:
                part.results[name] = self.material.results.pop(node)[1]
            elif owner == index and node in self.material.lost and not part.missing:
                part.missing.append(f"The calculation did not finish: {_lost(node, self.material)}.")
        self._adopt(part)
        return tell(part)

    def _adopt(self, part: Part) -> None:
        """Take the result of a calculation in a person's plan for the difference asked for, if it is that."""
        name = {"compare": "lead", "difference": "difference"}.get(part.question.shape, "")
        values = [item.value for item in part.figures.values()]
        if not name or name in part.results or len(values) != 2:
            return
        for node, (_, value) in list(self.material.results.items()):
            if math.isclose(abs(value), abs(values[0] - values[1]), rel_tol=1e-9):
                part.results[name] = values[0] - values[1]
                del self.material.results[node]
                return

    def _fact(self, index: int, question: Question, subject: str) -> Fact | None:
        """The fact for a subject: by its planned node, by its name, or found now in the passages given."""
        planned = self.plan.values.get((index, subject), "")
        for fact in self.material.facts_of(planned):
            return fact
        if planned in self.material.lost:
            return None
        attribute = question.attribute
        names = (attribute.name, *attribute.accepts) if attribute else ()
        for fact in self.material.facts:
            said = fact.text("attribute")
            if same_name(fact.text("subject"), subject) and (not said or said in names):
                return fact
        if attribute is None or not self.material.passages:
            return None
        value = extract(Wanted(attribute, subject, attribute.unit, question.year), self.material.passages)
        node = next((item.node for item in self.material.passages if item.path == value.get("source")), "")
        return Fact(node, value)

    def _add(self, part: Part, subject: str, fact: Fact | None) -> None:
        name = self._shown(subject, fact)
        figure = figure_of(name, fact) if fact is not None else None
        if figure is not None:
            part.figures[subject] = figure
            return
        what = _what(part.question.attribute)
        if fact is None:
            planned = [node for node in self.material.lost if node in self.plan.values.values()]
            node = next((node for node in planned if node.startswith(_start(subject))), "")
            why = _lost(node, self.material) if node else "no node looked it up"
            part.missing.append(f"The {of(what, name)} is not known: {why}.")
        else:
            part.missing.append(_not_found(what, name, fact, part.question.year))

    def _shown(self, subject: str, fact: Fact | None) -> str:
        """The name as the document has it; as asked where only capitals differ and the goal uses capitals."""
        name = fact.text("name") if fact is not None else ""
        if not name or (name.lower() == subject.lower() and self.goal[:1].isupper()):
            return subject
        return name

    def _family(self, index: int, question: Question) -> Part:
        part = Part(question, self.citations, truncated=self.material.truncated)
        folder, found = self.plan.folders.get(index, ("", ""))
        facts = self.material.facts_of(folder) + self.material.facts_of(found) or self._of_kind(question)
        part.searched = not self.material.facts_of(folder)
        for fact in facts:
            source = fact.text("source")
            name = fact.text("name") or fact.text("subject")
            key = source or name
            if not name or key in part.figures or key in part.members:
                continue
            figure = figure_of(name, fact)
            if question.shape == "members" and fact.found:
                part.members[key] = fact
            elif figure is not None:
                part.figures[key] = figure
            elif fact.value.get("reason") and fact.value.get("of_kind") is True:
                part.lacking.append(name)
        return part

    def _of_kind(self, question: Question) -> list[Fact]:
        """The facts of each document given that is about the kind asked for."""
        documents: dict[str, list[Passage]] = {}
        for item in self.material.passages:
            documents.setdefault(item.path, []).append(item)
        return [
            Fact(items[0].node, describe(question.family, question.attribute, items)) for items in documents.values()
        ]

    def _quoted(self, index: int, question: Question) -> str:
        planned = self.plan.values.get((index, ""), "")
        facts = self.material.facts_of(planned) or [fact for fact in self.material.facts if "value" not in fact.value]
        if not facts and planned in self.material.lost:
            return f"The look-up did not finish: {_lost(planned, self.material)}."
        fact = facts[0] if facts else Fact("", find_quote(question.text, self.material.passages))
        quote = fact.text("quote")
        if not fact.found or not quote:
            looked = _looked(fact)
            return f"No sentence was found that answers “{question.text}”{f' in {looked}' if looked else ''}."
        mark = self.citations.mark(fact.node, question.text, fact.text("source"), quote)
        return f"{quote} {mark}"


def describe(kind: str, attribute: Attribute | None, passages: Sequence[Passage], unit: str = "") -> dict[str, Any]:
    """Return the fact of the one thing that a document describes, or why there is none.

    `of_kind` is true where the document is about such a thing, whether or not it gives the fact.
    """
    if not passages or not of_kind(passages[0], kind):
        path = passages[0].path if passages else ""
        return {"found": False, "subject": path, "reason": f"the document is not about a {kind}", "of_kind": False}
    title = passages[0].title
    if attribute is None:
        return quote_of(title, passages) | {"of_kind": True}
    name = quote_of(title, passages)["name"]
    return {"name": name} | extract(Wanted(attribute, title, unit or attribute.unit), passages) | {"of_kind": True}


def _start(subject: str) -> str:
    return core(subject)[0][:8] if core(subject) else subject


def _what(attribute: Attribute | None) -> str:
    name = attribute.name if attribute else "fact"
    return f"year “{name.removeprefix('year ')}”" if name.startswith("year ") else name


def _not_found(what: str, name: str, fact: Fact, year: int | None) -> str:
    reason, looked = fact.text("reason"), _looked(fact)
    when = f" for {year}" if year is not None else ""
    if reason.startswith("several"):
        return f"The {of(what, name)} was not found: {reason}."
    where = f"no passage gives it in {looked}" if looked else "the search found no passage"
    return f"The {of(what, name)}{when} was not found: {where}."


def _looked(fact: Fact) -> str:
    paths = fact.value.get("looked_in")
    names = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    more = len(names) - _DOCUMENTS_NAMED
    return listed([*names[:_DOCUMENTS_NAMED], *([f"{more} more"] if more > 0 else [])])


def _lost(node: str, material: Material) -> str:
    status, error = material.lost.get(node, ("missing", ""))
    return f"{node} was {status}{f' ({error})' if error else ''}"


def compare(material: Material) -> dict[str, Any] | None:
    """Return `{answer, evidence}` that sets all facts found against each other; None with fewer than two figures."""
    facts = {fact.text("name") or fact.text("subject"): fact for fact in material.facts}
    figures = {name: item for name, fact in facts.items() if name and (item := figure_of(name, fact))}
    attribute = next((named(item.fact.text("attribute")) for item in figures.values()), None)
    if attribute is None or len(figures) < 2:
        return None
    part = Part(Question("compare", "", attribute, tuple((name,) for name in figures)), Citations(), figures)
    part.missing = [
        _not_found(_what(attribute), name, fact, None) for name, fact in facts.items() if name not in figures
    ]
    best, following = sorted((item.value for item in figures.values()), reverse=True)[:2]
    part.results["lead"] = best - following
    return {"answer": tell(part), "evidence": part.citations.evidence}


def answer(goal: str, questions: Sequence[Question], material: Material) -> dict[str, Any]:
    """Return `{answer, evidence}` for the questions, in their order."""
    work = Answering(goal, material, layout(questions))
    parts = [work.part(index, question) for index, question in enumerate(questions)]
    extra = [f"{capital(node)}: {expression} = {value:,}." for node, (expression, value) in material.results.items()]
    return {"answer": "\n".join([*parts, *extra]), "evidence": work.citations.evidence}
