"""The workflow sandbox shares what must be one class on both sides of it."""

import asyncio
import importlib
import multiprocessing
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError
from temporalio.worker import Worker

from starter.dev.server import DevServer
from workers.workflow_sandbox import PASSED_THROUGH, runner_for, workflow_runner
from workflows.messages.contracts import CALLS
from workflows.messages.request import RunRequest
from workflows.messages.result import RunReport
from workflows.messages.updates import UPDATES
from workflows.messages.views import RunView


def test_every_class_that_travels_is_shared() -> None:
    travelling = [model for call in CALLS for model in (call.takes, call.gives)]
    shared = workflow_runner().restrictions.passthrough_modules
    assert {model.__module__ for model in (*travelling, *UPDATES, RunRequest, RunReport, RunView)} <= shared


def test_the_workflow_itself_is_not_shared() -> None:
    assert not {"workflows", "workflows.agent_run"} & workflow_runner().restrictions.passthrough_modules


@pytest.mark.parametrize("name", PASSED_THROUGH)
def test_every_shared_module_exists(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


@activity.defn
async def wait_for_no_worker() -> None:
    await asyncio.sleep(3)


@workflow.defn
class Clock:
    """Returns when it learned that its activity has ended."""

    @workflow.run
    async def run(self) -> datetime:
        limit = timedelta(seconds=60)
        await workflow.execute_activity(wait_for_no_worker, task_queue="clock.activities", start_to_close_timeout=limit)
        return workflow.now()

    @workflow.query
    def ping(self) -> str:
        return "pong"


def serve_clock(address: str) -> None:
    """Remember runs until somebody kills this process."""

    async def serve() -> None:
        await Worker(
            await Client.connect(address),
            task_queue="clock",
            workflows=[Clock],
            workflow_runner=runner_for(False),
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=4),
        ).run()

    asyncio.run(serve())


@pytest.mark.server
async def test_a_query_of_a_forgotten_run_decides_nothing(dev_server: DevServer, client: Client) -> None:
    first = multiprocessing.get_context("spawn").Process(target=serve_clock, args=(dev_server.address,), daemon=True)
    first.start()
    async with Worker(client, task_queue="clock.activities", activities=[wait_for_no_worker]):
        run = await client.start_workflow(Clock.run, id=f"clock-{uuid.uuid4().hex}", task_queue="clock")
        await until_events(run, 5)
        first.kill()
        asked = asyncio.ensure_future(run.query(Clock.ping, rpc_timeout=timedelta(seconds=50)))
        await until_events(run, 8)
    async with Worker(client, task_queue="clock", workflows=[Clock], workflow_runner=runner_for(False)):
        with pytest.raises(WorkflowQueryFailedError, match="ask again"):
            await asked
        told = await run.result()
        assert await run.query(Clock.ping) == "pong"
    started = [
        event.event_time.ToDatetime(told.tzinfo)
        async for event in run.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    ]
    assert abs(told - started[-1]) < timedelta(milliseconds=1), "else it is the time of the task before"


async def until_events(run: WorkflowHandle[Any, Any], count: int) -> None:
    """Wait until the history has that many events."""
    while (await run.describe()).history_length < count:
        await asyncio.sleep(0.02)
