"""`make bench ARGS=capacity`: what N runs of M nodes a day need, as a part for each run and a part for each node.

A node's part is the slope from runs of 4 to runs of 30 nodes, on Temporal with Postgres. A run has one of two bases: it
brings its plan, or it has a goal that is planned first. What comes of it is checked against runs of other sizes.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.load import Spent, idle, site, spend
from benchmarks.shapes import layered
from benchmarks.throughput import AT_ONCE, GOAL

NODES = 2000
"""Each load has about so many."""
UNITS = {"events": 1.0, "workflow tasks": 1.0, "actions": 1.0, "database, KB": 1e3, "database's log, KB": 1e3,
         "artifact files": 1.0, "artifacts, KB": 1e3, "artifacts on disk, KB": 1e3, "server, ms": 1e-3,
         "postgres, ms": 1e-3, "workflow, ms": 1e-3, "tools, ms": 1e-3, "llm, ms": 1e-3}  # fmt: skip
LOADS: dict[str, tuple[int, dict[str, Any]]] = {
    "plan of 4": (4, {"plan": layered(4, 2).plan()}),
    "plan of 30": (30, {"plan": layered(30, 6).plan()}),
    "goal of 5": (5, GOAL),
    "plan of 12": (12, {"plan": layered(12, 4, seed=8).plan()}),
    "goal of 9": (9, {**GOAL, "goal": "Which is longest, the Nile, the Amazon, the Danube or the Rhine?"}),
}
DAYS = ((1_000_000, 5), (1_000_000, 20), (10_000_000, 5), (10_000_000, 20))
Amounts = dict[str, float]


def amounts(spent: Spent, idle: Amounts) -> Amounts:
    """Return what a run took beyond what idle processes take, in the units that are shown."""
    cpu = {name: used - idle[name] * spent.seconds / spent.runs for name, used in spent.cpu.items()}
    found = {**cpu, **spent.stored, **spent.counts}
    keys = {name: name.partition(",")[0] for name in UNITS}
    keys |= {"database's log, KB": "log", "artifact files": "files", "artifacts on disk, KB": "disk"}
    return {name: found[keys[name]] / unit for name, unit in UNITS.items()}


@dataclass(frozen=True, slots=True)
class Model:
    """What a node takes, what a run takes that brings its plan, and one that has a goal."""

    node: Amounts
    plan: Amounts
    goal: Amounts

    @classmethod
    def of(cls, sizes: Sequence[int], low: Amounts, high: Amounts, goal: Amounts) -> "Model":
        """Draw the line through two measurements, and its parallel through the third."""
        node = {name: (high[name] - low[name]) / (sizes[1] - sizes[0]) for name in UNITS}
        bases = [{name: each[name] - node[name] * size for name in UNITS}
                 for each, size in ((low, sizes[0]), (goal, sizes[2]))]  # fmt: skip
        return cls(node, *bases)

    def run(self, nodes: int, *, planned: bool) -> Amounts:
        """Return what a run of so many nodes takes."""
        base = self.goal if planned else self.plan
        return {name: base[name] + self.node[name] * nodes for name in UNITS}


def print_model(model: Model, sizes: Sequence[int], plan: Amounts, goal: Amounts) -> None:
    """Print the parts, and by how much they miss two measurements that they were not taken from."""
    checks = f"   plan of {sizes[0]:<3}   goal of {sizes[1]}"
    print(f"{'':<24}{'each plan':>10}{'each goal':>10}{'each node':>10}{checks}")
    for name in UNITS:
        off = ""
        for spent, nodes in ((plan, sizes[0]), (goal, sizes[1])):
            found, expected = spent[name], model.run(nodes, planned=spent is goal)[name]
            off += f"{found:>9.1f} {f'({100 * (expected - found) / found:+.0f} %)' if found > 0.2 else '':<9}"
        parts = "".join(f"{part[name]:>10.2f}" for part in (model.plan, model.goal, model.node))
        print(f"{name:<24}{parts}{off}".rstrip())


def print_days(model: Model) -> None:
    """Print what days of many runs need."""
    print(f"\n{'goals a day x nodes':<24}" + "".join(f"{f'{runs / 1e6:.0f} M x {nodes}':>12}" for runs, nodes in DAYS))
    days = [(runs, model.run(nodes, planned=True)) for runs, nodes in DAYS]
    rows = {"runs a second": [runs / 86_400 for runs, _ in days]}
    for name in UNITS:
        what, _, unit = name.partition(", ")
        label, scale = {"KB": (f"{what}, GB", 1e6), "ms": (f"{what}, cores", 86_400e3)}.get(unit, (f"{what}, M", 1e6))
        rows[label] = [runs * run[name] / scale for runs, run in days]
    for name, values in rows.items():
        print(f"{name:<24}" + "".join(f"{value:>12,.1f}" for value in values))


async def main(arguments: Sequence[str]) -> int:
    """Measure, and print the model and what it says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks capacity")
    parser.add_argument("--nodes", type=int, default=NODES, help="nodes of each load, in all")
    options = parser.parse_args(arguments)
    found = []
    async with site("postgres", 1) as built:
        for _, request in LOADS.values():
            await spend(built, request, 10, AT_ONCE)  # what comes first loads what later ones find
        resting = await idle(built)
        for nodes, request in LOADS.values():
            found.append(await spend(built, request, options.nodes // nodes, AT_ONCE))
    each, sizes = [amounts(spent, resting) for spent in found], [spent.nodes for spent in found]
    model = Model.of(sizes, *each[:3])
    print_model(model, sizes[3:], *each[3:])
    print("cores when idle: " + ", ".join(f"{name} {cores:.3f}" for name, cores in resting.items()))
    print_days(model)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0
