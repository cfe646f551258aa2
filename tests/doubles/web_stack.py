"""A dev server with its web UI, workers in this process, and runs to look at."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doubles.local_workers import serving
from doubles.stores import store_in
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
Handle = WorkflowHandle[Any, Any]


@dataclass(frozen=True)
class WebStack:
    """`ui` is the address of the web UI; `cache` the folder that the tools for tests look into."""

    client: Client
    ui: str
    cache: Path

    async def start(self, name: str = "", summary: str | None = None, **request: Any) -> Handle:
        """Start a run of any request; `name` becomes part of its id."""
        given = f"agent-{name or 'run'}-{uuid.uuid4().hex[:8]}"
        return await self.client.start_workflow(
            "AgentRun", request, id=given, task_queue=queues.WORKFLOW, static_summary=summary
        )


@asynccontextmanager
async def web_stack(folder: Path) -> AsyncIterator[WebStack]:
    """Serve until the block ends; runs that still go on then are terminated."""
    (folder / "cache").mkdir()
    server = DevServer(await obtain(pinned_only=True), None, folder / "server.log", port=0, ui_port=0)
    await server.start()
    try:
        client = await connect(server.address)
        places = WorkerPaths(store_in(folder / "artifacts"), folder / "cache", CORPUS, (Path("/"),))
        host = Activities(places, load_tools(["doubles.tools"]), identity="tests", approval="never")
        async with serving(client, host):
            yield WebStack(client, server.ui_url or "", folder / "cache")
            async for run in client.list_workflows("ExecutionStatus = 'Running'"):
                if run.status is WorkflowExecutionStatus.RUNNING:
                    await client.get_workflow_handle(run.id).terminate("end of test")
    finally:
        await server.stop()
