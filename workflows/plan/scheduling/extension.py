"""Adds nodes to the plan of a running run, and holds a model's request for many nodes until a person approves it.

The old nodes come first and stay as they were; only the units of map items get higher numbers.

A node whose request waits has ended its call, but has not ended itself. After approval it runs again without a call,
and the request is checked once more, because the plan may have grown meanwhile. If a person rejects the request, the
model is asked again.
"""

from collections.abc import Sequence

from workflows.plan.compile.graph import Graph, NodeSpec
from workflows.plan.language.summary import clipped
from workflows.plan.scheduling.budget import Rate
from workflows.plan.scheduling.cancellation import NOT_MADE, cancel_inputs
from workflows.plan.scheduling.completion import cancel, end_without_value, live, no_longer_wait, put_back
from workflows.plan.scheduling.events import ExpansionRequest, NodesAppended, PlanExtended
from workflows.plan.scheduling.joins import is_open
from workflows.plan.scheduling.ready import queue, take
from workflows.plan.scheduling.reset import reset
from workflows.plan.scheduling.state import CANCELLED, FAILED, OVERTIME, PENDING, RUNNING, SKIPPED, RunState
from workflows.plan.scheduling.termination import unpark

_RAN_AGAIN = ("Replaced", "its node ran again")
SUMMARIES = 3
SUMMARY_CHARACTERS = 50
WHY_CHARACTERS = 120
_BY_UNIT = (
    "facts", "notes", "inherited_failure", "previous_result", "answers", "approved", "questions", "past_deadline",
    "taken_over",
)  # fmt: skip


def renumbered(unit: int, old: int, added: int) -> int:
    """Return the number a unit has after `added` nodes came behind the first `old` ones."""
    return unit if unit < old else unit + added


def successor(old: RunState, graph: Graph) -> RunState:
    """Return the state of a run that starts on another plan. What the old plan had reserved counts as spent."""
    state = RunState(graph, window=old.window, park_for=old.park_for)
    state.now, state.on_failure, state.approve_above = old.now, old.on_failure, old.approve_above
    state.forks = old.forks
    state.rates = {queue: Rate(rate.limit, rate.calls, rate.ended) for queue, rate in old.rates.items()}
    if OVERTIME in old.deadlines:
        state.deadlines[OVERTIME] = old.deadlines[OVERTIME]
    if old.budget is not None:
        state.budget = old.budget
        for unit in list(old.budget.reserved):
            old.budget.settle(unit, None)
    return state


def extend(state: RunState, event: PlanExtended) -> None:
    """Take over a longer graph that begins with the old nodes, and work out the status of the new ones."""
    old, new = len(state.graph.specs), len(event.graph.specs)
    was_fallback = [spec.is_fallback for spec in state.graph.specs]
    state.graph = event.graph
    state.streaming = event.more
    if new > old:
        _open_columns(state, old, new)
        _move_items(state, old, new - old)
        _queue_again(state)
    _hold_again(state)
    for unit, facts in event.facts.items():
        state.facts[unit] = state.facts.get(unit, {}) | facts
    unpark(state)
    for node in range(old):
        if was_fallback[node] and not event.graph.specs[node].is_fallback and state.status[node] == PENDING:
            end_without_value(state, node, SKIPPED, _RAN_AGAIN)
    for node in range(old, new):
        state.mark(node)


def append(state: RunState, event: NodesAppended) -> None:
    """Take over the nodes that a step of a program has added, in time that does not depend on how many there were
    before, unless there are items of maps, which get higher numbers.

    If the program ran before, calls that it makes again are those that it made then, with how they ended or go on. What
    it called then and has not called again is given up when it has to wait for something.
    """
    graph, after = state.graph, event.step.unit
    fresh = _taken_over(state, event.specs, after)
    inherited = [state.generation[graph.by_key[spec.call]] if spec.call in graph.by_key else 1 for spec in fresh]
    old, added = len(graph.specs), len(fresh)
    earlier = graph.append(fresh, after)
    _open_columns(state, old, old + added)
    state.generation[old : old + added] = inherited
    if state.owner:
        _move_items(state, old, added)
        _queue_again(state)
    last = old + added - 1
    if earlier >= 0 and all(is_open(state.status[node]) for node in graph.specs[last].inputs):
        _replace(state, earlier)
    elif earlier >= 0:
        graph.put_behind(earlier, last)
    for node in range(old, old + added):
        state.mark(node)


def _taken_over(state: RunState, specs: list[NodeSpec], after: int) -> list[NodeSpec]:
    """Take over those calls that the program made before, and return the others, with the indices they will have.

    What has failed is made again, in the same generation, so that the ledger of effects knows it, and a task with
    another script runs again. A call that was cancelled, but may not have stopped, is made again by a node of its own.
    """
    graph, first = state.graph, len(state.graph.specs)
    places, fresh = list[int](), list[NodeSpec]()
    for spec in specs:
        found = graph.by_key.get(spec.call, -1) if spec.key else -1
        if found < 0 or state.status[found] == CANCELLED or state.notes.get(found) == _RAN_AGAIN:
            places.append(first + len(fresh))
            fresh.append(spec)
            continue
        places.append(found)
        is_other, generation = graph.specs[found].key != spec.key, state.generation[found]
        graph.rename(found, spec, after)
        if is_other or state.status[found] == FAILED:
            reset(state, found)
            state.generation[found] = generation + (spec.kind == "program")
        else:
            state.taken_over[found] = True
    for spec in fresh:
        for name in ("needs", "inputs", "reads"):
            setattr(spec, name, [node if node < first else places[node - first] for node in getattr(spec, name)])
    return fresh


