"""One script on its way to where it waits: its calls are answered, and what goes
wrong is told with a line.

Nothing that the script's process says is believed: every message is checked, its lines are those of
the script, and its call sites name what stands there.
"""

import math
import re
import signal
import unicodedata
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from sennit.activities.limits import (
    MAX_LOG_CHARACTERS,
    MAX_MEMORY_BYTES,
    MAX_NEWS_CHARACTERS,
    MAX_OPEN_CALLS,
    MAX_PROGRAM_CALLS,
)
from sennit.activities.programs.checkouts import InterpreterCrashed
from sennit.activities.programs.cpython.names import BEGUN, BOUNDED, ENDED, JOINED, TOLD
from sennit.activities.programs.progress import Advance, Standing, waits_of
from sennit.activities.programs.reading import Read
from sennit.activities.programs.replay_record import END, Entry
from sennit.activities.programs.script_process import PROCESS_SECONDS, Place, ScriptProcess
from sennit.activities.programs.values import (
    Answer,
    Call,
    Ended,
    NotJson,
    ScriptError,
    Sleep,
    as_json,
    as_result,
    known_refs,
    packed,
    with_refs,
)
from sennit.activities.sandbox.computing import NoAnswer, OutOfTime, ProcessEnded
from sennit.workflows.plan.programs.files import file_of, modules_in, place_among
from sennit.workflows.plan.programs.vocabulary import AWAITED, FROM_RUN

