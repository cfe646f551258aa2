"""Turns questions into a plan: look-ups side by side, arithmetic where it is needed, one answer. Reads its prompts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from activities.providers.offline.extract import Wanted
from activities.providers.offline.names import core, slug
from activities.providers.offline.questions import Question
from activities.providers.offline.words import ATTRIBUTES, Attribute, named

Node = dict[str, Any]

_PASSAGES = 5
_ITEMS = 200
_FIRST_REFERENCE = re.compile(r"\$(?:\{[A-Za-z]|[A-Za-z])")
_FIND = re.compile(
    r"Find the (?P<what>.+?) in the (?:passages|document)"
    r"(?:, in (?P<unit>[^\s,.]+))?(?:, for the year (?P<year>\d{4}))?\.(?=\s|$)",
    re.DOTALL,
)
_DATED = re.compile(r"year in which (?P<subject>.+) was (?P<event>[a-z ]+)")
_ANSWER = re.compile(r"(?P<goal>.+?)\n+Answer from these findings alone", re.DOTALL)
_TEXT = {"type": "string"}
_FACT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "found": {"type": "boolean"},
        "value": {"type": "number"},
        "year": {"type": ["integer", "null"]},
        **dict.fromkeys(("subject", "attribute", "unit", "text", "quote", "source", "reason"), _TEXT),
    },
    "required": ["found"],
}


@dataclass(slots=True)
class Layout:
    """A plan under construction, and which node answers what; the joiner finds its inputs by the same names."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    facts: dict[tuple[int, str], str] = field(default_factory=dict)
    results: dict[int, str] = field(default_factory=dict)
    sources: dict[int, str] = field(default_factory=dict)
    known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def add(self, wish: str, **fields: Any) -> str:
        """Append a node and return its id, one like `wish` that is still free."""
        taken = {node["id"] for node in self.nodes} | {"input", "goal", "item", "doc", "answer"}
        name, count = wish[:34], 2
        while name in taken:
            name, count = f"{wish[:34]}_{count}", count + 1
        self.nodes.append({"id": name, **fields})
        return name


def layout(questions: Sequence[Question]) -> Layout:
    """Lay out the nodes that find what the questions need; equal questions give equal ids."""
    plan = Layout()
    for index, question in enumerate(questions):
        attribute = question.attribute
        if attribute is None:
            args = {"query": escaped(question.text)[:400], "k": _PASSAGES}
            plan.sources[index] = plan.add("passages", kind="tool", tool="search", args=args)
            plan.inputs.append(plan.sources[index])
        elif question.family:
            _folder(plan, index, question, attribute)
        else:
            for subject in question.subjects:
                plan.facts[(index, subject)] = _fact(plan, question, attribute, subject)
            _calculation(plan, index, question)
    return plan