def give_up_rest(state: RunState, step: int) -> None:
    """Give up what a step with which a program has ended led to when it ran before."""
    later = state.graph.specs[step].instead
    if later >= 0 and state.graph.specs[later].maker >= 0:
        _replace(state, later)
        state.graph.specs[step].instead = -1


def _replace(state: RunState, step: int) -> None:
    """Give up a step and all that followed from it, and the joins that only it waited for. Nothing wakes them any
    more.
    """
    graph, gone = state.graph, [step]
    while graph.specs[gone[-1]].instead >= 0:
        gone.append(graph.specs[gone[-1]].instead)
    off = dict.fromkeys(gone)
    joins = dict.fromkeys(dep for node in gone for dep in graph.specs[node].inputs if graph.specs[dep].kind == "join")
    gone += [join for join in joins if all(node in off for node in graph.joins[join])]
    for node in gone:
        if live(state.status[node]):
            cancel(state, node, SKIPPED, _RAN_AGAIN)
        state.status[node], state.notes[node] = SKIPPED, _RAN_AGAIN
    cancel_inputs(state, gone, NOT_MADE)
    graph.cut_off(gone)


def _open_columns(state: RunState, old: int, new: int) -> None:
    added = new - old
    specs = state.graph.specs[old:]
    state.status[old:old] = [PENDING] * added
    state.generation[old:old] = [1] * added
    state.digest[old:old] = [None] * added
    for column in (state.size, state.attempts, state.millis, state.started):
        column[old:old] = [0] * added
    state.queued[old:old] = [False] * added
    state.open_deps += [len(deps) for deps in state.graph.deps[old:]]
    state.floor += [0] * added
    state.open_inputs += [len(spec.inputs) for spec in specs]
    state.ok_inputs += [0] * added
    state.awaiting_inputs += [False] * added
    fresh = len(state.graph.groups) - len(state.gather)
    state.gather += [0] * fresh
    state.ungrouped += [True] * fresh


def _move_items(state: RunState, old: int, added: int) -> None:
    state.items = {node: range(items.start + added, items.stop + added) for node, items in state.items.items()}
    for name in _BY_UNIT:
        column = getattr(state, name)
        setattr(state, name, {renumbered(unit, old, added): value for unit, value in column.items()})
    if state.budget is not None:
        reserved = state.budget.reserved
        state.budget.reserved = {renumbered(unit, old, added): wanted for unit, wanted in reserved.items()}


def _hold_again(state: RunState) -> None:
    """Count the locks again: a new node may give locks to what already runs."""
    state.held.clear()
    for unit, status in enumerate(state.status):
        if status == RUNNING:
            take(state, unit)


def _queue_again(state: RunState) -> None:
    """Order the ready units again: the critical path has changed."""
    state.heap.clear()
    state.waiting_locks.clear()
    state.waiting_budget.clear()
    for rate in state.rates.values():
        rate.waiting.clear()
    for unit, queued in enumerate(state.queued):
        if queued:
            queue(state, unit)


def request_of(digest: str, added: Sequence[NodeSpec], why: str, tokens: int) -> ExpansionRequest:
    """Return the request for the nodes in `added`, as a person sees it."""
    count = sum(1 + _items(spec) for spec in added)
    summaries = tuple(clipped(spec.summary.rpartition(" <- ")[0] or spec.summary, SUMMARY_CHARACTERS) for spec in added)
    return ExpansionRequest(digest, count, clipped(why, WHY_CHARACTERS), summaries[:SUMMARIES], tokens)


def _items(spec: NodeSpec) -> int:
    """Return how many items a node may open."""
    if spec.kind != "map":
        return 0
    return spec.length if spec.over is None else spec.cap


def needs_approval(state: RunState, unit: int, request: ExpansionRequest) -> bool:
    """Whether a person decides on a unit's request. An approved request does not need another approval."""
    return (
        state.approve_above is not None and request.nodes > state.approve_above and unit not in state.expansion_requests
    )


def decide(state: RunState, unit: int, reason: str | None) -> None:
    """A person has approved a waiting request, or rejected it with a reason."""
    no_longer_wait(state, unit)
    request = state.expansion_requests[unit]
    if reason is None:
        request.approved = True
        state.status[unit] = PENDING
        queue(state, unit)
        return
    del state.expansion_requests[unit]
    state.facts.pop(unit, None)
    state.objections[unit] = (f"a person rejected these nodes ({request.nodes:,}): {reason or 'no reason was given'}",)
    put_back(state, unit)
