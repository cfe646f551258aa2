"""Workers of every role in this process, and the choice of how much they remember."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from doubles.activations import check_joins, recorded_from
from doubles.events import failed_in
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.service import RPCError
from temporalio.worker import Interceptor, Worker, WorkflowRunner

from sennit.activities.definitions import Activities
from sennit.activities.runs.pollers import QueueWorkers
from sennit.workers.workflow_sandbox import runner_for
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.dry_run import DryRun
from sennit.workflows.look_up import LookUp
from sennit.workflows.messages import queues
from sennit.workflows.messages.trajectory import NOTE_RUN_TYPE
from sennit.workflows.note_run import NoteRun
from sennit.workflows.read_outputs import ReadOutputs
from sennit.workflows.run_quota import RunQuota
from sennit.workflows.run_stream import RunStream

CACHED = 200
Handle = WorkflowHandle[Any, Any]
Start = Callable[..., Awaitable[Handle]]
BEAT = timedelta(milliseconds=500)
SLOWEST_TASK = 60  # seconds that a workflow task may take: the SDK's 2 are too few on a busy machine
SLOWEST_STOP = 60.0  # seconds: workers that wait for ever fail their test instead of holding up all others

remembered_or_not = pytest.mark.parametrize("cached", [CACHED, 0], ids=["cached", "replayed"], indirect=True)
"""Runs a test twice: with workflows kept in memory, and with every workflow task a replay from the start.

For tests of people and other runs that come in between; `starting` replays the history of every run at its end."""


@asynccontextmanager
async def serving(
    client: Client,
    host: Activities,
    *,
    cached: int = CACHED,
    workflows: Sequence[type] = (AgentRun, DryRun, LookUp, NoteRun, ReadOutputs, RunQuota, RunStream),
    runner: WorkflowRunner | None = None,
    interceptors: Sequence[Interceptor] = (),
) -> AsyncIterator[None]:
    """Serve all queues until the block ends. `cached` workflows are remembered between their tasks.

    With memory the workflows run in the SDK's sandbox. Without, that would load them anew for every task, and there is
    one workflow task at a time: of a query and a task of the same run at once, the SDK then
    sometimes loses the task, which costs the 10 s after which the server gives it out again.

    These workers are the only ones: for a minute the server still counts those that an earlier test has killed.
    """
    stack = AsyncExitStack()
    stack.enter_context(_only_these())
    try:
        models = [(queues.llm_queue(provider), host.llm()) for provider in host.providers]
        for queue, work in [(queues.TOOLS, host.tools()), (queues.SANDBOX, host.sandbox()), *models]:
            worker = Worker(
                client,
                task_queue=queue,
                activities=work,
                interceptors=interceptors,
                max_heartbeat_throttle_interval=BEAT,
                default_heartbeat_throttle_interval=BEAT,
            )
            await stack.enter_async_context(worker)
        guarded = runner_for(cached > 0)
        runs = Worker(
            client,
            task_queue=queues.WORKFLOW,
            workflows=workflows,
            workflow_runner=runner or guarded,
            interceptors=interceptors,
            max_cached_workflows=cached,
            max_concurrent_workflow_tasks=20 if cached else 1,
        )
        guarded.attach(runs)
        assert runs._workflow_worker is not None
        runs._workflow_worker._deadlock_timeout_seconds = SLOWEST_TASK
        await stack.enter_async_context(runs)
        yield
    finally:
        async with asyncio.timeout(SLOWEST_STOP):
            await stack.aclose()


@contextmanager
def _only_these() -> Iterator[None]:
    async def counts(*_: Any) -> dict[str, int]:
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueueWorkers, "counts", counts)
        yield


@asynccontextmanager
async def starting(client: Client) -> AsyncIterator[Start]:
    """Start runs with any input. At the end those that still run are ended; none may have had a workflow task fail,
    and each replays, with its sub-agents, however
    its tasks are joined."""
    started: list[WorkflowHandle[Any, Any]] = []

    async def begin(request: Any = None, **fields: Any) -> WorkflowHandle[Any, Any]:
        given = fields or request
        handle = await client.start_workflow(
            "AgentRun", given, id=f"agent-test-{uuid.uuid4().hex[:8]}", task_queue=queues.WORKFLOW
        )
        started.append(handle)
        return handle

    yield begin
    for handle in started:
        description = await handle.describe()
        if description.status is not None and description.status.name == "RUNNING":
            with suppress(RPCError):  # it has ended since; the other runs must not be left to the next test's workers
                await handle.terminate("end of test")
    histories = [await handle.fetch_history() for handle in started]
    assert [found for history in histories for found in failed_in(history.events)] == []
    for history in histories:
        await _replay(client, history)


async def _replay(client: Client, history: WorkflowHistory) -> None:
    run = await recorded_from(history)
    await check_joins(run, Random(history.run_id))
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            started = event.child_workflow_execution_started_event_attributes
            if started.workflow_type.name == NOTE_RUN_TYPE:
                continue
            child = started.workflow_execution
            below = await client.get_workflow_handle(child.workflow_id).fetch_history()
            await _replay(client, below)
