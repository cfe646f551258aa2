"""`make bench ARGS=programs`: shapes as programs, as plans, and as the same scripts in asyncio
alone; and programs of very many calls.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.growth import growth, histories
from benchmarks.load import Site, site
from benchmarks.shapes import Shape, chain, diamond, layered, pairs, tree, wide
from benchmarks.stage import Stage, stage

REPEATS = 5
LAYERS = 10


class Row(NamedTuple):
    """A shape, the script that has it, the tool that it calls, and how much longer than
    asyncio a run may take.
    """

    shape: Shape
    script: str
    tool: str
    goal: float = 0.0


ROWS = (
    Row(chain(30, 0.1), "chain", "nap_100", 1.10),
    Row(diamond(10, 0.5), "diamond", "nap_500", 1.08),
    Row(wide(100, 0.2), "gathered", "nap_200", 1.6),
    Row(wide(100, 0.2), "wide", "nap_200", 1.6),
    Row(layered(200, LAYERS, seconds=0.1), "layers", "nap_100", 1.4),
    Row(pairs(10, 0.3), "pairs", "nap_200"),
    Row(tree(16, 0.3), "tree", "nap_200"),
)
MANY = {"chain": (0.0, 3.0), "side": (0.05, 2.0), "tasks": (0.0, 0.0)}
"""Programs of very many calls: how long each takes, and all 1,000 may take, in
seconds; 0 for no goal.
"""
SCRIPTS = {
    "chain": """
async def main(latency: list[float]):
    for seconds in latency:
        await nap(seconds=seconds)
""",
    "diamond": """
async def main(latency: list[float]):
    await nap(seconds=latency[0])
    await parallel([task(nap, seconds=seconds) for seconds in latency[1:-1]])
    await nap(seconds=latency[-1])
""",
    "layers": f"""
async def main(latency: list[float]):
    width = len(latency) // {LAYERS}
    for start in range(0, len(latency), width):
        await parallel([task(nap, seconds=seconds) for seconds in latency[start : start + width]])
""",
    "wide": """
async def main(latency: list[float]):
    await parallel([task(nap, seconds=seconds) for seconds in latency[:-1]])
    await nap(seconds=latency[-1])
""",
    "gathered": """
import asyncio

async def main(latency: list[float]):
    await asyncio.gather(*[nap(seconds=seconds) for seconds in latency[:-1]])
    await nap(seconds=latency[-1])
""",
    "side": """
import asyncio

async def main(latency: list[float]):
    await asyncio.gather(*[nap(seconds=seconds) for seconds in latency])
""",
    "pairs": """
async def one(seconds: float) -> float:
    return await nap(seconds=seconds)

async def main(latency: list[float]):
    await pipeline(latency[:-1:2], one, one)
    await nap(seconds=latency[-1])
""",
    "tree": """
async def merge(latency: list[float]):
    half = len(latency) // 2
    if half:
        await parallel([task(merge, latency=latency[:half]), task(merge, latency=latency[half:])])
    await nap(seconds=latency[0])

async def main(latency: list[float]):
    await merge(latency[: (len(latency) + 1) // 2])
""",
    "tasks": """
async def look(seconds: float):
    await nap(seconds=seconds)
    return 1

async def main(latency: list[float]):
    return sum(await parallel([task(look, seconds=seconds) for seconds in latency]))
""",
}
PLAIN = """
import asyncio

async def nap(seconds):
    await asyncio.sleep(seconds)
    return seconds

def task(function, **arguments):
    return asyncio.ensure_future(function(**arguments))

async def parallel(tickets):
    return await asyncio.gather(*tickets)

async def pipeline(items, *stages):
    async def one(item):
        for stage in stages:
            item = await stage(item)
        return item
    return await asyncio.gather(*map(one, items))
"""
"""The words of programs, in asyncio."""


def program(row: str, latency: tuple[float, ...], tool: str) -> dict[str, Any]:
    """Return a plan whose only node is the program."""
    script = SCRIPTS[row].replace("nap(", f"{tool}(").replace("nap,", f"{tool},")
    node = {
        "id": "main",
        "kind": "program",
        "script": script,
        "arguments": {"latency": list(latency)},
    }
    return {"nodes": [node], "answer": "$main"}


async def plainly(row: str, latency: tuple[float, ...]) -> float:
    """Return how long the script takes in asyncio alone."""
    names: dict[str, Any] = {}
    exec(PLAIN + SCRIPTS[row], names)
    run: Callable[[list[float]], Awaitable[Any]] = names["main"]
    began = time.perf_counter()
    await run(list(latency))
    return time.perf_counter() - began


async def _beside(built: Stage, row: Row) -> bool:
    """Print a shape as a script in asyncio, as a plan and as a program; return whether the
    program meets its goal.
    """
    plain, plans, programs = [], [], []
    shape = row.shape
    for _ in range(REPEATS):
        plain.append(await plainly(row.script, shape.latency))
        plans.append((await built.timed(shape.plan(row.tool)))[0])
        programs.append((await built.timed(program(row.script, shape.latency, row.tool)))[0])
    alone, plan, script = map(statistics.median, (plain, plans, programs))
    goal = f"  goal {row.goal:4.2f}" if row.goal else ""
    print(
        f"{shape.name:<26} {row.script:<9} asyncio {alone:6.3f} s  plan {plan:6.3f} s  program "
        f"{script:6.3f} s  program/asyncio {script / alone:6.3f}{goal}",
        flush=True,
    )
    return not row.goal or script / alone <= row.goal


async def _many(built: Site, name: str, count: int) -> bool:
    """Print what a program of so many calls takes, on workers that have run a small one before."""
    runs, (latency, goal) = Stage(built.client, built.place), MANY[name]
    alone = await plainly(name, (latency,) * count)
    await runs.timed(program(name, (latency,) * 20, "nap_50"))
    # Those that advance programs.
    measured = {role: built.processes[role] for role in ("workflow", "tools")}
    (seconds, handle), grown = await growth(
        measured, runs.timed(program(name, (latency,) * count, "nap_50"))
    )
    left = await histories(built.client, handle)
    each = (
        f"{seconds / count * 1000:6.1f} ms  {left.events / count:5.1f} events  "
        f"{left.size / count:6.0f} bytes"
    )
    memory = "  ".join(
        f"{role} {before:.0f} +{most - before:.0f} MB" for role, (before, most) in grown.items()
    )
    said = (
        f"{name} of {count:>5,} calls: {seconds:7.1f} s (asyncio {alone:.2f} s) in {left.runs} runs"
    )
    print(f"{said}; a call: {each};  {memory}", flush=True)
    return not goal or count != 1000 or seconds <= goal


async def main(counts: list[str]) -> int:
    """Print the table; 0 if every program meets its goal."""
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            good = [await _beside(built, row) for row in ROWS]
    print()
    for count in map(int, counts or ("250", "1000")):
        for name in MANY:
            async with site() as fresh:
                good.append(await _many(fresh, name, count))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return 0 if all(good) else 1
