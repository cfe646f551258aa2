"""Adds nodes to the plan of a running run. The old nodes come first and stay as they were."""

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.budget import Rate
from sennit.workflows.plan.scheduling.cancellation import NOT_MADE, cancel_inputs, give_up_for_model
from sennit.workflows.plan.scheduling.completion import cancel, live
from sennit.workflows.plan.scheduling.events import NodesAppended
from sennit.workflows.plan.scheduling.state import OVERTIME, SKIPPED, RunState

_RAN_AGAIN = ("Replaced", "its node ran again")
_LIMITS = ("window", "in_flight", "park_for", "budget")
_OF_THE_RUN = (*_LIMITS, "now", "timings", "on_failure", "forks", "out")


def start_over(state: RunState, graph: Graph) -> None:
    """Start on another plan, and keep what belongs to the run. What the old plan had reserved counts as spent."""
    fresh = RunState(graph)
    fresh.rates = {queue: Rate(rate.limit, rate.calls, rate.ended) for queue, rate in state.rates.items()}
    fresh.deadlines = {unit: at for unit, at in state.deadlines.items() if unit == OVERTIME}
    if state.budget is not None:
        for unit in list(state.budget.reserved):
            state.budget.settle(unit, None)
        for unit, generation in list(state.budget.late):
            state.budget.settle_late(unit, generation, None)
    for name in RunState.__slots__:
        if name not in _OF_THE_RUN:
            setattr(state, name, getattr(fresh, name))


def append(state: RunState, event: NodesAppended) -> None:
    """Take over the nodes with which the plan goes on, in time that does not depend on how many there were before.

    If a model call ran before, the turns that it led to then give way.
    """
    graph, ended, fresh = state.graph, event.ended, event.page.specs
    first = len(graph.specs)
    if ended is None or not ended.outcome.delegated:
        new = state.append(fresh)
    else:
        earlier = graph.specs[ended.unit].successor
        graph.go_on_with(fresh, ended.unit)
        new = state.open_columns(range(first, first + len(fresh)))
        if earlier >= 0 and graph.specs[earlier].maker >= 0:
            _replace(state, earlier)
        for node in new:
            give_up_for_model(state, node)
    _complete(state, event)
    for node in new:
        state.mark(node)


def _complete(state: RunState, event: NodesAppended) -> None:
    """Take over what a page says beside its nodes."""
    graph = state.graph
    if event.page.answer:
        graph.answer_with(event.page.answer, direct=event.page.direct)
    if event.ended is None:
        state.streaming = event.more
    for unit, facts in event.facts.items():
        state.facts[unit] = state.facts.get(unit, {}) | facts
    for unit, facts in event.fallbacks.items():
        fallback = graph.specs[unit].fallback
        if fallback is not None:
            graph.specs[unit].fallback = (*fallback[:2], facts)


def _replace(state: RunState, turn: int) -> None:
    """Give up a turn and all that followed from it, and the joins that only it waited for. Nothing wakes them any
    more.
    """
    graph, gone = state.graph, [turn]
    while (later := graph.specs[gone[-1]].successor) >= 0 and graph.specs[later].maker >= 0:
        gone.append(later)
    off = dict.fromkeys(gone)
    joins = dict.fromkeys(dep for node in gone for dep in graph.specs[node].inputs if graph.specs[dep].kind == "join")
    gone += [join for join in joins if all(node in off for node in graph.joins[join])]
    for node in gone:
        if live(state.status[node]):
            cancel(state, node, SKIPPED, _RAN_AGAIN)
        state.status[node], state.notes[node] = SKIPPED, _RAN_AGAIN
        state.inherited_failure.pop(node, None)  # or it would be worked out anew, and start without its inputs
    cancel_inputs(state, gone, NOT_MADE)
    graph.cut_off(gone)
