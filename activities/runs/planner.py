"""Asks a model for a plan of the run's goal."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from sennit.activities.limits import (
    MAX_BEGINNING_CHARACTERS,
    MAX_LINE_CHARACTERS,
    MAX_PLAN_WARNINGS,
    MAX_PLANNED_NODES,
    MAX_PROMPT_PROBLEMS,
)
from sennit.activities.llm.history import Histories
from sennit.activities.llm.models import OFFLINE, Models
from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.error_mapping import kind_of, message_of
from sennit.activities.programs.reading import Read, Unreadable, ask, problem_of
from sennit.activities.prompts import planner, program, roles
from sennit.activities.prompts.hints import hints, uses_of
from sennit.activities.providers.errors import ContextTooLong
from sennit.activities.providers.model import Message, ModelReply, ModelRequest
from sennit.activities.runs.check import PlanChecker
from sennit.activities.runs.model_choice import model_problems
from sennit.activities.storage.artifacts import ArtifactStore, encode
from sennit.activities.storage.learned import LearnedStore
from sennit.activities.storage.run_context import ArtifactReader, RunContext, plan_marker
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.messages.contracts import PlanCall, PlanDraft, PlanResult
from sennit.workflows.plan.checking.validation import parse_plan
from sennit.workflows.plan.edits.prefix import PlanPrefix
from sennit.workflows.plan.language.limits import NO_USAGE
from sennit.workflows.plan.language.problems import InvalidPlan
from sennit.workflows.plan.language.references import literal
from sennit.workflows.plan.language.text import one_line, without_thoughts
from sennit.workflows.plan.learning.limits import MAX_GOAL_WORDS
from sennit.workflows.plan.learning.unused_edges import doubtful_edges, unused_edges
from sennit.workflows.plan.planner_format.lines import LineReader

log = logging.getLogger("llm")
_LINE = re.compile(r"\W*\d+\W")

Nodes = list[dict[str, Any]]
OnNodes = Callable[[Nodes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans with the providers of this worker."""

    store: ArtifactStore
    library: ArtifactReader
    models: Models
    read: Read
    learned: LearnedStore | None = None
    """What earlier runs teach, if planners are told of it."""

    async def plan(
        self, run_prefix: str, call: PlanCall, attempts: Attempts, on_nodes: OnNodes | None = None
    ) -> PlanResult:
        """Store the planner's draft, unchecked; what is wrong with its text comes beside it.
        If an earlier draft has passed its check, as before a reset of the run, it is returned,
        and no model is asked.

        While the planner writes, `on_nodes` is given batches of nodes as their lines are complete,
        in an order in which each comes after those it refers to; none after a line that is wrong,
        and at most as many as a plan may have. The draft that is returned is the authority. Raises
        ProviderError, BodyMissing, StoreUnavailable.
        """
        # A draft with problems has not passed after all, with the facts of what had begun. A
        # person may reject another.
        if not call.problems and not call.rejections:
            known = await self._known(run_prefix, call.run_context)
            if known is None:
                known = await self._taken_over(run_prefix, call)
            if known is not None:
                return known

        # What the planner is told.
        run_context = await self.library.run_context(run_prefix, call.run_context)
        material = await self.library.material(run_prefix, run_context)
        tools = {entry["name"]: entry["schema"] for entry in run_context.catalogue}
        writes = [entry["name"] for entry in run_context.catalogue if entry["effect"] == "write"]
        in_program = self.models.plan_format == "program"
        settings = run_context.settings_of("planner")
        facts = _facts(call, run_context)
        prompt = planner.prompt(
            run_context.goal,
            material,
            in_program=in_program,
            facts=facts,
            continues=bool(run_context.history),
            hints=await self._hints(run_prefix, call, run_context),
        )
        system = planner.system(run_context.catalogue)
        if in_program:
            system = program.system(run_context.catalogue)
            on_nodes = None  # a script says nothing of its nodes before it runs
        own = (settings.system, run_context.instructions)

        # Nodes start while the planner still writes.
        early = _Stream(LineReader(tools, writes=writes), on_nodes)
        async with _streaming(early) as stream:
            writing = _Writing(attempts.progress, stream)
            request = ModelRequest(
                role="planner",
                model="",
                goal=planner.fill_goal(run_context.goal, material),
                prompt=roles.with_fault(prompt, attempts.fault),
                template=run_context.goal,
                tools=tuple(run_context.catalogue),
                system=_with_own(own, system),
                settings=settings,
                max_output_tokens=settings.max_tokens,
                messages=await self._repair(run_prefix, call, run_context),
                progress=writing.progress,
                account=attempts,
                on_text=writing.take,
            )
            names = run_context.models.get("planner") or OFFLINE
            reply, told = await self._reply(
                request, names, attempts.number, run_prefix, run_context.history
            )

        # What the reply says as a plan.
        if isinstance(reply.output, dict):  # the rules give a plan, not text
            return await self._planned(run_prefix, reply, reply.output)
        shown = await self._shown(run_prefix, reply.text)
        if in_program:
            goal = "$goal"
            if material:
                goal = literal(planner.fill_goal(run_context.goal, material))
            models = set[str]().union(*run_context.models.values())
            plan, problems = await self._program(reply, goal, list(tools), sorted(models))
            return await self._planned(
                run_prefix, reply, plan, problems=problems, warnings=told, **shown
            )
        reader = _read(reply, LineReader(tools, writes=writes))
        problems = _problems(reply, reader)
        if not problems:
            nodes = reader.plan["nodes"]
            problems = await model_problems(self.read, nodes, run_context.models)
        notes = self.models.notes(run_context.models.get("planner", ()))
        warnings = (*reader.warnings[:MAX_PLAN_WARNINGS], *notes, *told)
        return await self._planned(
            run_prefix, reply, reader.plan, problems=problems, warnings=warnings, **shown
        )

    async def _reply(
        self, request: ModelRequest, names: Sequence[str], attempt: int, run_prefix: str, turns: str
    ) -> tuple[ModelReply, tuple[str, ...]]:
        """Return the reply to a request with the turns before the run, and what people are told of
        it. A call that is too long teaches how long the context is, and is made once more.
        """
        histories = Histories(self.models, self.library)
        known = self.models.context(names)
        history = await histories.before(request, names, run_prefix, turns)
        try:
            reply = await self.models.complete(
                replace(request, history=history.turns), names, attempt
            )
        except ContextTooLong:
            if not turns or self.models.context(names) == known:
                raise
            history = await histories.before(request, names, run_prefix, turns)
            reply = await self.models.complete(
                replace(request, history=history.turns), names, attempt
            )
        return reply, (*history.warnings, *reply.warnings)

    async def _shown(self, run_prefix: str, wrote: str) -> dict[str, str]:
        """Return the stored text of a reply without thoughts, and what people see
        of it if the plan fails.
        """
        said = without_thoughts(wrote)
        text = await self.store.put(run_prefix, encode(said))
        beginning = one_line(said.strip() or wrote, MAX_BEGINNING_CHARACTERS)
        return {"text": text, "beginning": mask(beginning)}

    async def _program(
        self, reply: ModelReply, goal: str, tools: list[str], models: list[str]
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the plan of a planner's script, and what keeps it from being worth checking."""
        try:
            plan, problems = await ask(
                self.read, "planned", reply.text, goal, tools, models, reply.stop
            )
        except Unreadable as error:
            return {"nodes": []}, [str(problem_of(error))]
        return plan, problems

    async def _planned(
        self,
        run_prefix: str,
        reply: ModelReply,
        plan: dict[str, Any],
        *,
        problems: Sequence[str] = (),
        **fields: Any,
    ) -> PlanResult:
        shown = list(problems[:MAX_PROMPT_PROBLEMS])
        left_out = len(problems) - len(shown)
        if left_out:
            shown.append(f"... and {left_out} more")
        draft = await self.store.put(run_prefix, encode(plan))  # people read arguments as written
        planned = PlanResult(draft=draft, usage=reply.usage, problems=tuple(shown), **fields)
        if not problems:
            body = planned.model_dump_json().encode()
            await self.store.mark(run_prefix, plan_marker(draft), body)
        return planned

    async def _known(self, run_prefix: str, run_context: str) -> PlanResult | None:
        """Return the reply whose draft has passed its check, if the store has all of it."""
        draft = await self.store.marked(run_prefix, plan_marker(run_context)) or b""
        reply = await self.store.marked(run_prefix, plan_marker(draft.decode()))
        if reply is None:
            return None
        known = PlanResult.model_validate_json(reply)
        for digest in (known.draft, known.text):
            if digest and not await self.store.has(run_prefix, digest):
                return None
        return known

    async def _taken_over(self, run_prefix: str, call: PlanCall) -> PlanResult | None:
        """Return the reply with which a run that this one forks has begun, with all
        of it stored here too.
        """
        for origin in call.origins:
            home = f"{run_prefix.rpartition('/')[0]}/{origin}"
            known = await self._known(home, call.run_context)
            if known is not None:
                for digest in filter(None, (known.draft, known.text)):
                    body = await self.store.get(home, digest)
                    await self.store.put(run_prefix, body)
                return known.model_copy(update={"usage": NO_USAGE})
        return None

    async def _repair(
        self, run_prefix: str, call: PlanCall, run_context: RunContext
    ) -> tuple[Message, ...]:
        if not call.problems and not call.rejections:
            return ()
        text = await self.library.value(run_prefix, call.text)
        if not call.problems:
            return planner.rejection_messages(text, call.rejections[-1])
        draft = await self.library.value(run_prefix, call.draft)
        nodes: Sequence[Any] = ()
        if isinstance(draft, dict):
            nodes = draft.get("nodes") or ()
        ids = [str(node.get("id")) for node in nodes if isinstance(node, dict)]
        unused = await self._unused_edges(run_prefix, call, run_context, draft)
        return planner.repair_messages(text, (*call.problems, *unused), ids)

    async def _hints(self, run_prefix: str, call: PlanCall, run_context: RunContext) -> str:
        """Return what earlier runs of this tenant teach about plans for this goal;
        "" if nothing is known.
        """
        if self.learned is None:
            return ""
        namespace = run_prefix.rpartition("/")[0]
        known = await self.learned.hints(namespace, call.tenant)
        if not known.table.runs:
            return ""
        # The plans are lines, and would lead to another form.
        if self.models.plan_format == "program":
            return hints(known.table, run_context.catalogue, ())
        marks = await self.learned.marks(namespace)
        words = marks.words(run_context.goal, MAX_GOAL_WORDS)
        return hints(known.table, run_context.catalogue, words)

    async def _unused_edges(
        self, run_prefix: str, call: PlanCall, run_context: RunContext, draft: Any
    ) -> tuple[str, ...]:
        """Return warnings of edges in a draft that earlier runs have used for nothing: it
        is written again anyway.
        """
        if self.learned is None:
            return ()
        try:
            plan = parse_plan(draft)
        except InvalidPlan:
            return ()
        if not doubtful_edges(plan):
            return ()
        namespace = run_prefix.rpartition("/")[0]
        known = await self.learned.hints(namespace, call.tenant)
        uses = uses_of(known.table, run_context.catalogue)
        unused = unused_edges(plan, uses, run_context.tools)
        return tuple(map(str, unused))[:MAX_PLAN_WARNINGS]


def _with_own(own: Sequence[str | None], system: str) -> str:
    """Return a planner's system prompt below what settings and instructions say: how
    plans are written stays.
    """
    return "\n\n".join([*filter(None, own), system])


def _facts(call: PlanCall, run_context: RunContext) -> list[str]:
    """Return what a planner is told of the run, in sentences."""
    facts: list[str] = []
    if call.today:
        day = date.fromisoformat(call.today)
        facts.append(f"Today is {day:%a}, {call.today}.")
    if run_context.docs:
        facts.append(f"The folder of documents is `{Path(run_context.docs).name}`.")
    if run_context.attached:
        files = ", ".join(f"{media.name} ({media.kind})" for media in run_context.attached)
        facts.append(
            f"Attached to the goal: {files}. A call of a model whose prompt has `$goal` in it is "
            "shown these files, and so is the call that answers. You are not, and tools cannot "
            "read them."
        )
    if call.rejections:
        said = "; ".join(f'"{one_line(words)}"' for words in call.rejections)
        facts.append(
            "A person reads each plan before it runs. They have rejected earlier ones, and said: "
            f"{said}."
        )
    if call.budget is not None:
        limits = call.budget.model_dump(mode="json", exclude_none=True)
        parts = [f"{name} {limit}" for name, limit in limits.items()]
        facts.append(f"The run may spend: {', '.join(parts)}.")
    return facts


def _read(reply: ModelReply, reader: LineReader) -> LineReader:
    """Return a reader that has read a whole reply."""
    reader.feed(reply.text)
    reader.close()
    return reader


def _problems(reply: ModelReply, reader: LineReader) -> list[str]:
    """Return what keeps a planner's text from being a whole plan that is worth checking."""
    if reply.stop == "length":
        return ["the plan was cut off because it is too long; write fewer lines"]
    nodes, errors = reader.plan.get("nodes"), reader.errors
    if not errors and isinstance(nodes, list) and len(nodes) > MAX_PLANNED_NODES:
        more = "put alike calls into one `map`, and leave out what the goal does not need"
        return [
            (
                f"the plan has {len(nodes):,} nodes; at most {MAX_PLANNED_NODES} are planned for "
                f"one goal: {more}"
            )
        ]
    return errors


@dataclass(slots=True)
class _Writing:
    """What people see while a planner writes: the last whole line of its plan,
    and how fast it writes.
    """

    report: Callable[[str], None]
    stream: "_Stream"
    line: str = ""
    rest: str = ""

    def take(self, text: str) -> None:
        *lines, self.rest = f"{self.rest}{text}".split("\n")
        for line in lines:
            if _LINE.match(line):
                self.line = one_line(line, MAX_LINE_CHARACTERS)
        self.stream.take(text)

    def progress(self, words: str) -> None:
        if self.line:
            words = f"{self.line} · {words}"
        self.report(words)


@dataclass(slots=True)
class _Stream:
    """Nodes between the model that writes them and whoever may start them. Once some turn out to be
    none of the plan, no more are started before the whole.
    """

    reader: LineReader
    on_nodes: OnNodes | None
    ready: Nodes = field(default_factory=list)
    count: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, text: str) -> None:
        if self.on_nodes is not None:
            self._give(self.reader.feed(text))

    def _give(self, nodes: Nodes) -> None:
        if nodes and not self.reader.restarted:
            self.ready += nodes[: MAX_PLANNED_NODES - self.count]
            self.count += len(nodes)
            self.arrived.set()

    async def send(self) -> None:
        """Give away what is ready, as long as the block goes on; what comes
        meanwhile is the next batch.
        """
        while True:
            await self.arrived.wait()
            self.arrived.clear()
            batch, self.ready = self.ready, []
            if batch and self.on_nodes is not None:
                await self.on_nodes(batch)


