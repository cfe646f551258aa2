"""The `offline` model: rules instead of a model, so that everything works without a key.

A look-up is answered by quoting the one sentence that plainly says it. Figures in such sentences
are compared, subtracted and added. The rules guess nothing: of anything else they quote the nearest
sentences, as a partial answer.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sennit.activities.providers.model import ModelReply, ModelRequest, ProviderError, tokens_of
from sennit.activities.providers.offline.answers import (
    Line,
    Material,
    cannot_tell,
    compared,
    looked_up,
    output_of,
    summary,
)
from sennit.activities.providers.offline.figures import find, symbol_of
from sennit.activities.providers.offline.questions import Comparison, LookUp, question
from sennit.activities.providers.offline.sentences import nearest, stems
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import Usage

Node = dict[str, Any]

_FINDINGS = "Answer from these findings alone"
_FIND = re.compile(
    r"(?s)Find the (?P<property>[^.]{1,100}?) of (?P<subject>.{1,300}?) in the (?:passages"
    r"|document)"
    r"(?:, in (?P<unit>[^\s,.]+))?\.(?=\s|$)"
)
_FACT: Node = {
    "properties": {
        "found": {},
        "subject": {},
        "value": {},
        "unit": {},
        "quote": {},
        "source": {},
        "near": {},
    }
}
_SUMMARISE = re.compile(
    r"(?is)summari[sz]e\b(?:.*?\b(?P<count>\d{1,2}|one|two|three) sentences?\b)?"
)
_COUNTS = {"one": 1, "two": 2, "three": 3}


class OfflineCannot(ProviderError):
    """The prompt needs a model. Not retryable."""


class Offline:
    """Serves every role by rules; the same request always gives the same reply, without any I/O."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises OfflineCannot."""
        output: Any
        if request.role == "planner":
            output = _plan(request.goal.strip())
        else:
            output = _work(request)
        for where, problem in (
            violations(output, request.output_schema) if request.output_schema else ()
        ):
            place = ".".join(map(str, where)) or "the output"
            raise OfflineCannot(
                f"the offline rules cannot fill this output_schema: {place} {problem}; set a model"
            )

        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        request.on_text(text)
        usage = Usage(tokens_of(request.prompt), tokens_of(text), calls=1)
        return ModelReply(output, usage, text=text)

    async def default_model(self) -> str:
        return "offline"


def _plan(goal: str) -> dict[str, Any]:
    """Return a plan of one search and an answer; a comparison searches each thing by
    itself, and calculates.
    """
    if not re.search(r"[^\W_]", goal[:200]):
        raise OfflineCannot("the goal has no word to search for")
    asked = question(goal)
    nodes = [_search("passages", goal, 8)]
    inputs = ["passages"]
    if isinstance(asked, Comparison):
        nodes, inputs = _comparison(asked)
    prompt = f"{_escaped(goal)}\n\n{_FINDINGS}, with a mark [n] for each source."
    nodes.append(
        {"id": "answer", "kind": "llm", "role": "joiner", "prompt": prompt, "inputs": inputs}
    )
    return {"goal": goal, "nodes": nodes, "answer": "$answer"}


def _comparison(asked: Comparison) -> tuple[list[Node], list[str]]:
    """Return the nodes of a comparison, and the names of those that its answer reads."""
    nodes: list[Node] = []
    facts: list[str] = []
    taken = {"input", "goal", "answer", "result"}
    for number, subject in enumerate(asked.subjects.values(), 1):
        name = _slug(subject)
        fact = f"{name}_{_slug(asked.property)}"
        if {name, fact} & taken:
            name, fact = f"thing_{number}", f"figure_{number}"
        taken |= {name, fact}
        what = f"{asked.property} of {subject}"
        prompt = f"Find the {_escaped(what)} in the passages.\n\n${name}"
        nodes.append(_search(name, what, 5))
        nodes.append(
            {"id": fact, "kind": "llm", "role": "worker", "prompt": prompt, "output_schema": _FACT}
        )
        facts.append(fact)
    # The calculation is skipped where a figure is missing.
    tests: list[dict[str, Any]] = []
    references: list[str] = []
    for fact in facts:
        tests.append({"ref": f"${fact}.found", "op": "eq", "value": True})
        references.append(f"${{{fact}.value}}")
    values = ", ".join(references)
    expression = f"max({values}) - min({values})"
    if asked.adds:
        expression = f"sum({values})"
    work = {"id": "result", "kind": "tool", "tool": "calculate", "args": {"expression": expression}}
    nodes.append({**work, "when": {"and": tests}})
    return nodes, [*facts, "result"]


