"""Answers questions from what a joiner is given: plain sentences with marks, and the evidence behind each mark."""

from collections.abc import Sequence
from typing import Any

from activities.providers.offline.citations import Citations, capital, figure_of, listed
from activities.providers.offline.extract import Wanted, extract
from activities.providers.offline.material import Fact, Material
from activities.providers.offline.names import same_name
from activities.providers.offline.plans import Layout, layout
from activities.providers.offline.questions import Question
from activities.providers.offline.quoting import cited, nearest
from activities.providers.offline.telling import Part, tell
from activities.providers.offline.words import Attribute, named, of

_DOCUMENTS_NAMED = 5


def answer(goal: str, questions: Sequence[Question], material: Material) -> dict[str, Any]:
    """Return `{answer, evidence}` for the questions, in their order."""
    plan, citations = layout(questions), Citations()
    parts = []
    for index, question in enumerate(questions):
        if question.attribute is None:
            parts.append(_passages(plan.sources[index], question, material, citations))
            continue
        part = Part(question, question.attribute, citations)
        if question.family:
            _gather(part, plan.sources[index], material)
        else:
            _look_up(part, plan, index, goal, material)
        parts.append(tell(part))
    return {"answer": "\n".join([*parts, *sums(material)]), "evidence": citations.evidence}


def sums(material: Material) -> list[str]:
    """Return the calculations that no question asked for, one line each."""
    return [f"{capital(node)}: {expression} = {value:,}." for node, (expression, value) in material.results.items()]


def _passages(node: str, question: Question, material: Material, citations: Citations) -> str:
    if node in material.lost:
        return f"The search did not finish: {material.why_lost(node)}."
    found = [item for item in material.passages if item.node == node] or material.passages
    said = f"I cannot tell from the documents; the offline rules do not understand “{question.text}”."
    lines = cited(nearest(question.text, found), citations)
    return "\n".join([f"{said} Nearest sentences:", *lines]) if lines else f"{said} The search found no passage."


def _look_up(part: Part, plan: Layout, index: int, goal: str, material: Material) -> None:
    """Collect the figure of each thing asked about, or why there is none, and the result of their arithmetic."""
    question, attribute = part.question, part.attribute
    for subject in question.subjects:
        node = plan.facts[(index, subject)]
        fact = _fact(node, question, attribute, subject, material)
        name = (fact.text("name") if fact else "") or subject
        if name.lower() == subject.lower() and goal[:1].isupper():
            name = subject
        figure = figure_of(name, fact) if fact else None
        if figure is not None:
            part.figures.append(figure)
        elif fact is not None:
            part.missing.append(_not_found(attribute, name, fact, question.year))
        else:
            why = material.why_lost(node) if node in material.lost else "no node looked it up"
            part.missing.append(f"The {of(attribute.name, name)} is not known: {why}.")
    sum_node = plan.results.get(index, "")
    if sum_node in material.results:
        part.result = material.results.pop(sum_node)[1]
    elif sum_node in material.lost and not part.missing:
        part.missing.append(f"The calculation did not finish: {material.why_lost(sum_node)}.")


def _fact(node: str, question: Question, attribute: Attribute, subject: str, material: Material) -> Fact | None:
    """The fact for a subject: by its planned node, by its name, or found now in the passages given."""
    if node in material.lost:
        return None
    for fact in material.facts:
        said = fact.text("attribute")
        same = same_name(fact.text("subject"), subject) and (not said or said in (attribute.name, *attribute.accepts))
        if fact.node == node or (same and not any(other.node == node for other in material.facts)):
            return fact
    if not material.passages:
        return None
    value = extract(Wanted(attribute, subject, question.unit or attribute.unit, question.year), material.passages)
    return Fact(next((item.node for item in material.passages if item.path == value.get("source")), ""), value)


def _gather(part: Part, node: str, material: Material) -> None:
    """Collect the figures of all documents of a folder."""
    lacking = []
    for fact in material.facts:
        name = fact.text("name") or fact.text("subject")
        figure = figure_of(name, fact)
        if figure is not None and fact.node == node:
            part.figures.append(figure)
        elif name and fact.node == node:
            lacking.append(name)
    if node in material.lost:
        part.missing.append(f"The folder was not read: {material.why_lost(node)}.")
    if lacking:
        given = "year" if part.attribute.dated else part.attribute.name
        part.missing.append(f"No {given} was found for {listed(lacking)}.")
    if material.truncated:
        part.missing.append("Only the first files of the folder were read.")


def _not_found(attribute: Attribute, name: str, fact: Fact, year: int | None) -> str:
    what = f"year “{attribute.event}”" if attribute.dated else attribute.name
    paths = fact.value.get("looked_in")
    looked = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    more = len(looked) - _DOCUMENTS_NAMED
    where = listed([*looked[:_DOCUMENTS_NAMED], *([f"{more} more"] if more > 0 else [])])
    reason = fact.text("reason") if fact.text("reason").startswith("several") else ""
    why = reason or (f"no passage gives it in {where}" if where else "the search found no passage")
    return f"The {of(what, name)}{f' for {year}' if year is not None else ''} was not found: {why}."


def compare(material: Material) -> dict[str, Any] | None:
    """Return `{answer, evidence}` that sets all facts found against each other; None with fewer than two figures."""
    facts = {fact.text("name") or fact.text("subject"): fact for fact in material.facts}
    figures = [item for name, fact in facts.items() if name and (item := figure_of(name, fact))]
    attribute = next((named(item.fact.text("attribute")) for item in figures), None)
    if attribute is None or len(figures) < 2:
        return None
    names = tuple(item.name for item in figures)
    part = Part(Question("compare", "", attribute, names, by="next"), attribute, Citations(), figures)
    part.missing = [_not_found(attribute, name, fact, None) for name, fact in facts.items() if name not in names]
    best, following = sorted((item.value for item in figures), reverse=True)[:2]
    part.result = best - following
    return {"answer": tell(part), "evidence": part.citations.evidence}
