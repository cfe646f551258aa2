"""Runs one node: bind, look for its marker, call what its kind asks for, keep
the output, mark it done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from sennit.activities.limits import (
    MAX_EARLY_BYTES,
    MAX_MARKED_BYTES,
    MAX_THREADS,
    MAX_WARNING_CHARACTERS,
)
from sennit.activities.nodes import tracing
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import Binder, parse_unit
from sennit.activities.nodes.changed_tools import check_early, check_unchanged
from sennit.activities.nodes.content_key import content_key
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.early import (
    ArgumentsOf,
    EarlyOutputs,
    EarlyRefused,
    early_key,
    note_of,
)
from sennit.activities.nodes.effect_ledger import EffectLedger, Write, no_outcome
from sennit.activities.nodes.error_mapping import NodeTimeout, kind_of, message_of
from sennit.activities.nodes.group import failed_reply
from sennit.activities.nodes.in_flight import finish
from sennit.activities.nodes.item_runs import apart, item_output, take_workspaces
from sennit.activities.nodes.origins import Origins, subagent_ledger
from sennit.activities.nodes.pace import turn
from sennit.activities.nodes.questions import question_of, unapproved, unapproved_program
from sennit.activities.nodes.replies import (
    Marker,
    answer_of,
    encode_output,
    is_there,
    keep,
    of_its_type,
    reply_of,
    reply_to,
    timed,
    whole_report,
)
from sennit.activities.nodes.rulings import Rulings
from sennit.activities.nodes.server_time import millis_now
from sennit.activities.nodes.short_calls import ProgramRunner
from sennit.activities.nodes.spending import Spending
from sennit.activities.nodes.subagent_request import subagent_request
from sennit.activities.storage.artifacts import ArtifactStore, digest_of, reference_to
from sennit.activities.storage.documents import DocumentRule
from sennit.activities.storage.media import with_media_kept
from sennit.activities.storage.patience import outside_of_the_limit, stops_for_the_store
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.activities.storage.timings import CallTimings
from sennit.activities.storage.workspaces import RunWorkspaces
from sennit.activities.toolbox import Registry, Tool, ToolContext
from sennit.activities.toolbox.approval_rules import ApprovalRules
from sennit.activities.toolbox.errors import BadOutput, ToolError, UnknownOutcome
from sennit.activities.toolbox.redaction import redact
from sennit.workflows.limits import MAX_LEDGER_LINES
from sennit.workflows.messages.contracts import (
    LedgerCall,
    LedgerReply,
    NodeError,
    NodeReply,
    SubagentRequest,
)
from sennit.workflows.messages.node_calls import (
    AgentNodeCall,
    GateNodeCall,
    NodeCall,
    PrefetchCall,
    ProgramNodeCall,
    ToolNodeCall,
    WriteNodeCall,
)
from sennit.workflows.messages.result import usage_in
from sennit.workflows.plan.digests import digest_in
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.language.nodes import AgentCall, ModelCall, ProgramNode, ToolCall
from sennit.workflows.plan.language.references import BindError
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.scheduling.completion import NOT_WRITTEN
from sennit.workflows.plan.scheduling.events import Question

Refs = dict[str, str]
Work = Callable[[asyncio.Timeout], Awaitable[NodeOutput]]
"""What gets a node's output under a limit of time, with its inputs at hand."""


