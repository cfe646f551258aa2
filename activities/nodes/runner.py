"""Runs one node: bind, look for its marker, call what its kind asks for, keep the output, mark it done."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from activities.nodes.arguments import arguments_digest
from activities.nodes.attempts import Attempts
from activities.nodes.binding import Binder, parse_address
from activities.nodes.content_key import content_key
from activities.nodes.context import NodeContext, NodeOutput
from activities.nodes.documents import DocumentRule
from activities.nodes.effect_ledger import EffectLedger, Write
from activities.nodes.error_mapping import NodeTimeout, SubAgentFailed
from activities.nodes.in_flight import finish
from activities.nodes.origins import Origins
from activities.nodes.questions import question_of, unapproved, unapproved_program
from activities.nodes.replies import Marker, keep, preview_of
from activities.prompts.outputs import bind_goal, refers_to_goal
from activities.storage.artifacts import ArtifactStore
from activities.storage.run_context import ArtifactReader
from activities.toolbox import Registry, Tool, ToolContext
from workflows.messages.contracts import NodeCall, NodeReply, SubagentRequest
from workflows.messages.result import usage_in
from workflows.plan.language.limits import NO_USAGE
from workflows.plan.language.nodes import AgentCall, AgentNode, JoinNode, ModelCall, ProgramNode, ToolCall

MOST_THREADS = 100


class ModelRunner(Protocol):
    """Makes the model calls of nodes."""

    async def run(self, context: NodeContext, work: ModelCall) -> NodeOutput:
        """Return the model's output, or a request for more nodes."""


