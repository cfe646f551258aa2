"""The `offline` model: rules instead of a model, so that everything works without a key.

It plans common question shapes over a folder of documents, extracts figures with their sentences, and answers with
citations. It knows the wording of questions and units of measure, nothing about the world, and says what it cannot do.
"""

import json
from typing import Any

from activities.providers.model import ModelReply, ModelRequest, ProviderError
from activities.providers.offline import prompts
from activities.providers.offline.answer import answer, compare, describe
from activities.providers.offline.extract import Wanted, extract
from activities.providers.offline.material import Material, material_of
from activities.providers.offline.open_prompts import OfflineCannot, open_answer, open_text
from activities.providers.offline.passages import find_quote
from activities.providers.offline.plans import plan_of
from activities.providers.offline.questions import Question
from activities.providers.offline.shapes import NotUnderstood, questions
from activities.providers.offline.summaries import wanted_length
from workflows.plan.schema import faults
from workflows.usage import Usage

__all__ = ["CannotPlan", "Offline", "OfflineCannot"]

_EXAMPLES = (
    'look-up "How long is A?", compare "Which is longer, A or B, and by how much?", '
    'difference "How much longer is A than B?", sum "How long are A and B together?", '
    'ratio "How many times longer is A than B?", superlative "What is the longest river?", '
    'list "List the lengths of A and B"'
)


class CannotPlan(ProviderError):
    """No rule reads the goal, or a part of it. Names the part, and what the rules can plan."""


class Offline:
    """Serves every role by rules; the same request always gives the same reply, without any I/O."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises CannotPlan or OfflineCannot, neither of them retryable."""
        if request.role == "planner":
            output: Any = _plan(request)
        elif request.role == "joiner":
            output = _join(request)
        else:
            output = _work(request)
        for where, sentence in faults(output, request.output_schema) if request.output_schema else ():
            place = ".".join(map(str, where)) or "the output"
            raise OfflineCannot(f"the offline rules cannot fill this output_schema: {place} {sentence}; set a model")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        request.on_text(text)
        return ModelReply(output, Usage(_tokens(request.prompt), _tokens(output)), text=text)

    async def default_model(self) -> str:
        """Return `offline`: there is one set of rules."""
        return "offline"


def _tokens(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return -(-len(text.encode("utf-8", "replace")) // 3)


def _plan(request: ModelRequest) -> dict[str, Any]:
    goal = request.goal.strip()
    try:
        asked = questions(goal)
    except NotUnderstood as error:
        raise CannotPlan(_refusal(error)) from None
    plan = plan_of(goal, asked)
    used = {work["tool"] for node in plan["nodes"] if "tool" in (work := node.get("do", node))}
    allowed = {str(tool.get("name")) for tool in request.tools}
    if request.tools and (missing := sorted(used - allowed)):
        raise CannotPlan(
            f"the offline rules plan with {', '.join(missing)}, which this run may not use; allow it or set a model"
        )
    return plan


def _refusal(error: NotUnderstood) -> str:
    part = error.part.rstrip("?.! ")
    said = part if len(part) <= 70 else f"{part[:67]}..."
    which = "the goal" if error.whole else "this part of the goal"
    why = f" ({error.why})" if error.why else ""
    return (
        f'The offline rules do not understand {which}: "{said}"{why}. They are rules, no model, and can plan: '
        f"{_EXAMPLES}. Anything else needs a language model: set WEFT_MODEL."
    )


def _work(request: ModelRequest) -> Any:
    material = material_of(request.inputs)
    order = prompts.read_order(request.template)
    if isinstance(order, Wanted):
        return extract(order, material.passages)
    if isinstance(order, prompts.OfKind):
        return describe(order.kind, order.attribute, material.passages, order.unit)
    if isinstance(order, prompts.Sentence):
        return find_quote(order.question, material.passages)
    return _asked_plainly(request, material) or open_text(request, material)


def _asked_plainly(request: ModelRequest, material: Material) -> Any:
    """The answer to a person's own `How long is the Nile? $passages`; None for any other prompt."""
    try:
        asked = questions(prompts.instruction(request.template))
    except NotUnderstood:
        return None
    question = asked[0]
    if len(asked) > 1 or question.shape not in ("lookup", "passage") or not material.passages:
        return None
    if question.attribute is None:
        fact = find_quote(question.text, material.passages)
    else:
        wanted = Wanted(question.attribute, question.subjects[0], question.attribute.unit, question.year)
        fact = extract(wanted, material.passages)
    if request.output_schema is not None:
        return fact
    return f"{fact['quote']} [{fact['source']}]" if fact["found"] else f"Not found: {fact['reason']}."


def _join(request: ModelRequest) -> Any:
    material = material_of(request.inputs)
    instruction = prompts.instruction(request.template)
    if prompts.is_comparison(instruction) and (compared := compare(material)):
        return compared
    goal, asked = _asked(request)
    if not asked or wanted_length(instruction) is not None:
        return open_answer(request, material)
    return answer(goal, asked, material)


def _asked(request: ModelRequest) -> tuple[str, tuple[Question, ...]]:
    """The questions of a joiner's prompt, else of the goal; none when neither is understood."""
    for text in (prompts.read_goal(request.template), request.goal):
        try:
            return text, questions(text)
        except NotUnderstood:
            continue
    return "", ()
