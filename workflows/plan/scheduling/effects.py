"""What a person's repair may do twice: writes that have happened, or may have, and that would run again."""

import re

from workflows.plan.scheduling import retry
from workflows.plan.scheduling.state import RUNNING, SUCCEEDED, RunState

_UNSURE = (
    "UnknownOutcome",
    "WorkerLost",
    "StoreUnavailable",
    "NodeTimeout",
    "OutputRefused",
    "SubAgentFailed",
    "RunFailed",
)
"""Failures of what may have written all the same."""
_TURN = re.compile(r"(?P<stem>.*t)(?P<number>\d+)\Z")


def repeated(state: RunState, unit: int) -> list[int]:
    """Return the nodes that may write again what they wrote if a person has this unit run again, in the order found.

    A node writes where its tool or a tool of its sub-agent does; of a map, its items; what a tool loop has called is
    what its model may call again.
    """
    node = state.node_of(unit)
    own = [node] if any(_may_have_written(state, each) for each in retry.again(state, unit)) else []
    return own + [
        other for other in _after(state, node) if any(_may_have_written(state, each) for each in _units(state, other))
    ]


def _units(state: RunState, node: int) -> tuple[int, ...]:
    """Return what does a node's work: itself, or a map's items."""
    return tuple(state.items.get(node, ())) if state.graph.specs[node].kind == "map" else (node,)


def _may_have_written(state: RunState, unit: int) -> bool:
    """Whether a unit writes, and has, or does now, or ended so that nobody knows."""
    if state.spec_of(unit).effect != "write":
        return False
    status, note = state.status[unit], state.notes.get(unit, ("",))[0]
    return status == RUNNING or note in _UNSURE or (status == SUCCEEDED and not note)


def _after(state: RunState, node: int) -> list[int]:
    """Return everything that may run again when a node does, in the order found.

    What a node's stand-in has done is done again with it. A node whose stand-in runs again does not run itself.
    """
    graph = state.graph
    found = {(node, True): True}
    stack = [(node, True)]
    while stack:
        here, runs = stack.pop()
        standin, host = graph.specs[here].instead, graph.fallback_for.get(here)
        others = [*graph.consumers[here], *graph.joins[here]]
        if runs and standin >= 0:
            others += [standin, *_calls(state, standin)]
        for other in [(each, True) for each in others] + ([] if host is None else [(host, False)]):
            if other not in found:
                found[other] = True
                stack.append(other)
    return [other for other, runs in found if runs and other != node]


def _calls(state: RunState, turn: int) -> list[int]:
    """Return the calls that led to a turn of a tool loop: `n7_t1_all` joins those before `n7_t2`."""
    graph = state.graph
    found = _TURN.match(graph.specs[turn].id)
    join = graph.by_id.get(f"{found['stem']}{int(found['number']) - 1}_all") if found else None
    return graph.specs[join].inputs if join is not None else []
