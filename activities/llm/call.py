"""Model calls of nodes: one call, or one turn of a tool loop."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sennit.activities.llm.asked_calls import asked_calls
from sennit.activities.llm.history import Histories, History, messages_of
from sennit.activities.llm.inputs import PromptInputs, joins, prompt_inputs
from sennit.activities.llm.live_text import LiveTexts
from sennit.activities.llm.models import OFFLINE, Models
from sennit.activities.llm.reply import JoinerFormat, PromptFormat
from sennit.activities.llm.tool_turns import (
    TURN_CALLS,
    settled_results,
    transcript,
    turns_before,
    without_workspace,
    workspace_in,
)
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.prompts import joiner, roles
from sennit.activities.prompts.outputs import Budget, exceeds, fill_prompt, refers_to_goal
from sennit.activities.providers.errors import ContextTooLong, MediaRefused
from sennit.activities.providers.media import part_of, why_not
from sennit.activities.providers.model import (
    CALL_MARGIN_SECONDS,
    REPLY_ROOM,
    MediaPart,
    ModelReply,
    ModelRequest,
    tokens_of,
)
from sennit.activities.storage.media import load_media
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.activities.toolbox.read_output import offered
from sennit.workflows.messages.node_calls import LlmNodeCall
from sennit.workflows.plan.edits.tool_loop import READER, last_turn
from sennit.workflows.plan.language.nodes import ModelCall

REPLY_SHARE = 4
"""The part of a short context that is left to the reply, as one by this number."""
LEAST_TOKENS = 200
"""What of other nodes' outputs a model is given even where there is no room for it."""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Calls models for nodes on this worker."""

    models: Models
    library: ArtifactReader
    texts: LiveTexts = field(default_factory=LiveTexts)

    async def run(self, context: NodeContext, work: ModelCall) -> NodeOutput:
        """Return the model's output, or a request for more nodes: what a joiner adds, or the tool
        calls of a turn with the transcript.

        Raises ProviderError, WorkspaceRefused, BindError, BodyMissing, StoreUnavailable.
        """
        if work.workspace is not None:
            # A model that has no folder would be paid for turns that come to nothing.
            context.workspace(work)
        models: Sequence[str] = context.checked.models.get(work.role) or OFFLINE
        if work.model:
            models = (work.model,)
        if _served_by_rules(models):
            if work.media:
                raise MediaRefused(
                    f"`media`: {models[0]} takes no images, PDFs and audio; {why_not(models[0])}"
                )
            bound = context.binder.bound(f"{work.prompt} ")
            prompt = PromptFormat(prompt=str(bound).rstrip())
            request = self._request(context, work, prompt)
            reply = await self._complete(context, request, models)
            output = prompt.read(reply, context.attempts.progress)
            return await self._with_workspace(context, work, output)
        inputs = prompt_inputs(context, work)
        window = self.models.context(models)
        try:
            return await self._ask(context, work, models, inputs, window)
        except ContextTooLong:
            known = self.models.context(models)
            if known in (0, window):
                raise
            return await self._ask(context, work, models, inputs, known)

    async def _ask(
        self,
        context: NodeContext,
        work: ModelCall,
        models: Sequence[str],
        inputs: PromptInputs,
        window: int,
    ) -> NodeOutput:
        """Make one call with a prompt cut to a context of `window` tokens, if that is known."""
        history = await self._history(context, work, models)
        media = await self._media(context, work)
        before = await turns_before(context, self.library, work, media)
        seen = list(media)
        for message in before.messages:
            seen += message.media

        # What does not fit into the budget can be read in parts, with a tool.
        budget = await self._budget(context, work, inputs, window, history, seen)
        places: Collection[str] = ()
        if exceeds(inputs.values, budget.tokens):
            places = inputs.places
        tools = await self._tools(context, work, places)
        prompt = await self._prompt_format(context, work, inputs, budget)
        request = self._request(context, work, prompt)
        request = replace(
            request, history=history.turns, messages=before.messages, media=media, tools=tools
        )
        if not tools:  # a model that is held to a form cannot call tools
            request = replace(request, form=prompt.form)

        names = [entry["name"] for entry in tools]
        async with (
            self.texts.writing(context, answer_only=joins(work)) as text,
            asked_calls(context, self.library, names) as asked,
        ):

            def discard(reason: str) -> None:
                text.discard(reason)
                asked.discard()

            request = replace(request, on_text=text.add, on_restart=discard)
            if asked.names:
                request = replace(request, on_call=asked.add)
            reply = await self._complete(context, request, models)
            if reply.calls and tools:
                output = NodeOutput(transcript(before, reply), reply.usage, "calls")
            else:
                output = prompt.read(reply, context.attempts.progress)
            text.end(output)
        if output.more == "calls" and work.context.over == "reference":
            output.output["outputs"] = inputs.places
        output = await self._with_workspace(context, work, output)
        warnings = (*output.warnings, *history.warnings, *before.warnings, *reply.warnings)
        return replace(output, warnings=warnings)

    async def _with_workspace(
        self, context: NodeContext, work: ModelCall, output: NodeOutput
    ) -> NodeOutput:
        """Return what a model asks for with where its folder is, or its answer with its folder.
        That is as the last call has left it that worked in it and succeeded.
        """
        if work.workspace is None:
            return output
        place, current = work.workspace, context.workspace(work)
        tools = (await self._run_context(context)).tools
        turn = work.further_turn
        results = ""
        if turn is not None:
            results = turn.results
        for entry in await settled_results(context, results):
            left = workspace_in(context, tools, entry)
            if left is not None:
                place, current = left
        if output.more:
            return replace(output, output={**output.output, "workspace": place})
        return replace(output, output={"answer": output.output, "workspace": current})

    async def _complete(
        self, context: NodeContext, request: ModelRequest, models: Sequence[str]
    ) -> ModelReply:
        prompt = roles.with_fault(request.prompt, context.attempts.fault)
        request = replace(request, prompt=prompt)
        return await self.models.complete(request, models, context.attempts.number)

    async def _history(
        self, context: NodeContext, work: ModelCall, models: Sequence[str]
    ) -> History:
        """Return the turns before the prompt: those before the run, for a call that is given
        its goal, then its own.
        """
        found = History()
        if joins(work) or refers_to_goal(work.prompt):
            request = self._request(context, work, PromptFormat())
            histories = Histories(self.models, self.library)
            found = await histories.before(
                request, models, context.run_prefix, context.checked.history
            )
        turns = (*found.turns, *messages_of(work.messages))
        return replace(found, turns=turns)

    async def _media(self, context: NodeContext, work: ModelCall) -> tuple[MediaPart, ...]:
        """Return what the model is shown: what came with the run's goal, for a call that is given
        its goal, then its own media. Raises BadMedia, BindError, BodyMissing, StoreUnavailable.
        """
        values: list[Any] = []
        if joins(work) or refers_to_goal(work.prompt):
            for media in context.checked.attached:
                values.append(media.model_dump())
        values += context.binder.bound(list(work.media))
        if not values:
            return ()
        loaded = await load_media(self.library.store, context.run_prefix, values)
        parts = [part_of(media, data) for media, data in loaded]
        return tuple(parts)

    async def _run_context(self, context: NodeContext) -> RunContext:
        return await self.library.run_context(context.run_prefix, context.checked.run_context)

    def _request(self, context: NodeContext, work: ModelCall, prompt: PromptFormat) -> ModelRequest:
        node = context.node
        settings = context.checked.settings_of(work)
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
            settings=settings,
            max_output_tokens=settings.max_tokens,
            first_token_timeout=work.first_token_timeout,
            idle_timeout=work.idle_timeout,
        )

    async def _prompt_format(
        self, context: NodeContext, work: ModelCall, inputs: PromptInputs, budget: Budget
    ) -> PromptFormat:
        """Return the system prompt and the prompt of the call, and how its reply is read."""
        lookup = context.binder.lookup
        material = await self._material(context, work)
        own = context.checked.settings_of(work).system
        told = (context.checked.instructions, work.instructions)
        if not joins(work):
            system = roles.system(work.role, own, told)
            prompt = fill_prompt(work.prompt, lookup, budget, inputs.ended, material)
            return PromptFormat(system, prompt)
        replanning = None
        call = context.call
        assert isinstance(call, LlmNodeCall)
        if call.replans:
            run_context = await self._run_context(context)
            nodes = context.checked.plan.ids
            replanning = joiner.Replanning(run_context.catalogue, nodes)
        prompt = joiner.prompt(work.prompt, lookup, inputs.ended, budget, material)
        if call.objections:
            prompt = f"{prompt}\n\n{joiner.format_objections(call.objections)}"
        system = joiner.system(replanning, own, told)
        return JoinerFormat(system, prompt, inputs.cited, replanning)

    async def _material(self, context: NodeContext, work: ModelCall) -> dict[str, str]:
        """Return what a sub-agent's goal names, for calls whose prompt has the goal in it."""
        if not (joins(work) or refers_to_goal(work.prompt)):
            return {}
        return await self.library.material(context.run_prefix, await self._run_context(context))

    async def _tools(
        self, context: NodeContext, work: ModelCall, places: Collection[str]
    ) -> tuple[dict[str, Any], ...]:
        """Return what the model may call now. At its last turn it may call
        nothing, so that it answers.
        """
        if last_turn(work):
            return ()
        run_context = await self._run_context(context)
        tools = [entry for entry in run_context.catalogue if entry["name"] in work.tools]
        if work.workspace is not None:
            tools = [without_workspace(entry) for entry in tools]
        if places and work.context.over == "reference":
            tools.append(offered(places))
        if work.turn_rule is not None:
            tools += TURN_CALLS
        return tuple(tools)

    async def _budget(
        self,
        context: NodeContext,
        work: ModelCall,
        inputs: PromptInputs,
        window: int,
        history: History,
        media: Sequence[MediaPart],
    ) -> Budget:
        """Return how much of the outputs the model is given."""
        tokens = work.context.tokens
        reader = READER if work.context.over == "reference" else ""
        if not window:
            return Budget(tokens, reader)

        # What everything else takes of the context, with room for the reply.
        bare = await self._prompt_format(context, work, inputs, Budget(0))
        tools = await self._tools(context, work, ())
        reply = context.checked.settings_of(work).max_tokens or REPLY_ROOM
        taken = min(reply, window // REPLY_SHARE)
        for text in (bare.system, bare.prompt, json.dumps(tools)):
            taken += tokens_of(text)
        taken += history.tokens
        for part in media:
            taken += part.tokens
        tokens = min(tokens, max(LEAST_TOKENS, window - taken))
        if tokens < work.context.tokens and exceeds(inputs.values, tokens):
            context.attempts.progress(
                f"cut to {tokens:,} tokens: the model's context has {window:,}"
            )
        return Budget(tokens, reader)


def _served_by_rules(models: Sequence[str]) -> bool:
    """Whether no model serves a call, but the rules of this worker."""
    return all(name.partition(":")[0] in OFFLINE for name in models)


def _call_seconds(limit: float) -> float:
    """Return the seconds of a call: less than the node's, so that the call
    fails with its own error.
    """
    return max(limit - CALL_MARGIN_SECONDS, limit / 2)
