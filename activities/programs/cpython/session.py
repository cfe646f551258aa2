"""One session of a script: it runs until everything in it waits, tells the worker of its
calls, and takes their ends.

A session that is to stand where it stood before is given the record of what it was told. It makes
the same calls then, which a digest shows, and the worker hears of none of them.
"""

import ast
import asyncio
import gc
import hashlib
import json
import sys
import types
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

from sennit.activities.limits import MAX_LOG_CHARACTERS
from sennit.activities.programs.cpython.failures import Errors
from sennit.activities.programs.cpython.fixed_world import PROCESSOR_SECONDS, State
from sennit.activities.programs.cpython.loop import ReplayLoop
from sennit.activities.programs.cpython.modules import ScriptModules, run_file
from sennit.activities.programs.cpython.names import FILE, MODULE, shown_path
from sennit.activities.programs.cpython.private_interfaces import set_running_loop
from sennit.activities.programs.cpython.values import NotJson, json_of, value_of
from sennit.activities.programs.cpython.words import ScriptWords
from sennit.workflows.plan.programs.files import files_in, own_name

Exchange = Callable[[dict[str, Any]], dict[str, Any]]
"""Sends a message to the worker and returns its reply."""
_DUMPS: Final = json.dumps
"""As no script has changed it."""
_DIGEST_CHARACTERS: Final = 32
_MOST_UNSENT: Final = 200
"""Calls in one message."""
_MOST_UNSENT_BYTES: Final = 1_000_000
"""Of calls in one message, beside the last one."""
_MOST_PRINTED: Final = MAX_LOG_CHARACTERS + 1
"""Characters in one message: the worker keeps all but the last, which says that there was more."""
_ENDS_TO_COLLECT: Final = 100
"""Ends of calls, at least, until garbage is looked for among old objects, too."""


class Diverged(BaseException):
    """A script has made another call than it made when it ran first. No script catches it,
    for it ends the process.
    """


class Output:
    """What a script prints, until the worker is told. Lines of a task begin with its name."""

    encoding = "utf-8"

    def __init__(self, loop: ReplayLoop) -> None:
        self._loop = loop
        self._parts: list[str] = []
        self._room = _MOST_PRINTED
        self._begun: dict[str, str] = {}
        """By task, the line that it has begun."""

    def write(self, text: str) -> int:
        site = self._loop.branch().site
        if not site:
            self._keep(text)
            return len(text)
        line = self._begun.get(site, "")
        if len(line) < _MOST_PRINTED:
            line += text
        *whole, line = line.split("\n")
        for each in whole:
            self._keep(f"{shown_path(site)}: {each}\n")
        self._begun[site] = line
        return len(text)

    def _keep(self, text: str) -> None:
        kept = text[: self._room]
        if kept:
            self._parts.append(kept)
            self._room -= len(kept)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def take(self) -> str:
        """Return what was printed since it was taken last."""
        for site, line in self._begun.items():
            if line:
                self._keep(f"{shown_path(site)}: {line}\n")
        self._begun.clear()
        printed = "".join(self._parts)
        self._parts.clear()
        self._room = _MOST_PRINTED
        return printed


