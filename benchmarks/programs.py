"""`make bench ARGS=programs`: shapes as programs beside the same graphs as plans, and programs of very many calls."""

import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.shapes import Shape, chain, diamond, wide
from benchmarks.stage import Stage, stage

REPEATS = 3
CHAIN_GOAL = 1.15
SCRIPTS = {
    "chain": """
async def main(latency: list[float]):
    for seconds in latency:
        await bench_nap(seconds=seconds)
""",
    "diamond": """
async def main(latency: list[float]):
    await bench_nap(seconds=latency[0])
    await parallel([task(bench_nap, seconds=seconds) for seconds in latency[1:-1]])
    await bench_nap(seconds=latency[-1])
""",
    "wide": """
async def main(latency: list[float]):
    await parallel([task(bench_nap, seconds=seconds) for seconds in latency[:-1]])
    await bench_nap(seconds=latency[-1])
""",
    "tasks": """
async def look(seconds: float):
    await bench_nap(seconds=seconds)
    return 1

async def main(latency: list[float]):
    return sum(await parallel([task(look, seconds=seconds) for seconds in latency]))
""",
}


def program(name: str, latency: tuple[float, ...]) -> dict[str, Any]:
    """Return a plan whose only node is the program."""
    node = {"id": "main", "kind": "program", "script": SCRIPTS[name], "arguments": {"latency": list(latency)}}
    return {"nodes": [node], "answer": "$main"}


async def _beside(built: Stage, shape: Shape) -> float:
    """Print a shape as a plan and as a program; return how much longer the program takes."""
    name = shape.name.split()[0]
    plans, programs = [], []
    for _ in range(REPEATS):
        plans.append((await built.timed(shape.plan()))[0])
        programs.append((await built.timed(program(name, shape.latency)))[0])
    plan, script = statistics.median(plans), statistics.median(programs)
    path = shape.critical_path
    print(f"{shape.name:<24}  plan {plan / path:6.3f}  program {script / path:6.3f}  program/plan {script / plan:6.3f}")
    return script / plan


async def _many(built: Stage, name: str, count: int) -> None:
    seconds, handle = await built.timed(program(name, (0.0,) * count))
    events, size, runs = 0, 0, 1
    run: str | None = (await handle.describe()).run_id
    while run:
        history = await built.client.get_workflow_handle(handle.id, run_id=run).fetch_history()
        events += len(history.events)
        size += sum(event.ByteSize() for event in history.events)
        run = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id or None
        runs += bool(run)
    each = f"{seconds / count * 1000:6.1f} ms  {events / count:5.1f} events  {size / count:6.0f} bytes"
    print(f"{name} of {count:>5,} calls: {seconds:7.1f} s in {runs} runs; a call: {each}")


async def main(counts: list[str]) -> int:
    """Print the table; 0 if a chain of calls takes little longer than the same chain as a plan."""
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            ratios = [await _beside(built, shape) for shape in (chain(30, 0.1), diamond(10, 0.5), wide(100, 0.2))]
            print()
            for count in map(int, counts or ("250", "500", "1000")):
                await _many(built, "chain", count)
                await _many(built, "tasks", count)
    return 0 if ratios[0] <= CHAIN_GOAL else 1
