"""The queue of ready units, and the locks, rates and limits that hold some of them back.

A unit that may not start waits at one thing that it lacks, and is queued again when
that thing may be there.
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import ceil
from typing import Any, NamedTuple

from sennit.workflows.plan.fusion.islands import Islands, dealt, readers_of
from sennit.workflows.plan.fusion.rules import why_alone
from sennit.workflows.plan.language.limits import tokens_in
from sennit.workflows.plan.limits import (
    MAX_ADVANCE_CALLS,
    MAX_MEMBER_MANIFESTS_BYTES,
    MAX_MEMBERS,
    MAX_WAVE_MEMBERS,
)
from sennit.workflows.plan.scheduling import joins, slices
from sennit.workflows.plan.scheduling.batch import Batch
from sennit.workflows.plan.scheduling.budget import Amounts, Budget, Rate
from sennit.workflows.plan.scheduling.events import Start
from sennit.workflows.plan.scheduling.locks import Lock, Waiter
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import ENDED, PENDING, RUNNING, SUCCEEDED
from sennit.workflows.plan.scheduling.waits import Cause

LEAST_CALLS = "the least calls of a program"
"""What a program waits for that makes more model calls than the budget has left."""


class Likeness(NamedTuple):
    """What units have in common that share an activity. `map_node` is the map whose items
    they are, None for nodes.
    """

    queue: str
    page: str
    priority: int
    attempts: int
    map_node: int | None


PiecesByReaders = dict[tuple[int, ...], list[list[int]]]
"""By the nodes that wait for them: pieces, which are units that run in one activity."""


def queue(state: RunState, unit: int) -> None:
    """Put a unit among the ready ones: by priority, then critical path, then position."""
    state.units[unit].queued = True
    _push(state, unit)


def _push(state: RunState, unit: int) -> None:
    """Have a unit wait for nothing but a slot."""
    _turn_to(state, unit, "slot")
    heappush(state.heap, waiter(state, unit))


def _turn_to(state: RunState, unit: int, cause: Cause) -> None:
    """Note for what a unit waits from now on."""
    is_call = state.is_call(unit)
    state.waits.turn_to(unit, cause, state.now, is_call=is_call)


def may_start(state: RunState, unit: int) -> bool:
    """Whether this unit, just taken from the ready queue, may start now; if so, reserve what it is
    expected to use. If not, it waits for what is missing, and others are woken in its place.
    """
    if _waits(state, unit):
        pass_on(state, unit)
        return False
    return True


def _waits(state: RunState, unit: int) -> bool:
    """Let a unit wait for the first thing that it lacks: room in the slices of its tasks, its
    provider's rate, the end of its own earlier write, a lock or the budget. If it lacks nothing,
    reserve what it is expected to use, and return False.
    """
    if _is_held_by_slice(state, unit):
        return True
    rate = rate_of(state, unit)
    if rate is not None and rate.room <= 0:
        _turn_to(state, unit, "rate")
        heappush(rate.waiting, waiter(state, unit))
        return True
    if in_flight(state, unit):
        _turn_to(state, unit, "lock")
        state.waiting_own[unit] = None
        return True
    for name, mode in state.locks_of(unit):
        lock = state.locks.get(name)
        if lock is not None and not lock.admits(mode):
            _turn_to(state, unit, "lock")
            lock.wait(waiter(state, unit), mode)
            return True
    return not afford(state, unit)


def waiter(state: RunState, unit: int) -> Waiter:
    """Return a unit as it stands in a queue."""
    node = state.node_of(unit)
    priority, rank, _ = state.graph.keys[node]
    return priority, rank, unit


def pass_on(state: RunState, unit: int) -> None:
    """Wake others in the place of a unit that was taken from the ready queue and does not
    start: a lock, or the rate of its provider, may have woken this unit alone. The budget wakes
    by itself (`wake_paid`).
    """
    rate = rate_of(state, unit)
    if rate is not None:
        _requeue(state, rate)
    for name, _ in state.locks_of(unit):
        wake(state, name)


def _is_held_by_slice(state: RunState, unit: int) -> bool:
    """Let a unit wait for the first slice of its tasks that has no room for it beside the calls
    that run; if all have, wake the next one in its place.
    """
    for task_slice in slices.slices_of(state, unit):
        budget = task_slice.budget
        rivals = 1 + len(task_slice.waiting)
        lacking = budget.lacks(_estimate(state, budget, unit, rivals))
        # A sub-agent gets a part of what is left: it waits until something is.
        is_agent = state.kind_of(unit) == "agent"
        is_taken = is_agent and not all(map(budget.left, budget.limits))
        if lacking or is_taken:
            _turn_to(state, unit, "budget")
            heappush(task_slice.waiting, waiter(state, unit))
            return True
    wake_in_slices(state, unit)
    return False


def wake_in_slices(state: RunState, unit: int) -> None:
    """Queue the next unit that waits for each slice that a unit spends from. It looks for itself
    whether it may start, and wakes the next one if it may.
    """
    for other in slices.next_waiting(state, unit):
        _push(state, other)


def wake(state: RunState, name: str) -> None:
    """Queue the units that may hold a lock next. Those that were cancelled
    meanwhile are left out.
    """
    lock = state.locks.get(name)
    if lock is None:
        return
    woken: list[int] = []
    while not woken:
        admitted = lock.wake()
        if not admitted:
            return
        for _, _, unit in admitted:
            if state.is_queued(unit):
                woken.append(unit)
    for unit in woken:
        _push(state, unit)


def rate_of(state: RunState, unit: int) -> Rate | None:
    """Return the rate of the provider that a unit calls, if it is a model call
    and a rate was declared.

    A unit that a person has answered calls none.
    """
    if not state.rates or unit in state.answers:
        return None
    if state.kind_of(unit) != "llm":
        return None
    return state.rates.get(state.spec_of(unit).queue)


def _requeue(state: RunState, rate: Rate) -> None:
    """Queue as many waiting units as there is room for, in order."""
    moved = 0
    last: int | None = None
    while rate.waiting and moved < rate.room:
        _, _, unit = heappop(rate.waiting)
        # It is there twice if it was cancelled and queued again.
        if state.is_queued(unit) and unit != last:
            queue(state, unit)
            moved += 1
            last = unit


def renew(state: RunState, rates: dict[str, Rate]) -> None:
    """Apply these rates, with what they have counted so far, to a state, and
    count what runs in it.
    """
    state.rates = {}
    for name, known in rates.items():
        state.rates[name] = Rate(known.limit, known.calls, known.ended)
    if not rates:
        return
    for unit in state.units_in(RUNNING):
        rate = rate_of(state, unit)
        if rate is not None:
            rate.running += 1


def in_flight(state: RunState, unit: int, generation: int = 0) -> bool:
    """Whether a write of this unit that was cut off has not come to its end, in this
    generation or, with 0, in any.
    """
    for effect in state.effects.get(unit, ()):
        if effect.status == "in flight" and generation in (0, effect.generation):
            return True
    return False


def take(state: RunState, unit: int) -> None:
    """Take all of a unit's locks, which are free for it."""
    for name, mode in state.locks_of(unit):
        state.locks.setdefault(name, Lock()).take(unit, mode)


