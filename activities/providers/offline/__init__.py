"""The `offline` model: rules instead of a model, so that everything works without a key.

It plans look-ups, comparisons, differences and sums over a folder of documents, finds figures with their sentences, and
answers with citations. It knows the wording of questions and units of measure, nothing about the world. What it cannot
tell it does not guess: it says so, quotes the nearest sentences, and its answer is `partial`.
"""

import json
import re
from typing import Any

from activities.providers.model import ModelReply, ModelRequest, ProviderError
from activities.providers.offline.answers import answer, material_of, quoted, summarised, summary
from activities.providers.offline.facts import find, nearest
from activities.providers.offline.plans import instruction, plan_of, read_order
from activities.providers.offline.questions import question
from workflows.plan.language.json_schema import violations
from workflows.plan.language.limits import Usage

_SUMMARISE = re.compile(
    r"summari[sz]e\b.*?(?:(?P<count>\d{1,2}|one|two|three) sentences?\b|$)", re.IGNORECASE | re.DOTALL
)
_NUMBERS = {"one": 1, "two": 2, "three": 3}
_ANSWER = "Answer from these findings alone"


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
        return ModelReply(output, Usage(_tokens(request.prompt), _tokens(text), calls=1), text=text)

    async def default_model(self) -> str:
        """Return `offline`: there is one set of rules."""
        return "offline"


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // 3)


def _plan(request: ModelRequest) -> Any:
    goal = request.goal.strip()
    if not re.search(r"[^\W_]", goal[:200]):
        raise OfflineCannot("the goal has no word to search for")
    plan = plan_of(goal, question(goal))
    allowed = [tool.get("name") for tool in request.tools]
    lacking = {node["tool"] for node in plan["nodes"] if "tool" in node and node["tool"] not in allowed}
    if allowed and lacking:
        names = ", ".join(sorted(lacking))
        raise OfflineCannot(f"the offline rules plan with {names}, which this run may not use; allow it or set a model")
    return plan


def _work(request: ModelRequest) -> Any:
    """Return a fact, if the prompt asks for one as the planner does; a summary, if it asks for one; else quotations."""
    material, asked = material_of(request.inputs), instruction(request.template)
    if order := read_order(asked):
        return find(*order, material.passages)
    if not material.passages:
        raise OfflineCannot(
            "the offline rules only quote from a node's inputs, and this prompt refers to no text; set a model"
        )
    count = _wanted_length(asked)
    chosen = summary(material.passages, count) if count else nearest(asked, material.passages)
    text = " ".join(sentence if count or not item.path else f"{sentence} [{item.path}]" for item, sentence in chosen)
    text = text if count else f"Nearest sentences (offline rules, no model): {text}"
    source = chosen[0][0] if chosen else material.passages[0]
    given = {"path": source.path, "title": source.title, "text": text}
    wanted = (request.output_schema or {}).get("properties")
    return {name: given[name] for name in given if name in wanted} if isinstance(wanted, dict) else text


def _join(request: ModelRequest) -> Any:
    material, asked = material_of(request.inputs), instruction(request.template)
    if count := _wanted_length(asked):
        return summarised(material.passages, count)
    goal = asked.partition(_ANSWER)[0].strip() or request.goal
    read = question(goal) or question(request.goal)
    return answer(read, material) if read and material.facts else quoted(goal, material)


def _wanted_length(asked: str) -> int:
    """Return how many sentences a summary is wanted in, 3 where none are counted; 0 for any other instruction."""
    found = _SUMMARISE.match(asked)
    count = (found["count"] or "three").lower() if found else "0"
    return _NUMBERS.get(count) or int(count)
