"""Programs in the scheduler: an advance is told what has ended, makes calls, and can be made again."""

import random
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from doubles.plan.pages import added, advanced, begun, paged, restored

from sennit.workflows.messages.contracts import NodeError, NodeReply
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.packing import pack, unpack
from sennit.workflows.plan.scheduling.call_names import name_of, unit_called
from sennit.workflows.plan.scheduling.events import (
    Answered,
    Cancel,
    End,
    Event,
    InputsRead,
    NodeEnded,
    Outcome,
    ProgramAdvanced,
    ProgramEdited,
    Question,
    RetryRequested,
    RunStarted,
    SkipRequested,
    Start,
    TaskNews,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.programs import (
    CALL_FAILED,
    PROGRAM_FAILED,
    advance_number,
    beginning,
    is_left_behind,
)
from sennit.workflows.plan.scheduling.retry import is_passed
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import NEXT_TRY, RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.termination import blocking_failures
from sennit.workflows.plan.scheduling.unit import (
    CANCELLED,
    DELEGATED,
    FAILED,
    PENDING,
    RUNNING,
    STATUS_NAMES,
    SUCCEEDED,
    WAITING,
    Status,
)
from sennit.workflows.run.outcomes import outcome_of

Script = Callable[[], Generator[Any, Any, Any]]
"""Yields a text to start a call of that name, and gets its number; yields a number to wait for that call's end."""


class Failed(Exception):
    """A call has failed."""


@dataclass(frozen=True)
class Session:
    """Where a script stands: what it has called, which of that it was told, and how that ended."""

    calls: tuple[str, ...] = ()
    ends: tuple[tuple[int, str, str], ...] = ()

    def told(self, number: int, status: str, value: str) -> "Session":
        return replace(self, ends=(*self.ends, (number, status, value)))


def advance(script: Script, session: Session) -> tuple[tuple[str, ...], str | None]:
    """Run a script from its start over what it was told; return its calls, and its value if it has come to its end."""
    ends = {number: (status, value) for number, status, value in session.ends}
    calls: list[str] = []
    running = script()
    answer: Any = None
    failure: Failed | None = None
    while True:
        try:
            asked = running.throw(failure) if failure else running.send(answer)
        except StopIteration as end:
            return tuple(calls), str(end.value)
        failure = None
        if isinstance(asked, str):
            calls.append(asked)
            answer = len(calls) - 1
        elif asked not in ends:
            return tuple(calls), None
        else:
            status, answer = ends[asked]
            failure = Failed(answer) if status == "failed" else None


@dataclass
class World:
    """One run of a program. `fails` says how often each call fails before it succeeds; the call `holds` never ends.
    With `in_place` advances make all other calls themselves.
    """

    script: Script
    seed: int = 0
    fails: Mapping[str, int] = field(default_factory=dict)
    holds: str = ""
    effect: str = "pure"
    in_place: bool = False

    def __post_init__(self) -> None:
        main = NodeSpec("main", "program")
        self.state = RunState(Graph(ExecutionPlan([main], [0], "park", "auto", True)), window=100)
        self.random = random.Random(self.seed)
        self.sessions = {"": Session()}
        self.flying: list[list[tuple[int, int]]] = []
        self.activities = 0
        self.tried: Counter[str] = Counter()
        self.end = ""

    def act(self, event: Event) -> None:
        for decision in step(self.state, event):
            if isinstance(decision, Start):
                [unit] = decision.units
                step(self.state, InputsRead(unit))
                units = (unit, decision.following) if decision.following >= 0 else (unit,)
                self.flying.append([(each, self.state.units[each].generation) for each in units])
            elif isinstance(decision, Cancel):
                key = decision.unit, decision.generation
                self.flying = [flight for flight in self.flying if flight[0] != key]
            elif isinstance(decision, End):
                self.end = decision.status

    def edit(self, script: Script) -> "World":
        """Give the program another script."""
        self.script = script
        self.act(ProgramEdited(0, "p"))
        return self

    def run(self, most: int = 10_000) -> "World":
        """Run until the run ends, or waits for a person, or so many activities have ended."""
        if not self.state.begun:
            self.act(RunStarted())
        most += self.activities
        while self.activities < most:
            flights = [each for each in self.flying if not self.holds or self.name(each) != self.holds]
            if not flights:
                break
            flight = flights[self.random.randrange(len(flights))]
            self.flying.remove(flight)
            self.activities += 1
            ended = self.tell(*flight[0])
            if len(flight) > 1:  # the step goes on in the same activity, unless the call has failed
                self.tell(*flight[1], again=not ended)
        return self

    def name(self, flight: list[tuple[int, int]]) -> str:
        return self.state.graph.specs[flight[0][0]].summary

    def tell(self, unit: int, generation: int, *, again: bool = False) -> bool:
        """Have the scheduler take how a unit ended; return whether it has a value."""
        spec = self.state.graph.specs[unit]
        is_stale = self.state.units[unit].generation != generation  # it was not cancelled alone
        if again or is_stale:
            self.act(NodeEnded(unit, generation, Outcome(attempts=0, again=True)))
            return False
        answer = self.state.answers.get(unit)
        called = Outcome(answer) if answer is not None else self.called(spec) if spec.kind == "tool" else None
        outcome = called or self.advanced(unit)
        self.act(NodeEnded(unit, generation, outcome) if isinstance(outcome, Outcome) else outcome)
        return isinstance(outcome, Outcome) and outcome.digest is not None

    def called(self, spec: NodeSpec) -> Outcome:
        name = spec.summary
        self.tried[name] += 1
        if self.tried[name] <= self.fails.get(name, 0):
            return Outcome(error=("Failed", name))
        return Outcome(f"of {name}")

    def advanced(self, unit: int) -> Outcome | ProgramAdvanced:
        """Return what the activity of an advance returns, as the engine passes it on."""
        state = self.state
        session = self.sessions[state.sessions[unit].last.session]
        for node in state.sessions[unit].last.told:
            status = STATUS_NAMES[state.units[node].status]
            value = state.units[node].digest if status == "succeeded" else state.notes[node][1]
            number = int(state.graph.specs[node].id.rpartition("_")[2])
            session = session.told(number, status, value or "")
        calls, end = self.advance(session)
        if end is not None:
            return end
        again = state.sessions[unit].may_take_over
        first_told, ends, told = session, dict[int, Outcome](), dict[int, bool]()
        while self.in_place and not again and not (self.holds and self.holds in calls):
            for number in range(len(calls)):
                if number not in ends and number >= len(first_told.calls):
                    ends[number] = self.called(NodeSpec("", "tool", summary=calls[number]))
            waits = [number for number in ends if number not in told]
            if not waits:
                break
            later, heard = session, self.random.sample(waits, self.random.randint(1, len(waits)))
            for number in heard:
                error = ends[number].error
                later = later.told(
                    number, "failed" if error else "succeeded", error[1] if error else ends[number].digest or ""
                )
            made, end = self.advance(later)
            if end is not None:
                break
            session, calls, told = later, made, told | dict.fromkeys(heard, True)
        return self.page(unit, session, calls, (first_told, ends, end))

    def advance(self, session: Session) -> tuple[tuple[str, ...], Outcome | None]:
        try:
            calls, value = advance(self.script, session)
        except Failed as error:
            return (), Outcome(error=(CALL_FAILED, str(error)))
        except LookupError as error:
            return (), Outcome(error=(PROGRAM_FAILED, str(error)))
        return calls, Outcome(value) if value is not None else None

    def page(self, unit: int, session: Session, calls: tuple[str, ...], made: Any) -> ProgramAdvanced:
        state = self.state
        before, ends, end = made
        mark = f"{state.sessions[unit].last.session}g{state.units[unit].generation}"
        new = [
            NodeSpec(
                f"c{mark}_{number}",
                "tool",
                effect=self.effect,
                summary=name,
                page="p",
                key=name,
                in_place=number in ends,
            )
            for number, name in enumerate(calls[len(before.calls) :], len(before.calls))
        ]
        told = [number for number, *_ in session.ends]
        first = len(state.graph.specs)
        waits = state.sessions[unit].waits
        opened = {int(state.graph.specs[node].id.rpartition("_")[2]): node for node in waits}
        opened |= {len(before.calls) + index: first + index for index in range(len(new))}
        past = tuple(node for number, node in opened.items() if number in told and node < first)
        inputs = [node for number, node in sorted(opened.items()) if number not in told and node >= first]
        self.sessions[f"s{mark}"] = Session(calls, session.ends)
        ended = NodeEnded(unit, state.units[unit].generation, Outcome("a session", delegated=True))
        names = tuple((f"c{mark}_{number}", outcome) for number, outcome in ends.items())
        return ProgramAdvanced(ended, new, f"s{mark}", tuple(inputs), past, ends=names, end=end)


def sequence() -> Generator[Any, Any, Any]:
    found = []
    for number in range(5):
        call = yield f"a{number}"
        found += [(yield call)]
    return found


def fan() -> Generator[Any, Any, Any]:
    calls = []
    for number in range(6):
        calls += [(yield f"b{number}")]
    found = []
    for call in calls:
        found += [(yield call)]
    last = yield "last"
    return [*found, (yield last)]


def caught() -> Generator[Any, Any, Any]:
    first, second = (yield "x"), (yield "y")
    try:
        one = yield first
    except Failed:
        other = yield "instead"
        one = yield other
    return [one, (yield second)]


in_place = pytest.mark.parametrize("in_place", [False, True])
SCRIPTS = {"sequence": sequence, "fan": fan, "caught": caught}


@in_place
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_gives_the_same_in_any_order_of_ends(name: str, in_place: bool) -> None:
    for seed in range(25):
        world = World(SCRIPTS[name], seed, in_place=in_place).run()
        assert world.end == "done", seed
        assert world.state.units[0].digest == World(SCRIPTS[name]).run().state.units[0].digest, seed
        assert set(world.tried.values()) == {1}, seed


@in_place
def test_a_failure_that_nobody_catches_parks_the_run_and_its_retry_goes_on(in_place: bool) -> None:
    for seed in range(25):
        world = World(fan, seed, {"b1": 1, "b4": 1}, in_place=in_place).run()
        while not world.end:
            [*failed] = blocking_failures(world.state)
            assert world.state.parked
            assert all(world.state.graph.specs[node].summary in ("b1", "b4") for node in failed), (
                "the calls are to blame"
            )
            world.act(RetryRequested(failed[0], tuple(failed[1:])))
            world.run()
        assert world.end == "done"
        assert world.state.units[0].digest == World(fan).run().state.units[0].digest
        succeeded = world.state.units_in(SUCCEEDED)
        assert not set(succeeded) & set(world.state.notes), "what failed before is no error of what has a value"
        assert world.tried == Counter({f"b{number}": 1 for number in range(6)}) + Counter(["b1", "b4", "last"])


def test_an_advance_that_its_worker_could_not_make_is_retried_alone() -> None:
    state = begun()
    added(state, paged("main_1", key="a"), then(1))
    step(state, NodeEnded(1, 1, Outcome("v")))
    step(state, NodeEnded(0, 1, Outcome(error=("StoreUnavailable", "away"))))
    assert blocking_failures(state) == (0,)
    decisions = step(state, RetryRequested(0))
    assert [each.units for each in decisions if isinstance(each, Start)] == [(0,)]
    assert (advance_number(state, 0), state.units[0].generation) == (2, 2)
    step(state, NodeEnded(0, 2, Outcome("v")))
    assert (state.units[0].digest, state.ended) == ("v", True)


@pytest.mark.parametrize("kind", ["StoreUnavailable", "WorkerLost", "TooManyCalls"])
def test_an_edited_program_begins_again_also_if_its_worker_could_not_make_an_advance(kind: str) -> None:
    """From there on the script of before would go on, under the text of the new one."""
    state = begun()
    added(state, paged("main_1", key="a"), then(1))
    step(state, NodeEnded(1, 1, Outcome("v")))
    step(state, NodeEnded(0, 1, Outcome(error=(kind, "away"))))
    decisions = step(state, ProgramEdited(0, "q"))
    assert [each.units for each in decisions if isinstance(each, Start)] == [(0,)]
    assert (advance_number(state, 0), state.units[0].generation) == (1, 2)
    assert state.graph.specs[0].page == "q"
    assert list(state.sessions[0].left) == [1]


@pytest.mark.parametrize("end", ["skipped", "succeeded"])
def test_a_program_that_has_ended_runs_again_from_its_start(end: str) -> None:
    """Another node keeps the run open."""
    specs = [NodeSpec("main", "program"), NodeSpec("other", "tool")]
    state = RunState(Graph(ExecutionPlan(specs, [0])))
    step(state, RunStarted())
    added(state, paged("main_1", key="a"), then(2))
    step(state, NodeEnded(2, 1, Outcome("v")))
    error = None if end == "succeeded" else ("StoreUnavailable", "away")
    step(state, NodeEnded(0, 1, Outcome(None if error else "v", error=error)))
    step(state, SkipRequested(0))
    assert STATUS_NAMES[state.units[0].status] == end
    decisions = step(state, RetryRequested(0))
    assert [each.units for each in decisions if isinstance(each, Start)] == [(0,)]
    assert (advance_number(state, 0), state.units[0].generation) == (1, 2)
    assert list(state.sessions[0].left) == [2]


@in_place
def test_a_failure_that_is_caught_is_no_failure_of_the_run(in_place: bool) -> None:
    world = World(caught, fails={"x": 1}, in_place=in_place).run()
    assert (world.end, world.state.units[0].digest) == ("done", "['of instead', 'of y']")


@pytest.mark.parametrize(("effect", "status"), [("read", "cancelled"), ("write", "running")])
def test_a_call_that_a_program_does_not_wait_for_is_cancelled_unless_it_writes(effect: str, status: str) -> None:
    def script() -> Generator[Any, Any, Any]:
        yield "slow"
        return (yield (yield "fast"))

    world = World(script, holds="slow", effect=effect).run()
    slow = next(unit for unit, spec in enumerate(world.state.graph.specs) if spec.summary == "slow")
    assert STATUS_NAMES[world.state.units[slow].status] == status
    assert world.end == ("done" if effect == "read" else "")


@in_place
def test_a_person_skips_a_call_and_the_program_goes_on(in_place: bool) -> None:
    world = World(fan, fails={"b1": 1}, in_place=in_place).run()
    [failed] = blocking_failures(world.state)
    world.act(SkipRequested(failed))
    assert world.run().end == "done"


@in_place
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_person_gives_the_result_of_a_failed_call_and_the_program_goes_on(
    seed: int, crashes: bool, in_place: bool
) -> None:
    world = World(fan, seed, {"b1": 9, "b4": 9}, in_place=in_place).run()
    while not world.end:
        failed = blocking_failures(world.state)[0]
        name = world.state.graph.specs[failed].summary
        world.act(Answered(failed, f"by hand {name}"))
        if crashes:
            world.state = load(world.state.graph, dump(world.state))
        world.run()
    assert world.state.units[0].digest == str(
        [f"{'by hand' if n in (1, 4) else 'of'} b{n}" for n in range(6)] + ["of last"]
    )
    twice = {name for name, count in world.tried.items() if count > 1}
    assert twice <= ({"b1", "b4"} if in_place else set()), "only a step that runs again makes again what has failed"


@in_place
@pytest.mark.parametrize("event", [RetryRequested, lambda unit: Answered(unit, "of x")])
def test_a_caught_call_that_gets_another_end_takes_the_program_back_to_it(
    event: Callable[[int], Event], in_place: bool
) -> None:
    """The run is kept open by another call."""

    def script() -> Generator[Any, Any, Any]:
        result = yield from caught()
        last = yield "last"
        return [*result, (yield last)]

    world = World(script, fails={"x": 1, "last": 1}, in_place=in_place).run()
    failed = next(unit for unit, spec in enumerate(world.state.graph.specs) if spec.summary == "x")
    assert world.state.units[failed].status == FAILED
    assert is_passed(world.state, failed)
    assert not is_passed(world.state, blocking_failures(world.state)[-1]), "the program has ended by this one"
    world.act(event(failed))
    assert world.run().end == "done"
    assert world.state.units[0].digest == "['of x', 'of y', 'of last']"


@in_place
def test_a_waiting_program_goes_on_from_a_snapshot(in_place: bool) -> None:
    for seed in range(10):
        world = World(fan, seed, {"b2": 1}, in_place=in_place).run()
        assert world.state.parked
        graph = Graph(ExecutionPlan.unpack(world.state.graph.execution_plan.pack()))
        world.state = load(graph, dump(world.state))
        [failed] = blocking_failures(world.state)
        world.act(RetryRequested(failed))
        assert world.run().end == "done"


def test_nodes_are_appended_in_time_that_does_not_depend_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def long() -> Generator[Any, Any, Any]:
        for number in range(400):
            yield (yield f"a{number}")

    sorts = []

    def sort(graph: Graph) -> None:
        if not graph.is_sorted:
            sorts.append(len(graph.specs))
        plain(graph)

    plain = Graph.sort
    monkeypatch.setattr(Graph, "sort", sort)
    world = World(long).run()
    assert world.end == "done"
    assert len(world.state.units_in(SUCCEEDED)) == 400 + 1, "the program is one node"
    assert world.activities == 1 + 400, "each call's activity takes the step behind it along"
    assert len(sorts) < 5
    assert not world.state.units_in(RUNNING)


def test_a_call_is_noted_with_the_advance_that_waited_for_it_last() -> None:
    """So that a run with many open calls is not handed on with as many numbers as their square."""

    def wide() -> Generator[Any, Any, Any]:
        calls, found = [], []
        for number in range(40):
            calls += [(yield f"a{number}")]
        for call in calls:
            found += [(yield call)]
        return found

    world = World(wide, seed=1).run(20)
    session = world.state.sessions[0]
    assert session.number > 2
    past = [call for advance in session.advances for call in advance.past]
    assert sorted([*past, *session.waits]) == list(range(1, 41))
    assert world.run().end == "done"


def edited(wrong: str, right: str) -> Script:
    """A script of six calls, three at once and three in sequence; of those only the last but one may be wrong."""

    def script() -> Generator[Any, Any, Any]:
        found, calls = [], []
        for number in range(3):
            calls += [(yield f"b{number}")]
        for call in calls:
            found += [(yield call)]
        for name in ("first", wrong or right, "last"):
            found += [(yield (yield name))]
        return found

    return script


@in_place
def test_an_edited_program_makes_only_the_calls_that_changed(in_place: bool) -> None:
    for seed in range(25):
        world = World(edited("wrong", ""), seed, {"wrong": 99}, in_place=in_place).run()
        assert world.state.parked
        before = len(world.state.graph.specs)
        world.edit(edited("", "right")).run()
        assert world.end == "done"
        assert world.state.units[0].digest == World(edited("", "right")).run().state.units[0].digest
        assert set(world.tried.values()) == {1}
        calls = [spec.summary for spec in world.state.graph.specs if spec.kind == "tool"]
        assert sorted(calls) == ["b0", "b1", "b2", "first", "last", "right", "wrong"], "each call is one node"
        world.state = load(world.state.graph, dump(world.state))
        taken = [world.state.graph.specs[node].summary for node in world.state.taken_over]
        assert sorted(taken) == ["b0", "b1", "b2", "first"]
        assert len(world.state.graph.specs) > before


@in_place
@pytest.mark.parametrize("edits", [1, 2])
@pytest.mark.parametrize("moment", range(6))
def test_a_program_is_edited_at_any_moment(moment: int, edits: int, in_place: bool) -> None:
    """Nothing that both scripts call is called twice, also if it is under way; what only the old one calls is not
    waited for.
    """
    for seed in range(6):
        world = World(edited("", "old"), seed, in_place=in_place, holds="old" if in_place else "").run(moment)
        world.holds = ""
        for _ in range(edits):
            world.edit(edited("", "new"))
        assert world.run().end == "done"
        assert world.state.units[0].digest == World(edited("", "new")).run().state.units[0].digest
        assert set(world.tried.values()) == {1}
        assert not world.state.units_in(RUNNING)


def test_a_call_in_flight_that_an_edit_removes_is_cancelled() -> None:
    world = World(edited("", "old")).run(1)
    while "old" not in [world.state.graph.specs[flight[0][0]].summary for flight in world.flying]:
        world.run(1)
    [[(old, _), *_]] = world.flying
    world.flying.clear()  # it takes for ever
    assert world.edit(edited("", "new")).run().end == "done"
    assert world.state.units[old].status == CANCELLED


def test_an_edit_that_fails_can_be_edited_again() -> None:
    def broken() -> Generator[Any, Any, Any]:
        yield (yield "b0")
        raise Failed("by itself")

    world = World(edited("", "old")).run(5)
    assert world.edit(broken).run().state.parked
    assert world.edit(edited("", "new")).run().end == "done"
    assert world.tried["b0"] == 1


@pytest.mark.parametrize("reads", [0, 1])
def test_an_edit_that_fails_by_itself_gives_up_what_only_the_old_script_called(reads: int) -> None:
    """Nobody is asked any more what no script waits for, and the next edit still takes over what has ended."""

    def broken() -> Generator[Any, Any, Any]:
        for number in range(reads):
            yield (yield f"b{number}")
        raise LookupError("by itself")

    world = World(fan, holds="b5").run()
    old = next(unit for unit, spec in enumerate(world.state.graph.specs) if spec.summary == "b5")
    assert world.edit(broken).run().state.parked
    assert STATUS_NAMES[world.state.units[old].status] == "cancelled"
    assert len(blocking_failures(world.state)) == 1
    world.holds = ""
    assert world.edit(fan).run().end == "done"
    assert world.tried == Counter({f"b{number}": 1 for number in range(6)}) + Counter(["last"])


def test_a_call_that_was_taken_over_keeps_its_id_also_after_continuing_as_new() -> None:
    """Its activity, the pages of its tool loop and a sub-agent are called by it. The script has another name for it."""
    state = begun()
    added(state, paged("main_1", "llm", key="k", call_site="llm:3"), then(1))
    step(state, ProgramEdited(0, "p"))
    count = len(state.graph.specs)
    added(state, paged("main_r2_1", "llm", key="k", call_site="llm:5"), then(count))
    state = restored(state)
    spec = state.graph.specs[1]
    assert (spec.id, spec.page, spec.call_site) == ("main_1", "p", "llm:5")
    assert name_of(state, 0, 1) == "main_r2_1"
    assert unit_called(state, 0, "main_r2_1") == unit_called(state, 0, "main_1") == 1
    assert state.find("main_r2_1") is None


@pytest.mark.parametrize(
    ("on_error", "status"), [({"fallback": ("d", 1, {})}, "succeeded"), ({"skip_on_error": True}, "skipped")]
)
def test_a_program_that_fails_in_a_later_step_has_its_on_error(on_error: dict[str, Any], status: str) -> None:
    specs = [NodeSpec("main", "program", **on_error), NodeSpec("after", "tool", needs=[0])]
    state = RunState(Graph(ExecutionPlan(specs, [1])))
    step(state, RunStarted())
    added(state, paged("main_1", key="a"), then(2))
    step(state, NodeEnded(2, 1, Outcome(error=("Failed", "no"))))
    step(state, NodeEnded(0, 1, Outcome(error=(CALL_FAILED, "no"))))
    assert STATUS_NAMES[state.units[0].status] == status
    assert not state.parked
    if status == "succeeded":
        step(state, NodeEnded(1, 1, Outcome("v")))
        assert (state.units[0].digest, state.ended) == ("d", True)


def writes(name: str, **fields: Any) -> NodeSpec:
    return paged(name, effect="write", **fields)


def statuses(state: RunState) -> dict[str, str]:
    return {spec.id: STATUS_NAMES[state.units[unit].status] for unit, spec in enumerate(state.graph.specs)}


def ends(state: RunState, name: str, outcome: Outcome | None = None) -> None:
    step(state, NodeEnded(state.graph.by_id[name], 1, outcome or Outcome("v")))


def then(*waits: int) -> NodeSpec:
    """What a program waits for."""
    return paged("main_s2", "program", inputs=list(waits))


@pytest.mark.parametrize("way", ["called", "a ticket"])
def test_a_write_that_fails_after_the_end_of_its_program_waits_for_a_person(way: str) -> None:
    state = begun()
    waits = [1, 2] if way == "called" else [1]
    added(state, paged("read"), writes("note"), then(*waits))
    ends(state, "read")
    step(state, InputsRead(0))
    ends(state, "main")
    assert statuses(state)["note"] == "running"
    ends(state, "note", Outcome(error=("Broken", "disk full")))
    assert state.parked
    assert blocking_failures(state) == (2,)
    step(state, RetryRequested(2))
    step(state, NodeEnded(2, 2, Outcome("v")))
    assert set(statuses(state).values()) == {"succeeded"}
    assert not state.parked


def test_a_write_whose_failure_the_program_was_told_is_handled() -> None:
    state = begun()
    added(state, writes("note"), then(1))
    ends(state, "note", Outcome(error=("Broken", "disk full")))
    step(state, InputsRead(0))
    ends(state, "main")
    assert state.ended


def test_what_a_program_began_and_did_not_wait_for_is_cancelled_when_it_ends() -> None:
    """Its writes go on to their end."""
    state = begun()
    own = [paged("task", "task"), paged("read"), paged("slow"), writes("ticket")]
    added(state, *own, paged("asks", "gate", question="?"), then(2))
    ends(state, "read")
    assert (statuses(state)["asks"], statuses(state)["task"]) == ("waiting", "running")
    ends(state, "main")
    expected = {
        "main": "succeeded", "task": "cancelled", "read": "succeeded", "slow": "cancelled", "ticket": "running",
        "asks": "cancelled",
    }  # fmt: skip
    assert statuses(state) == expected
    ends(state, "ticket")
    assert state.ended


def test_a_program_that_goes_back_waits_again_for_what_it_had_given_up_since() -> None:
    """The failure was caught, and the script came to its end without the other call of its `gather`."""
    specs = [NodeSpec("main", "program"), NodeSpec("hold", "gate", needs=[0])]
    state = RunState(Graph(ExecutionPlan(specs, [1])))
    step(state, RunStarted())
    added(state, paged("main_1", key="a"), paged("main_2", key="b"), then(2, 3))
    step(state, NodeEnded(2, 1, Outcome(error=("ToolError", "no"))))
    step(state, NodeEnded(0, 1, Outcome("without both")))
    assert STATUS_NAMES[state.units[3].status] == "cancelled"
    step(state, RetryRequested(2))
    decisions = step(state, NodeEnded(2, 2, Outcome("v")))
    assert [each.units for each in decisions if isinstance(each, Start)] == [(0,), (3,)]
    assert state.sessions[0].last.told == (2,)
    step(state, added_nothing(state))
    step(state, NodeEnded(3, 2, Outcome("w")))
    assert state.sessions[0].last.told == (3,)


def added_nothing(state: RunState) -> ProgramAdvanced:
    """A program waits for what it has waited for before, but for what it was told."""
    return advanced(state, paged("main_s3", "program"), past=state.sessions[0].last.told)


def test_a_call_that_a_person_has_run_again_outlives_the_end_of_its_program() -> None:
    """The script was told of its first end, and comes to its own end meanwhile."""
    specs = [NodeSpec("main", "program"), NodeSpec("after", "tool", needs=[0])]
    state = RunState(Graph(ExecutionPlan(specs, [1])))
    step(state, RunStarted())
    added(state, paged("main_1", key="a"), paged("main_2", key="b"), then(2, 3))
    step(state, NodeEnded(2, 1, Outcome("v")))
    step(state, RetryRequested(2))
    step(state, NodeEnded(0, 1, Outcome("v of the first end")))
    assert (state.units[2].status, STATUS_NAMES[state.units[3].status]) == (RUNNING, "cancelled")
    step(state, NodeEnded(2, 2, Outcome("w")))
    assert (state.units[0].status, state.sessions[0].number) == (RUNNING, 1)
    assert 2 in state.sessions[0].last.told


def test_people_see_what_a_program_tells_of_its_tasks() -> None:
    """Nothing starts a task and nothing waits for it. When the program runs again, so do its tasks."""
    state = begun()
    added(state, paged("t1", "task", key="a"), paged("t2", "task", key="b"), paged("read", key="c"), then(3))
    assert [statuses(state)[name] for name in ("t1", "t2", "read")] == ["running"] * 3
    assert state.running == 2, "the call, and the program that goes on in its activity"
    ends(state, "read")
    failed = TaskNews("t2", "failed", 0, "ValueError: no")
    news = (TaskNews("t1", "succeeded", 0), failed, failed._replace(id="other"))
    ends(state, "main", Outcome(error=("ProgramFailed", "by itself"), tasks=news))
    assert [statuses(state)[name] for name in ("t1", "t2")] == ["succeeded", "failed"]
    assert state.notes[2] == ("ValueError", "no")
    assert [state.graph.specs[node].id for node in blocking_failures(state)] == ["main"]
    step(state, ProgramEdited(0, "q"))
    added(state, paged("main_r2_1", "task", key="a"), paged("main_r2_2", key="c"), then(5))
    assert STATUS_NAMES[state.units[1].status] == "running"
    restored_state = restored(state)
    assert STATUS_NAMES[restored_state.units[1].status] == "running"


def test_a_sleep_starts_when_its_time_has_come_also_after_an_edit_and_a_snapshot() -> None:
    state = begun()
    sleep = paged("main_1", key="k", deadline=60_000)
    added(state, sleep, then(1))
    assert (state.next_due(), state.parked, state.ended) == (60_000, False, False)
    step(state, ProgramEdited(0, "p"), 10_000)
    fresh = paged("main_r2_1", key="k", deadline=60_000)
    added(state, fresh, then(2))
    state = restored(state)
    assert state.next_due() == 60_000, "it is the same sleep"
    assert not any(isinstance(each, Start) for each in step(state, TimeAdvanced(), 59_999))
    [start] = [each for each in step(state, TimeAdvanced(), 60_000) if isinstance(each, Start)]
    assert start.units == (1,)
    assert start.following == 0, "the program goes on in the same activity"


def test_when_calls_ended_is_kept_through_an_edit_and_a_snapshot() -> None:
    state = begun()
    added(state, paged("main_1", key="a"), paged("main_2", key="b"), then(1, 2))
    step(state, NodeEnded(2, 1, Outcome("v")), 5_000)
    step(state, NodeEnded(1, 1, Outcome(error=("Broken", "no"))), 7_000)
    assert (state.units[2].ended_at, state.units[1].ended_at) == (5_000, 7_000)
    step(state, ProgramEdited(0, "p"), 9_000)
    state = restored(state)
    assert (state.units[2].ended_at, state.units[1].ended_at) == (5_000, 7_000)
    assert state.units[0].ended_at == 0, "when the program began for the first time"
    assert beginning(state, 0) == {"since": 9_000, "ends": {"main": 0}, "failed": ("a",)}
    state.last_end = 9_400  # by the clock of its worker
    assert beginning(state, 0)["since"] == 9_400, "what was told before is not after the edit"


def test_a_program_makes_short_calls_itself_again_when_it_has_taken_over_what_it_had_called() -> None:
    state = begun()
    added(state, paged("main_1", key="a"), paged("main_2", key="b"), then(1, 2))
    step(state, NodeEnded(1, 1, Outcome("v")))
    step(state, NodeEnded(2, 1, Outcome("v")))
    step(state, ProgramEdited(0, "p"))
    assert state.sessions[0].may_take_over
    added(state, paged("main_r2_1", key="a"), paged("main_r2_2", key="c"), then(4))
    state = restored(state)
    assert state.sessions[0].may_take_over, "the script may still make the other call"
    step(state, NodeEnded(4, 1, Outcome("v")))
    added(state, paged("main_r2_3", key="b"), then(2))
    assert not state.sessions[0].may_take_over


def test_a_program_that_runs_again_is_told_which_calls_had_failed_and_may_be_skipped() -> None:
    """Not those that may have written something, and not those that succeeded when they were made again."""
    state = begun()
    calls = [
        paged("main_1", key="a"),
        paged("main_2", key="b"),
        writes("main_3", key="c"),
        paged("main_4", "llm", key="d"),
    ]
    added(state, *calls, then(1, 2, 3, 4))
    for unit in (1, 3, 4):
        step(state, NodeEnded(unit, 1, Outcome(error=("ToolError", "no"))))
    step(state, NodeEnded(2, 1, Outcome("v")))
    step(state, ProgramEdited(0, "p"))
    assert beginning(state, 0)["failed"] == ("a", "d")
    added(state, paged("main_r2_1", key="a"), then(5))
    step(state, NodeEnded(5, 1, Outcome("v")))
    step(state, ProgramEdited(0, "p"))
    assert beginning(state, 0)["failed"] == ("d",)


def test_a_failed_call_of_a_script_that_was_replaced_blocks_nothing() -> None:
    """Neither while the new script runs, nor when a call of the new one fails. The calls of its tool loop neither."""
    state = begun()
    added(state, paged("main_1", "llm", key="a"), then(1))
    state.graph.go_on_with([paged("main_1_t1_1"), paged("main_1_t2", "llm")], 1)
    for unit in state.add_nodes(range(2, 4)):
        state.set_status(unit, FAILED)
        state.notes[unit] = ("ServerFailed", "500")
    step(state, NodeEnded(1, 1, Outcome(error=("ServerFailed", "500"))))
    step(state, NodeEnded(0, 1, Outcome(error=("CallFailed", "a"))))
    assert 1 in blocking_failures(state)
    step(state, ProgramEdited(0, "p2"))
    assert blocking_failures(state) == ()
    added(state, paged("main_r2_1", key="b"), then(4))
    step(state, NodeEnded(4, 1, Outcome(error=("ToolError", "no"))))
    step(state, NodeEnded(0, 2, Outcome(error=("CallFailed", "b"))))
    assert state.parked
    assert blocking_failures(state) == (4,)
    assert NEXT_TRY not in state.deadlines, "the server's failure is not what the run waits for"


def test_a_loop_that_wrote_in_a_later_turn_is_not_skipped() -> None:
    """Made again under another key it would write again: the ledger of effects knows its writes by the key."""
    state = begun()
    added(state, paged("main_1", "llm", key="a"), then(1))
    state.graph.go_on_with([paged("main_1_t2", "llm")], 1)
    state.graph.go_on_with([writes("main_1_t2_1", key=""), paged("main_1_t3", "llm")], 2)
    for unit in state.add_nodes(range(2, 5)):
        state.set_status(unit, SUCCEEDED)
    step(state, NodeEnded(1, 1, Outcome(error=("ServerFailed", "500"))))
    step(state, NodeEnded(0, 1, Outcome(error=("CallFailed", "a"))))
    step(state, ProgramEdited(0, "p2"))
    assert beginning(state, 0)["failed"] == ()


def test_what_a_program_is_told_later_ended_later_whatever_the_clocks_of_workers_say() -> None:
    """An edit tells what is taken over by these times: in the order in which the old script was told it."""
    state = begun()
    added(state, *(paged(f"main_{number}", key=str(number)) for number in (1, 2, 3)), then(1, 2, 3))
    step(state, NodeEnded(1, 1, Outcome("v", at=5_000)))
    step(state, InputsRead(0))
    added(state, paged("main_s3", "program", inputs=[2, 3]))
    step(state, NodeEnded(3, 1, Outcome("v", at=4_990)))
    step(state, NodeEnded(2, 1, Outcome("v", at=4_980)))
    step(state, InputsRead(0))
    assert [state.units[unit].ended_at for unit in (1, 2, 3)] == [5_000, 5_001, 5_002]


def test_the_order_of_ends_is_kept_across_an_advance_that_was_told_nothing() -> None:
    """Of a failure that ends the script it is told only when its tasks can go on no more: the advance waits for all."""
    state = begun()
    calls = [paged(f"main_{number}", key=str(number)) for number in (1, 2, 3)]
    step(state, advanced(state, *calls, then(1, 2, 3)), 1_000)
    step(state, NodeEnded(1, 1, Outcome("v", at=5_000)), 5_000)
    step(state, advanced(state, paged("main_s3", "program"), past=(1,)), 5_000)
    step(state, NodeEnded(2, 1, Outcome(error=("ToolError", "no"), at=6_000)), 6_000)
    step(state, advanced(state, paged("main_s4", "program"), past=()), 6_000)
    assert state.sessions[0].advances[2].told == ()
    step(state, NodeEnded(3, 1, Outcome("v", at=4_000)), 7_000)
    step(state, InputsRead(0))
    assert (state.units[3].ended_at or 0) > 5_000, "the clock of its worker is wrong"


def test_calls_that_a_step_has_made_ended_when_it_says_also_those_that_failed() -> None:
    """Also those that the next advance is told: a fork that takes them over hands them on in the same way."""
    state = begun()
    calls = [paged(f"main_{number}", key=str(number), in_place=True) for number in (1, 2)]
    replies = {
        "main_1": NodeReply(error=NodeError(type="Broken", message="no"), at=5_000),
        "main_2": NodeReply(ref="v", at=7_000),
    }
    ends = tuple((name, outcome_of(reply)) for name, reply in replies.items())
    step(state, advanced(state, *calls, then(1, 2), ends=ends), 9_000)
    assert [(state.units[unit].started, state.units[unit].ended_at) for unit in (1, 2)] == [
        (5_000, 5_000),
        (7_000, 7_000),
    ]
    step(state, InputsRead(0))
    assert [state.units[unit].ended_at for unit in (1, 2)] == [5_000, 7_000]


@pytest.mark.parametrize(("effect", "status"), [("read", "cancelled"), ("write", "running")])
def test_what_a_program_gives_up_is_cancelled_unless_it_writes_or_is_waited_for(effect: str, status: str) -> None:
    state = begun()
    calls = [paged(f"main_{number}", key=str(number), effect=effect) for number in (1, 2, 3)]
    added(state, *calls, then(1, 2, 3))
    step(state, NodeEnded(3, 1, Outcome("v")))
    added(state, paged("main_s3", "program"), past=(1, 3), given_up=("main_1", "main_2"))
    assert list(state.sessions[0].waits) == [2], "for the rest of what it waited for before"
    assert [STATUS_NAMES[state.units[unit].status] for unit in (1, 2)] == [status, "running"]


def test_a_program_of_an_earlier_version_fails_by_name_and_can_be_edited() -> None:
    """In that the steps of a script were nodes, each the successor of the one before."""
    call, older = paged("main_1", key="a"), paged("main_s2", "program", inputs=[1], is_successor=True)
    state = RunState(Graph(ExecutionPlan([NodeSpec("main", "program")], [0])))
    step(state, RunStarted())
    state.sessions.clear()
    state.append([call, older], 0)
    state.graph.specs[0].successor = 2
    state.running = 0
    for unit, status in enumerate((DELEGATED, FAILED, PENDING)):
        state.units[unit].status = status
    state = restored(state)
    assert blocking_failures(state) == (0,), "not what its script has called: the program is to be edited"
    assert state.notes[0][1].endswith("edit the program")
    [start] = [each for each in step(state, ProgramEdited(0, "p")) if isinstance(each, Start)]
    assert start.units == (0,)
    step(state, NodeEnded(0, state.units[0].generation, Outcome("v")))
    assert state.ended


def test_a_program_whose_session_an_earlier_version_has_noted_fails_by_name_and_can_be_edited() -> None:
    """That version knew the advances of a script by names of their own."""
    state = begun()
    added(state, paged("main_1", key="a"), paged("main_2", key="b"), then(1, 2))
    step(state, NodeEnded(1, 1, Outcome("v")))
    state.running, state.units[0].status = 0, DELEGATED
    body = unpack(dump(state), 1 << 20)
    body["sessions"] = [[program, *rows] for program, *rows in body.pop("programs")]
    state = load(Graph(ExecutionPlan.unpack(state.graph.execution_plan.pack())), pack(body))
    assert (STATUS_NAMES[state.units[0].status], state.notes[0][0]) == ("failed", PROGRAM_FAILED)
    assert state.notes[0][1].endswith("edit the program")
    [start] = [each for each in step(state, ProgramEdited(0, "p")) if isinstance(each, Start)]
    assert start.units == (0,)
    added(state, paged("main_r2_1", key="a"), then(1))
    assert state.taken_over == {1: True}, "what the program has called is still known"
    assert list(state.sessions[0].left) == [2]


def older(call: NodeSpec, status: Status) -> RunState:
    """Return a run of an earlier version: its script has made a call in its second step, which waits for it."""
    first, second = paged("main_s2", "program", is_successor=True), paged("main_s3", "program", is_successor=True)
    second.inputs = [2]
    state = RunState(Graph(ExecutionPlan([NodeSpec("main", "program")], [0])))
    step(state, RunStarted())
    state.sessions.clear()
    state.append([first], 0)
    state.append([call, second], 1)
    state.graph.specs[0].successor, state.graph.specs[1].successor = 1, 3
    state.running = 0
    for unit, its_status in enumerate((DELEGATED, DELEGATED, status, PENDING)):
        state.units[unit].status = its_status
    return state


def test_what_an_older_program_asks_is_given_up_when_its_new_script_does_not_call_it() -> None:
    """Its calls belong to its steps, of which there are none any more."""
    state = older(paged("main_1", "gate", key="a"), WAITING)
    state.waiting, state.questions[2] = 1, Question("Well?")
    state = restored(state)
    assert is_left_behind(state, 2)
    step(state, ProgramEdited(0, "p"))
    step(state, NodeEnded(0, state.units[0].generation, Outcome("v")))
    assert (STATUS_NAMES[state.units[2].status], state.waiting, state.ended) == ("cancelled", 0, True)


def test_a_call_of_an_older_program_that_ends_later_does_no_harm() -> None:
    state = restored(older(paged("main_1", key="a"), FAILED))
    [start] = [each for each in step(state, RetryRequested(2)) if isinstance(each, Start)]
    assert start.units == (2,)
    step(state, NodeEnded(2, state.units[2].generation, Outcome("v")))
    assert STATUS_NAMES[state.units[0].status] == "failed", "it waits for another script"


def test_an_older_program_that_was_edited_goes_on_as_new_like_any_other() -> None:
    state = restored(older(paged("main_1", key="a"), FAILED))
    step(state, ProgramEdited(0, "p"))
    added(state, paged("main_r2_1", key="b"), paged("main_r2_2", key="c"), then(4, 5))
    state = restored(state)
    assert state.units[0].status == DELEGATED
    assert list(state.sessions[0].waits) == [4, 5]
    step(state, NodeEnded(4, 1, Outcome("v")))
    step(state, NodeEnded(0, state.units[0].generation, Outcome("v")))
    assert state.ended
