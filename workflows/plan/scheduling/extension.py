"""Adds nodes to the plan of a running run. The old nodes come first and stay as they were."""

import re

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.scheduling import completion
from sennit.workflows.plan.scheduling.budget import Amounts, Rate
from sennit.workflows.plan.scheduling.cancellation import NOT_MADE, cancel_inputs, give_up
from sennit.workflows.plan.scheduling.completion import cancel, live
from sennit.workflows.plan.scheduling.events import NodesAppended, Outcome
from sennit.workflows.plan.scheduling.joins import is_open
from sennit.workflows.plan.scheduling.ready import rate_of
from sennit.workflows.plan.scheduling.reset import reset
from sennit.workflows.plan.scheduling.state import (
    CANCELLED,
    FAILED,
    OVERTIME,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    RunState,
)

_MARK = re.compile(r"_g[0-9a-f]{6}(?=_)")
"""In the ids of what a program calls when a step of it has run again. People see ids without it, if they are free."""
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

    If a program or a model call ran before, what it led to then gives way. Calls that a program makes again are those
    that it made then, with how they ended or go on; what it has not called again is given up when it has to wait for
    something.
    """
    graph, ended, fresh = state.graph, event.ended, event.page.specs
    after = ended.unit if ended is not None and ended.outcome.delegated else -1
    if after >= 0:
        fresh = _taken_over(state, fresh, after)
        if graph.specs[after].kind == "program":
            past = dict.fromkeys(event.past)
            waits = [node for node in graph.specs[after].inputs if node not in past]
            fresh[-1].inputs = list(dict.fromkeys((*waits, *fresh[-1].inputs)))
            graph.hand_over(after, waits)
    inherited = [state.generation[graph.by_key[spec.key]] if spec.key in graph.by_key else 1 for spec in fresh]
    new = range(len(graph.specs), len(graph.specs) + len(fresh))
    earlier = graph.specs[after].successor if after >= 0 else -1
    graph.append(fresh, after)
    _open_columns(state, new)
    state.generation |= zip(new, inherited, strict=True)
    if earlier >= 0 and graph.specs[earlier].maker >= 0:
        _give_way(state, earlier, new[-1])
    _complete(state, event)
    for node in new:
        if graph.specs[node].kind == "task":
            completion.begin_task(state, node)
        else:
            state.mark(node)
    for name, outcome in event.ends:
        if (unit := graph.by_id[name]) in new:
            _begin(state, unit, outcome)
    give_up(state, [graph.by_id[name] for name in event.given_up if name in graph.by_id])


def _begin(state: RunState, unit: int, outcome: Outcome) -> None:
    """Take a call for one that runs, in an activity with others: its step has made it itself."""
    state.status[unit] = RUNNING
    state.running += 1
    state.shared[unit], state.together[unit] = unit, 1
    rate = rate_of(state, unit)
    if rate is not None:  # its end takes it off again
        rate.running += 1
    state.started[unit] = min(state.now, outcome.at - outcome.millis) if outcome.at else state.now
    if any(outcome.span) and state.is_call(unit):
        state.started[unit] = min(state.now, outcome.span[0])
    if outcome.at and not outcome.again:
        state.ended_at[unit] = outcome.at
        state.last_end = max(state.last_end, outcome.at)
    if state.budget is not None:
        state.budget.reserve(unit, Amounts(nodes=1))


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


def _give_way(state: RunState, earlier: int, last: int) -> None:
    """Give up the step or turn that led on when its node ran before, or keep it behind the `last` one."""
    graph = state.graph
    if graph.specs[last].kind != "program" or all(is_open(state.status[node]) for node in graph.specs[last].inputs):
        _replace(state, earlier)
    else:
        graph.put_behind(earlier, last)


def _taken_over(state: RunState, specs: list[NodeSpec], after: int) -> list[NodeSpec]:
    """Take over those calls that the program made before, and return the others, with the indices they will have.

    What has failed is made again, in the same generation, so that the ledger of effects knows it. A call that was
    cancelled, but may not have stopped, is made again by a node of its own. A write of which a person is asked once
    more waits for their word; the ledger of effects has its result. A task that the program made before runs again.
    """
    graph, first = state.graph, len(state.graph.specs)
    places, fresh = list[int](), list[NodeSpec]()
    for spec in specs:
        found = graph.by_key.get(spec.key, -1) if spec.key else -1
        is_task = spec.kind == "task" and found >= 0
        if not is_task and (found < 0 or state.status[found] == CANCELLED or state.notes.get(found) == _RAN_AGAIN):
            places.append(first + len(fresh))
            fresh.append(spec)
            continue
        places.append(found)
        generation = state.generation[found]
        graph.rename(found, spec, after)
        if is_task:
            completion.begin_task(state, found)
            continue
        is_asked = spec.confirms and state.status[found] == SUCCEEDED
        if is_asked:
            state.approved.pop(found, None)
        if is_asked or state.status[found] == FAILED:
            reset(state, found)
            state.generation[found] = generation
        else:
            state.taken_over[found] = True
    for spec in fresh:
        short = _MARK.sub("", spec.id)
        if short != spec.id and short not in graph.by_id:
            spec.formerly = [short]
            spec.show_as(short)
        spec.move(lambda node: node if node < first else places[node - first])
    return fresh


def give_up_rest(state: RunState, step: int) -> None:
    """Give up what a step with which a program has ended led to when it ran before."""
    later = state.graph.specs[step].successor
    if later >= 0 and state.graph.specs[later].maker >= 0:
        _replace(state, later)
        state.graph.specs[step].successor = -1


def _replace(state: RunState, step: int) -> None:
    """Give up a step and all that followed from it, and the joins that only it waited for. Nothing wakes them any
    more.
    """
    graph, gone = state.graph, [step]
    while (later := graph.specs[gone[-1]].successor) >= 0 and graph.specs[later].maker >= 0:
        gone.append(later)
    off = dict.fromkeys(gone)
    joins = dict.fromkeys(dep for node in gone for dep in graph.specs[node].inputs if graph.specs[dep].kind == "join")
    # A step that has worked out a join itself reads that again when an input ends otherwise. No step waits for it.
    joins |= dict.fromkeys(made for node in gone for made in graph.made_by(node) if graph.specs[made].kind == "join")
    gone += [join for join in joins if all(node in off for node in graph.joins[join])]
    for node in gone:
        if live(state.status[node]):
            cancel(state, node, SKIPPED, _RAN_AGAIN)
        state.status[node], state.notes[node] = SKIPPED, _RAN_AGAIN
        state.inherited_failure.pop(node, None)  # or it would be worked out anew, and start without its inputs
    cancel_inputs(state, gone, NOT_MADE)
    graph.cut_off(gone)


def _open_columns(state: RunState, new: range) -> None:
    state.add(new)
    state.open_deps += [len(state.graph.deps[node]) for node in new]
    state.open_inputs += [len(state.graph.specs[node].inputs) for node in new]
    state.awaiting_inputs += [False] * len(new)
    state.ok_inputs += [0] * len(new)
