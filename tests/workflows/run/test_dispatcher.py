"""What is cut off so that a run can continue as new starts again later; what activities tell before they end."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from sennit.workflows.messages.contracts import GroupProgress, NodeError, NodeReply
from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import RUNNING
from sennit.workflows.run.dispatcher import Dispatcher
from sennit.workflows.run.outcomes import START_AGAIN, EarlyEnded, InFlight, outcome_of
from sennit.workflows.run.subagent_status import SubagentStatus


async def never() -> Any:
    await asyncio.Event().wait()


async def fails() -> Any:
    try:
        await never()
    except asyncio.CancelledError:
        raise ApplicationError("refused", 1, [7, 0, 0, 1], type="ServerFailed") from None


@pytest.mark.parametrize(
    ("kind", "work", "usage"),
    [
        pytest.param("llm", never, None, id="nobody knows what a model call has used that was cut off"),
        pytest.param("llm", fails, Usage(7, calls=1), id="a model call that failed has said it"),
        pytest.param("tool", never, NO_USAGE, id="a tool uses nothing"),
        pytest.param("agent", never, NO_USAGE, id="a sub-agent's next run counts what this one has used"),
    ],
)
async def test_a_suspended_call_starts_again_and_is_charged(kind: Any, work: Any, usage: Usage | None) -> None:
    state = RunState(Graph(ExecutionPlan([NodeSpec("n", kind)], [], "park")))
    state.set_status(0, RUNNING)
    dispatcher = Dispatcher(state, "run", "plan", lambda: None, SubagentStatus(lambda: None), tell=lambda _: True)
    handle = asyncio.ensure_future(work())
    dispatcher._follow(InFlight((0,), (1,), handle))
    await asyncio.sleep(0)
    dispatcher.suspend()
    await asyncio.wait([handle])
    await asyncio.sleep(0)
    [end] = dispatcher.settled()
    assert not isinstance(end, EarlyEnded)
    event, reply = end
    assert (event.outcome.again, event.outcome.attempts, event.outcome.usage) == (True, 0, usage)
    assert reply == (NodeReply(usage=usage) if any(usage or ()) else None), "it counts as the run's usage"


def test_a_plan_in_the_place_of_another_knows_no_end_as_moved() -> None:
    """Its nodes have numbers of their own."""
    state = RunState(Graph(ExecutionPlan([NodeSpec("n", "tool")], [], "park")))
    dispatcher = Dispatcher(state, "run", "plan", lambda: None, SubagentStatus(lambda: None), tell=lambda _: True)
    dispatcher._moved.add(0)
    assert dispatcher.successor("other")._moved == set()


def told(attempt: int, *places: int, ref: str = "1" * 40) -> GroupProgress:
    replies = tuple(NodeReply(ref=ref) for _ in places)
    return GroupProgress(call="c", attempt=attempt, places=places, replies=replies)


async def test_each_unit_of_an_activity_ends_once_when_it_is_told_or_else_with_the_result() -> None:
    flight = InFlight((0, 1, 2, 3), (1, 1, 2, 1), asyncio.ensure_future(never()), call="c")
    assert [event.unit for event, _ in flight.tell(told(1, 0))] == [0]
    assert [event.unit for event, _ in flight.tell(told(2, 0, 2))] == [2]
    assert list(flight.tell(told(1, 3))) == []  # the worker of that attempt was lost
    again = NodeReply(error=NodeError(type="ToolFailed", message="not yet", again=True))
    (event, _), = flight.tell(GroupProgress(call="c", attempt=2, places=(1,), replies=(again,)))  # fmt: skip
    assert event.outcome.again
    result = [outcome_of(NodeReply(ref=sign * 40)) for sign in "1234"]
    ends = [(event.unit, event.generation) for event, _ in flight.ends([(end, None) for end in result])]
    assert ends == [(3, 1)], "another end of a unit that was told of counts for nothing"
    assert [event.unit for event, _ in flight.ends([(START_AGAIN, None)] * 4)] == [3]
    flight.handle.cancel()
