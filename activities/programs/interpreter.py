"""Runs scripts in Monty, a Python without files, network and clock, in processes of its own.

A script runs until everything in it waits for calls; then it is a snapshot, which any process of the same Monty goes on
from. Equal scripts, arguments, seeds and results make equal calls in an equal order.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from threading import Lock
from typing import Any, Final, Literal, Self, cast, get_args

import pydantic_monty as monty

from activities.programs.dialect import endless_loop, with_texts
from activities.programs.values import (
    FunctionName,
    NotJson,
    Ref,
    as_json,
    as_result,
    as_schema,
    called_name,
    mapped,
    tool_named,
)
from workflows.plan.language.problems import Problem
from workflows.plan.programs.vocabulary import PLAIN

MEMORY_BYTES = 64 << 20
TURN_SECONDS = 5.0
RECURSION = 200
SCRIPT_BYTES = 16 << 20
TURNS = 100_000
PROBLEMS = 50
_FRAMES = 10
_NO_ATTRIBUTE = "a Ref has `.size` alone: read it with `await part(ref, a, b)`"
_NOT_AWAITED = {"'CoroutineType[": "; is an `await` missing?", "'Ticket[": "; wait for it with `await parallel([...])`"}
_INTERNAL = "Internal error in monty: "
_DEFINITIONS_KEPT = 64

_TAKES_FUNCTIONS = {"task": slice(0, 1), "pipeline": slice(1, None)}

_PRELUDE = """
def eval(*_, **__):
    raise NotImplementedError("a program has no eval and no exec")
