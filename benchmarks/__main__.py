"""`make bench`: Sennit beside plain asyncio and bare activities, many runs at once, a very large
run, and what else has a goal. `make bench-peers` times other libraries in the same run.

Everything is measured in this run, on this machine, on dev servers with their database on disk.
`make bench ARGS=page` writes the figures into `docs/performance.md`; `ARGS=agents` times agents,
`ARGS=programs` programs, see these modules. `ARGS="parts ratios"` measures one part alone.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError

from benchmarks import (
    board,
    fanout,
    hints,
    hostile,
    programs,
    rates,
    scripts,
    speculation,
    step,
    stream,
    turns,
)
from benchmarks.agents import comparison, faults
from benchmarks.performance import run
from benchmarks.performance.scale import p95
from benchmarks.shapes import wide
from benchmarks.stage import Stage, stage


async def cancels(built: Stage) -> list[float]:
    """Return the seconds from asking to Cancelled, for runs with 20 nodes in flight."""
    taken = []
    for _ in range(20):
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


async def answers() -> bool:
    """Measure how soon a worker polls, a run is cancelled, and a node ends
    beside hostile scripts.
    """
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            print(f"worker start to polling: {built.worker_ready:.2f} s (goal < 3)")
            taken = await cancels(built)
            print(
                f"cancel: median {statistics.median(taken):.2f} s, p95 {p95(taken):.2f} s (goal < "
                "3)\n"
            )
            beside = await hostile.measure(built)
    print(hostile.table(beside), end="\n\n")
    return bool(beside["met"])


async def main(_: Sequence[str]) -> int:
    """Run every benchmark of minutes and print the figures; 1 if a goal that
    is asserted is missed.
    """
    missed = await run.parts([])
    met = await answers() and not missed
    print(step.table(step.measure()), end="\n\n")
    print(board.table(board.measure()))
    return 0 if met else 1


if __name__ == "__main__":
    others: dict[str, Callable[[list[str]], Coroutine[Any, Any, int]]] = {
        "parts": run.parts,
        "peers": run.peers,
        "page": partial(run.parts, to_page=True),
        "agents": comparison.main,
        "programs": programs.main,
        "scripts": scripts.main,
        "faults": faults.main,
        "stream": stream.main,
        "fanout": fanout.main,
        "rates": rates.main,
        "hints": hints.main,
        "speculation": speculation.main,
        "turns": turns.main,
    }
    chosen = others.get(sys.argv[1]) if sys.argv[1:] else None
    sys.exit(asyncio.run(chosen(sys.argv[2:]) if chosen else main([])))
