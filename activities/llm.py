"""Model calls of nodes: one call, or one turn of a tool loop."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from activities.charter import Library
from activities.prompts import joiner, roles
from activities.prompts.context import Budget, woven
from activities.prompts.fence import fenced
from activities.providers import Message, ModelReply, ModelRequest, ToolRequest
from activities.providers.models import Models
from activities.results import results_of
from activities.telling import JoinerTelling, Telling
from activities.turn import Made, Turn
from workflows.plan.edges import inputs_of
from workflows.plan.model import ModelCall
from workflows.plan.references import parse_reference
from workflows.plan.turns import last_turn, told

OFFLINE = ("offline",)
"""What serves a role for which a run has no models: it was opened before there were any."""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Calls models for nodes on this worker."""

    models: Models
    library: Library
    budget: Budget = field(default_factory=Budget)

    async def run(self, turn: Turn, work: ModelCall) -> Made:
        """Return the model's output, a wish for more nodes, or the transcript with the calls that it asks for.

        Raises ProviderError, BindError, BodyMissing, StoreUnavailable.
        """
        node = turn.checked.node(turn.address.id)
        models = (work.model,) if work.model else turn.checked.models.get(work.role) or OFFLINE
        messages = await self._said(turn, work)
        telling = await self._telling(turn, work, models)
        request = ModelRequest(
            role=work.role,
            model="",
            goal=turn.checked.goal,
            prompt=telling.prompt,
            template=turn.binder.worded(work.prompt, node),
            inputs=turn.binder.inputs(node),
            output_schema=work.output_schema,
            system=telling.system,
            messages=tuple(messages),
            tools=await self._tools(turn, work),
            progress=turn.attempts.progress,
            account=turn.attempts,
            seconds=_within(turn.checked.spec(turn.address.id).timeout / 1000),
        )
        reply = await self.models.complete(request, models, turn.attempts.own)
        if reply.calls and request.tools:
            return Made(_transcript(messages, reply), reply.usage, "calls")
        return telling.read(reply, turn.attempts.progress)

    async def _telling(self, turn: Turn, work: ModelCall, models: Sequence[str]) -> Telling:
        """Return how the node's call is put. The rules read templates; models need the material, and to be told."""
        binder = turn.binder
        if all(name.partition(":")[0] in OFFLINE for name in models):
            return Telling(prompt=str(binder.bound(f"{work.prompt} ")).rstrip())
        node = turn.checked.node(turn.address.id)
        if work.role != "joiner" or work.output_schema is not None:
            asked = woven(work.prompt, binder.lookup, self.budget)
            ended = results_of({node.id: binder.lookup(node.id)}) if inputs_of(node) else {}
            return Telling(
                roles.system(work.role), "\n\n".join([asked, *([joiner.told(ended, self.budget)] if ended else [])])
            )
        results = results_of(binder.inputs(node))
        replanning = None
        if turn.call.replans:
            charter = await self.library.charter(turn.home, turn.checked.charter)
            replanning = joiner.Replanning(charter.catalogue, [node.id for node in turn.checked.plan.nodes])
        prompt = joiner.prompt(work.prompt, binder.lookup, results, self.budget)
        if turn.call.objections:
            prompt = f"{prompt}\n\n{joiner.refused(turn.call.objections)}"
        return JoinerTelling(joiner.system(replanning), prompt, results, replanning)

    async def _tools(self, turn: Turn, work: ModelCall) -> tuple[dict[str, Any], ...]:
        """Return what the model may call now: nothing at its last turn, so that it answers."""
        if last_turn(work):
            return ()
        charter = await self.library.charter(turn.home, turn.checked.charter)
        return tuple(entry for entry in charter.catalogue if entry["name"] in work.tools)

    async def _said(self, turn: Turn, work: ModelCall) -> list[Message]:
        """Return what was said in the turns before, with the results of the last calls in fences."""
        if work.turn is None:
            return []
        body = await self.library.value(turn.home, work.turn.transcript)
        results = parse_reference(work.turn.results) if work.turn.results else None
        entries = await turn.binder.value(results.node) if results is not None else []
        results_told = told(work.turn, body["calls"], entries)
        answers = [Message("tool", fenced("result", text), call_id=name) for name, text in results_told]
        return [_message(item) for item in body["messages"]] + answers


def _within(limit: float) -> float:
    """Return the seconds that a call gets of a node's limit: so much less that the call's own error is told."""
    return max(limit - 1.0, limit / 2)


def _transcript(messages: list[Message], reply: ModelReply) -> dict[str, Any]:
    calls = tuple(replace(call, id=call.id or f"call_{index}") for index, call in enumerate(reply.calls))
    said = [*messages, Message("assistant", reply.text, calls, thinking=reply.thinking)]
    return {"messages": [asdict(message) for message in said], "calls": [asdict(call) for call in calls]}


def _message(item: dict[str, Any]) -> Message:
    calls = tuple(ToolRequest(**call) for call in item["calls"])
    return Message(item["role"], item["text"], calls, item["call_id"], tuple(item.get("thinking", ())))