TURN_SECONDS: Final = 5.0
ADVANCE_SECONDS: Final = 20.0
"""Of processor time, from one call to the next, and for all that a script does until it waits."""
SESSION_SECONDS: Final = 120.0
"""Of processor time that a session may take in all: a replay takes it again."""
REPLAY_SECONDS: Final = SESSION_SECONDS + TURN_SECONDS
CALLS_IN_AN_ADVANCE: Final = 100_000
_ENDS_TOGETHER: Final = 1_000
"""In one message: sleeps that are over at the same time."""
_ADVANCE_BYTES: Final = 64 << 20
"""Of all messages of a process, from one wait to the next."""
_FRAMES: Final = 10
_AT_ONCE: Final = ("phase", BOUNDED, *TOLD)
"""Words that are answered at once."""
_NEVER_QUEUED: Final = (*_AT_ONCE, "sleep", "sleep_until", *FROM_RUN)
_TOO_MANY: Final = Ended(error=("RuntimeError", f"over {MAX_PROGRAM_CALLS:,} calls wait to begin"))
_NUMBER: Final = r"#[1-9]\d{0,6}"
_FUNCTION: Final = r"\w+(?:\.\w+){0,20}"
"""Of the program, or of a module: `look`, `pack.dates.look`."""
_TASK: Final = rf"/{_FUNCTION}(?:>{_FUNCTION}){{0,50}}~[0-9a-f]{{12}}\.[1-9]\d{{0,6}}{_NUMBER}"
_PHASE: Final = r"/=[^\s/#:\x00-\x1f\x7f-\x9f]{1,40}"
_SITE: Final = re.compile(rf"(?:/{_FUNCTION}{_NUMBER}|{_TASK}|{_PHASE}){{0,150}}")
"""Coroutines, tasks and phases, one within the other."""
_SITE_NAMES_OF: Final = re.compile(r"/([\w.>]+)[#~]")
_SITE_CHARACTERS: Final = 6_000
_SITE_NAMES: Final = frozenset(("__call", "__ring", "coroutine", *AWAITED))
"""Names in call sites beside those that stand in the script."""
_NAME: Final = re.compile(r"[^\W\d]\w{0,199}")
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")
_PYTHONS_NAME: Final = re.compile(r"<[\w ]{1,80}>")
_LEFT_OUT: Final = re.compile(r"\.\.\. \d{1,9} more \.\.\.")
_NO_KIND: Final = re.compile(r"[^\w.<>]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Beside tabs and breaks: characters that move the cursor of a terminal, or change its colours."""
_KIND_CHARACTERS: Final = 200
_CHARACTERS: Final = 4_000
"""Of a message of an error."""


class Untrue(Exception):
    """A message of a script's process that no process of ours would write."""


class OtherCalls(Exception):
    """A script that was told what is on record has made other calls than it made before."""


class ScriptRun:
    """A script on its way to where it waits next. The time in it is that of the
    last end that it was told.

    Ends are told in the order in which they are given, each when nothing in the script can go on
    without it. Of those until `since`, a program that was edited is told the next only when the
    calls that it has made meanwhile are known to have ended or not: so coroutines interleave as
    they did. At most `MAX_OPEN_CALLS` are open, and the calls behind them are queued.
    """

    def __init__(
        self, text: str, function: str, place: Place, standing: Standing, answer: Answer, read: Read
    ) -> None:
        self.standing = standing
        self.place = place
        self.entries: list[Entry] = []
        """What the script was told in this advance."""
        self._text = text
        self._function = function
        self._answer = answer
        self._read = read
        self._since = 0
        self._made = 0
        """How many calls the script has made: the next one has this number."""
        self._open = set(standing.open)
        self._refs = set[tuple[str, int]]()
        self._lines = text.count("\n") + 1
        self._modules = modules_in(text)
        self._ended: deque[tuple[int, Ended]] = deque()
        """What has ended, of which the script was not told yet."""
        self._together = deque[int]()
        """Sleeps that the script is told of in the message on its way,
        behind the first end in it.
        """
        self._ends_on_way = 0
        """How many ends are in that message."""
        self._printed = list[str]()
        self._room = MAX_LOG_CHARACTERS
        self._has_called = False
        """Whether the script has made a call that is open since it was told an end."""
        self._last = -1
        """The call of whose end the script was told last."""
        self._last_at = 0
        """When that call ended."""
        self._running = False
        """Whether tasks run of a script that has failed."""
        self.waits = False
        """Whether the script waits, and has not ended."""

    def go_on(self, answer: Answer) -> None:
        """Begin another advance."""
        self._answer = answer
        self.entries = []
        self.waits = False
        self._printed = []
        self._room = MAX_LOG_CHARACTERS
        self._has_called = False
        self._last = -1
        self._last_at = 0
        self._running = False

    @property
    def is_alive(self) -> bool:
        """Whether the script still waits in its process."""
        return self.place.is_alive

    @property
    def printed(self) -> str:
        """What the script has printed."""
        return "".join(self._printed)

    def know_refs(self, packed_value: Any) -> None:
        """Remember the Refs of a value that the script is given."""
        self._refs |= known_refs(packed_value)

    def replay(self, start: dict[str, Any], pieces: Sequence[list[Entry]]) -> None:
        """Have the script stand where it stood. Raises OtherCalls, InterpreterCrashed."""
        message: dict[str, Any] = {"start": start}
        said: Any = None
        try:
            for piece in pieces:
                for entry in piece:
                    if END not in entry:
                        self._made += 1
                said = self._tell({**message, "record": piece}, REPLAY_SECONDS)
                message = {}
        except NoAnswer as error:
            raise InterpreterCrashed(f"a script that was told its record again: {error}") from error
        if not self._stands_where_it_stood(said):
            self.place.process.end()
            raise OtherCalls

    def _stands_where_it_stood(self, said: Any) -> bool:
        """Whether the process says, after a replay, that the script has made the
        calls that it made before.
        """
        if not isinstance(said, dict) or "diverged" in said:
            return False
        if said.get("digest") != self.standing.calls:
            return False
        open_calls = said.get("open")
        return isinstance(open_calls, list) and set(open_calls) == set(self.standing.open)

    def until_it_waits(
        self, message: dict[str, Any] | None, ended: Mapping[int, Ended], since: int
    ) -> Advance:
        """Tell the script a message and what has ended, until it waits for more.
        Raises InterpreterCrashed.
        """
        self._since = since
        self._ended = deque(ended.items())
        self._ends_on_way = 0
        calls = 0
        before = self._process.written
        while True:
            if message is None:
                message = self._next_end()
            if message is None:
                return self._waiting()
            try:
                said = self._tell(message, TURN_SECONDS)
                message = None
                if self._process.written - before > _ADVANCE_BYTES:
                    raise Untrue(
                        f"it has told more than {_ADVANCE_BYTES >> 20} MB without waiting for a "
                        "call"
                    )
                self._hear_of_ends(said)
                if isinstance(said, dict) and "calls" in said:
                    self._note(said.get("print"))
                    made = _list_of(said["calls"])
                    calls += len(made)
                    if _number_of(said.get("seconds")) > ADVANCE_SECONDS:
                        return self._too_long(f"{ADVANCE_SECONDS:.0f} s without waiting for a call")
                    if calls > CALLS_IN_AN_ADVANCE:
                        return self._too_many(made[-1])
                    replies = [self._answered(call) for call in made]
                    message = {"replies": replies}
                    continue
                end = self._reported(said)
            except OutOfTime:
                return self._too_long(f"{TURN_SECONDS:.0f} s without a call")
            except ProcessEnded as error:
                return self._process_ended(error)
            except (NoAnswer, Untrue) as error:
                self.place.process.end()
                return self._error("RuntimeError", f"the process of the script has ended: {error}")
            if end is not None:
                return end

    @property
    def _process(self) -> ScriptProcess:
        return self.place.process

    def _tell(self, message: dict[str, Any], seconds: float) -> Any:
        return self._process.tell(message, seconds)

    # Calls of the script.

    def _answered(self, said: Any) -> dict[str, Any]:
        """Return the answer to a call. Raises Untrue."""
        call = self._checked_call(said)
        entry: Entry
        if isinstance(call, Call):
            entry = self._entry_of(call)
        else:
            entry = {"error": ["TypeError", f"{said[1]}: {call}"]}
        self.entries.append(entry)
        return entry

    def _entry_of(self, call: Call) -> Entry:
        is_queued = self._is_full and call.function not in _NEVER_QUEUED
        if is_queued and len(self.standing.queued) >= MAX_PROGRAM_CALLS:
            ended: Ended | Sleep | None = _TOO_MANY
        elif is_queued:
            ended = None
        else:
            ended = self._answer(call)
        if isinstance(ended, Ended):
            if ended.error is not None:
                return {"error": list(ended.error)}
            if call.function in _AT_ONCE:
                return {"value": self._sent(ended.value)}
        self._has_called = True
        self._open.add(call.number)
        if is_queued:
            self.standing.queued[call.number] = call
        elif isinstance(ended, Sleep):
            self.standing.sleeps[call.number] = ended._replace(
                line=call.line, coroutine=call.coroutine
            )
        elif ended is not None:
            self._ended.appendleft((call.number, ended))
        return {}

    def _checked_call(self, said: Any) -> Call | NotJson:
        """Return a call that the process tells, or why its values may not leave the
        script. Raises Untrue.
        """
        match said:
            case [
                int() as number,
                str() as word,
                list() as args,
                dict() as kwargs,
                int() as line,
                str() as site,
            ]:
                pass
            case _:
                raise Untrue("it has told a call that is none")
        if type(number) is not int or number != self._made or not _NAME.fullmatch(word):
            raise Untrue("it has told a call that cannot be")
        self._made += 1
        coroutine = self._checked_site(site)
        line = self._number(line)
        if word in TOLD:
            self._check_news(word, args, kwargs)
        try:
            places = tuple(self._received(value) for value in args)
            named = {key: self._received(value) for key, value in kwargs.items()}
        except NotJson as problem:
            return problem
        standing = self.standing
        return Call(number, word, places, named, line, coroutine, standing.clock, standing.writes)

    def _check_news(self, word: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Check what the process tells of tasks. Raises Untrue."""
        texts: tuple[str, ...]
        match word, args:
            case str(), [str() as site, str() as about, *budget] if (
                word == BEGUN and len(budget) <= 1
            ):
                self._checked_site(site)
                texts = (about,)
            case str(), [number, str() as status, str() as error] if (
                word == ENDED and type(number) is int
            ):
                texts = (status, error)
            case str(), [[*numbers]] if word == JOINED and _are_numbers(numbers):
                texts = ()
            case _:
                raise Untrue("it has told news of tasks that are none")
        is_long = any(len(text) > MAX_NEWS_CHARACTERS for text in texts)
        if kwargs or is_long:
            raise Untrue("it has told news of tasks that are none")

    def _checked_site(self, site: str) -> str:
        """Return a call site that the process tells: its names are those of functions of the
        script. Raises Untrue.
        """
        if len(site) > _SITE_CHARACTERS or not _SITE.fullmatch(site):
            raise Untrue("it has told a call site that is none")
        for names in _SITE_NAMES_OF.findall(site):
            for name in names.split(">"):
                if not self._may_be_in_site(name):
                    raise Untrue("it has told a call site that is not of the script")
        return site

    def _may_be_in_site(self, name: str) -> bool:
        """Whether a name of a call site is one that Sennit gives, or one whose
        parts stand in the script.
        """
        if name in _SITE_NAMES:
            return True
        parts = name.removeprefix("__").split(".")
        return all(part in self._text for part in parts)

    def _received(self, value: Any) -> Any:
        """Return a value of the script, with the Refs that it was given. Raises NotJson."""
        return as_json(with_refs(value, self._refs))

    def _sent(self, value: Any) -> Any:
        """Return a value as the script's process takes it."""
        sent = packed(value)
        self.know_refs(sent)
        return sent

    @property
    def _is_full(self) -> bool:
        not_begun = len(self.standing.queued) + len(self.standing.sleeps)
        return len(self._open) - not_begun >= MAX_OPEN_CALLS

    def _close(self, number: int) -> None:
        """Count a call as open no longer, and have the next of those that are queued begin."""
        queued = self.standing.queued
        self._open.discard(number)
        queued.pop(number, None)
        self.standing.sleeps.pop(number, None)
        while queued and not self._is_full:
            first = next(iter(queued))
            ended = self._answer(queued.pop(first))
            if isinstance(ended, Ended):
                self._ended.appendleft((first, ended))

    # Ends of calls.

    def _next_end(self) -> dict[str, Any] | None:
        """Return what the script is told next, None if it waits for calls that have not ended."""
        while self._ended:
            number, ended = self._ended[0]
            if 0 < ended.at <= self._since and self._may_be_early(ended.at):
                return None
            self._ended.popleft()
            if number < 0:
                until = max(-number, ended.at)
                self._end_sleeps(until, ended.at)
            if number in self._open:
                ends = [self._told(number, ended)[END]]
                self._take_together()
                clock = self.standing.clock
                for sleep_number in self._together:
                    ends.append([sleep_number, None, None, clock])
                self._ends_on_way = len(ends)
                return {"ends": ends}
            # Else its coroutine was cancelled.
        return None

    def _take_together(self) -> None:
        """Take the sleeps that are over with the end that the script is told now."""
        while self._ended and len(self._together) < _ENDS_TOGETHER:
            number, ended = self._ended[0]
            if number not in self.standing.sleeps or ended != Ended():
                break
            self._ended.popleft()
            self._together.append(number)

    def _hear_of_ends(self, said: Any) -> None:
        """Note which ends of the last message the script was told: after one that makes it call, it
        is told no other one. Raises Untrue.
        """
        told = said.get("told", 0) if isinstance(said, dict) else 0
        if type(told) is not int or not 0 <= told <= self._ends_on_way:
            raise Untrue("it has told of ends that it was not told")
        while self._ends_on_way - len(self._together) < told:
            self._told(self._together.popleft(), Ended())
        for number in reversed(self._together):
            self._ended.appendleft((number, Ended()))
        self._together.clear()
        self._ends_on_way = told

    def _told(self, number: int, ended: Ended) -> dict[str, Any]:
        self._has_called = False
        self._last = number
        self._last_at = ended.at
        self.standing.clock = max(self.standing.clock, ended.at)
        if ended.writes:
            self.standing.writes += 1
        self._close(number)
        value = None
        error = ended.error
        if error is None:
            try:
                value = self._sent(as_result(ended.value))
            except NotJson as problem:
                error = ("ValueError", f"the result cannot be used in a script: {problem}")
        raised = list(error) if error is not None else None
        entry: Entry = {END: [number, value, raised, self.standing.clock]}
        self.entries.append(entry)
        return entry

    def _may_be_early(self, at: int) -> bool:
        """Whether something may have ended before, of which nobody has asked yet: a
        call, or the next sleep.
        """
        # Ends of one time were told in one step, and what the script has called there ended
        # later than all of them.
        if self._has_called and at > self._last_at:
            return True
        sleep = min(self.standing.sleeps.values(), default=None)
        return sleep is not None and sleep.due <= at and sleep.due != self.standing.awaited

    def _end_sleeps(self, until: int, at: int) -> None:
        """Have the sleeps end that are over by then, one after the other, before any other call."""
        over = list[tuple[int, int]]()
        for number, sleep in self.standing.sleeps.items():
            if sleep.due <= until:
                over.append((sleep.due, number))
        # Each goes to the front, so the last of them goes first.
        for _, number in sorted(over, reverse=True):
            self._ended.appendleft((number, Ended()))
        self.standing.clock = max(self.standing.clock, at)

    # Reports of the process.

    def _reported(self, said: Any) -> Advance | None:
        """Take a report. Return how the script has ended, None if it waits. Raises Untrue."""
        if not isinstance(said, dict):
            raise Untrue("it has told a report that is none")
        self._note(said.get("print"))
        self._take_measures(said)
        closed = said.get("closed")
        if not _are_numbers(closed):
            raise Untrue("it has told a report without the calls that it has given up")
        for number in sorted(closed):
            if number in self._open:
                self._close(number)
        if "done" in said:
            return self._complete(said["done"], said.get("kept"))
        if "error" in said:
            self._running = bool(said.get("running"))
            return self._failed(said["error"])
        if self.standing.seconds > SESSION_SECONDS:
            self.place.process.end()
            return self._too_long(f"{SESSION_SECONDS:.0f} s in all")
        if not self._open and not self._ended:
            return self._deadlock(said.get("deadlock"))
        return None

    def _take_measures(self, said: dict[str, Any]) -> None:
        calls = said.get("digest")
        if not isinstance(calls, str) or not _DIGEST.fullmatch(calls):
            raise Untrue("it has told a report without its calls")
        self.standing.calls = calls
        seconds = _number_of(said.get("seconds"))
        self.standing.seconds = max(seconds, self.standing.seconds)

    def _note(self, text: Any) -> None:
        """Keep what the script prints, and of what is more than any log has a little, so that
        it is known to be cut.
        """
        if not isinstance(text, str):
            raise Untrue("it has told a text that is none")
        most = max(self._room, 0) + 1
        kept = _clean(text[:most])
        self._printed.append(kept)
        self._room -= len(kept)

    def _waiting(self) -> Advance:
        left = list[int]()
        for number, _ in self._ended:
            if number in self._open or number < 0:
                left.append(number)
        self._ended.clear()
        sleep = min(self.standing.sleeps.values(), default=None)
        self.standing.awaited = sleep.due if sleep is not None else 0
        self.standing.open = sorted(self._open)
        self.waits = True
        return Advance(waits=self._waits(), left=tuple(left), sleep=sleep)

    def _waits(self) -> tuple[int, ...]:
        return waits_of(self._open, self.standing.sleeps)

    def _deadlock(self, lines: Any) -> Advance:
        if not _are_numbers(lines):
            raise Untrue("it has told a deadlock without lines")
        numbers = [self._number(line) for line in lines]
        file = file_of(self._text)
        places = list[str]()
        for number in numbers[:_FRAMES]:
            place = str(place_among(self._modules, number))
            if file and place.isdecimal():
                place = f"{file}:{place}"
            places.append(place)
        where = ", ".join(places)
        if not file:
            word = "lines" if len(numbers) > 1 else "line"
            where = f"{word} {where}"
        message = f"deadlock: the coroutines wait for each other, on {where}, and for no call"
        last = numbers[-1] if numbers else 0
        return self._error("RuntimeError", message, last)

    def _complete(self, value: Any, kept: Any) -> Advance:
        if kept is None:
            kept = []
        if not _are_pairs(kept):
            raise Untrue("it has told calls that are none")
        calls = list[tuple[str, int]]()
        for name, line in kept:
            shown = _clean(str(name)[:_KIND_CHARACTERS])
            calls.append((shown, self._number(line)))
        try:
            value = self._received(value)
        except NotJson as problem:
            return self._error("TypeError", f"the script returned what is not JSON: {problem}")
        clock = self.standing.clock
        return Advance(waits=self._waits(), value=value, clock=clock, kept=tuple(calls))

    def _failed(self, said: Any) -> Advance:
        match said:
            case [str() as kind, str() as message, int() as line, list() as frames]:
                kind = _NO_KIND.sub("?", kind[:_KIND_CHARACTERS])
                message = _CONTROL.sub("", _clean(message[:_CHARACTERS]))
            case _:
                raise Untrue("it has told an error that is none")
        if kind == "MemoryError":
            most = f"{MAX_MEMORY_BYTES >> 20} MB"
            message = (
                f"the values of the script take more than {most}; have tasks return what counts"
            )
        elif kind == "RecursionError":
            message = "functions call each other too many levels deep; write a loop"
        number = self._number(line)
        traceback = self._traceback(frames, kind, message)
        return self._error(kind, message, number, traceback)

    def _traceback(self, frames: list[Any], kind: str, message: str) -> str:
        shown = list[str]()
        for frame in frames[: 3 * _FRAMES]:
            match frame:
                case [0, str() as text] if _LEFT_OUT.fullmatch(text):
                    shown.append(f"  {text}")
                case [int() as line, str() as name] if self._is_of_script(name):
                    shown.append(f"  File {self._in_file(line)}, in {name}")
                case _:
                    raise Untrue("it has told a traceback that is none")
        if not shown:
            return ""
        return "\n".join(["Traceback (most recent call last):", *shown, f"{kind}: {message}"])

    def _is_of_script(self, name: str) -> bool:
        """Whether a name stands in the script, or is one that Python gives: `<module>`."""
        if _PYTHONS_NAME.fullmatch(name):
            return True
        return _NAME.fullmatch(name) is not None and self._stands_in_script(name)

    def _stands_in_script(self, name: str) -> bool:
        # Python reads names in this form, however they are written.
        text = unicodedata.normalize("NFKC", self._text)
        return re.search(rf"\b{name}\b", text) is not None

    # How a script ends that does not say so itself.

    def _process_ended(self, end: ProcessEnded) -> Advance:
        """Return how the script has ended its process. Raises InterpreterCrashed
        if something else has.
        """
        status = end.status
        if status is None or status == -signal.SIGKILL:
            raise InterpreterCrashed("the process of a script was killed") from end
        if status == -signal.SIGXCPU:
            return self._too_long(f"{PROCESS_SECONDS} s in all")
        if status == -signal.SIGSYS:
            return self._error(
                "RuntimeError", "the script has asked the kernel for what no script may have"
            )
        if status >= 0:
            message = (
                f"the process of the script has ended with status {status}: the script has ended "
                "it, or changed"
            )
            return self._error(
                "RuntimeError", f"{message} a part of Python that Sennit needs there"
            )
        advice = "write it in simpler steps, or give a part of it to tools"
        return self._error("MemoryError", f"its interpreter has ended on it; {advice}")

    def _too_long(self, how: str) -> Advance:
        self.place.process.end()
        where, line = self._read("loop", self._text)
        message = f"the script computed for {how}; {where}end the loop, or give the work to a tool"
        return self._error("TimeoutError", message, self._number(line))

    def _too_many(self, said: Any) -> Advance:
        call = self._checked_call(said)
        self.place.process.end()
        line = call.line if isinstance(call, Call) else 0
        message = f"the script made more than {CALLS_IN_AN_ADVANCE:,} calls without waiting for one"
        return self._error("RuntimeError", message, line)

    def _error(self, kind: str, message: str, line: int = 0, traceback: str = "") -> Advance:
        error = ScriptError(kind, message, line, traceback)
        return Advance(waits=self._waits(), error=error, last=self._last, running=self._running)

    # Lines.

    def _number(self, line: Any) -> int:
        """Return the line of the script for a line that its process tells, 0
        for none. Raises Untrue.
        """
        if type(line) is not int or not 0 <= line <= self._lines:
            raise Untrue("it has told a line that the script has not")
        return line

    def _in_file(self, line: int) -> str:
        """Return the file and the line of a line, as a traceback names them."""
        place = place_among(self._modules, self._number(line))
        file, _, number = str(place).rpartition(":")
        file = file or file_of(self._text) or "script"
        return f'"{file}", line {number}'


def _list_of(value: Any) -> list[Any]:
    """Return a list that a process tells, which is not empty. Raises Untrue."""
    if not isinstance(value, list) or not value:
        raise Untrue("it has told a list that is none")
    return value


def _are_numbers(value: Any) -> TypeGuard[list[int]]:
    """Whether a process tells a list of whole numbers."""
    return isinstance(value, list) and all(type(number) is int for number in value)


def _are_pairs(value: Any) -> TypeGuard[list[list[Any]]]:
    """Whether a process tells a list of pairs."""
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 for pair in value
    )


def _number_of(seconds: Any) -> float:
    """Return seconds that a process tells. Raises Untrue."""
    if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
        raise Untrue("it has told a time that is none")
    return seconds


def _clean(text: str) -> str:
    """Return a text that can be stored: halves of characters become question marks."""
    return text.encode(errors="replace").decode()
