"""Turns questions into a plan: look-ups side by side, arithmetic where it is needed, one join, one answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from activities.providers.offline import prompts
from activities.providers.offline.names import core, slug
from activities.providers.offline.questions import Question, Term
from activities.providers.offline.words import Attribute

Node = dict[str, Any]

_LOOKUP_PASSAGES = 5
_WIDE_PASSAGES = 20
_ITEMS = 200


@dataclass(slots=True)
class Layout:
    """A plan under construction, and which node answers what; the joiner finds its inputs by the same names."""

    nodes: list[Node] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    values: dict[tuple[int, str], str] = field(default_factory=dict)
    results: dict[tuple[int, str], str] = field(default_factory=dict)
    folders: dict[int, tuple[str, str]] = field(default_factory=dict)
    searches: dict[tuple[str, ...], str] = field(default_factory=dict)
    facts: dict[tuple[str, ...], str] = field(default_factory=dict)
    listings: list[str] = field(default_factory=list)

    def named(self, wish: str) -> str:
        """Return a node id like `wish` that is still free."""
        taken = {node["id"] for node in self.nodes} | {"input", "goal", "item", "doc"}
        name = wish[:34]
        count = 2
        while name in taken:
            name = f"{wish[:34]}_{count}"
            count += 1
        return name

    def add(self, wish: str, **fields: Any) -> str:
        """Append a node and return its id."""
        name = self.named(wish)
        self.nodes.append({"id": name, **fields})
        return name


def layout(questions: Sequence[Question]) -> Layout:
    """Lay out the nodes that find what the questions need; equal questions give equal ids."""
    plan = Layout()
    for index, question in enumerate(questions):
        if question.family:
            _folder(plan, index, question)
        elif question.shape == "passage":
            _passage(plan, index, question)
        else:
            for subject in question.subjects:
                _fact(plan, index, question, subject)
            for name, expression in calculations(question, plan, index):
                _calculation(plan, index, question, name, expression)
    return plan


def plan_of(goal: str, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the plan that answers the questions."""
    plan = layout(questions)
    gathered = plan.named("findings")
    plan.nodes.append({"id": gathered, "kind": "join", "inputs": plan.findings, "policy": "settled"})
    cut = "".join(f" ${{{name}.truncated}}" for name in plan.listings)
    prompt = f"{prompts.give_answer(goal)}\n\n${gathered}{cut}"
    answer = plan.add("answer", kind="llm", role="joiner", prompt=prompt)
    return {"goal": goal, "nodes": plan.nodes, "answer": f"${answer}"}


def _fact(plan: Layout, index: int, question: Question, subject: str) -> None:
    attribute = _attribute(question)
    key = (*core(subject), attribute.name, str(question.year))
    if key not in plan.facts:
        search = plan.searches.get((*core(subject), attribute.name)) or plan.add(
            slug(subject),
            kind="tool",
            tool="search",
            args={"query": query_of(attribute, subject), "k": _LOOKUP_PASSAGES},
        )
        plan.searches[(*core(subject), attribute.name)] = search
        plan.facts[key] = plan.add(
            f"{slug(subject)}_{slug_of(attribute)}",
            kind="llm",
            role="worker",
            prompt=f"{prompts.find_fact(attribute, subject, question.year)}\n\n${search}",
            output_schema=prompts.FACT_SCHEMA,
        )
        plan.findings.append(plan.facts[key])
    plan.values[(index, subject)] = plan.facts[key]


def _attribute(question: Question) -> Attribute:
    if question.attribute is None:
        raise ValueError(f"a {question.shape} question has an attribute")
    return question.attribute


def query_of(attribute: Attribute, subject: str) -> str:
    """Return the search words for a fact; a dollar sign is no reference."""
    words = prompts.event_of(attribute) if attribute.dated else attribute.name
    if attribute.accepts == ("origin",):
        words = "founded completed opened built old"
    return prompts.escaped(f"{words} of {subject}")[:400]


def slug_of(attribute: Attribute) -> str:
    """Return an attribute as part of a node id: `melting_point`."""
    return slug(attribute.name.removeprefix("number of ").removeprefix("year "))[:15].strip("_")


