"""The board alone: how long a workflow task takes to draw it, and how long it is.

Goals: at most 20 ms at 500 nodes; at most 6 KB up to 40 nodes and 24 KB ever,
as the web UI sends it.
"""

import gc
import time
from typing import Any

from benchmarks.step import layered
from sennit.workflows.limits import MAX_BOARD_BYTES
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import NodeEnded, Outcome, RunStarted, Start
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.views.board import board, sent_bytes
from sennit.workflows.views.shown_run import ShownRun

SIZES = (20, 40, 60, 500, 10_000)
REPEATS = 15
GOAL_MILLIS = {500: 20.0}
GOAL_BYTES = 6 * 1024


def half_run(graph: Graph) -> RunState:
    """Return a run in which half of the nodes have succeeded."""
    state = RunState(graph)
    decisions, left = step(state, RunStarted()), len(graph.specs) // 2
    while left and decisions:
        units = [
            unit for decision in decisions if isinstance(decision, Start) for unit in decision.units
        ]
        decisions = []
        for unit in units:
            decisions += step(state, NodeEnded(unit, 1, Outcome(f"{unit:032x}", 100)))
            left = max(0, left - 1)
    return state


def measure() -> dict[str, Any]:
    """Return for each size the milliseconds of the first drawing and of a later one, and
    its bytes plain and sent.
    """
    rows = {}
    for size in SIZES:
        graph = layered(size, layers=8)
        for index, spec in enumerate(graph.specs):
            spec.summary = f'{spec.id} search "topic number {index}" <- n1,n2'
        state = half_run(graph)
        gc.collect()
        first, text = _timed(state)
        later = min(_timed(state)[0] for _ in range(REPEATS))
        rows[size] = (first, later, len(text.encode()), sent_bytes(text))
    met = all(first <= GOAL_MILLIS.get(size, first) for size, (first, *_) in rows.items())
    met = met and all(plain <= GOAL_BYTES for size, (*_, plain, _) in rows.items() if size <= 40)
    return {"rows": rows, "met": met and all(row[3] <= MAX_BOARD_BYTES for row in rows.values())}


def _timed(state: RunState) -> tuple[float, str]:
    began = time.perf_counter()
    shown = ShownRun(state, "agent-which-is-longer-the-nile-or-the-amazon-1a2b3c4d")
    text = board(shown, title="running: a question")
    return (time.perf_counter() - began) * 1000, text


def table(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [
        (
            f"{'nodes':>8} {'first ms':>9} {'later ms':>9} {'bytes':>7} {'sent':>7}   "
            "(500 nodes <= 20 ms, 40 <= 6 KB)"
        )
    ]
    lines += [
        f"{size:>8,} {one:>9.1f} {two:>9.1f} {plain:>7,} {full:>7,}"
        for size, (one, two, plain, full) in found["rows"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
