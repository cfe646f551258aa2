"""Runs a program in a unit test: the interpreter and the words of a run, without server and store."""

import asyncio
import builtins
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.material import CallLimits
from sennit.activities.programs.session import Counts, Session
from sennit.activities.programs.values import Call, Ended, Ref, ScriptError, Sleep, mapped, packed, unpacked
from sennit.activities.programs.words import Surroundings, Words
from sennit.activities.storage.artifacts import decode, digest_of, encode
from sennit.activities.toolbox.read_output import PART, PartArguments, read_part
from sennit.folders import ScriptFolders
from sennit.testing.clock import VirtualLoop, resting, working
from sennit.workflows.messages.activity_options import pause_after
from sennit.workflows.messages.queues import PROVIDERS
from sennit.workflows.plan.bundles.bundle import BadBundle, bundled
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.nodes import GateNode, LlmNode, Node, ToolNode
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.language.text import did_you_mean
from sennit.workflows.plan.programs.program_plan import script_problems, tools_called
from sennit.workflows.plan.programs.vocabulary import FROM_RUN, WORDS

Fake = Callable[..., Any]
BEGAN = 1_767_225_600_000
"""When a test begins, in milliseconds: on 2026-01-01 in UTC."""


@dataclass(frozen=True, slots=True)
class Large:
    """What the fake of a large tool returns: the script has a `Ref` of the value."""

    value: Any


class WrongFake(Exception):
    """A fake is missing, or returned what the schema of its call does not allow."""


def missing(name: str, fakes: Mapping[str, Fake], who: str = "the plan") -> NoReturn:
    """Raise WrongFake for a fake that is not there."""
    raise WrongFake(f"{who} needs `{name}`: give a fake for it{did_you_mean(name, fakes)}")


def checked_value(value: Any, schema: dict[str, Any] | None, whose: str, which: str = "its schema") -> None:
    """Raise WrongFake for a value that a schema does not allow."""
    for where, sentence in violations(value, schema) if schema is not None else ():
        place = f"{place_of(where)}: " if where else ""
        raise WrongFake(f"{whose} does not fit {which}: {place}{sentence}")


