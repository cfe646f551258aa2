"""Sub-agents: child runs with some of the tools, a part of the budget, and an end of their own."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.runs import call
from doubles.serving import remembered_or_not
from temporalio.client import Client, WorkflowHandle

pytestmark = [pytest.mark.server, remembered_or_not]
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


def agent(goal: str = "How long is the Nile?", **fields: Any) -> dict[str, Any]:
    return {"id": "sub", "kind": "agent", "goal": goal, **fields}


async def test_a_sub_agent_answers_for_its_node(client: Client, start: Start) -> None:
    nodes = [
        call("river", args={"value": "Nile"}),
        agent("How long is the ${river.value}?"),
        call("last", needs=["sub"]),
    ]
    handle = await start(plan={"nodes": nodes, "answer": "$sub"})
    report = await handle.result()
    assert "6,650" in report["answer"]
    assert report["usage"]["calls"] > 1, "the child's model calls count"
    child = client.get_workflow_handle(f"{handle.id}.sub")
    told = await child.result()
    assert told["status"] == "done"
    assert (await child.describe()).parent_id == handle.id


async def test_it_may_use_only_the_tools_it_is_given(start: Start) -> None:
    handle = await start(plan={"nodes": [agent(tools=["calculate"])], "answer": "$sub"}, on_failure="partial")
    report = await handle.result()
    assert report["nodes"][0]["status"] == "failed"
    assert report["answer"] is None


async def test_an_unknown_tool_of_a_sub_agent_is_a_problem_of_the_plan(start: Start) -> None:
    handle = await start(plan={"nodes": [agent(tools=["serach"])], "answer": "$sub"})
    with pytest.raises(Exception, match="failed") as caught:
        await handle.result()
    assert "there is no tool `serach`; did you mean `search`?" in str(caught.value.__cause__)


async def test_sub_agents_end_somewhere(start: Start) -> None:
    handle = await start(plan={"nodes": [agent()], "answer": "$sub"}, depth=3, on_failure="partial")
    report = await handle.result()
    assert "TooDeep" in report["nodes"][0]["error"]