def release(state: RunState, unit: int) -> None:
    """Free the slot and the locks of a unit that has stopped running, and wake
    those that waited for them.

    What it had reserved counts as spent, unless its outcome has settled that.
    """
    state.running -= 1
    leave_batch(state, unit)
    rate = rate_of(state, unit)
    if rate is not None:
        rate.running -= 1
        _requeue(state, rate)
    if state.budget is not None:
        state.budget.settle(unit, None)
    slices.settle(state, unit, None)
    wake_in_slices(state, unit)
    for name, _ in state.locks_of(unit):
        _free(state, name, unit)
    if unit in state.waiting_own:
        del state.waiting_own[unit]
        if state.is_queued(unit):
            queue(state, unit)


def _free(state: RunState, name: str, unit: int) -> None:
    """Free a lock if this unit holds it. A lock that nobody needs any more is forgotten."""
    lock = state.locks.get(name)
    if lock is None or unit not in lock.holders:
        return
    del lock.holders[unit]
    if not lock.holders:
        wake(state, name)
    if lock.is_unused:
        del state.locks[name]


def likeness_of(state: RunState, unit: int) -> Likeness | None:
    """Return what units have in common that may run in one activity: None
    for one that runs alone.
    """
    if state.units[unit].alone or unit in state.answers:
        return None
    if state.kind_of(unit) == "map":  # it puts its items together, which go to it alone
        return None
    node = state.node_of(unit)
    spec = state.spec_of(unit)
    if not state.timings.is_short(spec) or why_alone(state.graph, node, spec, spec.locks):
        return None
    if reads_long_manifests(state, unit):
        return None
    map_node = node if state.is_item(unit) else None
    return Likeness(spec.queue, spec.page, spec.priority, spec.attempts, map_node)


