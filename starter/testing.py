"""Runs a program in a unit test: the interpreter and the words of a run, without server and store.

    from starter.testing import run

    def test_it_stops_at_the_first_good_draft() -> None:
        drafts = iter(["bad", "good"])
        fakes = {"llm": lambda prompt, *material, **options: next(drafts)}
        assert run(Path("draft.py"), fakes, topic="tides") == "good"

A fake stands for a tool, or for `llm`, `agent`, `ask` or `budget_left`, by its name. It is called as the script calls
it and may be an `async def`. What it raises is raised in the script. A fake of a large tool returns `Large(value)`, and
the script has a `Ref` of it; other fakes are given the value itself. Everything else is as in a run: tasks run side by
side, each in a session of its own, and only JSON passes between them.
"""

import asyncio
import builtins
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.programs.advance import entry_of, failure_of
from activities.programs.interpreter import Call, Ended, Interpreter, ScriptError
from activities.programs.session import Counts, Session
from activities.programs.values import Ref, mapped, unpacked
from activities.programs.words import Surroundings, Words
from activities.storage.artifacts import decode, digest_of, encode
from activities.toolbox.read_output import PART, PartArguments, read_part
from workflows.plan.compile.compiler import join_policy
from workflows.plan.compile.graph import NodeSpec
from workflows.plan.language.json_schema import violations
from workflows.plan.language.nodes import GateNode, JoinNode, LlmNode, Node, ProgramNode, ToolNode
from workflows.plan.language.problems import InvalidPlan, place_of
from workflows.plan.language.text import did_you_mean
from workflows.plan.programs.program_plan import script_problems, tools_called
from workflows.plan.programs.vocabulary import WORDS
from workflows.plan.scheduling import joins

Fake = Callable[..., Any]
_PROVIDERS = ("openai", "anthropic", "offline")


@dataclass(frozen=True, slots=True)
class Large:
    """What the fake of a large tool returns: the script has a `Ref` of the value."""

    value: Any


class WrongFake(Exception):
    """A fake is missing, or returned what the schema of its call does not allow."""


