"""`make bench ARGS=programs`: shapes as programs beside the same graphs as plans, and programs of very many calls."""

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.growth import growth, histories
from benchmarks.load import Site, site
from benchmarks.shapes import Shape, chain, diamond, layered, pairs, tree, wide
from benchmarks.stage import Stage, stage

REPEATS = 5
CHAIN_GOAL = 1.15
LAYERS = 10
SHAPES = (
    chain(30, 0.1), diamond(10, 0.5), layered(200, LAYERS), wide(100, 0.2), pairs(10, 0.3), tree(16, 0.3),
)  # fmt: skip
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
    "layers": f"""
async def main(latency: list[float]):
    width = len(latency) // {LAYERS}
    for start in range(0, len(latency), width):
        await parallel([task(bench_nap, seconds=seconds) for seconds in latency[start : start + width]])
""",
    "wide": """
async def main(latency: list[float]):
    await parallel([task(bench_nap, seconds=seconds) for seconds in latency[:-1]])
    await bench_nap(seconds=latency[-1])
""",
    "pairs": """
async def nap(seconds: float) -> float:
    return await bench_nap(seconds=seconds)

async def main(latency: list[float]):
    await pipeline(latency[:-1:2], nap, nap)
    await bench_nap(seconds=latency[-1])
""",
    "tree": """
async def merge(latency: list[float]):
    half = len(latency) // 2
    if half:
        await parallel([task(merge, latency=latency[:half]), task(merge, latency=latency[half:])])
    await bench_nap(seconds=latency[0])

async def main(latency: list[float]):
    await merge(latency[: (len(latency) + 1) // 2])
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
    plans, programs = [], []
    for _ in range(REPEATS):
        plans.append((await built.timed(shape.plan()))[0])
        programs.append((await built.timed(program(shape.name.split()[0], shape.latency)))[0])
    plan, script = statistics.median(plans), statistics.median(programs)
    path = shape.critical_path
    row = f"{shape.name:<27}  plan {plan / path:6.3f}  program {script / path:6.3f}  program/plan {script / plan:6.3f}"
    print(row, flush=True)
    return script / plan


async def _many(built: Site, name: str, count: int) -> None:
    """Print what a program of so many calls takes, on workers that have run a small one before."""
    runs = Stage(built.client, built.place)
    await runs.timed(program(name, (0.0,) * 20))
    measured = {role: built.processes[role] for role in ("workflow", "tools")}  # those that advance programs
    (seconds, handle), grown = await growth(measured, runs.timed(program(name, (0.0,) * count)))
    left = await histories(built.client, handle)
    each = f"{seconds / count * 1000:6.1f} ms  {left.events / count:5.1f} events  {left.size / count:6.0f} bytes"
    memory = "  ".join(f"{role} {before:.0f} +{most - before:.0f} MB" for role, (before, most) in grown.items())
    print(f"{name} of {count:>5,} calls: {seconds:7.1f} s in {left.runs} runs; a call: {each};  {memory}", flush=True)


async def main(counts: list[str]) -> int:
    """Print the table; 0 if a chain of calls takes little longer than the same chain as a plan."""
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            ratios = [await _beside(built, shape) for shape in SHAPES]
    print()
    for count in map(int, counts or ("250", "500", "1000")):
        for name in ("chain", "tasks"):
            async with site("dev", 1) as fresh:
                await _many(fresh, name, count)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return 0 if ratios[0] <= CHAIN_GOAL else 1
