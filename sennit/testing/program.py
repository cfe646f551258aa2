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
from typing import Any

from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.material import CallLimits
from sennit.activities.programs.session import Counts, Session
from sennit.activities.programs.values import Call, Ended, Ref, ScriptError, Sleep, mapped, packed, unpacked
from sennit.activities.programs.words import Surroundings, Words
from sennit.activities.storage.artifacts import decode, digest_of, encode
from sennit.activities.toolbox.read_output import PART, PartArguments, read_part
from sennit.folders import ScriptFolders, program_in
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


def fake_of(name: str, fakes: Mapping[str, Fake], who: str = "the plan") -> Fake:
    """Return a fake. Raises WrongFake if it is not there."""
    fake = fakes.get(name)
    if fake is None:
        raise WrongFake(f"{who} needs `{name}`: give a fake for it{did_you_mean(name, fakes)}")
    return fake


def checked_value(value: Any, schema: dict[str, Any] | None, whose: str, which: str = "its schema") -> None:
    """Raise WrongFake for a value that a schema does not allow."""
    if schema is None:
        return
    for where, sentence in violations(value, schema):
        if where:
            sentence = f"{place_of(where)}: {sentence}"
        raise WrongFake(f"{whose} does not fit {which}: {sentence}")


def run(script: str | Path, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Return what `main(**inputs)` of a script returns; raises what it raises, with the lines of the script as a note.

    `script` is its text, or the Path of its file, beside which are the modules that it imports. Raises InvalidPlan with
    every problem of the script, and WrongFake.
    """
    text = _with_modules(script)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run_async(text, fakes, **inputs))


def _with_modules(script: str | Path) -> str:
    """Return the text of a script with the modules that it imports. Raises InvalidPlan."""
    try:
        if isinstance(script, Path):
            path = Path(program_in(str(script)))
            return bundled(path.read_text(), ScriptFolders(path.parent), str(path)).script
        return bundled(script, ScriptFolders(), "").script
    except BadBundle as bad:
        problems: list[Problem] = []
        for file, line, why in bad.problems:
            place: str | int = line
            if file:
                place = f"{Path(file).name}:{line}"
            problems.append(Problem("import", ("line", place), why))
        raise InvalidPlan(problems) from None


async def run_async(text: str, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Do what `run` does with the text of a script, in an event loop that runs already."""
    problems = script_problems(text, None)
    if problems:
        raise InvalidPlan(problems)

    tools: dict[str, dict[str, Any]] = {}
    for name in (*tools_called(text), *fakes):
        if name not in WORDS:
            tools[name] = _entry(name, fakes.get(name))
    interpreter = _interpreter()
    around = Surroundings(text, tools, PROVIDERS, classes=partial(interpreter.classes, text))
    session = Session(script=digest_of(text.encode()), function="main", arguments=packed(inputs), key="main")
    with working():
        program = _Program(interpreter, around, fakes)
        result = await program.run(session, "main")
    if isinstance(result, ScriptError):
        raise _raised(result)
    return program.whole(result)


def _raised(failure: ScriptError) -> Exception:
    """Return what a script has raised, with the lines of the script as a note. An exception that is not one of Python's
    own is a RuntimeError that names it.
    """
    error: Exception = RuntimeError(f"{failure.type}: {failure.message}")
    kind = getattr(builtins, failure.type, None)
    if kind:
        error = kind(failure.message)
    error.add_note(failure.traceback)
    return error


@cache
def _interpreter() -> Interpreter:
    """Return the interpreter of this process: its first script waits a second for all of Python that scripts use."""
    return Interpreter(trusts_scripts=True)


def _entry(name: str, fake: Fake | None) -> dict[str, Any]:
    """Return what is known of a tool: its name, and the arguments that its fake takes by name."""
    entry: dict[str, Any] = {"name": name}
    if fake is None:
        return entry
    properties: dict[str, Any] = {}
    for parameter in inspect.signature(fake).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            properties[parameter.name] = {}
    if properties:
        entry["schema"] = {"properties": properties}
    return entry


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

        # `words` makes the nodes, in their order; each has its call at the same place in this list.
        calls: list[Call] = []

        def take_nodes(call: Call) -> None:
            """Note that all new nodes are of this call."""
            new = len(words.nodes) - len(calls)
            calls.extend([call] * new)

        def answer(call: Call) -> Ended | Sleep | None:
            if call.function in FROM_RUN and call.function in self._fakes:
                return Ended(self._fakes[call.function](*call.args, **call.kwargs))
            for name in call.kwargs.get("tools") or ():
                self._fake(name, call)
            ended = words.answer(call)
            if len(words.nodes) > len(calls):
                _, call = CallLimits.of(call, self._around.tools)
                take_nodes(call)
            return ended

        arguments = unpacked(session.arguments)
        advance = await self._interpreter.start(
            self._around.script, session.function, arguments, answer, session.key, clock=BEGAN
        )
        try:
            sys.stdout.write(advance.printed)
            while advance.snapshot:
                # The script waits: start what it has called, and tell it what ends first.
                words.wake(advance.sleep)
                session.keep_open(advance.waits)
                take_nodes(Call(0, "sleep", (), {}, 0))
                for number in range(len(self._nodes), len(calls)):
                    node = words.nodes[number]
                    limits = words.limits.get(node.id, {})
                    self._nodes[node.id] = asyncio.create_task(self._end_of(node, calls[number], limits))
                ended = await self._ended(session)
                advance = await self._interpreter.resume(advance.snapshot, ended, answer)
                sys.stdout.write(advance.printed)
        finally:
            tasks = self._nodes.values()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return advance.error or advance.value

    async def _ended(self, session: Session) -> dict[int, Ended]:
        """Return how calls of a session ended, in the order in which they did, as soon as one has."""
        waits = {number: self._nodes[call.node] for number, call in session.open.items()}
        with resting():
            await asyncio.wait(waits.values(), return_when=asyncio.FIRST_COMPLETED)
        ends = [(number, node.result()) for number, node in waits.items() if node.done()]
        ends.sort(key=lambda pair: pair[1].at)
        for number, end in ends:
            del session.open[number]
            if end.error is not None:
                session.fail(": ".join(end.error))
        return dict(ends)

    async def _end_of(self, node: Node, call: Call, limits: dict[str, int]) -> Ended:
        """Return how a node ended, and when. `limits` are in milliseconds: how long it may take (`expires`), or when a
        sleep is over (`deadline`).
        """
        loop = asyncio.get_running_loop()
        seconds = None
        if "expires" in limits:
            seconds = limits["expires"] / 1000
        try:
            async with asyncio.timeout(seconds):
                if "deadline" in limits:
                    wake_at = (limits["deadline"] - BEGAN) / 1000
                    await asyncio.sleep(wake_at - loop.time())
                    end = Ended()
                else:
                    with working():
                        end = await self._faked(node, call)
        except TimeoutError:
            end = Ended(error=("TimeoutError", f"more than {seconds:g} s"))
        seconds_now = _now(loop).timestamp()
        return replace(end, at=round(seconds_now * 1000))

    async def _faked(self, node: Node, call: Call) -> Ended:
        """Return what the fake of a call returns, or how its last attempt failed. Raises WrongFake."""
        if isinstance(node, ToolNode) and node.tool == PART["name"]:
            return self._read_part(node, call)
        fake = self._fake(call.function, call)
        attempts = 1
        if isinstance(node, ToolNode | LlmNode) and node.retry is not None:
            attempts = node.retry.attempts
        for attempt in range(1, attempts + 1):
            try:
                value = await self._called(fake, call)
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
        schema = None
        if isinstance(node, LlmNode):
            schema = node.output_schema
        elif isinstance(node, GateNode):
            schema = node.answer_schema
        checked_value(value, schema, f"the fake of `{call.function}`", f"the schema on line {call.line}")
        return Ended(value)

    async def _called(self, fake: Fake, call: Call) -> Any:
        """Return what the fake of a call returns, in the fake's own time."""
        args = self.whole(list(call.args))
        kwargs = self.whole(call.kwargs)
        with resting():
            value = fake(*args, **kwargs)
            if inspect.isawaitable(value):
                value = await value
        return value

    def _read_part(self, node: ToolNode, call: Call) -> Ended:
        """Return a part of a large output, as the tool of a run reads it."""
        ref = call.args[0] if call.args else call.kwargs["ref"]
        arguments = {**node.args, "output": self.whole(ref)}
        return Ended(read_part(PartArguments.model_validate(arguments)))

    def whole(self, value: Any) -> Any:
        """Return a value with what its Refs name in their places."""
        return mapped(value, lambda ref: decode(self._around.bodies[ref.digest]))

    def _fake(self, name: str, call: Call) -> Fake:
        return fake_of(name, self._fakes, f"line {call.line} of the script")
