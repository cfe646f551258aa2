"""Prompts that no rule knows, from plans that people or other models write: quotation instead of invention."""

from typing import Any

from activities.providers.model import ModelRequest, ProviderError
from activities.providers.offline import prompts
from activities.providers.offline.material import Material
from activities.providers.offline.passages import nearest
from activities.providers.offline.sentences import Passage, Sentence
from activities.providers.offline.summaries import summary, wanted_length
from activities.providers.offline.wording import Citations, capital


class OfflineCannot(ProviderError):
    """The prompt needs a model: the rules can only quote what the inputs hold."""


_SAID = "Nearest sentences (offline rules, no model)"


def open_text(request: ModelRequest, material: Material) -> Any:
    """Return sentences of the inputs, as text or in the one text field of a schema.

    Asked for a summary, it gives those that say most; asked anything else, those nearest to the prompt, and says so.
    Raises OfflineCannot without inputs.
    """
    passages = _passages(material)
    if not passages:
        raise OfflineCannot(
            "the offline rules can only quote from a node's inputs, and this prompt refers to no text; set a model and "
            "its key"
        )
    length = wanted_length(prompts.instruction(request.template))
    if length is not None:
        chosen = summary(passages, length)
        text = " ".join(item.line for item in chosen)
    else:
        chosen = nearest(prompts.instruction(request.template), passages)
        quotes = [f"{item.line}{f' [{item.passage.path}]' if item.passage.path else ''}" for item in chosen]
        text = f"{_SAID}: {' '.join(quotes)}"
    return _filled(request.output_schema, text, chosen[0].passage if chosen else passages[0])


def _filled(schema: dict[str, Any] | None, text: str, source: Passage) -> Any:
    """Return text as it is, or in the text field of a schema, with path and title if these are asked."""
    named = (schema or {}).get("properties")
    if not isinstance(named, dict):
        return text
    key = next((name for name in ("text", "answer", "summary") if name in named), None)
    about = {name: value for name, value in (("path", source.path), ("title", source.title)) if name in named}
    return {**about, key: text} if key else text


def open_answer(request: ModelRequest, material: Material) -> dict[str, Any]:
    """Return `{answer, evidence}` for any joiner prompt: the facts, results and nearest sentences of its inputs."""
    citations = Citations()
    passages = _passages(material)
    length = wanted_length(prompts.instruction(request.template))
    if length is not None and passages:
        return _cited(summary(passages, length), citations)
    lines = [f"{_SAID}:"] if passages else []
    for fact in material.facts:
        quote = fact.text("quote") or fact.text("text")
        if fact.found and quote:
            lines.append(f"{quote} {citations.mark(fact.node, quote, fact.text('source'), quote)}")
        elif fact.text("reason"):
            lines.append(f"Not found: {fact.text('reason')}.")
    for item in nearest(prompts.instruction(request.template), passages) if passages else ():
        mark = citations.mark(item.passage.node, item.line, item.passage.path or item.passage.node, item.line)
        lines.append(f"{item.line} {mark}")
    lines += [f"{capital(node)}: {expression} = {value:,}." for node, (expression, value) in material.results.items()]
    lines += [
        f"{node} was {status}{f' ({error})' if error else ''}." for node, (status, error) in material.lost.items()
    ]
    text = "\n".join(lines) if lines else "The inputs hold nothing to answer from."
    return {"answer": text, "evidence": citations.evidence}


def _cited(chosen: list[Sentence], citations: Citations) -> dict[str, Any]:
    marks = [citations.mark(item.passage.node, item.line, item.passage.path, item.line) for item in chosen]
    text = " ".join(f"{item.line} {mark}" for item, mark in zip(chosen, marks, strict=True))
    return {"answer": text, "evidence": citations.evidence}


def _passages(material: Material) -> list[Passage]:
    return [*material.passages, *(Passage("", node, text, node) for node, text in material.texts)]