@asynccontextmanager
async def _streaming(stream: _Stream) -> AsyncIterator[_Stream]:
    """Give a stream whose nodes go to `on_nodes` at once; its failure ends
    nothing but the streaming.
    """
    sender = asyncio.create_task(stream.send())
    try:
        yield stream
    finally:
        sender.cancel()
        await asyncio.wait([sender])
        if not sender.cancelled():
            error = sender.exception()
            if error is not None:
                reason = f"{kind_of(error)}: {message_of(error)}"
                log.warning(
                    "no further nodes start while the planner writes, but those of the whole "
                    "plan: %s",
                    reason,
                )


@dataclass(slots=True)
class PlanStreamer:
    """What of one attempt's plan may run already. `send` gives it to the run, in parts."""

    checker: PlanChecker
    run_prefix: str
    call: PlanCall
    attempt: int
    send: Callable[[PlanDraft], Awaitable[None]]
    _prefix: PlanPrefix = field(default_factory=PlanPrefix)
    _sent: int = 0
    _plan: str = ""

    @property
    def has_begun(self) -> bool:
        """Whether the run may have begun with a part of the plan, sent by this
        attempt or one before.
        """
        return self._sent > 0 or self.attempt > 1

    async def add(self, nodes: list[dict[str, Any]]) -> None:
        """Take further nodes as the planner has written them; send when more
        of the plan may start.
        """
        run_context = self.call.run_context
        masked = mask(nodes)
        page = await self.checker.begin(
            self.run_prefix, run_context, self._prefix, masked, self._plan
        )
        if page is not None:
            self._sent += 1
            self._plan = page.plan
            draft = PlanDraft(
                run=self.call.run, attempt=self.attempt, sequence=self._sent, page=page
            )
            await self.send(draft)
