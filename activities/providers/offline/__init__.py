"""The `offline` model: rules instead of a model, so that everything works without a key.

It looks up, compares, subtracts and adds over any folder of documents. A look-up is answered by the one sentence that
carries the words of the question, arithmetic by figures and their units in such sentences. What no sentence plainly
says it does not guess: it says so, quotes the nearest sentences, and its answer is `partial`.
"""

import json
import re
from typing import Any

from sennit.activities.providers.model import ModelReply, ModelRequest, ProviderError
from sennit.activities.providers.offline.answers import Answer, Material, concluded, looked_up, quoted, summary
from sennit.activities.providers.offline.figures import core, find, measure, quotation
from sennit.activities.providers.offline.questions import Question, question
from sennit.activities.providers.offline.statements import nearest, stems
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.language.text import text_bytes

_SUMMARISE = re.compile(r"(?is)summari[sz]e\b.*?(?:(?P<count>\d{1,2}|one|two|three) sentences?\b|$)")
_TAKEN = ("input", "goal", "answer", "lead", "difference", "sum")
_FIND = re.compile(
    r"(?s)Find the (?P<property>(?:number of )?[^.]{1,100}?) of (?P<subject>.{1,300}?) in the (?:passages|document)"
    r"(?:, in (?P<unit>[^\s,.]+))?\.(?=\s|$)"
)
_TEXT = {"type": "string"}
_FIELDS = {"found": {"type": "boolean"}, "value": {"type": ["number", "null"]}, "subject": _TEXT, "unit": _TEXT}
_FACT = {"type": "object", "properties": {**_FIELDS, "quote": _TEXT, "source": _TEXT}, "required": ["found"]}


class OfflineCannot(ProviderError):
    """The prompt needs a model. Not retryable."""


