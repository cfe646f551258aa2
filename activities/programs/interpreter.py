"""Runs scripts in Monty, a Python without files, network and clock, in processes of its own that the kernel confines.

A script runs until everything in it waits for calls; then it is a snapshot, which any process of the same Monty goes on
from. Equal scripts, arguments, seeds and results make equal calls in an equal order.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, Self, TypeVar

import pydantic_monty as monty
from pydantic_monty._binary import find_monty_binary

from sennit.activities.limits import (
    MAX_INTERPRETER_BYTES,
    MAX_KEPT_CHECKS_BYTES,
    MAX_KEPT_CLASSES_BYTES,
    MAX_KEPT_DEFINITIONS_BYTES,
    MAX_KEPT_SCRIPTS_BYTES,
    MAX_MEMORY_BYTES,
)
from sennit.activities.programs.checkouts import CHECKOUT_SECONDS, Checkouts, InterpreterCrashed
from sennit.activities.programs.coroutines.prelude import is_side_by_side, prelude_for
from sennit.activities.programs.coroutines.scheduler import Coroutines
from sennit.activities.programs.dialect import OF_TYPES, ON_DEMAND, PRELUDE, Classes
from sennit.activities.programs.python.modules import modules_for
from sennit.activities.programs.reading import Read, Unreadable, problem_of, read
from sennit.activities.programs.turns import (
    RAISED,
    RECURSION,
    TURN_SECONDS,
    ScriptRun,
    ended_by_script,
)
from sennit.activities.programs.values import (
    Advance,
    Answer,
    Call,
    Ended,
    Given,
    ScriptError,
    Sleep,
    mapped,
    packed,
    tool_named,
    unpacked,
)
from sennit.activities.sandbox.confinement import find_confinement
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.programs.source import as_known, place_in
from sennit.workflows.plan.programs.syntax import DOUBT
from sennit.workflows.plan.programs.types import is_of_use, type_problem

T = TypeVar("T")

PROBLEMS = 50
CHECK_SECONDS = 30.0
"""For all that Monty does at once. A step is ended before that; a check of types is not."""
_LIMIT = "limit"
"""The code of a problem that a machine with less to do may not have."""
_ONLY_DEFINES = "the top of a script only defines things: put this into a function"

_ENTRY, _SIDE_BY_SIDE = "await {}(**__arguments)", "await __enter({}, __arguments)"
_SEEDED = "import random as __random\n__random.seed(__seed)\n"
_LIMITS: monty.ResourceLimits = {
    "max_memory": MAX_MEMORY_BYTES,
    "max_turn_duration_secs": TURN_SECONDS,
    "max_recursion_depth": RECURSION,
    "max_suspensions": 10_000_000,
}
_POLICY: monty.OSPolicy = {
    "datetime": "call_host",
    "sleep": "call_host",  # and the host refuses
    "process_time": "zero",
    "random_start": {"seed": 0},
}


class SnapshotLost(Exception):
    """A snapshot is of another version, or no snapshot: run the script again over the results that are recorded."""


class Interpreter:
    """The scripts' processes: as many as the machine has cores, started by the first script. One for a worker.

    Each advance runs in a thread, and so does its `answer`; a script that computes for long keeps no other thread of
    the worker busy. `reading` reads in scripts what the interpreter must know of them.
    """

    def __init__(self, reading: Read = read) -> None:
        # Not AsyncMonty: a process that ends while its threads still hold Python aborts, about one time in four.
        self._pool: monty.Monty | None = None
        self._read = reading
        self._definitions = BoundedCache[str, bytes](MAX_KEPT_DEFINITIONS_BYTES)
        self._texts = BoundedCache[str, str](MAX_KEPT_SCRIPTS_BYTES)
        self._classes = BoundedCache[str, Classes](MAX_KEPT_CLASSES_BYTES)
        self._checked = BoundedCache[str, list[Problem]](MAX_KEPT_CHECKS_BYTES)
        self._lock = Lock()
        self._checkouts = Checkouts("runs scripts")
        self._threads = ThreadPoolExecutor(self._checkouts.processes, "sennit-scripts")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the processes. The next script starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.__exit__, None, None, None)

    async def start(
        self,
        script: str,
        function: str,
        arguments: dict[str, Any],
        answer: Answer,
        seed: str = "",
        *,
        runs: Sequence[tuple[int, str]] = ((0, ""),),
        clock: int = 0,
    ) -> Advance:
        """Call an async function of a script and run until everything waits, or it ends.

        `seed` is the session: where the script's random numbers begin, and who its Refs are given to. With the run it
        is what its UUIDs come from: the last of `runs` that has begun by then. `clock` is the time in milliseconds.
        Raises InterpreterCrashed.
        """
        inputs = {"__arguments": arguments, "__seed": seed, "__of_run": list(map(list, runs))}
        return await self._timed(lambda: self._start(script, function, inputs, answer, clock))

    async def resume(self, snapshot: bytes, ended: Mapping[int, Ended], answer: Answer, *, since: int = 0) -> Advance:
        """Go on from a snapshot with how some of its calls ended, in that order; those that are not open any more are
        passed over. For `since` see ScriptRun.

        Raises SnapshotLost and InterpreterCrashed.
        """
        return await self._timed(lambda: self._resume(snapshot, ended, answer, since))

    async def type_problems(self, script: str, stubs: str) -> list[Problem]:
        """Return what the types of a script do not allow, and what its top level raises, with the lines. What types
        merely suspect has the code DOUBT. The latest scripts are not checked again, which takes longer than all else
        that their runs do before the first call; those that ran out of time or memory are. Raises InterpreterCrashed,
        also if that is not done in CHECK_SECONDS.
        """
        return list(await self._in_thread(lambda: self._known_problems(script, stubs)))

    async def _timed(self, work: Callable[[], Advance]) -> Advance:
        def timed() -> Advance:
            began = time.monotonic()
            progress = work()
            return replace(progress, took=time.monotonic() - began)

        return await self._in_thread(timed)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def classes(self, script: str) -> Classes:
        """Return the fields of a script's classes. Not to be called in an event loop. Raises Unreadable."""
        return self._classes.get_or_make(_key(script), lambda: self._read("classes", script))

    def _for_monty(self, script: str) -> str:
        """Return a script as Monty takes it. Raises Unreadable."""
        return self._texts.get_or_make(_key(script), lambda: self._read("script", script, sorted(RAISED)))

    def _known_problems(self, script: str, stubs: str) -> list[Problem]:
        key = _key(json.dumps([script, stubs]))
        known = self._checked.get(key)
        if known is not None:
            return known
        problems = self._type_problems(script, stubs)
        if _is_final(problems):
            self._checked.put(key, problems)
        return problems

    def _start(self, script: str, function: str, inputs: dict[str, Any], answer: Answer, clock: int) -> Advance:
        try:
            text = self._for_monty(script)
        except Unreadable as error:
            return Advance(error=ScriptError("MemoryError", problem_of(error).message, 1))
        is_alone, seed = not is_side_by_side(text), inputs["__seed"]
        coroutines = Coroutines(is_alone=is_alone)
        run = ScriptRun(text, answer, Given(seed), self._read, coroutines=coroutines, clock=clock, function=function)
        # The state of the random numbers takes 3 KB of every snapshot.
        seeded, entry = _SEEDED if "random" in script else "", _ENTRY if is_alone else _SIDE_BY_SIDE
        entry = f"{seeded}{entry.format(function)}"
        inputs["__arguments"] = mapped(inputs["__arguments"], run.wrapped)
        with self._session() as session:
            try:
                self._define(session, text)
                progress = run.until_it_waits(session.feed_start(entry, inputs=inputs, print_callback=run.note))
            except monty.MontyError as error:
                progress = run.failed(error)
        return _kept(progress, _Head(_VERSION, seed, text, function), run)

    def _resume(self, snapshot: bytes, ended: Mapping[int, Ended], answer: Answer, since: int) -> Advance:
        head, state = _unpacked(snapshot)
        coroutines = Coroutines(head.coroutines, is_alone=not is_side_by_side(head.text))
        given = Given(head.session)
        run = ScriptRun(
            head.text, answer, given, self._read, coroutines=coroutines, since=since, function=head.function
        )
        run.clock, run.awaited = head.clock, head.awaited
        run.sleeps = {number: Sleep(*sleep) for number, sleep in head.sleeps}
        for number, function, args, kwargs, *rest in head.queued:
            run.queued[number] = Call(number, function, tuple(unpacked(args)), unpacked(kwargs), *rest)
        with self._session() as session:
            try:
                turn = session.load_snapshot(state, print_callback=run.note)
            except monty.MontyRuntimeError as error:
                raise SnapshotLost(str(error)) from error
            try:
                progress = run.until_it_waits(turn, ended)
            except monty.MontyError as error:
                progress = run.failed(error)
        return _kept(progress, head, run)

    def _type_problems(self, script: str, stubs: str) -> list[Problem]:
        checked = self._checked_types(script, stubs)
        # The process that has checked the types is free again: what the top level raises is found in another session.
        if checked.is_settled:
            return checked.problems
        return [*checked.problems, *self._top_problems(script)]

    def _checked_types(self, script: str, stubs: str) -> "_CheckedTypes":
        """Check the types of a script, whose top level runs if they are right."""
        text = self._read("own_text", script)
        with self._session(type_check=True, type_check_stubs=stubs, type_check_format="json") as session:
            try:
                session.feed_run(text, print_callback=_drop)
            except monty.MontyTypingError as error:
                useful = (problem for problem in json.loads(error.display()) if is_of_use(problem, script))
                found = list(dict.fromkeys(type_problem(problem, script) for problem in islice(useful, PROBLEMS)))
                has_certain = any(problem.code != DOUBT for problem in found)
                return _CheckedTypes(found, is_settled=has_certain)
            except monty.MontyRuntimeError as error:
                # The check itself ran out of memory, or the top level has raised: perhaps only because it ran as it is
                # written, and not as it is rewritten for Monty.
                raised = ScriptRun(script, _unanswered, Given(""), self._read, "<python-input-0>").failed(error).error
                if raised is None or raised.type != "MemoryError":
                    return _CheckedTypes([], is_settled=False)
                return _CheckedTypes([_raised_at_the_top(raised, script)], is_settled=True)
            except monty.MontyCrashedError as error:
                if error.timed_out:  # by the clock alone, a machine that stands still looks like a script too large
                    raise InterpreterCrashed(f"a script's types were not checked in {CHECK_SECONDS:.0f} s") from error
                return _CheckedTypes([problem_of(Unreadable(ended_by_script(error)))], is_settled=True)
        return _CheckedTypes([], is_settled=True)

    def _top_problems(self, script: str) -> list[Problem]:
        """Return what the top level of a script raises."""
        text = self._for_monty(script)
        with self._session() as session:
            try:
                self._define(session, text)
            except monty.MontyError as error:
                raised = ScriptRun(text, _unanswered, Given(""), self._read).failed(error).error
                return [_raised_at_the_top(raised, script)] if raised is not None else []
        return []

    @contextmanager
    def _session(self, **options: Any) -> Iterator[monty.MontySession]:
        """Give a session in a process that is free. Raises InterpreterCrashed for a process that does not start, or if
        none becomes free, and NestedCheckout.
        """
        with self._checkouts.one(), ExitStack() as stack:
            session = self._ready().checkout(limits=_LIMITS, os_policy=_POLICY, **options)
            try:
                entered = stack.enter_context(session)
            except (monty.MontyCrashedError, TimeoutError) as error:
                raise InterpreterCrashed(str(error)) from error
            yield entered

    def _ready(self) -> monty.Monty:
        with self._lock:
            if self._pool is None:
                program = find_confinement().launcher(find_monty_binary(), MAX_INTERPRETER_BYTES)
                pool = monty.Monty(
                    binary_path=program,
                    max_processes=self._checkouts.processes,
                    checkout_timeout=CHECKOUT_SECONDS,
                    request_timeout=CHECK_SECONDS,
                )
                self._pool = pool.__enter__()
            return self._pool

    def _define(self, session: monty.MontySession, text: str) -> None:
        """Run a script's top level, or load what it left when it ran before."""
        key = _key(text)
        left = self._definitions.get(key)
        if left is not None:
            session.load_session(left)
            return
        has_types = any(name in text for name in ("__enum(", "__mapping(", "__made(", "__fields["))
        more = (part for mark, part in ON_DEMAND.items() if mark in text)
        parts = (PRELUDE, OF_TYPES if has_types else "", *more, *modules_for(text), prelude_for(text))
        session.feed_run("".join(parts))  # at once: the script is the second input
        _run_top(session.feed_start(text, print_callback=_drop))
        self._definitions.put(key, session.dump())


