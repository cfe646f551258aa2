"""Many runs at once: how many end a second, beside as many bare workflows of two activities."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.performance.rivals import bare_pair, bare_worker
from benchmarks.performance.table import Part, Table, goal_cell
from benchmarks.shapes import diamond
from benchmarks.stage import stage

RUNS = 100
SECONDS = 0.1
GOAL_RATE, GOAL_SHARE = 10.0, 0.65


async def rate(one: Callable[[], Awaitable[Any]], count: int = RUNS) -> float:
    """Start so many at once and return how many ended a second, until the last one had."""
    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    return count / (time.perf_counter() - began)


def found(sennit: float, bare: float) -> Part:
    """Return the table of both rates in runs a second."""
    rows = [
        ("a diamond of 10 nodes", f"{sennit:.1f}", goal_cell(sennit, GOAL_RATE, most=False)),
        ("a bare workflow of 2 activities", f"{bare:.1f}", ""),
        (
            "the first of the second",
            f"{sennit / bare:.0%}",
            goal_cell(sennit / bare, GOAL_SHARE, most=False),
        ),
    ]
    return Part(Table((f"{RUNS} runs at once", "runs/s", "goal"), rows))


async def measure(repeats: int) -> Part:
    """Let both take turns on a server of their own."""
    with TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built, bare_worker(built.address):
            plan = diamond(10, SECONDS).plan(f"nap_{SECONDS * 1000:.0f}")
            ours, bare = [], []
            await rate(lambda: built.timed(plan), 10)  # warms up
            await rate(lambda: bare_pair(built.client, SECONDS), 10)
            for _ in range(repeats):
                ours.append(await rate(lambda: built.timed(plan)))
                bare.append(await rate(lambda: bare_pair(built.client, SECONDS)))
    return found(statistics.median(ours), statistics.median(bare))
