"""Model calls of nodes: one call, one turn of a tool loop, or a wish for summaries."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from activities.llm.inputs import PromptInputs, joins, prompt_inputs
from activities.llm.models import Models
from activities.llm.reply import JoinerFormat, PromptFormat
from activities.nodes.context import NodeContext, NodeOutput
from activities.prompts import joiner, roles
from activities.prompts.outputs import (
    Budget,
    OversizedPart,
    fenced,
    fill_prompt,
    oversized_parts,
    refers_to_goal,
    tokens_of,
)
from activities.providers import Message, ModelReply, ModelRequest, ToolRequest
from activities.storage.run_context import ArtifactReader
from activities.toolbox.read_output import offered
from workflows.plan.edits.tool_loop import READER, last_turn, told
from workflows.plan.language.nodes import Excerpt, ModelCall
from workflows.plan.language.references import as_text, parse_reference

OFFLINE = ("offline",)
"""What serves a role for which a run has no models: it was opened before there were any."""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Calls models for nodes on this worker."""

    models: Models
    library: ArtifactReader

    async def run(self, turn: NodeContext, work: ModelCall) -> NodeOutput:
        """Return the model's output, or a wish for more nodes: what a joiner adds, the transcript with the calls that
        the model asks for, or summaries of what is too long for the prompt.

        Raises ProviderError, BindError, BodyMissing, StoreUnavailable.
        """
        models = (work.model,) if work.model else turn.checked.models.get(work.role) or OFFLINE
        if work.excerpt is not None:
            return await self._sum_up(turn, work, work.excerpt, models)
        if all(name.partition(":")[0] in OFFLINE for name in models):
            telling = PromptFormat(prompt=str(turn.binder.bound(f"{work.prompt} ")).rstrip())
            reply = await self.models.complete(self._request(turn, work, telling), models, turn.attempts.own)
            return telling.read(reply, turn.attempts.progress)
        material, budget = prompt_inputs(turn, work), await self._budget(turn, work)
        too_long = oversized_parts(material.values, budget)
        if too_long and work.context.over == "summarise" and work.turn is None:
            return NodeOutput({"excerpts": await self._excerpts(turn, too_long)}, more="calls")
        messages = await self._said(turn, work)
        tools = await self._tools(turn, work, material.places if too_long else ())
        telling = await self._telling(turn, work, material, budget)
        request = replace(self._request(turn, work, telling), messages=tuple(messages), tools=tools)
        reply = await self.models.complete(request, models, turn.attempts.own)
        if not (reply.calls and tools):
            return telling.read(reply, turn.attempts.progress)
        transcript = _transcript(messages, reply)
        if work.context.over == "reference":
            transcript["outputs"] = material.places
        return NodeOutput(transcript, reply.usage, "calls")

    def _request(self, turn: NodeContext, work: ModelCall, telling: PromptFormat) -> ModelRequest:
        node = turn.checked.node(turn.address.id)
        return ModelRequest(
            role=work.role,
            model="",
            goal=turn.checked.goal,
            prompt=telling.prompt,
            template=turn.binder.worded(work.prompt, node),
            inputs=turn.binder.inputs(node),
            output_schema=work.output_schema,
            system=telling.system,
            progress=turn.attempts.progress,
            account=turn.attempts,
            seconds=_within(turn.checked.spec(turn.address.id).timeout / 1000),
        )

    async def _telling(
        self, turn: NodeContext, work: ModelCall, material: PromptInputs, budget: Budget
    ) -> PromptFormat:
        """Return how the node's call is put: to models, which need the material, and to be told."""
        lookup, given = turn.binder.lookup, await self._given(turn, work)
        if not joins(work):
            return PromptFormat(
                roles.system(work.role), fill_prompt(work.prompt, lookup, budget, material.ended, given)
            )
        replanning = None
        if turn.call.replans:
            charter = await self.library.charter(turn.run_prefix, turn.checked.charter)
            replanning = joiner.Replanning(charter.catalogue, [node.id for node in turn.checked.plan.nodes])
        prompt = joiner.prompt(work.prompt, lookup, material.ended, budget, given)
        if turn.call.objections:
            prompt = f"{prompt}\n\n{joiner.format_objections(turn.call.objections)}"
        return JoinerFormat(joiner.system(replanning), prompt, material.cited, replanning)

    async def _given(self, turn: NodeContext, work: ModelCall) -> dict[str, str]:
        """Return what a sub-agent's goal names, for the calls that are told the goal."""
        if not (joins(work) or refers_to_goal(work.prompt)):
            return {}
        return await self.library.given(
            turn.run_prefix, await self.library.charter(turn.run_prefix, turn.checked.charter)
        )

    async def _tools(self, turn: NodeContext, work: ModelCall, places: Collection[str]) -> tuple[dict[str, Any], ...]:
        """Return what the model may call now: nothing at its last turn, so that it answers."""
        if last_turn(work):
            return ()
        charter = await self.library.charter(turn.run_prefix, turn.checked.charter)
        reader = (offered(places),) if places and work.context.over == "reference" else ()
        return (*(entry for entry in charter.catalogue if entry["name"] in work.tools), *reader)

    async def _said(self, turn: NodeContext, work: ModelCall) -> list[Message]:
        """Return what was said in the turns before, with the results of the last calls in fences."""
        if work.turn is None or not work.turn.transcript:
            return []
        body = await self.library.value(turn.run_prefix, work.turn.transcript)
        results = told(work.turn, body["calls"], await _ends(turn, work.turn.results))
        answers = [Message("tool", fenced(node, text), call_id=name) for name, node, text in results]
        return [_message(item) for item in body["messages"]] + answers

    async def _budget(self, turn: NodeContext, work: ModelCall) -> Budget:
        """Return how much of the outputs the model is given, with the summaries that were made for it."""
        summaries: dict[str, list[str | None]] = {}
        for end in await _ends(turn, work.turn.summaries) if work.turn is not None else ():
            call = turn.checked.node(end["id"])
            if isinstance(call, ModelCall) and call.excerpt is not None:
                text = as_text(end["value"]) if end["status"] == "succeeded" else None
                summaries.setdefault(call.excerpt.name, []).append(text)
        return Budget(work.context.tokens, READER if work.context.over == "reference" else "", summaries)

    async def _excerpts(self, turn: NodeContext, wanted: Sequence[OversizedPart]) -> list[dict[str, Any]]:
        """Return what is to be summed up, its texts stored: what is wanted twice is the same."""
        return [
            Excerpt(
                node=turn.address.id,
                name=piece.name,
                part=piece.part,
                parts=piece.parts,
                text=await self.library.put(turn.run_prefix, piece.text),
                size=tokens_of(piece.text),
                tokens=piece.tokens,
            ).model_dump(mode="json")
            for piece in wanted
        ]

    async def _sum_up(self, turn: NodeContext, work: ModelCall, excerpt: Excerpt, models: Sequence[str]) -> NodeOutput:
        """Return a summary, for the model whose prompt the excerpt is too long for."""
        host = turn.checked.node(excerpt.node)
        assert isinstance(host, ModelCall)
        text = await self.library.value(turn.run_prefix, excerpt.text)
        telling = PromptFormat(
            roles.system(work.role), roles.summary_prompt(excerpt, text, host.prompt, turn.binder.lookup)
        )
        request = replace(self._request(turn, work, telling), template=roles.SUMMARY_TEMPLATE, inputs={"text": text})
        return telling.read(await self.models.complete(request, models, turn.attempts.own), turn.attempts.progress)