def plan_of(goal: str, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the plan that answers the questions."""
    plan = layout(questions)
    prompt = f"{escaped(goal)}\n\nAnswer from these findings alone, with a mark [n] for each source."
    answer = {"id": "answer", "kind": "llm", "role": "joiner", "prompt": prompt, "inputs": plan.inputs}
    return {"goal": goal, "nodes": [*plan.nodes, answer], "answer": "$answer"}


def _fact(plan: Layout, question: Question, attribute: Attribute, subject: str) -> str:
    look = (*core(subject), attribute.name)
    key = (*look, question.unit, question.year)
    if key in plan.known:
        return plan.known[key]
    if look not in plan.known:
        args = {"query": escaped(f"{_query(attribute)} of {subject}")[:400], "k": _PASSAGES}
        plan.known[look] = plan.add(slug(subject), kind="tool", tool="search", args=args)
    what = f"{attribute.name} of {subject}"
    if attribute.dated and attribute.name not in ATTRIBUTES:
        what = f"year in which {subject} was {attribute.event}"
    unit = _in_unit(question, attribute)
    when = f", for the year {question.year}" if question.year is not None else ""
    plan.known[key] = plan.add(
        f"{slug(subject)}_{_slug(attribute)}",
        kind="llm",
        role="worker",
        prompt=f"Find the {escaped(what)} in the passages{unit}{when}.\n\n${plan.known[look]}",
        output_schema=_FACT_SCHEMA,
    )
    plan.inputs.append(plan.known[key])
    return plan.known[key]


def _in_unit(question: Question, attribute: Attribute) -> str:
    return f", in {unit}" if (unit := question.unit or attribute.unit) else ""


def _query(attribute: Attribute) -> str:
    return "founded completed opened built" if attribute.name == "year of origin" else attribute.event


def _slug(attribute: Attribute) -> str:
    return slug(attribute.event.removeprefix("number of "))[:15].strip("_")


def _calculation(plan: Layout, index: int, question: Question) -> None:
    """Calculate once every value was found; a missing one skips the arithmetic and fails nothing."""
    finds = list(dict.fromkeys(plan.facts[(index, subject)] for subject in question.subjects))
    values = [f"${{{node}.value}}" for node in finds]
    tests: list[Node] = [{"ref": f"${node}.found", "op": "eq", "value": True} for node in finds]
    if question.shape == "difference":
        name, expression = "difference", " - ".join(values)
    elif question.shape == "ratio":
        name, expression = "ratio", " / ".join(values)
        tests.append({"ref": f"${finds[-1]}.value", "op": "ne", "value": 0})
    elif question.shape == "sum":
        name, expression = "total", " + ".join(values)
    elif question.by and len(values) > 1:
        name, expression = "lead", _lead(values, question)
    else:
        return
    plan.results[index] = plan.add(
        name, kind="tool", tool="calculate", args={"expression": expression}, when={"and": tests}
    )
    plan.inputs.append(plan.results[index])


def _lead(values: Sequence[str], question: Question) -> str:
    """The winner's distance to the next: the second largest is the largest of the smaller of each pair."""
    ends = ", ".join(values)
    if question.by == "last":
        return f"max({ends}) - min({ends})"
    if len(values) == 2:
        return f"abs({values[0]} - {values[1]})"
    best, other = ("max", "min") if question.sign > 0 else ("min", "max")
    pairs = ", ".join(f"{other}({left}, {right})" for left, right in combinations(values, 2))
    return f"abs({best}({ends}) - {best}({pairs}))"


def _folder(plan: Layout, index: int, question: Question, attribute: Attribute) -> None:
    """Read the folder that is named after the kind, and find the property in each of its documents."""
    name = slug(question.family)
    words = [f"[{word[0].lower()}{word[0].upper()}]{word[1:].removesuffix('y')}" for word in question.family.split()]
    glob = {"glob": f"**/{'?'.join(words)}*/**", "max_items": _ITEMS}
    files = plan.add(f"{name}_files", kind="tool", tool="list_files", args=glob)
    read = {"kind": "tool", "tool": "read", "args": {"path": "$item.path"}, "on_error": "skip"}
    texts = plan.add(f"{name}_texts", kind="map", over=f"${files}.items", **{"as": "item"}, do=read, max_items=_ITEMS)
    unit = _in_unit(question, attribute)
    find = {
        "kind": "llm",
        "role": "worker",
        "prompt": f"Find the {escaped(attribute.name)} of $doc.title in the document{unit}.\n\n$doc",
        "output_schema": _FACT_SCHEMA,
        "on_error": "skip",
    }
    plan.sources[index] = plan.add(
        f"{name}_{_slug(attribute)}", kind="map", over=f"${texts}", **{"as": "doc"}, do=find, max_items=_ITEMS
    )
    plan.inputs += [files, plan.sources[index]]


def escaped(text: str) -> str:
    """Return text as a prompt writes it: a dollar sign is no reference."""
    return text.replace("$", "$$")


def instruction(template: str) -> str:
    """Return what a prompt says before its first reference, dollar signs as they were meant."""
    text = ""
    for part in re.split(r"(\$\$)", template):
        found = _FIRST_REFERENCE.search(part) if part != "$$" else None
        if found:
            return f"{text}{part[: found.start()]}".strip()
        text += "$" if part == "$$" else part
    return text.strip()


def read_order(instruction: str) -> Wanted | None:
    """Return the fact that a worker's prompt asks for, if it is worded as the planner words it."""
    found = _FIND.match(instruction)
    if not found:
        return None
    year = int(found["year"]) if found["year"] else None
    if (event := _DATED.fullmatch(found["what"])) and (attribute := named(f"year {event['event']}")):
        return Wanted(attribute, event["subject"], "", year)
    cuts = [(found["what"][: cut.start()], found["what"][cut.end() :]) for cut in re.finditer(" of ", found["what"])]
    pairs = [(attribute, subject) for name, subject in cuts if (attribute := named(name))]
    # `length of a day of Mars`: the longest property that is known, else the first that may be one.
    known = [pair for pair in pairs if pair[0].name in ATTRIBUTES and found["what"].startswith(f"{pair[0].name} of ")]
    return Wanted(*(known[-1:] or pairs[:1])[0], found["unit"] or "", year) if pairs else None


def read_goal(instruction: str) -> str:
    """Return the goal inside a joiner's prompt, if it is worded as the planner words it, else nothing."""
    found = _ANSWER.match(instruction)
    return found["goal"].strip() if found else ""
