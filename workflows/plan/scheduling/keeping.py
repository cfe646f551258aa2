"""Another plan in the place of the one that runs: what both do alike is not done again."""

from collections.abc import Iterable, Mapping
from typing import Any

from workflows.plan.compile.graph import Graph
from workflows.plan.scheduling import admission, completion, maps, ready
from workflows.plan.scheduling.budget import Budget
from workflows.plan.scheduling.state import OVERTIME, RUNNING, SUCCEEDED, RunState


def replaced(
    old: RunState, graph: Graph, alike: Mapping[int, int], facts: Mapping[int, dict[str, Any]]
) -> tuple[RunState, dict[int, int]]:
    """Return the state of a run that goes on with another plan, not begun, and the new number of each unit that it
    keeps: what has succeeded, maps with their items, and single calls that run.

    `alike` maps calls of `graph` to old ones that do the same, none twice. One is kept if all that it depends on is
    kept and has succeeded; not if it failed and has a value all the same, nor a stand-in, which waits for its node to
    fail again. What a person said of one that is alike on such inputs stays as well; all else is as in a run that
    begins. `facts` are those that only the new plan asks for, of nodes that had succeeded.

    Nodes are in a generation that nothing in flight has, so that late ends of what is not kept are nobody's. What such
    nodes had reserved is spent.
    """
    state = RunState(graph, window=old.window, park_for=old.park_for)
    state.on_failure, state.now, state.budget = old.on_failure, old.now, old.budget
    state.approve_above = old.approve_above
    state.generation = [1 + max(old.generation)] * len(state.generation)
    if OVERTIME in old.deadlines:
        state.deadlines[OVERTIME] = old.deadlines[OVERTIME]
    kept: dict[int, int] = {}
    for node in graph.order:
        was = alike.get(node)
        if was is None or any(state.status[dep] != SUCCEEDED for dep in graph.deps[node]):
            continue
        runs = old.status[was] == RUNNING and graph.specs[node].kind in ("tool", "llm") and node not in facts
        well = old.status[was] == SUCCEEDED and was not in old.notes
        _copy(state, node, old, was, ("answers", "approved"))
        if (runs or well) and node not in graph.fallback_for:
            kept |= _keep(state, node, old, was)
            if node in facts:
                state.facts[node] = state.facts.get(node, {}) | facts[node]
    if old.budget is not None:
        _reserve(old.budget, [unit for unit, status in enumerate(old.status) if status == RUNNING], kept)
    ready.renew(state, old.rates)
    return state, kept


def _keep(state: RunState, node: int, old: RunState, was: int) -> dict[int, int]:
    """A node has ended, or runs, as the old one did. Return the new numbers of it and its items."""
    graph, kept = state.graph, {was: node}
    if was in old.items:
        kept |= zip(old.items[was], maps.append(state, node, len(old.items[was])), strict=True)
    for past, unit in kept.items():
        for name in ("status", "digest", "size", "attempts", "millis", "started"):
            getattr(state, name)[unit] = getattr(old, name)[past]
        _copy(state, unit, old, past, ("facts", "notes"))
    if node in graph.group_of:
        completion.ungroup(state, graph.group_of[node])
    if node in graph.timed:
        admission.clock(state, node)
    if state.status[node] == SUCCEEDED:
        state.work.append(node)
    else:
        state.running += 1
        ready.take(state, node)
    return kept


def _copy(state: RunState, unit: int, old: RunState, past: int, names: Iterable[str]) -> None:
    for name in names:
        if past in getattr(old, name):
            getattr(state, name)[unit] = getattr(old, name)[past]


def _reserve(budget: Budget, running: Iterable[int], kept: Mapping[int, int]) -> None:
    held = {kept[unit]: budget.reserved.pop(unit) for unit in running if unit in kept and unit in budget.reserved}
    for unit in running:
        budget.settle(unit, None)
    budget.reserved |= held