async def _ends(turn: NodeContext, reference: str) -> list[dict[str, Any]]:
    """Return how the nodes behind a settled join ended; none without a reference."""
    found = parse_reference(reference)
    return list(await turn.binder.value(found.node)) if found is not None else []


def _within(limit: float) -> float:
    """Return the seconds that a call gets of a node's limit: so much less that the call's own error is told."""
    return max(limit - 1.0, limit / 2)


def _transcript(messages: list[Message], reply: ModelReply) -> dict[str, Any]:
    """Return what was said, with the calls to make. Their ids are told apart: servers repeat them, and results go by
    them.
    """
    taken = {call.id for message in messages for call in message.calls}
    calls: list[ToolRequest] = []
    for call in reply.calls:
        ident, count = call.id or "call", 1
        while ident in taken:
            count += 1
            ident = f"{call.id or 'call'}_{count}"
        taken.add(ident)
        calls.append(replace(call, id=ident))
    said = [*messages, Message("assistant", reply.text, tuple(calls), thinking=reply.thinking)]
    return {"messages": [asdict(message) for message in said], "calls": [asdict(call) for call in calls]}


def _message(item: dict[str, Any]) -> Message:
    calls = tuple(ToolRequest(**call) for call in item["calls"])
    return Message(item["role"], item["text"], calls, item["call_id"], tuple(item.get("thinking", ())))