def reads_long_manifests(state: RunState, unit: int) -> bool:
    """Whether the manifests that a unit is given are too long to travel with those of others."""
    spec = state.spec_of(unit)
    size = 0
    for node in dict.fromkeys((*spec.reads, *spec.needs)):
        reference = state.units[node].digest or ""
        if joins.is_manifest(reference):
            size += len(reference)
    return size > MAX_MEMBER_MANIFESTS_BYTES


def readers(state: RunState, unit: int) -> tuple[int, ...]:
    """Return what waits for a unit."""
    if state.is_item(unit):
        return (state.node_of(unit),)
    return readers_of(state.graph, unit)


def groups_of(state: RunState, likeness: Likeness, units: Sequence[int]) -> list[list[int]]:
    """Return the activities in which to run these units, with what can run behind them in the same
    ones. What is added has been paid for.
    """
    workers = state.timings.workers.get(likeness.queue, 1)
    most = MAX_WAVE_MEMBERS if state.heap else MAX_MEMBERS
    if state.is_item(units[0]):
        pieces_by_readers: PiecesByReaders = {(): [[unit] for unit in units]}
    else:
        pieces_by_readers = _paid_pieces(state, likeness, units, workers)

    # Pieces for other readers go to other activities: so no reader waits for what it does not read.
    groups: list[list[int]] = []
    for pieces in pieces_by_readers.values():
        room = _room_for(state, pieces)
        dealt_groups = dealt(pieces, workers=workers, room=room, most=most)
        for group in dealt_groups:
            batch = Batch()
            for unit in group:
                enter_batch(state, unit, batch)
        groups += dealt_groups
    return groups


def _paid_pieces(
    state: RunState, likeness: Likeness, units: Sequence[int], workers: int
) -> PiecesByReaders:
    """Return the pieces that these units make with what can run behind them. Where the budget does
    not afford what is behind, the units of a piece are pieces of their own.
    """
    islands = _islands_behind(state, likeness)
    widest = ceil(len(units) / workers)
    members = MAX_MEMBERS if workers == 1 else MAX_WAVE_MEMBERS
    room = min(members, state.in_flight - state.running)
    pieces: PiecesByReaders = {}
    for piece in islands.pieces(units, widest=widest, room=room):
        started: list[int] = []
        added: list[int] = []
        for unit in piece:
            if state.units[unit].status == RUNNING:
                started.append(unit)
            else:
                added.append(unit)
        if not added or reserve(state, added):
            pieces.setdefault(islands.readers(piece), []).append(piece)
            continue
        for unit in started:
            waiting = readers_of(state.graph, unit)
            pieces.setdefault(waiting, []).append([unit])
    return pieces


def _room_for(state: RunState, pieces: list[list[int]]) -> int:
    """Return in how many activities these pieces may run: in those of their units, and
    in as many as may start.
    """
    held: dict[Batch, None] = {}
    for piece in pieces:
        for unit in piece:
            batch = state.units[unit].batch
            if batch is not None:
                held[batch] = None
    free = max(0, state.window - state.activities)
    return len(held) + free


def _islands_behind(state: RunState, likeness: Likeness) -> Islands:
    """Return what finds the nodes that can run behind others like them."""

    def joins_in(node: int) -> bool:
        spec = state.graph.specs[node]
        if state.units[node].status != PENDING or state.units[node].queued:
            return False
        if spec.watches or spec.page or spec.kind != "tool":
            return False
        return likeness_of(state, node) == likeness

    def millis(node: int) -> int:
        return state.timings.length(state.graph.specs[node])

    def open_deps(node: int) -> int:
        return state.units[node].open_deps

    return Islands(state.graph, open_deps, joins_in, millis)


def enter_batch(state: RunState, unit: int, batch: Batch) -> None:
    """Note that a unit runs in this activity, and in no other one."""
    leave_batch(state, unit)
    if not batch.members:
        state.batch_count += 1
    state.batch_members += 1
    batch.members[unit] = None
    state.units[unit].batch = batch