exec = eval
"""
_SCRIPT_FILE = "<python-input-1>"
_ENTRY = "await {}(**__arguments)"
_SEEDED = "import random as __random\n__random.seed(__seed)\n"
_LIMITS: monty.ResourceLimits = {
    "max_memory": MEMORY_BYTES,
    "max_turn_duration_secs": TURN_SECONDS,
    "max_recursion_depth": RECURSION,
    "max_suspensions": 10_000_000,
}
_POLICY: monty.OSPolicy = {
    "datetime": datetime(2020, 1, 1),  # noqa: DTZ001 - Monty takes it for UTC
    "sleep": "call_host",  # and the host refuses
    "process_time": "zero",
    "random_start": {"seed": 0},
}
_RAISED = frozenset(get_args(monty.ExcType)) - {"BaseException", "SystemExit", "KeyboardInterrupt", "StopIteration"}


class SnapshotLost(Exception):
    """A snapshot is of another Monty, or no snapshot: run the script again over the results that are recorded."""


class InterpreterCrashed(Exception):
    """Monty's process died under a script. Nothing of the advance counts; it may be tried again."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a name that the script does not define, as the script made it.

    `number` is unique in the session and ascends in the order of the calls; `line` is 1-based, 0 for a call that
    does not stand in the script. Arguments are JSON, with two exceptions: the functions that `task` and `pipeline` take
    are FunctionNames, and the types in `schema` are their texts: "bool", "list[str]", "Point | None". A Ref stays one.
    """

    number: int
    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: with a value, which is JSON, or with an error's type and message."""

    value: Any = None
    error: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ScriptError:
    """What a script raised. `line` is the innermost line of the script, 0 if it is unknown."""

    type: str
    message: str
    line: int = 0
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a script came. It waits if there is a snapshot; else it ended with a value or an error.

    `waits` has the numbers of all calls that are open, ascending; of a script that ended, those it never awaited.
    """

    snapshot: bytes = b""
    waits: tuple[int, ...] = ()
    value: Any = None
    error: ScriptError | None = None


Answer = Callable[[Call], Ended | None]
"""Answers a call at once, or returns None: the call is open until `resume` gets how it ended. An error is raised where
the script calls, not where it waits."""
_Turn = monty.FunctionSnapshot | monty.NameLookupSnapshot | monty.FutureSnapshot | monty.MontyComplete


class Interpreter:
    """The scripts' processes: as many as the machine has cores, started by the first script. One for a worker.

    Each advance runs in a thread, and so does its `answer`.
    """

    def __init__(self) -> None:
        # Not AsyncMonty: a process that ends while its threads still hold Python aborts, about one time in four.
        self._pool: monty.Monty | None = None
        self._definitions: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

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
        self, script: str, function: str, arguments: dict[str, Any], answer: Answer, seed: str = ""
    ) -> Advance:
        """Call an async function of a script and run until everything waits, or it ends.

        `seed` is where the script's random numbers begin. Raises InterpreterCrashed.
        """
        inputs = {"__arguments": mapped(arguments, _wrapped), "__seed": seed}
        # The state of the random numbers takes 3 KB of every snapshot.
        entry = f"{_SEEDED if 'random' in script else ''}{_ENTRY.format(function)}"
        return await asyncio.to_thread(self._start, script, entry, inputs, answer)

    async def resume(self, snapshot: bytes, ended: Mapping[int, Ended], answer: Answer) -> Advance:
        """Go on from a snapshot with how some of its calls ended; those that are not open any more are passed over.

        Raises SnapshotLost and InterpreterCrashed.
        """
        return await asyncio.to_thread(self._resume, snapshot, ended, answer)

    async def type_problems(self, script: str, stubs: str) -> list[Problem]:
        """Return what the types of a script do not allow, and what its top level raises, with the lines."""
        return await asyncio.to_thread(self._type_problems, script, stubs)

    def _start(self, script: str, entry: str, inputs: dict[str, Any], answer: Answer) -> Advance:
        run = _Run(script, answer)
        with self._ready().checkout(limits=_LIMITS, os_policy=_POLICY) as session:
            try:
                self._define(session, script)
                return run.until_it_waits(session.feed_start(entry, inputs=inputs, print_callback=_drop))
            except monty.MontyError as error:
                return run.failed(error)

    def _resume(self, snapshot: bytes, ended: Mapping[int, Ended], answer: Answer) -> Advance:
        script, state = _unpacked(snapshot)
        run = _Run(script, answer)
        with self._ready().checkout(limits=_LIMITS, os_policy=_POLICY) as session:
            try:
                turn = session.load_snapshot(state, print_callback=_drop)
            except monty.MontyRuntimeError as error:
                raise SnapshotLost(str(error)) from error
            try:
                return run.until_it_waits(turn, ended)
            except monty.MontyError as error:
                return run.failed(error)

    def _type_problems(self, script: str, stubs: str) -> list[Problem]:
        checkout = self._ready().checkout(
            limits=_LIMITS, os_policy=_POLICY, type_check=True, type_check_stubs=stubs, type_check_format="json"
        )
        with checkout as session:
            try:
                session.feed_run(script, print_callback=_drop)
            except monty.MontyTypingError as error:
                return [_type_problem(found) for found in json.loads(error.display())[:PROBLEMS]]
            except monty.MontyError as error:
                raised = _Run(script, _unanswered, "<python-input-0>").failed(error).error
                return [Problem("script", ("line", raised.line), f"{raised.type}: {raised.message}")] if raised else []
        return []

    def _ready(self) -> monty.Monty:
        with self._lock:
            if self._pool is None:
                self._pool = monty.Monty().__enter__()
            return self._pool

    def _define(self, session: monty.MontySession, script: str) -> None:
        """Run a script's top level, or load what it left when it ran before."""
        digest = sha256(script.encode()).hexdigest()
        with self._lock:
            state = self._definitions.get(digest)
        if state is not None:
            return session.load_session(state)
        session.feed_run(_PRELUDE)
        session.feed_run(with_texts(script, _RAISED), print_callback=_drop)
        state = session.dump()
        with self._lock:
            self._definitions[digest] = state
            if len(self._definitions) > _DEFINITIONS_KEPT:
                self._definitions.popitem(last=False)
        return None


