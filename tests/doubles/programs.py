"""Runs a script without a server: advances are made, calls are answered by plain functions, in any order."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from doubles.plan.samples import CATALOGUE
from doubles.stores import new_store

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.binding import Binder, Unit
from sennit.activities.nodes.context import NodeContext, NodeOutput
from sennit.activities.nodes.error_mapping import CallFailed, ProgramFailed
from sennit.activities.nodes.replies import reply_to
from sennit.activities.programs.advance import Programs
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.runs.check import compiler_of
from sennit.activities.storage.run_context import ArtifactReader, RunContext, StoredPlan
from sennit.activities.toolbox.errors import ToolError
from sennit.activities.toolbox.read_output import SLEEP
from sennit.workflows.messages import queues
from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.ends import unpack_ends
from sennit.workflows.messages.node_calls import NodeCall, ProgramNodeCall
from sennit.workflows.plan.compile.execution_plan import KEY_CHARACTERS, ExecutionPlan, NodeSpec
from sennit.workflows.plan.language.nodes import (
    AgentNode,
    GateNode,
    LlmNode,
    Node,
    Plan,
    ProgramNode,
    ToolNode,
)
from sennit.workflows.plan.language.references import bind
from sennit.workflows.plan.scheduling.events import TaskNews

PREFIX = "space/run"
BEGAN = 1_800_000_000
"""When runs begin, in seconds."""
MOMENTS = 100_000
DAY = 86_400_000
"""After which a run is forked, in milliseconds."""
TOPIC = (Path(__file__).parents[2] / "examples" / "programs" / "topic.py").read_text()
Fake = Callable[..., Any]


@dataclass(frozen=True)
class End:
    """How a node ended: with the digest of its value, or with a status and an error."""

    ref: str = ""
    status: str = "succeeded"
    error: str | None = None


@dataclass
class Play:
    """One run of one program. `fakes` answer tools by name, and `llm`, `ask` and `agent`; an exception is a failure.

    What is called ends in any order, and sleeps only when nothing else can; or, with `takes`, which says how many
    seconds a call takes, in that of time. Calls that are `known` by their keys have ended before `since`, when the
    script was edited; or when a run was forked, the `origin`, whose results come in any order.
    With `in_place` advances make calls of tools themselves. With `kills` every second worker is killed at an advance,
    at any call of the store, and another one makes the advance again.
    """

    place: Path
    interpreter: Interpreter
    script: str
    fakes: Mapping[str, Fake] = field(default_factory=dict)
    seed: int = 0
    left: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    catalogue: list[dict[str, Any]] = field(default_factory=lambda: CATALOGUE)
    in_place: bool = False
    kills: bool = False
    pages: int = 0
    takes: Callable[[Node], float] | None = None
    known: Mapping[str, tuple["End", int]] = field(default_factory=dict)
    flying: Mapping[str, int] = field(default_factory=dict)
    since: int = 0
    origin: "Play | None" = None
    failed: tuple[str, ...] = ()
    """What the script of before has called in vain, as the run tells the first advance of the next one."""

    def __post_init__(self) -> None:
        self.store = new_store(self.place)
        self.prefix: str = f"{self.origin.prefix}'" if self.origin else PREFIX
        self.begins = self.origin.clock + DAY if self.origin else BEGAN * 1000
        self.random = random.Random(self.seed)
        self.nodes: dict[str, tuple[str, Node, NodeSpec]] = {}
        self.session = ""
        """Where the script stands; "" before its first advance."""
        self.waits: list[str] = []
        """The calls for which it waits."""
        self.ends: dict[str, End] = {}
        self.going: dict[str, None] = {}
        """What has not ended."""
        self.order: list[str] = []
        """What has ended, in order."""
        self.clock: int = max(self.since, self.begins)
        self.ended_at: dict[str, int] = {}
        """Without `takes` each a second after the last, or when its sleep is over."""
        self.due: dict[str, int] = {}
        self.moments = 0
        self.called: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        """What advances have called themselves, by its key."""
        self.marked: dict[str, NodeReply] = {}
        self.keys: Counter[str] = Counter()
        self.keys_of: dict[str, str] = {}
        self.advances: list[str] = []
        self.logged: list[str] = []
        self.tasks: list[NodeSpec] = []
        self.news: list[TaskNews] = []
        self.told_bytes = 0
        """What pages take in the history of the run."""
        self.renew()

    def edited(self, script: str) -> "Play":
        """Return the run with another script: what has begun goes on, and ends when it would have ended."""
        flying = {self.keys_of[name]: due for name, due in self.due.items() if name in self.keys_of}
        lost = [key for name, key in self.keys_of.items() if name in self.ends and not self.has(name)]
        failed = (*self.failed, *(key[:KEY_CHARACTERS] for key in lost))
        return self._again(script, since=self.clock, flying=flying, failed=failed)

    def forked(self, script: str) -> "Play":
        """Return a run that forks this one, a day later."""
        return self._again(script, origin=self)

    def _again(self, script: str, **fields: Any) -> "Play":
        again = replace(self, script=script, known=self.results(), **fields)
        again.store = self.store
        again.renew()
        return again

    def renew(self) -> None:
        """Go on as another worker, which remembers nothing."""
        self.library = ArtifactReader(self.store)
        self.programs = Programs(self.library, self.interpreter, compiler_of, ("offline", "test"))

    async def begin(self, **arguments: Any) -> "Play":
        """Put the program's node where a run's plan would have it."""
        context = RunContext(goal="", inputs={}, docs=None, approval="never", catalogue=self.catalogue)
        node = ProgramNode(id="main", kind="program", script=self.script, arguments=arguments)
        plan = Plan(nodes=(node,))
        spec = NodeSpec("main", "program", queue=queues.TOOLS)
        kept = StoredPlan(
            run_context=await self.library.keep(self.prefix, context),
            goal="",
            docs=None,
            inputs={},
            plan=plan,
            execution_plan=ExecutionPlan([spec], [0]).pack(),
            wanted={},
        )
        self.nodes["main"] = (await self.library.keep(self.prefix, kept), node, spec)
        self.going = {"main": None}
        return self

    async def run(self, **arguments: Any) -> Any:
        """Return what the program returns. Raises CallFailed, ProgramFailed."""
        await self.go(**arguments)
        end = self.ends["main"]
        if end.status != "succeeded":
            kind, _, message = (end.error or "").partition(": ")
            raise {"CallFailed": CallFailed, "ProgramFailed": ProgramFailed}[kind](message)
        return await self.library.value(self.prefix, end.ref)

    async def go(self, moments: int = MOMENTS, **arguments: Any) -> None:
        """Go on until the program has ended, or for so many ends and advances."""
        await self.begin(**arguments)
        for _ in range(moments):
            if "main" in self.ends:
                return
            await self.start(self.next())
            self.moments += 1

    def next(self) -> str:
        """Return what ends or goes on next."""
        ready = [name for name in self.going if self.may_start(name)]
        if self.takes is None:
            calls = [name for name in ready if not self.nodes[name][2].deadline]
            if calls:
                return self.random.choice(calls)
            assert ready, "nothing can go on"
            return min(ready, key=lambda name: self.nodes[name][2].deadline)
        for name in ready:
            if name == "main":
                return name
            if name not in self.due:
                spec, seconds = self.nodes[name][2], self.takes(self.nodes[name][1])
                if self.origin and self.keys_of.get(name) in self.known:
                    seconds = self.random.random() / 20
                if self.keys_of.get(name) in self.flying:
                    self.due[name] = self.flying[self.keys_of[name]]
                    continue
                self.due[name] = max(spec.deadline, self.clock) if spec.deadline else self.clock + round(seconds * 1000)
        for name, (_, _, spec) in self.nodes.items():
            if spec.expires and name not in self.ends:
                self.due.setdefault(f"{name} expires", self.clock + spec.expires)
        open_nodes = [*self.going, *(f"{name} expires" for name in self.nodes if name not in self.ends)]
        live = {name: self.due[name] for name in open_nodes if name in self.due}
        assert live, "nothing can go on"
        found = min(live, key=lambda name: live[name])
        self.clock = live[found]
        return found

    def may_start(self, name: str) -> bool:
        """Whether a node has what it waits for."""
        if name != "main" or not self.session:
            return True
        return any(other in self.ends for other in self.waits)

    async def start(self, name: str) -> None:
        """Have a node end, or the program hand over what it has called."""
        name, _, expires = name.partition(" ")
        _, node, spec = self.nodes[name]
        if expires:
            self.end(name, End("", "failed", f"TimeoutError: more than {spec.expires / 1000:g} s"))
            return
        if self.takes is None:
            self.clock = max(self.clock + 1000, spec.deadline)
        if isinstance(node, ProgramNode):
            await self.advance(name)
        else:
            await self.call(name, node)

    async def advance(self, name: str) -> None:
        """Make one advance, and take over its page."""
        self.advances.append(self.session)
        try:
            output = await self.output_of(name)
        except (CallFailed, ProgramFailed) as error:
            self.logged += error.log
            self.end(name, End("", "failed", f"{type(error).__name__}: {error}"))
            return
        self.logged += output.log
        if not output.more:
            self.news += output.tasks
            self.end(name, End(await self.library.put(self.prefix, output.output)), output.at if self.takes else 0)
            return
        await self.take(output)

    async def output_of(self, name: str) -> NodeOutput:
        """Make an advance; with `kills` a worker may be killed at it before."""
        context, make = await self.context(name), self.make if self.in_place else None
        if self.kills and self.random.random() < 0.5:
            dying = ArtifactReader(cast("Any", Dying(self.store, self.random.randint(0, 12))))
            try:
                await replace(self.programs, library=dying).advance(context, make, self.recorded)
            except Killed:
                self.renew()
        return await self.programs.advance(await self.context(name), make, self.recorded)

    async def take(self, output: NodeOutput) -> None:
        page = output.page
        assert page is not None
        checked = await self.library.plan(self.prefix, page.plan)
        specs = ExecutionPlan.unpack(page.specs).specs
        self.tasks += [spec for spec in specs if spec.kind == "task"]
        self.news += output.tasks
        specs = [spec for spec in specs if spec.kind != "task"]
        made = checked.plan.nodes if specs else ()
        for spec, node in zip(specs, made, strict=True):
            assert spec.id == node.id
            assert spec.id not in self.nodes, "ids are new"
            self.nodes[spec.id] = (page.plan, node, spec)
        self.session = page.session
        self.waits = [*(each for each in self.waits if each not in page.past), *page.waits]
        self.keys.update(checked.keys.values())
        self.going.pop("main", None)
        self.going |= dict.fromkeys([*(spec.id for spec in specs), "main"])
        self.pages += 1
        self.keys_of |= checked.keys
        self.told_bytes += len(page.model_dump_json())
        for spec in specs:
            end, at = self.known.get(checked.keys.get(spec.id, ""), (None, 0))
            if end is not None and self.origin is None:
                self.end(spec.id, end, at)
        for ended, reply in unpack_ends(ExecutionPlan.unpack(page.specs), page.ends):
            error = reply.error
            self.news += reply.tasks
            if error is None:
                self.end(ended, End(reply.ref or ""), reply.at if reply.taken_over else 0)
            elif not error.again:
                self.end(ended, End("", "failed", f"{error.type}: {error.message}"))
        if page.end is not None:
            error = page.end.error
            self.news += page.end.tasks
            lost = End("", "failed", f"{error.type}: {error.message}") if error is not None else None
            self.end("main", lost or End(page.end.ref or ""))

    async def make(self, page: StoredPlan, name: str) -> NodeReply:
        """Have a fake answer a call that an advance makes itself."""
        node = page.node(name)
        assert isinstance(node, ToolNode)
        # As its own marker is, it is known by what the script has called. After a kill, the advance may hear of ends in
        # another order, and give another call the same name.
        key = page.keys[name]
        if key in self.marked:
            return self.marked[key]
        for _ in range(self.random.randint(0, 20)):
            await asyncio.sleep(0)
        call = NodeCall(run="run", plan="", nodes=(name,))
        binder = Binder(self.library, self.prefix, page, call, page.materials.get(name, {}))
        await binder.load(Unit(name, None, 1))
        try:
            value = self.fakes[node.tool](**binder.bound(node.args))
        except Exception as error:  # noqa: BLE001 - as a tool fails
            raise ToolError(f"{error}", retryable=self.random.random() < 0.5) from None
        self.made[key] += 1
        reply = reply_to(value, await self.library.put(self.prefix, value), 1, [], inline=False)
        self.marked[key] = reply
        return reply

    async def recorded(self, page: StoredPlan, name: str) -> NodeReply | None:
        """Return how a call has ended in the run that this one forks."""
        found = self.known.get(page.keys.get(name, "")) if self.origin else None
        if found is None:
            return None
        end, at = found
        value = await self.library.value(PREFIX, end.ref)
        ref = await self.library.put(self.prefix, value)
        return NodeReply(ref=ref, size=1, attempt=0, taken_over=True, at=at)

    async def context(self, name: str, generation: int = 1) -> NodeContext:
        """Return what an activity would run the node with."""
        plan, _, _ = self.nodes[name]
        waits = self.waits if name == "main" else []
        ended = {other: self.ends[other] for other in waits if other in self.ends}
        refs = {other: end.ref for other, end in ended.items() if end.ref}
        lost = {other: (end.status, end.error) for other, end in ended.items() if not end.ref}
        began = self.clock if self.takes and name != "main" else self.begins
        times = {other: self.ended_at[other] for other in ended} or {name: began}
        about: dict[str, Any] = {"left": self.left, "since": self.since, "ends": times, "fuse": "on"}
        about["limits"] = self.limits
        about |= {"origins": (PREFIX.rpartition("/")[2],)} if self.origin else {}
        about["session"] = self.session if name == "main" else ""
        about["failed"] = self.failed if name == "main" and not self.session else ()
        call = ProgramNodeCall(run="run", plan=plan, nodes=(name,), refs=refs, lost=lost, **about)
        checked = await self.library.plan(self.prefix, plan)
        binder = Binder(self.library, self.prefix, checked, call, {**checked.materials.get(name, {}), **refs})
        return NodeContext(checked, Unit(name, None, generation), call, binder, self.prefix, Attempts(1, 0))

    async def call(self, name: str, node: Node) -> None:
        """Have a fake answer a call, unless the run that this one forks has the answer."""
        taken = await self.recorded(await self.library.plan(self.prefix, self.nodes[name][0]), name)
        if taken is not None:
            self.end(name, End(taken.ref or ""), taken.at)
            return
        assert self.keys_of.get(name) not in self.known, "it is called again"
        self.called[self.nodes[name][2].summary] += 1
        try:
            value = await self.answer(name, node)
        except Exception as error:  # noqa: BLE001 - as a tool fails
            self.end(name, End("", "failed", f"{type(error).__name__}: {error}"))
        else:
            self.end(name, End(await self.library.put(self.prefix, value)))

    async def answer(self, name: str, node: Node) -> Any:
        context = await self.context(name)
        await context.binder.load(context.unit)
        bound = context.binder.bound
        if isinstance(node, ToolNode) and node.tool == SLEEP["name"]:
            return None
        if isinstance(node, ToolNode):
            return self.fakes[node.tool](**bound(node.args))
        if isinstance(node, LlmNode):
            words, *_ = node.prompt.partition("\n\n$material_")
            material = [context.binder.lookup(place) for place in context.checked.materials.get(name, {})]
            return self.fakes["llm"](bound(words), *material, schema=node.output_schema)
        if isinstance(node, GateNode):
            return self.fakes["ask"](bound(node.question))
        assert isinstance(node, AgentNode)
        return self.fakes["agent"](bind(node.goal, context.binder.lookup))

    def end(self, name: str, end: End, at: int = 0) -> None:
        """End a node, unless it has expired."""
        self.going.pop(name, None)
        if name not in self.ends:
            self.ends[name], self.ended_at[name] = end, at or self.clock
            self.order.append(name)

    def results(self) -> dict[str, tuple[End, int]]:
        """Return how calls have ended that have a value, by their keys."""
        return {key: (self.ends[name], self.ended_at[name]) for name, key in self.keys_of.items() if self.has(name)}

    def has(self, name: str) -> bool:
        """Whether a node has a value."""
        return name in self.ends and bool(self.ends[name].ref)


class Killed(BaseException):
    """A worker was killed."""


class Dying:
    """A store under a worker that is killed after so many calls."""

    def __init__(self, store: object, calls: int) -> None:
        self.store = store
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)

        async def call(*args: Any, **fields: Any) -> Any:
            self.calls -= 1
            if self.calls < 0:
                raise Killed
            return await found(*args, **fields)

        return call
