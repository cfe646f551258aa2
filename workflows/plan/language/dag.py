"""Order and cycles in a directed graph whose vertices are the numbers from 0. Any
depth; O(vertices + edges).
"""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter


def topological_order(before: Sequence[Iterable[int]]) -> list[int]:
    """Return the vertices so that each comes after those in `before[vertex]`, otherwise
    by level and by number.

    Raises graphlib.CycleError, which is a ValueError.
    """
    order = _order(before)
    if len(order) < len(before):
        raise CycleError("nodes are in a cycle", first_cycle(before))
    return order


def _order(before: Sequence[Iterable[int]]) -> list[int]:
    """Return the order of the vertices that are on no cycle, and behind none."""
    behind: list[list[int]] = [[] for _ in before]
    waits = [0] * len(before)
    for vertex, others in enumerate(before):
        for other in others:
            behind[other].append(vertex)
            waits[vertex] += 1
    order = [vertex for vertex, count in enumerate(waits) if not count]
    for vertex in order:  # it grows
        for later in behind[vertex]:
            waits[later] -= 1
            if not waits[later]:
                order.append(later)
    return order


def first_cycle(after: Sequence[Iterable[int]]) -> list[int] | None:
    """Return one cycle as its vertices, the first again at the end; None if there is none.

    `after[vertex]` are the vertices that it leads to.
    """
    if len(_order(after)) == len(after):
        return None
    sorter = TopologicalSorter[int]()
    for vertex in range(len(after)):
        sorter.add(vertex)
    for vertex, others in enumerate(after):
        for other in others:
            sorter.add(other, vertex)
    try:
        sorter.prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        return cycle
    return None


def format_path(names: list[str]) -> str:
    """Return `a needs b needs c`, without the middle of a long path."""
    if len(names) > 12:
        names = [*names[:6], "...", *names[-5:]]
    return " needs ".join(names)
