"""Model calls of nodes: one call, one turn of a tool loop, or a request for summaries."""

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
from activities.storage.run_context import ArtifactReader, RunContext
from activities.toolbox.read_output import offered
from workflows.plan.edits.tool_loop import READER, call_results, last_turn
from workflows.plan.language.nodes import Excerpt, ModelCall
from workflows.plan.language.references import as_text, parse_reference

OFFLINE = ("offline",)
"""What serves a role for which a run has no models."""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Calls models for nodes on this worker."""

    models: Models
    library: ArtifactReader

    async def run(self, context: NodeContext, work: ModelCall) -> NodeOutput:
        """Return the model's output, or a request for more nodes: what a joiner adds, the tool calls of a turn with the
        transcript, or summaries of what is too long for the prompt.

        Raises ProviderError, BindError, BodyMissing, StoreUnavailable.
        """
        models = (work.model,) if work.model else context.checked.models.get(work.role) or OFFLINE
        if work.excerpt is not None:
            return await self._sum_up(context, work, work.excerpt, models)
        if all(name.partition(":")[0] in OFFLINE for name in models):
            prompt = PromptFormat(prompt=str(context.binder.bound(f"{work.prompt} ")).rstrip())
            reply = await self._complete(context, self._request(context, work, prompt), models)
            return prompt.read(reply, context.attempts.progress)
        inputs, budget = prompt_inputs(context, work), await self._budget(context, work)
        too_long = oversized_parts(inputs.values, budget)
        if too_long and work.context.over == "summarise" and work.turn is None:
            return NodeOutput({"excerpts": await self._excerpts(context, too_long)}, more="calls")
        messages = await self._earlier_turns(context, work)
        tools = await self._tools(context, work, inputs.places if too_long else ())
        prompt = await self._prompt_format(context, work, inputs, budget)
        request = replace(self._request(context, work, prompt), messages=tuple(messages), tools=tools)
        reply = await self._complete(context, request, models)
        if not (reply.calls and tools):
            return prompt.read(reply, context.attempts.progress)
        transcript = _transcript(messages, reply)
        if work.context.over == "reference":
            transcript["outputs"] = inputs.places
        return NodeOutput(transcript, reply.usage, "calls")

    async def _complete(self, context: NodeContext, request: ModelRequest, models: Sequence[str]) -> ModelReply:
        request = replace(request, prompt=roles.with_fault(request.prompt, context.attempts.fault))
        return await self.models.complete(request, models, context.attempts.own)

    async def _run_context(self, context: NodeContext) -> RunContext:
        return await self.library.run_context(context.run_prefix, context.checked.run_context)

    def _request(self, context: NodeContext, work: ModelCall, prompt: PromptFormat) -> ModelRequest:
        node = context.node
        return ModelRequest(
            role=work.role,
            model="",
            goal=context.checked.goal,
            prompt=prompt.prompt,
            template=context.binder.with_own_values(work.prompt, node),
            inputs=context.binder.inputs(node),
            output_schema=work.output_schema,
            system=prompt.system,
            progress=context.attempts.progress,
            account=context.attempts,
            seconds=_call_seconds(context.spec.timeout / 1000),
        )

    async def _prompt_format(
        self, context: NodeContext, work: ModelCall, inputs: PromptInputs, budget: Budget
    ) -> PromptFormat:
        """Return the system prompt and the prompt of the call, and how its reply is read."""
        lookup, given = context.binder.lookup, await self._given(context, work)
        if not joins(work):
            return PromptFormat(roles.system(work.role), fill_prompt(work.prompt, lookup, budget, inputs.ended, given))
        replanning = None
        if context.call.replans:
            catalogue = (await self._run_context(context)).catalogue
            replanning = joiner.Replanning(catalogue, [node.id for node in context.checked.plan.nodes])
        prompt = joiner.prompt(work.prompt, lookup, inputs.ended, budget, given)
        if context.call.objections:
            prompt = f"{prompt}\n\n{joiner.format_objections(context.call.objections)}"
        return JoinerFormat(joiner.system(replanning), prompt, inputs.cited, replanning)

    async def _given(self, context: NodeContext, work: ModelCall) -> dict[str, str]:
        """Return what a sub-agent's goal names, for calls whose prompt has the goal in it."""
        if not (joins(work) or refers_to_goal(work.prompt)):
            return {}
        return await self.library.given(context.run_prefix, await self._run_context(context))

    async def _tools(
        self, context: NodeContext, work: ModelCall, places: Collection[str]
    ) -> tuple[dict[str, Any], ...]:
        """Return what the model may call now. At its last turn it may call nothing, so that it answers."""
        if last_turn(work):
            return ()
        catalogue = (await self._run_context(context)).catalogue
        reader = (offered(places),) if places and work.context.over == "reference" else ()
        return (*(entry for entry in catalogue if entry["name"] in work.tools), *reader)

    async def _earlier_turns(self, context: NodeContext, work: ModelCall) -> list[Message]:
        """Return the messages of the turns before, with the results of the last calls in fences."""
        if work.turn is None or not work.turn.transcript:
            return []
        body = await self.library.value(context.run_prefix, work.turn.transcript)
        results = call_results(work.turn, body["calls"], await _settled_results(context, work.turn.results))
        answers = [Message("tool", fenced(node, text), call_id=name) for name, node, text in results]
        return [_message(item) for item in body["messages"]] + answers

    async def _budget(self, context: NodeContext, work: ModelCall) -> Budget:
        """Return how much of the outputs the model is given, with the summaries that were made for it."""
        summaries: dict[str, list[str | None]] = {}
        for end in await _settled_results(context, work.turn.summaries) if work.turn is not None else ():
            call = context.checked.node(end["id"])
            if isinstance(call, ModelCall) and call.excerpt is not None:
                text = as_text(end["value"]) if end["status"] == "succeeded" else None
                summaries.setdefault(call.excerpt.name, []).append(text)
        return Budget(work.context.tokens, READER if work.context.over == "reference" else "", summaries)

    async def _excerpts(self, context: NodeContext, parts: Sequence[OversizedPart]) -> list[dict[str, Any]]:
        """Store the texts to sum up, and return what asks for their summaries. Safe to repeat."""
        return [
            Excerpt(
                node=context.address.id,
                name=part.name,
                part=part.part,
                parts=part.parts,
                text=await self.library.put(context.run_prefix, part.text),
                size=tokens_of(part.text),
                tokens=part.tokens,
            ).model_dump(mode="json")
            for part in parts
        ]

    async def _sum_up(
        self, context: NodeContext, work: ModelCall, excerpt: Excerpt, models: Sequence[str]
    ) -> NodeOutput:
        """Return a summary of an excerpt, for the model whose prompt has no room for all of it."""
        host = context.checked.node(excerpt.node)
        assert isinstance(host, ModelCall)
        text = await self.library.value(context.run_prefix, excerpt.text)
        prompt = PromptFormat(
            roles.system(work.role), roles.summary_prompt(excerpt, text, host.prompt, context.binder.lookup)
        )
        request = replace(self._request(context, work, prompt), template=roles.SUMMARY_TEMPLATE, inputs={"text": text})
        return prompt.read(await self._complete(context, request, models), context.attempts.progress)


async def _settled_results(context: NodeContext, reference: str) -> list[dict[str, Any]]:
    """Return how the nodes behind a settled join ended; none without a reference."""
    found = parse_reference(reference)
    return list(await context.binder.value(found.node)) if found is not None else []


def _call_seconds(limit: float) -> float:
    """Return the seconds of a call: less than the node's, so that the call fails with its own error."""
    return max(limit - 1.0, limit / 2)


def _transcript(messages: list[Message], reply: ModelReply) -> dict[str, Any]:
    """Return the messages so far and the calls to make. Ids that a server has used twice are made different, because
    results are matched by them.
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
    messages = [*messages, Message("assistant", reply.text, tuple(calls), thinking=reply.thinking)]
    return {"messages": [asdict(message) for message in messages], "calls": [asdict(call) for call in calls]}


def _message(item: dict[str, Any]) -> Message:
    calls = tuple(ToolRequest(**call) for call in item["calls"])
    return Message(item["role"], item["text"], calls, item["call_id"], tuple(item.get("thinking", ())))
