"""Asks a model for a plan of the run's goal."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from activities.llm.call import OFFLINE
from activities.llm.models import Models
from activities.nodes.attempts import Attempts
from activities.prompts import planner, program, roles
from activities.prompts.plan_schema import plan_schema
from activities.providers import Message, ModelReply, ModelRequest, ReplyForm
from activities.runs.check import PlanChecker
from activities.runs.model_choice import disallowed_models
from activities.storage.artifacts import ArtifactStore, encode
from activities.storage.run_context import ArtifactReader, plan_marker
from activities.toolbox.redaction import mask
from workflows.messages.contracts import PlanCall, PlanDraft, PlanResult
from workflows.plan.edits.prefix import PlanPrefix
from workflows.plan.language.limits import NO_USAGE
from workflows.plan.language.references import literal
from workflows.plan.language.text import one_line, without_thoughts
from workflows.plan.planner_format.lines import LineReader
from workflows.plan.programs.reply import UnreadableProgram, planned_problems, program_plan_of, script_in
from workflows.plan.programs.syntax import problems_in

MAX_PROBLEMS = 20
MAX_WARNINGS = 5
LINE_CHARACTERS = 120
_LINE = re.compile(r"\W*(?:calls\W+)?(?:n\W+)?\d+\W")
_LINE_ENDS = re.compile(r'\n|,(?=\s*\{\s*"n"\s*:)')

Nodes = list[dict[str, Any]]
OnNodes = Callable[[Nodes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans with the providers of this worker."""

    store: ArtifactStore
    library: ArtifactReader
    models: Models

    async def plan(
        self, run_prefix: str, call: PlanCall, attempts: Attempts, on_nodes: OnNodes | None = None
    ) -> PlanResult:
        """Store the planner's draft, unchecked; what is wrong with its text comes beside it. If an earlier draft has
        passed its check, as before a reset of the run, it is returned, and no model is asked.

        While the planner writes, `on_nodes` is given batches of nodes as their lines are complete, in an order in which
        each comes after those it refers to; none after a line that is wrong, and at most as many as a plan may have.
        The draft that is returned is the authority. Raises ProviderError, BodyMissing, StoreUnavailable.
        """
        known = await self._known(run_prefix, call.run_context) or await self._taken_over(run_prefix, call)
        if known is not None:
            return known
        run_context = await self.library.run_context(run_prefix, call.run_context)
        given = await self.library.given(run_prefix, run_context)
        tools = {entry["name"]: entry["schema"] for entry in run_context.catalogue}
        writes = [entry["name"] for entry in run_context.catalogue if entry["effect"] == "write"]
        in_program = self.models.plan_format == "program"
        async with _streaming(LineReader(tools, writes=writes), None if in_program else on_nodes) as on_text:
            writing = _Writing(attempts.progress, on_text)
            request = ModelRequest(
                role="planner",
                model="",
                goal=planner.fill_goal(run_context.goal, given),
                prompt=roles.with_fault(planner.prompt(run_context.goal, given, in_program=in_program), attempts.fault),
                template=run_context.goal,
                tools=tuple(run_context.catalogue),
                system=(program if in_program else planner).system(run_context.catalogue),
                form=self._form(run_context.catalogue),
                messages=await self._repair(run_prefix, call),
                progress=writing.progress,
                account=attempts,
                on_text=writing.take,
            )
            reply = await self.models.complete(request, run_context.models.get("planner") or OFFLINE, attempts.own)
        if isinstance(reply.output, dict):  # the rules give a plan, not text
            return await self._planned(run_prefix, reply, reply.output)
        text = await self.store.put(run_prefix, encode(without_thoughts(reply.text)))
        if in_program:
            goal = literal(planner.fill_goal(run_context.goal, given)) if given else "$goal"
            plan, problems = _program(reply, goal, tools, run_context.models)
            return await self._planned(run_prefix, reply, plan, text=text, problems=problems)
        reader = LineReader(tools, writes=writes)
        reader.feed(reply.text)
        reader.close()
        problems = _problems(reply, reader) or disallowed_models(reader.plan["nodes"], run_context.models)
        warnings = tuple(reader.warnings[:MAX_WARNINGS])
        return await self._planned(run_prefix, reply, reader.plan, text=text, problems=problems, warnings=warnings)

    def _form(self, catalogue: Sequence[dict[str, Any]]) -> ReplyForm | None:
        if self.models.plan_format != "json":
            return None
        return ReplyForm(plan_schema(catalogue), planner.system(catalogue, in_json=True), required=True)

    async def _planned(
        self, run_prefix: str, reply: ModelReply, plan: dict[str, Any], *, problems: Sequence[str] = (), **fields: Any
    ) -> PlanResult:
        left_out = len(problems) - MAX_PROBLEMS
        shown = (*problems[:MAX_PROBLEMS], *([f"... and {left_out} more"] if left_out > 0 else []))
        draft = await self.store.put(run_prefix, encode(plan, canonical=False))  # people read arguments as written
        planned = PlanResult(draft=draft, usage=reply.usage, problems=shown, **fields)
        if not problems:
            await self.store.mark(run_prefix, plan_marker(draft), planned.model_dump_json().encode())
        return planned

    async def _known(self, run_prefix: str, run_context: str) -> PlanResult | None:
        """Return the reply whose draft has passed its check, if the store has all of it."""
        draft = await self.store.marked(run_prefix, plan_marker(run_context)) or b""
        reply = await self.store.marked(run_prefix, plan_marker(draft.decode()))
        known = PlanResult.model_validate_json(reply) if reply is not None else None
        bodies = [digest for digest in (known.draft, known.text) if digest] if known is not None else []
        return known if all([await self.store.has(run_prefix, digest) for digest in bodies]) else None

    async def _taken_over(self, run_prefix: str, call: PlanCall) -> PlanResult | None:
        """Return the reply with which a run that this one forks has begun, with all of it stored here too."""
        for origin in call.origins:
            home = f"{run_prefix.rpartition('/')[0]}/{origin}"
            known = await self._known(home, call.run_context)
            if known is not None:
                for digest in filter(None, (known.draft, known.text)):
                    await self.store.put(run_prefix, await self.store.get(home, digest))
                return known.model_copy(update={"usage": NO_USAGE})
        return None

    async def _repair(self, run_prefix: str, call: PlanCall) -> tuple[Message, ...]:
        if not call.problems:
            return ()
        draft = await self.library.value(run_prefix, call.draft)
        nodes = draft.get("nodes") if isinstance(draft, dict) else None
        ids = [str(node.get("id")) for node in nodes or () if isinstance(node, dict)]
        return planner.repair_messages(await self.library.value(run_prefix, call.text), call.problems, ids)