class _Run:
    """One script on its way to where it waits."""

    def __init__(self, script: str, answer: Answer, file: str = _SCRIPT_FILE) -> None:
        self._script = script.encode()
        self._answer = answer
        self._file = file
        self._open: set[int] = set()
        self._ended: dict[int, Ended] = {}
        """What ended and has not been fed."""

    def until_it_waits(self, turn: _Turn, ended: Mapping[int, Ended] | None = None) -> Advance:
        if isinstance(turn, monty.FutureSnapshot):
            self._open = set(turn.pending_call_ids)
            self._ended = {number: end for number, end in (ended or {}).items() if number in self._open}
        for _ in range(TURNS):
            if isinstance(turn, monty.FunctionSnapshot):
                turn = self._call(turn)
            elif isinstance(turn, monty.NameLookupSnapshot) and turn.object_id is not None:
                turn = turn.resume()
            elif isinstance(turn, monty.NameLookupSnapshot):
                turn = turn.resume(value=tool_named(turn.variable_name))
            elif isinstance(turn, monty.MontyComplete):
                return self._complete(turn)
            elif self._ended:
                turn = turn.resume(self._fed())
            else:
                return self._waiting(turn)
        line = self._line(turn.position) if isinstance(turn, monty.FunctionSnapshot) else 0
        return self._error("RuntimeError", f"the script made more than {TURNS:,} calls without waiting for one", line)

    def _call(self, turn: monty.FunctionSnapshot) -> _Turn:
        if turn.is_os_function:
            return turn.resume_not_handled()
        if turn.object_id is not None:
            return turn.resume({"exc_type": "AttributeError", "message": _NO_ATTRIBUTE})
        try:
            call = self._made(turn)
        except NotJson as problem:
            return turn.resume({"exc_type": "TypeError", "message": f"{called_name(turn.function_name)}: {problem}"})
        ended = self._answer(call)
        if ended is not None and (call.function in PLAIN or ended.error is not None):
            return turn.resume(_result(ended))
        self._open.add(call.number)
        if ended is not None:
            self._ended[call.number] = ended
        return turn.resume({"future": ...})

    def _made(self, turn: monty.FunctionSnapshot) -> Call:
        name = called_name(turn.function_name)
        functions = range(len(turn.args))[_TAKES_FUNCTIONS.get(name, slice(0, 0))]
        args = [
            FunctionName.of(value) if number in functions else as_json(value) for number, value in enumerate(turn.args)
        ]
        kwargs = {key: as_schema(value) if key == "schema" else as_json(value) for key, value in turn.kwargs.items()}
        return Call(turn.call_id, name, tuple(args), kwargs, self._line(turn.position))

    def _fed(self) -> dict[int, monty.ExternalSettledResult]:
        """Return what ended, in the order of the calls: it decides who goes on first."""
        fed = {number: _result(self._ended[number]) for number in sorted(self._ended)}
        self._open -= fed.keys()
        self._ended = {}
        return fed

    def _waiting(self, turn: monty.FutureSnapshot) -> Advance:
        state = turn.dump()
        if len(state) > SCRIPT_BYTES:
            size = f"{len(state) / (1 << 20):.0f} MB, more than {SCRIPT_BYTES >> 20} MB"
            return self._error("MemoryError", f"the values of the script take {size}")
        return Advance(_packed(self._script, state), tuple(sorted(self._open)))

    def _complete(self, turn: monty.MontyComplete) -> Advance:
        try:
            return Advance(waits=tuple(sorted(self._open)), value=as_json(turn.output))
        except NotJson as problem:
            return self._error("TypeError", f"the script returned what is not JSON: {problem}")

    def failed(self, error: monty.MontyError) -> Advance:
        """Return what the script raised. Raises InterpreterCrashed if it was not the script."""
        if isinstance(error, monty.MontyCrashedError):
            if not error.timed_out:
                raise InterpreterCrashed(str(error)) from error
            return self._too_long()
        if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
            return self._error("TypeError", str(error))
        frames = [frame for frame in error.traceback() if frame.filename == self._file]
        kind, _, message = error.display("type-msg").partition(": ")
        if kind == "TimeoutError" and "time limit exceeded" in message:
            return self._too_long()
        if kind == "MemoryError" and "memory limit exceeded" in message:
            message = f"the values of the script take more than {MEMORY_BYTES >> 20} MB; have tasks return what counts"
        if kind == "RecursionError":
            message = f"functions call each other more than {RECURSION} levels deep; write a loop"
        if message.startswith(_INTERNAL) and "zero or one string argument" in message:
            kind, message = "TypeError", "an exception takes one text: write KeyError(str(key)), ValueError(f'...')"
        return self._error(kind, message, frames[-1].line if frames else 0, _traceback(frames, kind, message))

    def _too_long(self) -> Advance:
        where, line = endless_loop(self._script.decode())
        message = f"the script computed for {TURN_SECONDS:.0f} s without a call; {where}"
        return self._error("TimeoutError", f"{message}end the loop, or give the work to a tool", line)

    def _error(self, kind: str, message: str, line: int = 0, traceback: str = "") -> Advance:
        return Advance(waits=tuple(sorted(self._open)), error=ScriptError(kind, message, line, traceback))

    def _line(self, position: monty.SourceRange) -> int:
        return self._script.count(b"\n", 0, position.start) + 1 if position.filename == self._file else 0


