"""What benchmarks run on: a dev server of their own with its database on disk, and
real worker processes.
"""

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from temporalio.client import Client, WorkflowHandle

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer, free_port
from sennit.starter.dev.workers import create_store, says_yes
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect


class Stage:
    """A running server with workers."""

    def __init__(self, client: Client, place: Path) -> None:
        self.client = client
        self.place = place
        self.worker_ready = 0.0
        self.processes: dict[str, list[psutil.Process]] = {}

    @property
    def address(self) -> str:
        """HOST:PORT of the server."""
        return self.client.service_client.config.target_host

    async def start(self, plan: dict[str, Any], **fields: Any) -> WorkflowHandle[Any, Any]:
        """Start a run of a plan."""
        name = f"agent-bench-{uuid.uuid4().hex[:8]}"
        return await self.client.start_workflow(
            "AgentRun", {"plan": plan, **fields}, id=name, task_queue=queues.WORKFLOW
        )

    async def timed(
        self, plan: dict[str, Any], **fields: Any
    ) -> tuple[float, WorkflowHandle[Any, Any]]:
        """Return the seconds from start to result in the client. Raises RuntimeError
        if the run is not done.
        """
        started = time.perf_counter()
        handle = await self.start(plan, **fields)
        report = await handle.result()
        if report["status"] != "done":
            raise RuntimeError(f"the run ended {report['status']}: {report.get('problem')}")
        return time.perf_counter() - started, handle


@asynccontextmanager
async def dev_server(place: Path) -> AsyncIterator[DevServer]:
    """Start a server with its database in that folder, and stop it whatever happens."""
    binary = await obtain(pinned_only=True)
    server = DevServer(binary, place / "temporal.db", place / "server.log", port=0, headless=True)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def stage(place: Path, **env: str) -> AsyncIterator[Stage]:
    """Start server and workers, these with the variables given, and stop them whatever happens."""
    async with dev_server(place) as server:
        built = Stage(await connect(server.address), place)
        worker, built.worker_ready = await start_worker(server.address, place, env)
        built.processes["all"] = [psutil.Process(worker.pid)]
        try:
            yield built
        finally:
            worker.terminate()
            worker.wait(40)


async def start_worker(
    address: str, place: Path, more: dict[str, str], role: str = "all"
) -> tuple[subprocess.Popen[bytes], float]:
    """Start `python -m sennit.workers ROLE`; returns it with the seconds it took to poll."""
    port = free_port()
    path = place / f"{role}-{port}.log"
    env = {**os.environ, "TEMPORAL_ADDRESS": address, "SENNIT_STATE": str(place),
    "SENNIT_DOCS_ROOTS": "/",
           "SENNIT_TOOLS": "benchmarks.tools", "SENNIT_TOOLS_PATH": str(Path(__file__).parents[1]),
           "SENNIT_HEALTH_PORT": f"127.0.0.1:{port}", **more}  # fmt: skip
    await create_store(env)
    started = time.perf_counter()
    with path.open("wb") as log:
        command = [sys.executable, "-m", "sennit.workers", role]
        worker = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    while not await asyncio.to_thread(says_yes, port, "/readyz"):
        if worker.poll() is not None:
            raise RuntimeError(f"the worker ended: {path.read_text()[-2000:]}")
        await asyncio.sleep(0.02)
    return worker, time.perf_counter() - started
