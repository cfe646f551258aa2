"""One advance of a program: feed what has ended, run the script until it waits, and put its calls on a page."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sennit.activities.limits import (
    MAX_PROGRAM_MESSAGE_CHARACTERS,
    MAX_READ_BYTES,
    MAX_SOURCE_CHARACTERS,
    MAX_VALUE_BYTES,
)
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import CallFailed, ProgramFailed
from sennit.activities.programs.interpreter import Interpreter, SnapshotLost
from sennit.activities.programs.material import whole_of
from sennit.activities.programs.pages import Compiler, page_of
from sennit.activities.programs.session import Counts, Fed, Session, Shape, history, load
from sennit.activities.programs.turns import Advance, Ended, ScriptError
from sennit.activities.programs.values import Ref, packed, unpacked
from sennit.activities.programs.words import Surroundings, Words
from sennit.activities.storage.artifacts import digest_of, encode
from sennit.activities.storage.run_context import ArtifactReader
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.plan.language.nodes import ProgramNode, Step, ToolNode
from sennit.workflows.plan.language.text import one_line

_PIPELINE = "__pipeline"
JOIN_FAILED = "JoinFailed: "


@dataclass(frozen=True, slots=True)
class Programs:
    """Advances programs on this worker."""

    library: ArtifactReader
    interpreter: Interpreter
    compiler: Compiler
    providers: tuple[str, ...]

    async def advance(self, context: NodeContext) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for.

        Nothing is kept of an advance that fails: the same one may be made again with other results. Raises
        CallFailed, ProgramFailed, InterpreterCrashed, BindError, BodyMissing, StoreUnavailable.
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
        if progress.error is not None:
            raise failure_of(progress.error, session, script)
        if not progress.snapshot:
            _nothing_unwritten(words)
            return NodeOutput(
                packed(progress.value) if session.depth else await whole_of(self.library, prefix, progress.value)
            )
        words.given_up += [call.node for number, call in session.open.items() if number not in progress.waits]
        session.keep_open(progress.waits)
        if not session.open:
            raise ProgramFailed("the script waits for nothing that can end")
        session.keep(progress.snapshot)
        step = await self._next_step(context, words)
        page = await page_of(self.library, self.compiler, context, run_context, words, step)
        return NodeOutput(None, more="program", page=page)

    async def _session(self, context: NodeContext, node: ProgramNode) -> Session:
        """Return where the program stands, ready for this step."""
        prefix, name, generation = context.run_prefix, context.address.id, context.address.generation
        is_taken = False
        if node.step is None:
            await context.binder.load(node, context.address)
            arguments = context.binder.bound(dict(node.arguments))
            script = await self.library.put(prefix, node.script)
            session = Session(script=script, function="main", arguments=packed(arguments), key=name)
            session.before = await self.library.put(prefix, session.model_dump(mode="json", exclude_defaults=True))
            is_taken = any(other.id.startswith(f"{name}_") for other in context.checked.plan.nodes)
        else:
            session = await load(self.library, prefix, node.step.session)
            session.before, session.number = node.step.session, node.step.number
            session.fed, session.noted = [], []
        if session.number == 1:
            assert isinstance(context.call, ProgramNodeCall)
            session.clock = session.clock or context.call.ends.get(name, 0)
            session.since = context.call.since
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
        opened, fed = dict(session.open), dict(zip(ends, ends.values(), strict=True))
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
        start = partial(self.interpreter.start, run=words.around.run, clock=session.clock)
        return await start(source, function, arguments, words.answer, session.key)

    async def _ended(self, prefix: str, session: Session, ends: dict[int, Fed]) -> dict[int, Ended]:
        """Return what the script is told of calls that have ended, in order, and note it in the session."""
        numbers = list(ends)
        found = await asyncio.gather(*(self._value(prefix, ends[number]) for number in numbers))
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

    async def _value(self, prefix: str, end: Fed) -> tuple[int, Any]:
        return await self.library.sized(prefix, end.ref) if end.ref else (0, None)

    async def _again(self, prefix: str, digest: str, around: Surroundings) -> tuple[bytes, dict[str, int]]:
        """Run the script from its start over what is recorded, and return where it waits, with the numbers of its open
        calls by their keys. Raises ProgramFailed if it makes other calls than it made.
        """
        session, begun, *steps = await history(self.library, prefix, await load(self.library, prefix, digest))
        session.node, session.stems = begun.node, begun.stems
        noted = [value for step in (begun, *steps) for value in step.noted]
        words = Words(session, Counts(session, []), around, noted)
        progress = await self._start(session, words)
        last = (begun, *steps)[-1]
        for step in steps:
            session.keep_open(progress.waits)
            numbers = {call.key: number for number, call in session.open.items()}
            if not progress.snapshot or any(end.key not in numbers for end in step.fed):
                raise ProgramFailed("run again from its start, the script makes other calls than it made")
            ended = await self._ended(prefix, session, {numbers[end.key]: end for end in step.fed})
            progress = await self.interpreter.resume(progress.snapshot, ended, words.answer)
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
        value = [{name: part for name, part in ticket.items() if name != "id"} for ticket in value]
    return Ended(unpacked(value) if shape else value)


def _cause(error: str) -> str:
    """Return why the first ticket of a join that failed has no value, with the type that its task or call raised; any
    other error as it is.
    """
    _, is_of_join, cause = error.partition(" gave none (") if error.startswith(JOIN_FAILED) else ("", "", "")
    if not is_of_join:
        return error
    cause = cause.removesuffix(")")
    for kind in ("ProgramFailed: ", "CallFailed: "):
        if cause.startswith(kind):
            return cause.removeprefix(kind).rpartition(" (line ")[0] or cause.removeprefix(kind)
    return cause


def entry_of(script: str, session: Session) -> tuple[str, str]:
    """Return the script with the function to call. A pipeline's is made of its stages."""
    if not session.stages:
        return script, session.function
    call = "item"
    for stage in session.stages:
        call = f"await {stage}({call})"
    return f"{script}\n\nasync def {_PIPELINE}(item):\n    return {call}\n", _PIPELINE


def failure_of(error: ScriptError, session: Session, script: str) -> Exception:
    """Return how a script failed: by the failure of a call that it did not catch, or by itself."""
    shown = f"{error.type}: {error.message}"
    reported = next((text for text in reversed(session.errors) if _is_of(shown, text)), None)
    if reported is not None:
        shown = shown.removeprefix("RuntimeError: ")
    lines = script.splitlines()
    place = ""
    if 1 <= error.line <= len(lines):
        place = f" (line {error.line}: {one_line(lines[error.line - 1].strip(), MAX_SOURCE_CHARACTERS)})"
    message = f"{one_line(shown, MAX_PROGRAM_MESSAGE_CHARACTERS)}{place}"
    return ProgramFailed(message) if reported is None else CallFailed(message)


def _is_of(shown: str, reported: str) -> bool:
    """Whether a script's error is one that it was told. What is kept of that is its beginning."""
    return shown.startswith((reported, f"RuntimeError: {reported}"))