def _slug(text: str) -> str:
    words = re.findall("[a-z0-9]+", text.lower().removeprefix("the "))
    slug = "_".join(words)[:16].strip("_")
    return slug if slug[:1].isalpha() else f"n{slug}"


def _search(name: str, query: str, k: int) -> Node:
    return {
        "id": name,
        "kind": "tool",
        "tool": "search",
        "args": {"query": _escaped(query[:200]), "k": k},
    }


def _escaped(text: str) -> str:
    return text.replace("$", "$$")  # a dollar sign is no reference


def _work(request: ModelRequest) -> Any:
    """Return what a prompt asks for: a fact in the planner's words, else an answer."""
    material = Material(request.inputs)
    fields = (request.output_schema or {}).get("properties", {})
    # The instruction stands before the first reference; `$$` is a dollar sign.
    opening = re.findall(r"\A(?:[^$]|\$\$)*", request.template)
    instruction = "".join(opening).replace("$$", "$").strip()
    wanted = _FIND.match(instruction)
    if wanted and request.role != "joiner":
        fact = _fact(wanted, material)
        return _values_of(fields or fact, fact)
    asked = instruction.partition(_FINDINGS)[0].strip()
    lines = _answer(asked or request.goal, material)
    if request.role == "joiner":
        return output_of(lines)
    if not material.passages:
        raise OfflineCannot(
            "the offline rules can only quote, and this prompt refers to no text; set a model"
        )
    text = " ".join([line.text for line in lines])
    known = {**material.passages[0]._asdict(), "text": text}
    return _values_of(fields, known) or text


def _values_of(names: Iterable[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those names that have one."""
    return {name: values[name] for name in names if name in values}


def _fact(wanted: re.Match[str], material: Material) -> dict[str, Any]:
    """Return the one figure that the passages give of a thing, else `found: false` and
    the nearest sentences.
    """
    subject, unit = wanted["subject"], symbol_of(wanted["unit"] or "")
    words = stems(subject) and stems(f"{wanted['property']} {subject}")
    fact = {"found": False, "subject": subject, "name": subject}
    figures = find(words, material.passages)
    if len(figures) == 1 and unit in ("", figures[0].unit):
        quote = figures[0].sentence
        fact |= {"found": True, "value": figures[0].value, "unit": figures[0].unit}
        return {**fact, "quote": quote.text, "source": quote.path}
    near = [figure.sentence for figure in figures]
    if not near:
        near = nearest(words, material.passages)
    return {**fact, "near": [sentence._asdict() for sentence in near]}


def _answer(asked: str, material: Material) -> list[Line]:
    """Return what the material says to an instruction or a question: a summary, quotations,
    figures or one sentence.
    """
    length = _SUMMARISE.match(asked)
    if length:
        count = (length["count"] or "three").lower()
        return summary(material.passages, _COUNTS.get(count) or int(count))
    read = question(asked)
    if isinstance(read, Comparison) and material.figures:
        return compared(read, material)
    if isinstance(read, LookUp):
        return looked_up(read, material.passages)
    if material.figures and "quote" in asked.lower():
        return [Line(figure.sentence.text, figure.sentence) for figure in material.figures]
    return cannot_tell("that from the sentences found", stems(asked), material.passages)