class ProgramRunner(Protocol):
    """Advances programs."""

    async def advance(self, context: NodeContext) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for."""


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """Runs nodes of checked plans with the tools, models and documents of this worker."""

    store: ArtifactStore
    library: ArtifactReader
    registry: Registry
    models: ModelRunner
    programs: ProgramRunner
    cache: Path
    documents: DocumentRule
    threads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_THREADS))
    """How many plain functions run at once."""

    @property
    def origins(self) -> Origins:
        """What is taken over from the runs that a run forks."""
        return Origins(self.store)

    async def run(
        self, call: NodeCall, path: str, refs: dict[str, str], *, run_prefix: str, attempts: Attempts
    ) -> NodeReply:
        """Return the node's reply.

        An output is stored before its marker is set, and the marker before the reply is sent: a successor of a
        killed worker finds the marker and calls nothing again. A call cut off before its marker runs again.
        A call that `asks` only returns the node's question, and one that is `answered` the answer. A tool whose last
        worker was lost runs in a process of its own. Raises whatever went wrong; what that means is said in
        `activities.nodes.error_mapping`.
        """
        context = await self._context(call, path, refs, run_prefix, attempts)
        if not isinstance(context.node, ProgramNode):
            await self.origins.begin(context)
        if call.answered:  # without a marker, or an equal call would take the answer for its own
            given = (await self._keep(context, NodeOutput(call.answer))).model_copy(update={"attempt": 0})
            await self.origins.note(context, given)
            return given
        work = context.work
        if isinstance(context.node, ProgramNode):
            question = await unapproved_program(context, self.store) if context.spec.approval else None
            return NodeReply(question=question) if question is not None else await self._advanced(context)
        if call.asks and work is None:
            taken = await self.origins.result(context)
            return taken or NodeReply(question=await question_of(context, self.store))
        tool = self.registry.get(work.tool) if isinstance(work, ToolCall) else None
        # a wait for a thread comes before a write's intent, and is not part of the node's time
        async with nullcontext() if tool is None or tool.is_async else self.threads:
            if isinstance(work, ToolCall) and tool is not None and (tool.effect == "write" or context.spec.approval):
                return await self._write(context, tool, work)
            key = partial(_content_key, context, refs, tool)
            found = await self._marked(context, key(context.address.generation)) or await self._taken(context, key)
            return found or await self._run(context, tool, key(context.address.generation))

    async def _taken(self, context: NodeContext, key: Callable[[int], str]) -> NodeReply | None:
        """Return what a run that this one forks has of the call, None for nothing."""
        if not isinstance(context.work, ToolCall | ModelCall):
            return None
        return await self.origins.result(context) or await self.origins.take(context, key)

    async def _run(self, context: NodeContext, tool: Tool | None, key: str) -> NodeReply:
        """Get the node's output, keep it, and mark the node as done."""
        reply, epoch = await self._keep(context, await self._within_timeout(context, tool)), context.call.epoch
        await self.origins.note(context, reply)
        marker = Marker(reply=reply, epoch=epoch).body()
        found = await self.store.mark(context.run_prefix, key, marker)
        if found == marker:
            return reply
        kept = Marker.model_validate_json(found)
        # An earlier plan's cancelled call may mark while this one runs: its facts and usage are not those of this call.
        return kept.reply if kept.epoch == epoch else reply

    async def _advanced(self, context: NodeContext) -> NodeReply:
        """Advance a program. It needs no marker: made again, the same advance comes to the same calls."""
        output = await self._within_timeout(context, None)
        if output.page is None:
            return await self._keep(context, output)
        return NodeReply(more="program", page=output.page, attempt=context.attempts.own)

    async def _write(self, context: NodeContext, tool: Tool, work: ToolCall) -> NodeReply:
        """Return what a write returns, or has returned; `activities.nodes.effect_ledger` says when it is made.

        One that needs approval and has none for these values asks instead, unless the ledger knows that it has begun.
        """
        await context.binder.load(context.node, context.address)
        arguments = context.arguments(work)
        write = Write(
            key=context.idempotency_key,
            tool=tool.name,
            digest=arguments_digest(tool.name, arguments),
            text=preview_of(arguments),
            seconds=context.seconds,
            idempotent=tool.idempotent,
        )
        taken, earlier_key = await self.origins.result(context), ""
        if taken is None:
            taken, earlier_key = await self.origins.write(context, write)
        if taken is not None:
            return taken
        context = replace(context, earlier_key=earlier_key)
        ledger = EffectLedger(self.store, context.run_prefix, partial(self._marked, context))

        async def ask() -> NodeReply | None:
            question = await unapproved(context, self.store, tool, work)
            return NodeReply(question=question) if question is not None else None

        ask_first = ask if context.spec.approval else None
        call, lost = partial(self._run, context, tool, write.marker), context.attempts.lost
        reply = await ledger.enter(write, lambda: finish(call()), ask_first, lost=lost)
        approved = context.call.approved
        is_changed = approved is not None and approved.args and reply.question is None
        return reply.model_copy(update={"written": write.digest}) if is_changed else reply

    async def subagent_request(self, call: NodeCall, *, run_prefix: str) -> SubagentRequest:
        """Return what a node's sub-agent is started with: outputs that its goal refers to are named in it, and given
        beside it. Safe to repeat. Raises BindError, BodyMissing, StoreUnavailable.
        """
        context = await self._context(call, call.nodes[0], call.refs, run_prefix, Attempts(1, 0))
        node = context.node
        assert isinstance(node, AgentNode)
        await self.origins.begin(context)
        taken = await self.origins.result(context)
        if taken is not None:
            return SubagentRequest(taken=taken)
        origins = await self.origins.of_subagent(context)
        await context.binder.load(node, context.address)
        run_context = await self.library.run_context(run_prefix, context.checked.run_context)
        goal, given = bind_goal(node.goal, context.binder.lookup)
        if refers_to_goal(node.goal):
            given = {**await self.library.given(run_prefix, run_context), **given}
        allowed = [entry["name"] for entry in run_context.catalogue]
        return SubagentRequest(
            request={
                "goal": goal,
                **({"given": f"{call.run}/{await self.library.put(run_prefix, given)}"} if given else {}),
                **({"origins": origins} if origins else {}),
                "tools": [name for name in allowed if node.tools is None or name in node.tools],
                "docs": run_context.docs,
                "approval": run_context.approval,
                "budget": node.budget.model_dump(mode="json", exclude_none=True) if node.budget else None,
                "on_failure": "partial",
            }
        )

    async def _context(
        self, call: NodeCall, path: str, refs: dict[str, str], run_prefix: str, attempts: Attempts
    ) -> NodeContext:
        checked, address = await self.library.plan(run_prefix, call.plan), parse_address(path)
        binder = Binder(self.library, run_prefix, checked, call, {**checked.materials.get(address.id, {}), **refs})
        return NodeContext(checked, address, call, binder, run_prefix, attempts)

    async def _marked(self, context: NodeContext, key: str) -> NodeReply | None:
        """Return what a marker says; one that cannot be read, or whose body is gone, is taken back.

        An outcome of an earlier plan is paid for already, and this plan may ask for other facts of it. A request for
        nodes counts only in the plan that it was made in.
        """
        prefix = context.run_prefix
        text = await self.store.marked(prefix, key)
        if text is None:
            return None
        try:
            marker = Marker.model_validate_json(text)
        except ValidationError:
            marker = Marker(reply=NodeReply())
        is_own = marker.epoch == context.call.epoch
        reply = marker.reply if is_own or not marker.reply.more else NodeReply()
        if reply.ref is None or not await self.store.has(prefix, reply.ref):
            await self.store.unmark(prefix, key)
            return None
        if is_own:
            return reply
        wanted, inline = context.wanted
        fresh = await keep(self.store, prefix, await self.library.value(prefix, reply.ref), wanted, inline=inline)
        return fresh.model_copy(update={"attempt": 0, "usage": NO_USAGE} if any(reply.usage) else {})

    async def _within_timeout(self, context: NodeContext, tool: Tool | None) -> NodeOutput:
        limit = asyncio.timeout(context.seconds)
        try:
            async with limit:
                return await self.output(context, tool, limit)
        except TimeoutError as error:
            if not limit.expired():
                raise
            reason = f"; {error}" if str(error) else ""
            raise NodeTimeout(f"no result within {context.seconds:g} s{reason}") from None

    async def output(self, context: NodeContext, tool: Tool | None, limit: asyncio.Timeout) -> NodeOutput:
        """Return the node's output, by its kind. Raises whatever went wrong."""
        node, work, call = context.node, context.work, context.call
        if work is not None:
            await context.binder.load(node, context.address)
        if isinstance(work, ToolCall):
            assert tool is not None
            return await self._call(context, tool, work, limit)
        if isinstance(work, ModelCall):
            return await self.models.run(context, work)
        if isinstance(work, AgentCall):
            return _answer_of(call.answer, context.address.path)
        if isinstance(node, ProgramNode):
            return await self.programs.advance(context)
        if isinstance(node, JoinNode):
            return NodeOutput(await _joined(context, node))
        return NodeOutput([await self.library.value(context.run_prefix, item) for item in call.items if item])

    async def _call(self, context: NodeContext, tool: Tool, work: ToolCall, limit: asyncio.Timeout) -> NodeOutput:
        tool_context = ToolContext(
            docs=self.documents.folder(context.checked.docs) if context.checked.docs else None,
            cache=self.cache,
            run_id=context.call.run,
            node=context.address.path,
            generation=context.address.generation,
            attempt=context.attempts.own,
            idempotency_key=context.idempotency_key,
            progress=context.attempts.progress,
        )
        isolated = context.attempts.lost
        return NodeOutput(await tool.call(context.arguments(work), tool_context, limit, isolated=isolated))

    async def _keep(self, context: NodeContext, output: NodeOutput) -> NodeReply:
        wanted, inline = context.wanted if not output.more else ([], False)
        reply = await keep(self.store, context.run_prefix, output.output, wanted, inline=inline)
        extra: dict[str, object] = {"attempt": context.attempts.own} if context.attempts.own > 1 else {}
        if any(output.usage):
            extra["usage"] = output.usage
        if output.more:
            extra["more"] = output.more
        return reply.model_copy(update=extra) if extra else reply


