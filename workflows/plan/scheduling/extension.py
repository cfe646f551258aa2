"""Adds nodes to the plan of a running run. The old nodes come first and stay as they were."""

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling.budget import Rate
from sennit.workflows.plan.scheduling.cancellation import NOT_MADE, cancel_inputs, give_up_for_model
from sennit.workflows.plan.scheduling.completion import cancel, live
from sennit.workflows.plan.scheduling.events import NodesAppended
from sennit.workflows.plan.scheduling.state import OVERTIME, RunState
from sennit.workflows.plan.scheduling.unit import SKIPPED

_RAN_AGAIN = ("Replaced", "its node ran again")
_LIMITS = ("window", "in_flight", "park_for", "budget")
_OF_THE_RUN = (*_LIMITS, "now", "timings", "on_failure", "forks", "out")


def start_over(state: RunState, graph: Graph) -> None:
    """Start on another plan, and keep what belongs to the run. What the old plan had
    reserved counts as spent.
    """
    fresh = RunState(graph)

    # The rates keep how many calls there were, but none of them runs any more.
    for queue, rate in state.rates.items():
        fresh.rates[queue] = Rate(rate.limit, rate.calls, rate.ended)
    if OVERTIME in state.deadlines:
        fresh.deadlines[OVERTIME] = state.deadlines[OVERTIME]

    if state.budget is not None:
        for unit in list(state.budget.reserved):
            state.budget.settle(unit, None)
        for unit, generation in list(state.budget.late):
            state.budget.settle_late(unit, generation, None)
    for name in RunState.__slots__:
        if name not in _OF_THE_RUN:
            setattr(state, name, getattr(fresh, name))


def append(state: RunState, event: NodesAppended) -> None:
    """Take over the nodes with which the plan goes on, in time that does not depend on how
    many there were before.

    If a model call ran before, the turns that it led to then give way.
    """
    graph = state.graph
    ended = event.ended
    fresh = event.page.specs
    if ended is None or not ended.outcome.delegated:
        new = state.append(fresh)
    else:
        first = len(graph.specs)
        earlier = graph.specs[ended.unit].successor
        graph.go_on_with(fresh, ended.unit)
        new = state.add_nodes(range(first, first + len(fresh)))
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
        known = state.units[unit].facts or {}
        state.units[unit].facts = known | facts
    for unit, facts in event.fallbacks.items():
        fallback = graph.specs[unit].fallback
        if fallback is not None:
            graph.specs[unit].fallback = (*fallback[:2], facts)


def _replace(state: RunState, turn: int) -> None:
    """Give up a turn and all that followed from it, and the joins that only it waited for.
    Nothing wakes them any more.
    """
    graph = state.graph
    turns = _turns_from(state, turn)
    gone = [*turns, *_joins_only_of(state, turns)]
    for node in gone:
        if live(state.units[node].status):
            cancel(state, node, SKIPPED, _RAN_AGAIN)
        state.set_status(node, SKIPPED)
        state.notes[node] = _RAN_AGAIN
        # Or it would be worked out anew, and start without its inputs.
        state.units[node].inherited_failure = False
    cancel_inputs(state, gone, NOT_MADE)
    graph.cut_off(gone)


def _turns_from(state: RunState, turn: int) -> list[int]:
    """Return a turn of a tool loop and the turns that follow it."""
    graph = state.graph
    turns = [turn]
    following = graph.specs[turn].successor
    while following >= 0 and graph.specs[following].maker >= 0:
        turns.append(following)
        following = graph.specs[following].successor
    return turns


def _joins_only_of(state: RunState, turns: list[int]) -> list[int]:
    """Return the joins that these turns read and nothing else does."""
    graph = state.graph
    readers = dict.fromkeys(turns)
    joins: dict[int, None] = {}
    for turn in turns:
        for dep in graph.specs[turn].inputs:
            is_join = graph.specs[dep].kind == "join"
            if is_join and all(reader in readers for reader in graph.joins[dep]):
                joins[dep] = None
    return list(joins)