def _result(ended: Ended) -> monty.ExternalSettledResult:
    """Return how a call ended as Monty takes it: an error it has no type for is a RuntimeError that names the type."""
    if ended.error is None:
        try:
            return {"return_value": as_result(ended.value, _wrapped)}
        except NotJson as problem:
            ended = Ended(error=("ValueError", f"the result cannot be used in a script: {problem}"))
    kind, message = cast("tuple[str, str]", ended.error)
    if kind not in _RAISED:
        kind, message = "RuntimeError", f"{kind}: {message}"
    return {"exc_type": cast("monty.ExcType", kind), "message": message}


def _wrapped(ref: Ref) -> monty.ClassInstance:
    """Return a reference as Monty takes it."""
    return monty.ClassInstance(ref, eager_attrs="all")


def _type_problem(found: dict[str, Any]) -> Problem:
    message = found["message"].replace("`", "'")
    hint = next((hint for kind, hint in _NOT_AWAITED.items() if kind in message), "")
    return Problem(str(found["code"]), ("line", int(found["location"]["row"])), message + hint)


def _traceback(frames: Sequence[monty.Frame], kind: str, message: str) -> str:
    """Return a traceback of the script's own lines, with the middle of a long one left out."""
    lines = [f'  File "script", line {frame.line}, in {frame.function_name or "<module>"}' for frame in frames]
    if len(lines) > 2 * _FRAMES:
        lines[_FRAMES:-_FRAMES] = [f"  ... {len(lines) - 2 * _FRAMES} more ..."]
    return "\n".join(["Traceback (most recent call last):", *lines, f"{kind}: {message}"])


def _packed(script: bytes, state: bytes) -> bytes:
    return b"%s %d\n%s%s" % (_VERSION, len(script), script, state)


def _unpacked(snapshot: bytes) -> tuple[str, bytes]:
    head, _, rest = snapshot.partition(b"\n")
    version, _, length = head.partition(b" ")
    if version != _VERSION or not length.isdigit():
        raise SnapshotLost(f"the snapshot is not of Monty {monty.__version__}")
    return rest[: int(length)].decode(errors="replace"), rest[int(length) :]


_VERSION: Final = monty.__version__.encode()


def _drop(stream: Literal["stdout", "stderr"], text: str) -> None:
    """Let nothing that a script prints go anywhere."""


def _unanswered(call: Call) -> Ended:
    return Ended(error=("NotImplementedError", f"{call.function} is not called here"))