async def _joined(context: NodeContext, node: JoinNode) -> Any:
    if node.policy == "settled":
        return await context.binder.settled(node.inputs)
    values = [await context.binder.value(name) for name in node.inputs if name in context.call.refs]
    return values[0] if node.policy == "first" else values


def _content_key(context: NodeContext, refs: dict[str, str], tool: Tool | None, generation: int) -> str:
    address = replace(context.address, generation=generation)
    return content_key(context.checked, address, refs, context.call, tool.version if tool else "")


def _answer_of(report: Any, node: str) -> NodeOutput:
    """Return a sub-agent's answer as its node's output, with what its run has used.

    An answer with evidence is `{answer, evidence}`, as that of a joiner; so is a text that is partial, with
    `partial: true`. `sub.n1` is node n1 of the sub-agent of sub.
    """
    fields = report if isinstance(report, dict) else {}
    if fields.get("answer") is None:
        problem = fields.get("problem") or "it ended without one"
        raise SubAgentFailed(f"the sub-agent gave no answer: {problem}", usage_in(report))
    answer: Any = fields["answer"]
    evidence = [{**piece, "node": f"{node}.{piece['node']}"} for piece in fields.get("evidence") or ()]
    partial = fields.get("status") == "partial"
    if evidence or (partial and isinstance(answer, str)):  # nodes that read fields of JSON find them where they were
        answer = {"answer": answer, "evidence": evidence, **({"partial": True} if partial else {})}
    return NodeOutput(answer, usage_in(report))
