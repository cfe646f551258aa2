"""The queue of ready units, and the locks, rates and limits that hold some of them back."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from sennit.workflows.plan.compile.execution_plan import APART, SHARED
from sennit.workflows.plan.fusion.islands import Islands, dealt, readers_of
from sennit.workflows.plan.fusion.rules import why_alone
from sennit.workflows.plan.limits import MAX_MEMBER_MANIFESTS_BYTES, MAX_MEMBERS, MAX_STEP_CALLS, MAX_WAVE_MEMBERS
from sennit.workflows.plan.scheduling import joins
from sennit.workflows.plan.scheduling.budget import Amounts, Budget, Rate
from sennit.workflows.plan.scheduling.events import Start
from sennit.workflows.plan.scheduling.state import ENDED, PENDING, RUNNING, SUCCEEDED, RunState

Likeness = tuple[str, str, int, int, int]
"""Queue, page, priority, attempts, and the map of items: what units have in common that share an activity."""


def queue(state: RunState, unit: int) -> None:
    """Put a unit among the ready ones: by priority, then critical path, then position."""
    state.queued[unit] = True
    node = state.node_of(unit)
    priority, rank, _ = state.graph.keys[node]
    heappush(state.heap, (priority, rank, unit))


def may_start(state: RunState, unit: int) -> bool:
    """Whether this unit may start now; if so, reserve what it is expected to use. If not, it waits for what is missing:
    its provider's rate, a lock or the budget.
    """
    rate = rate_of(state, unit)
    if rate is not None and rate.room <= 0:
        heappush(rate.waiting, (*state.graph.keys[state.node_of(unit)][:2], unit))
        return False
    if not free(state, unit):
        state.waiting_locks.append(unit)
    elif afford(state, unit):
        return True
    if rate is not None:
        _requeue(state, rate)
    return False


def rate_of(state: RunState, unit: int) -> Rate | None:
    """Return the rate of the provider that a unit calls, if it is a model call and a rate was declared.

    A unit that only adds approved nodes calls none, nor does one that a person has answered.
    """
    if not state.rates or unit in state.expansion_requests or unit in state.answers:
        return None
    return state.rates.get(state.spec_of(unit).queue) if state.kind_of(unit) == "llm" else None


def _requeue(state: RunState, rate: Rate) -> None:
    """Queue as many waiting units as there is room for, in order."""
    moved, last = 0, -1
    while rate.waiting and moved < rate.room:
        unit = heappop(rate.waiting)[2]
        if state.queued.get(unit) and unit != last:  # it is there twice if it was cancelled and queued again
            queue(state, unit)
            moved, last = moved + 1, unit


def renew(state: RunState, rates: dict[str, Rate]) -> None:
    """Apply these rates, with what they have counted so far, to a state, and count what runs in it."""
    state.rates = {name: Rate(rate.limit, rate.calls, rate.ended) for name, rate in rates.items()}
    for unit in state.units_in(RUNNING) if rates else ():
        rate = rate_of(state, unit)
        if rate is not None:
            rate.running += 1


def in_flight(state: RunState, unit: int, generation: int = 0) -> bool:
    """Whether a write of this unit that was cut off has not come to its end, in this generation or, with 0, in any."""
    found = state.effects.get(unit, ())
    return any(each.status == "in flight" and generation in (0, each.generation) for each in found)


def free(state: RunState, unit: int) -> bool:
    """Whether all of a unit's locks are free for it, and its own write of an earlier generation has come to its end. A
    lock counts its shared holders; -1 is one alone, and -2 and less are those who hold it apart from the shared ones.
    """
    if in_flight(state, unit):
        return False
    return all(_fits(state.held.get(name, 0), mode) for name, mode in state.locks_of(unit))


def _fits(holders: int, mode: int) -> bool:
    return not holders or (mode == SHARED and holders > 0) or (mode == APART and holders < -1)


def take(state: RunState, unit: int) -> None:
    """Take all of a unit's locks, which are free."""
    for name, mode in state.locks_of(unit):
        holders = state.held.get(name, 0)
        state.held[name] = holders + 1 if mode == SHARED else (holders or -(mode == APART)) - 1


