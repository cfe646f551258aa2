"""How long a run takes on a clock of its own, with what activities cost: to compare policies, not machines.

Each activity waits for the server, which starts one after the other, and takes a hop more than its calls; the calls of
a shared one run side by side, and cost a little each.
"""

import random
from heapq import heappop, heappush
from zlib import crc32

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.nodes import Fuse
from sennit.workflows.plan.scheduling.events import End, Event, NodeEnded, Outcome, RunStarted, Start, TimeAdvanced
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step

HOP, TURN, CALL = 25.0, 8.0, 1.0
"""Milliseconds of a hop, of the server for each activity, and of a worker for each call."""


def random_plan(seed: int) -> ExecutionPlan:
    """Return a plan of up to 60 calls, in layers. In half of the plans some are long, write, or feed an early join; in
    half the last node is the answer, and nobody reads what it does not need.
    """
    draw = random.Random(seed)
    specs: list[NodeSpec] = []
    width, is_mixed = draw.choice((1, 3, 10, 30)), draw.random() < 0.5
    for index in range(draw.randint(2, 60)):
        kind = draw.random() if is_mixed else 1.0
        spec = NodeSpec(f"n{index}", "tool", tool="quick", typical=draw.choice((10, 50, 200)), rank=60 - index)
        before = range(max(0, index - 2 * width), index // width * width)
        spec.needs = sorted(draw.sample(before, min(len(before), draw.randint(0, 3)))) if before else []
        if kind < 0.1:
            spec.tool, spec.typical = "slow", 3_000
        elif kind < 0.2:
            spec.effect = "write"
        elif kind < 0.3 and spec.needs:
            spec.kind, spec.inputs, spec.needs = "join", spec.needs, []
            spec.policy = draw.choice(("all", "settled", "first"))
        specs.append(spec)
    read = {need: True for spec in specs for need in (*spec.needs, *spec.inputs)}
    ends = [index for index in range(len(specs)) if index not in read]
    specs.append(NodeSpec("end", draw.choice(("tool", "llm")), needs=ends if draw.random() < 0.5 else ends[-1:]))
    if specs[-1].kind == "tool":
        specs[-1].tool, specs[-1].typical = "quick", 50
    return ExecutionPlan(specs, [len(specs) - 1])


def latencies(plan: ExecutionPlan, seed: int) -> list[float]:
    """Return how long each call takes: about as long as usual, and one of fifty ten times that."""
    draw = random.Random(seed)
    usual = [0.0 if spec.kind == "join" else float(spec.typical or 500) for spec in plan.specs]
    return [each * draw.lognormvariate(0, 0.4) * (10 if draw.random() < 0.02 else 1) for each in usual]


class Pace:
    """One run of a plan."""

    def __init__(self, plan: ExecutionPlan, latency: list[float], fuse: Fuse, *, workers: int = 1) -> None:
        self.state = RunState(Graph(plan), timings=Timings(fuse, {"": workers}))
        self._latency = latency
        self._calendar: list[tuple[float, int, tuple[int, ...]]] = []
        self._turn = 0.0
        self.activities = 0
        self.now = 0.0

    def run(self) -> float:
        """Return the milliseconds until the run has ended."""
        is_over = self._act(RunStarted())
        while not is_over:
            self.now, _, units = heappop(self._calendar)
            for unit in units:
                generation, digest = self.state.units[unit].generation, self._digest(unit)
                is_over = self._act(NodeEnded(unit, generation, Outcome(digest, 1), more=len(units) > 1)) or is_over
            is_over = (len(units) > 1 and self._act(TimeAdvanced())) or is_over
        return self.now

    def _act(self, event: Event) -> bool:
        decisions = step(self.state, event, round(self.now))
        for decision in decisions:
            if isinstance(decision, Start):
                self.activities += 1
                self._turn = max(self._turn, self.now) + TURN
                ends = self._turn + HOP + self._takes(decision.units)
                heappush(self._calendar, (ends, self.activities, decision.units))
        return any(isinstance(decision, End) for decision in decisions)

    def _takes(self, units: tuple[int, ...]) -> float:
        ends: dict[int, float] = {}
        for unit in units:
            before = [ends[dep] for dep in self.state.graph.deps[unit] if dep in ends]
            ends[unit] = max(before, default=0.0) + self._latency[unit]
        return max(ends.values()) + CALL * len(units)

    def _digest(self, unit: int) -> str:
        spec = self.state.graph.specs[unit]
        read = [*spec.needs, *((self.state.units[unit].chosen or ()) if spec.policy != "first" and spec.inputs else ())]
        return f"{crc32(repr((spec.id, [self.state.units[node].digest for node in read])).encode()):08x}"
