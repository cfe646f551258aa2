"""Cancels nodes whose output nobody needs any more, and then the nodes that only they needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush

from sennit.workflows.plan.scheduling.completion import cancel, live
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    CANCELLED,
    DELEGATED,
    FAILED,
    IN_DOUBT,
    PENDING,
    SKIPPED,
)

DECIDED = ("NotNeeded", "the join it feeds is already decided")
LATE = ("NotNeeded", "the join it feeds waits no longer: its deadline has passed")
NOT_MADE = ("NotNeeded", "its program ran again, and did not call it")
CONSUMER_SKIPPED = ("NotNeeded", "the node that needed it was skipped")
GIVEN_UP = ("Cancelled", "the program has cancelled it")
GIVEN_UP_BY_MODEL = ("Cancelled", "the model has cancelled it")
ANSWERED = ("NotNeeded", "the model has answered without it")
_UNREAD = ("NotNeeded", "the program has ended without it")


def cancel_inputs(
    state: RunState, of: Sequence[int], note: tuple[str, str], off: Iterable[int] = ()
) -> None:
    """Cancel what only these nodes needed or have begun, and then what only that needed. Those in
    `off` need nothing any more either.
    """
    fed: list[int] = []
    for node in of:
        fed += _fed(state, node)
    gone = dict.fromkeys((*of, *off), True)
    _cancel(state, gone, fed, note)


def give_up(
    state: RunState,
    calls: Sequence[int],
    note: tuple[str, str] = GIVEN_UP,
    *,
    spares_writes: bool = True,
) -> None:
    """Cancel calls for which no script waits any more, and what only they needed."""

    def is_spared(node: int) -> bool:
        return spares_writes and state.graph.specs[node].effect == "write"

    if calls:
        _cancel(state, {}, calls, note, is_spared)


def expire(state: RunState, call: int) -> None:
    """Fail a program's call that has not ended in time, and cancel what only it needed. A write of
    which nobody knows whether it was made waits for a person still.
    """
    status = state.units[call].status
    if not live(status) or status == IN_DOUBT:
        return
    gone = with_fallbacks(state, call)
    seconds = state.graph.specs[call].expires / 1000
    note = ("TimeoutError", f"more than {seconds:g} s")
    cancel(state, call, FAILED, note)
    cancel_inputs(state, gone, note)


def cancel_unread(state: RunState, program: int) -> None:
    """Cancel the calls and tasks that a program has begun and not waited for when it ends.
    Its writes go on to their ends, and so does what a person has run again after the
    script was told of its end.
    """
    session = state.sessions[program]
    calls: dict[int, None] = {}
    for call in session.calls:
        if not session.is_told(call):
            calls[call] = None

    def is_write(node: int) -> bool:
        return node in calls and state.graph.specs[node].effect == "write"

    _cancel(state, {program: True}, calls, _UNREAD, is_write)


def cancel_calls(state: RunState, program: int) -> None:
    """Cancel all that a program has called, because nobody needs its output any more."""
    calls = state.graph.made_by(program)
    _cancel(state, {program: True}, calls, CONSUMER_SKIPPED)


def cancel_running_calls(state: RunState, turn: int) -> None:
    """Cancel the calls of a tool loop that go on although the model has come to its answer, in this
    turn or in one behind it.
    """
    specs = state.graph.specs
    turns = [turn]
    calls: list[int] = []
    for here in turns:  # which grows
        calls += _calls_going_on(state, here)
        later = specs[here].successor
        if later >= 0 and specs[later].maker >= 0:
            turns.append(later)
    _cancel(state, dict.fromkeys(turns, True), calls, ANSWERED)


def give_up_for_model(state: RunState, join: int) -> None:
    """Cancel the calls that a model has cancelled in the turn behind which this join comes."""
    specs = state.graph.specs
    for call in specs[join].given_up:
        if live(state.units[call].status) and specs[call].effect != "write":
            cancel(state, call, CANCELLED, GIVEN_UP_BY_MODEL)


def _calls_going_on(state: RunState, turn: int) -> list[int]:
    """Return the calls before a turn of a tool loop, some of which may run
    although the turn has started.
    """
    specs = state.graph.specs
    calls: list[int] = []
    for dep in state.graph.deps[turn]:
        if specs[dep].policy == "turn":
            calls += specs[dep].inputs
    return calls


def _fed(state: RunState, node: int) -> Iterator[int]:
    """Yield what a node waits for or could have told it later, and what it
    has called as a program.
    """
    graph = state.graph
    yield from graph.deps[node]
    yield from _calls_going_on(state, node)
    yield from graph.specs[node].inputs
    yield from graph.made_by(node)


def _cancel(
    state: RunState,
    off: dict[int, bool],
    nodes: Iterable[int],
    note: tuple[str, str],
    spared: Callable[[int], bool] = lambda _: False,
) -> None:
    """Cancel those of `nodes` that nothing outside `off` needs, and then what only they
    needed, but not the `spared`.

    Consumers come before what they consume, so that a node is mostly visited once, when all its
    consumers are decided. A node that comes too early, because nodes were appended since the graph
    was sorted, comes again with each of its consumers: to sort the graph here would take longer the
    more nodes there are. A blocked node has nothing to cancel, but no longer needs anything either.
    """
    heap: list[tuple[int, int]] = []
    _visit_later(state, heap, nodes)
    while heap:
        _, node = heappop(heap)
        if node in off or not _open(state, node):
            continue
        if spared(node) or wanted(state, node, off):
            continue

        # Nobody needs the node: it is cancelled with the fallbacks that it waits for.
        gone = with_fallbacks(state, node)
        off |= dict.fromkeys(gone, True)
        if state.units[node].status != BLOCKED:
            cancel(state, node, CANCELLED, note)

        # Look at each node that they needed: perhaps nobody needs it now.
        for here in gone:
            _visit_later(state, heap, _fed(state, here))
            successor = state.graph.specs[here].successor
            if successor >= 0:
                _visit_later(state, heap, (successor,))


def _visit_later(state: RunState, heap: list[tuple[int, int]], nodes: Iterable[int]) -> None:
    """Put those of the nodes that can still be cancelled into the heap: consumers come out
    before what they consume.
    """
    for node in nodes:
        if _open(state, node):
            heappush(heap, (-state.graph.place[node], node))


def with_fallbacks(state: RunState, node: int) -> list[int]:
    """Return a node, the fallback it waits for, the fallback of that one, and so on: they
    are cancelled together.
    """
    chain = [node]
    while state.units[node].status == DELEGATED:
        node = state.graph.specs[node].successor
        if node < 0:
            break
        chain.append(node)
    return chain


def _open(state: RunState, node: int) -> bool:
    """Whether a node may still run, or is blocked."""
    status = state.units[node].status
    return live(status) or status == BLOCKED


def wanted(state: RunState, node: int, off: dict[int, bool]) -> bool:
    """Whether the answer, or a node that is not in `off`, still needs the output of this node.

    A consumer that has succeeded needs it, because the node runs again for that consumer.
    """
    graph = state.graph
    if node in graph.answering:
        return True
    for consumer in graph.consumers[node]:
        if consumer not in off and state.units[consumer].status not in (SKIPPED, CANCELLED):
            return True
    for join in graph.joins[node]:
        if join not in off and _join_wants(state, join, node):
            return True
    host = graph.predecessor.get(node)
    if host is not None and host not in off and _open(state, host):
        return True
    return _script_wants(state, node, off)


def _script_wants(state: RunState, call: int, off: dict[int, bool]) -> bool:
    """Whether the script that has made a call waits for it, or may still make it again."""
    program = state.graph.caller_of(call)
    if program < 0 or program in off or not _open(state, program):
        return False
    session = state.sessions[program]
    return call in session.waits or call in session.left


def _join_wants(state: RunState, join: int, node: int) -> bool:
    """Whether a join has taken the value of an input, or may still take it."""
    status = state.units[join].status
    if status in (SKIPPED, CANCELLED):
        return False
    chosen = state.units[join].chosen
    if chosen is not None:
        return node in chosen
    if status == FAILED:
        return state.units[join].past_deadline is None
    return status in (PENDING, BLOCKED)
