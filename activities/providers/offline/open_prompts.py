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
    """Return the sentences of the inputs nearest to the prompt, as plain text or where a schema asks for text alone.

    Raises OfflineCannot without inputs, or with a schema that needs more than text.
    """
    passages = _passages(material)
    if not passages:
        raise OfflineCannot(
            "the offline rules can only quote from a node's inputs, and this prompt refers to no text; set a model and "
            "its key"
        )
    chosen = nearest(prompts.instruction(request.template), passages)
    quotes = [f"{item.line}{f' [{item.passage.path}]' if item.passage.path else ''}" for item in chosen]
    return _fitted(f"{_SAID}: {' '.join(quotes)}", request.output_schema)


def _fitted(text: str, schema: dict[str, Any] | None) -> Any:
    if schema is None or (schema.get("type") == "string" and set(schema) <= {"type", "title", "description"}):
        return text
    properties = schema.get("properties")
    required = schema.get("required", [])
    named = properties if isinstance(properties, dict) else {}
    texts = [name for name in ("text", "answer", "summary") if named.get(name, {}).get("type") == "string"]
    if texts and isinstance(required, list) and set(required) <= {texts[0]}:
        return {texts[0]: text}
    raise OfflineCannot(
        "the offline rules cannot fill the output_schema of this prompt "
        f"(it needs {', '.join(map(str, required)) or 'an object'}); set a model and its key"
    )


def open_answer(request: ModelRequest, material: Material) -> dict[str, Any]:
    """Return `{answer, evidence}` for any joiner prompt: the facts, results and nearest sentences of its inputs."""
    citations = Citations()
    lines = []
    for fact in material.facts:
        quote = fact.text("quote") or fact.text("text")
        if fact.found and quote:
            claim = (
                f"{capital(fact.text('attribute'))} of {fact.text('subject')}: {fact.text('text')}"
                if fact.text("attribute")
                else quote
            )
            lines.append(f"{claim.rstrip('.')} {citations.mark(fact.node, claim, fact.text('source'), quote)}.")
        elif fact.text("reason"):
            lines.append(f"{capital(fact.text('reason'))}.")
    for item in nearest(prompts.instruction(request.template), _passages(material)) if _passages(material) else ():
        mark = citations.mark(item.passage.node, item.line, item.passage.path or item.passage.node, item.line)
        lines.append(f"{item.line} {mark}")
    lines += [f"{capital(node)}: {expression} = {value:,}." for node, (expression, value) in material.results.items()]
    lines += [
        f"{node} was {status}{f' ({error})' if error else ''}." for node, (status, error) in material.lost.items()
    ]
    text = "\n".join(lines) or "The inputs hold nothing to answer from."
    schema = request.output_schema
    if schema is not None and not {"answer", "evidence"} >= set(schema.get("required", [])):
        raise OfflineCannot(
            "the offline rules give an answer with evidence and cannot fill this output_schema; set a model and its key"
        )
    return {"answer": text, "evidence": citations.evidence}


def _passages(material: Material) -> list[Passage]:
    return [*material.passages, *(Passage("", node, text, node) for node, text in material.texts)]