class Offline:
    """Serves every role by rules; the same request always gives the same reply, without any I/O."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises OfflineCannot."""
        output = {"planner": _plan, "joiner": _join}.get(request.role, _work)(request)
        for where, sentence in violations(output, request.output_schema) if request.output_schema else ():
            place = ".".join(map(str, where)) or "the output"
            raise OfflineCannot(f"the offline rules cannot fill this output_schema: {place} {sentence}; set a model")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        request.on_text(text)
        sent, received = (-(-text_bytes(each) // 3) for each in (request.prompt, text))
        return ModelReply(output, Usage(sent, received, calls=1), text=text)

    async def default_model(self) -> str:
        return "offline"


def _plan(request: ModelRequest) -> Any:
    goal = request.goal.strip()
    if not re.search(r"[^\W_]", goal[:200]):
        raise OfflineCannot("the goal has no word to search for")
    # One sentence answers a look-up. Where the rules read no question, passages are all they find.
    asked = question(goal)
    nodes, inputs = _figures(asked) if asked and asked.subjects else ([_search("passages", goal, 8)], ["passages"])
    allowed = [tool.get("name") for tool in request.tools]
    missing = {node["tool"] for node in nodes if "tool" in node and node["tool"] not in allowed}
    if allowed and missing:
        names = ", ".join(sorted(missing))
        raise OfflineCannot(f"the offline rules plan with {names}, which this run may not use; allow it or set a model")
    prompt = f"{_escaped(goal)}\n\nAnswer from these findings alone, with a mark [n] for each source."
    joiner = {"id": "answer", "kind": "llm", "role": "joiner", "prompt": prompt, "inputs": inputs}
    return {"goal": goal, "nodes": [*nodes, joiner], "answer": "$answer"}


def _figures(question: Question) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the nodes that find what the question needs, and which of them the answer is made from."""
    nodes: list[dict[str, Any]] = []
    unit = question.unit or measure(stems(question.property))
    in_unit = f", in {unit}" if unit else ""
    for subject in question.subjects:
        name, taken = _slug(subject), [*_TAKEN, *(node["id"] for node in nodes)]
        while any(f"{other}_".startswith(f"{name}_") for other in taken):
            name += "x"
        what = f"{question.property} of {subject}"
        prompt = f"Find the {_escaped(what)} in the passages{in_unit}.\n\n${name}"
        find = {"id": f"{name}_{_slug(question.property)}", "kind": "llm", "role": "worker", "prompt": prompt}
        nodes += [_search(name, what), {**find, "output_schema": _FACT}]
    inputs = [node["id"] for node in nodes[1::2]]
    values = ", ".join(f"${{{node}.value}}" for node in inputs)
    lead = f"max({values}) - min({values})" if question.leads else ""
    by_shape = {"difference": values.replace(", ", " - "), "sum": values.replace(", ", " + ")}
    if expression := by_shape.get(question.shape, lead):
        tests = [{"ref": f"${node}.found", "op": "eq", "value": True} for node in inputs]
        inputs.append("lead" if question.shape == "compare" else question.shape)
        work = {"kind": "tool", "tool": "calculate", "args": {"expression": expression}, "when": {"and": tests}}
        nodes.append({"id": inputs[-1], **work})
    return nodes, inputs


def _search(name: str, query: str, k: int = 5) -> dict[str, Any]:
    return {"id": name, "kind": "tool", "tool": "search", "args": {"query": _escaped(query[:200]), "k": k}}


def _slug(text: str) -> str:
    name = "_".join(re.findall("[a-z0-9]+", core(text)))[:16].strip("_")
    return name if name[:1].isalpha() else f"n{name}"


def _escaped(text: str) -> str:
    return text.replace("$", "$$")  # a dollar sign is no reference


def _instruction(template: str) -> str:
    """Return what a prompt says before its first reference, dollar signs as they were meant."""
    return "".join(re.findall(r"\A(?:[^$]|\$\$)*", template)).replace("$$", "$").strip()


def _work(request: ModelRequest) -> Any:
    """Return a fact, if the prompt asks for one as the planner does; a summary, if it asks for one; else quotations."""
    material, asked = Material(request.inputs), _instruction(request.template)
    found = _FIND.match(asked)
    if found:
        words = stems(f"{found['property']} {core(found['subject'])}")
        about = {"subject": found["subject"], "name": found["subject"]}
        fact = {**about, **find(words, found["unit"] or "", material.passages)}
        schema = request.output_schema or {}
        allowed = schema.get("properties", ()) if schema.get("additionalProperties") is False else fact
        return {name: value for name, value in fact.items() if name in allowed}
    if not material.passages:
        raise OfflineCannot("the offline rules can only quote, and this prompt refers to no text; set a model")
    if count := _length(asked):
        chosen = summary(material.passages, count)
        text = " ".join(each.text for each in chosen)
    else:
        chosen = nearest(asked, material.passages)
        quotes = (f"{each.text} [{each.passage.path}]" if each.passage.path else each.text for each in chosen)
        text = f"Nearest sentences (offline rules, no model): {' '.join(quotes)}"
    source = chosen[0].passage if chosen else material.passages[0]
    fields = {"path": source.path, "title": source.title, "text": text}
    wanted = (request.output_schema or {}).get("properties", ())
    return {name: fields[name] for name in wanted if name in fields} or text


def _join(request: ModelRequest) -> Any:
    material, asked = Material(request.inputs), _instruction(request.template)
    if count := _length(asked):
        said = Answer()
        said.lines = [" ".join(said.quote(quotation(each)) for each in summary(material.passages, count))]
        return said.output()
    goal = asked.partition("Answer from these findings alone")[0].strip() or request.goal
    read = question(goal) or question(request.goal)
    if read and read.subjects and material.facts:
        return concluded(read, material)
    return looked_up(read, material.passages) if read and not read.subjects else quoted(goal, material)


def _length(asked: str) -> int:
    """Return how many sentences a summary is wanted in; 0 for any other instruction."""
    found = _SUMMARISE.match(asked)
    count = (found["count"] or "three").lower() if found else "0"
    return {"one": 1, "two": 2, "three": 3}.get(count) or int(count)
