"""Additions to a running plan, without a server: what is waited for, what is dropped, what fails the run."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.plan.play import Fields, Play, node, when
from temporalio.exceptions import ApplicationError

from sennit.workflows.limits import MAX_FACT_REFERENCES_BYTES
from sennit.workflows.messages.contracts import CheckResult, GroupReply, NodeReply, PlanPage, ProgramPage
from sennit.workflows.plan.compile.page import page_behind
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, RetryRequested, SkipRequested
from sennit.workflows.plan.scheduling.state import OVERTIME, RunState
from sennit.workflows.plan.scheduling.unit import FAILED, RUNNING
from sennit.workflows.run import engine as engines
from sennit.workflows.run import extension as extenders
from sennit.workflows.run.dispatcher import Dispatcher
from sennit.workflows.run.drain import Drain
from sennit.workflows.run.engine import Engine
from sennit.workflows.run.outcomes import NO_RESULT, InFlight
from sennit.workflows.run.subagent_status import SubagentStatus
from sennit.workflows.views.journal import Journal, Moment

REPLAN = NodeReply(ref="request", more="replan")
CALLS = NodeReply(ref="said", more="calls")
A = node("a", kind="llm")


class Checks:
    """The checks: they answer with `found` when `now` is set; `refs` are those it was given last."""

    run_prefix = "home"

    def __init__(self, *found: CheckResult | Exception) -> None:
        self.found = list(found)
        self.now = asyncio.Event()
        self.refs: list[dict[str, str]] = []
        self.asked: list[tuple[str, str]] = []

    async def check(self, *_: Any, draft: str, base: str, refs: Any = None, **__: Any) -> CheckResult:
        self.refs.append(refs or {})
        self.asked.append((draft, base))
        await self.now.wait()
        found = self.found.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no workflow: its clock stands still, and nothing is really started."""

    async def hold(condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0)

    monkeypatch.setattr(engines, "milliseconds", lambda: 0)
    monkeypatch.setattr(extenders, "workflow", SimpleNamespace(wait_condition=hold))
    monkeypatch.setattr(Drain, "update", lambda *_: None)
    for name in ("start", "start_waiting"):
        monkeypatch.setattr(Dispatcher, name, lambda *_, **__: None)


def whole(*nodes: Fields, answer: str = "a") -> CheckResult:
    return CheckResult(plan="p1", execution_plan=Play(*nodes, answer=answer).graph.execution_plan.pack())


def longer(
    *nodes: Fields,
    old: int,
    answer: str = "a",
    plan: str = "p1",
    base: str = "p0",
    facts: dict[str, dict[str, Any]] | None = None,
    **fields: Any,
) -> CheckResult:
    """The plan goes on with those of these nodes that are behind the `old` ones."""
    known, page = page_behind(Play(*nodes, answer=answer).graph.execution_plan, old)
    names = tuple(nodes[place]["id"] for place in known)
    found = PlanPage(plan=plan, base=base, known=names, specs=page.pack(), facts=facts or {})
    return CheckResult(page=found, **fields)


def begun(checks: Checks, *nodes: Fields, answer: str = "a") -> Engine:
    run = Play(*nodes, answer=answer)
    run.begin()
    journal = Journal(lambda: Moment(0, 0))
    engine = Engine(run.state, checks, SubagentStatus(print), "p0", lambda: None, journal)  # type: ignore[arg-type]
    engine.dispatcher.replans = 1
    return engine


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def statuses(state: RunState) -> dict[str, int]:
    return {state.path(unit): state.units[unit].status for unit in state.numbers()}


async def test_nothing_is_added_for_a_node_that_was_given_up_while_its_calls_were_checked() -> None:
    checks = Checks(longer(A, node("c"), node("b", kind="llm"), old=2))
    engine = begun(checks, A, node("c"))
    engine.extender.take(NodeEnded(0, 1, Outcome()), CALLS)
    await settle()
    engine.post(SkipRequested(0))
    checks.now.set()
    await settle()
    assert not engine.extender.busy
    assert list(statuses(engine.state)) == ["a", "c"]


JUNK = PlanPage(plan="p1", base="p0", specs="junk")
MORE = longer(A, node("c"), node("d"), old=2).page or JUNK


@pytest.mark.parametrize("reply", [CALLS, REPLAN])
@pytest.mark.parametrize(
    "checked",
    [
        CheckResult(),
        CheckResult(plan="p1", execution_plan="junk"),
        CheckResult(page=JUNK),
        CheckResult(page=MORE.model_copy(update={"known": ("nobody",)})),
        CheckResult(page=MORE.model_copy(update={"base": "another"})),
        longer(A, node("c"), old=1),
    ],
    ids=["nothing", "no plan", "no page", "of other nodes", "of another plan", "of a node that is there"],
)
async def test_a_check_that_somebody_completed_by_hand_fails_the_node(reply: NodeReply, checked: CheckResult) -> None:
    checks = Checks(checked)
    engine = begun(checks, A, node("c"))
    checks.now.set()
    engine.extender.take(NodeEnded(0, 1, Outcome()), reply)
    await settle()
    assert (statuses(engine.state)["a"], engine.state.notes[0]) == (FAILED, NO_RESULT)


