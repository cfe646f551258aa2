"""The workflow sandbox shares what must be one class on both sides of it."""

import asyncio
import importlib
import multiprocessing
import uuid
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.bridge.proto.workflow_activation import (
    QueryWorkflow,
    ResolveActivity,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_completion import Success, WorkflowActivationCompletion
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import (
    Replayer,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)

from sennit.starter.dev.server import DevServer
from sennit.workers.workflow_sandbox import PASSED_THROUGH, GuardedRunner, runner_for, workflow_runner
from sennit.workflows.messages.contracts import CALLS
from sennit.workflows.messages.request import RunRequest
from sennit.workflows.messages.result import RunReport
from sennit.workflows.messages.updates import UPDATES
from sennit.workflows.messages.views import RunView


def test_every_class_that_travels_is_shared() -> None:
    travelling = [model for call in CALLS for model in (call.takes, call.gives)]
    shared = workflow_runner().restrictions.passthrough_modules
    assert {model.__module__ for model in (*travelling, *UPDATES, RunRequest, RunReport, RunView)} <= shared


def test_the_workflow_itself_is_not_shared() -> None:
    """Nor is a package that it is in: what is below a shared package is shared, too."""
    shared = workflow_runner().restrictions.passthrough_modules
    assert not {"sennit", "sennit.workflows", "sennit.workflows.agent_run", "sennit.workflows.run"} & shared


@pytest.mark.parametrize("name", PASSED_THROUGH)
def test_every_shared_module_exists(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


class Hold:
    """An activity that ends when the test lets it."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    @activity.defn
    async def hold(self) -> None:
        await self.over.wait()


@activity.defn
async def end_late() -> None:
    """Go on for a moment when cancelled: its end is then news that the run does not wait for."""
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        await asyncio.sleep(0.2)
        raise


@workflow.defn
class Clock:
    """Returns when it learned that its activity has ended. With `joins` another one was cancelled before."""

    @workflow.run
    async def run(self, joins: bool) -> datetime:
        limit, queue = timedelta(seconds=60), "clock.activities"
        if joins:
            late = workflow.start_activity(
                end_late, task_queue=queue, start_to_close_timeout=limit, heartbeat_timeout=limit
            )
            await workflow.sleep(0.5)
            late.cancel()
        await workflow.execute_activity_method(Hold.hold, task_queue=queue, start_to_close_timeout=limit)
        told = workflow.now()
        await workflow.sleep(0.1)
        return told

    @workflow.query
    def ping(self) -> str:
        return "pong"


def clock_worker(client: Client, runner: GuardedRunner | None = None, **options: Any) -> Worker:
    runner = runner or runner_for(False)
    worker = Worker(client, task_queue="clock", workflows=[Clock], workflow_runner=runner, **options)
    runner.attach(worker)
    return worker


def serve_clock(address: str) -> None:
    """Remember runs until somebody kills this process."""

    async def serve() -> None:
        sticky = timedelta(seconds=4)
        await clock_worker(await Client.connect(address), sticky_queue_schedule_to_start_timeout=sticky).run()

    asyncio.run(serve())


@pytest.mark.parametrize("joins", [False, True])
async def test_a_query_of_a_forgotten_run_decides_nothing(dev_server: DevServer, client: Client, joins: bool) -> None:
    """Also if the workflow task before had no news for the workflow, which has not seen its time then."""
    first = multiprocessing.get_context("spawn").Process(target=serve_clock, args=(dev_server.address,), daemon=True)
    first.start()
    held = Hold()
    often = timedelta(seconds=0.05)
    async with Worker(
        client,
        task_queue="clock.activities",
        activities=[held.hold, end_late],
        max_heartbeat_throttle_interval=often,
        default_heartbeat_throttle_interval=often,
    ):
        run = await client.start_workflow(Clock.run, joins, id=f"clock-{uuid.uuid4().hex}", task_queue="clock")
        await until_happened(run, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, 3 if joins else 1)
        first.kill()
        asked = asyncio.ensure_future(run.query(Clock.ping, rpc_timeout=timedelta(seconds=50)))
        await asyncio.sleep(2)  # the server looks for another worker for the query, and then for the task
        held.over.set()
        await until_happened(run, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, 1)
    async with clock_worker(client):
        assert await asked == "pong"
        told = await run.result()
        assert await run.query(Clock.ping) == "pong"
    started = [
        event.event_time.ToDatetime(told.tzinfo)
        async for event in run.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    ]
    assert abs(told - started[-2]) < timedelta(milliseconds=1), "else it is the time of the task before"
    await Replayer(workflows=[Clock], workflow_runner=UnsandboxedWorkflowRunner()).replay_workflow(
        await run.fetch_history()
    )


class CountingRunner(UnsandboxedWorkflowRunner):
    """Counts the workflows that a worker has set up."""

    created = 0

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        self.created += 1
        return super().create_instance(det)


async def test_a_remembered_run_is_not_forgotten_for_its_queries(client: Client) -> None:
    counting, held = CountingRunner(), Hold()
    async with (
        Worker(client, task_queue="clock.activities", activities=[held.hold]),
        clock_worker(client, GuardedRunner(counting)),
    ):
        run = await client.start_workflow(Clock.run, False, id=f"clock-{uuid.uuid4().hex}", task_queue="clock")
        assert [await run.query(Clock.ping) for _ in range(3)] == ["pong"] * 3
        held.over.set()
        await until_happened(run, EventType.EVENT_TYPE_TIMER_STARTED, 1)
        assert await run.query(Clock.ping) == "pong"
        await until_happened(run, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, 1)
        assert counting.created == 1


class Fake(WorkflowRunner):
    """Runs workflows that do nothing."""

    def prepare_workflow(self, defn: Any) -> None:
        pass

    def set_worker_level_failure_exception_types(self, types: Any) -> None:
        pass

    def create_instance(self, det: Any) -> Any:
        return SimpleNamespace(activate=lambda _: WorkflowActivationCompletion(successful=Success()))


class Core:
    """What the SDK gives one workflow: flags come back after the task that has reported them."""

    def __init__(self, attached: bool = True) -> None:
        self.forgotten: list[str] = []
        self.flags: set[int] = {1}
        runner = GuardedRunner(Fake())
        if attached:
            evict = SimpleNamespace(request_workflow_eviction=self.forgotten.append)
            runner.attach(cast("Worker", SimpleNamespace(_bridge_worker=evict)))
        self.instance = runner.create_instance(cast("Any", SimpleNamespace(info=SimpleNamespace(run_id="r"))))

    def give(self, *, replay: bool = False, reported: bool = True, query: str = "") -> None:
        job = WorkflowActivationJob(query_workflow=QueryWorkflow(query_id=query)) if query else ENDED
        flags = sorted(self.flags)
        act = WorkflowActivation(run_id="r", is_replaying=replay or bool(query), available_internal_flags=flags)
        act.jobs.append(job)
        used = self.instance.activate(act).successful.used_internal_flags
        if reported:
            self.flags.update(used)


ENDED = WorkflowActivationJob(resolve_activity=ResolveActivity())


def test_what_a_query_has_moved_forward_is_forgotten() -> None:
    core = Core()
    core.give()
    core.give(query="legacy_query")
    assert not core.forgotten, "the news came with a workflow task"
    core.give(reported=False)
    core.give(query="legacy_query")
    assert core.forgotten == ["r"]


def test_news_of_workflow_tasks_does_not_vouch_for_those_of_a_query() -> None:
    """However many there were: each has a flag that was not there before."""
    core = Core()
    for _ in range(3):
        core.give()
    core.give(reported=False)
    core.give(query="legacy_query")
    assert core.forgotten == ["r"]


def test_a_query_within_a_workflow_task_forgets_nothing() -> None:
    core = Core()
    core.give(reported=False)  # the task is reported when its queries are answered
    core.give(query="1d8f")
    assert not core.forgotten


def test_a_replay_for_a_query_is_remembered() -> None:
    core = Core()
    core.give(replay=True)
    core.give(query="legacy_query")
    assert not core.forgotten


def test_without_a_worker_that_could_forget_the_query_fails() -> None:
    core = Core(attached=False)
    core.give(reported=False)
    with pytest.raises(RuntimeError, match="knows no worker"):
        core.give(query="legacy_query")


async def until_happened(run: WorkflowHandle[Any, Any], kind: "EventType.ValueType", count: int) -> None:
    """Wait until the history has that many events of a kind."""
    while [event.event_type async for event in run.fetch_history_events()].count(kind) < count:
        await asyncio.sleep(0.02)
