"""Temporal's plugin for LangGraph with Send, an activity a node:
`temporal_plugin.py PLACE ADDRESS`.
"""

import asyncio
import os
import sys
import time
import uuid
from datetime import timedelta

from temporalio import workflow
from temporalio.client import Client
from temporalio.langgraph import LangGraphPlugin
from temporalio.langgraph import graph as registered
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from waves import settings, waves
    from wire import Graph, answer, complete

QUEUE = f"peers-{os.getpid()}"
"""A process that is started again does not go on with what the one before left."""


@workflow.defn
class Waves:
    """The graph, on the plugin."""

    @workflow.run
    async def run(self, graph: Graph) -> int:
        """Return how many nodes have run."""
        state = await registered("waves").compile().ainvoke({"done": []}, settings(graph, "run"))
        return len(state["done"])


async def main(address: str) -> None:
    """Answer with a worker of its own on the server."""
    client = await Client.connect(address)
    nap = {"execute_in": "activity", "start_to_close_timeout": timedelta(seconds=30)}
    plugin = LangGraphPlugin(graphs={"waves": waves(nap, {"execute_in": "workflow"})})

    async def timed(graph: Graph) -> float:
        started = time.perf_counter()
        done = await client.execute_workflow(
            Waves.run,
            graph,
            id=f"peer-{uuid.uuid4().hex}",
            task_queue=QUEUE,
            task_timeout=timedelta(seconds=60),
        )
        seconds = time.perf_counter() - started
        complete(done, graph)
        return seconds

    # To send 1,000 nodes takes the workflow longer than the 2 s after which a
    # worker takes it for stuck.
    async with Worker(
        client, task_queue=QUEUE, workflows=[Waves], plugins=[plugin], debug_mode=True
    ):
        await answer(timed)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2]))
