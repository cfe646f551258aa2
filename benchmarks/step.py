"""The scheduler alone: events a second, and whether an event costs the same in a large plan as
in a small one: in a plan in layers, where all nodes want one lock, and where a budget lets few
calls through at once.

Goals: at least 50,000 events a second in layers, and at most 1.5 times the time per event at
10,000 nodes as at 1,000.
"""

import gc
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from sennit.workflows.plan.compile.execution_plan import EXCLUSIVE, ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.budget import Budget
from sennit.workflows.plan.scheduling.events import Decision, NodeEnded, Outcome, RunStarted, Start
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.unit import SUCCEEDED

SIZES = (1_000, 10_000)
REPEATS = 7
LAYERS = 20
GOAL_RATE = 50_000
GOAL_RATIO = 1.5


def layered(count: int, *, layers: int = LAYERS, seed: int = 7) -> Graph:
    """A random graph in layers; each node needs one to three of the layer before. The
    answer is the last node.
    """
    numbers = random.Random(seed)
    width = count // layers
    specs = []
    for index in range(count):
        layer = min(index // width, layers - 1)
        above = range((layer - 1) * width, layer * width)
        needs = (
            sorted({numbers.choice(above) for _ in range(numbers.randint(1, 3))}) if layer else []
        )
        specs.append(NodeSpec(f"n{index}", "tool", needs=needs, rank=layers - layer))
    return Graph(ExecutionPlan(specs, [count - 1]))


def locked(count: int) -> Graph:
    """Nodes side by side that want one lock alone."""
    specs = [NodeSpec(f"n{index}", "tool", locks=[("file", EXCLUSIVE)]) for index in range(count)]
    return Graph(ExecutionPlan(specs, [count - 1]))


def calls(count: int) -> Graph:
    """Model calls side by side, each of which reserves a hundred tokens."""
    specs = [NodeSpec(f"n{index}", "llm", tokens=100) for index in range(count)]
    return Graph(ExecutionPlan(specs, [count - 1]))


def run(graph: Graph, window: int = 100, limits: dict[str, int] | None = None) -> float:
    """Run a plan in which every call succeeds at once; return the seconds
    spent in `step` per event.
    """
    state = RunState(graph, window=window)
    state.budget = Budget(limits) if limits else None
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
    """Return events a second by shape and size, the best of several repeats, and the ratio
    of the times per event.
    """
    shapes = {
        "layers": Shape(layered),
        "one lock": Shape(locked),
        "a budget": Shape(calls, {"tokens": 2_000}),
    }
    found = {name: _measured(shape) for name, shape in shapes.items()}
    is_fast = min(found["layers"].rates.values()) >= GOAL_RATE
    is_even = all(each.ratio <= GOAL_RATIO for each in found.values())
    return {"shapes": found, "met": is_fast and is_even}


class Shape(NamedTuple):
    """A plan by its number of nodes, and the limits that its run has."""

    graph: Callable[[int], Graph]
    limits: dict[str, int] | None = None


class Speed(NamedTuple):
    """Events a second by the number of nodes, and how much longer an event
    takes in the largest plan.
    """

    rates: dict[int, int]
    ratio: float


def _measured(shape: Shape) -> Speed:
    best: dict[int, float] = {}
    graphs = {size: shape.graph(size) for size in SIZES}
    gc.collect()
    gc.disable()
    try:
        for _ in range(REPEATS):
            for size, graph in graphs.items():
                best[size] = min(best.get(size, 1.0), run(graph, limits=shape.limits))
    finally:
        gc.enable()
    rates = {size: round(1 / seconds) for size, seconds in best.items()}
    return Speed(rates, round(best[SIZES[-1]] / best[SIZES[0]], 2))


def table(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    sizes = " ".join(f"{size:>8,}" for size in SIZES)
    lines = [
        f"{'events/s, nodes':<16} {sizes}   time per event, large to small (goal <= {GOAL_RATIO})"
    ]
    for name, speed in found["shapes"].items():
        rates = " ".join(f"{rate:>8,}" for rate in speed.rates.values())
        goal = f"   (goal >= {GOAL_RATE:,})" if name == "layers" else ""
        lines.append(f"{name:<16} {rates}   {speed.ratio:.2f}{goal}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
