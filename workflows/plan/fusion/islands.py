"""What runs behind ready nodes in the same activity, so that nobody waits for what it does not need.

A piece is a ready node with what waits for nothing else, and so on: a chain, or a graph with the edges inside. Of its
nodes only the last ones are read outside, and all of these by the same nodes. So a piece holds nothing back.

A large graph is cut behind a level: as many whole levels run together as there is room for. What goes on behind them
waits for all of them, but no longer than a worker would take for the calls one by one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.limits import MAX_ISLAND_MILLIS, MAX_MEMBERS

ALONE_MILLIS = 8
"""About what a call takes of its worker, and of the one of its run, if it has an activity of its own."""
LARGE = 500
"""From so many nodes on a graph is cut behind its levels. What has fewer, and no room in one piece, has few events."""
LOOKED_AT = 8
"""For each node of a piece, how many of those behind it are looked at, so that this takes time by what is found."""
TOGETHER_MILLIS = 250
"""Pieces of a large graph that end within so long are put together."""


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
        self._ends: dict[int, int] = {}
        self._next: dict[int, bool] = {}
        self._later: dict[int, bool] = {}

    def pieces(self, ready: Sequence[int], *, widest: int, room: int) -> list[list[int]]:
        """Return the ready nodes with what runs behind them, each piece in an order in which it can run.

        A piece has at most `widest` ready nodes, and all have at most `room` others.
        """
        members = self._grow(ready, room)
        outside = dict.fromkeys(other for node in members for other in self._graph.consumers[node])
        is_large = len(self._graph.specs) >= LARGE
        self._next = {other: True for other in outside if is_large and other not in members and self._joins_in(other)}
        while True:
            self._later = self._all_behind(self._next, LOOKED_AT * len(members))
            self._prune(members)
            found = self._components(members)
            faulty = [piece for piece in found if not self._is_sound(piece, members, widest)]
            if not faulty:
                return found
            for piece in faulty:
                deepest = max(self._depth[node] for node in piece)
                gone = [node for node in piece if self._depth[node] == deepest]
                if is_large and len(self._readers(piece, members)) == 1:  # only too many, or some would wait too long
                    self._next |= dict.fromkeys(gone, True)
                for node in gone:
                    del members[node]

    def _grow(self, ready: Sequence[int], room: int) -> dict[int, bool]:
        """Return the ready nodes, and all that wait for nothing but these and each other, by whole levels."""
        members = dict.fromkeys(ready, True)
        self._ends = {node: self._millis(node) for node in ready}
        self._depth = dict.fromkeys(ready, 0)
        level = list(ready)
        for depth in range(1, len(self._graph.specs)):
            ends = self._behind(level, members)
            level = list(ends)
            if not level or len(members) + len(level) - len(ready) > room:
                break
            self._ends |= ends
            self._depth |= dict.fromkeys(level, depth)
            members |= dict.fromkeys(level, True)
        return members

    def _behind(self, level: Sequence[int], members: dict[int, bool]) -> dict[int, int]:
        """Return what may run behind these in the same pieces, and when it ends there."""
        graph, found = self._graph, dict[int, int]()
        for other in dict.fromkeys(other for node in level for other in graph.consumers[node]):
            inside = [dep for dep in graph.deps[other] if dep in members]
            if len(inside) == self._open_deps[other] and self._joins_in(other):
                found[other] = max(self._ends[dep] for dep in inside) + self._millis(other)
        return {other: end for other, end in found.items() if end <= MAX_ISLAND_MILLIS}

    def _all_behind(self, nodes: Iterable[int], most: int) -> dict[int, bool]:
        """Return these nodes, and what waits for one of them: the nearest of it, about so many."""
        found = dict.fromkeys(nodes, True)
        stack = list(found)
        for node in stack:
            if len(stack) > most:
                break
            others = [other for other in readers_of(self._graph, node) if other not in found]
            found |= dict.fromkeys(others, True)
            stack += others
        return found

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

    def _outside(self, node: int, members: Mapping[int, bool]) -> tuple[int, ...]:
        """Return what waits for a node outside, and not also for what only the next pieces run."""
        others = readers_of(self._graph, node)
        return tuple(other for other in others if other not in members and other not in self._later)

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
        is_fit = first <= widest and len(piece) <= MAX_MEMBERS and len(self._readers(piece, members)) == 1
        return is_fit and self._held_up(piece) <= ALONE_MILLIS * len(piece)

    def _readers(self, piece: list[int], members: Mapping[int, bool]) -> list[tuple[int, ...]]:
        """Return what waits outside for the last nodes of a piece, each set of it once."""
        ends = [node for node in piece if not any(other in members for other in self._graph.consumers[node])]
        return list(dict.fromkeys(tuple(sorted(self._outside(node, members))) for node in ends))

    def _held_up(self, piece: list[int]) -> int:
        """Return how long the first of the next nodes waits for the end of this piece that could go on before it."""
        begins: dict[int, int] = {}
        for node in piece:
            for other in readers_of(self._graph, node) if self._next else ():
                if other in self._next:
                    begins[other] = max(begins.get(other, 0), self._ends[node])
        return self._end(piece) - min(begins.values()) if begins else 0

    def _end(self, piece: list[int]) -> int:
        return max(self._ends[node] for node in piece)

    def readers(self, piece: list[int]) -> tuple[int, ...]:
        """Return what waits for a piece. Those behind which only next pieces go on have in common when they end."""
        [readers] = self._readers(piece, dict.fromkeys(piece, True))
        return readers or (-1 - self._end(piece) // TOGETHER_MILLIS,)


def dealt(pieces: Iterable[list[int]], *, workers: int, room: int, most: int = MAX_MEMBERS) -> list[list[int]]:
    """Return the pieces put together in about equal parts, each in its order: one a worker, so that none stands idle,
    or more so that each has `most`, but only as many as there is room for.
    """
    pieces = list(pieces)
    count = sum(map(len, pieces))
    lanes = max(1, min(count, room, max(workers, ceil(count / most))))
    share = ceil(count / lanes)
    found: list[list[int]] = []
    for piece in pieces:
        size = len(found[-1] if found else ()) + len(piece)
        if not found or (size > share and len(found) < lanes) or (size > MAX_MEMBERS and len(found) < room):
            found.append([])
        found[-1] += piece
    return found
