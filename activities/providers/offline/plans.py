"""Turns a question into a plan: look-ups side by side, arithmetic where it is needed, one answer. Reads its prompts."""

import re
from typing import Any

from activities.providers.offline.questions import Question, core
from activities.providers.offline.words import Attribute, read_phrase

_PASSAGES = 5
_TAKEN = ("input", "goal", "answer", "lead", "difference", "sum")
_FIND = re.compile(
    r"Find the (?P<what>.+?) in the (?:passages|document)(?:, in (?P<unit>[^\s,.]+))?\.(?=\s|$)", re.DOTALL
)
_TEXT = {"type": "string"}
_FIELDS = {"found": {"type": "boolean"}, "value": {"type": ["number", "null"]}, "subject": _TEXT, "unit": _TEXT}
_FACT = {"type": "object", "properties": {**_FIELDS, "quote": _TEXT, "source": _TEXT}, "required": ["found"]}


def plan_of(goal: str, question: Question | None) -> dict[str, Any]:
    """Return the plan that answers the question, or only finds passages where the rules read none."""
    nodes, inputs = ([_search("passages", goal)], ["passages"]) if question is None else _look_ups(question)
    prompt = f"{_escaped(goal)}\n\nAnswer from these findings alone, with a mark [n] for each source."
    answer = {"id": "answer", "kind": "llm", "role": "joiner", "prompt": prompt, "inputs": inputs}
    return {"goal": goal, "nodes": [*nodes, answer], "answer": "$answer"}


def _look_ups(question: Question) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the nodes that find what the question needs, and which of them the answer is made from."""
    nodes: list[dict[str, Any]] = []
    attribute = question.attribute
    word = (*attribute.nouns, *attribute.happened, attribute.did)[0]
    unit = f", in {unit}" if (unit := question.unit or attribute.unit) else ""
    for subject in question.subjects:
        name = _free(_slug(subject), [*_TAKEN, *(node["id"] for node in nodes)])
        what = attribute.phrase.format(subject)
        prompt = f"Find the {_escaped(what)} in the passages{unit}.\n\n${name}"
        find = {"id": f"{name}_{_slug(word)}", "kind": "llm", "role": "worker", "prompt": prompt}
        nodes += [_search(name, what), {**find, "output_schema": _FACT}]
    inputs = [node["id"] for node in nodes[1::2]]
    if expression := _expression(question, [f"${{{node}.value}}" for node in inputs]):
        tests = [{"ref": f"${node}.found", "op": "eq", "value": True} for node in inputs]
        inputs.append("lead" if question.shape == "compare" else question.shape)
        work = {"kind": "tool", "tool": "calculate", "args": {"expression": expression}, "when": {"and": tests}}
        nodes.append({"id": inputs[-1], **work})
    return nodes, inputs


def _search(name: str, query: str) -> dict[str, Any]:
    return {"id": name, "kind": "tool", "tool": "search", "args": {"query": _escaped(query[:200]), "k": _PASSAGES}}


def _expression(question: Question, values: list[str]) -> str:
    if question.shape in ("difference", "sum"):
        return {"difference": " - ", "sum": " + "}[question.shape].join(values)
    return f"max({', '.join(values)}) - min({', '.join(values)})" if question.leads else ""


def _slug(text: str) -> str:
    """Return a text as the start of a node id: letters, digits and underscores, a letter first."""
    name = "_".join(re.findall("[a-z0-9]+", core(text)))[:16].strip("_")
    return name if name[:1].isalpha() else f"n{name}"


def _free(name: str, taken: list[str]) -> str:
    while any(other == name or other.startswith(f"{name}_") for other in taken):
        name += "x"
    return name


def _escaped(text: str) -> str:
    """Return text as a prompt writes it: a dollar sign is no reference."""
    return text.replace("$", "$$")


def instruction(template: str) -> str:
    """Return what a prompt says before its first reference, dollar signs as they were meant."""
    return "".join(re.findall(r"\A(?:[^$]|\$\$)*", template)).replace("$$", "$").strip()


def read_order(text: str) -> tuple[Attribute, str, str] | None:
    """Return attribute, thing and unit that a worker's prompt asks for, if it is worded as the planner words it."""
    found = _FIND.match(text)
    read = read_phrase(found["what"]) if found else None
    return (*read, found["unit"] or "") if found and read else None
