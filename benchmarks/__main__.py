"""`make bench`: Sennit beside plain asyncio and beside one bare activity a node, as ratios to the critical path.

Everything is measured in this run, on this machine, on a dev server with its database on disk. `make bench ARGS=agents`
times agents instead, `ARGS=faults` what a failing model server costs: see these modules.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from temporalio.client import WorkflowFailureError
from temporalio.worker import Worker

from benchmarks import board, capacity, library, programs, step, throughput
from benchmarks.agents import comparison, faults
from benchmarks.rivals import QUEUE, BareGraph, bare_nap, plain_asyncio
from benchmarks.shapes import Shape, chain, diamond, layered, wide
from benchmarks.stage import Stage, stage

REPEATS = 3
GOALS = {"chain": 1.30, "diamond": 1.12, "layers": 1.30}


def say(*columns: object) -> None:
    """Print one row."""
    print("  ".join(f"{column!s:>14}" if position else f"{column!s:<30}" for position, column in enumerate(columns)))


async def ratios(built: Stage) -> bool:
    """Time every shape; returns whether every goal was met."""
    say("graph", "critical path", "asyncio", "bare activity", "sennit", "goal", "events/node", "bytes/node")
    met = True
    for shape in (chain(30, 0.1), diamond(10, 0.5), layered(200, 10), wide(100, 0.2)):
        path = shape.critical_path
        asyncio_ratio = statistics.median([await plain_asyncio(shape) for _ in range(REPEATS)]) / path
        bare, sennit = [], []
        for _ in range(REPEATS):
            bare.append(await _bare(built, shape))
            seconds, handle = await built.timed(shape.plan())
            sennit.append(seconds)
        history = await handle.fetch_history()
        count = len(shape.latency)
        size = sum(event.ByteSize() for event in history.events[5:-1])
        goal = GOALS.get(shape.name.split()[0])
        ratio = statistics.median(sennit) / path
        met = met and (goal is None or ratio <= goal)
        timed = (asyncio_ratio, statistics.median(bare) / path, ratio)
        grown = (f"{len(history.events) / count:.1f}", f"{size / count:.0f}")
        say(shape.name, f"{path:.3f} s", *(f"{value:.3f}" for value in timed), goal or "", *grown)
    return met


async def _bare(built: Stage, shape: Shape) -> float:
    started = time.perf_counter()
    graph = (list(shape.latency), [list(needs) for needs in shape.needs])
    await built.client.execute_workflow("BareGraph", graph, id=f"bare-{time.time_ns()}", task_queue=QUEUE)
    return time.perf_counter() - started


async def cancels(built: Stage, count: int = 20) -> list[float]:
    """Return the seconds from asking to Cancelled, for runs with 20 nodes in flight."""
    taken = []
    for _ in range(count):
        handle = await built.start(wide(20, 60.0).plan())
        while (await handle.describe()).history_length < 30:
            await asyncio.sleep(0.02)
        started = time.perf_counter()
        await handle.cancel()
        try:
            await handle.result()
        except WorkflowFailureError:
            taken.append(time.perf_counter() - started)
    return sorted(taken)


async def main() -> int:
    """Run every benchmark and print the figures."""
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            print(f"worker start to polling: {built.worker_ready:.2f} s (goal < 3)\n")
            bare = Worker(built.client, task_queue=QUEUE, workflows=[BareGraph], activities=[bare_nap])
            async with bare:
                met = await ratios(built)
            taken = await cancels(built)
            p95 = taken[int(len(taken) * 0.95) - 1]
            print(f"\ncancel: median {statistics.median(taken):.2f} s, p95 {p95:.2f} s (goal < 3)")
    print()
    print(step.table(step.measure()))
    print()
    print(board.table(board.measure()))
    return 0 if met else 1


if __name__ == "__main__":
    others = {
        "agents": comparison.main,
        "faults": faults.main,
        "throughput": throughput.main,
        "capacity": capacity.main,
        "programs": programs.main,
        "library": library.main,
    }
    chosen = others.get(sys.argv[1]) if sys.argv[1:] else None
    sys.exit(asyncio.run(chosen(sys.argv[2:]) if chosen else main()))
