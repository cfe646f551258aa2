"""DBOS with SQLite, a step a node: `dbos_steps.py PLACE`."""

import asyncio
import sys
import time

from dbos import DBOS, DBOSConfig
from wire import Graph, answer, complete


@DBOS.step()
async def nap(seconds: float) -> float:
    """Take so long."""
    await asyncio.sleep(seconds)
    return seconds


@DBOS.workflow()
async def run(graph: Graph) -> int:
    """Start every step when its needs have ended."""
    tasks: list[asyncio.Task[None]] = []

    async def node(index: int) -> None:
        for need in graph["needs"][index]:
            await tasks[need]
        await nap(graph["latency"][index])

    for index in range(len(graph["latency"])):
        tasks.append(asyncio.create_task(node(index)))
    for task in tasks:
        await task
    return len(tasks)


async def timed(graph: Graph) -> float:
    """Return the seconds from start to result."""
    started = time.perf_counter()
    handle = await DBOS.start_workflow_async(run, graph)
    done = await handle.get_result()
    seconds = time.perf_counter() - started
    complete(done, graph)
    return seconds


async def main(place: str) -> None:
    """Answer with the database in that folder."""
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{place}/dbos.db",
        "run_admin_server": False,
    }
    DBOS(config=config)
    DBOS.launch()
    try:
        await answer(timed)
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
