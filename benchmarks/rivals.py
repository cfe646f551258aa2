"""What Sennit is timed beside: plain asyncio, which forgets everything, and one bare activity a node."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta

from temporalio import activity, workflow

from benchmarks.shapes import Shape

QUEUE = "sennit.benchmark"


async def plain_asyncio(shape: Shape) -> float:
    """Return the seconds the graph takes with one task a node in one process."""
    started = time.perf_counter()
    tasks: list[asyncio.Task[None]] = []

    async def node(index: int) -> None:
        await asyncio.gather(*(tasks[need] for need in shape.needs[index]))
        await asyncio.sleep(shape.latency[index])

    for index in range(len(shape.latency)):
        tasks.append(asyncio.create_task(node(index)))  # noqa: PERF401  a node waits for tasks before it in the list
    await asyncio.gather(*tasks)
    return time.perf_counter() - started


@activity.defn(name="bare_nap")
async def bare_nap(seconds: float) -> float:
    """Sleep."""
    await asyncio.sleep(seconds)
    return seconds


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
            await workflow.execute_activity(
                bare_nap,
                latency[index],
                task_queue=QUEUE,
                start_to_close_timeout=timedelta(seconds=30),
                heartbeat_timeout=timedelta(seconds=10),
            )

        for index in range(len(latency)):
            tasks.append(asyncio.create_task(node(index)))  # noqa: PERF401  as above
        await _all(tasks)
        return len(tasks)


async def _all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        await task
