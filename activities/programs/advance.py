"""One advance of a program: feed what has ended, run the script until it waits, and put its calls on a page."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, groupby
from operator import attrgetter
from typing import Any

from sennit.activities.limits import (
    MAX_PROGRAM_MESSAGE_CHARACTERS,
    MAX_READ_BYTES,
    MAX_SOURCE_CHARACTERS,
    MAX_VALUE_BYTES,
)
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import CallFailed, OutputRefused, ProgramFailed, kind_of, message_of
from sennit.activities.nodes.replies import encode_output, reply_to
from sennit.activities.nodes.short_calls import MakeCall, Recorded, ShortCalls
from sennit.activities.programs.interpreter import Interpreter, SnapshotLost
from sennit.activities.programs.material import whole_of
from sennit.activities.programs.pages import Compiler, page_of, part_of, taken_over
from sennit.activities.programs.session import (
    Counts,
    Fed,
    Session,
    Shape,
    begin,
    begin_task,
    history,
    load,
    note_moved,
    note_told,
    takes_over,
)
from sennit.activities.programs.values import Advance, Ended, Ref, ScriptError, packed, unpacked
from sennit.activities.programs.words import Surroundings, Words
from sennit.activities.storage.artifacts import digest_of, encode
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.workflows.messages import queues
from sennit.workflows.messages.contracts import NodeError, NodeReply
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.nodes import Node, ProgramNode, Step, ToolNode
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.limits import MAX_LOSS_CHARACTERS, MAX_MANIFEST_BYTES
from sennit.workflows.plan.programs.source import as_known, cause_in, line_text, place_in

_PIPELINE = "__pipeline"
JOIN_FAILED = "JoinFailed: "


@dataclass(frozen=True, slots=True)
class Programs:
    """Advances programs on this worker."""

    library: ArtifactReader
    interpreter: Interpreter
    compiler: Compiler
    providers: tuple[str, ...]

    async def advance(
        self, context: NodeContext, make: MakeCall | None = None, recorded: Recorded | None = None
    ) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for.

        While it waits for nothing but short calls, it may `make` these here and go on. If it ends then, that is the end
        of the next step: this one has made the calls before. In a fork it hands over how calls have ended that are
        `recorded` in the runs that are forked, so that the next step tells them in the order that they had there.
        Nothing is kept of an advance that fails: the same one may be made again with other results. Raises CallFailed,
        ProgramFailed, InterpreterCrashed, StepAlone, BindError, BodyMissing, StoreUnavailable.
        """
        node, prefix = context.node, context.run_prefix
        assert isinstance(node, ProgramNode)
        assert isinstance(context.call, ProgramNodeCall)
        session = await self._session(context, node)
        run_context = await self.library.run_context(prefix, context.checked.run_context)
        script = await self.library.shared(prefix, session.script)
        tools = {entry["name"]: entry for entry in run_context.catalogue}
        around = Surroundings(
            script, tools, self.providers, context.call.left, partial(self.interpreter.classes, script), prefix
        )
        words = Words(session, await Counts.of(session, self.library, prefix), around)
        progress = await self._run(context, node, words, around)
        log = list(session.log(progress.printed))
        if not progress.snapshot:
            return NodeOutput(await self._value(prefix, words, progress, log), at=progress.clock, log=tuple(log))
        self._wait(words, progress)
        made, ends = dict[str, NodeSpec](), dict[str, NodeReply]()
        end: NodeReply | None = None
        part = partial(part_of, self.compiler, context, run_context, words)
        sleeps = min(session.open) < 0  # and is told so before what ends later
        if takes_over(session, context):
            ends = await taken_over(part(words.nodes), words, recorded) if recorded is not None else {}
        elif make is not None and context.call.fuse != "off" and not (session.again or sleeps):
            calls = ShortCalls(make, context.call, queues.TOOLS)
            try:
                progress, end = await self._go_on(context, words, progress, calls, part, log)
            finally:
                await calls.close()
            made, ends = calls.specs, calls.ends
        session.keep(progress.snapshot)
        step = await self._next_step(context, words)
        if end is not None:
            ends[step.id] = end
        page = await page_of(self.library, self.compiler, context, run_context, words, step, made, ends)
        return NodeOutput(None, more="program", page=page, log=tuple(log))

    async def _go_on(
        self,
        context: NodeContext,
        words: Words,
        progress: Advance,
        calls: ShortCalls,
        part: Callable[[Sequence[Node]], StoredPlan],
        log: list[str],
    ) -> tuple[Advance, NodeReply | None]:
        """Make short calls, and tell the script how they end, as long as it waits for nothing else. Return where it
        waits then, with what it has logged until then in `log`. If it has come to its end, return where it waited
        before, and that.
        """
        seen, prefix = 0, context.run_prefix
        for turn in count(1):
            calls.give_up(words.given_up)
            calls.begin(part(words.nodes[seen:]))
            seen = len(words.nodes)
            names = await calls.next([call.node for call in words.session.open.values()])
            if not names:
                break
            before, made, given_up = words.session.standing(), len(words.nodes), len(words.given_up)
            ended = await self._called(prefix, words.session, calls, names, turn)
            later = await self.interpreter.resume(progress.snapshot, ended, words.answer)
            printed = words.session.log(later.printed)
            if not later.snapshot:
                end = await self._end(prefix, words, later, printed)
                words.session.go_back(before)
                del words.nodes[made:], words.given_up[given_up:]
                return progress, end
            log += printed
            progress = later
            self._wait(words, progress)
        return progress, None

    async def _called(
        self, prefix: str, session: Session, calls: ShortCalls, names: Sequence[str], turn: int
    ) -> dict[int, Ended]:
        """Return what the script is told of these calls, which have ended here."""
        numbers, ends = {call.node: number for number, call in session.open.items()}, dict[int, Fed]()
        for name in names:
            reply, key = calls.ends[name], session.open[numbers[name]].key
            if len(reply.ref or "") > MAX_MANIFEST_BYTES:
                whole = await self.library.value(prefix, reply.ref or "")
                reply = calls.ends[name] = reply.model_copy(update={"ref": await self.library.put(prefix, whole)})
            await note_moved(self.library, prefix, key, calls.moved.get(name, 0), reply.at)
            if reply.error is not None:
                error = f"{reply.error.type}: {reply.error.message}"[:MAX_LOSS_CHARACTERS]
                ends[numbers[name]] = Fed(key, "", "failed", error, reply.at, turn)
            else:
                ends[numbers[name]] = Fed(key, reply.ref or "", at=reply.at, turn=turn)
        ends = dict(sorted(ends.items(), key=lambda each: (each[1].at, each[0])))
        return await self._ended(prefix, session, ends)

    def _wait(self, words: Words, progress: Advance) -> None:
        """Note what a script waits for, and what it waits for no longer. Raises ProgramFailed if that is nothing."""
        session, waits = words.session, dict.fromkeys(progress.waits)
        words.given_up += [call.node for number, call in session.open.items() if number not in waits]
        words.wake(progress.sleep)
        session.keep_open(waits)
        if not session.open:
            raise ProgramFailed("the script waits for nothing that can end")

    async def _value(self, prefix: str, words: Words, progress: Advance, log: Sequence[str]) -> Any:
        """Return what a script that has ended gives. Raises CallFailed, ProgramFailed."""
        session = words.session
        if progress.error is not None:
            failure = failure_of(progress.error, session, words.around.script)
            failure.log = tuple(log)
            raise failure
        _nothing_unwritten(words)
        return packed(progress.value) if session.depth else await whole_of(self.library, prefix, progress.value)

    async def _end(self, prefix: str, words: Words, progress: Advance, log: tuple[str, ...]) -> NodeReply:
        """Return how a step has ended that follows another one in the same activity."""
        try:
            value = await self._value(prefix, words, progress, log)
            body = encode_output(value)
        except (CallFailed, ProgramFailed, OutputRefused) as error:
            return NodeReply(error=NodeError(type=kind_of(error), message=message_of(error)), log=log)
        await self.library.put_all(prefix, [body])
        reply = reply_to(value, digest_of(body), len(body), [], inline=not words.session.depth)
        return reply.model_copy(update={"at": progress.clock, "log": log})

    async def _session(self, context: NodeContext, node: ProgramNode) -> Session:
        """Return where the program stands, ready for this step."""
        prefix, name, generation = context.run_prefix, context.address.id, context.address.generation
        is_taken = False
        if node.step is None:
            await context.binder.load(node, context.address)
            arguments = context.binder.bound(dict(node.arguments))
            script = await self.library.put(prefix, node.script)
            session = Session(script=script, function="main", arguments=packed(arguments), key=name)
            await begin(session, self.library, context)
            session.before = await self.library.put(prefix, session.model_dump(mode="json", exclude_defaults=True))
            is_taken = any(other.id.startswith(f"{name}_") for other in context.checked.plan.nodes)
        else:
            session = await load(self.library, prefix, node.step.session)
            session.before, session.number = node.step.session, node.step.number
            session.fed, session.noted = [], []
        assert isinstance(context.call, ProgramNodeCall)
        if session.number == 1:
            session.since = context.call.since or session.since
            await begin_task(session, self.library, context)
        session.again |= context.call.repeats
        if generation > 1 or is_taken:
            session.begin(name, mark=f"{name}~{generation}")
        elif session.number == 1:
            session.begin(name)
        return session

    async def _run(self, context: NodeContext, node: ProgramNode, words: Words, around: Surroundings) -> Advance:
        session, prefix = words.session, context.run_prefix
        if session.number == 1:
            return await self._start(session, words)
        ends = {number: end for number, call in session.open.items() if (end := _end_of(context, call.node, call.key))}
        ends = dict(sorted(ends.items(), key=lambda each: (each[1].at, each[0])))
        await note_told(session, self.library, context)
        opened, fed = dict(session.open), dict(ends)
        ended = await self._ended(prefix, session, ends)
        resume = partial(self.interpreter.resume, answer=words.answer, since=session.since)
        try:
            progress = await resume(session.where(), ended)
        except SnapshotLost:
            assert node.step is not None
            snapshot, numbers = await self._again(prefix, node.step.session, around)
            session.open = {numbers[call.key]: call for call in session.open.values()}
            opened = {numbers[call.key]: call for call in opened.values()}
            fed = {numbers[end.key]: end for end in fed.values()}
            ended = dict(zip(fed, ended.values(), strict=True))
            progress = await resume(snapshot, ended)
        for number in progress.left:
            session.open[number] = opened[number]
            session.fed.remove(fed[number])
        return progress

    async def _start(self, session: Session, words: Words) -> Advance:
        source, function = entry_of(words.around.script, session)
        arguments, session.arguments = unpacked(session.arguments), {}
        runs = session.runs or [(0, words.around.run)]
        start = partial(self.interpreter.start, runs=runs, clock=session.clock)
        return await start(source, function, arguments, words.answer, session.key)

    async def _ended(self, prefix: str, session: Session, ends: dict[int, Fed]) -> dict[int, Ended]:
        """Return what the script is told of calls that have ended, in order, and note it in the session."""
        numbers = list(ends)
        found = await asyncio.gather(*(self._output(prefix, ends[number]) for number in numbers))
        ended = {}
        for number, (size, value) in zip(numbers, found, strict=True):
            end = ends[number]
            shape = session.open.pop(number).shape
            session.read += size if shape != "ref" else 0
            session.fed.append(end)
            ended[number] = answer = replace(_ended_of(session, end, shape, size, value), at=end.at)
            if answer.error is not None:
                session.fail(": ".join(answer.error))
        return ended

    async def _output(self, prefix: str, end: Fed) -> tuple[int, Any]:
        return await self.library.sized(prefix, end.ref) if end.ref else (0, None)

    async def _again(self, prefix: str, digest: str, around: Surroundings) -> tuple[bytes, dict[str, int]]:
        """Run the script from its start over what is recorded, and return where it waits, with the numbers of its open
        calls by their keys. Raises ProgramFailed if it makes other calls than it made.
        """
        session, begun, *steps = await history(self.library, prefix, await load(self.library, prefix, digest))
        session.node, session.stems, session.clock = begun.node, begun.stems, begun.clock
        noted = [value for step in (begun, *steps) for value in step.noted]
        words = Words(session, Counts(session, []), around, noted)
        progress = await self._start(session, words)
        last = (begun, *steps)[-1]
        turns = [list(fed) for step in (begun, *steps) for _, fed in groupby(step.fed, attrgetter("turn"))]
        for turn in turns:
            words.wake(progress.sleep)
            session.keep_open(progress.waits)
            numbers = {call.key: number for number, call in session.open.items()}
            if not progress.snapshot or any(end.key not in numbers for end in turn):
                raise ProgramFailed("run again from its start, the script makes other calls than it made")
            ended = await self._ended(prefix, session, {numbers[end.key]: end for end in turn})
            progress = await self.interpreter.resume(progress.snapshot, ended, words.answer)
        words.wake(progress.sleep)
        session.keep_open(progress.waits)
        numbers = {call.key: number for number, call in session.open.items()}
        if not progress.snapshot or sorted(numbers) != sorted(call.key for call in last.open.values()):
            raise ProgramFailed("run again from its start, the script makes other calls than it made")
        return progress.snapshot, numbers

    async def _next_step(self, context: NodeContext, words: Words) -> ProgramNode:
        """Store where the script waits with all that its calls need, and return the step that goes on from there."""
        session = words.session
        body = words.counts.put_away()
        state = encode(session.model_dump(mode="json", exclude_defaults=True), canonical=True)
        await self.library.put_all(context.run_prefix, [*words.bodies.values(), *([body] if body else []), state])
        return ProgramNode(
            id=session.step_id,
            kind="program",
            step=Step(number=session.number + 1, node=context.address.id, session=digest_of(state)),
            inputs=tuple(call.node for call in session.open.values()),
        )