def leave_batch(state: RunState, unit: int) -> None:
    """Note that a unit runs in no activity with others any more."""
    batch = state.units[unit].batch
    if batch is None:
        return
    state.units[unit].batch = None
    del batch.members[unit]
    state.batch_members -= 1
    if not batch.members:
        state.batch_count -= 1


def behind_in_activity(state: RunState, unit: int) -> list[int]:
    """Return what runs in the same activity as a unit and may read what it returns."""
    batch = state.units[unit].batch
    if batch is None or state.is_item(unit):
        return []
    members = [unit]
    for node in members:  # which grows
        for consumer in state.graph.consumers[node]:
            if consumer in batch.members and consumer not in members:
                members.append(consumer)
    return members[1:]


def afford(state: RunState, unit: int) -> bool:
    """Reserve what a start of this unit is expected to use, or let it wait until
    the budget affords that.
    """
    lacking = _lacking(state, unit)
    if lacking:
        _wait_for_budget(state, unit, lacking)
        return False
    budget = state.budget
    if budget is not None:
        rivals = _rivals(state)
        _reserve(state, budget, unit, _estimate(state, budget, unit, rivals), rivals)
    reserve_in_slices(state, unit)
    return True


def reserve_in_slices(state: RunState, unit: int) -> None:
    """Reserve what a start of this unit is expected to use in the slices of its tasks."""
    for task_slice in slices.slices_of(state, unit):
        rivals = 1 + len(task_slice.waiting)
        wanted = _estimate(state, task_slice.budget, unit, rivals)
        _reserve(state, task_slice.budget, unit, wanted, rivals)


def _lacking(state: RunState, unit: int) -> str:
    """Return the limit that does not cover a start of this unit now, "" if all do.
    LEAST_CALLS is one of them.
    """
    budget = state.budget
    if budget is None:
        return ""
    if missing_calls(state, unit):
        return LEAST_CALLS
    wanted = _estimate(state, budget, unit, _rivals(state))
    # Sub-agents share all that is left, and seldom use it: a further one does not wait for that.
    is_agent = state.kind_of(unit) == "agent"
    return budget.lacks(wanted, beside_extras=not is_agent)


def _wait_for_budget(state: RunState, unit: int, lacking: str) -> None:
    """Let a unit wait for more of a limit. Programs are in the order of the calls that they need,
    whatever the budget has left by now: where the first lacks some, all do.
    """
    _turn_to(state, unit, "budget")
    order, rank, _ = waiter(state, unit)
    if lacking == LEAST_CALLS and state.budget is not None:
        order = missing_calls(state, unit) + state.budget.left("calls")
    waiting = state.waiting_budget.setdefault(lacking, [])
    heappush(waiting, (order, rank, unit))


def wake_paid(state: RunState) -> None:
    """Queue the first unit that waits for each limit if the budget affords it now, and if it comes
    before all that is ready. The others of that limit wait behind it.

    This looks at the budget of this moment, before each start. So no wake-up can be lost, and a
    limit with thousands of waiters costs no more than one with a single waiter.
    """
    for limit in list(state.waiting_budget):
        _wake_first(state, limit)


def _wake_first(state: RunState, limit: str) -> None:
    """Queue the first unit that waits for a limit if the budget affords it now and nothing
    ready comes before it.
    """
    waiting = state.waiting_budget[limit]
    while waiting:
        _, _, unit = waiting[0]
        if not state.is_queued(unit):  # it was cancelled meanwhile
            heappop(waiting)
            continue
        if state.heap and state.heap[0] < waiter(state, unit):
            return
        # A grant depends on how many wait: it is worked out as it will be when the unit
        # starts, or nobody would.
        first = heappop(waiting)
        lacking = _lacking(state, unit)
        if lacking == limit:
            heappush(waiting, first)
            return
        if not lacking:
            _push(state, unit)
            break
        _wait_for_budget(state, unit, lacking)
    if not waiting:
        del state.waiting_budget[limit]


def unpaid(state: RunState) -> list[int]:
    """Return the units that wait for budget, in order."""
    waiting: list[Waiter] = []
    for heap in state.waiting_budget.values():
        waiting += heap
    units: dict[int, None] = {}
    for _, _, unit in sorted(waiting):
        if state.is_queued(unit):
            units[unit] = None
    return list(units)