def release(state: RunState, unit: int) -> None:
    """Free the slot and the locks of a unit that has stopped running, and queue those that waited for a lock.

    What it had reserved counts as spent, unless its outcome has settled that.
    """
    state.running -= 1
    leave(state, unit)
    rate = rate_of(state, unit)
    if rate is not None:
        rate.running -= 1
        _requeue(state, rate)
    if state.budget is not None:
        state.budget.settle(unit, None)
        requeue_unpaid(state)
    locks = state.locks_of(unit)
    if not locks and state.spec_of(unit).effect != "write":
        return
    for name, mode in locks:
        holders = state.held[name] - (1 if mode == SHARED else -1)
        state.held[name] = 0 if mode == APART and holders == -1 else holders
    for waiter in state.waiting_locks:
        if state.queued.get(waiter):
            queue(state, waiter)
    state.waiting_locks.clear()


def likeness_of(state: RunState, unit: int) -> Likeness | None:
    """Return what units have in common that may run in one activity: None for one that runs alone."""
    node, spec = state.node_of(unit), state.spec_of(unit)
    is_apart = unit in state.alone or unit in state.answers or unit in state.expansion_requests
    is_apart |= state.kind_of(unit) == "map"  # it puts its items together, which go to it alone
    if is_apart or not state.timings.is_short(spec) or why_alone(state.graph, node, spec, state.locks_of(unit)):
        return None
    if reads_long_manifests(state, unit):
        return None
    return spec.queue, spec.page, spec.priority, spec.attempts, node if state.is_item(unit) else -1


def reads_long_manifests(state: RunState, unit: int) -> bool:
    """Whether the manifests that a unit is given are too long to travel with those of others."""
    spec = state.spec_of(unit)
    references = [state.digest[node] or "" for node in dict.fromkeys((*spec.reads, *spec.needs))]
    size = sum(len(reference) for reference in references if joins.is_manifest(reference))
    return size > MAX_MEMBER_MANIFESTS_BYTES


def readers(state: RunState, unit: int) -> tuple[int, ...]:
    """Return what waits for a unit."""
    return (state.node_of(unit),) if state.is_item(unit) else readers_of(state.graph, unit)


