"""The scheduler alone: events a second, and whether an event costs the same in a large plan as in a small one.

Goals: at least 50,000 events a second, and at most 1.5 times the time per event at 10,000 nodes as at 1,000.
"""

import gc
import random
import time
from collections import deque
from typing import Any

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import Decision, NodeEnded, Outcome, RunStarted, Start
from sennit.workflows.plan.scheduling.state import SUCCEEDED, RunState
from sennit.workflows.plan.scheduling.step import step

SIZES = (1_000, 10_000)
REPEATS = 7
LAYERS = 20
GOAL_RATE = 50_000
GOAL_RATIO = 1.5


def layered(count: int, *, layers: int = LAYERS, seed: int = 7) -> Graph:
    """A random graph in layers; each node needs one to three of the layer before. The answer is the last node."""
    numbers = random.Random(seed)
    width = count // layers
    specs = []
    for index in range(count):
        layer = min(index // width, layers - 1)
        above = range((layer - 1) * width, layer * width)
        needs = sorted({numbers.choice(above) for _ in range(numbers.randint(1, 3))}) if layer else []
        specs.append(NodeSpec(f"n{index}", "tool", needs=needs, rank=layers - layer))
    return Graph(ExecutionPlan(specs, [count - 1]))


def run(graph: Graph, window: int = 100) -> float:
    """Run a plan in which every call succeeds at once; return the seconds spent in `step` per event."""
    state = RunState(graph, window=window)
    outcomes = [Outcome(f"{index:032x}", 100) for index in range(len(graph.specs))]
    running: deque[int] = deque()
    events = 1
    began = time.perf_counter()
    _take(running, step(state, RunStarted()))
    while running:
        unit = running.popleft()
        _take(running, step(state, NodeEnded(unit, 1, outcomes[unit])))
        events += 1
    seconds = time.perf_counter() - began
    if len(state.units_in(SUCCEEDED)) != len(graph.specs):
        raise RuntimeError("the run did not finish; its times mean nothing")
    return seconds / events


def _take(running: deque[int], decisions: list[Decision]) -> None:
    for decision in decisions:
        if isinstance(decision, Start):
            running.extend(decision.units)


def measure() -> dict[str, Any]:
    """Return events a second by size, the best of several repeats, and the ratio of the times per event."""
    best: dict[int, float] = {}
    graphs = {size: layered(size) for size in SIZES}
    gc.collect()
    gc.disable()
    try:
        for _ in range(REPEATS):
            for size, graph in graphs.items():
                best[size] = min(best.get(size, 1.0), run(graph))
    finally:
        gc.enable()
    ratio = best[SIZES[-1]] / best[SIZES[0]]
    rates = {size: round(1 / seconds) for size, seconds in best.items()}
    met = min(rates.values()) >= GOAL_RATE and ratio <= GOAL_RATIO
    return {"events_per_second": rates, "ratio": round(ratio, 2), "met": met}


def table(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [f"{'nodes':>8} {'events/s':>10}   (goal >= {GOAL_RATE:,})"]
    lines += [f"{size:>8,} {rate:>10,}" for size, rate in found["events_per_second"].items()]
    return "\n".join([*lines, f"time per event, large to small: {found['ratio']:.2f}   (goal <= {GOAL_RATIO})"])


if __name__ == "__main__":
    print(table(measure()))
