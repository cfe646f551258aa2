"""What a client learns of a run from the server, on a real one: attempts, progress, and why there is no answer."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio import activity, workflow
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from starter.client.activity_details import activity_details, why_silent
from starter.client.client import Sennit
from starter.client.connection import local_server
from starter.client.errors import NoAnswer
from workflows.messages.views import NodeView, RunView

pytestmark = [pytest.mark.server, pytest.mark.timeout(60)]
QUEUE = "closely"


@activity.defn(name="work")
async def work(how: str) -> None:
    if how == "busy":
        raise ApplicationError("slow\ndown", type="RateLimited")
    activity.heartbeat("half done")
    await asyncio.Event().wait()


@workflow.defn(name="Working")
class Working:
    @workflow.run
    async def run(self, how: str) -> None:
        if how == "broken":
            raise RuntimeError("an old task does not fit this code")
        await workflow.execute_activity(
            "work",
            how,
            activity_id={"unserved": "n1@2", "busy": "n1~2@3"}.get(how, "n1~2"),
            task_queue="nobody" if how == "unserved" else None,
            start_to_close_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(initial_interval=timedelta(minutes=1), maximum_attempts=3),
        )


@pytest.fixture
async def begin(client: Client) -> AsyncIterator[Callable[[str], Awaitable[RunView]]]:
    """Start a run that behaves like this; returns a view in which its node n1 runs."""
    started = []

    async def begin(how: str) -> RunView:
        handle = await client.start_workflow("Working", how, id=f"{how}-{uuid.uuid4().hex[:6]}", task_queue=QUEUE)
        started.append(handle)
        nodes = (NodeView(id="n1", kind="tool", status="running"), NodeView(id="n2", kind="tool", status="pending"))
        return RunView(id=handle.id, run_id="r", status="running", phase="running", nodes=nodes)

    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=QUEUE, workflows=[Working], activities=[work], workflow_runner=runner):
        yield begin
        for handle in started:
            await handle.terminate()


async def seen(client: Client, view: RunView, message: str) -> NodeView:
    async with asyncio.timeout(100):
        while message not in (node := (await activity_details(client, view)).nodes[0]).preview:
            await asyncio.sleep(0.1)
    return node


async def test_a_node_that_is_tried_again_says_why(client: Client, begin: Callable[[str], Any]) -> None:
    node = await seen(client, await begin("busy"), "attempt")
    assert (node.attempts, node.preview) == (2, "attempt 2 of 3 after RateLimited: slow down")


async def test_a_node_shows_its_own_progress_and_time(client: Client, begin: Callable[[str], Any]) -> None:
    node = await seen(client, await begin("well"), "half done")
    assert (node.attempts, node.preview) == (0, "half done")
    assert node.duration_ms is not None
    assert 0 <= node.duration_ms < 60_000


async def test_a_node_nobody_takes_says_so(client: Client, begin: Callable[[str], Any]) -> None:
    await seen(client, await begin("unserved"), "no worker took it yet")


async def test_of_a_replaced_plan_only_the_newest_activity_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def describe(*_: Any) -> DescribeWorkflowExecutionResponse:
        names = ("n1~2", "n1~2@10", "n1@2", "n1~3@2", "n1@10", "n1~9")
        pending = [PendingActivityInfo(activity_id=name, paused=name == "n1~2@10") for name in names]
        return DescribeWorkflowExecutionResponse(pending_activities=pending)

    monkeypatch.setattr("starter.client.activity_details._describe", describe)
    nodes = (NodeView(id="n1", kind="tool", status="running"),)
    view = RunView(id="r", run_id="r", status="running", phase="running", nodes=nodes)
    assert (await activity_details(cast("Client", None), view)).nodes[0].preview == "paused in Temporal"


async def test_planning_shows_how_it_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def describe(*_: Any) -> DescribeWorkflowExecutionResponse:
        return DescribeWorkflowExecutionResponse(
            pending_activities=[PendingActivityInfo(activity_id="run:plan~2", paused=True)]
        )

    monkeypatch.setattr("starter.client.activity_details._describe", describe)
    view = RunView(id="r", run_id="r", status="running", phase="planning")
    assert (await activity_details(cast("Client", None), view)).progress == "paused in Temporal"


async def test_a_run_whose_code_fails_says_why(client: Client, begin: Callable[[str], Any]) -> None:
    view = await begin("broken")
    async with asyncio.timeout(100):
        while (why := await why_silent(client, view.id)) is None:
            await asyncio.sleep(0.1)
    assert why.endswith("which tries again: RuntimeError: an old task does not fit this code")


async def test_a_run_without_workers_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starter.client.client.WORKFLOW", "never-served")
    monkeypatch.setattr("starter.client.run.QUERY_TIMEOUT", timedelta(seconds=1))
    run = await Sennit(client, local_server("127.0.0.1:1", None)).start(goal="x")
    with pytest.raises(NoAnswer, match="no worker serves never-served; the run waits for one: sennit worker workflow"):
        await run.view()


async def test_what_the_server_does_not_say_leaves_the_view_as_it_was(client: Client) -> None:
    nodes = (NodeView(id="n1", kind="tool", status="running"),)
    view = RunView(id="nobody", run_id="r", status="running", phase="running", nodes=nodes)
    assert await activity_details(client, view) == view
    assert await why_silent(client, "nobody") is None