def _nothing_unwritten(words: Words) -> None:
    """Raise ProgramFailed if the script has ended with writes that it began since it last waited: they never start."""
    tools = words.around.tools
    lost = [
        node for node in words.nodes if isinstance(node, ToolNode) and tools.get(node.tool, {}).get("effect") == "write"
    ]
    if lost:
        places = ", ".join(words.call_sites[node.id] for node in lost[:3])
        raise ProgramFailed(f"the script ended and never awaited {places}: nothing was written. Await every write")


def _end_of(context: NodeContext, node: str, key: str) -> Fed | None:
    """Return how a call ended, None if it is still open."""
    call = context.call
    assert isinstance(call, ProgramNodeCall)
    at = call.ends.get(node, 0)
    if node in call.refs:
        return Fed(key, call.refs[node], at=at)
    if node not in call.lost:
        return None
    status, error = call.lost[node]
    return Fed(key, "", status, error or "", at)


def _ended_of(session: Session, end: Fed, shape: Shape, size: int, value: Any) -> Ended:
    """Return what a script is told of a call; a person who skips a call answers it with None."""
    if end.status not in ("succeeded", "skipped"):
        kind, _, message = _cause(end.error).partition(": ")
        return Ended(error=(kind, message) if message else ("RuntimeError", end.error or f"the call was {end.status}"))
    if shape == "ref" and end.ref:
        return Ended(Ref.to(end.ref, value))
    if size > MAX_VALUE_BYTES:
        advice = "Have the tasks return less" if shape else "Have the tool return less, or declare it `large`"
        limit = f"a script reads at most {MAX_VALUE_BYTES:,}. {advice}"
        return Ended(error=("ValueError", f"the result has {size:,} bytes; {limit}"))
    if session.read > MAX_READ_BYTES:
        limit = f"{MAX_READ_BYTES:,} bytes. Read in tasks, and return what counts"
        return Ended(error=("MemoryError", f"the results that the script has read are more than {limit}"))
    if shape == "ends" and isinstance(value, list):
        value = [_settled(ticket) for ticket in value]
    return Ended(unpacked(value) if shape else value)


