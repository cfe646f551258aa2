"""What runs behind ready nodes in the same activity, so that nobody waits for
what it does not need.

A piece is a ready node with what waits for nothing else, and so on: a chain, or a graph with the
edges inside. Of its nodes only the last ones are read outside, and all of these by the same nodes.
So a piece holds nothing back.

A large graph is cut behind a level: as many whole levels run together as there is room
for. What goes on behind them waits for all of them, but no longer than a worker would take
for the calls one by one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.limits import MAX_ISLAND_MILLIS, MAX_MEMBERS

ALONE_MILLIS = 8
"""About what a call takes of its worker, and of the one of its run, if it has
an activity of its own.
"""
LARGE = 500
"""From so many nodes on a graph is cut behind its levels. What has fewer, and no room in one
piece, has few events.
"""
LOOKED_AT = 8
"""For each node of a piece, how many of those behind it are looked at, so that this takes
time by what is found.
"""
TOGETHER_MILLIS = 250
"""Pieces of a large graph that end within so long are put together."""


def readers_of(graph: Graph, node: int) -> tuple[int, ...]:
    """Return what waits for a node. The run's answer does not: a run ends when
    nothing of it runs any more.
    """
    return tuple(dict.fromkeys(graph.behind(node)))


class Islands:
    """Finds the pieces of a graph. `open_deps` says for how many nodes each one still waits,
    `joins_in` whether a node that waits may run inside a piece, and `millis` how long it takes.
    """

    def __init__(
        self,
        graph: Graph,
        open_deps: Callable[[int], int],
        joins_in: Callable[[int], bool],
        millis: Callable[[int], int],
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
        """Return the ready nodes with what runs behind them, each piece in an
        order in which it can run.

        A piece has at most `widest` ready nodes, and all have at most `room` others.
        """
        members = self._grow(ready, room)
        is_large = len(self._graph.specs) >= LARGE
        self._next = {}
        if is_large:
            # What runs behind the last whole level goes on in further pieces.
            for consumer in self._consumers_of(members):
                if consumer not in members and self._joins_in(consumer):
                    self._next[consumer] = True

        # Faulty pieces lose their last level until all pieces are sound: a level of
        # ready nodes always is.
        while True:
            self._later = self._all_behind(self._next, LOOKED_AT * len(members))
            self._prune(members)
            pieces = self._components(members)
            faulty: list[list[int]] = []
            for piece in pieces:
                if not self._is_sound(piece, members, widest):
                    faulty.append(piece)
            if not faulty:
                return pieces
            for piece in faulty:
                last_level = self._last_level(piece)
                # A piece with one set of readers only had too many nodes, or kept some of
                # them waiting too long.
                if is_large and len(self._readers(piece, members)) == 1:
                    self._next |= dict.fromkeys(last_level, True)
                for node in last_level:
                    del members[node]

    def _last_level(self, piece: list[int]) -> list[int]:
        """Return the nodes of a piece that run last."""
        deepest = max(self._depth[node] for node in piece)
        return [node for node in piece if self._depth[node] == deepest]

    def _consumers_of(self, nodes: Iterable[int]) -> dict[int, None]:
        """Return what consumes one of these nodes, each once."""
        consumers: dict[int, None] = {}
        for node in nodes:
            consumers |= dict.fromkeys(self._graph.consumers[node])
        return consumers

    def _grow(self, ready: Sequence[int], room: int) -> dict[int, bool]:
        """Return the ready nodes, and all that wait for nothing but these and each
        other, by whole levels.
        """
        members = dict.fromkeys(ready, True)
        self._ends = {node: self._millis(node) for node in ready}
        self._depth = dict.fromkeys(ready, 0)
        level = list(ready)
        for depth in range(1, len(self._graph.specs)):
            ends = self._behind(level, members)
            level = list(ends)
            joined = len(members) + len(level) - len(ready)
            if not level or joined > room:
                break
            self._ends |= ends
            self._depth |= dict.fromkeys(level, depth)
            members |= dict.fromkeys(level, True)
        return members

    def _behind(self, level: Sequence[int], members: dict[int, bool]) -> dict[int, int]:
        """Return what may run behind these in the same pieces, and when it ends there."""
        ends: dict[int, int] = {}
        for consumer in self._consumers_of(level):
            ends_inside: list[int] = []
            for dep in self._graph.deps[consumer]:
                if dep in members:
                    ends_inside.append(self._ends[dep])
            waits_inside = len(ends_inside) == self._open_deps(consumer)
            if waits_inside and self._joins_in(consumer):
                end = max(ends_inside) + self._millis(consumer)
                if end <= MAX_ISLAND_MILLIS:
                    ends[consumer] = end
        return ends

    def _all_behind(self, nodes: Iterable[int], most: int) -> dict[int, bool]:
        """Return these nodes, and what waits for one of them: the nearest of it, about so many."""
        behind = dict.fromkeys(nodes, True)
        queue = list(behind)
        for node in queue:  # which grows
            if len(queue) > most:
                break
            for reader in readers_of(self._graph, node):
                if reader not in behind:
                    behind[reader] = True
                    queue.append(reader)
        return behind

    def _prune(self, members: dict[int, bool]) -> None:
        """Take out what runs behind a node that is read outside too: that
        would have to wait for it.
        """
        graph = self._graph
        stack = list(members)
        while stack:
            node = stack.pop()
            behind: list[int] = []
            for consumer in dict.fromkeys(graph.consumers[node]):
                if consumer in members:
                    behind.append(consumer)
            if not behind:
                continue
            if node in members and not self._outside(node, members):
                continue
            for consumer in behind:
                del members[consumer]
            # What waits for those that went is read outside now, and so is what they wait for.
            stack += behind
            for consumer in behind:
                for dep in graph.deps[consumer]:
                    if dep in members:
                        stack.append(dep)

    def _outside(self, node: int, members: Mapping[int, bool]) -> tuple[int, ...]:
        """Return what waits for a node outside, and not also for what only the next pieces run."""
        outside: list[int] = []
        for reader in readers_of(self._graph, node):
            if reader not in members and reader not in self._later:
                outside.append(reader)
        return tuple(outside)

    def _components(self, members: dict[int, bool]) -> list[list[int]]:
        """Return what hangs together, in the order of the members."""
        graph = self._graph
        pieces: list[list[int]] = []
        piece_of: dict[int, int] = {}
        for member in members:
            if member in piece_of:
                continue
            piece_of[member] = len(pieces)
            queue = [member]
            for node in queue:  # which grows
                for neighbour in (*graph.consumers[node], *graph.deps[node]):
                    if neighbour in members and neighbour not in piece_of:
                        piece_of[neighbour] = len(pieces)
                        queue.append(neighbour)
            pieces.append([])
        for node in members:
            pieces[piece_of[node]].append(node)
        return pieces

    def _is_sound(self, piece: list[int], members: dict[int, bool], widest: int) -> bool:
        """Whether a piece may run as one: all that is read outside is read by the same nodes."""
        if len(piece) == 1:
            return True
        ready_count = 0
        for node in piece:
            if self._depth[node] == 0:
                ready_count += 1
        if ready_count > widest or len(piece) > MAX_MEMBERS:
            return False
        if len(self._readers(piece, members)) > 1:
            return False
        return self._held_up(piece) <= ALONE_MILLIS * len(piece)

    def _readers(self, piece: list[int], members: Mapping[int, bool]) -> list[tuple[int, ...]]:
        """Return what waits outside for the last nodes of a piece, each set of it once."""
        readers: dict[tuple[int, ...], None] = {}
        for node in piece:
            is_last = members.keys().isdisjoint(self._graph.consumers[node])
            if is_last:
                outside = tuple(sorted(self._outside(node, members)))
                readers[outside] = None
        return list(readers)

    def _held_up(self, piece: list[int]) -> int:
        """Return how long the first of the next nodes waits for the end of this piece that
        could go on before it.
        """
        if not self._next:
            return 0
        begins: dict[int, int] = {}
        for node in piece:
            for reader in readers_of(self._graph, node):
                if reader in self._next:
                    begin = begins.get(reader, 0)
                    begins[reader] = max(begin, self._ends[node])
        if not begins:
            return 0
        return self._end(piece) - min(begins.values())

    def _end(self, piece: list[int]) -> int:
        return max(self._ends[node] for node in piece)

    def readers(self, piece: list[int]) -> tuple[int, ...]:
        """Return what waits for a piece. Those behind which only next pieces go on have
        in common when they end.
        """
        [readers] = self._readers(piece, dict.fromkeys(piece, True))
        if readers:
            return readers
        return (-1 - self._end(piece) // TOGETHER_MILLIS,)


def dealt(
    pieces: Iterable[list[int]], *, workers: int, room: int, most: int = MAX_MEMBERS
) -> list[list[int]]:
    """Return the pieces put together in about equal parts, each in its order: one a worker, so that
    none stands idle, or more so that each has `most`, but only as many as there is room for.
    """
    pieces = list(pieces)
    if not pieces:
        return []
    count = sum(map(len, pieces))
    wanted_parts = max(workers, ceil(count / most))
    part_count = max(1, min(count, room, wanted_parts))
    share = ceil(count / part_count)
    parts: list[list[int]] = [[]]
    for piece in pieces:
        size = len(parts[-1]) + len(piece)
        is_full = size > share and len(parts) < part_count
        is_too_big = size > MAX_MEMBERS and len(parts) < room
        if parts[-1] and (is_full or is_too_big):
            parts.append([])
        parts[-1] += piece
    return parts
