"""What sub-agents wait for, view_of_root by the runs above them, on a real server."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from doubles.events import failed_tasks, kinds
from doubles.local_workers import remembered_or_not, serving
from doubles.resets import reset, scheduled
from doubles.runs import View, board, call, insist, until
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner

from sennit.activities.definitions import Activities
from sennit.activities.nodes.effect_ledger import arguments_digest
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.testing.models import ModelServer
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages import queues
from sennit.workflows.run import drain

Handle = WorkflowHandle[Any, Any]
Start = Callable[..., Awaitable[Handle]]
PLANNER, JOINER = "You plan work", "You put results together"
SIGNALED = "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED"


def agent(name: str = "sub", goal: str = "Write.", **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "agent", "goal": goal, **fields}


def gate(name: str = "g", **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "gate", "question": "Which one?", **fields}


def plan(*nodes: dict[str, Any], answer: Any = "$g") -> str:
    return json.dumps({"nodes": nodes, "answer": answer})


def asked(view: View) -> list[str]:
    return [item["node"] for item in view["blocked"]]


async def check_lists(handle: Handle, status: str, blocked: str | None) -> None:
    """Wait until lists tell this of a run: a query may see more than its last task has written."""
    async with asyncio.timeout(100):
        while True:
            found = {key.name: value for key, value in (await handle.describe()).typed_search_attributes}
            if (found.get("SennitStatus"), found.get("SennitBlockedOn")) == (status, blocked):
                return
            await asyncio.sleep(0.05)


@remembered_or_not
async def test_a_question_below_is_shown_above_until_it_is_settled(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    model_server.on(PLANNER, '1. note(text="x")\n2. nap(seconds=3, value=$1)\n3. answer($1, $2)')
    model_server.on(JOINER, "Written.")
    handle = await begin(plan={"nodes": [agent()], "answer": "$sub"})
    child = f"{handle.id}.sub"
    view = await until(handle, lambda view: view["status"] == "blocked")
    [item] = view["blocked"]
    assert (item["node"], item["why"], item["update"], item["run"]) == ("sub.n1", "approval", "approve", child)
    digest = arguments_digest("note", {"text": "x"})[:20]
    assert (item["example"], item["shown"]) == ({"node": "n1", "digest": digest}, 'text: "x"')
    assert item["command"] == f"sennit approve {child} n1 --digest {digest}"
    assert view["nodes"][0]["preview"] == f"run {child} waits for a person"
    await check_lists(handle, "blocked", "approval sub.n1")
    drawn = await board(handle)
    assert "sub.n1 needs approval" in drawn
    assert "its sub-agent waits" in drawn
    assert f"`{item['command']}`" in drawn
    await client.get_workflow_handle(child).execute_update("approve", item["example"])
    await until(handle, lambda view: (view["status"], view["blocked"]) == ("running", []))
    await check_lists(handle, "running", None)
    assert "waits" not in await board(handle)
    assert (await handle.result())["answer"] == "Written."
    assert (await kinds(handle))[SIGNALED] == 2


async def test_a_question_is_passed_on_to_the_root_and_settled_from_there(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    model_server.on(f"{PLANNER}.*Outer", plan(agent("in", "Inner."), answer="$in"))
    model_server.on(f"{PLANNER}.*Inner", plan(gate()))
    nodes = [agent(goal="Outer."), call("beside", "hang", args={"name": "beside"})]
    handle = await begin(plan={"nodes": nodes, "answer": "$sub"}, tenant="acme", max_replans=5)
    inner = f"{handle.id}.sub.in"
    view = await until(handle, lambda view: view["blocked"])
    assert view["status"] == "running", "something beside it goes on"
    await handle.execute_update("skip_node", {"node": "beside"})
    run = await Sennit(client, local_server("127.0.0.1:1", None)).find(handle.id)
    async with aclosing(run.watch()) as views:
        view_of_root = await anext(view_of_root async for view_of_root in views if view_of_root.status == "blocked")
    [item] = view_of_root.blocked
    assert (item.node, item.command) == ("sub.in.g", f"sennit answer {inner} g yes")
    await run.update("answer", node="sub.in.g", value="Nile")
    assert (await handle.result())["answer"] == "Nile"
    for child in (f"{handle.id}.sub", inner):
        history = await client.get_workflow_handle(child).fetch_history()
        began = history.events[0].workflow_execution_started_event_attributes
        given = json.loads(began.input.payloads[0].data)
        assert (given["tenant"], given["max_replans"]) == ("acme", 5)


async def test_the_board_shows_that_the_last_of_many_waits(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, plan(gate()))
    names = [f"sub{number}" for number in range(7)]
    handle = await begin(plan={"nodes": [agent(name) for name in names], "answer": [f"${name}" for name in names]})
    view = await until(handle, lambda view: view["status"] == "blocked")
    assert asked(view) == [f"{name}.g" for name in names]
    drawn = await board(handle)
    assert "**blocked**" in drawn
    assert "and 1 more: the query `plan` lists them all" in drawn
    await check_lists(handle, "blocked", "gate sub0.g and 6 more")
    assert (await handle.query("node", {"node": "sub6"}))["preview"] == f"run {handle.id}.sub6 waits for a person"


async def test_only_its_own_sub_agents_are_heard(begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, plan(gate()))
    nodes = [agent(), call("beside", args={"seconds": 20})]
    handle = await begin(plan={"nodes": nodes, "answer": "$sub"})
    view = await until(handle, lambda view: asked(view) == ["sub.g"])
    item = view["blocked"][0] | {"node": "x"}
    report = {"name": "sub", "run": "another", "is_blocked": True, "blocked": [item]}
    strays: list[Any] = [
        None,
        [],
        "sub",
        {},
        {**report, "blocked": [1]},
        {**report, "blocked": [item] * 21},
        {**report, "more": 1},
    ]
    strays += [{**report, "name": name} for name in ("sub~2", "beside", "nobody", "", "g~", "sub[0]")]
    for stray in strays:
        await handle.signal("subagent_status", stray)
    await handle.signal("subagent_status", args=[report, report])
    assert (await handle.query("plan"))["blocked"] == view["blocked"]
    await handle.signal("subagent_status", report)
    view = await until(handle, lambda view: asked(view) == [])
    assert await failed_tasks(handle) == []


async def test_one_that_continues_as_new_says_nothing_twice(
    client: Client, begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (42, *drain.SOFT_BOUNDS[1:]))
    steps = [call(f"n{i}", args={"value": f"$n{i - 1}.value" if i else "end"}) for i in range(12)]
    model_server.on(
        PLANNER,
        plan(gate(), *steps, answer=["$g", "$n11.value"]),
    )
    handle = await begin(plan={"nodes": [agent()], "answer": "$sub"})
    await until(handle, lambda view: view["status"] == "blocked")
    child = client.get_workflow_handle(f"{handle.id}.sub")
    began = await anext(child.fetch_history_events())
    assert began.workflow_execution_started_event_attributes.continued_execution_run_id
    assert (await kinds(handle))[SIGNALED] == 2, "when the gate opened, and when nothing else went on"
    await insist(child, "answer", {"node": "g", "value": "yes"})
    assert (await handle.result())["answer"] == ["yes", "end"]
    assert (await kinds(handle))[SIGNALED] == 3


async def test_a_reset_parent_still_shows_it(client: Client, begin: Start, model_server: ModelServer) -> None:
    model_server.on(PLANNER, plan(gate()))
    handle = await begin(plan={"nodes": [agent()], "answer": "$sub"})
    await until(handle, lambda view: view["status"] == "blocked")
    await reset(client, handle, lambda event: event.HasField("workflow_execution_signaled_event_attributes"))
    again = client.get_workflow_handle(handle.id)
    view = await until(again, lambda view: view["status"] == "blocked")
    assert (view["run_id"] != handle.result_run_id, asked(view)) == (True, ["sub.g"])
    await insist(client.get_workflow_handle(f"{handle.id}.sub"), "answer", {"node": "g", "value": "yes"})
    assert (await again.result())["answer"] == "yes"


async def test_a_report_from_before_a_reset_is_withdrawn(
    client: Client, begin: Start, model_server: ModelServer, cache: Path
) -> None:
    """After the reset it runs as if it had said nothing, and nothing needs a person any more."""
    corrected = cache / f"corrected-{uuid.uuid4().hex}"
    nodes = [
        call("a", "fail", args={"unless": corrected.name}, on_error={"fallback": {"value": "lost"}}),
        gate(when={"ref": "$a.value", "op": "eq", "value": "lost"}),
        call("b", args={"seconds": 3, "value": "$a.value"}),
    ]
    model_server.on(PLANNER, plan(*nodes, answer="$b.value"))
    handle = await begin(plan={"nodes": [agent()], "answer": "$sub"})
    child = client.get_workflow_handle(f"{handle.id}.sub")
    await until(handle, lambda view: view["status"] == "blocked")
    corrected.touch()
    await reset(client, child, scheduled("a"))
    await until(handle, lambda view: (view["status"], view["blocked"]) == ("running", []))
    assert (await child.query("plan"))["status"] == "running", "it said so before its end"
    assert (await handle.result())["answer"] == "recovered"
    assert await failed_tasks(child) == []


@workflow.defn(name="Leaver")
class Leaver:
    """Leaves its sub-agent alone."""

    @workflow.run
    async def run(self, request: dict[str, Any]) -> None:
        await workflow.start_child_workflow(
            "AgentRun", request, id=f"{workflow.info().workflow_id}.sub", task_queue=queues.WORKFLOW,
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
        )  # fmt: skip


async def test_one_whose_parent_is_over_goes_on(client: Client, host: Activities, cached: int) -> None:
    request = {"plan": {"nodes": [call("a", args={"seconds": 1}), gate(needs=["a"])], "answer": "$g"}, "depth": 1}
    runner = UnsandboxedWorkflowRunner()
    async with serving(client, host, cached=cached, workflows=(AgentRun, Leaver), runner=runner):
        parent = await client.start_workflow(
            "Leaver", request, id=f"agent-{uuid.uuid4().hex[:8]}", task_queue=queues.WORKFLOW
        )
        await parent.result()
        child = client.get_workflow_handle(f"{parent.id}.sub")
        await until(child, lambda view: view["status"] == "blocked")
        while not (await kinds(child))["EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"]:
            await asyncio.sleep(0.1)
        await insist(child, "answer", {"node": "g", "value": "yes"})
        assert (await child.result())["answer"] == "yes"
        assert await failed_tasks(child) == []
