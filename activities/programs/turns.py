"""One script on its way to where it waits: its calls are answered, and what goes wrong is told with a line."""

import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast, get_args

import pydantic_monty as monty

from sennit.activities.limits import (
    MAX_LOG_CHARACTERS,
    MAX_MEMORY_BYTES,
    MAX_OPEN_CALLS,
    MAX_PROGRAM_CALLS,
    MAX_SNAPSHOT_BYTES,
)
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.coroutines.prelude import WHOLE
from sennit.activities.programs.coroutines.scheduler import CALLED_FOR, CANCELLED, LEAVE, LINE, Coroutines
from sennit.activities.programs.coroutines.scheduler import Fed as Woken
from sennit.activities.programs.dialect import OF_TYPES, ON_DEMAND, PRELUDE
from sennit.activities.programs.python.containers import CONTAINERS
from sennit.activities.programs.python.exceptions import ERRORS
from sennit.activities.programs.python.modules import TEXTS
from sennit.activities.programs.reading import Read
from sennit.activities.programs.rewriting import own_errors
from sennit.activities.programs.values import (
    Advance,
    Answer,
    Call,
    Ended,
    FunctionName,
    Given,
    NotJson,
    Ref,
    ScriptError,
    Sleep,
    as_json,
    as_result,
    as_schema,
    called_name,
    tool_named,
)
from sennit.workflows.plan.bundles.text_edits import lines_of
from sennit.workflows.plan.programs.source import as_known, file_of, modules_in, place_among
from sennit.workflows.plan.programs.vocabulary import PLAIN

TURN_SECONDS = 5.0
STEP_SECONDS = 20.0
"""From one call to the next, and for all that a script does until it waits: Monty counts each time from a call anew."""
RECURSION = 200
TURNS = 100_000
_FRAMES = 10
_NO_ATTRIBUTE = "a Ref has `.size` alone: read it with `await part(ref, a, b)`"
_INTERNAL = "Internal error in monty: "
_NEVER_QUEUED = (*PLAIN, "sleep", "sleep_until", "budget_left")
_TAKES_FUNCTIONS = {"task": slice(0, 1), "pipeline": slice(1, None)}
_SCRIPT_FILE = "<python-input-1>"
_PRELUDES = (PRELUDE, OF_TYPES, *ON_DEMAND.values(), *TEXTS.values(), ERRORS, CONTAINERS, WHOLE)
_DEFINED = "|".join(dict.fromkeys(re.findall(r"\b(?:class|def) __(\w*[A-Za-z0-9])\b", "".join(_PRELUDES))))
_OF_PRELUDE = re.compile(rf"(?<!\w)__(?=(?:{_DEFINED})(?:\(\)|'|$))")
"""Before the name of what the prelude defines, as Python writes it: `__wait_for() missing 1 required argument`."""
_NAMING = ("TypeError", "NameError", "AttributeError")
"""The errors of Monty that name it."""
_BY_ITSELF = re.compile(r"panicked|SIGABRT|SIGSEGV|SIGBUS|SIGILL|SIGTRAP")
RAISED = frozenset(get_args(monty.ExcType)) - {"BaseException", "SystemExit", "KeyboardInterrupt", "StopIteration"}
"""The errors that a script raises with one text."""


_TOO_MANY = Ended(error=("RuntimeError", f"over {MAX_PROGRAM_CALLS:,} calls wait to begin; give a part to tasks"))
Turn = monty.FunctionSnapshot | monty.NameLookupSnapshot | monty.FutureSnapshot | monty.MontyComplete


