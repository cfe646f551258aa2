"""What Sennit is timed beside on the same server: plain asyncio, which forgets
everything, and bare activities.

Bare activities have a worker process of their own, as Sennit has: `python -m
benchmarks.performance.rivals ADDRESS`.
"""

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from benchmarks.shapes import Shape

QUEUE = "sennit.benchmark"
READY = b"ready\n"


async def plain_asyncio(shape: Shape) -> float:
    """Return the seconds the graph takes with one task a node in one process."""
    started = time.perf_counter()
    tasks: list[asyncio.Task[None]] = []

    async def node(index: int) -> None:
        await asyncio.gather(*(tasks[need] for need in shape.needs[index]))
        await asyncio.sleep(shape.latency[index])

    for index in range(len(shape.latency)):
        tasks.append(asyncio.create_task(node(index)))
    await asyncio.gather(*tasks)
    return time.perf_counter() - started


@activity.defn(name="bare_nap")
async def bare_nap(seconds: float) -> float:
    """Sleep."""
    await asyncio.sleep(seconds)
    return seconds


async def _nap(seconds: float) -> None:
    await workflow.execute_activity(
        bare_nap,
        seconds,
        task_queue=QUEUE,
        start_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=timedelta(seconds=10),
    )


@workflow.defn(name="BareGraph")
class BareGraph:
    """One activity a node, started when its needs have ended; nothing else."""

    @workflow.run
    async def run(self, graph: tuple[list[float], list[list[int]]]) -> int:
        """Run the graph given as latencies and needs."""
        latency, needs = graph
        tasks: list[asyncio.Task[None]] = []

        async def node(index: int) -> None:
            await _all([tasks[need] for need in needs[index]])
            await _nap(latency[index])

        for index in range(len(latency)):
            tasks.append(asyncio.create_task(node(index)))
        await _all(tasks)
        return len(tasks)


@workflow.defn(name="BarePair")
class BarePair:
    """Two activities, one after the other: the least that a run of several calls can be."""

    @workflow.run
    async def run(self, seconds: float) -> None:
        """Run both."""
        await _nap(seconds)
        await _nap(seconds)


async def _all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        await task


async def bare_graph(client: Client, shape: Shape) -> float:
    """Return the seconds from start to result in the client."""
    started = time.perf_counter()
    graph = (list(shape.latency), [list(needs) for needs in shape.needs])
    await client.execute_workflow(
        "BareGraph", graph, id=f"bare-{uuid.uuid4().hex}", task_queue=QUEUE
    )
    return time.perf_counter() - started


async def bare_pair(client: Client, seconds: float) -> None:
    """Run a workflow of two activities, each of so many seconds."""
    await client.execute_workflow(
        "BarePair", seconds, id=f"bare-{uuid.uuid4().hex}", task_queue=QUEUE
    )


@asynccontextmanager
async def bare_worker(address: str) -> AsyncIterator[None]:
    """Serve bare activities in a process of their own until the block ends."""
    command = [sys.executable, "-m", "benchmarks.performance.rivals", address]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert worker.stdout
    try:
        if await asyncio.to_thread(worker.stdout.readline) != READY:
            raise RuntimeError("the worker of bare activities ended")
        yield
    finally:
        worker.terminate()
        worker.wait(40)
        worker.stdout.close()


async def _serve(address: str) -> None:
    client = await Client.connect(address)
    # A sandbox imports this module again for each workflow, which is no bare cost.
    plain = UnsandboxedWorkflowRunner()
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[BareGraph, BarePair],
        activities=[bare_nap],
        workflow_runner=plain,
    ):
        sys.stdout.buffer.write(READY)
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
