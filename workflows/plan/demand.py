"""Who still wants a node's output. What nobody wants any more is called off, and so on upwards."""

from heapq import heapify, heappop, heappush

from workflows.plan.settling import call_off, live
from workflows.plan.state import BLOCKED, CANCELLED, DELEGATED, FAILED, PENDING, SKIPPED, RunState

_NOTE = ("NotNeeded", "the join it feeds is already decided")


def unwant(state: RunState, join: int) -> None:
    """The join is decided: call off its live inputs that nobody else wants, and what only they wanted.

    Consumers come before what they consume, so each node is looked at once, when all who might want it are known.
    What is blocked has nothing to call off, but does not want anything either.
    """
    graph = state.graph
    off = {join: True}
    heap = [(-graph.place[node], node) for node in graph.specs[join].inputs if _open(state, node)]
    heapify(heap)
    while heap:
        node = heappop(heap)[1]
        if node in off or not _open(state, node) or wanted(state, node, off):
            continue
        gone = _with_standins(state, node)
        off |= dict.fromkeys(gone, True)
        if state.status[node] != BLOCKED:
            call_off(state, node, CANCELLED, _NOTE)
        for here in gone:
            spec = graph.specs[here]
            for other in (*graph.deps[here], *spec.inputs, *([spec.instead] if spec.instead >= 0 else [])):
                if _open(state, other):
                    heappush(heap, (-graph.place[other], other))


def _with_standins(state: RunState, node: int) -> list[int]:
    """Return a node with the stand-in whose end it waits for, and that one's own: they are called off together."""
    found = [node]
    while state.status[found[-1]] == DELEGATED:
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
    host = graph.standin_for.get(node)
    return host is not None and host not in off and _open(state, host)


def _join_wants(state: RunState, join: int, node: int) -> bool:
    status = state.status[join]
    if status in (SKIPPED, CANCELLED):
        return False
    if join in state.chosen:
        return node in state.chosen[join]
    return status in (PENDING, BLOCKED) or (status == FAILED and join not in state.late)