class ScriptRun:
    """One script on its way to where it waits. The time in it is that of the last end that it was told.

    Ends are told in the order in which they are given, each when nothing in the script can go on without it. Of those
    until `since`, a program that was edited is told the next only when the calls that it has made meanwhile are known
    to have ended or not: so coroutines interleave as they did. At most `MAX_OPEN_CALLS` are open, and `queued` are the
    calls behind them; `sleeps` are not among these. At `awaited` is the next of them over when the script last waited.
    """

    def __init__(
        self,
        script: str,
        answer: Answer,
        given: Given,
        read: Read,
        file: str = _SCRIPT_FILE,
        *,
        coroutines: Coroutines | None = None,
        clock: int = 0,
        since: int = 0,
        function: str = "",
    ) -> None:
        self.script = script
        self._function = function
        self.given = given
        self.coroutines = coroutines or Coroutines()
        self.clock = clock
        self._since = since
        self._source = script.encode()
        self._lines = lines_of(script)
        self._modules = [(self._lines[line], name) for line, name in modules_in(script)]
        self._own = {as_known(script, name): stands for name, stands in own_errors(script).items()}
        self._answer = answer
        self._read = read
        self._file = file
        self.sleeps: dict[int, Sleep] = {}
        self.queued: dict[int, Call] = {}
        self.awaited = 0
        self._open: set[int] = set()
        self._ended: deque[tuple[int, Ended]] = deque()
        """What ended and has not been fed."""
        self._printed = list[str]()
        self._room = MAX_LOG_CHARACTERS
        self._has_called = False
        """Whether the script has made a call since it was told an end."""

    def note(self, stream: str, text: str) -> None:
        """Keep what the script prints, and of what is more than any log has a little, so that it is known to be cut."""
        del stream
        self._printed.append(text[: max(self._room, 0) + 1])
        self._room -= len(self._printed[-1])

    @property
    def printed(self) -> str:
        """What the script has printed."""
        return "".join(self._printed)

    def until_it_waits(self, turn: Turn, ended: Mapping[int, Ended] | None = None) -> Advance:
        if isinstance(turn, monty.FutureSnapshot):
            self._open = set(turn.pending_call_ids) - self.coroutines.own
            self._ended.extend((ended or {}).items())
        deadline = time.monotonic() + STEP_SECONDS
        for _ in range(TURNS):
            if time.monotonic() > deadline:
                return self._too_long(f"{STEP_SECONDS:.0f} s without waiting for a call")
            if isinstance(turn, monty.FunctionSnapshot):
                if turn.function_name == LEAVE:
                    return self._complete(*turn.args)
                turn = self._call(turn)
            elif isinstance(turn, monty.NameLookupSnapshot) and turn.object_id is not None:
                turn = turn.resume()
            elif isinstance(turn, monty.NameLookupSnapshot):
                turn = turn.resume(value=tool_named(turn.variable_name))
            elif isinstance(turn, monty.MontyComplete):
                return self._complete(turn.output)
            elif (fed := self._next()) is not None:
                turn = turn.resume(fed)
            else:
                return self._waiting(turn)
        line = self._line(turn.position) if isinstance(turn, monty.FunctionSnapshot) else 0
        return self._error("RuntimeError", f"the script made more than {TURNS:,} calls without waiting for one", line)

    def _call(self, turn: monty.FunctionSnapshot) -> Turn:
        if turn.is_os_function:
            return self._clock(turn)
        if turn.object_id is not None:
            return turn.resume({"exc_type": "AttributeError", "message": _NO_ATTRIBUTE})
        name = called_name(str(turn.function_name))
        if name == "now" and not turn.args and not turn.kwargs:
            return turn.resume({"return_value": datetime.fromtimestamp(self.clock / 1000, UTC).replace(tzinfo=None)})
        if name == "__time":
            return turn.resume({"return_value": self.clock})
        if name.startswith("__") and name not in CALLED_FOR:
            if self.coroutines.is_open(name, turn.call_id, turn.args):
                return turn.resume({"future": ...})
            return turn.resume({"return_value": self.coroutines.answer(name, turn.args)})
        try:
            call = self._made(turn, name)
        except NotJson as problem:
            return turn.resume({"exc_type": "TypeError", "message": f"{name}: {problem}"})
        is_queued = self._is_full and call.function not in _NEVER_QUEUED
        ended = self._answer(call) if not is_queued else _TOO_MANY if len(self.queued) >= MAX_PROGRAM_CALLS else None
        if isinstance(ended, Ended) and (call.function in PLAIN or ended.error is not None):
            return turn.resume(self._result(ended))
        self._open.add(call.number)
        self.coroutines.opened(call.number)
        self._has_called = True
        if is_queued:
            self.queued[call.number] = call
        elif isinstance(ended, Sleep):
            self.sleeps[call.number] = ended._replace(line=call.line, coroutine=call.coroutine)
        elif ended is not None:
            self._ended.appendleft((call.number, ended))
        return turn.resume({"future": ...})

    @property
    def _is_full(self) -> bool:
        return len(self._open) - len(self.queued) - len(self.sleeps) >= MAX_OPEN_CALLS

    def _close(self, number: int) -> None:
        """Count a call as open no longer, and have the next of those that are queued begin."""
        self._open.discard(number)
        self.queued.pop(number, None)
        self.sleeps.pop(number, None)
        while self.queued and not self._is_full:
            number = next(iter(self.queued))
            ended = self._answer(self.queued.pop(number))
            if isinstance(ended, Ended):
                self._ended.appendleft((number, ended))

    def _clock(self, turn: monty.FunctionSnapshot) -> Turn:
        """Answer what asks for the time."""
        now = datetime.fromtimestamp(self.clock / 1000, UTC)
        if turn.function_name == "datetime.now":
            return turn.resume({"return_value": now if turn.args and turn.args[0] else now.replace(tzinfo=None)})
        if turn.function_name == "date.today":
            return turn.resume({"return_value": now.date()})
        return turn.resume_not_handled()

    def _next(self) -> dict[int, monty.ExternalSettledResult] | None:
        """Return what the script is told next, None if it waits for calls that have not ended."""
        woken = self.coroutines.next()
        if woken is not None:
            return self._woken(woken)
        if not self._ended or (0 < self._ended[0][1].at <= self._since and self._may_be_early(self._ended[0][1].at)):
            return None
        number, ended = self._ended.popleft()
        if number < 0:
            self._end_sleeps(max(-number, ended.at), ended.at)
        if number not in self._open:  # its coroutine was cancelled
            return self._next()
        self._has_called = False
        self.clock = max(self.clock, ended.at)
        self._close(number)
        self.coroutines.ended(number)
        return {number: self._result(ended)}

    def _may_be_early(self, at: int) -> bool:
        """Whether something may have ended before, of which nobody has asked yet: a call, or the next sleep."""
        due = min((sleep.due for sleep in self.sleeps.values()), default=at + 1)
        return self._has_called or (due <= at and due != self.awaited)

    def _end_sleeps(self, until: int, at: int) -> None:
        """Have the sleeps end that are over by then, one after the other, before any other call."""
        over = sorted((sleep.due, number) for number, sleep in self.sleeps.items() if sleep.due <= until)
        self._ended.extendleft((number, Ended()) for _, number in reversed(over))
        self.clock = max(self.clock, at)

    def _woken(self, woken: Woken) -> dict[int, monty.ExternalSettledResult]:
        for number in woken.numbers:
            self._close(number)
        if woken.error is None:
            return {number: {"return_value": woken.value} for number in woken.numbers}
        kind, message = woken.error
        return {number: {"exc_type": cast("monty.ExcType", kind), "message": message} for number in woken.numbers}

    def _made(self, turn: monty.FunctionSnapshot, name: str) -> Call:
        if name == "sleep_until" and turn.args and isinstance(turn.args[0], datetime):
            return self._numbered(turn, name, [turn.args[0].isoformat()], {})
        if name in CALLED_FOR:
            value, line = turn.args
            return replace(self._numbered(turn, CALLED_FOR[name], [as_json(value, self.given)], {}), line=line)
        functions = range(len(turn.args))[_TAKES_FUNCTIONS.get(name, slice(0, 0))]
        given = partial(as_json, given=self.given, is_read_outside=name not in _TAKES_FUNCTIONS)
        args = [
            FunctionName.of(value) if number in functions else given(value) for number, value in enumerate(turn.args)
        ]
        kwargs = {
            key: as_schema(value, self.given) if key == "schema" else given(value)
            for key, value in turn.kwargs.items()
            if key != LINE
        }
        return self._numbered(turn, name, args, kwargs)

    def _numbered(self, turn: monty.FunctionSnapshot, name: str, args: list[Any], kwargs: dict[str, Any]) -> Call:
        line = turn.kwargs[LINE] if LINE in turn.kwargs else self._line(turn.position)
        return Call(turn.call_id, name, tuple(args), kwargs, line, self.coroutines.maker, self.clock)

    def _waiting(self, turn: monty.FutureSnapshot) -> Advance:
        if not self._open:
            lines = self.coroutines.lines
            named = [str(place_among(self._modules, line)) for line in lines[:_FRAMES]]
            file, plural = file_of(self.script), "s" * (len(lines) > 1)
            places = ", ".join(f"{file}:{place}" if place.isdecimal() else place for place in named)
            places = places if file else f"line{plural} {', '.join(named)}"
            message = f"deadlock: the coroutines wait for each other, on {places}, and for no call"
            return self._error("RuntimeError", message, lines[-1] if lines else 0)
        state = turn.dump()
        if len(state) > MAX_SNAPSHOT_BYTES:
            size = f"{len(state) / (1 << 20):.0f} MB, more than {MAX_SNAPSHOT_BYTES >> 20} MB"
            return self._error("MemoryError", f"the values of the script take {size}")
        left = tuple(number for number, _ in self._ended if number in self._open or number < 0)
        sleep = min(self.sleeps.values(), default=None)
        self.awaited = sleep.due if sleep else 0
        return Advance(state, self._waits(), left=left, sleep=sleep)

    def _waits(self) -> tuple[int, ...]:
        return tuple(sorted({-self.sleeps[each].due if each in self.sleeps else each for each in self._open}))

    def _complete(self, value: Any, kept: Sequence[Sequence[Any]] = ()) -> Advance:
        sites = tuple((name, line) for name, line in kept)
        try:
            value = as_json(value, self.given, is_read_outside=self._function == "main")
            return Advance(waits=self._waits(), value=value, clock=self.clock, kept=sites)
        except NotJson as problem:
            return self._error("TypeError", f"the script returned what is not JSON: {problem}")

    def failed(self, error: monty.MontyError) -> Advance:
        """Return what the script raised. Raises InterpreterCrashed if it was not the script."""
        if isinstance(error, monty.MontyCrashedError):
            return self._too_long() if error.timed_out else self._error("MemoryError", ended_by_script(error))
        if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
            return self._error("TypeError", str(error))
        frames = [frame for frame in error.traceback() if frame.filename == self._file]
        kind, _, message = error.display("type-msg").partition(": ")
        for name, stands in self._own.items():
            message = message.replace(f"'{stands}' object has no", f"'{name}' object has no")
        kind = next((name for name, stands in self._own.items() if stands == kind), kind)
        kind = "CancelledError" if kind == CANCELLED[0] else kind
        message = _OF_PRELUDE.sub("", message) if kind in _NAMING else message
        if kind == "TimeoutError" and "time limit exceeded" in message:
            return self._too_long()
        if kind == "MemoryError" and "memory limit" in message:
            message = (
                f"the values of the script take more than {MAX_MEMORY_BYTES >> 20} MB; have tasks return what counts"
            )
        if kind == "RecursionError":
            message = f"functions call each other more than {RECURSION} levels deep; write a loop"
        if message.startswith(_INTERNAL) and "zero or one string argument" in message:
            kind, message = "TypeError", "an exception takes one text: write KeyError(str(key)), ValueError(f'...')"
        line = self._number(frames[-1].line) if frames else 0
        return self._error(kind, message, line, _traceback(frames, self._in_file, kind, message))

    def _too_long(self, how: str = f"{TURN_SECONDS:.0f} s without a call") -> Advance:
        where, line = self._read("loop", self.script)
        message = f"the script computed for {how}; {where}"
        return self._error("TimeoutError", f"{message}end the loop, or give the work to a tool", line)

    def _error(self, kind: str, message: str, line: int = 0, traceback: str = "") -> Advance:
        return Advance(waits=self._waits(), error=ScriptError(kind, message, line, traceback))

    def _result(self, ended: Ended) -> monty.ExternalSettledResult:
        """Return how a call ended as Monty takes it: an error it has no type for is a RuntimeError that names it."""
        if ended.error is None:
            try:
                return {"return_value": as_result(ended.value, self.wrapped)}
            except NotJson as problem:
                ended = Ended(error=("ValueError", f"the result cannot be used in a script: {problem}"))
        kind, message = cast("tuple[str, str]", ended.error)
        kind = self._own.get(kind, kind)
        if kind not in RAISED:
            kind, message = "RuntimeError", f"{kind}: {message}"
        return {"exc_type": cast("monty.ExcType", kind), "message": message}

    def wrapped(self, ref: Ref) -> monty.ClassInstance:
        """Return a reference as Monty takes it."""
        return monty.ClassInstance(ref, eager_attrs="all", id=self.given.id_of(ref))

    def _line(self, position: monty.SourceRange) -> int:
        return self._number(self._source.count(b"\n", 0, position.start) + 1) if position.filename == self._file else 0

    def _in_file(self, line: int) -> str:
        """Return the file and the line of a line of what Monty has, as a traceback names them."""
        file, _, number = str(place_among(self._modules, self._number(line))).rpartition(":")
        return f'"{file or file_of(self.script) or "script"}", line {number}'

    def _number(self, line: int) -> int:
        """Return the line of the script for a line of what Monty has."""
        return self._lines[min(line, len(self._lines) - 1)]


def ended_by_script(error: monty.MontyCrashedError) -> str:
    """Return what a script did to Monty's process: what it ends by itself comes again. Raises InterpreterCrashed if
    another ended it.
    """
    if not _BY_ITSELF.search(str(error)):
        raise InterpreterCrashed(str(error)) from error
    return "its interpreter has ended on it; write it in simpler steps, or give a part of it to tools"


def _traceback(frames: Sequence[monty.Frame], place: Callable[[int], str], kind: str, message: str) -> str:
    """Return a traceback of the script's own lines, with the middle of a long one left out."""
    lines = [f"  File {place(frame.line)}, in {frame.function_name or '<module>'}" for frame in frames]
    if len(lines) > 2 * _FRAMES:
        lines[_FRAMES:-_FRAMES] = [f"  ... {len(lines) - 2 * _FRAMES} more ..."]
    return "\n".join(["Traceback (most recent call last):", *lines, f"{kind}: {message}"])
