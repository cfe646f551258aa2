"""A run whose program is at its first step, and the pages that its steps give."""

from typing import Any

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import NodeEnded, NodesAppended, Outcome, RunStarted
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step


def begun() -> RunState:
    """A run that has begun with its program."""
    state = RunState(Graph(ExecutionPlan([NodeSpec("main", "program", policy="any")], [0], "park", "auto", True)))
    step(state, RunStarted())
    return state


def added(state: RunState, maker: int, *specs: NodeSpec) -> None:
    """The node `maker` goes on with these nodes, and waits for nothing else than the last one names."""
    ended = NodeEnded(maker, state.generation[maker], Outcome("s", delegated=True))
    past = tuple(node for node in state.graph.specs[maker].inputs if node not in specs[-1].inputs)
    step(state, NodesAppended(ExecutionPlan(list(specs), []), ended, past=past))


def paged(name: str, kind: Any = "tool", **fields: Any) -> NodeSpec:
    """A node of a page."""
    return NodeSpec(name, kind, page="p", **fields)


def restored(state: RunState) -> RunState:
    """The run as another process goes on with it."""
    return load(Graph(ExecutionPlan.unpack(state.graph.execution_plan.pack())), dump(state))
