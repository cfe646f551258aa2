"""The `offline` model: rules instead of a model, so that everything works without a key.

It plans common question shapes over a folder of documents, extracts figures with their sentences, and answers with
citations. It knows the wording of questions and units of measure, nothing about the world, and says what it cannot do.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from activities.providers.model import ModelReply, ModelRequest, ProviderError
from activities.providers.offline.answer import answer, compare, sums
from activities.providers.offline.citations import Citations
from activities.providers.offline.extract import extract
from activities.providers.offline.material import Material, material_of
from activities.providers.offline.plans import instruction, plan_of, read_goal, read_order
from activities.providers.offline.questions import NotUnderstood, Question, questions
from activities.providers.offline.quoting import cited, nearest, summary, wanted_length
from activities.providers.offline.sentences import Passage
from workflows.messages.usage import Usage
from workflows.plan.language.json_schema import violations

_EXAMPLES = (
    'look-up "How long is A?", compare "Which is longer, A or B, and by how much?", '
    'difference "How much longer is A than B?", sum "How long are A and B together?", '
    'ratio "How many times longer is A than B?", superlative "What is the longest river?", '
    'list "List the lengths of A and B"'
)
_SAID = "Nearest sentences (offline rules, no model)"
_COMPARE = re.compile(r"(?:please\s+)?compare\b", re.IGNORECASE)


class CannotPlan(ProviderError):
    """The goal, or a part of it, asks nothing that rules can look up. Names the part, and what the rules can plan."""


class OfflineCannot(ProviderError):
    """The prompt needs a model: the rules can only quote what the inputs hold."""


class Offline:
    """Serves every role by rules; the same request always gives the same reply, without any I/O."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises CannotPlan or OfflineCannot, neither of them retryable."""
        output = _SERVE.get(request.role, _work)(request)
        for where, sentence in violations(output, request.output_schema) if request.output_schema else ():
            place = ".".join(map(str, where)) or "the output"
            raise OfflineCannot(f"the offline rules cannot fill this output_schema: {place} {sentence}; set a model")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        request.on_text(text)
        return ModelReply(output, Usage(_tokens(request.prompt), _tokens(text)), text=text)

    async def default_model(self) -> str:
        """Return `offline`: there is one set of rules."""
        return "offline"


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // 3)


def _plan(request: ModelRequest) -> dict[str, Any]:
    goal = request.goal.strip()
    try:
        plan = plan_of(goal, questions(goal))
    except NotUnderstood as error:
        raise CannotPlan(_refusal(error)) from None
    used = {work["tool"] for node in plan["nodes"] if "tool" in (work := node.get("do", node))}
    missing = sorted(used - {str(tool.get("name")) for tool in request.tools})
    if request.tools and missing:
        raise CannotPlan(
            f"the offline rules plan with {', '.join(missing)}, which this run may not use; allow it or set a model"
        )
    return plan


def _refusal(error: NotUnderstood) -> str:
    part = error.part.rstrip("?.! ")
    said = part if len(part) <= 70 else f"{part[:67]}..."
    why = f" ({error.why})" if error.why else ""
    return (
        f'The offline rules do not understand "{said}"{why}. They are rules, no model, and can plan: '
        f"{_EXAMPLES}. Anything else needs a language model: set SENNIT_MODEL."
    )


def _work(request: ModelRequest) -> Any:
    """A fact, if the prompt asks for one as the planner does; a summary, if it asks for one; else nearest sentences.

    Raises OfflineCannot without inputs to quote from.
    """
    material, asked = material_of(request.inputs), instruction(request.template)
    if order := read_order(asked):
        return extract(order, material.passages)
    if not material.readable:
        raise OfflineCannot(
            "the offline rules can only quote from a node's inputs, and this prompt refers to no text; set a model and "
            "its key"
        )
    length = wanted_length(asked)
    chosen = summary(material.readable, length) if length else nearest(asked, material.readable)
    quotes = [f"{item.text} [{path}]" if (path := item.passage.path) else item.text for item in chosen]
    text = " ".join(item.text for item in chosen) if length else f"{_SAID}: {' '.join(quotes)}"
    return _filled(request.output_schema, text, chosen[0].passage if chosen else material.readable[0])


def _filled(schema: dict[str, Any] | None, text: str, source: Passage) -> Any:
    """Return text as it is, or in the text field of a schema, with path and title if these are asked."""
    named = (schema or {}).get("properties")
    fields = named if isinstance(named, dict) else {}
    key = next((name for name in ("text", "answer", "summary") if name in fields), None)
    about = {name: value for name, value in (("path", source.path), ("title", source.title)) if name in fields}
    return {**about, key: text} if key else text


def _join(request: ModelRequest) -> dict[str, Any]:
    material, asked = material_of(request.inputs), instruction(request.template)
    if _COMPARE.match(asked) and (compared := compare(material)):
        return compared
    length = wanted_length(asked)
    goal = read_goal(asked)
    for text in (goal or asked, request.goal) if length is None else ():
        read = _questions(text)
        if read and (goal or all(question.attribute for question in read)):
            return answer(text, read, material)
    citations = Citations()
    if length and material.readable:
        said = " ".join(cited(summary(material.readable, length), citations))
        return {"answer": said, "evidence": citations.evidence}
    return _open(asked, material, citations)


def _questions(text: str) -> tuple[Question, ...]:
    try:
        return questions(text)
    except NotUnderstood:
        return ()


def _open(asked: str, material: Material, citations: Citations) -> dict[str, Any]:
    """The facts, nearest sentences, results and losses of any joiner's inputs."""
    lines = [f"{_SAID}:"] if material.readable else []
    for fact in material.facts:
        quote = fact.text("quote") or fact.text("text")
        if fact.found and quote:
            lines.append(f"{quote} {citations.mark(fact.node, quote, fact.text('source'), quote)}")
        elif fact.text("reason"):
            lines.append(f"Not found: {fact.text('reason')}.")
    lines += cited(nearest(asked, material.readable), citations)
    lines += [*sums(material), *(f"{material.why_lost(node)}." for node in material.lost)]
    return {"answer": "\n".join(lines) or "The inputs hold nothing to answer from.", "evidence": citations.evidence}


_SERVE: dict[str, Callable[[ModelRequest], Any]] = {"planner": _plan, "joiner": _join}