def _key(text: str) -> str:
    """Return what is kept of a text is known by."""
    return sha256(text.encode()).hexdigest()


class _CheckedTypes(NamedTuple):
    """The problems with the types of a script. They are settled if what its top level raises is known with them, or
    does not matter.
    """

    problems: list[Problem]
    is_settled: bool


@dataclass(frozen=True, slots=True)
class _Head:
    """What is before a snapshot: the version that wrote it, the session, the script as Monty has it, which function
    of it runs, and where the script stands beside that.
    """

    version: str
    session: str
    text: str
    function: str = ""
    clock: int = 0
    coroutines: dict[str, Any] = field(default_factory=dict)
    sleeps: list[Any] = field(default_factory=list)
    queued: list[Any] = field(default_factory=list)
    awaited: int = 0


def _version() -> str:
    """Return the version of what reads and writes snapshots: that of Monty, with a digest of the shape of the head and
    of what scripts find defined, which is in the snapshot as it was when the script began.
    """
    digest = sha256(repr([list(kind.__annotations__) for kind in (_Head, Call, Sleep)]).encode())
    here = Path(__file__).parent
    for source in (here / "dialect.py", *sorted(here.glob("python/*.py")), *sorted(here.glob("coroutines/*.py"))):
        digest.update(source.read_bytes())
    return f"{monty.__version__}/{digest.hexdigest()[:16]}"