class ScriptSession:
    """A script, what it has open, and where it stands."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._calls = 0
        self._digest = hashlib.sha256()
        """Of all calls so far."""
        self._unsent: list[list[Any]] = []
        """Calls of which the worker has not heard: it hears of them once everything waits."""
        self._unsent_bytes = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._record = deque[Any]()
        """What the script is told again, of the calls and ends that it was told before."""
        self._seconds = 0.0
        """Of processor time, in the steps before this one."""
        self._began = 0.0
        self._ends = 0
        self._full_collection = _ENDS_TO_COLLECT
        """After how many ends garbage is looked for among old objects, too."""
        self._told = 0
        """How many ends of the worker's last message the script was told."""
        self._main: asyncio.Task[Any] | None = None
        self._return_line = 0
        self._is_main = False
        self._module = types.ModuleType(MODULE)
        self._names = self._module.__dict__
        self._errors = Errors(self._names)
        self._words = ScriptWords(self.call, self.call_later, self._errors, self._names)
        self._loop = ReplayLoop(self._call_in_loop, self.call_later, self._words.call_codes, FILE)  # type: ignore[abstract]
        self._words.begin_on(self._loop)
        self._output = Output(self._loop)
        self._state = State()

    def do(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message of the worker says, until everything waits. Return the report."""
        self._began = PROCESSOR_SECONDS()
        report = self._done(message)
        self._seconds += PROCESSOR_SECONDS() - self._began
        if "record" in message:
            report["open"] = self._loop.open_numbers
        report |= {
            "closed": self._loop.take_closed(),
            "told": self._told,
            "print": self._output.take(),
            "digest": self._digest.hexdigest()[:_DIGEST_CHARACTERS],
            "seconds": self._seconds,
        }
        return report

    def close(self) -> None:
        """Let go of all that the script holds."""
        self._main = None
        self._names.clear()
        self._words.close()
        self._state.ids.clear()

    def call(
        self, word: str, args: list[Any], kwargs: dict[str, Any], line: int, site: str
    ) -> tuple[int, Any]:
        """Make a call. Return its number, and what the worker says at once.
        Raises what the worker says.
        """
        number = self.call_later(word, args, kwargs, line, site)
        self.send_calls(but=number)
        reply = self._replies.pop(number)
        if "error" in reply:
            raise self._errors.error_of(*reply["error"])
        return number, value_of(reply.get("value"))

    def call_later(
        self, word: str, args: list[Any], kwargs: dict[str, Any], line: int, site: str
    ) -> int:
        """Make a call whose future the script waits for: the worker may hear of
        it with the next ones.
        """
        if len(self._unsent) >= _MOST_UNSENT or self._unsent_bytes >= _MOST_UNSENT_BYTES:
            self.send_calls()
        number = self._calls
        self._calls += 1
        call = [number, word, args, kwargs, line, site]
        written = _DUMPS(call).encode()
        self._digest.update(written)
        self._unsent.append(call)
        self._unsent_bytes += len(written)
        return number

    def send_calls(self, but: int = -1) -> None:
        """Tell the worker of the calls that it has not heard of, in order. The futures of those
        that it refuses fail, but not for the call with the number `but`: that has no future,
        and its reply is kept.
        """
        calls, self._unsent = self._unsent, []
        self._unsent_bytes = 0
        if not calls:
            return
        if self._record:
            replies = [self._recorded_reply() for _ in calls]
        else:
            used = PROCESSOR_SECONDS() - self._began
            message = {
                "calls": calls,
                "told": self._told,
                "print": self._output.take(),
                "seconds": used,
            }
            replies = self._exchange(message)["replies"]
        for call, reply in zip(calls, replies, strict=True):
            number = call[0]
            if number == but:
                self._replies[number] = reply
            elif "error" in reply:
                self._loop.end_call(number, None, self._errors.error_of(*reply["error"]))

    def _call_in_loop(
        self, word: str, args: list[Any], kwargs: dict[str, Any], line: int, site: str
    ) -> int:
        number, _ = self.call(word, args, kwargs, line, site)
        return number

    def _recorded_reply(self) -> dict[str, Any]:
        if not self._record or "end" in self._record[0]:
            raise Diverged
        return dict(self._record.popleft())

    def _done(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            if "start" in message:
                self._begin(**message["start"])
            self._tell_ends(message.get("ends", []))
            self._run_until_idle()
            while self._record:
                self._go_on_as_recorded()
        except Diverged:
            return {"diverged": True}
        except MemoryError:
            return self._full(0)
        except BaseException as error:  # noqa: BLE001 - at the top of the script
            self._loop.give_up_all()
            return {"error": self._errors.report(error)}
        return self._report()

    def _tell_ends(self, ends: list[list[Any]]) -> None:
        """Tell the script ends one after the other, each when all of it waits, until it
        makes a call or has ended.
        """
        self._told = 0
        calls = self._calls
        for end in ends:
            self._end(*end)
            self._told += 1
            self._loop.run_until_idle()
            if self._calls > calls or (self._main is not None and self._main.done()):
                break

    def _go_on_as_recorded(self) -> None:
        """Tell the script the next end of the record. Raises Diverged."""
        reply = self._record.popleft()
        if "end" not in reply or (self._main is not None and self._main.done()):
            raise Diverged
        self._end(*reply["end"])
        self._run_until_idle()

    def _run_until_idle(self) -> None:
        """Run until everything waits for calls of which the worker knows."""
        self._loop.run_until_idle()
        while self._unsent:
            self.send_calls()
            self._loop.run_until_idle()

    def record(self, replies: list[dict[str, Any]]) -> None:
        """Have the script be told these again, before it hears from the worker."""
        self._record.extend(replies)

    def _begin(
        self,
        text: str,
        function: str,
        arguments: dict[str, Any],
        seed: str,
        runs: list[list[Any]],
        clock: int,
    ) -> None:
        self._is_main = function == "main"
        self._loop.clock = clock
        self._state = State(seed, tuple((since, run) for since, run in runs), self._loop)
        self._state.enter()
        sys.modules[MODULE] = self._module
        sys.stdout = sys.stderr = self._output
        program, *others = files_in(text)
        modules = ScriptModules(others, self._words.define)
        modules.begin()
        self._words.run_programs_of(modules, own_name(text))
        # A context of its own: what a script sets in it, as the precision of decimals,
        # no other session sees.
        context = Context()
        set_running_loop(None)
        tree = context.run(run_file, program, self._names, self._words.define)
        self._return_line = _return_line_in(tree, function)
        if not function:
            # A check also wants to know of modules that the program imports later.
            context.run(modules.run_all)
            return
        set_running_loop(self._loop)
        coroutine = context.run(self._names[function], **value_of(arguments))
        self._main = self._loop.create_task(coroutine, context=context)

    def _end(self, number: int, value: Any, error: list[str] | None, clock: int) -> None:
        self._loop.clock = clock
        # Garbage goes where it went when the script ran first, which weak references
        # and `__del__` can see.
        self._ends += 1
        if self._ends < self._full_collection:
            gc.collect(1)
        else:
            gc.collect()
            # With many calls there are many tasks to look at.
            self._full_collection = self._ends + max(_ENDS_TO_COLLECT, self._calls // 10)
        if error is None:
            self._loop.end_call(number, value_of(value), None)
        else:
            self._loop.end_call(number, None, self._errors.error_of(*error))

    def _report(self) -> dict[str, Any]:
        """Return how far the script came."""
        task = self._main
        if task is None:
            return {"done": None}
        report: dict[str, Any] = {}
        if not task.done():
            if not self._loop.waits:
                report["deadlock"] = self._waiting_lines()
            return report
        error: BaseException | None
        try:
            error = task.exception()
        except asyncio.CancelledError as cancelled:
            error = cancelled
            if not str(cancelled):
                error = asyncio.CancelledError("cancelled")
        if isinstance(error, MemoryError):
            return self._full(self._errors.report(error)[2])
        report["kept"] = self._words.never_awaited()
        if error is not None:
            report["error"] = self._errors.report(error)
            report["running"] = self._words.running_tasks
            return report
        try:
            report["done"] = json_of(task.result(), "return", is_read_outside=self._is_main)
        except (NotJson, ValueError) as problem:
            message = str(problem).removeprefix("return: ")
            message = f"the script returned what is not JSON: {message}"
            report["error"] = ["TypeError", message, self._return_line, []]
        return report

    def _full(self, line: int) -> dict[str, Any]:
        """Let go of all values of a script that has used all memory, so that
        there is some to say so.
        """
        self.close()
        gc.collect()
        self._loop.give_up_all()
        return {"error": ["MemoryError", "", line, []]}

    def _waiting_lines(self) -> list[int]:
        """Return the lines on which the script's coroutines wait for each other."""
        lines = set()
        for task in asyncio.all_tasks(self._loop):
            for frame in task.get_stack():
                if frame.f_code.co_filename == FILE:
                    lines.add(frame.f_lineno)
                    break
        return sorted(lines)


def _return_line_in(tree: ast.Module, function: str) -> int:
    """Return the line of the only `return` of a function, 0 if it has more or none: frames that
    have returned tell no line.
    """
    lines = []
    for statement in tree.body:
        if isinstance(statement, ast.AsyncFunctionDef) and statement.name == function:
            lines = [node.lineno for node in ast.walk(statement) if isinstance(node, ast.Return)]
    if len(lines) != 1:
        return 0
    return lines[0]