def calculations(question: Question, plan: Layout, index: int) -> Iterator[tuple[str, str]]:
    """Yield (name, expression) of the arithmetic a question needs, each after those it refers to."""
    if question.shape in ("difference", "ratio"):
        for side, term in zip(("left_total", "right_total"), question.terms, strict=True):
            if len(term) > 1:
                yield side, _sum(plan, index, term)
        left, right = (
            f"${{{plan.results[(index, side)]}.value}}" if (index, side) in plan.results else _sum(plan, index, term)
            for side, term in zip(("left_total", "right_total"), question.terms, strict=True)
        )
        yield question.shape, f"{left} {'-' if question.shape == 'difference' else '/'} {right}"
    elif question.shape == "sum":
        yield "total", _sum(plan, index, question.terms[0])
    elif question.shape == "average":
        yield "average", f"({_sum(plan, index, question.terms[0])}) / {len(question.terms[0])}"
    elif question.shape == "compare" and question.by:
        terms = [_sum(plan, index, term) for term in question.terms]
        ends = ", ".join(terms)
        yield "lead", f"max({ends}) - min({ends})" if question.by == "least" else _lead(terms, question)


def _sum(plan: Layout, index: int, term: Term) -> str:
    return " + ".join(f"${{{plan.values[(index, name)]}.value}}" for name in term)


def _lead(terms: Sequence[str], question: Question) -> str:
    """The winner's distance to the next: the second largest is the largest of the smaller of each pair."""
    if len(terms) == 2:
        return f"abs({terms[0]} - {terms[1]})"
    best, other = ("max", "min") if question.sign > 0 else ("min", "max")
    pairs = ", ".join(f"{other}({left}, {right})" for left, right in combinations(terms, 2))
    ends = f"{best}({', '.join(terms)})"
    return f"{ends} - {best}({pairs})" if question.sign > 0 else f"{best}({pairs}) - {ends}"


def _calculation(plan: Layout, index: int, question: Question, name: str, expression: str) -> None:
    """Calculate once every value the expression reads was found; a missing one skips the sum and fails nothing."""
    values = [value for value in plan.facts.values() if f"${{{value}." in expression]
    tests = [{"ref": f"${value}.found", "op": "eq", "value": True} for value in values]
    if name == "ratio" and len(question.terms[1]) == 1:
        tests.append({"ref": f"${values[-1]}.value", "op": "ne", "value": 0})
    when = {"when": {"and": tests}} if tests else {}
    node = plan.add(name, kind="tool", tool="calculate", args={"expression": expression}, **when)
    plan.findings.append(node)
    plan.results[(index, name)] = node


def _passage(plan: Layout, index: int, question: Question) -> None:
    text = prompts.escaped(question.text)
    search = plan.add("passages", kind="tool", tool="search", args={"query": text[:400], "k": 8})
    node = plan.add(
        "sentence",
        kind="llm",
        role="worker",
        prompt=f"{prompts.find_sentence(question.text)}\n\n${search}",
        output_schema=prompts.QUOTE_SCHEMA,
    )
    plan.findings.append(node)
    plan.values[(index, "")] = node


def _folder(plan: Layout, index: int, question: Question) -> None:
    """Read the folder named after the kind; only if there is none, whatever a search for the word finds."""
    kind, name = question.family, slug(question.family)
    files = plan.add(f"{name}_files", kind="tool", tool="list_files", args={"glob": _glob(kind), "max_items": _ITEMS})
    none = {"ref": f"${files}.count", "op": "eq", "value": 0}
    hits = plan.add(
        f"{name}_search", kind="tool", tool="search", args={"query": kind[:400], "k": _WIDE_PASSAGES}, when=none
    )
    what = slug_of(question.attribute) if question.attribute else "name"
    nodes = []
    for source, prefix in ((files, name), (hits, f"found_{name}")):
        read = {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}, "on_error": "skip"}
        texts = plan.add(
            f"{prefix}_texts", kind="map", over=f"${source}.items", **{"as": "item"}, do=read, max_items=_ITEMS
        )
        prompt = f"{prompts.find_of_kind(question.attribute, kind)}\n\n$doc"
        find = {
            "kind": "llm",
            "role": "worker",
            "prompt": prompt,
            "output_schema": prompts.FACT_SCHEMA,
            "on_error": "skip",
        }
        nodes.append(
            plan.add(f"{prefix}_{what}", kind="map", over=f"${texts}", **{"as": "doc"}, do=find, max_items=_ITEMS)
        )
    plan.findings += nodes
    plan.listings.append(files)
    plan.folders[index] = (nodes[0], nodes[1])


def _glob(kind: str) -> str:
    """Return a pattern for folders named after a kind, singular or plural, capital or not."""
    words = [word.removesuffix("y") for word in kind.split()]
    parts = [f"[{word[0].lower()}{word[0].upper()}]{word[1:]}" for word in words if word]
    return f"**/{'?'.join(parts)}*/**"
