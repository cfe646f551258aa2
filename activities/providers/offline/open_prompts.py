"""Prompts that no rule knows, from plans that people or other models write: quotation instead of invention."""

from typing import Any

from activities.providers.model import ModelRequest, ProviderError
from activities.providers.offline import prompts
from activities.providers.offline.material import Material
from activities.providers.offline.passages import nearest
from activities.providers.offline.sentences import Passage
from activities.providers.offline.wording import Citations, capital


class OfflineCannot(ProviderError):
    """The prompt needs a model: the rules can only quote what the inputs hold."""


_SAID = "Nearest sentences (offline rules, no model)"


def open_text(request: ModelRequest, material: Material) -> Any:
    """Return the sentences of the inputs nearest to the prompt, as text or in the one text field of a schema.

    Raises OfflineCannot without inputs.
    """
    passages = _passages(material)
    if not passages:
        raise OfflineCannot(
            "the offline rules can only quote from a node's inputs, and this prompt refers to no text; set a model and "
            "its key"
        )
    chosen = nearest(prompts.instruction(request.template), passages)
    quotes = [f"{item.line}{f' [{item.passage.path}]' if item.passage.path else ''}" for item in chosen]
    text = f"{_SAID}: {' '.join(quotes)}"
    named = (request.output_schema or {}).get("properties")
    key = next((name for name in ("text", "answer", "summary") if isinstance(named, dict) and name in named), None)
    return {key: text} if key else text


def open_answer(request: ModelRequest, material: Material) -> dict[str, Any]:
    """Return `{answer, evidence}` for any joiner prompt: the facts, results and nearest sentences of its inputs."""
    citations = Citations()
    lines = []
    for fact in material.facts:
        quote = fact.text("quote") or fact.text("text")
        if fact.found and quote:
            lines.append(f"{quote} {citations.mark(fact.node, quote, fact.text('source'), quote)}")
        elif fact.text("reason"):
            lines.append(f"Not found: {fact.text('reason')}.")
    passages = _passages(material)
    for item in nearest(prompts.instruction(request.template), passages) if passages else ():
        mark = citations.mark(item.passage.node, item.line, item.passage.path or item.passage.node, item.line)
        lines.append(f"{item.line} {mark}")
    lines += [f"{capital(node)}: {expression} = {value:,}." for node, (expression, value) in material.results.items()]
    lines += [
        f"{node} was {status}{f' ({error})' if error else ''}." for node, (status, error) in material.lost.items()
    ]
    text = "\n".join([f"{_SAID}:", *lines]) if lines else "The inputs hold nothing to answer from."
    return {"answer": text, "evidence": citations.evidence}


def _passages(material: Material) -> list[Passage]:
    return [*material.passages, *(Passage("", node, text, node) for node, text in material.texts)]
