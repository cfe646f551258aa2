"""Runs a program in a unit test: the interpreter and the words of a run,
without server and store.
"""

import asyncio
import builtins
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.material import CallLimits
from sennit.activities.programs.session import Counts, Session
from sennit.activities.programs.values import (
    Call,
    Ended,
    Ref,
    ScriptError,
    Sleep,
    mapped,
    packed,
    unpacked,
)
from sennit.activities.programs.words import Surroundings, Words
from sennit.activities.storage.artifacts import decode, digest_of, encode
from sennit.activities.toolbox.read_output import PART, PartArguments, read_part
from sennit.folders import ScriptFolders, program_in
from sennit.testing.clock import VirtualLoop, resting, working
from sennit.workflows.messages.activity_options import pause_after
from sennit.workflows.messages.queues import PROVIDERS
from sennit.workflows.plan.bundles.bundle import BadBundle, bundled
from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.limits import micro_dollars
from sennit.workflows.plan.language.nodes import AgentNode, GateNode, LlmNode, Node, ToolNode
from sennit.workflows.plan.language.problems import InvalidPlan, Problem, place_of
from sennit.workflows.plan.language.text import did_you_mean
from sennit.workflows.plan.programs.program_plan import script_problems, tools_called
from sennit.workflows.plan.programs.vocabulary import FROM_RUN, WORDS
from sennit.workflows.plan.scheduling.budget import Amounts, Budget
from sennit.workflows.plan.scheduling.slices import BUDGET_EXCEEDED, spent_of

Fake = Callable[..., Any]
BEGAN = 1_767_225_600_000
"""When a test begins, in milliseconds: on 2026-01-01 in UTC."""


@dataclass(frozen=True, slots=True)
class Large:
    """What the fake of a large tool returns: the script has a `Ref` of the value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Spent:
    """What the fake of a model or an agent returns, with what the call has used: the
    budgets of tasks count that.
    """

    value: Any
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskSlice:
    """The budget of a task, or of a model call, at a call site, and the id of the task
    `around` it that has one.
    """

    call_site: str
    budget: Budget
    around: str

    @property
    def wanted(self) -> Amounts:
        """What one more call is expected to use."""
        return self.budget.estimate(0, model=True)

    @property
    def is_full(self) -> bool:
        """Whether the calls that run may use all that is left."""
        return bool(self.budget.lacks(self.wanted))


class WrongFake(Exception):
    """A fake is missing, or returned what the schema of its call does not allow."""


def fake_of(name: str, fakes: Mapping[str, Fake], who: str = "the plan") -> Fake:
    """Return a fake. Raises WrongFake if it is not there."""
    fake = fakes.get(name)
    if fake is None:
        raise WrongFake(f"{who} needs `{name}`: give a fake for it{did_you_mean(name, fakes)}")
    return fake


def checked_value(
    value: Any, schema: dict[str, Any] | None, whose: str, which: str = "its schema"
) -> None:
    """Raise WrongFake for a value that a schema does not allow."""
    if schema is None:
        return
    for where, sentence in violations(value, schema):
        if where:
            sentence = f"{place_of(where)}: {sentence}"
        raise WrongFake(f"{whose} does not fit {which}: {sentence}")


def run(script: str | Path, fakes: Mapping[str, Fake], /, **inputs: Any) -> Any:
    """Return what `main(**inputs)` of a script returns; raises what it raises, with the lines
    of the script as a note.

    `script` is its text, or the Path of its file, beside which are the modules that it imports.
    Raises InvalidPlan with every problem of the script, and WrongFake.
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
    session = Session(
        script=digest_of(text.encode()), function="main", arguments=packed(inputs), key="main"
    )
    with working():
        program = _Program(interpreter, around, fakes)
        result = await program.run(session, "main")
    if isinstance(result, ScriptError):
        raise _raised(result)
    return program.whole(result)


def _raised(failure: ScriptError) -> Exception:
    """Return what a script has raised, with the lines of the script as a note. An exception that is
    not one of Python's own is a RuntimeError that names it.
    """
    error: Exception = RuntimeError(f"{failure.type}: {failure.message}")
    kind = getattr(builtins, failure.type, None)
    if kind:
        error = kind(failure.message)
    error.add_note(failure.traceback)
    return error


