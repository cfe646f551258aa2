"""The call sites of programs: `look#3/search:4` is the call of `search` on line 4 in the third task
of `look`, and `look#3/search:helpers.py:4` that on line 4 of a module.
"""

import re

from sennit.workflows.drawing.rows import Group
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.compile.graph import Graph


def path_and_line(spec: NodeSpec) -> tuple[str, int]:
    """Return where in its script a program has made this call, as `look#3/search` and 4; "" and 0
    for any other node, also for those with which a model call goes on.
    """
    path, _, line = spec.call_site.rpartition(":")
    return path, int(line or 0)


def short_name(spec: NodeSpec) -> str:
    """Return what a box is called: the end of the place of a call, which the tasks around it
    complete; what a tool loop of a program does; or the id.
    """
    place = spec.call_site.rpartition("/")[2]
    if place:
        if spec.kind != "task":
            return place
        return place.partition(":")[0]
    if not spec.page or spec.kind == "program":
        return spec.id
    if not (spec.kind == "tool" and " " in spec.summary):
        return spec.kind
    return spec.summary.split(" ")[1]


def group_of(call_site: str, kind: str) -> Group:
    """Return what a call belongs to: one at `look#3/search:4` is of `("look", "search:4")`; () for
    a node without a call site.
    """
    if not call_site:
        return ()
    path, _, line = call_site.rpartition(":")
    *outer, name = re.sub(r"#\d+", "", path).split("/")
    if kind == "task":
        return (*outer, name.partition(":")[0])
    return (*outer, f"{name}:{line}")


def groups_of(graph: Graph) -> list[Group]:
    """Return what each node belongs to; () for nodes that no program has called.

    What a tool loop calls belongs to the model call that began it, and the further turns
    of that are part of it.
    """
    groups: list[Group] = []
    for spec in graph.specs:
        group = group_of(spec.call_site, spec.kind)
        if spec.is_program and not group:
            group = (spec.id,)
        if not group and 0 <= spec.maker < len(groups):
            group = groups[spec.maker]
            if group and spec.kind == "tool":
                group = (*group, short_name(spec))
        groups.append(group)
    return groups


def in_order(graph: Graph) -> list[int]:
    """Return the nodes people see, in plan order, with what a program has called after it, as it
    made the calls; those of a task come after the task.
    """
    if not graph.made:
        return list(range(len(graph.specs)))
    order: list[int] = []
    tasks = tasks_by_path(graph)
    for node, spec in enumerate(graph.specs):
        if spec.maker < 0:
            calls = _made_below(graph, node)
            if node in tasks:
                calls = _by_tasks(graph, tasks[node], node, calls)
            order += [node, *calls]
    return order


def _made_below(graph: Graph, root: int) -> list[int]:
    """Return what a node has led to, in order."""
    found: list[int] = []
    left = graph.made_by(root)[::-1]
    while left:
        node = left.pop()
        found.append(node)
        left += graph.made_by(node)[::-1]
    return found


def _by_tasks(graph: Graph, tasks: dict[str, int], program: int, calls: list[int]) -> list[int]:
    """Return the calls of a program with those of each of its `tasks` behind it."""
    inside: dict[int, list[int]] = {}
    host = program
    for call in calls:
        path, _ = path_and_line(graph.specs[call])
        # The turns of a model call, and what it calls, stay behind it.
        if path:
            host = task_around(tasks, path, program)
        inside.setdefault(host, []).append(call)
    order: list[int] = []
    stack = list(reversed(inside.get(program, [])))
    while stack:
        call = stack.pop()
        order.append(call)
        stack += reversed(inside.get(call, []))
    return order


def tasks_by_path(graph: Graph) -> dict[int, dict[str, int]]:
    """Return of each program the tasks of its script, by their paths."""
    found: dict[int, dict[str, int]] = {}
    for node, spec in enumerate(graph.specs):
        if spec.kind == "task":
            path, _ = path_and_line(spec)
            tasks = found.setdefault(graph.program_of(node), {})
            tasks[path] = node
    return found


def task_around(tasks: dict[str, int], path: str, program: int) -> int:
    """Return the innermost task that a call site is in, or else the program."""
    outer = path.rpartition("/")[0]
    while outer:
        if outer in tasks:
            return tasks[outer]
        outer = outer.rpartition("/")[0]
    return program
