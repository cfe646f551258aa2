"""Calls that are made early end in any way: with an output, by a lost worker, by hand."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from sennit.workflows.messages.contracts import AskedCall, NodeReply, PrefetchReply
from sennit.workflows.messages.node_calls import NodeCall, PrefetchCall
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.events import Event, NodeEnded, Outcome, RunStarted
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.speculation.follower import EarlyTool, Follower, PastSpeculation, Speculation
from sennit.workflows.run.speculation import EarlyCalls

DIGEST = "0" * 40
REAL = 2
"""The call that the model asks for."""


class Run:
    """A run whose early activities a test ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, chain: int = 1, then: str = "save") -> None:
        self.sent: list[PrefetchCall] = []
        self.handles: list[asyncio.Future[Any]] = []
        self.ended: list[int] = []
        monkeypatch.setattr(workflow, "info", lambda: SimpleNamespace(run_id="chain"))
        monkeypatch.setattr(workflow, "start_activity", self.start)
        look = NodeSpec("look", "tool", tool="look", effect="read")
        model = NodeSpec("m", "llm", needs=[0], reads=[0])
        real = NodeSpec("real", "tool", needs=[1], tool=then, effect="read")
        reader = NodeSpec("n", "llm", needs=[2], reads=[2])
        self.state = RunState(Graph(ExecutionPlan([look, model, real, reader], [3])), timings=Timings("off"))
        known: dict[str, Any] = {"millis": 500, "queue": "q", "timeout": 1_000, "fresh_for": 1_000}
        followers = []
        for place, (first, second) in enumerate((("look", "fetch"), ("fetch", "quote"))):
            pair = {"first": first, "second": second, "place": place, "probability": 1}
            followers.append(Follower.model_validate({**pair, **known}))
        tools = (EarlyTool(name="fetch", **known),)
        speculation = Speculation(patterns=DIGEST, followers=tuple(followers), tools=tools, chain=chain)
        self.early = EarlyCalls(speculation, self.state, self.ended.append)
        self.take(RunStarted())
        self.take(NodeEnded(0, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST))

    def start(self, name: str, call: PrefetchCall, *, activity_id: str, **options: Any) -> asyncio.Future[Any]:
        assert (name, activity_id) == ("prefetch", f"run:early~{len(self.sent) + 1}")
        assert options["retry_policy"].maximum_attempts == 1
        self.sent.append(call)
        self.handles.append(asyncio.get_running_loop().create_future())
        return self.handles[-1]

    def take(self, event: Event, reply: NodeReply | None = None) -> None:
        self.early.before(event)
        self.early.after(event, reply, step(self.state, event, self.state.now))
        self.carry_out()

    def carry_out(self) -> None:
        self.early.carry_out(lambda unit: NodeCall(run="run", plan="plan", nodes=(self.state.path(unit),)))

    async def ask_and_follow(self) -> None:
        """Have the model ask for a call in a reply that still comes, and go on behind that once it has ended."""
        asked = AskedCall(node="m", generation=1, tool="fetch", arguments="1" * 40)
        self.early.asked((asked,), self.state.now)
        self.carry_out()
        self.handles[1].set_result(PrefetchReply())
        await asyncio.sleep(0)
        self.early.take_end(2)
        self.early.follow(2)
        self.carry_out()

    def asked_for(self) -> int:
        """Add the call that a model asks for, and return its unit."""
        return self.state.append([NodeSpec("asked", "tool", tool="fetch", effect="read")])[0]


@pytest.fixture
async def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch)


async def test_an_activity_is_given_what_the_call_before_has_returned(run: Run) -> None:
    [sent] = run.sent
    assert (sent.name, sent.tool, sent.patterns, sent.usual) == ("chain/1", "fetch", DIGEST, 500)
    assert sent.fresh_for == 1_000
    assert sent.refs == {"look": DIGEST}


async def test_behind_an_early_call_the_next_one_of_the_patterns_is_told_what_it_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch, chain=3)
    await run.ask_and_follow()
    [_, _, sent] = run.sent
    assert (sent.name, sent.tool, sent.first, sent.place) == ("chain/3", "quote", "chain/2", 1)
    assert sent.refs == {}, "the output of the early call is found by its name"