@cache
def _interpreter() -> Interpreter:
    """Return the interpreter of this process: its first script waits a second for all of
    Python that scripts use.
    """
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
    """One run of a program. Each of its nodes is a task of asyncio that ends
    with how the call ended.
    """

    def __init__(
        self, interpreter: Interpreter, around: Surroundings, fakes: Mapping[str, Fake]
    ) -> None:
        self._interpreter = interpreter
        self._around = around
        self._fakes = fakes
        self._nodes: dict[str, asyncio.Task[Ended]] = {}
        self._slices: dict[str, TaskSlice] = {}
        """Those of tasks with a budget, and of model calls with one, by their ids."""
        self._spent: dict[str, Spent] = {}
        """What calls have used, by their ids, as their fakes say."""
        self._call_ended = asyncio.Event()
        """Set when a call has ended that spends from a slice; then there is another one."""

    async def run(self, session: Session, name: str) -> Any:
        """Return what a session returns, or the ScriptError that it ends with. Its open
        calls are cancelled then.
        """
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
                _, call = CallLimits.of(call, self._around.tools, self._around.limits)
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
                self._open_slices(words)
                for number in range(len(self._nodes), len(calls)):
                    node = words.nodes[number]
                    limits = words.limits.get(node.id, {})
                    budgets = self._budgets_of(node.id, words)
                    self._nodes[node.id] = asyncio.create_task(
                        self._end_of(node, calls[number], limits, budgets)
                    )
                ended = await self._ended(session)
                self._tell_left()
                advance = await self._interpreter.resume(advance.snapshot, ended, answer)
                sys.stdout.write(advance.printed)
        finally:
            tasks = self._nodes.values()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return advance.error or advance.value

    async def _ended(self, session: Session) -> dict[int, Ended]:
        """Return how calls of a session ended, in the order in which they
        did, as soon as one has.
        """
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

    def _open_slices(self, words: Words) -> None:
        """Open the slices of tasks that have begun, and of model calls that have a budget."""
        for task in words.tasks:
            if task.slice and task.id not in self._slices:
                self._slices[task.id] = TaskSlice(task.call_site, Budget(task.slice), task.slice_of)
        for name, limits in words.slices.items():
            if name not in self._slices:
                around = words.slice_of.get(name, "")
                self._slices[name] = TaskSlice(words.call_sites[name], Budget(limits), around)

    def _tell_left(self) -> None:
        """Have the script hear what its tasks have left when it asks for that."""
        for name, its in self._slices.items():
            left: dict[str, int] = {}
            for limit in its.budget.limits:
                left[limit] = its.budget.left(limit)
            self._around.task_left[name] = left

    def _budgets_of(self, name: str, words: Words) -> list[TaskSlice]:
        """Return the slices that a call spends from, the innermost first."""
        found = []
        holder = name if name in self._slices else words.slice_of.get(name, "")
        while holder:
            found.append(self._slices[holder])
            holder = self._slices[holder].around
        return found

    async def _end_of(
        self, node: Node, call: Call, limits: dict[str, int], budgets: Sequence[TaskSlice] = ()
    ) -> Ended:
        """Return how a node ended, and when. `limits` are in milliseconds: how long it may take
        (`expires`), or when a sleep is over (`deadline`). It spends from these `budgets`.
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
                        end = await self._within_budgets(node, call, budgets)
        except TimeoutError:
            end = Ended(error=("TimeoutError", f"more than {seconds:g} s"))
        seconds_now = _now(loop).timestamp()
        return replace(end, at=round(seconds_now * 1000))

    async def _within_budgets(self, node: Node, call: Call, budgets: Sequence[TaskSlice]) -> Ended:
        """Return what a fake returns, within what the tasks of its call may spend. As in a run, a
        call waits while those that run may still leave it room, and fails once a budget is spent.
        """
        if not budgets or not isinstance(node, LlmNode | AgentNode):
            return await self._faked(node, call)
        while True:
            for its in budgets:
                why = spent_of(its.budget)
                if why:
                    return Ended(error=(BUDGET_EXCEEDED, f"{its.call_site} {why}"))
            if not any(its.is_full for its in budgets):
                break
            with resting():
                await self._call_ended.wait()

        # Each call has a number of its own, by which it reserves.
        number = list(self._nodes).index(node.id)
        for its in budgets:
            its.budget.reserve(number, its.wanted)
        try:
            return await self._faked(node, call)
        finally:
            spent = self._spent.get(node.id, Spent(None))
            used = Amounts(spent.tokens, micro_dollars(spent.cost_usd), 1, 1)
            for its in budgets:
                its.budget.settle(number, used)
            self._call_ended.set()
            self._call_ended = asyncio.Event()

    async def _faked(self, node: Node, call: Call) -> Ended:
        """Return what the fake of a call returns, or how its last attempt
        failed. Raises WrongFake.
        """
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

        if isinstance(value, Spent):
            self._spent[node.id] = value
            value = value.value
        if isinstance(value, Large):
            body = encode(value.value)
            self._around.bodies[digest_of(body)] = body
            return Ended(Ref.to(digest_of(body), value.value))
        schema = None
        if isinstance(node, LlmNode):
            schema = node.output_schema
        elif isinstance(node, GateNode):
            schema = node.answer_schema
        checked_value(
            value, schema, f"the fake of `{call.function}`", f"the schema on line {call.line}"
        )
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
