"""One advance of a program: feed what has ended, run the script until it waits, and
put its calls on a page.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sennit.activities.limits import (
    MAX_PROGRAM_MESSAGE_CHARACTERS,
    MAX_SOURCE_CHARACTERS,
)
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import (
    CallFailed,
    OtherPython,
    OutputRefused,
    ProgramFailed,
    kind_of,
    message_of,
)
from sennit.activities.nodes.origins import Origins
from sennit.activities.nodes.replies import keep as keep_output
from sennit.activities.nodes.short_calls import Bounds, MakeCall, Recorded, ShortCalls
from sennit.activities.programs.interpreter import Interpreter, SnapshotLost
from sennit.activities.programs.made_writes import SeenMarks, WriteClaims
from sennit.activities.programs.material import whole_of
from sennit.activities.programs.pages import (
    AdvanceContext,
    Compiler,
    Handover,
    handed_over,
    page_of,
    part_of,
    taken_over,
)
from sennit.activities.programs.progress import PYTHON, Advance, Snapshot, waiting_at
from sennit.activities.programs.reading import Unreadable
from sennit.activities.programs.script_run import OtherCalls
from sennit.activities.programs.session import (
    Counts,
    Fed,
    OpenCall,
    Session,
    Snapshots,
    begin,
    end_of,
    ended_of,
    load,
    note_failures,
    note_told,
    recall_failures,
    takes_over,
    told_before,
)
from sennit.activities.programs.session_record import keep, snapshot_of, whole_record
from sennit.activities.programs.values import Ended, ScriptError, packed, unpacked
from sennit.activities.programs.words import Surroundings, Words
from sennit.activities.storage.artifacts import digest_of
from sennit.activities.storage.run_context import ArtifactReader, RunContext
from sennit.workflows.messages import queues
from sennit.workflows.messages.contracts import NodeError, NodeReply
from sennit.workflows.messages.node_calls import ProgramNodeCall
from sennit.workflows.plan.language.facts import FactTooLarge
from sennit.workflows.plan.language.nodes import ProgramNode, ToolNode
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.limits import MAX_LOSS_CHARACTERS, MAX_MANIFEST_BYTES
from sennit.workflows.plan.programs.files import line_in_file, place_in
from sennit.workflows.plan.programs.vocabulary import ROLES

_FAILED = ("failed", "cancelled")
_NOTHING_ENDS = "the script waits for nothing that can end"
_OTHER_CALLS = "run again over what is recorded, the script makes other calls than it made"
_OLDER = (
    "the program began under an earlier version of Sennit, whose scripts this one cannot go on "
    "with: edit the run"
)


Backlog = Callable[[str], Awaitable[int | None]]
"""Returns about how many activities wait in a task queue; None if the server does not say."""
_ASKS_FOR_LOAD = re.compile(r"\bload\b")


@dataclass(frozen=True, slots=True)
class Programs:
    """Advances programs on this worker."""

    library: ArtifactReader
    interpreter: Interpreter
    compiler: Compiler
    providers: tuple[str, ...]
    snapshots: Snapshots = field(default_factory=Snapshots)
    seen: SeenMarks = field(default_factory=SeenMarks)
    backlog: Backlog | None = None
    """Tells how many calls wait in a queue; None where no server is to be asked."""

    async def advance(
        self, context: NodeContext, make: MakeCall | None = None, recorded: Recorded | None = None
    ) -> NodeOutput:
        """Return what the program has returned, or the calls that it waits for.

        While it waits for nothing but short calls, it may `make` these here and go on. If it ends
        then, that is the end of the next advance: this one has made the calls before. In a fork it
        hands over how calls have ended that are `recorded` in the runs that are forked, so that the
        next advance tells them in the order that they had there. Nothing is kept of an advance that
        fails: the same one may be made again with other results. Raises CallFailed, ProgramFailed,
        InterpreterCrashed, AdvanceAlone, BindError, BodyMissing, StoreUnavailable.
        """
        node = context.node
        call = context.call
        prefix = context.run_prefix
        assert isinstance(node, ProgramNode)
        assert isinstance(call, ProgramNodeCall)

        # Where the program stands, and what the run lets its script use.
        begun = None
        if call.session:
            begun = await load(self.library, prefix, call.session)
        session = await self._session(context, node, begun)
        run_context = await self.library.run_context(prefix, context.checked.run_context)
        session.repeat_writes |= run_context.repeat_writes or context.checked.repeat_writes
        script = await self.library.shared(prefix, session.script)
        tools = {entry["name"]: entry for entry in run_context.catalogue}
        around = Surroundings(
            script,
            tools,
            self.providers,
            call.left,
            partial(self.interpreter.classes, script),
            prefix,
            WriteClaims(Origins(self.library.store), context, self.seen),
            limits=call.limits,
            task_left=call.task_left,
            slots=call.slots,
            rate=_rate_of_workers(run_context, call.rates),
            is_trusted=digest_of(script.encode()) in run_context.trusted_scripts,
            loads=await self._loads(script, run_context, call.running),
        )
        part = partial(part_of, self.compiler, context, run_context)
        around_advance = AdvanceContext(context, around, part, recorded)

        # The script runs until it ends, or waits for what this advance does not make.
        calls = None
        if make is not None and call.fuse != "off":
            calls = ShortCalls(make, queues.TOOLS, Bounds(call))
        found = await self._carry_on(around_advance, session, calls)
        if isinstance(found, NodeOutput):
            return found
        bodies = list(around.bodies.values())  # a script that is cut off may add more
        await self.library.put_all(prefix, bodies)
        page = await page_of(self.library, self.compiler, context, run_context, found)
        return NodeOutput(None, more="program", page=page, log=found.log, tasks=found.news)

    async def _loads(
        self, script: str, run_context: RunContext, running: Mapping[str, int]
    ) -> dict[str, dict[str, int | None]]:
        """Return the calls that run and wait for the models of each role, for a
        script that asks for it.
        """
        loads: dict[str, dict[str, int | None]] = {}
        if not _ASKS_FOR_LOAD.search(script):
            return loads
        for role in ROLES:
            models = run_context.models.get(role)
            if not models:
                continue
            queue = queues.llm_queue(models[0])
            waiting = None
            if self.backlog is not None:
                waiting = await self.backlog(queue)
            loads[role] = {"running": running.get(queue, 0), "backlog": waiting}
        return loads

    async def _carry_on(
        self, advance: AdvanceContext, session: Session, calls: ShortCalls | None
    ) -> Handover | NodeOutput:
        """Run a session until it ends, or waits for what this advance does not make."""
        context = advance.context
        call = context.call
        assert isinstance(call, ProgramNodeCall)
        prefix = context.run_prefix

        # The script goes on until everything in it waits.
        counts = await Counts.of(session, self.library, prefix)
        words = Words(session, counts, advance.around)
        waited = session.awaited()
        progress = await self._run(context, words)
        log = list(session.log(progress.printed))
        if not progress.snapshot:
            value = await self._value(prefix, words, progress, log)
            return NodeOutput(value, at=progress.clock, log=tuple(log), tasks=tuple(words.news))
        await self._wait(words, progress)

        # Some of its calls have ended in a run that this one forks, or are made here.
        end: NodeReply | None = None
        sleeps = min(session.open) < 0  # and is told so before what ends later
        taken = dict[str, NodeReply]()
        if takes_over(session, context):
            asked = list[str]()
            for name, caution in words.cautions.items():
                if caution.confirms and not session.repeat_writes:
                    asked.append(name)
            page = advance.part(words, words.nodes)
            taken = await taken_over(page, words, advance.recorded, asked)
        elif calls is not None and not (call.repeats or sleeps or progress.left):
            try:
                progress, end = await self._go_on(advance, words, progress, calls, log)
            finally:
                await calls.close()

        # The run is handed the other calls, with where the script waits.
        assert progress.snapshot is not None
        snapshot = await keep(
            session, progress.snapshot, self.library, prefix, advance.around.bodies
        )
        handover = handed_over(words, waited)
        handover.ends = taken
        handover.end = end
        handover.log = tuple(log)
        handover.news = tuple(words.news)
        if calls is not None:
            handover.made = calls.specs
            handover.ends = taken | calls.ends
        if end is None:
            self.snapshots.keep(prefix, handover.session, snapshot)
        return handover

    async def _go_on(
        self,
        advance: AdvanceContext,
        words: Words,
        progress: Advance,
        calls: ShortCalls,
        log: list[str],
    ) -> tuple[Advance, NodeReply | None]:
        """Make short calls, and tell the script how they end, as long as it waits for nothing else.
        Return where it waits then, with what it has logged until then in `log`. If it has come to
        its end, return where it waited before, and that.
        """
        context = advance.context
        prefix = context.run_prefix
        begun = 0
        given_up = 0
        while progress.snapshot is not None:
            # Begin the calls that the script has made since, and wait until one for
            # which it waits has ended.
            page = advance.part(words, words.nodes[begun:])
            calls.begin(page)
            calls.give_up(words.given_up[given_up:])
            begun = len(words.nodes)
            given_up = len(words.given_up)
            names = await calls.next(words.session.awaited())
            if not names:
                break

            # Tell the script. It may turn out that it is to be told by the next
            # advance, with all else.
            before = words.session.standing()
            known = words.standing()
            ended = await self._called(context, words.session, calls, names)
            await words.order.hear()
            later = await self._resume(prefix, words.session, progress.snapshot, ended, words)
            printed = words.session.log(later.printed)
            is_last = len(ended) == 1 and not words.session.open
            is_held = self._may_be_held(later, words) and not is_last
            if is_held or _needs_to_know(later, words.session.held):
                words.session.go_back(before)
                words.go_back(known)
                await calls.finish()
                break
            if not later.snapshot:
                end = await self._end(context, words, later, printed, since=known.news)
                words.session.go_back(before)
                words.go_back(known)
                return progress, end
            log += printed
            progress = later
            await self._wait(words, progress)
        return progress, None

    async def _called(
        self, context: NodeContext, session: Session, calls: ShortCalls, names: Sequence[str]
    ) -> dict[int, Ended]:
        """Return what the script is told of these calls, which have ended here."""
        prefix = context.run_prefix
        ends = dict[int, Fed]()
        numbers = {call.node: number for number, call in session.open.items()}
        told = list[tuple[str, int, bool]]()
        for name in names:
            number = numbers[name]
            key = session.open[number].key
            reply = calls.ends[name]
            ref = reply.ref or ""
            if len(ref) > MAX_MANIFEST_BYTES:
                whole = await self.library.value(prefix, ref)
                ref = await self.library.put(prefix, whole)
                reply = reply.model_copy(update={"ref": ref})
                calls.ends[name] = reply
            told.append((key, reply.at, name in calls.moved))
            if reply.error is not None:
                error = f"{reply.error.type}: {reply.error.message}"
                ends[number] = Fed(key, "", "failed", error[:MAX_LOSS_CHARACTERS], reply.at)
            else:
                ends[number] = Fed(key, ref, at=reply.at)
        await note_told(self.library, prefix, session, told)
        await self._note_failures(prefix, session, ends)
        return await self._ended(prefix, session, _by_time(ends))

    async def _note_failures(self, prefix: str, session: Session, ends: Mapping[int, Fed]) -> None:
        """Note which calls have failed of those of which the script is told
        now, and which have not.
        """
        failed: list[OpenCall] = []
        succeeded: list[OpenCall] = []
        for number, end in ends.items():
            if end.status in _FAILED:
                failed.append(session.open[number])
            else:
                succeeded.append(session.open[number])
        await note_failures(self.library, prefix, session, failed, succeeded)

    async def _wait(self, words: Words, progress: Advance) -> None:
        """Note what a script waits for, and what it waits for no longer, and claim the
        writes that it has called.

        Raises ProgramFailed if it waits for nothing.
        """
        session = words.session
        waits = dict.fromkeys(progress.waits)
        for number, call in session.open.items():
            if number not in waits:
                words.given_up.append(call.node)
        words.wake(progress.sleep)
        words.took += progress.took
        session.keep_open(waits)
        if progress.snapshot and not session.open:
            raise ProgramFailed(_NOTHING_ENDS)
        await words.claim_writes()

    async def _value(self, prefix: str, words: Words, progress: Advance, log: Sequence[str]) -> Any:
        """Return what a script that has ended gives. Raises CallFailed, ProgramFailed."""
        session = words.session
        if progress.error is not None:
            failure = failure_of(progress.error, session, words.around.script)
            failure.log = tuple(log)
            raise failure
        _nothing_unwritten(words, progress)
        return await whole_of(self.library, prefix, progress.value)

    async def _end(
        self,
        context: NodeContext,
        words: Words,
        progress: Advance,
        log: tuple[str, ...],
        *,
        since: int,
    ) -> NodeReply:
        """Return how a script has ended behind calls that its advance has made: with the
        news of tasks `since`.
        """
        prefix = context.run_prefix
        wanted, inline = context.wanted
        try:
            value = await self._value(prefix, words, progress, log)
            reply = await keep_output(self.library.store, prefix, value, wanted, inline=inline)
        except (CallFailed, ProgramFailed, OutputRefused, FactTooLarge) as error:
            failure = NodeError(type=kind_of(error), message=message_of(error))
            return NodeReply(error=failure, log=log)
        news = tuple(words.news[since:])
        return reply.model_copy(update={"at": progress.clock, "log": log, "tasks": news})

    async def _session(
        self, context: NodeContext, node: ProgramNode, begun: Session | None
    ) -> Session:
        """Return where the program stands, ready for this advance."""
        prefix = context.run_prefix
        name = context.unit.id
        generation = context.unit.generation
        assert isinstance(context.call, ProgramNodeCall)

        # A program begins, or goes on from where it waited.
        is_taken = False
        if begun is None:
            if not node.script:
                raise ProgramFailed(_OLDER)
            await context.binder.load(context.unit)
            arguments = context.binder.bound(dict(node.arguments))
            script = await self.library.put(prefix, node.script)
            session = Session(script=script, function="main", arguments=packed(arguments), key=name)
            await begin(session, self.library, context)
            stored = session.model_dump(mode="json", exclude_defaults=True)
            session.before = await self.library.put(prefix, stored)
            stem = f"{name}_"
            is_taken = any(other.id.startswith(stem) for other in context.checked.plan.nodes)
        else:
            session = begun
            session.before = context.call.session
            session.number += 1
            session.fed = []
        if session.number == 1:
            session.first = session.before
            session.since = context.call.since or session.since
        session.again |= context.call.repeats
        is_made_again = context.attempts.number > 1 or context.call.epoch > 1
        session.retold |= session.again or generation > 1 or is_made_again

        # Its calls get new ids in each generation.
        if is_taken:
            # No node of the plan is called so.
            digest = digest_of(f"{name}~{generation}".encode())
            session.begin(name, mark=f"r{generation}{digest[:6]}")
        elif generation != session.generation:
            session.begin(name, mark=f"r{generation}")
        elif session.number == 1:
            session.begin(name)
        if generation != session.generation or context.call.since:
            await recall_failures(self.library, prefix, session)
        session.generation = generation
        return session

    async def _run(self, context: NodeContext, words: Words) -> Advance:
        session = words.session
        prefix = context.run_prefix
        if session.number == 1:
            return await self._start(session, words)
        ends = dict[int, Fed]()
        for number, call in session.open.items():
            end = end_of(context, call.node, call.key)
            if end is not None:
                ends[number] = end
        ends = _by_time(ends)
        await note_told(self.library, prefix, session, told_before(session, context))
        await self._note_failures(prefix, session, ends)
        snapshot = self.snapshots.find(prefix, session.before)
        if snapshot is None:
            if not session.waiting:
                raise ProgramFailed(_OLDER)
            snapshot = snapshot_of(session)
        return await self._told(prefix, words, snapshot, ends)

    async def _told(
        self, prefix: str, words: Words, snapshot: Snapshot, ends: dict[int, Fed]
    ) -> Advance:
        """Tell a script how calls have ended.

        A failure that ends the script, because nothing in it catches that, is held back as long as
        its tasks can go on without it. It is told, with others like it, by an advance that waits
        for nothing else; and before an end by which the script would end, or give up that call.
        """
        session = words.session
        before = session.standing()
        known = words.standing()
        opened = dict(session.open)

        # Tell it all that is not held back, anew for each failure that turns out to end it.
        held = dict[int, Fed]()
        while True:
            told = {number: end for number, end in ends.items() if number not in held}
            if not told:
                progress = waiting_at(snapshot)
                break
            progress = await self._advanced(prefix, words, snapshot, told)
            if progress.last not in told or not self._may_be_held(progress, words):
                break
            session.go_back(before)
            words.go_back(known)
            held[progress.last] = ends[progress.last]

        # A script that ends, or gives up a call, has to know before that the call has failed.
        untold = [number for number in (*session.held, *held) if number not in told]
        if _needs_to_know(progress, untold):
            session.go_back(before)
            words.go_back(known)
            if all(number in ends for number in untold):
                return await self._advanced(prefix, words, snapshot, ends)
            # The next advance is told all of it, in order.
            session.held = []
            return waiting_at(snapshot)
        goes_on = any(number not in held for number in progress.waits)
        if held and progress.snapshot and not goes_on:
            # Nothing else can end, so that the script has to know.
            session.go_back(before)
            words.go_back(known)
            return await self._advanced(prefix, words, snapshot, ends)

        # What it was not told is open still.
        for number in (*progress.left, *held):
            session.open[number] = opened[number]
        for number in progress.left:
            session.fed.remove(ends[number])
        session.held = [*session.held, *held]
        return progress

    async def _advanced(
        self, prefix: str, words: Words, snapshot: Snapshot, told: dict[int, Fed]
    ) -> Advance:
        ended = await self._ended(prefix, words.session, told)
        await words.order.hear()
        return await self._resume(
            prefix, words.session, snapshot, ended, words, words.session.since
        )

    def _may_be_held(self, progress: Advance, words: Words) -> bool:
        """Whether a script has failed by the failure of a call, while tasks of it ran."""
        if progress.error is None or not progress.running:
            return False
        failure = failure_of(progress.error, words.session, words.around.script)
        return isinstance(failure, CallFailed)

    async def _resume(
        self,
        prefix: str,
        session: Session,
        snapshot: Snapshot,
        ended: dict[int, Ended],
        words: Words,
        since: int = 0,
    ) -> Advance:
        """Go on from where a session waits. Raises ProgramFailed, InterpreterCrashed,
        BodyMissing, StoreUnavailable.
        """
        is_trusted = words.around.is_trusted
        resume = partial(
            self.interpreter.resume,
            ended=ended,
            answer=words.answer,
            since=since,
            is_trusted=is_trusted,
        )
        try:
            try:
                return await resume(snapshot)
            except SnapshotLost:
                whole = await self._whole(prefix, session, snapshot, words.around)
                return await resume(whole)
        except OtherCalls as error:
            began = snapshot.standing.python
            if began != PYTHON:
                raise OtherPython(began, PYTHON) from error
            raise ProgramFailed(_OTHER_CALLS) from error

    async def _whole(
        self, prefix: str, session: Session, snapshot: Snapshot, around: Surroundings
    ) -> Snapshot:
        """Return a snapshot with all that it takes to go on from it in any process."""
        first = await load(self.library, prefix, session.first)
        arguments = unpacked(first.arguments)
        runs = session.runs or [(0, around.run)]
        clock = session.clock
        if snapshot.start is not None:
            clock = snapshot.start.clock
        given = (around.script, first.function, arguments, session.key, runs, clock)
        start_of = partial(self.interpreter.start_of, *given)
        try:
            start = await asyncio.to_thread(start_of)
        except Unreadable as error:
            raise ProgramFailed(str(error)) from error
        record = await whole_record(snapshot.record, self.library, prefix)
        return replace(snapshot, start=start, record=record)

    async def _start(self, session: Session, words: Words) -> Advance:
        arguments = unpacked(session.arguments)
        session.arguments = {}
        runs = session.runs or [(0, words.around.run)]
        is_trusted = words.around.is_trusted
        start = partial(
            self.interpreter.start, runs=runs, clock=session.clock, is_trusted=is_trusted
        )
        return await start(
            words.around.script, session.function, arguments, words.answer, session.key
        )

    async def _ended(self, prefix: str, session: Session, ends: dict[int, Fed]) -> dict[int, Ended]:
        """Return what the script is told of calls that have ended, in order, and
        note it in the session.
        """
        reads = [self._output(prefix, end) for end in ends.values()]
        outputs = await asyncio.gather(*reads)
        ended = dict[int, Ended]()
        for (number, end), (size, value) in zip(ends.items(), outputs, strict=True):
            call = session.open.pop(number)
            if call.shape != "ref":
                session.read += size
            session.fed.append(end)
            answer = ended_of(session, end, call.shape, size, value)
            answer = replace(answer, at=end.at, writes=call.writes)
            ended[number] = answer
            if answer.error is not None:
                session.fail(": ".join(answer.error))
        return ended

    async def _output(self, prefix: str, end: Fed) -> tuple[int, Any]:
        """Return the size of what a call has returned, and the value: 0 and None for
        a call that has failed.
        """
        if not end.ref:
            return 0, None
        return await self.library.sized(prefix, end.ref)


def _by_time(ends: Mapping[int, Fed]) -> dict[int, Fed]:
    """Return ends in the order in which a script is told of them: by their times, and by their
    calls where these are equal.
    """

    def time_and_call(entry: tuple[int, Fed]) -> tuple[int, int]:
        number, end = entry
        return end.at, number

    return dict(sorted(ends.items(), key=time_and_call))


def _needs_to_know(progress: Advance, held: Sequence[int]) -> bool:
    """Whether a script has ended, or has given up a call, without having been told that the
    call had failed before.
    """
    if progress.snapshot is None:
        return bool(held)
    return any(number not in progress.waits for number in held)


def _nothing_unwritten(words: Words, progress: Advance) -> None:
    """Raise ProgramFailed if the script has ended with writes that never start: it has begun them
    since it last waited, or has not even done that.
    """
    around = words.around

    # The calls that it has made are nodes, and those that it keeps are only known by their lines.
    calls = list[tuple[str, str]]()
    for node in words.nodes:
        if isinstance(node, ToolNode):
            calls.append((node.tool, words.call_sites[node.id]))
    for name, line in progress.kept:
        place = place_in(around.script, line)
        calls.append((name, f"{name}:{place}"))

    lost = list[str]()
    for tool, call_site in calls:
        effect = around.tools.get(tool, {}).get("effect")
        if effect == "write":
            lost.append(call_site)
    if lost:
        places = ", ".join(lost[:3])
        raise ProgramFailed(
            f"the script ended and never awaited {places}: nothing was written. Await every write"
        )


def failure_of(error: ScriptError, session: Session, script: str) -> ProgramFailed:
    """Return how a script failed: by the failure of a call that it did not catch, or by itself."""
    shown = f"{error.type}: {error.message}"
    is_reported = any(_is_of(shown, text) for text in session.errors)
    if is_reported:
        shown = shown.removeprefix("RuntimeError: ")
    lines = script.splitlines()
    place = ""
    if 1 <= error.line <= len(lines):
        source = one_line(lines[error.line - 1].strip(), MAX_SOURCE_CHARACTERS)
        place = f" ({line_in_file(script, error.line)}: {source})"
    message = f"{one_line(shown, MAX_PROGRAM_MESSAGE_CHARACTERS)}{place}"
    if is_reported:
        return CallFailed(message)
    return ProgramFailed(message)


def _is_of(shown: str, reported: str) -> bool:
    """Whether a script's error is one that it was told. What is kept of that is its beginning."""
    return shown.startswith((reported, f"RuntimeError: {reported}"))


def _rate_of_workers(run_context: RunContext, rates: Mapping[str, int]) -> int | None:
    """Return how many calls a minute the models of workers take, None where nobody has set it."""
    names = run_context.models.get("worker")
    if not names:
        return None
    queue = queues.llm_queue(names[0])
    return rates.get(queue) or None