def reserve(state: RunState, units: Sequence[int]) -> bool:
    """Reserve what a start of all of these units is expected to use; return whether
    the budget affords that.
    """
    budget = state.budget
    if budget is None:
        return True
    rivals = _rivals(state)
    estimates: list[Amounts] = []
    total = Amounts()
    for unit in units:
        wanted = _estimate(state, budget, unit, rivals)
        estimates.append(wanted)
        total.add(wanted)
    if budget.lacks(total):
        return False
    for unit, wanted in zip(units, estimates, strict=True):
        _reserve(state, budget, unit, wanted, rivals)
    return True


def _reserve(state: RunState, budget: Budget, unit: int, wanted: Amounts, rivals: int) -> None:
    """Reserve what a start is expected to use, and grant a model call its tokens."""
    if state.kind_of(unit) == "llm" and state.spec_of(unit).reply:
        budget.grants[unit] = _granted(state, budget, unit, rivals)
    budget.reserve(unit, wanted)


def share(state: RunState, starts: list[Start]) -> None:
    """Give each sub-agent among these its part of the rest of the budget, and of the slices of its
    tasks; others that have none yet share that too.
    """
    agents: dict[int, Start] = {}
    for start in starts:
        if _starts_agent(state, start):
            agents[start.units[0]] = start
    if not agents:
        return
    if state.budget is not None:
        _share_out(state, state.budget, agents, _agents_to_come(state))

    in_slices: dict[int, dict[int, Start]] = {}
    for unit, start in agents.items():
        for holder in slices.holders_of(state, unit):
            in_slices.setdefault(holder, {})[unit] = start
    for holder, inside in in_slices.items():
        _share_out(state, state.slices[holder].budget, inside, 0)


def _starts_agent(state: RunState, start: Start) -> bool:
    """Whether a sub-agent starts that spends something: it asks nobody first, and a person
    has not answered for it.
    """
    unit = start.units[0]
    if start.asks or unit in state.answers:
        return False
    return state.kind_of(unit) == "agent"


def _share_out(state: RunState, budget: Budget, agents: dict[int, Start], to_come: int) -> None:
    """Give each of these sub-agents its part of a budget, which so many `to_come` share too. It has
    the least of each limit that the run and the slices around it give it.
    """
    # Those without tokens of their own share equally.
    sharing = 0
    held = Amounts()
    for unit in agents:
        if not state.spec_of(unit).tokens:
            sharing += 1
            held.add(budget.reserved.get(unit, Amounts()))

    for unit, start in agents.items():
        tokens = state.spec_of(unit).tokens
        if not tokens:
            sharing -= 1
            held.add(budget.reserved.get(unit, Amounts()), -1)
        parts = 1 + to_come + sharing
        part = budget.share(unit, parts, tokens=tokens, held_by_others=held)
        limits = dict(start.limits or {})
        for name, most in part.items():
            limits[name] = min(most, limits.get(name, most))
        start.limits = limits


def _agents_to_come(state: RunState) -> int:
    """Return how many sub-agents without a part of their own have not started. A map that has not
    opened counts as one: nobody knows yet how long its list is.
    """
    to_come = 0
    for node, spec in enumerate(state.graph.specs):
        if spec.kind == "agent":
            if _awaits_part(state, node):
                to_come += 1
        elif not spec.agents_per_item:
            continue
        elif node in state.items:
            for unit in state.items[node]:
                if state.kind_of(unit) == "agent" and _awaits_part(state, unit):
                    to_come += 1
        elif state.units[node].status not in ENDED:
            to_come += 1
    return to_come


def _awaits_part(state: RunState, agent: int) -> bool:
    """Whether a sub-agent without an estimate of its own has still to start."""
    if state.spec_of(agent).tokens:
        return False
    return state.units[agent].status not in (*ENDED, RUNNING)


def missing_calls(state: RunState, unit: int) -> int:
    """Return how many model calls the budget has too few for the least that a program makes from
    its start; 0 for none.

    A program that runs again may take over all that programs have called so far, and in a
    fork any number of calls.
    """
    if state.is_item(unit) or state.forks:
        return 0
    session = state.sessions.get(unit)
    if session is not None and session.has_begun:
        return 0
    quote = state.graph.specs[unit].quote
    budget = state.budget
    if quote is None or budget is None or "calls" not in budget.limits:
        return 0
    known = 0
    if state.units[unit].generation > 1:
        known = _model_calls_made(state)
    return max(0, quote.calls - known - budget.left("calls"))


