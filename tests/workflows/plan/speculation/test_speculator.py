"""A run that speculates comes to the same answers, and to the same effects, as one that does not."""

import os
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

import pytest

from sennit.workflows.plan.compile.execution_plan import EXCLUSIVE, SHARED, ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.events import (
    Answered,
    BudgetRaised,
    Decision,
    DrainStarted,
    Event,
    LedgerRead,
    NodeEnded,
    Outcome,
    PlanReplaced,
    RunStarted,
    Start,
    StopRequested,
    TimeAdvanced,
    Written,
)
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import PENDING, WAITING
from sennit.workflows.plan.speculation.follower import EarlyTool, Follower, Speculation
from sennit.workflows.plan.speculation.limits import MAX_ASKED, MAX_CHAIN, MAX_LIVE
from sennit.workflows.plan.speculation.speculator import Begin, Choice, Drop, Speculator

SEEDS = range(int(os.environ.get("SENNIT_SEEDS", "400")))
KINDS = ("a", "b", "")
"""Kinds of resources; "" for a tool that names none."""


def tool_spec(name: str, tool: str, kind: str, effect: str, needs: list[int], **more: Any) -> NodeSpec:
    mode = EXCLUSIVE if effect == "write" else SHARED
    locks = [(kind, mode)] if kind else []
    return NodeSpec(name, "tool", needs=needs, reads=list(needs), tool=tool, effect=effect, locks=locks, **more)


def random_plan(chance: Random) -> tuple[list[NodeSpec], list[Follower]]:
    """Return nodes that read and write a few resources behind conditions and people, and what follows what."""
    tools = {f"t{number}": chance.choice(KINDS) for number in range(4)}
    followers: list[Follower] = []
    for first in tools:
        second = chance.choice(list(tools))
        known = {"kind": tools[second], "place": len(followers), "probability": chance.choice((0.7, 0.9, 1.0))}
        followers.append(follower(f"{first}_read", f"{second}_read", **known))
    usual = {each.first: each.second for each in followers}
    specs: list[NodeSpec] = []
    if chance.random() < 0.5:
        specs += random_walk(tools, usual, chance)
    for number in range(len(specs), chance.randint(3, 16)):
        needs = sorted(chance.sample(range(number), min(number, chance.randint(0, 2))))
        draw = chance.random()
        if draw < 0.1:
            specs.append(NodeSpec(f"n{number}", "gate", needs=needs, question="Go on?"))
            continue
        if draw < 0.2:
            specs.append(NodeSpec(f"n{number}", "llm", needs=needs, reads=list(needs)))
            continue
        if draw < 0.27:
            effect = chance.choice(("read", "write"))
            specs.append(NodeSpec(f"n{number}", "agent", needs=needs, reads=list(needs), effect=effect))
            continue
        tool = chance.choice(list(tools))
        effect = chance.choice(("read", "read", "pure", "write"))
        spec = tool_spec(f"n{number}", f"{tool}_{effect}", tools[tool], effect, needs)
        spec.skip_on_error = True
        spec.early = chance.random() < 0.3
        if number and chance.random() < 0.4:
            _add_condition(spec, chance.randrange(number), chance)
        specs.append(spec)
    return specs, followers


def random_walk(tools: dict[str, str], usual: dict[str, str], chance: Random) -> list[NodeSpec]:
    """Return calls that mostly follow each other as the patterns say, with a model before each that decides on it."""
    specs: list[NodeSpec] = []
    reads: list[int] = []
    tool = chance.choice(list(usual))
    for _ in range(chance.randint(2, 4)):
        number = len(specs)
        specs.append(NodeSpec(f"n{number}", "llm", needs=list(reads), reads=list(reads)))
        name = tool.partition("_")[0]
        call = tool_spec(f"n{number + 1}", tool, tools[name], "read", [number, *reads])
        call.reads = list(reads)
        call.skip_on_error = True
        specs.append(call)
        reads = [number + 1]
        tool = usual[tool] if chance.random() < 0.8 else chance.choice(list(usual))
    return specs


def _add_condition(spec: NodeSpec, watched: int, chance: Random) -> None:
    """Have a node wait for how another one ends, of which it reads nothing."""
    if watched in spec.needs:
        return
    status = chance.choice(("succeeded", "failed"))
    spec.watches = [watched]
    spec.when = {"ref": "$x", "op": "eq", "value": status, "at": [watched, ":status"]}


def follower(first: str, second: str, **more: Any) -> Follower:
    known: dict[str, Any] = {"place": 0, "probability": 0.9, "millis": 1_000, "fresh_for": 60_000}
    return Follower(first=first, second=second, queue="tools", timeout=30_000, **{**known, **more})


def early_tool(name: str, **more: Any) -> EarlyTool:
    known: dict[str, Any] = {"millis": 1_000, "fresh_for": 60_000}
    return EarlyTool(name=name, queue="tools", timeout=30_000, **{**known, **more})


def early_tools(specs: list[NodeSpec]) -> tuple[EarlyTool, ...]:
    """Return the tools of nodes that only read."""
    tools: dict[str, EarlyTool] = {}
    for spec in specs:
        if spec.effect in ("read", "pure") and spec.tool:
            kind = spec.locks[0][0] if spec.locks else ""
            tools[spec.tool] = early_tool(spec.tool, kind=kind)
    return tuple(tools.values())