async def test_an_addition_does_not_complete_a_plan_that_is_still_being_written() -> None:
    checks = Checks(longer(A, node("b"), old=1))
    engine = begun(checks, A)
    engine.state.streaming = True
    checks.now.set()
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    await settle()
    assert (list(statuses(engine.state)), engine.state.streaming) == (["a", "b"], True)


async def test_a_node_that_ran_again_meanwhile_may_add_in_its_turn() -> None:
    checks = Checks(*[longer(A, node("c"), node("b"), old=2)] * 2)
    engine = begun(checks, A, node("c"))
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    await settle()
    engine.post(SkipRequested(0))
    engine.post(RetryRequested(0))
    engine.extender.take(NodeEnded(0, 2, Outcome()), REPLAN)
    checks.now.set()
    await settle()
    assert not engine.extender.busy
    assert list(statuses(engine.state)) == ["a", "c", "b"]
    assert engine.state.units[0].digest == "request"


async def test_what_nobody_expected_ends_the_run() -> None:
    checks = Checks(RuntimeError("boom"))
    engine = begun(checks, A)
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    checks.now.set()
    await settle()
    assert engine.status == "failed"
    with pytest.raises(RuntimeError, match="boom"):
        await engine.run()


async def test_a_request_for_more_nodes_may_test_itself() -> None:
    checks = Checks(longer(A, node("b", **when("a.count")), old=1, facts={"a": {"count": None}}))
    engine = begun(checks, A)
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    checks.now.set()
    await settle()
    assert checks.refs == [{"a": "request"}]
    assert engine.state.units[0].facts == {"count": None}


async def test_a_replan_is_given_only_the_outputs_whose_facts_it_asks_for() -> None:
    """The outputs of all that has ended would be more than a payload holds: manifests of joins are long."""
    wished = node("b", **when("c.count"))
    checks = Checks(
        longer(A, node("c"), node("d"), wished, old=3, awaits=("c",)),
        longer(A, node("c"), node("d"), wished, old=3, facts={"c": {"count": 1}}),
    )
    engine = begun(checks, A, node("c"), node("d"))
    for unit, digest in ((1, "of-c"), (2, "of-d")):
        engine.post(NodeEnded(unit, 1, Outcome(digest)))
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    checks.now.set()
    await settle()
    assert checks.refs == [{"a": "request"}, {"a": "request", "c": "of-c"}]
    assert list(statuses(engine.state)) == ["a", "c", "d", "b"]


