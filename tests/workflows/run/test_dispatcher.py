"""What runs when a run has to continue as new is cut off, and starts again later."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.scheduling.state import RUNNING, RunState
from sennit.workflows.run.dispatcher import Dispatcher
from sennit.workflows.run.outcomes import InFlight
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
    state.status[0] = RUNNING
    dispatcher = Dispatcher(state, "run", "plan", lambda: None, SubagentStatus(lambda: None), tell=print)
    handle = asyncio.ensure_future(work())
    dispatcher._follow(InFlight((0,), (1,), handle))
    await asyncio.sleep(0)
    dispatcher.suspend()
    await asyncio.wait([handle])
    await asyncio.sleep(0)
    ((event, reply),) = dispatcher.settled()
    assert (event.outcome.again, event.outcome.attempts, event.outcome.usage, reply) == (True, 0, usage, None)