def groups_of(state: RunState, likeness: Likeness, units: Sequence[int]) -> list[list[int]]:
    """Return the activities in which to run these units, with what can run behind them in the same ones. What is added
    has been paid for.
    """
    workers = state.timings.workers.get(likeness[0], 1)
    most = MAX_WAVE_MEMBERS if state.heap else MAX_MEMBERS
    classes: dict[tuple[int, ...], list[list[int]]] = {}
    if state.is_item(units[0]):
        classes[()] = [[unit] for unit in units]
    else:
        islands = _islands_behind(state, likeness)
        room = min(MAX_MEMBERS if workers == 1 else MAX_WAVE_MEMBERS, state.in_flight - state.running)
        for piece in islands.pieces(units, widest=-(-len(units) // workers), room=room):
            first = [unit for unit in piece if state.status[unit] == RUNNING]
            if len(piece) == len(first) or reserve(state, [unit for unit in piece if unit not in first]):
                classes.setdefault(islands.readers(piece), []).append(piece)
            else:
                for unit in first:
                    classes.setdefault(readers_of(state.graph, unit), []).append([unit])
    found = []
    for pieces in classes.values():
        held = dict.fromkeys(state.shared[unit] for piece in pieces for unit in piece if unit in state.shared)
        room = len(held) + max(0, state.window - state.activities)
        groups = dealt(pieces, workers=workers, room=room, most=most)
        for group in groups:
            share_activity(state, group)
        found += groups
    return found


def _islands_behind(state: RunState, likeness: Likeness) -> Islands:
    """Return what finds the nodes that can run behind others like them."""

    def joins_in(node: int) -> bool:
        spec = state.graph.specs[node]
        is_new = state.status[node] == PENDING and not (state.queued[node] or spec.watches or spec.page)
        return is_new and spec.kind == "tool" and likeness_of(state, node) == likeness

    graph, timings = state.graph, state.timings
    return Islands(graph, state.open_deps, joins_in, lambda node: timings.length(graph.specs[node]))


def share_activity(state: RunState, units: Sequence[int], first: int | None = None) -> None:
    """Note that these units run in one activity, with that of the unit `first` if it is given."""
    for unit in units:
        leave(state, unit)
    if first is None:
        first = units[0]
    state.shared |= dict.fromkeys(units, first)
    state.together[first] = state.together.get(first, 0) + len(units)


def leave(state: RunState, unit: int) -> None:
    """Note that a unit runs in no activity with others any more."""
    first = state.shared.pop(unit, None)
    if first is None:
        return
    rest = state.together.pop(first) - 1
    if rest and first == unit:  # it may start again before the others have ended, in another activity
        others = [each for each, its in state.shared.items() if its == first]
        first = others[-1]
        state.shared |= dict.fromkeys(others, first)
    if rest:
        state.together[first] = rest


def behind_in_activity(state: RunState, unit: int) -> list[int]:
    """Return what runs in the same activity as a unit and may read what it returns."""
    first, found = state.shared.get(unit), [unit]
    for here in found if first is not None and not state.is_item(unit) else ():
        others = dict.fromkeys(state.graph.consumers[here])
        found += [other for other in others if state.shared.get(other) == first and other not in found]
    return found[1:]


def afford(state: RunState, unit: int) -> bool:
    """Reserve what a start of this unit is expected to use, or let it wait until budget is freed or raised."""
    if state.budget is None:
        return True
    if missing_calls(state, unit) or not reserve(state, (unit,)):
        state.waiting_budget.append(unit)
        return False
    return True


def reserve(state: RunState, units: Sequence[int]) -> bool:
    """Reserve what a start of all of these units is expected to use; return whether the budget affords that."""
    budget = state.budget
    if budget is None:
        return True
    estimates = [_estimate(state, budget, unit) for unit in units]
    total = Amounts()
    for wanted in estimates:
        total.add(wanted)
    if not budget.affords(total):
        return False
    for unit, wanted in zip(units, estimates, strict=True):
        budget.reserve(unit, wanted)
    return True


def share(state: RunState, starts: list[Start]) -> None:
    """Give each sub-agent among these its part of the rest of the budget; others that have none yet share that too."""
    specs, budget = state.graph.specs, state.budget
    agents = [start for start in starts if state.kind_of(start.units[0]) == "agent"]
    agents = [start for start in agents if not start.asks and start.units[0] not in state.answers]
    if budget is None or not agents:
        return
    equal = [node for node, spec in enumerate(specs) if spec.kind == "agent" and not spec.tokens]
    others = [node for node in equal if state.status[node] not in (*ENDED, RUNNING)]
    for place, start in enumerate(agents, 1):
        later = [other for other in agents[place:] if other.units[0] in equal]
        start.limits = budget.share(start.units[0], 1 + len(others) + len(later))


def missing_calls(state: RunState, unit: int) -> int:
    """Return how many model calls the budget has too few for the least that a program makes from its start; 0 for none.

    A program that runs again may take over all that programs have called so far, and in a fork any number of calls.
    """
    quote = None if state.is_item(unit) or state.forks else state.graph.specs[unit].quote
    if quote is None or state.budget is None or "calls" not in state.budget.limits:
        return 0
    known = 0
    if state.generation[unit] > 1:
        calls = (node for node, spec in enumerate(state.graph.specs) if spec.page and spec.kind == "llm")
        known = sum(state.status[node] == SUCCEEDED for node in calls)
    return max(0, quote.calls - known - state.budget.left("calls"))


def _estimate(state: RunState, budget: Budget, unit: int) -> Amounts:
    if unit in state.expansion_requests:  # its call is booked already
        return Amounts()
    if unit in state.answers:
        return Amounts(nodes=1)
    spec = state.spec_of(unit)
    if spec.kind == "program" and state.timings.fuse != "off" and "nodes" in budget.limits:
        return Amounts(nodes=1 + min(MAX_STEP_CALLS, budget.left("nodes") // 2))
    return budget.estimate(spec.tokens, model=state.kind_of(unit) == "llm", price=spec.price)


def in_place(state: RunState, step: int, left: dict[str, int]) -> dict[str, Any]:
    """Return what a step of a program is told of the calls that it may make itself: nothing if it makes none. Beside
    what the budget has `left` for it, that is how many nodes are reserved for it.
    """
    timings = state.timings
    if timings.fuse == "off":
        return {}
    repeats = state.generation[step] > 1 and bool(state.graph.made_by(step))
    if state.budget is not None and "nodes" in state.budget.limits:
        left = {**left, "nodes": max(0, state.budget.reserved.get(step, Amounts()).nodes - 1)}
    return {"fuse": timings.fuse, "usual": timings.usual(), "repeats": repeats, "left": left}


def requeue_unpaid(state: RunState) -> None:
    """Queue the units again that wait for budget."""
    waiting, state.waiting_budget = state.waiting_budget, []
    for unit in waiting:
        if state.queued.get(unit):
            queue(state, unit)
