"""What tests share: one real dev server a session, workers in this process, and a way to run a plan."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.host import Host, Places
from activities.toolbox import load_tools
from starter.dev.binary import obtain
from starter.dev.server import DevServer
from workers.sandbox import workflow_runner
from workflows import queues
from workflows.agent_run import AgentRun
from workflows.wire import connect

Plan = dict[str, Any]
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


@pytest.fixture(scope="session")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A real Temporal dev server with its database on disk, shared by the session."""
    place = tmp_path_factory.mktemp("server")
    server = DevServer(obtain(pinned_only=True), place / "temporal.db", place / "server.log", port=0, headless=True)
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.fixture
async def client(dev_server: DevServer) -> Client:
    """A client of the shared server."""
    return await connect(dev_server.address)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where test tools keep their log of calls."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def docs() -> Path:
    """The example corpus."""
    return Path(__file__).parents[1] / "examples" / "corpus"


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact store of the session."""
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture
async def workers(client: Client, cache: Path, docs: Path, artifacts: Path) -> AsyncIterator[None]:
    """All roles in this process. WEFT_CACHED_WORKFLOWS=0 makes every workflow task a replay from the start."""
    registry = load_tools(["doubles.tools"])
    host = Host(Places(artifacts, cache, docs, (), True), registry, identity="tests")
    beat = timedelta(milliseconds=500)
    cached = int(os.environ.get("WEFT_CACHED_WORKFLOWS", "200"))
    async with AsyncExitStack() as stack:
        for queue, work in ((queues.TOOLS, host.tools()), (queues.llm_queue("offline"), host.llm())):
            worker = Worker(
                client,
                task_queue=queue,
                activities=work,
                max_heartbeat_throttle_interval=beat,
                default_heartbeat_throttle_interval=beat,
            )
            await stack.enter_async_context(worker)
        runs = Worker(
            client,
            task_queue=queues.WORKFLOW,
            workflows=[AgentRun],
            workflow_runner=workflow_runner(),
            max_cached_workflows=cached,
            max_concurrent_workflow_tasks=20 if cached else 2,
        )
        await stack.enter_async_context(runs)
        yield


@pytest.fixture
async def start(client: Client, workers: None) -> AsyncIterator[Start]:
    """Start a run with any input; what still runs at the end of the test is terminated."""
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
            await handle.terminate("end of test")