async def test_a_replan_that_asks_for_more_than_a_payload_holds_is_refused() -> None:
    wide = "x" * (MAX_FACT_REFERENCES_BYTES // 2)
    wished = node("e", **when("c.count"))
    checks = Checks(longer(A, node("c"), node("d"), wished, old=3, awaits=("c", "d")))
    engine = begun(checks, A, node("c"), node("d"))
    for unit in (1, 2):
        engine.post(NodeEnded(unit, 1, Outcome(wide)))
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    checks.now.set()
    await settle()
    assert list(statuses(engine.state)) == ["a", "c", "d"]
    assert engine.state.units[0].objections == ("it tests the outputs of too many nodes at once: 3",)


async def test_only_what_runs_is_waited_for() -> None:
    """A node that starts later is asked for its facts then; one behind a failure would never come."""
    checks = Checks(longer(A, node("f"), node("later", "f"), node("b"), old=3, awaits=("later",)))
    engine = begun(checks, A, node("f"), node("later", "f"))
    engine.post(NodeEnded(1, 1, Outcome(error=("Boom", "it broke"))))
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    checks.now.set()
    await settle()
    assert not engine.extender.busy


async def test_a_request_that_waits_for_a_loop_lets_the_loop_go_on() -> None:
    """The call of the loop is added while the request waits, which is checked against the plan with that call."""
    loop = node("f", kind="llm"), node("f_t2", kind="llm")
    wished = node("b", **when("f.count"))
    checks = Checks(
        longer(A, node("f", kind="llm"), wished, old=2, awaits=("f",)),
        longer(A, *loop, old=2, plan="p2"),
        longer(A, *loop, wished, old=3, plan="p3", base="p2", facts={"f": {"count": 1}}),
    )
    engine = begun(checks, A, node("f", kind="llm"))
    checks.now.set()
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    await settle()
    assert checks.asked == [("request", "p0")], "it waits for the end of f"
    engine.extender.take(NodeEnded(1, 1, Outcome()), CALLS)
    await settle()
    assert not engine.extender.busy
    assert checks.asked == [("request", "p0"), ("said", "p0"), ("request", "p2")]
    assert list(statuses(engine.state)) == ["a", "f", "f_t2", "b"]
    assert engine.dispatcher.plan == "p3"


async def test_a_plan_in_the_place_of_its_beginning_keeps_the_time_limit() -> None:
    engine = begun(Checks(), A)
    engine.state.deadlines[OVERTIME] = 5_000
    engine.replace_plan(whole(A))
    assert engine.state.deadlines == {OVERTIME: 5_000}


def fly(engine: Engine, *units: int) -> asyncio.Future[GroupReply]:
    """Put an activity of these units in flight; the test ends it."""
    handle: asyncio.Future[GroupReply] = asyncio.get_running_loop().create_future()
    generations = tuple(engine.state.units[unit].generation for unit in units)
    engine.dispatcher._follow(InFlight(units, generations, handle))  # type: ignore[arg-type]
    return handle


async def test_another_plan_starts_over_and_counts_what_the_first_has_spent() -> None:
    """What ended just before is paid for; late ends of what was cut off are nobody's."""
    engine = begun(Checks(), *(node(name) for name in "abcde"))
    a, b, group = fly(engine, 0), fly(engine, 1), fly(engine, 2, 3)
    a.set_result(GroupReply(nodes=(NodeReply(ref="A", usage=Usage(1, 2, 3, 1)),)))
    await settle()
    engine.replace_plan(whole(node("x"), node("a"), answer="x"))
    assert [b.cancelled(), group.cancelled()] == [True, True]
    await settle()
    engine._turn()
    assert engine.state.units_in(RUNNING) == [0, 1]
    assert (engine.usage, engine.dispatcher.epoch) == (Usage(1, 2, 3, 1), 2)
    assert [reply and reply.ref for reply in engine.wasted] == ["A", None, None, None, None]
    engine._note(0, NodeReply(ref="A"))
    assert engine.wasted == [None] * 4, "a node of this plan has found the same output"


async def test_a_request_that_names_a_node_as_a_program_has_named_a_call_goes_back_to_its_model() -> None:
    checks = Checks(longer(A, node("c"), node("b"), old=2))
    engine = begun(checks, A, node("c", kind="program"))
    call = Play(node("b", kind="llm")).graph.execution_plan
    page = ProgramPage(plan="p2", specs=call.pack(), session="s2")
    engine._go_on(page, NodeEnded(1, 1, Outcome("session", delegated=True)))
    checks.now.set()
    engine.extender.take(NodeEnded(0, 1, Outcome()), REPLAN)
    await settle()
    assert engine.state.units[0].objections == ("`b` is a call of a program already; use another id",)
    assert (engine.dispatcher.plan, engine.state.graph.specs[2].page) == ("p0", "p2")


UNKNOWN: list[dict[str, Any]] = [
    {"known": ("nobody",)}, {"facts": {"nobody": {}}}, {"fallbacks": {"nobody": {}}}, {"facts": {"x": {"length": 2}}},
]  # fmt: skip


@pytest.mark.parametrize("named", UNKNOWN)
async def test_a_page_that_names_a_node_that_the_run_has_not_fails_the_node(named: dict[str, Any]) -> None:
    found = longer(A, node("c"), node("b", kind="llm"), old=2).page
    assert found is not None
    checks = Checks(CheckResult(page=found.model_copy(update=named)))
    engine = begun(checks, A, node("c"))
    checks.now.set()
    engine.extender.take(NodeEnded(0, 1, Outcome()), CALLS)
    await settle()
    assert engine.state.notes[0] == NO_RESULT
    assert list(statuses(engine.state)) == ["a", "c"]


async def test_a_verdict_that_waits_for_a_node_that_the_run_has_not_fails_the_node() -> None:
    checks = Checks(CheckResult(awaits=("nobody",)))
    engine = begun(checks, A)
    checks.now.set()
    engine.extender.take(NodeEnded(0, 1, Outcome()), CALLS)
    await settle()
    assert engine.state.notes[0][0] == "InvalidResult"
    assert not engine.state.ended


@pytest.mark.parametrize("named", [{"facts": {"nobody": {}}}, {"fallbacks": {"nobody": {}}}])
def test_a_part_of_a_plan_that_names_a_node_that_the_run_has_not_is_none(named: dict[str, Any]) -> None:
    found = longer(A, node("c"), node("b", kind="llm"), old=2).page
    assert found is not None
    with pytest.raises(ApplicationError, match="not its result"):
        begun(Checks(), A, node("c")).append(found.model_copy(update=named), more=True)