class ModelRunner(Protocol):
    """Makes the model calls of nodes."""

    async def run(self, context: NodeContext, work: ModelCall) -> NodeOutput:
        """Return the model's output, or a request for more nodes."""


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
    threads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_THREADS))
    """How many plain functions run at once."""
    timings: CallTimings = field(default_factory=CallTimings)
    rules: ApprovalRules = field(default_factory=ApprovalRules)
    """What the operator of this worker has decided about writes."""
    rulings: Rulings = field(init=False)
    early: EarlyOutputs = field(init=False)
    """What calls have given that were made early."""
    origins: Origins = field(init=False)
    """What is taken over from the runs that a run forks."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rulings", Rulings(self.library, self.rules))
        object.__setattr__(self, "origins", Origins(self.store))
        object.__setattr__(self, "early", EarlyOutputs(self.store))

    async def run(
        self,
        call: NodeCall,
        path: str,
        refs: dict[str, str],
        *,
        run_prefix: str,
        attempts: Attempts,
        page: StoredPlan | None = None,
    ) -> NodeReply:
        """Return the reply of a node, which is on a `page` that is not stored if one is given.

        An output is stored in its marker, or before the marker is set, and the marker before the
        reply is sent: a successor of a killed worker finds the marker and calls nothing again. A
        call cut off before that runs again. The call of a gate returns its question, or the answer
        that a person has given, and one that `looks_up` what a write has come to. A tool whose last
        worker was lost runs in a process of its own. Raises whatever went wrong; what that means is
        said in `sennit.activities.nodes.error_mapping`.
        """
        context = await self._context(call, path, refs, run_prefix, attempts, page)
        if isinstance(call, WriteNodeCall) and call.looks_up:
            return await self._look_up(context)
        with tracing.node(context, path, refs) as record:
            reply = await self._reply(context, refs)
            record(reply)
        return reply

    async def run_beside(
        self,
        call: NodeCall,
        path: str,
        refs: dict[str, str],
        *,
        run_prefix: str,
        attempts: Attempts,
        page: StoredPlan,
    ) -> NodeReply:
        """Do as `run` does for one of several calls of an activity: what it has used is in its own
        reply, also if it fails after that.
        """
        own = attempts.beside()
        try:
            return await self.run(call, path, refs, run_prefix=run_prefix, attempts=own, page=page)
        except Exception as error:
            if not any(own.open):
                raise
            return failed_reply(error).model_copy(update={"usage": own.open})

    async def _reply(self, context: NodeContext, refs: dict[str, str]) -> NodeReply:
        call = context.call
        if not isinstance(context.node, ProgramNode):
            await self.origins.begin(context)
        if isinstance(call, GateNodeCall) and not call.asks:
            # without a marker, or an equal call would take the answer for its own
            output = timed(context, NodeOutput(call.answer))
            kept = await self._keep(context, output)
            reply = kept.model_copy(update={"attempt": 0})
            await self.origins.note(context, reply)
            return reply
        if isinstance(call, ProgramNodeCall) and call.session:
            return await self._advanced(context)
        if await context.binder.is_skipped(context.unit):
            return NodeReply(skipped=True)
        if isinstance(context.node, ProgramNode):
            return await self._program(context)
        if isinstance(call, GateNodeCall):
            taken = await self.origins.result(context)
            if taken is not None:
                return taken
            return NodeReply(question=await question_of(context, self.store))

        tool = self._tool_of(context)
        if tool is not None and tool.may_change:
            await check_unchanged(self.library, context, tool)
        if tool is None or tool.is_async:
            return await self._called(context, refs, tool)
        # a wait for a thread comes before a write's intent, and is not part of the node's time
        async with self.threads:
            return await self._called(context, refs, tool)

    async def _program(self, context: NodeContext) -> NodeReply:
        """Return what a person is asked before a program begins, or else how far it has come."""
        if context.spec.approval:
            question = await unapproved_program(context, self.store)
            if question is not None:
                return NodeReply(question=question)
        return await self._advanced(context)

    async def _called(
        self, context: NodeContext, refs: dict[str, str], tool: Tool | None
    ) -> NodeReply:
        """Return what a node's call gives: from its marker or an origin if it was made
        before, else by making it.
        """
        work, call = context.work, context.call
        if isinstance(work, ToolCall) and tool is not None and self._may_write(context, tool):
            return of_its_type(await self._write(context, tool, work))

        key = partial(_content_key, context, refs, tool)
        marker = key(context.unit.generation)
        recorded = await self._marked(context, marker)
        if recorded is None:
            recorded = await self.origins.call(context, key)
        if recorded is not None:
            return recorded

        item = apart(context.checked, context.unit)
        if (
            isinstance(call, AgentNodeCall)
            and item is not None
            and item_output(call.report, item) is None
        ):
            return NodeReply(skipped=True, usage=usage_in(call.report))
        work_to_do = await self._ready(context, tool)
        if (
            tool is not None
            and isinstance(call, ToolNodeCall)
            and call.early
            and context.attempts.number == 1
        ):
            work_to_do = self._early_or(work_to_do, context, tool, call.early)
        is_large = tool is not None and tool.large
        return await self._run(context, work_to_do, marker, apart=is_large)

    def _early_or(
        self, work: Work, context: NodeContext, tool: Tool, names: tuple[str, ...]
    ) -> Work:
        """Return work that takes over what one of these calls has given that was made early, if it
        is the same call; else it does as `work` does.
        """
        assert isinstance(context.work, ToolCall)
        key = early_key(context.checked, tool, context.arguments(context.work))

        async def early_or_call(limit: asyncio.Timeout) -> NodeOutput:
            with outside_of_the_limit():  # if there is none, the call has all its time
                taken = await self.early.take(context.run_prefix, names, key)
            if taken is not None:
                return taken
            return await work(limit)

        return early_or_call

    async def make_early(
        self,
        call: PrefetchCall,
        run_prefix: str,
        attempts: Attempts,
        arguments_of: ArgumentsOf,
        began: int,
    ) -> NodeReply:
        """Make a call before it is asked for, and keep what it gives under its name, for the real
        call to find, as fresh as a call is that `began` then. Nothing of it is in a marker: only
        what the run asks for is done.

        Raises EarlyRefused for a call that is not made early, and whatever goes wrong with one.
        """
        context = await self._context(call, call.nodes[0], call.refs, run_prefix, attempts)
        tool = self.registry.get(call.tool)
        await check_early(self.library, context, tool)
        arguments = await arguments_of(context, tool)
        tool.check(arguments)
        key = early_key(context.checked, tool, arguments)
        if await self.early.has(run_prefix, call.alike, key):
            raise EarlyRefused(f"the same call of {tool.name} is made early already")
        note = note_of(call, key, tool, began)
        await self.early.note(run_prefix, call.name, note)
        try:
            work = await self._tool_call(
                context, tool, arguments, node=f"early.{context.unit.path}"
            )
            output = await self._idle(tool, work)
            body = encode_output(output.output)
            kept = await with_media_kept(self.store, run_prefix, output.output, body)
            if kept is not output.output:
                body = encode_output(kept)
            if len(body) > MAX_EARLY_BYTES:
                raise EarlyRefused(
                    f"{tool.name} has given {len(body):,} bytes; at most {MAX_EARLY_BYTES:,} are "
                    "kept"
                )
            ref = await self.store.put(run_prefix, body)
            given = await self.library.put(run_prefix, arguments)
        except BaseException:
            failed = note.model_copy(update={"status": "failed"})
            await finish(self.early.note(run_prefix, call.name, failed))
            raise
        await self.early.note(run_prefix, call.name, note.done(given, ref, output))
        return NodeReply(ref=ref, size=len(body), millis=output.millis, usage=output.usage)

    async def _idle(self, tool: Tool, work: Work) -> NodeOutput:
        """Make a call within the time of its tool, if there is a thread for it
        that nothing else wants.
        """
        async with asyncio.timeout(tool.timeout) as limit:
            if tool.is_async:
                return await work(limit)
            if self.threads.locked():
                raise EarlyRefused("all threads of this worker are taken")
            async with self.threads:
                return await work(limit)

    async def recorded_end(
        self, call: NodeCall, path: str, refs: dict[str, str], *, run_prefix: str
    ) -> NodeReply | None:
        """Return how a node has ended that the run begins now, as far as that is recorded in the
        run, or in one that it forks. None if nothing is, so that it would be called. Nothing is
        called for it; what only puts stored outputs together is done.

        Raises UnknownOutcome for a write of which nobody knows whether it was made, BindError,
        BodyMissing, StoreUnavailable.
        """
        context = await self._context(call, path, refs, run_prefix, Attempts(1, 0))
        is_answered = isinstance(call, GateNodeCall) and not call.asks
        is_map = context.node.kind == "map" and context.unit.item is None
        if is_answered or is_map or context.node.kind == "join":
            return await self._reply(context, refs)
        if await context.binder.is_skipped(context.unit):
            return NodeReply(skipped=True)
        tool = self._tool_of(context)
        if self._may_write(context, tool):
            taken = await self._recorded_write(context, tool)
            if taken is not None:
                return taken
            return await self._marked(context, _write_marker(context))

        key = partial(_content_key, context, refs, tool)
        recorded = None
        if isinstance(context.work, ToolCall | ModelCall) and not isinstance(call, GateNodeCall):
            recorded = await self._marked(context, key(context.unit.generation))
        if recorded is None:
            recorded = await self.origins.call(context, key)
        if recorded is None:
            return None
        return of_its_type(recorded)

    async def advance_alone(
        self, call: ProgramNodeCall, path: str, refs: dict[str, str], *, run_prefix: str
    ) -> NodeReply:
        """Advance a program as `run` does, but ask nobody whether the program may begin, and leave
        all calls of the script to the run. Raises what `run` raises.
        """
        call = call.model_copy(update={"fuse": "off"})
        context = await self._context(call, path, refs, run_prefix, Attempts(1, 0))
        if not call.session and await context.binder.is_skipped(context.unit):
            return NodeReply(skipped=True)
        return await self._advanced(context)

    async def _recorded(self, context: NodeContext) -> NodeReply | None:
        """Return how a call of a program has ended in a run that this one forks, None if that is
        for its own activity to find out.
        """
        try:
            tool = self._tool_of(context)
            if self._may_write(context, tool):
                recorded = await self._recorded_write(context, tool)
            else:
                key = partial(_content_key, context, {}, tool)
                recorded = await self.origins.call(context, key)
            if recorded is None or recorded.more:
                return None
            return of_its_type(recorded)
        except (ToolError, BindError):
            return None

    async def _recorded_write(self, context: NodeContext, tool: Tool | None) -> NodeReply | None:
        """Return what a write has returned in a run that this one forks. Raises what
        `Origins.write` raises.
        """
        assert isinstance(context.work, ToolCall)
        assert tool is not None
        await context.binder.load(context.unit)
        write = Write.of(context, tool, context.work)
        recorded, _ = await self.origins.write(context, write)
        return recorded

    def _tool_of(self, context: NodeContext) -> Tool | None:
        """Return the tool that a node calls. Raises ToolError if this worker does not have it."""
        if not isinstance(context.work, ToolCall):
            return None
        return self.registry.get(context.work.tool)

    def _may_write(self, context: NodeContext, tool: Tool | None) -> bool:
        """Whether a node's call goes through the ledger of effects."""
        return tool is not None and (tool.effect == "write" or context.spec.approval)

    async def _run(
        self, context: NodeContext, work: Work, key: str, *, apart: bool = False
    ) -> NodeReply:
        """Get the node's output, and mark the node as done with it: in its marker if it
        is short, else before.

        What must be found without the marker lies `apart`: a script may keep a Ref to it, or a
        fork find a note of it.
        """
        epoch, prefix = context.call.epoch, context.run_prefix
        output = await self._within_timeout(context, work)
        await turn()
        output = timed(context, output)
        body = encode_output(output.output)
        if isinstance(context.work, ToolCall):
            kept = await with_media_kept(self.store, prefix, output.output, body)
            if kept is not output.output:
                output = replace(output, output=kept)
                body = encode_output(kept)

        # A body that lies apart is there before the marker that names it.
        if output.more or len(body) > MAX_MARKED_BYTES or self.origins.notes(context, output.more):
            apart = True
        if apart:
            reply = reply_of(context, output, digest_of(body), len(body))
            await self.store.put(prefix, body)
            await self.origins.note(context, reply)
            marker = Marker(reply=reply, epoch=epoch).text(None)
        else:
            reply = reply_of(context, output, reference_to(body, key), len(body))
            marker = Marker(reply=reply, epoch=epoch).text(body)
        standing = await self.store.mark(prefix, key, marker)
        if standing == marker:
            return reply

        # Another attempt was faster: what it has marked counts.
        earlier = Marker.read(standing)
        if earlier.epoch == epoch and earlier.reply.ref is not None:
            return earlier.reply
        # An earlier plan's cancelled call may mark while this one runs: its facts and usage are
        # not those of this call.
        ref = earlier.reply.ref
        if ref is None or digest_in(ref) != digest_of(body):
            ref = await self.store.put(prefix, body)
        return reply.model_copy(update={"ref": ref})

    async def _advanced(self, context: NodeContext) -> NodeReply:
        """Advance a program. It needs no marker: made again, the same advance
        comes to the same calls.
        """
        assert isinstance(context.call, ProgramNodeCall)
        bare = context.call.without_inputs()

        def make(page: StoredPlan, path: str) -> Coroutine[Any, Any, NodeReply]:
            prefix, attempts = context.run_prefix, context.attempts
            return self.run_beside(bare, path, {}, run_prefix=prefix, attempts=attempts, page=page)

        async def recorded(page: StoredPlan, path: str) -> NodeReply | None:
            bare_context = await self._context(
                bare, path, {}, context.run_prefix, context.attempts, page
            )
            return await self._recorded(bare_context)

        output = await self._within_timeout(
            context, lambda _: self.programs.advance(context, make, recorded)
        )
        if output.page is None:
            kept = await self._keep(context, output)
            return kept.model_copy(update={"log": output.log, "tasks": output.tasks})
        attempt = context.attempts.number
        return NodeReply(
            more="program", page=output.page, attempt=attempt, log=output.log, tasks=output.tasks
        )

    async def _write(self, context: NodeContext, tool: Tool, work: ToolCall) -> NodeReply:
        """Return what a write returns, or has returned;
        `sennit.activities.nodes.effect_ledger` says when it is made.

        One that needs approval and has none for these values asks instead, unless the ledger
        knows that it has begun. One that an earlier script has made in another order asks
        before it is taken over.
        """
        await context.binder.load(context.unit)
        arguments = context.arguments(work)
        write = Write.of(context, tool, work)
        confirms = context.checked.confirms.get(context.unit.id)
        if confirms is not None and await self.store.marked(context.run_prefix, confirms) is None:
            question = await unapproved(context, self.store, tool, work)
            if question is not None:
                return NodeReply(question=question)
            await self.store.mark(context.run_prefix, confirms, b"{}")
        taken, earlier_key = await self.origins.write(context, write)
        if taken is not None:
            return taken
        context = replace(context, earlier_key=earlier_key)
        ledger = EffectLedger(self.store, context.run_prefix, partial(self._marked, context))

        async def ask() -> NodeReply | None:
            question = await self._ruled(context, write, tool, work)
            if question is None:
                return None
            return NodeReply(question=question)

        may_ask = context.spec.approval or self.rules.rules
        ask_first = ask if may_ask else None
        # An error after the intent would leave a doubt.
        call = await self._tool_call(context, tool, arguments)
        make = partial(self._make, context, call, write.marker)
        reply = await ledger.enter(
            write, lambda: finish(make()), ask_first, lost=context.attempts.lost
        )
        approved = context.approved
        is_changed = approved is not None and approved.args
        if not is_changed or reply.question is not None:
            return reply
        return reply.model_copy(update={"written": write.digest})

    async def _ruled(
        self, context: NodeContext, write: Write, tool: Tool, work: ToolCall
    ) -> Question | None:
        """Return what a person is to be asked about a write, with what a rule of the operator has
        decided in their place. None if the write may be made: it is approved, or it needs no
        approval and no rule asks for one.

        A rule that refuses counts for what a person has approved, too. What the rules say of these
        values is decided once for a write, and kept with the run.
        """
        question = await unapproved(context, self.store, tool, work)
        if question is not None and question.digest != write.digest:
            # What a person has changed does not hold: they are asked about the plan's own
            # values before any rule is.
            return question
        ruling = await self.rulings.of(context, write, tool)
        if ruling.decision == "refuse":
            asked = question or Question("", write.digest)
            return asked._replace(rule=ruling.rule, ruling="refuse")
        if question is None or (not ruling.decision and not context.spec.approval):
            return None
        if ruling.decision == "allow":
            return question._replace(rule=ruling.rule, ruling="allow")
        return question

    async def _make(self, context: NodeContext, work: Work, marker: str) -> NodeReply:
        """Make a write. One that returns what is not of its type was made: it is marked with
        what is wrong with it.
        """
        try:
            return await self._run(context, work, marker)
        except BadOutput as error:
            kept = await keep(self.store, context.run_prefix, error.value, [], inline=False)
            wrong = NodeError(type=kind_of(error), message=message_of(error))
            reply = kept.model_copy(update={"error": wrong})
            text = Marker(reply=reply, epoch=context.call.epoch).text()
            await self.store.mark(context.run_prefix, marker, text)
            return reply

    async def _look_up(self, context: NodeContext) -> NodeReply:
        """Return what a write that was cut off has returned. If an attempt may still be
        at it, wait for its end.
        """
        write = Write(
            context.idempotency_key,
            context.unit.path,
            digest="",
            text="",
            seconds=0,
            idempotent=False,
        )
        ledger = EffectLedger(self.store, context.run_prefix, partial(self._marked, context))
        try:
            reply = await ledger.outcome(write, any_arguments=True)
        except UnknownOutcome as error:
            return NodeReply(error=NodeError(type=kind_of(error), message=message_of(error)))
        if reply is not None:
            return reply.model_copy(update={"error": None})  # it was made, whatever it has returned
        return NodeReply(
            error=NodeError(type=NOT_WRITTEN, message="it was not begun, or had no effect")
        )

    async def ledger(self, run_prefix: str, call: LedgerCall) -> LedgerReply:
        """Return what became of all writes that have begun in a run. Safe to repeat.
        Raises StoreUnavailable.
        """
        del call
        lines = await EffectLedger(self.store, run_prefix, no_outcome).written()
        return LedgerReply(lines=tuple(lines[:MAX_LEDGER_LINES]))

    async def subagent_request(self, run_prefix: str, call: AgentNodeCall) -> SubagentRequest:
        """Return what a node's sub-agent is started with, as `bound_subagent` does."""
        return (await self.bound_subagent(run_prefix, call))[0]

    async def bound_subagent(
        self, run_prefix: str, call: AgentNodeCall
    ) -> tuple[SubagentRequest, str]:
        """Return what a node's sub-agent is started with, and what its artifacts lie below: outputs
        that its goal refers to are named in it, and given beside it. Safe to repeat. Raises
        BindError, BodyMissing, StoreUnavailable.
        """
        context = await self._context(call, call.nodes[0], call.refs, run_prefix, Attempts(1, 0))
        request = await self._bound(context)
        return request, subagent_ledger(context).run_prefix

    async def _bound(self, context: NodeContext) -> SubagentRequest:
        agent = context.work
        assert isinstance(agent, AgentCall)
        await self.origins.begin(context)
        if await context.binder.is_skipped(context.unit):
            return SubagentRequest(taken=NodeReply(skipped=True))
        taken = await self.origins.result(context)
        if taken is not None:
            return SubagentRequest(taken=taken)
        origins = await self.origins.of_subagent(context)
        ledger = EffectLedger(self.store, context.run_prefix, no_outcome)
        await ledger.note_subagent(subagent_ledger(context))
        await context.binder.load(context.unit)
        request = await subagent_request(self.library, context, agent)
        if origins:
            request["origins"] = origins
        return SubagentRequest(request=request)

    async def _context(
        self,
        call: NodeCall,
        path: str,
        refs: Refs,
        run_prefix: str,
        attempts: Attempts,
        page: StoredPlan | None = None,
    ) -> NodeContext:
        checked = page
        if checked is None:
            checked = await self.library.plan(run_prefix, call.plan)
        unit = parse_unit(path)
        materials = checked.materials.get(unit.id, {})
        binder = Binder(self.library, run_prefix, checked, call, {**materials, **refs})
        return NodeContext(checked, unit, call, binder, run_prefix, attempts)

    async def _marked(self, context: NodeContext, key: str) -> NodeReply | None:
        """Return what a marker says; one that cannot be read, or whose body is gone, is taken
        back. It is read twice before: it may have an output, and be damaged only on its way, or
        be another one by now.

        An outcome of an earlier plan is paid for already, and this plan may ask for other facts of
        it. A request for nodes counts only in the plan that it was made in.
        """
        prefix = context.run_prefix
        doubted = b""
        while True:
            text = await self.store.marked(prefix, key)
            if text is None:
                return None
            marker = Marker.read(text)
            same_plan = marker.epoch == context.call.epoch
            reply = marker.reply
            if reply.more and not same_plan:
                reply = NodeReply()
            if reply.ref is not None and await is_there(self.store, prefix, reply.ref, key, text):
                break
            if text == doubted:
                await self.store.unmark(prefix, key)
                return None
            doubted = text
        if same_plan or reply.error is not None:
            return reply
        size, output = await self.library.sized(prefix, reply.ref)
        wanted, inline = context.wanted
        fresh = reply_to(output, reply.ref, size, wanted, inline=inline)
        if not any(reply.usage):
            return fresh
        return fresh.model_copy(update={"attempt": 0, "usage": NO_USAGE})

    async def _within_timeout(self, context: NodeContext, work: Work) -> NodeOutput:
        """Return the node's output, and when the work on it began and ended. The time of the
        artifact store is not the node's.
        """
        limit = asyncio.timeout(context.seconds)
        try:
            async with limit:
                with stops_for_the_store(limit):
                    began = millis_now()
                    output = await work(limit)
                    return replace(output, span=(began, millis_now()))
        except TimeoutError as error:
            if not limit.expired():
                raise
            problem = f"no result within {context.seconds:g} s"
            if str(error):
                problem += f"; {error}"
            raise NodeTimeout(problem) from None

    async def _ready(self, context: NodeContext, tool: Tool | None) -> Work:
        """Return what gets the node's output, by its kind, with its inputs loaded. Raises
        BindError, BodyMissing, StoreUnavailable.
        """
        node, work, call = context.node, context.work, context.call
        if work is not None:
            await context.binder.load(context.unit)
        if isinstance(work, ToolCall):
            assert tool is not None
            return await self._tool_call(context, tool, context.arguments(work))
        if isinstance(work, ModelCall):
            return lambda _: self.models.run(context, work)
        if isinstance(call, AgentNodeCall):
            report = await whole_report(self.library, context.run_prefix, call.report)
            item = apart(context.checked, context.unit)
            if item is not None:
                answer = item_output(report, item) or NodeOutput(None)
            else:
                answer = answer_of(report, context.unit.path)
        else:
            answer = NodeOutput(await context.binder.value(node.id))
        if isinstance(call, AgentNodeCall):
            await take_workspaces(self.store, context, answer.output)

        async def gathered(_: asyncio.Timeout) -> NodeOutput:
            return answer

        return gathered

    async def _tool_call(
        self, context: NodeContext, tool: Tool, arguments: dict[str, Any], *, node: str = ""
    ) -> Work:
        """Return the call of a tool, which reads nothing from the store any more. It is told that
        it is of a `node`, which is that of the context unless something else is given.
        """
        agents_above = 0
        if tool.asks_agents:
            run_context = await self.library.run_context(
                context.run_prefix, context.checked.run_context
            )
            agents_above = run_context.agents_above
        warnings: list[str] = []
        spending = Spending(context.attempts)
        docs = None
        if context.checked.docs:
            docs = self.documents.folder(context.checked.docs)
        tool_context = ToolContext(
            docs=docs,
            cache=self.cache,
            run_id=context.call.run,
            node=node or context.unit.path,
            generation=context.unit.generation,
            attempt=context.attempts.number,
            idempotency_key=context.idempotency_key,
            progress=context.attempts.progress,
            warn=warnings.append,
            spent=spending.add,
            workspaces=RunWorkspaces(self.store, context.run_prefix),
            agents_above=agents_above,
        )

        async def call(limit: asyncio.Timeout) -> NodeOutput:
            context.attempts.call_anew()
            with self.timings.measure(tool.name, tool.version) as took:
                output = await tool.call(
                    arguments, tool_context, limit, isolated=context.attempts.lost
                )
            shown = tuple(one_line(redact(text), MAX_WARNING_CHARACTERS) for text in warnings)
            return NodeOutput(output, usage=spending.total, warnings=shown, millis=took.millis)

        return call

    async def _keep(self, context: NodeContext, output: NodeOutput) -> NodeReply:
        """Store an output that has no marker."""
        body = encode_output(output.output)
        reply = reply_of(context, output, digest_of(body), len(body))
        await self.store.put(context.run_prefix, body)
        return reply


def _write_marker(context: NodeContext) -> str:
    """Return the name of the marker with the outcome of a node's write."""
    return digest_of(context.idempotency_key.encode())


def _content_key(
    context: NodeContext, refs: dict[str, str], tool: Tool | None, generation: int
) -> str:
    unit = context.unit
    if generation != unit.generation:
        unit = replace(unit, generation=generation)
    version = tool.version if tool else ""
    return content_key(context.checked, unit, refs, context.call, version)
