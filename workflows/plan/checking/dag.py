"""Cycles: the first one found, as a path, and paths as people read them."""

from collections.abc import Sequence


def first_cycle(after: Sequence[Sequence[int]]) -> list[int] | None:
    """Return one cycle as its vertices, the first again at the end; None when there is none.

    `after[i]` are the vertices that i leads to. Depth first without recursion: any depth, O(vertices + edges).
    """
    colour = [0] * len(after)
    for root in range(len(after)):
        if colour[root]:
            continue
        colour[root] = 1
        stack = [(root, iter(after[root]))]
        while stack:
            here, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                colour[here] = 2
                stack.pop()
            elif colour[following] == 1:
                path = [vertex for vertex, _ in stack]
                return [*path[path.index(following) :], following]
            elif not colour[following]:
                colour[following] = 1
                stack.append((following, iter(after[following])))
    return None


def path_text(names: list[str]) -> str:
    """Return `a needs b needs c`; the middle of a long path is left out."""
    return " needs ".join(names if len(names) <= 12 else [*names[:6], "...", *names[-5:]])