@dataclass
class Asked:
    """A call, by its content key, that the model of a unit asks for in a reply that still comes."""

    unit: int
    tool: str
    key: str


@dataclass
class Prefetched:
    """A call that runs early in this world: its content key, and what it has read."""

    key: str
    value: str
    depth: int
    """How many calls were made early one behind the other, up to this one."""


@dataclass
class Life:
    """One run in a world of resources. Without a speculator it makes each call when it comes up.

    What a call takes is drawn by its node, so that ends have the same order whatever is used of early outputs.
    """

    seed: int
    speculates: bool
    values: dict[str, str] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    speculator: Speculator | None = None
    state: RunState = field(init=False)

    def __post_init__(self) -> None:
        chance = Random(self.seed)
        specs, followers = random_plan(chance)
        answer = [len(specs) - 1]
        self.state = RunState(
            Graph(ExecutionPlan(specs, answer, "partial")),
            window=chance.choice((1, 10, 30, 100)),
            timings=Timings("off"),
        )
        self.versions = dict.fromkeys(KINDS, 0)
        self.calendar: list[tuple[int, int, Any]] = []
        self.count = 0
        self.now = 0
        self.prefetched: dict[int, Prefetched] = {}
        self.asked: dict[int, None] = {}
        self.taken: dict[int, int | None] = {}
        self.used_depths: list[int] = []
        self.early = Random(self.seed + 1)
        if self.speculates:
            self.speculator = Speculator(
                Speculation(followers=tuple(followers), tools=early_tools(specs), chain=MAX_CHAIN)
            )

    def run(self) -> None:
        self._take(RunStarted())
        while self.calendar:
            self.now, _, what = heappop(self.calendar)
            if isinstance(what, tuple):
                self._write(*what)
            elif isinstance(what, int):
                self._end_early(what)
            elif isinstance(what, Asked):
                self._ask(what)
            else:
                self._take(what)

    def _after(self, millis: int, what: Any) -> None:
        # Ends of early calls come between those of real ones, and move none of these.
        self.count += 1
        heappush(self.calendar, (self.now + millis, self.count, what))

    def _take(self, event: Event) -> None:
        speculator = self.speculator
        if speculator is not None:
            self._carry_out(speculator.before(self.state, event))
        decisions: list[Decision] = step(self.state, event, self.now)
        choices: list[Choice] = []
        if isinstance(event, NodeEnded):
            self._note_use(event.unit)
        if speculator is not None:
            choices = speculator.after(self.state, event, decisions)
        for decision in decisions:
            if isinstance(decision, Start):
                for unit in decision.units:
                    self._start(unit)
        self._carry_out(choices)
        for unit, record in self.state.units.items():
            if record.status == WAITING and unit not in self.asked:
                self.asked[unit] = None
                self._after(10 * self._drawn(unit).randint(1, 900), Answered(unit, "yes"))

    @property
    def statuses(self) -> dict[int, int]:
        """The statuses of all units."""
        return {unit: record.status for unit, record in self.state.units.items()}

    def _drawn(self, unit: int) -> Random:
        return Random(f"{self.seed}/{unit}")

    def _start(self, unit: int) -> None:
        spec = self.state.spec_of(unit)
        drawn = self._drawn(unit)
        key = self._key(spec.tool, [self.values[self.state.path(node)] for node in spec.reads])
        millis = 10 * drawn.randint(1, 400)
        outcome = Outcome(digest=key)
        if spec.effect == "write":
            self._write(spec, "begin")
            self._after(millis - 5, (spec, "end"))
            if drawn.random() < 0.3:  # it fails, and takes effect all the same, some time
                self._after(millis + drawn.randint(1, 3_000), (spec, "late"))
                outcome = Outcome(error=("Failed", "it broke"))
        if outcome.error is None:
            self.values[spec.id] = self._used(unit, key) or self._read(spec.tool, key)
            outcome = Outcome(digest=self.values[spec.id])
        self._after(millis, NodeEnded(unit, self.state.units[unit].generation, outcome))
        if spec.kind == "llm" and self.speculator is not None:
            self._write_calls(unit, millis)

    def _write_calls(self, unit: int, millis: int) -> None:
        """Have a model ask for calls while its reply comes: for those that nodes make, or for others."""
        targets = []
        for node, spec in enumerate(self.state.graph.specs):
            is_open = self.state.units[node].status == PENDING and all(
                self.state.path(read) in self.values for read in spec.reads
            )
            if spec.effect in ("read", "pure") and spec.tool and is_open:
                targets.append(spec)
        for _ in range(self.early.randint(0, 2) if targets else 0):
            target = self.early.choice(targets)
            inputs = [self.values[self.state.path(node)] for node in target.reads]
            if self.early.random() < 0.2:
                inputs.append("words of its own")
            asked = Asked(unit, target.tool, self._key(target.tool, inputs))
            self._after(10 * self.early.randint(0, millis // 10 + 20) + 3, asked)

    def _ask(self, asked: Asked) -> None:
        assert self.speculator is not None
        self._carry_out(self.speculator.asked(self.state, asked.unit, asked.tool, asked.key, self.now))

    def _used(self, unit: int, key: str) -> str:
        """Return what a real call takes over from an early one, "" if it is another call than all of these."""
        if self.speculator is None:
            return ""
        usable = self.speculator.usable(self.state, unit, self.now)
        for number in usable:
            if self.prefetched[number].key == key:
                self.taken[unit] = number
                return self.prefetched[number].value
        if usable:
            self.taken[unit] = None
        return ""

    def _note_use(self, unit: int) -> None:
        """Tell what a real call that has ended has taken over."""
        if self.speculator is None or unit not in self.taken:
            return
        number = self.taken.pop(unit)
        self.speculator.used_by(unit, number, 100, 1)
        if number is not None:
            self.used_depths.append(self.prefetched[number].depth)

    def _carry_out(self, choices: list[Choice]) -> None:
        for choice in choices:
            if isinstance(choice, Drop):
                continue
            call = choice.call
            assert self.speculator is not None
            self.speculator.has_begun(call.number)
            spec = self.state.spec_of(call.unit)
            inputs = [self.values[self.state.path(node)] for node in spec.reads]
            if call.first is not None:
                inputs = [self.prefetched[call.first.number].value]
            elif call.follower is not None:
                inputs = [self.values[spec.id]]
            if call.follower is not None and self.early.random() < 0.2:
                inputs.append("a poisoned pattern")
            key = call.arguments or self._key(call.tool, inputs)
            self.prefetched[call.number] = Prefetched(key, self._read(call.tool, key), call.depth)
            self._after(10 * self.early.randint(1, 300) + 1, call.number)

    def _end_early(self, number: int) -> None:
        assert self.speculator is not None
        self.speculator.ended(number, NO_USAGE, has_output=self.early.random() < 0.9)
        self._carry_out(self.speculator.after_early(self.state, number))

    def _key(self, tool: str, inputs: list[str]) -> str:
        return f"{tool}({','.join(inputs)})"[-200:]

    def _read(self, tool: str, key: str) -> str:
        """Return what a call gives now: a tool that names no resource may have read any."""
        kinds = [spec.locks for spec in self.state.graph.specs if spec.tool == tool]
        read = dict(self.versions)
        if kinds and kinds[0]:
            kind = kinds[0][0][0]
            read = {kind: self.versions[kind], "": self.versions[""]}
        return f"{key}@{sorted(read.items())}"[-200:]

    def _write(self, spec: NodeSpec, phase: str) -> None:
        """A write changes its resource when it begins and when it ends; a sub-agent, or one without, changes all."""
        kinds = [name for name, _ in spec.locks] or list(KINDS)
        for kind in kinds:
            self.versions[kind] += 1
        self.effects.append(f"{spec.id} {phase} {self.now}")


@pytest.mark.parametrize("share", range(4))
def test_a_run_that_speculates_ends_as_one_that_does_not(share: int) -> None:
    made = hits = 0
    depths: list[int] = []
    for seed in SEEDS[share::4]:
        calm = Life(seed, speculates=False)
        eager = Life(seed, speculates=True)
        calm.run()
        eager.run()
        assert eager.values == calm.values, f"SENNIT_SEEDS: seed {seed}"
        assert eager.effects == calm.effects, f"SENNIT_SEEDS: seed {seed}"
        assert eager.statuses == calm.statuses, f"SENNIT_SEEDS: seed {seed}"
        assert eager.speculator is not None
        made += eager.speculator.made
        hits += eager.speculator.hits
        depths += eager.used_depths
        assert eager.speculator.hits <= eager.speculator.made
    assert made
    assert hits, "nothing was used, so that nothing is shown"
    assert 2 in depths, "no chain was used, so that nothing is shown of them"


def run_of(*specs: NodeSpec, window: int = 100) -> RunState:
    return RunState(Graph(ExecutionPlan(list(specs), [len(specs) - 1])), window=window, timings=Timings("off"))


@dataclass
class Desk:
    """A run whose events a test gives one by one."""

    state: RunState
    speculator: Speculator

    @classmethod
    def of(
        cls,
        *specs: NodeSpec,
        window: int = 100,
        followers: tuple[Follower, ...] = (),
        tools: tuple[EarlyTool, ...] = (),
        chain: int = MAX_CHAIN,
    ) -> "Desk":
        speculation = Speculation(followers=followers, tools=tools, chain=chain)
        return cls(run_of(*specs, window=window), Speculator(speculation))

    def take(self, event: Event, now: int | None = None) -> list[Choice]:
        choices = self.speculator.before(self.state, event)
        decisions = step(self.state, event, now)
        choices += self.speculator.after(self.state, event, decisions)
        return self._begin(choices)

    def _begin(self, choices: list[Choice]) -> list[Choice]:
        for choice in choices:
            if isinstance(choice, Begin):
                self.speculator.has_begun(choice.call.number)
        return choices

    def ask(self, unit: int, tool: str, arguments: str = "0", now: int = 0) -> list[Choice]:
        """Have the model of a unit ask for a call, in a reply that still comes."""
        return self._begin(self.speculator.asked(self.state, unit, tool, arguments, now))

    def end_early(self, number: int, *, has_output: bool = True) -> list[Choice]:
        """Have an early call end."""
        self.speculator.ended(number, NO_USAGE, has_output=has_output)
        return self._begin(self.speculator.after_early(self.state, number))

    def end(self, unit: int, *, now: int | None = None, more: bool = False, **outcome: Any) -> list[Choice]:
        ended = Outcome(**{"digest": "0" * 40, **outcome})
        return self.take(NodeEnded(unit, self.state.units[unit].generation, ended, more=more), now)


def begun(choices: list[Choice]) -> list[str]:
    return [choice.call.tool for choice in choices if isinstance(choice, Begin)]


def dropped(choices: list[Choice]) -> list[int]:
    return [choice.number for choice in choices if isinstance(choice, Drop)]


def in_a_loop(*, followers: tuple[Follower, ...], window: int = 100, limits: dict[str, int] | None = None) -> Desk:
    """Return a run in which a call has been made for a model that decides on the next one."""
    look = tool_spec("look", "look", "", "read", [])
    model = NodeSpec("m", "llm", needs=[0], reads=[0])
    write = tool_spec("w", "write", "a", "write", [])
    write.needs = [1]
    desk = Desk.of(look, model, write, window=window, followers=followers)
    if limits:
        desk.take(BudgetRaised(limits))
    desk.take(RunStarted())
    return desk


def test_a_call_that_usually_follows_begins_while_the_model_still_thinks() -> None:
    desk = in_a_loop(followers=(follower("look", "fetch"), follower("look", "seldom", probability=0.4)))
    assert begun(desk.end(0)) == ["fetch"]
    assert desk.state.running == 1, "the model's turn has begun as well"


def test_a_call_begins_while_the_reply_that_asks_for_it_still_comes() -> None:
    desk = Desk.of(NodeSpec("m", "llm"), tools=(early_tool("fetch"),))
    desk.take(RunStarted())
    assert begun(desk.ask(0, "fetch")) == ["fetch"]
    assert begun(desk.ask(0, "unheard of")) == []
    assert begun(desk.ask(0, "fetch")) == [], "the model was asked again, and asks for the same call"
    desk.end(0)
    assert begun(desk.ask(0, "fetch", "1")) == [], "the reply is there"


def test_a_call_of_a_long_reply_is_as_old_as_it_is_itself() -> None:
    write = NodeSpec("after", "tool", needs=[0], reads=[0], tool="fetch", effect="read")
    desk = Desk.of(NodeSpec("m", "llm"), write, tools=(early_tool("fetch", fresh_for=5_000),))
    desk.take(RunStarted(), now=0)
    desk.ask(0, "fetch", now=70_000)
    desk.end(0, now=72_000)
    assert desk.speculator.usable(desk.state, 1, 72_000) == (1,)


@pytest.mark.parametrize("limits", [{"cost": 1_000_000}, {"nodes": 1}])
def test_nobody_tells_of_calls_where_none_may_begin(limits: dict[str, int]) -> None:
    tools = (early_tool("fetch"),)
    desk = Desk.of(NodeSpec("m", "llm"), tools=tools)
    assert desk.speculator.wanted(desk.state) == ("fetch",)
    desk.take(BudgetRaised(limits))
    desk.take(RunStarted())
    assert desk.speculator.wanted(desk.state) == ()
    narrow = Desk.of(NodeSpec("m", "llm"), tools=tools, window=5)
    assert narrow.speculator.wanted(narrow.state) == ()


def test_so_many_calls_of_one_reply_begin_and_no_more() -> None:
    desk = Desk.of(NodeSpec("m", "llm"), NodeSpec("n", "llm"), tools=(early_tool("fetch"),))
    desk.take(RunStarted())
    for number in range(1, MAX_ASKED + 1):
        assert begun(desk.ask(0, "fetch", str(number))) == ["fetch"]
        desk.speculator.ended(number, NO_USAGE, has_output=True)
    assert begun(desk.ask(0, "fetch", "one more")) == []
    assert begun(desk.ask(1, "fetch")) == ["fetch"], "another reply has its own"


def test_nothing_begins_early_while_what_it_reads_is_written() -> None:
    write = tool_spec("w", "write", "a", "write", [])
    tools = (early_tool("same", kind="a"), early_tool("any"), early_tool("other", kind="b"))
    desk = Desk.of(NodeSpec("m", "llm"), write, tools=tools)
    desk.take(RunStarted())
    assert [begun(desk.ask(0, tool)) for tool in ("same", "any", "other")] == [[], [], ["other"]]


def test_a_fast_call_is_not_worth_it() -> None:
    assert begun(in_a_loop(followers=(follower("look", "fetch", millis=20),)).end(0)) == []


def test_both_branches_begin_while_their_condition_is_open() -> None:
    ask = NodeSpec("ask", "llm")
    yes, no = (tool_spec(name, f"tool_{name}", "", "read", []) for name in ("yes", "no"))
    for spec, value in ((yes, "succeeded"), (no, "failed")):
        spec.watches = [0]
        spec.when = {"ref": "$ask", "op": "eq", "value": value, "at": [0, ":status"]}
    desk = Desk.of(ask, yes, no)
    assert begun(desk.take(RunStarted())) == ["tool_yes", "tool_no"]
    desk.end(0, now=900)
    assert desk.speculator.usable(desk.state, 1, 1_000) == (1,), "and the one that is called may use its own"


@pytest.mark.parametrize(("effect", "early", "begins"), [("pure", False, 1), ("read", False, 0), ("read", True, 1)])
def test_behind_a_person_only_pure_calls_begin_and_those_that_say_so(effect: str, early: bool, begins: int) -> None:
    gate = NodeSpec("g", "gate", question="Go on?")
    call = tool_spec("c", "tool", "", effect, [])
    call.needs = [0]
    call.early = early
    assert len(Desk.of(gate, call).take(RunStarted())) == begins


def test_nothing_begins_behind_a_write_or_a_write_that_asks() -> None:
    write = tool_spec("w", "write", "", "write", [])
    call = tool_spec("c", "tool", "", "pure", [])
    call.watches = [0]
    call.when = {"ref": "$w", "op": "eq", "value": "succeeded", "at": [0, ":status"]}
    assert Desk.of(write, call).take(RunStarted()) == []


def test_a_write_that_begins_drops_what_it_may_change() -> None:
    reads = (follower("look", "of_a", kind="a"), follower("look", "of_b", kind="b"), follower("look", "unknown"))
    desk = in_a_loop(followers=reads)
    assert begun(desk.end(0)) == ["of_a", "of_b", "unknown"]
    assert dropped(desk.end(1)) == [1, 3], "the write has begun, and changes a"
    assert [call.tool for call in desk.speculator.live.values()] == ["of_b"]


def test_a_lock_of_the_plan_does_not_say_what_a_tool_without_a_resource_writes() -> None:
    reads = (follower("look", "of_a", kind="a"), follower("look", "of_b", kind="b"))
    desk = in_a_loop(followers=reads)
    desk.state.spec_of(2).names_no_resource = True
    desk.end(0)
    assert dropped(desk.end(1)) == [1, 2], "the write holds a lock called `a`, and may change b"


def test_while_a_write_is_under_way_nothing_begins_that_it_may_change_and_after_a_failed_one_never() -> None:
    write = tool_spec("w", "write", "", "write", [])
    write.skip_on_error = True
    first, second = (tool_spec(name, "look", "", "read", []) for name in ("x", "y"))
    model = NodeSpec("m", "llm", needs=[1, 2], reads=[1, 2])
    desk = Desk.of(write, first, second, model, followers=(follower("look", "fetch"),))
    desk.take(RunStarted())
    assert desk.end(1) == []
    desk.end(0, digest=None, error=("Failed", "who knows what it has done"))
    assert desk.end(2) == []


def test_a_run_that_goes_on_as_another_knows_of_failed_writes_and_of_what_was_used() -> None:
    write, look, again = (
        tool_spec("w", "write", "", "write", []),
        tool_spec("x", "look", "", "read", []),
        tool_spec("y", "look", "", "read", []),
    )
    write.skip_on_error = True
    model = NodeSpec("m", "llm", needs=[1, 2], reads=[1, 2])
    desk = Desk.of(write, look, again, model, followers=(follower("look", "fetch"),))
    desk.take(RunStarted())
    desk.end(0, digest=None, error=("Failed", "who knows what it has done"))
    desk.speculator.ended(1, Usage(input_tokens=7), has_output=False)
    past = desk.speculator.past
    desk.speculator = Speculator(desk.speculator.speculation)
    desk.speculator.go_on(past)
    assert desk.end(1) == [], "the write may still take effect"
    assert desk.speculator.used == Usage(input_tokens=7)


def test_a_sub_agent_that_may_write_drops_everything() -> None:
    look = tool_spec("look", "look", "", "read", [])
    model = NodeSpec("m", "llm", needs=[0], reads=[0])
    agent = NodeSpec("s", "agent", needs=[1], effect="write")
    desk = Desk.of(look, model, agent, followers=(follower("look", "of_b", kind="b"),))
    desk.take(RunStarted())
    assert begun(desk.end(0)) == ["of_b"]
    assert dropped(desk.end(1)) == [1]


def test_an_output_is_not_used_when_it_is_too_old() -> None:
    again = tool_spec("again", "fetch", "", "read", [])
    desk = in_a_loop(followers=(follower("look", "fetch", fresh_for=2_000),))
    desk.end(0, now=1_000)
    desk.state.append([again])
    assert desk.speculator.usable(desk.state, 3, 3_000) == (1,)
    assert desk.speculator.usable(desk.state, 3, 3_001) == ()


def test_a_call_that_a_person_has_started_over_uses_nothing() -> None:
    desk = in_a_loop(followers=(follower("look", "look"),))
    desk.end(0)
    assert desk.speculator.usable(desk.state, 0, 1) == (), "it has been attempted"
    desk.state.units[0].attempts = 0
    assert desk.speculator.usable(desk.state, 0, 1) == (1,)
    desk.state.units[0].generation = 2
    assert desk.speculator.usable(desk.state, 0, 1) == ()


def test_a_tenth_of_the_window_and_idle_places_only() -> None:
    many = tuple(follower("look", f"f{number}") for number in range(12))
    assert len(in_a_loop(followers=many).end(0)) == 8
    assert len(in_a_loop(followers=many, window=30).end(0)) == 3
    assert len(in_a_loop(followers=many, window=9).end(0)) == 0


def test_real_work_takes_the_places_of_what_runs_early() -> None:
    look = tool_spec("look", "look", "", "read", [])
    model = NodeSpec("m", "llm", needs=[0], reads=[0])
    work = [tool_spec(f"w{number}", "other", "", "read", []) for number in range(10)]
    for spec in work:
        spec.needs = [1]
    desk = Desk.of(look, model, *work, window=10, followers=(follower("look", "fetch"),))
    desk.take(RunStarted())
    assert begun(desk.end(0)) == ["fetch"]
    assert dropped(desk.end(1)) == [1]


@pytest.mark.parametrize(
    ("limits", "begins"),
    [
        ({"tokens": 1_000_000}, 1),
        ({"tokens": 100}, 0),  # it is nearly used up by what is under way
        ({"cost": 1_000_000_000}, 0),  # nobody knows what a call of a tool costs
        ({"nodes": 9}, 0),  # one call more than a tenth of it
        ({"nodes": 100}, 1),
    ],
)
def test_a_tenth_of_the_budget_at_most_and_nothing_without_a_price(limits: dict[str, int], begins: int) -> None:
    desk = in_a_loop(followers=(follower("look", "fetch"),), limits=limits)
    assert len(begun(desk.end(0, usage=Usage(input_tokens=95)))) == begins


def test_what_speculation_has_used_is_bounded_by_a_tenth_too() -> None:
    look, other = (tool_spec(name, "look", "", "read", []) for name in ("x", "y"))
    model = NodeSpec("m", "llm", needs=[0, 1], reads=[0, 1])
    desk = Desk.of(look, other, model, followers=(follower("look", "fetch"),))
    desk.take(BudgetRaised({"tokens": 1_000_000}))
    desk.take(RunStarted())
    assert begun(desk.end(0)) == ["fetch"]
    desk.speculator.ended(1, Usage(input_tokens=100_001), has_output=True)
    assert desk.end(1) == []


@pytest.mark.parametrize("event", [StopRequested("cancelled"), DrainStarted()])
def test_a_run_that_ends_or_continues_as_new_drops_what_runs(event: Event) -> None:
    desk = in_a_loop(followers=(follower("look", "fetch"),))
    desk.end(0)
    assert dropped(desk.take(event)) == [1]
    figures = desk.speculator.figures
    assert figures is not None
    assert (figures.calls, figures.hits, figures.wasted) == (1, 0, 1)


def test_another_plan_lets_go_of_everything() -> None:
    desk = in_a_loop(followers=(follower("look", "fetch"),))
    desk.end(0)
    desk.speculator.ended(1, NO_USAGE, has_output=True)
    desk.take(PlanReplaced(Graph(ExecutionPlan([tool_spec("z", "fetch", "", "read", [])], [0]))))
    assert desk.speculator.live == {}


def test_a_write_of_a_plan_that_was_replaced_stays_under_way() -> None:
    """Units of the new plan have the numbers of the old one's."""
    write, look = tool_spec("w", "write", "", "write", []), tool_spec("look", "look", "", "read", [])
    desk = Desk.of(write, followers=(follower("look", "fetch"),))
    desk.take(RunStarted())
    model = NodeSpec("m", "llm", needs=[0], reads=[0])
    desk.take(PlanReplaced(Graph(ExecutionPlan([look, model], [1]))))
    assert desk.end(0) == []


@pytest.mark.parametrize("written", [(), (Written("w", "", 1, "made"),)])
def test_after_a_reset_nothing_begins_goes_on_or_is_used(written: tuple[Written, ...]) -> None:
    """Whatever the ledger knows: nothing would be used, so that all of it would be waste."""
    looks = [tool_spec(name, "look", "", "read", []) for name in ("x", "y")]
    model = NodeSpec("m", "llm", needs=[0, 1], reads=[0, 1])
    desk = Desk.of(*looks, model, followers=(follower("look", "fetch"),))
    desk.take(RunStarted())
    assert begun(desk.end(0)) == ["fetch"]
    assert dropped(desk.take(LedgerRead(written))) == [1]
    assert desk.end(1) == []


def test_the_choice_does_not_depend_on_how_workflow_tasks_were_joined() -> None:
    """Two ends in tasks of their own, and in one task: with the event behind them that starts what has become ready."""

    def run() -> Desk:
        specs = [tool_spec(name, "look", "", "read", []) for name in ("x", "y")]
        model = NodeSpec("m", "llm", needs=[0, 1], reads=[0, 1])
        desk = Desk.of(*specs, model, window=10, followers=(follower("look", "fetch"), follower("look", "more")))
        desk.take(RunStarted())
        return desk

    apart, joined = run(), run()
    one = apart.end(0) + apart.end(1)
    other = joined.end(0, more=True) + joined.end(1, more=True) + joined.take(TimeAdvanced())
    assert [vars_of(choice) for choice in one] == [vars_of(choice) for choice in other] != []


def vars_of(choice: Choice) -> tuple[Any, ...]:
    if isinstance(choice, Begin):
        return ("begin", choice.call.number, choice.call.unit, choice.call.tool)
    return ("drop", choice.number)


def test_hits_misses_waste_and_time_saved_are_counted() -> None:
    desk = in_a_loop(followers=(follower("look", "fetch"), follower("look", "other")))
    desk.end(0)
    desk.speculator.ended(1, NO_USAGE, has_output=True)
    desk.speculator.used_by(3, 1, 2_000, 30)
    desk.speculator.used_by(3, 1, 2_000, 30)  # a second call that is the same counts once
    desk.speculator.used_by(3, None, 0, 0)
    figures = desk.speculator.figures
    assert figures is not None
    assert (figures.calls, figures.hits, figures.wasted, figures.missed) == (2, 1, 1, 1)
    assert (figures.saved_ms, figures.accuracy) == (1_970, 0.5)


def test_a_run_that_called_nothing_early_has_no_figures_of_it() -> None:
    assert in_a_loop(followers=()).speculator.figures is None


def test_a_call_that_failed_early_is_not_offered() -> None:
    desk = in_a_loop(followers=(follower("look", "fetch"),))
    desk.end(0)
    desk.speculator.ended(1, NO_USAGE, has_output=False)
    desk.state.append([tool_spec("again", "fetch", "", "read", [])])
    assert desk.speculator.usable(desk.state, 3, 1) == ()


# chains: calls behind early ones

OPEN, EXTRACT, CITE = "open", "extract", "cite"
STEPS = (follower("search", OPEN, place=0), follower(OPEN, EXTRACT, place=1), follower(EXTRACT, CITE, place=2))


def asked_to_search(*followers: Follower, chain: int = MAX_CHAIN, window: int = 100, **more: Any) -> Desk:
    """Return a run whose model has asked for a search in a reply that still comes: that is the early call 1. The real
    one is unit 1, and a model reads it.
    """
    real = tool_spec("real", "search", "", "read", [])
    real.needs = [0]
    specs = (NodeSpec("m", "llm"), real, NodeSpec("n", "llm", needs=[1], reads=[1]))
    search = early_tool("search", **more)
    desk = Desk.of(*specs, followers=followers or STEPS, tools=(search,), chain=chain, window=window)
    desk.take(RunStarted(), now=0)
    assert begun(desk.ask(0, "search", now=0)) == ["search"]
    return desk


def test_behind_a_call_that_a_model_has_asked_for_its_followers_begin_while_the_reply_still_comes() -> None:
    desk = asked_to_search()
    [choice] = desk.end_early(1)
    assert isinstance(choice, Begin)
    assert (choice.call.tool, choice.call.unit, choice.call.first) == (OPEN, 0, desk.speculator.live[1])
    assert begun(desk.end_early(2)) == [EXTRACT]


def test_behind_a_call_that_only_a_pattern_expects_nothing_begins() -> None:
    desk = in_a_loop(followers=(follower("look", OPEN), follower(OPEN, EXTRACT)))
    assert begun(desk.end(0)) == [OPEN]
    assert desk.end_early(1) == []


def test_so_many_calls_begin_one_behind_the_other_and_no_more() -> None:
    desk = asked_to_search()
    for number in range(1, MAX_CHAIN):
        assert len(begun(desk.end_early(number))) == 1
    assert desk.end_early(MAX_CHAIN) == []


def test_a_run_that_was_prepared_before_there_were_chains_makes_none() -> None:
    """So it goes on as it has begun, when a newer worker replays it."""
    prepared = Speculation.model_validate({"tools": [early_tool("search").model_dump()]})
    assert asked_to_search(chain=prepared.chain).end_early(1) == []


@pytest.mark.parametrize(("second", "begins"), [(0.7, [EXTRACT]), (0.6, [])])
def test_a_chain_is_as_probable_as_all_its_steps_together(second: float, begins: list[str]) -> None:
    desk = asked_to_search(follower("search", OPEN, probability=0.8), follower(OPEN, EXTRACT, probability=second))
    assert begun(desk.end_early(1)) == [OPEN]
    assert begun(desk.end_early(2)) == begins


@pytest.mark.parametrize("status", ["failed", "dropped", "used"])
def test_behind_a_call_whose_output_is_not_there_to_be_used_nothing_begins(status: str) -> None:
    """Behind a used one, the end of the real call has its followers begin."""
    desk = asked_to_search()
    if status == "dropped":
        desk.take(PlanReplaced(desk.state.graph))
    elif status == "used":
        desk.speculator.used_by(0, 1, 100, 1)
    assert desk.end_early(1, has_output=status != "failed") == []


def test_nothing_begins_behind_a_model_call_that_has_failed() -> None:
    desk = asked_to_search()
    desk.end(0, digest=None, error=("Failed", "no reply"))
    assert desk.end_early(1) == []


def test_behind_a_branch_nothing_begins_that_would_follow_it() -> None:
    """Nobody knows how probable it is."""
    ask = NodeSpec("ask", "llm")
    yes = tool_spec("yes", "search", "", "read", [])
    yes.watches = [0]
    yes.when = {"ref": "$ask", "op": "eq", "value": "succeeded", "at": [0, ":status"]}
    desk = Desk.of(ask, yes, NodeSpec("m", "llm", needs=[1], reads=[1]), followers=STEPS)
    assert begun(desk.take(RunStarted())) == ["search"]
    assert desk.end_early(1) == []


def real_search(desk: Desk, early: int | None = 1) -> list[Choice]:
    """Have the real call of the search end, which has taken over an early one."""
    desk.end(0)
    desk.speculator.used_by(1, early, 100, 1)
    return desk.end(1)


def test_behind_the_real_call_no_follower_begins_that_began_behind_the_early_one() -> None:
    desk = asked_to_search()
    desk.end_early(1)
    assert real_search(desk) == []
    assert begun(desk.end_early(2)) == [EXTRACT], "the chain goes on"


@pytest.mark.parametrize("becomes", ["used", "failed"])
def test_a_follower_that_was_used_or_has_failed_does_not_begin_again_either(becomes: str) -> None:
    desk = asked_to_search()
    desk.end_early(1)
    if becomes == "used":
        desk.speculator.used_by(7, 2, 100, 1)
    else:
        desk.end_early(2, has_output=False)
    assert real_search(desk) == []


def test_a_follower_that_had_to_give_way_begins_again_behind_the_real_call() -> None:
    desk = asked_to_search()
    desk.end_early(1)
    del desk.speculator.live[2]
    assert begun(real_search(desk)) == [OPEN]


def test_behind_another_real_call_than_the_early_one_its_followers_begin() -> None:
    desk = asked_to_search()
    desk.end_early(1)
    assert begun(real_search(desk, early=None)) == [OPEN]


def test_what_does_not_begin_behind_a_guess_begins_behind_the_real_call() -> None:
    look, real = (tool_spec(name, name, "", "read", []) for name in ("look", "search"))
    real.needs = [1]
    models = [NodeSpec(f"m{node}", "llm", needs=[node], reads=[node]) for node in (0, 2)]
    steps = (follower("look", "search"), follower("search", OPEN))
    desk = Desk.of(look, models[0], real, models[1], followers=steps)
    desk.take(RunStarted())
    assert begun(desk.end(0)) == ["search"]
    assert desk.end_early(1) == []
    desk.end(1)
    desk.speculator.used_by(2, 1, 100, 1)
    assert begun(desk.end(2)) == [OPEN]


def test_a_chain_is_as_old_as_its_first_call() -> None:
    again = tool_spec("again", OPEN, "", "read", [])
    desk = asked_to_search(follower("search", OPEN, fresh_for=5_000))
    desk.take(TimeAdvanced(), now=4_000)
    assert begun(desk.end_early(1)) == [OPEN]
    [unit] = desk.state.append([again])
    assert desk.speculator.usable(desk.state, unit, 5_000) == (2,)
    assert desk.speculator.usable(desk.state, unit, 5_001) == ()


def test_a_write_drops_of_a_chain_what_it_may_change_and_leaves_the_rest() -> None:
    """What was made from a call that was dropped is used only for exactly the same call, and was not written."""
    write = tool_spec("w", "write", "a", "write", [])
    write.needs = [1]
    steps = (follower("search", OPEN, kind="b"), follower(OPEN, EXTRACT, kind="a"))
    tools = (early_tool("search", kind="a"),)
    desk = Desk.of(NodeSpec("m", "llm"), NodeSpec("n", "llm"), write, followers=steps, tools=tools)
    desk.take(RunStarted())
    desk.ask(0, "search")
    desk.end_early(1)
    desk.end_early(2)
    assert [call.tool for call in desk.speculator.live.values()] == ["search", OPEN, EXTRACT]
    assert dropped(desk.end(1)) == [3], "it runs; the output of the search is not used any more"
    assert [call.tool for call in desk.speculator.live.values()] == [OPEN]


def test_a_chain_does_not_go_on_with_what_is_written() -> None:
    write = tool_spec("w", "write", "b", "write", [])
    tools = (early_tool("search", kind="a"),)
    desk = Desk.of(NodeSpec("m", "llm"), write, followers=(follower("search", OPEN, kind="b"),), tools=tools)
    desk.take(RunStarted())
    desk.ask(0, "search")
    assert desk.end_early(1) == []


@pytest.mark.parametrize("searches", [2, 3, 4, 8])
def test_a_chain_pushes_out_no_output_of_a_call_that_the_model_has_asked_for(searches: int) -> None:
    desk = asked_to_search(follower("search", OPEN), follower(OPEN, EXTRACT))
    for number in range(1, searches):
        desk.ask(0, "search", str(number))
    for number in range(1, searches + 1):
        desk.end_early(number)
    for number in range(searches + 1, desk.speculator.made + 1):
        desk.end_early(number)
    kept = [call.tool for call in desk.speculator.live.values()]
    assert kept.count("search") == searches
    assert len(kept) <= MAX_LIVE


def test_an_end_that_counts_for_nothing_leaves_nothing_of_the_call_that_it_has_taken_over() -> None:
    desk = asked_to_search()
    desk.end_early(1)
    desk.speculator.used_by(0, 1, 100, 1)
    desk.take(NodeEnded(0, 7, Outcome("late")))
    assert desk.speculator._taken_over == {}


def test_a_chain_takes_idle_places_only_and_keeps_no_more_outputs_than_others() -> None:
    many = tuple(follower("search", f"f{number}", place=number) for number in range(12))
    assert len(begun(asked_to_search(*many).end_early(1))) == MAX_LIVE - 1, "and the output of the search"
    assert len(begun(asked_to_search(*many, window=30).end_early(1))) == 3
    desk = asked_to_search(*many)
    desk.end_early(1)
    assert len(desk.speculator.live) == MAX_LIVE