def _settled(ticket: dict[str, Any]) -> dict[str, Any]:
    """Return how a ticket ended, without the id of its node and with the error that its task raised."""
    error = cause_in(ticket["error"]) if ticket.get("error") else None
    return {**{name: part for name, part in ticket.items() if name != "id"}, "error": error}


def _cause(error: str) -> str:
    """Return why the first ticket of a join that failed has no value, with the type that its task or call raised; any
    other error as it is.
    """
    _, is_of_join, cause = error.partition(" gave none (") if error.startswith(JOIN_FAILED) else ("", "", "")
    if not is_of_join:
        return error
    return cause_in(cause.removesuffix(")"))


def entry_of(script: str, session: Session) -> tuple[str, str]:
    """Return the script with the function to call. A pipeline's is made of its stages."""
    if not session.stages:
        return script, session.function
    call = "item"
    for stage in session.stages:
        call = f"await {stage}({call})"
    return f"{script}\n\nasync def {_PIPELINE}(item):\n    return {call}\n", _PIPELINE


def failure_of(error: ScriptError, session: Session, script: str) -> ProgramFailed:
    """Return how a script failed: by the failure of a call that it did not catch, or by itself."""
    shown = f"{error.type}: {error.message}"
    reported = next((text for text in reversed(session.errors) if _is_of(shown, text)), None)
    if reported is not None:
        shown = shown.removeprefix("RuntimeError: ")
    lines = script.splitlines()
    place = ""
    if 1 <= error.line <= len(lines):
        source = one_line(as_known(script, lines[error.line - 1].strip()), MAX_SOURCE_CHARACTERS)
        place = f" ({line_text(place_in(script, error.line))}: {source})"
    message = f"{one_line(as_known(script, shown), MAX_PROGRAM_MESSAGE_CHARACTERS)}{place}"
    return ProgramFailed(message) if reported is None else CallFailed(message)


def _is_of(shown: str, reported: str) -> bool:
    """Whether a script's error is one that it was told. What is kept of that is its beginning."""
    return shown.startswith((reported, f"RuntimeError: {reported}"))