def run(script: str | Path, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Return what `main(**inputs)` of a script returns; raises what it raises, with the lines of the script as a note.

    `script` is its text, or the Path of its file. Raises InvalidPlan with every problem of the script, and WrongFake.
    """
    text = script.read_text() if isinstance(script, Path) else script
    return asyncio.run(run_async(text, fakes, **inputs))


async def run_async(text: str, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Do what `run` does with the text of a script, in an event loop that runs already."""
    if problems := script_problems(text, None):
        raise InvalidPlan(problems)
    tools = {name: {"name": name} for name in (*tools_called(text), *fakes) if name not in WORDS}
    async with Interpreter() as interpreter:
        program = _Program(interpreter, Surroundings(text, tools, _PROVIDERS), fakes)
        session = Session(script=digest_of(text.encode()), function="main", arguments=inputs, key="main")
        found = await program.run(session, "main")
    if isinstance(found, ScriptError):
        error: Exception = getattr(builtins, found.type, RuntimeError)(found.message)
        error.add_note(found.traceback)
        raise error
    return program.whole(found)


class _Program:
    """One run of a program. Each of its nodes is a task of asyncio that ends with how the call ended."""

    def __init__(self, interpreter: Interpreter, around: Surroundings, fakes: Mapping[str, Fake]) -> None:
        self._interpreter = interpreter
        self._around = around
        self._fakes = fakes
        self._nodes: dict[str, asyncio.Task[Ended]] = {}
        self._bodies: dict[str, bytes] = {}

    async def run(self, session: Session, name: str) -> Any:
        """Return what a session returns, or the ScriptError that it ends with. Its open calls are cancelled then."""
        session.begin(name)
        words = Words(session, Counts(session, []), self._around)
        calls: list[Call] = []
        own: list[asyncio.Task[Ended]] = []

        def answer(call: Call) -> Ended | None:
            if call.function == "budget_left" and call.function in self._fakes:
                return Ended(self._fakes[call.function]())
            for name in call.kwargs.get("tools") or ():
                self._fake(name, call)
            ended = words.answer(call)
            calls.extend([call] * (len(words.nodes) - len(calls)))
            return ended

        source, function = entry_of(self._around.script, session)
        arguments = unpacked(session.arguments)
        came = await self._interpreter.start(source, function, arguments, answer, session.key)
        try:
            while came.snapshot:
                self._bodies |= words.bodies
                for node, call in list(zip(words.nodes, calls, strict=True))[len(own) :]:
                    own.append(asyncio.create_task(self._end_of(node, call)))
                    self._nodes[node.id] = own[-1]
                came = await self._interpreter.resume(came.snapshot, await self._ended(session), answer)
        finally:
            for each in own:
                each.cancel()
            await asyncio.gather(*own, return_exceptions=True)
        return came.error or came.value

    async def _ended(self, session: Session) -> dict[int, Ended]:
        """Return how calls of a session ended, as soon as one has."""
        waits = {number: self._nodes[call.node] for number, call in session.open.items()}
        await asyncio.wait(waits.values(), return_when=asyncio.FIRST_COMPLETED)
        ended = {number: node.result() for number, node in waits.items() if node.done()}
        for number, end in ended.items():
            del session.open[number]
            if end.error is not None:
                session.fail(": ".join(end.error))
        return ended

    async def _end_of(self, node: Node, call: Call) -> Ended:
        if isinstance(node, JoinNode):
            return await self._joined(node)
        if isinstance(node, ProgramNode):
            assert node.step is not None
            session = Session.model_validate(decode(self._bodies[node.step.session]))
            found = await self.run(session, node.id)
            if not isinstance(found, ScriptError):
                return Ended(found)
            failure = failure_of(found, session, self._around.script)
            return Ended(error=(type(failure).__name__, str(failure)))
        return await self._faked(node, call)

    async def _faked(self, node: Node, call: Call) -> Ended:
        if isinstance(node, ToolNode) and node.tool == PART["name"]:
            ref = call.args[0] if call.args else call.kwargs["ref"]
            return Ended(read_part(PartArguments.model_validate({**node.args, "output": self.whole(ref)})))
        name, args = (call.args[0], ()) if call.function == "task" else (call.function, call.args)
        fake = self._fake(name, call)
        try:
            value = fake(*self.whole(list(args)), **self.whole(call.kwargs))
            value = await value if inspect.isawaitable(value) else value
        except Exception as error:  # noqa: BLE001  as a call fails
            return Ended(error=(type(error).__name__, str(error)))
        if isinstance(value, Large):
            body = encode(value.value)
            self._bodies[digest_of(body)] = body
            return Ended(Ref.to(digest_of(body), value.value))
        schema = node.output_schema if isinstance(node, LlmNode) else None
        schema = node.answer_schema if isinstance(node, GateNode) else schema
        for where, sentence in violations(value, schema) if schema is not None else ():
            place = f"{place_of(where)}: " if where else ""
            raise WrongFake(f"the fake of `{name}` does not fit the schema on line {call.line}: {place}{sentence}")
        return Ended(value)

    def whole(self, value: Any) -> Any:
        """Return a value with what its Refs name in their places."""
        return mapped(value, lambda ref: decode(self._bodies[ref.digest]))

    def _fake(self, name: str, call: Call) -> Fake:
        if name not in self._fakes:
            hint = did_you_mean(name, self._fakes)
            raise WrongFake(f"line {call.line} of the script needs `{name}`: give a fake for it{hint}")
        return self._fakes[name]

    async def _joined(self, join: JoinNode) -> Ended:
        """Return the values of a join's inputs by its policy; the inputs that it does not take are cancelled."""
        inputs = [self._nodes[name] for name in join.inputs]
        spec = NodeSpec(join.id, "join", inputs=list(range(len(inputs))))
        join_policy(spec, join)
        while True:
            ends = [node.result() for node in inputs if node.done()]
            ok = [end.value for end in ends if end.error is None]
            ruling = joins.outcome(spec, len(inputs) - len(ends), len(ok))
            if ruling != joins.WAIT:
                break
            await asyncio.wait([node for node in inputs if not node.done()], return_when=asyncio.FIRST_COMPLETED)
        if ruling == joins.FAIL:
            lost = ": ".join(next(end.error for end in ends if end.error is not None))
            return Ended(error=("JoinFailed", f"an input gave no value: {lost}"))
        if spec.policy == "settled":
            return Ended([_ticket(end) for end in ends])
        for node in inputs if spec.policy in ("first", "quorum") else ():
            node.cancel()
        return Ended(ok[0] if spec.policy == "first" else ok[: spec.quorum] if spec.policy == "quorum" else ok)


def _ticket(end: Ended) -> dict[str, Any]:
    error = ": ".join(end.error) if end.error is not None else None
    return {"status": "failed" if error else "succeeded", "value": end.value, "error": error}