_VERSION = _version()


def _kept(progress: Advance, head: _Head, run: ScriptRun) -> Advance:
    """Return how far a script came and what it printed, with the head before its snapshot if it waits."""
    progress = replace(progress, printed=run.printed)
    if not progress.snapshot:
        return progress
    calls = (replace(call, args=packed(list(call.args)), kwargs=packed(call.kwargs)) for call in run.queued.values())
    queued = [astuple(call) for call in calls]
    sleeps = list(run.sleeps.items())
    head = replace(
        head, clock=run.clock, coroutines=run.coroutines.state, sleeps=sleeps, queued=queued, awaited=run.awaited
    )
    return replace(progress, snapshot=json.dumps(astuple(head)).encode() + b"\n" + progress.snapshot)


def _unpacked(snapshot: bytes) -> tuple[_Head, bytes]:
    line, _, state = snapshot.partition(b"\n")
    try:
        head = _Head(*json.loads(line))
    except (ValueError, TypeError):
        head = _Head("", "", "")
    if head.version != _VERSION:
        raise SnapshotLost(f"the snapshot is not of {_VERSION}")
    return head, state


def _run_top(turn: Any) -> None:
    """Run the top level of a script, which may name tools and call none. Raises MontyError."""
    while not isinstance(turn, monty.MontyComplete):
        if isinstance(turn, monty.NameLookupSnapshot):
            turn = turn.resume(value=tool_named(turn.variable_name))
        elif isinstance(turn, monty.FunctionSnapshot) and turn.is_os_function:
            turn = turn.resume_not_handled()
        else:
            turn = turn.resume({"exc_type": "RuntimeError", "message": _ONLY_DEFINES})


def _drop(stream: Literal["stdout", "stderr"], text: str) -> None:
    """Let nothing that a script prints go anywhere."""


def _raised_at_the_top(raised: ScriptError, script: str) -> Problem:
    message = as_known(script, f"{raised.type}: {raised.message}")
    code = _LIMIT if raised.type in ("TimeoutError", "MemoryError") else "script"
    return Problem(code, ("line", place_in(script, raised.line or 1)), message)


def _is_final(problems: list[Problem]) -> bool:
    return all(problem.code != _LIMIT for problem in problems)


def _unanswered(call: Call) -> Ended:
    return Ended(error=("NotImplementedError", f"{call.function} is not called here"))