def _model_calls_made(state: RunState) -> int:
    """Return how many model calls of programs have a value."""
    made = 0
    for node, spec in enumerate(state.graph.specs):
        if spec.page and spec.kind == "llm" and state.units[node].status == SUCCEEDED:
            made += 1
    return made


def _rivals(state: RunState) -> int:
    """Return among how many calls that are ready what the run's budget has left is divided."""
    held_back = sum(map(len, state.waiting_budget.values()))
    return 1 + len(state.heap) + held_back


def _estimate(state: RunState, budget: Budget, unit: int, rivals: int) -> Amounts:
    """Return what a start is expected to use of a budget, the run's or a slice, that
    so many `rivals` share.
    """
    if unit in state.answers:
        return Amounts(nodes=1)
    spec = state.spec_of(unit)
    if spec.kind == "program" and state.timings.fuse != "off" and "nodes" in budget.limits:
        # An advance of it may make calls itself.
        calls = min(MAX_ADVANCE_CALLS, budget.left("nodes") // 2)
        return Amounts(nodes=1 + calls)
    kind = state.kind_of(unit)
    if kind == "agent":
        return budget.least_part(spec.calls, spec.tokens, price=spec.price)
    is_model = kind == "llm"
    if is_model and spec.reply:
        granted = _granted(state, budget, unit, rivals)
        return budget.wanted(granted, spec.price)
    return budget.estimate(spec.tokens, model=is_model, price=spec.price)


def _granted(state: RunState, budget: Budget, unit: int, rivals: int) -> int:
    """Return the tokens to grant a model call: for its prompt with what that refers to, and for its
    reply. A larger estimate of the plan counts instead.
    """
    spec = state.spec_of(unit)
    if state.units[unit].prompt_tokens > 0:  # it was measured, and needs room for its whole reply
        granted = budget.granted(state.units[unit].prompt_tokens, spec.reply, 0)
    else:
        material = tokens_in(_read_bytes(state, unit))
        prompt = spec.prompt + min(spec.material, material)
        granted = budget.granted(prompt, spec.reply, rivals)
    return max(spec.tokens, granted)


def _read_bytes(state: RunState, unit: int) -> int:
    """Return about how many bytes the outputs have that a model call refers to; of a
    list, its item's share.
    """
    spec = state.spec_of(unit)
    chosen = state.units[unit].chosen or ()
    inputs = dict.fromkeys((*spec.reads, *chosen))
    if not state.is_item(unit):
        return _size_of(state, inputs)

    # The list of which an item is one counts with that part alone.
    inputs |= dict.fromkeys(state.read_by(unit))
    node = state.node_of(unit)
    over = state.graph.specs[node].over
    if over is None:
        return _size_of(state, inputs)
    source, _ = over
    inputs.pop(source, None)
    items = max(1, len(state.values(node)))
    return _size_of(state, inputs) + state.units[source].size // items


def _size_of(state: RunState, units: Iterable[int]) -> int:
    """Return how many bytes the outputs of these units have in all."""
    size = 0
    for unit in units:
        size += state.units[unit].size
    return size


def grant(state: RunState, unit: int, left: dict[str, int]) -> int:
    """Return the tokens that a running model call is granted of those that the budget has `left`
    for it; 0 where they are not limited.
    """
    grants: list[int] = []
    for budget in slices.budgets_of(state, unit):
        if unit in budget.grants:
            grants.append(budget.grants[unit])
    if "tokens" not in left or not grants:
        return 0
    return min(*grants, left["tokens"])


def in_place(state: RunState, program: int, left: dict[str, int]) -> dict[str, Any]:
    """Return what an advance of a program is told of the calls that it may make itself:
    nothing if it makes none. Beside what the budget has `left` for it, that is how many
    nodes are reserved for it.
    """
    timings = state.timings
    if timings.fuse == "off":
        return {}
    session = state.sessions.get(program)
    repeats = session is not None and session.may_take_over
    if state.budget is not None and "nodes" in state.budget.limits:
        reserved = state.budget.reserved.get(program, Amounts())
        calls = max(0, reserved.nodes - 1)  # one node is the program itself
        left = {**left, "nodes": calls}
    return {"fuse": timings.fuse, "usual": timings.usual(), "repeats": repeats, "left": left}
