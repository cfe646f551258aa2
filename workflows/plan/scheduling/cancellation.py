"""Cancels nodes whose output nobody needs any more, and then the nodes that only they needed."""

from collections.abc import Iterable
from heapq import heappop, heappush

from workflows.plan.scheduling.completion import cancel, live
from workflows.plan.scheduling.state import AWAITING_FALLBACK, BLOCKED, CANCELLED, FAILED, PENDING, SKIPPED, RunState

_DECIDED = ("NotNeeded", "the join it feeds is already decided")
_LATE = ("NotNeeded", "the join it feeds waits no longer: its deadline has passed")
_NOT_MADE = ("NotNeeded", "its program ran again, and did not call it")
_UNREAD = ("NotNeeded", "the program has ended without it")
_CONSUMER_SKIPPED = ("NotNeeded", "the node that needed it was skipped")


def cancel_unneeded(state: RunState, join: int, *, late: bool) -> None:
    """Cancel the live inputs of a decided join that nobody else needs, and what only they needed. `late` says that it
    was its deadline that decided.
    """
    _cancel(state, {join: True}, state.graph.specs[join].inputs, _LATE if late else _DECIDED)


def cancel_unread(state: RunState, step: int) -> None:
    """Cancel the calls that a program had open when it ended with this step, but let writes end."""
    specs = state.graph.specs
    unread = [node for node in specs[step].inputs if _open(state, node) and specs[node].effect != "write"]
    if unread:
        _cancel(state, {step: True}, unread, _UNREAD)


def cancel_calls(state: RunState, skipped: list[int]) -> None:
    """Cancel what only the fallback nodes among `skipped` needed, such as the calls of a tool loop."""
    graph = state.graph
    fallbacks = [node for node in skipped if node in graph.fallback_for]
    needed = [other for node in fallbacks for other in (*graph.deps[node], *graph.specs[node].inputs)]
    _cancel(state, dict.fromkeys(skipped, True), needed, _CONSUMER_SKIPPED)


def cancel_inputs(state: RunState, gone: list[int]) -> None:
    """Cancel what only these steps and joins of a program needed: the program has run again without it."""
    graph = state.graph
    needed = [other for node in gone for other in (*graph.deps[node], *graph.specs[node].inputs)]
    _cancel(state, dict.fromkeys(gone, True), needed, _NOT_MADE)


def _cancel(state: RunState, off: dict[int, bool], nodes: Iterable[int], note: tuple[str, str]) -> None:
    """Cancel those of `nodes` that nothing outside `off` needs, and then what only they needed.

    Consumers come before what they consume, so each node is visited once, when all its consumers are decided. A blocked
    node has nothing to cancel, but no longer needs anything either.
    """
    graph = state.graph
    graph.sort()
    heap: list[tuple[int, int]] = []
    for node in nodes:
        if _open(state, node):
            heappush(heap, (-graph.place[node], node))
    while heap:
        node = heappop(heap)[1]
        if node in off or not _open(state, node) or wanted(state, node, off):
            continue
        gone = with_fallbacks(state, node)
        off |= dict.fromkeys(gone, True)
        if state.status[node] != BLOCKED:
            cancel(state, node, CANCELLED, note)
        for here in gone:
            spec = graph.specs[here]
            tasks = [other for other in graph.made.get(here, ()) if graph.specs[other].maker == here]
            for other in (*graph.deps[here], *spec.inputs, *([spec.instead] if spec.instead >= 0 else []), *tasks):
                if _open(state, other):
                    heappush(heap, (-graph.place[other], other))


def with_fallbacks(state: RunState, node: int) -> list[int]:
    """Return a node, the fallback it waits for, the fallback of that one, and so on: they are cancelled together."""
    found = [node]
    while state.status[found[-1]] == AWAITING_FALLBACK:
        found.append(state.graph.specs[found[-1]].instead)
    return found


def _open(state: RunState, node: int) -> bool:
    return live(state.status[node]) or state.status[node] == BLOCKED


def wanted(state: RunState, node: int, off: dict[int, bool]) -> bool:
    """Whether the answer, or a node that is not in `off`, still needs the output of this node.

    A consumer that has succeeded needs it, because the node runs again for that consumer.
    """
    graph = state.graph
    if node in graph.answers:
        return True
    if any(other not in off and state.status[other] not in (SKIPPED, CANCELLED) for other in graph.consumers[node]):
        return True
    if any(join not in off and _join_wants(state, join, node) for join in graph.joins[node]):
        return True
    host = graph.fallback_for.get(node)
    return host is not None and host not in off and _open(state, host)


def _join_wants(state: RunState, join: int, node: int) -> bool:
    status = state.status[join]
    if status in (SKIPPED, CANCELLED):
        return False
    if join in state.chosen:
        return node in state.chosen[join]
    return status in (PENDING, BLOCKED) or (status == FAILED and join not in state.past_deadline)
