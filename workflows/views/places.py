"""Where calls of programs stand: `look#3/search:4` is the call of `search` on line 4 in the third task of `look`."""

import re

from workflows.drawing.rows import Group
from workflows.plan.compile.graph import Graph, NodeSpec

_PLACE = re.compile(r"\S+ (\S+):(\d+)(?= |\Z)")
"""In the summary of a call. What other nodes do begins with the name of a tool, a role or a kind."""


def path_and_line(spec: NodeSpec) -> tuple[str, int]:
    """Return where in its script a program has made this call, as `look#3/search` and 4; "" and 0 for any other node,
    also for those with which a model call goes on.
    """
    found = _PLACE.match(spec.summary) if spec.page and not spec.is_step else None
    return (found[1], int(found[2])) if found else ("", 0)


def place_of_call(spec: NodeSpec) -> str:
    """Return where in its script a program has made this call, as `look#3/search:4`; "" for any other node."""
    path, line = path_and_line(spec)
    return path and f"{path}:{line}"


def short_name(spec: NodeSpec) -> str:
    """Return what a box is called: the end of the place of a call, which the tasks around it complete; what a tool loop
    of a program does; or the id.
    """
    place = place_of_call(spec).rpartition("/")[2]
    if place:
        return place.partition(":")[0] if spec.kind == "program" else place
    if not spec.page or spec.kind == "program":
        return spec.id
    return spec.summary.split(" ")[1] if spec.kind == "tool" and " " in spec.summary else spec.kind


def group_of(summary: str, kind: str) -> Group:
    """Return what a call belongs to, by its summary: `look#3/search:4` is one of `("look", "search:4")`; () for any
    other node.
    """
    found = _PLACE.match(summary)
    if not found:
        return ()
    *outer, name = re.sub(r"#\d+", "", found[1]).split("/")
    return (*outer, name if kind == "program" else f"{name}:{found[2]}")


def groups_of(graph: Graph) -> list[Group]:
    """Return what each node belongs to; () for nodes that no program has called.

    What a tool loop calls belongs to the model call that began it, and the further turns of that are part of it.
    """
    groups: list[Group] = []
    for spec in graph.specs:
        host = groups[spec.maker] if 0 <= spec.maker < len(groups) else ()
        if place_of_call(spec):
            groups.append(group_of(spec.summary, spec.kind))
        elif spec.kind == "program" and spec.maker < 0:
            groups.append((spec.id,))
        else:
            groups.append((*host, short_name(spec)) if host and spec.kind == "tool" else host)
    return groups


def in_order(graph: Graph) -> list[int]:
    """Return the nodes people see, in plan order, with the calls of a program or a task after it, as it made them."""
    order: list[int] = []
    left = [node for node, spec in enumerate(graph.specs) if spec.maker < 0][::-1]
    while left:
        node = left.pop()
        if graph.specs[node].is_shown:
            order.append(node)
        left += made_by(graph, node)[::-1]
    return order


def is_left_behind(graph: Graph, made: int) -> bool:
    """Whether a step of a program made this call when it ran before, and has not made it again."""
    maker = graph.specs[graph.specs[made].maker]
    return maker.kind == "program" and (maker.instead < 0 or graph.specs[maker.instead].page != graph.specs[made].page)


def made_by(graph: Graph, node: int) -> list[int]:
    """Return the nodes that a step of a program, or a turn of a model call, has added; some may have another maker by
    now, or are noted twice.
    """
    return [made for made in dict.fromkeys(graph.made.get(node, ())) if graph.specs[made].maker == node]