async def test_behind_a_real_call_that_took_over_an_early_one_nothing_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch, chain=3, then="fetch")
    await run.ask_and_follow()
    assert run.early.offer(REAL) == ("chain/1", "chain/2")
    run.take(NodeEnded(1, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST))
    run.take(NodeEnded(REAL, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST, early="chain/2", millis=500, span=(10, 30)))
    assert [sent.tool for sent in run.sent] == ["fetch", "fetch", "quote"]


async def test_the_same_call_is_not_made_early_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker that makes the second one looks whether it is the same."""
    run = Run(monkeypatch, then="look")
    run.take(NodeEnded(1, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST))
    run.take(NodeEnded(REAL, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST))
    assert [sent.alike for sent in run.sent] == [(), ("chain/1",)]


async def test_a_call_under_way_is_offered_and_counts_once_it_was_used(run: Run) -> None:
    unit = run.asked_for()
    assert run.early.offer(unit) == ("chain/1",)
    run.take(NodeEnded(unit, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST, early="chain/1", millis=500, span=(10, 30)))
    figures = run.early.figures
    assert figures is not None
    assert (figures.hits, figures.missed, figures.saved_ms) == (1, 0, 480)
    assert run.early.took == {unit: 500}


async def test_a_real_call_that_was_another_is_a_miss(run: Run) -> None:
    unit = run.asked_for()
    run.early.offer(unit)
    run.take(NodeEnded(unit, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST))
    figures = run.early.figures
    assert figures is not None
    assert (figures.hits, figures.missed, figures.wasted) == (0, 1, 1)


@pytest.mark.parametrize("end", ["failed", "cancelled", "by hand", "with a problem"])
async def test_a_call_that_gives_nothing_is_not_offered(run: Run, end: str) -> None:
    """The worker was killed, the run has cancelled it, or somebody has completed it with something else."""
    [handle] = run.handles
    if end == "failed":
        handle.set_exception(ApplicationError("heartbeat timeout"))
    elif end == "cancelled":
        handle.cancel()
    else:
        handle.set_result(PrefetchReply(problem="no") if end == "with a problem" else {"not": "a reply"})
    await asyncio.sleep(0)
    assert run.ended == [1]
    assert run.early.take_end(1) == Usage()
    assert run.early.offer(run.asked_for()) == ()


async def test_what_a_call_has_used_is_told_once(run: Run) -> None:
    run.handles[0].set_result(PrefetchReply(usage=Usage(5, 0)))
    await asyncio.sleep(0)
    assert run.early.take_end(1) == Usage(5, 0)


async def test_after_a_reset_nothing_is_offered(run: Run) -> None:
    run.early.reset()
    assert run.early.offer(run.asked_for()) == ()


async def test_a_run_that_was_reset_counts_as_the_run_did_that_it_goes_on_from(run: Run) -> None:
    """A reset gives the run another run id, and not the replies that it replays: they name calls as before. The place
    of a call that was used while it ran is free in both, so that both begin the same calls.
    """
    unit = run.asked_for()
    run.early.offer(unit)
    run.take(NodeEnded(unit, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST, early="before-the-reset/1"))
    assert run.early.figures is not None
    assert run.early.figures.hits == 1
    assert run.early.offer(run.asked_for()) == ()


@pytest.mark.parametrize("name", ["chain/9", "chain/x", "", "chain"])
async def test_a_name_that_is_none_of_the_run_is_no_hit(run: Run, name: str) -> None:
    unit = run.asked_for()
    run.early.offer(unit)
    run.take(NodeEnded(unit, 1, Outcome(DIGEST)), NodeReply(ref=DIGEST, early=name))
    figures = run.early.figures
    assert figures is not None
    assert figures.hits == 0


async def test_a_run_that_goes_on_as_another_counts_on(run: Run) -> None:
    figures, past = run.early.figures, run.early.past
    following = EarlyCalls(run.early.speculation, run.state, run.ended.append)
    following.go_on(PastSpeculation.model_validate_json(past.model_dump_json(exclude_defaults=True)))
    assert following.figures == figures
    assert following.past == past
