"""How a peer is asked for its time: a graph a line comes in as JSON, the
seconds that it took go out.

A peer runs in an environment of its own (`benchmarks/peers/requirements.lock`), so nothing of
Sennit is imported here.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Graph = dict[str, Any]
"""`latency`: seconds of each node. `needs`: for each node, the positions that it waits for."""


async def answer(timed: Callable[[Graph], Awaitable[float]]) -> None:
    """Answer every line until there are no more. What a library prints goes to stderr."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    while line := await asyncio.to_thread(sys.stdin.readline):
        seconds = await timed(json.loads(line))
        print(json.dumps(seconds), file=replies, flush=True)


def complete(done: int, graph: Graph) -> None:
    """Raise RuntimeError unless every node has run: a time without the work would mean nothing."""
    if done != len(graph["latency"]):
        raise RuntimeError(f"{done} of {len(graph['latency'])} nodes have run")
