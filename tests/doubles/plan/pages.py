"""A run whose program is at its first advance, and what its advances give."""

from typing import Any

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.events import Decision, NodeEnded, Outcome, ProgramAdvanced, RunStarted
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step


def begun() -> RunState:
    """A run that has begun with its program."""
    state = RunState(Graph(ExecutionPlan([NodeSpec("main", "program")], [0], "park", "auto", True)))
    step(state, RunStarted())
    return state


def added(state: RunState, *specs: NodeSpec, program: int = 0, **told: Any) -> list[Decision]:
    """A program goes on with these calls. The last one is none: its id says where the script stands then, and its
    inputs for which calls it waits; it waits for no others.
    """
    return step(state, advanced(state, *specs, program=program, **told))


def advanced(state: RunState, *specs: NodeSpec, program: int = 0, **told: Any) -> ProgramAdvanced:
    """What `added` has the scheduler take."""
    *calls, following = specs
    ended = NodeEnded(program, state.units[program].generation, Outcome("s", delegated=True))
    session = state.sessions[program]
    told.setdefault("past", tuple(call for call in session.waits if call not in following.inputs))
    waits = tuple(call for call in following.inputs if call not in session.waits)
    return ProgramAdvanced(ended, calls, following.id, waits, **told)


def paged(name: str, kind: Any = "tool", **fields: Any) -> NodeSpec:
    """A node of a page."""
    return NodeSpec(name, kind, page="p", **fields)


def restored(state: RunState) -> RunState:
    """The run as another process goes on with it."""
    return load(Graph(ExecutionPlan.unpack(state.graph.execution_plan.pack())), dump(state))
