"""A dev server with a worker process of each role, and the processor time that processes use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from temporalio.client import Client

from benchmarks.stage import dev_server, start_worker
from sennit.workflows.messages.converter import connect

ROLES = ("workflow", "tools", "llm")


@dataclass
class Site:
    """A running server with workers. `processes` are the workers, by their role."""

    client: Client
    place: Path
    processes: dict[str, list[psutil.Process]] = field(default_factory=dict)


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Start a server and a worker of each role, and stop them whatever happens."""
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="sennit-bench-")))
        server = await stack.enter_async_context(dev_server(place))
        built = Site(await connect(server.address), place)
        started = [start_worker(server.address, place, {}, role) for role in ROLES]
        for role, (worker, _) in zip(ROLES, await asyncio.gather(*started), strict=True):
            stack.callback(worker.wait, 60)
            stack.callback(worker.terminate)
            built.processes[role] = [psutil.Process(worker.pid)]
        yield built


def processor_seconds(top: psutil.Process) -> float:
    """Return the processor seconds of a process and its children, those
    included that have ended.
    """
    used = sum(top.cpu_times()[:4])
    for child in top.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # what it used is then its parent's
            used += sum(child.cpu_times()[:4])
    return float(used)