def run(script: str | Path, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Return what `main(**inputs)` of a script returns; raises what it raises, with the lines of the script as a note.

    `script` is its text, or the Path of its file, beside which are the modules that it imports. Raises InvalidPlan with
    every problem of the script, and WrongFake.
    """
    folders = ScriptFolders(script.parent if isinstance(script, Path) else None)
    text, path = (script.read_text(), str(script)) if isinstance(script, Path) else (script, "")
    try:
        text = bundled(text, folders, path).script
    except BadBundle as bad:
        problems = ((f"{Path(file).name}:{line}" if file else line, why) for file, line, why in bad.problems)
        raise InvalidPlan(Problem("import", ("line", place), why) for place, why in problems) from None
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run_async(text, fakes, **inputs))


async def run_async(text: str, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Do what `run` does with the text of a script, in an event loop that runs already."""
    if problems := script_problems(text, None):
        raise InvalidPlan(problems)
    tools = {name: _entry(name, fakes.get(name)) for name in (*tools_called(text), *fakes) if name not in WORDS}
    around = partial(Surroundings, text, tools, PROVIDERS)
    session = Session(script=digest_of(text.encode()), function="main", arguments=packed(inputs), key="main")
    interpreter = _interpreter()
    with working():
        program = _Program(interpreter, around(classes=partial(interpreter.classes, text)), fakes)
        found = await program.run(session, "main")
    if isinstance(found, ScriptError):
        kind = getattr(builtins, found.type, None)
        error: Exception = kind(found.message) if kind else RuntimeError(f"{found.type}: {found.message}")
        error.add_note(found.traceback)
        raise error
    return program.whole(found)


@cache
def _interpreter() -> Interpreter:
    """Return the interpreter of this process: its first script waits a second for all of Python that scripts use."""
    return Interpreter(trusts_scripts=True)


def _entry(name: str, fake: Fake | None) -> dict[str, Any]:
    """Return what is known of a tool: its name, and the arguments that its fake takes by name."""
    parameters = inspect.signature(fake).parameters.values() if fake is not None else ()
    takes = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    return {"name": name, "schema": {"properties": {each: {} for each in takes}}} if takes else {"name": name}


def _now(loop: asyncio.AbstractEventLoop) -> datetime:
    return datetime.fromtimestamp(BEGAN / 1000 + loop.time(), UTC)


class _Program:
    """One run of a program. Each of its nodes is a task of asyncio that ends with how the call ended."""

    def __init__(self, interpreter: Interpreter, around: Surroundings, fakes: Mapping[str, Fake]) -> None:
        self._interpreter = interpreter
        self._around = around
        self._fakes = fakes
        self._nodes: dict[str, asyncio.Task[Ended]] = {}

    async def run(self, session: Session, name: str) -> Any:
        """Return what a session returns, or the ScriptError that it ends with. Its open calls are cancelled then."""
        session.begin(name)
        words = Words(session, Counts(session, []), self._around)
        calls: list[Call] = []
        started: list[asyncio.Task[Ended]] = []

        def answer(call: Call) -> Ended | Sleep | None:
            if call.function in FROM_RUN and call.function in self._fakes:
                return Ended(self._fakes[call.function](*call.args, **call.kwargs))
            for name in call.kwargs.get("tools") or ():
                self._fake(name, call)
            ended = words.answer(call)
            if len(words.nodes) > len(calls):
                _, call = CallLimits.of(call, self._around.tools)
                calls.extend([call] * (len(words.nodes) - len(calls)))
            return ended

        arguments = unpacked(session.arguments)
        begin = partial(self._interpreter.start, clock=BEGAN)
        advance = await begin(self._around.script, session.function, arguments, answer, session.key)
        try:
            sys.stdout.write(advance.printed)
            while advance.snapshot:
                words.wake(advance.sleep)
                session.keep_open(advance.waits)
                calls.extend([Call(0, "sleep", (), {}, 0)] * (len(words.nodes) - len(calls)))
                for node, call in list(zip(words.nodes, calls, strict=True))[len(started) :]:
                    started.append(asyncio.create_task(self._end_of(node, call, words.limits.get(node.id, {}))))
                    self._nodes[node.id] = started[-1]
                advance = await self._interpreter.resume(advance.snapshot, await self._ended(session), answer)
                sys.stdout.write(advance.printed)
        finally:
            for each in started:
                each.cancel()
            await asyncio.gather(*started, return_exceptions=True)
        return advance.error or advance.value

    async def _ended(self, session: Session) -> dict[int, Ended]:
        """Return how calls of a session ended, as soon as one has."""
        waits = {number: self._nodes[call.node] for number, call in session.open.items()}
        with resting():
            await asyncio.wait(waits.values(), return_when=asyncio.FIRST_COMPLETED)
        ended = {number: node.result() for number, node in waits.items() if node.done()}
        ended = dict(sorted(ended.items(), key=lambda each: each[1].at))
        for number, end in ended.items():
            del session.open[number]
            if end.error is not None:
                session.fail(": ".join(end.error))
        return ended

    async def _end_of(self, node: Node, call: Call, limits: dict[str, int]) -> Ended:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limits["expires"] / 1000 if "expires" in limits else None):
                if "deadline" in limits:
                    await asyncio.sleep((limits["deadline"] - BEGAN) / 1000 - loop.time())
                with working():
                    end = Ended() if "deadline" in limits else await self._faked(node, call)
        except TimeoutError:
            end = Ended(error=("TimeoutError", f"more than {limits['expires'] / 1000:g} s"))
        return replace(end, at=round(_now(loop).timestamp() * 1000))

    async def _faked(self, node: Node, call: Call) -> Ended:
        if isinstance(node, ToolNode) and node.tool == PART["name"]:
            ref = call.args[0] if call.args else call.kwargs["ref"]
            return Ended(read_part(PartArguments.model_validate({**node.args, "output": self.whole(ref)})))
        name, args = call.function, call.args
        fake = self._fake(name, call)
        retry = node.retry if isinstance(node, ToolNode | LlmNode) else None
        attempts = retry.attempts if retry is not None else 1
        for attempt in range(1, attempts + 1):
            try:
                with resting():
                    value = fake(*self.whole(list(args)), **self.whole(call.kwargs))
                    value = await value if inspect.isawaitable(value) else value
                break
            except Exception as error:  # noqa: BLE001  as a call fails
                if attempt == attempts:
                    return Ended(error=(type(error).__name__, str(error)))
            with resting():
                await asyncio.sleep(pause_after(attempt).total_seconds())
        if isinstance(value, Large):
            body = encode(value.value)
            self._around.bodies[digest_of(body)] = body
            return Ended(Ref.to(digest_of(body), value.value))
        schema = node.output_schema if isinstance(node, LlmNode) else None
        schema = node.answer_schema if isinstance(node, GateNode) else schema
        checked_value(value, schema, f"the fake of `{name}`", f"the schema on line {call.line}")
        return Ended(value)

    def whole(self, value: Any) -> Any:
        """Return a value with what its Refs name in their places."""
        return mapped(value, lambda ref: decode(self._around.bodies[ref.digest]))

    def _fake(self, name: str, call: Call) -> Fake:
        return self._fakes.get(name) or missing(name, self._fakes, f"line {call.line} of the script")
