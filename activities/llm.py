"""Model calls of nodes: one call, or one turn of a tool loop."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from activities.charter import Library
from activities.providers import Message, ModelReply, ModelRequest, ToolRequest
from activities.providers.models import Models
from activities.turn import Made, Turn
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

    async def run(self, turn: Turn, work: ModelCall) -> Made:
        """Return the model's output, or the transcript with the calls that it asks for. Raises ProviderError."""
        node = turn.checked.node(turn.address.id)
        messages = await self._said(turn, work)
        request = ModelRequest(
            role=work.role,
            model="",
            goal=turn.checked.goal,
            prompt=str(turn.binder.bound(f"{work.prompt} ")).rstrip(),
            template=turn.binder.worded(work.prompt, node),
            inputs=turn.binder.inputs(node),
            output_schema=work.output_schema,
            messages=tuple(messages),
            tools=await self._tools(turn, work),
            progress=turn.progress,
            seconds=turn.checked.spec(turn.address.id).timeout / 1000,
        )
        models = (work.model,) if work.model else turn.checked.models.get(work.role) or OFFLINE
        reply = await self.models.complete(request, models, turn.attempt)
        if reply.calls and request.tools:
            return Made(_transcript(messages, reply), reply.usage, "calls")
        if reply.stop == "length":
            return Made(f"{reply.text}\n[cut at {request.max_output_tokens:,} tokens]", reply.usage)
        return Made(reply.output, reply.usage)

    async def _tools(self, turn: Turn, work: ModelCall) -> tuple[dict[str, Any], ...]:
        """Return what the model may call now: nothing at its last turn, so that it answers."""
        if last_turn(work):
            return ()
        charter = await self.library.charter(turn.home, turn.checked.charter)
        return tuple(entry for entry in charter.catalogue if entry["name"] in work.tools)

    async def _said(self, turn: Turn, work: ModelCall) -> list[Message]:
        """Return what was said in the turns before, with the results of the last calls."""
        if work.turn is None:
            return []
        body = await self.library.value(turn.home, work.turn.transcript)
        results = parse_reference(work.turn.results) if work.turn.results else None
        entries = await turn.binder.value(results.node) if results is not None else []
        answers = [Message("tool", text, call_id=name) for name, text in told(work.turn, body["calls"], entries)]
        return [_message(item) for item in body["messages"]] + answers


def _transcript(messages: list[Message], reply: ModelReply) -> dict[str, Any]:
    calls = tuple(replace(call, id=call.id or f"call_{index}") for index, call in enumerate(reply.calls))
    said = [*messages, Message("assistant", reply.text, calls)]
    return {"messages": [asdict(message) for message in said], "calls": [asdict(call) for call in calls]}


def _message(item: dict[str, Any]) -> Message:
    calls = tuple(ToolRequest(**call) for call in item["calls"])
    return Message(item["role"], item["text"], calls, item["call_id"])
