"""Cancels nodes whose output nobody needs any more, and then the nodes that only they needed."""

from collections.abc import Iterable
from heapq import heappop, heappush

from workflows.plan.scheduling.completion import call_off, live
from workflows.plan.scheduling.state import AWAITING_FALLBACK, BLOCKED, CANCELLED, FAILED, PENDING, SKIPPED, RunState

_DECIDED = ("NotNeeded", "the join it feeds is already decided")
_GIVEN_UP = ("NotNeeded", "what it was for was given up")


def cancel_unneeded(state: RunState, join: int) -> None:
    """Cancel the live inputs of a decided join that nobody else needs, and what only they needed."""
    _call_off(state, {join: True}, state.graph.specs[join].inputs, _DECIDED)


def cancel_calls(state: RunState, given_up: list[int]) -> None:
    """Cancel what only the fallback nodes among `given_up` needed, such as the calls of a tool loop."""
    graph = state.graph
    gone = [node for node in given_up if node in graph.fallback_for]
    wants = [other for node in gone for other in (*graph.deps[node], *graph.specs[node].inputs)]
    _call_off(state, dict.fromkeys(given_up, True), wants, _GIVEN_UP)


def _call_off(state: RunState, off: dict[int, bool], wants: Iterable[int], note: tuple[str, str]) -> None:
    """Call off of `wants` what nobody wants who is not `off`, and what only that wanted.

    Consumers come before what they consume, so each node is looked at once, when all who might want it are known.
    What is blocked has nothing to call off, but does not want anything either.
    """
    graph = state.graph
    heap: list[tuple[int, int]] = []
    for node in wants:
        if _open(state, node):
            heappush(heap, (-graph.place[node], node))
    while heap:
        node = heappop(heap)[1]
        if node in off or not _open(state, node) or wanted(state, node, off):
            continue
        gone = with_fallbacks(state, node)
        off |= dict.fromkeys(gone, True)
        if state.status[node] != BLOCKED:
            call_off(state, node, CANCELLED, note)
        for here in gone:
            spec = graph.specs[here]
            for other in (*graph.deps[here], *spec.inputs, *([spec.instead] if spec.instead >= 0 else [])):
                if _open(state, other):
                    heappush(heap, (-graph.place[other], other))


def with_fallbacks(state: RunState, node: int) -> list[int]:
    """Return a node with the fallback node whose end it waits for, and that one's own: they are called off together."""
    found = [node]
    while state.status[found[-1]] == AWAITING_FALLBACK:
        found.append(state.graph.specs[found[-1]].instead)
    return found


def _open(state: RunState, node: int) -> bool:
    return live(state.status[node]) or state.status[node] == BLOCKED


def wanted(state: RunState, node: int, off: dict[int, bool]) -> bool:
    """Whether the answer, or anybody not in `off`, has use for what a node may yet give.

    A consumer that succeeded has: the node runs again for it.
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
