"""What a run hands to the next one of its chain stays far below what a payload may have."""

import hashlib
import random

import pytest

from workflows.plan.compile.graph import ExecutionPlan, Graph, NodeSpec
from workflows.plan.scheduling.admission import append_items
from workflows.plan.scheduling.snapshot import dump, load
from workflows.plan.scheduling.state import FAILED, SUCCEEDED, RunState

NODES = 10_000


def state_of_ten_thousand(*, items: bool) -> RunState:
    """Return a run as it is after 10,000 nodes, or items of one map, with digests and times as they come."""
    chance = random.Random(7)
    if items:
        specs = [NodeSpec("list", "tool"), NodeSpec("m", "map", over=(0, "items.length"), cap=NODES)]
    else:
        specs = [NodeSpec(f"node_{index}", "tool", needs=[index - 1] if index else []) for index in range(NODES)]
    state = RunState(Graph(ExecutionPlan(specs, [len(specs) - 1], "park")))
    state.now = 1_795_000_000_000
    if items:
        append_items(state, 1, NODES)
    for unit in range(len(state.status)):
        state.status[unit] = SUCCEEDED if chance.random() < 0.99 else FAILED
        state.digest[unit] = hashlib.sha256(str(unit).encode()).hexdigest()[:40]
        state.size[unit] = chance.randrange(20, 20_000)
        state.millis[unit] = chance.randrange(5, 60_000)
        state.attempts[unit] = 1 + (chance.random() < 0.05)
        if state.status[unit] == FAILED:
            state.notes[unit] = ("ToolError", f"the server said {chance.randrange(400, 600)} to request {unit}")
    return state


@pytest.mark.parametrize("items", [False, True], ids=["nodes", "items"])
def test_ten_thousand_nodes_take_at_most_forty_bytes_each(items: bool) -> None:
    state = state_of_ten_thousand(items=items)
    text = dump(state)
    print(f"{len(text) / NODES:.1f} bytes a node")
    assert len(text) <= 40 * NODES
    again = load(state.graph, text)
    assert dump(again) == text
