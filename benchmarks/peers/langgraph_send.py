"""LangGraph with Send and its SQLite checkpointer: `langgraph_send.py PLACE`."""

import asyncio
import sys
import time
import uuid

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from waves import settings, waves
from wire import Graph, answer, complete


async def main(place: str) -> None:
    """Answer with the database in that folder."""
    async with AsyncSqliteSaver.from_conn_string(f"{place}/langgraph.db") as saver:
        compiled = waves().compile(checkpointer=saver)

        async def timed(graph: Graph) -> float:
            started = time.perf_counter()
            state = await compiled.ainvoke({"done": []}, settings(graph, uuid.uuid4().hex))
            seconds = time.perf_counter() - started
            complete(len(state["done"]), graph)
            return seconds

        await answer(timed)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