def _program(
    reply: ModelReply, goal: str, tools: Mapping[str, Any], models: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Any], list[str]]:
    """Return the plan of a planner's script, and what keeps it from being worth checking: then all that is wrong."""
    if reply.stop == "length":
        cut = "the script was cut off because it is too long; write a shorter one"
        return program_plan_of(reply.text, goal), [cut]
    try:
        script = script_in(reply.text)
    except UnreadableProgram as error:
        return program_plan_of(reply.text, goal), [str(error)]
    problems = [*planned_problems(script, {name for names in models.values() for name in names})]
    more = problems_in(script, tools) if problems else ()
    return program_plan_of(script, goal), [*problems, *map(str, more)]


def _problems(reply: ModelReply, reader: LineReader) -> list[str]:
    """Return what keeps a planner's text from being a whole plan that is worth checking."""
    if reply.stop == "length":
        return ["the plan was cut off because it is too long; write fewer lines"]
    nodes, errors = reader.plan.get("nodes"), reader.errors
    if not errors and isinstance(nodes, list) and len(nodes) > planner.MOST_NODES:
        more = "put alike calls into one `map`, and leave out what the goal does not need"
        return [f"the plan has {len(nodes):,} nodes; at most {planner.MOST_NODES} are planned for one goal: {more}"]
    return errors


@dataclass(slots=True)
class _Writing:
    """What people see while a planner writes: the last whole line of its plan, and how fast it writes."""

    report: Callable[[str], None]
    pass_on: Callable[[str], None]
    line: str = ""
    rest: str = ""

    def take(self, text: str) -> None:
        *lines, self.rest = _LINE_ENDS.split(f"{self.rest}{text}")
        self.line = next((one_line(line, LINE_CHARACTERS) for line in reversed(lines) if _LINE.match(line)), self.line)
        self.pass_on(text)

    def progress(self, words: str) -> None:
        self.report(f"{self.line} · {words}" if self.line else words)


@dataclass(slots=True)
class _Stream:
    """Nodes between the model that writes them and whoever may start them."""

    reader: LineReader
    on_nodes: OnNodes
    ready: Nodes = field(default_factory=list)
    count: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, text: str) -> None:
        nodes = self.reader.feed(text)
        if not self.reader.restarted:
            self.ready += nodes[: planner.MOST_NODES - self.count]
            self.count += len(nodes)
        if self.ready:
            self.arrived.set()

    async def send(self) -> None:
        """Give away what is ready, as long as the block goes on; what comes meanwhile is the next batch."""
        while True:
            await self.arrived.wait()
            self.arrived.clear()
            batch, self.ready = self.ready, []
            if batch:
                await self.on_nodes(batch)


@asynccontextmanager
async def _streaming(reader: LineReader, on_nodes: OnNodes | None) -> AsyncIterator[Callable[[str], None]]:
    """Give a sink for text whose nodes go to `on_nodes` at once; its failure ends nothing but the streaming."""
    if on_nodes is None:
        yield lambda _: None
        return
    stream = _Stream(reader, on_nodes)
    sender = asyncio.create_task(stream.send())
    try:
        yield stream.take
    finally:
        sender.cancel()
        await asyncio.wait([sender])
        if not sender.cancelled():
            sender.exception()  # seen here, so that nobody logs it: the draft itself comes whole all the same


@dataclass(slots=True)
class PlanStreamer:
    """What of one attempt's plan may run already. `send` gives it to the run; each one holds those before."""

    checker: PlanChecker
    run_prefix: str
    call: PlanCall
    attempt: int
    send: Callable[[PlanDraft], Awaitable[None]]
    _prefix: PlanPrefix = field(default_factory=PlanPrefix)
    _sent: int = 0

    async def add(self, nodes: list[dict[str, Any]]) -> None:
        """Take further nodes as the planner has written them; send when more of the plan may start."""
        checked = await self.checker.begin(self.run_prefix, self.call.run_context, self._prefix, mask(nodes))
        if checked is not None:
            self._sent += 1
            found = {"plan": checked.plan, "execution_plan": checked.execution_plan}
            await self.send(PlanDraft(run=self.call.run, attempt=self.attempt, sequence=self._sent, **found))
