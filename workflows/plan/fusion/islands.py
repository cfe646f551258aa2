"""What runs behind ready nodes in the same activity, so that nobody waits for what it does not need.

A piece is a ready node with what waits for nothing else, and so on: a chain, or a small graph with the edges inside. Of
its nodes only the last ones are read outside, and all of these by the same nodes. So a piece holds nothing back.
"""

from collections.abc import Callable, Iterable, Sequence
from math import ceil

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.limits import MAX_ISLAND_MILLIS, MAX_MEMBERS


def readers_of(graph: Graph, node: int) -> tuple[int, ...]:
    """Return what waits for a node. The run's answer does not: a run ends when nothing of it runs any more."""
    return tuple(dict.fromkeys(graph.behind(node)))


class Islands:
    """Finds the pieces of a graph. `open_deps` says for how many nodes each one still waits, `joins_in` whether a node
    that waits may run inside a piece, and `millis` how long it takes.
    """

    def __init__(
        self, graph: Graph, open_deps: Sequence[int], joins_in: Callable[[int], bool], millis: Callable[[int], int]
    ) -> None:
        self._graph = graph
        self._open_deps = open_deps
        self._joins_in = joins_in
        self._millis = millis
        self._depth: dict[int, int] = {}

    def pieces(self, ready: Sequence[int], *, widest: int, room: int) -> list[list[int]]:
        """Return the ready nodes with what runs behind them, each piece in an order in which it can run.

        A piece has at most `widest` ready nodes, and all have at most `room` others.
        """
        members = self._grow(ready, room)
        while True:
            self._prune(members)
            found = self._components(members)
            faulty = [piece for piece in found if not self._is_sound(piece, members, widest)]
            if not faulty:
                return found
            for piece in faulty:
                deepest = max(self._depth[node] for node in piece)
                for node in piece:
                    if self._depth[node] == deepest:
                        del members[node]

    def _grow(self, ready: Sequence[int], room: int) -> dict[int, bool]:
        """Return the ready nodes, and all that wait for nothing but these and each other."""
        graph, members = self._graph, dict.fromkeys(ready, True)
        ends = {node: self._millis(node) for node in ready}
        self._depth = dict.fromkeys(ready, 0)
        stack = list(ready)
        for node in stack:
            for other in graph.consumers[node]:
                if other in members or len(members) - len(ready) >= room or not self._joins_in(other):
                    continue
                inside = [dep for dep in graph.deps[other] if dep in members]
                end = max(ends[dep] for dep in inside) + self._millis(other)
                if len(inside) < self._open_deps[other] or end > MAX_ISLAND_MILLIS:
                    continue
                members[other], ends[other] = True, end
                self._depth[other] = 1 + max(self._depth[dep] for dep in inside)
                stack.append(other)
        return members

    def _prune(self, members: dict[int, bool]) -> None:
        """Take out what runs behind a node that is read outside too: that would have to wait for it."""
        graph = self._graph
        stack = list(members)
        while stack:
            node = stack.pop()
            behind = [other for other in dict.fromkeys(graph.consumers[node]) if other in members]
            if not behind or (node in members and not self._outside(node, members)):
                continue
            for other in behind:
                del members[other]
            stack += [*behind, *(dep for other in behind for dep in graph.deps[other] if dep in members)]

    def _outside(self, node: int, members: dict[int, bool]) -> tuple[int, ...]:
        return tuple(other for other in readers_of(self._graph, node) if other not in members)

    def _components(self, members: dict[int, bool]) -> list[list[int]]:
        """Return what hangs together, in the order of the members."""
        graph, found = self._graph, list[list[int]]()
        place: dict[int, int] = {}
        for first in members:
            if first in place:
                continue
            place[first] = len(found)
            stack = [first]
            for node in stack:
                for other in (*graph.consumers[node], *graph.deps[node]):
                    if other in members and other not in place:
                        place[other] = len(found)
                        stack.append(other)
            found.append([])
        for node in members:
            found[place[node]].append(node)
        return found

    def _is_sound(self, piece: list[int], members: dict[int, bool], widest: int) -> bool:
        """Whether a piece may run as one: all that is read outside is read by the same nodes."""
        if len(piece) == 1:
            return True
        first = sum(not self._depth[node] for node in piece)
        ends = [node for node in piece if not any(other in members for other in self._graph.consumers[node])]
        readers = {tuple(sorted(self._outside(node, members))): True for node in ends}
        return len(readers) == 1 and first <= widest and len(piece) <= MAX_MEMBERS

    def readers(self, piece: list[int]) -> tuple[int, ...]:
        """Return what waits for a piece."""
        inside = dict.fromkeys(piece, True)
        ends = [node for node in piece if not any(other in inside for other in self._graph.consumers[node])]
        return tuple(sorted(self._outside(ends[0], inside)))


def dealt(pieces: Iterable[list[int]], *, workers: int, room: int) -> list[list[int]]:
    """Return the pieces put together in about equal parts, each in its order: one a worker, so that none stands idle,
    or more if they hold too many, but only as many as there is room for.
    """
    pieces = list(pieces)
    count = sum(map(len, pieces))
    lanes = max(1, min(count, room, max(workers, ceil(count / MAX_MEMBERS))))
    share = ceil(count / lanes)
    found: list[list[int]] = []
    for piece in pieces:
        size = len(found[-1] if found else ()) + len(piece)
        if not found or (size > share and len(found) < lanes) or (size > MAX_MEMBERS and len(found) < room):
            found.append([])
        found[-1] += piece
    return found
