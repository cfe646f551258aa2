"""`make bench ARGS=throughput`: runs and nodes a second with 1, 2 and 4 workers of each role, on Postgres.

Wall time depends on whatever else the machine does, so processor seconds stand beside it.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from benchmarks.load import ROLES, Spent, site, spend
from benchmarks.shapes import diamond
from sennit.folders import CORPUS

RUNS, AT_ONCE, WARM = 150, 40, 10
GOAL = {"goal": "Which is longer, the Nile or the Amazon?", "docs": str(CORPUS / "rivers"), "model": "offline"}
LOADS: dict[str, dict[str, Any]] = {
    "5 tools of 0 ms": {"plan": diamond(5, 0.0).plan()},
    "5 tools of 100 ms": {"plan": diamond(5, 0.1).plan()},
    "a goal, offline model": GOAL,
}


def row(workers: int, name: str, spent: Spent) -> str:
    """Return a line of the table: throughput, and processor milliseconds of a run."""
    rate = spent.runs / spent.seconds
    cpu = {each: f"{1000 * value:.0f}" for each, value in spent.cpu.items()}
    used = "".join(f"{cpu.get(each, '-'):>10}" for each in ("server", "postgres", *ROLES, "client"))
    speed = f"{rate:>8.1f}{rate * spent.nodes:>9.1f}{spent.slowest:>9.1f}"
    return f"{workers:>8}  {name:<22}{speed}{used}{spent.busy:>8.2f}"


async def main(arguments: Sequence[str]) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks throughput")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each load")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="processes of each role")
    options = parser.parse_args(arguments)
    names = "".join(f"{each:>10}" for each in ("server", "postgres", *ROLES, "client"))
    print(f"{'':<58}processor milliseconds a run")
    print(f"{'workers':>8}  {'load':<22}{'runs/s':>8}{'nodes/s':>9}{'slowest':>9}{names}{'cores':>8}")
    for workers in options.workers:
        async with site("postgres", workers) as built:
            for name, request in LOADS.items():
                await spend(built, request, WARM * workers, AT_ONCE)
                print(row(workers, name, await spend(built, request, options.runs, AT_ONCE)), flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0
