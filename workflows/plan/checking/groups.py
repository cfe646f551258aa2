"""Groups: nodes that one activity runs together, and what a plan must keep to for that."""

from collections.abc import Iterator, Sequence

from workflows.plan.checking.symbols import SymbolTable
from workflows.plan.compile.resource_locks import locks_of
from workflows.plan.language.dag import first_cycle
from workflows.plan.language.nodes import JoinNode, ToolCall
from workflows.plan.language.problems import Problem, Where
from workflows.plan.language.text import format_names

MAX_MEMBERS = 500


def group_problems(scope: SymbolTable) -> Iterator[Problem]:
    """Yield each rule that a group breaks. Without a catalogue effects are not checked.

    Members are tool calls of one task queue without a write effect, locks, a fallback or a fallback node, whose
    conditions read values and not how other nodes ended. None feeds a join that may close early. Only members without
    a consumer inside have one outside, and these share their consumers, so that no node waits for what it does not
    need. No group waits for its own end.
    """
    plan = scope.plan
    if not plan.groups:
        return
    fallback_for = {links.fallback: node.id for node, links in zip(plan.nodes, scope.links, strict=True)}
    locks = locks_of(plan, scope.tools or {}, None)
    group_of: dict[str, int] = {}
    known = True
    for index, members in enumerate(plan.groups):
        where: Where = ("groups", index)
        if not 0 < len(members) <= MAX_MEMBERS:
            yield Problem("group", where, f"a group has 1 to {MAX_MEMBERS} members, not {len(members)}")
        for position, name in enumerate(members):
            place = (*where, position)
            unknown = next(scope.check_name(name, None, place), None)
            if name in group_of:
                message = f"`{name}` is already in groups[{group_of[name]}]; a node is in one group, once"
                unknown = Problem("group", place, message)
            if unknown is not None:
                known = False
                yield unknown
                continue
            group_of[name] = index
            for reason in _unfit(scope, scope.known[name], fallback_for, name in locks):
                yield Problem("group", place, f"`{name}` {reason}; take it out of the group")
        yield from _queues(scope, members, where)
    if known:
        yield from _edges(scope, group_of)
        yield from _deadlock(scope, group_of)


def _unfit(scope: SymbolTable, index: int, fallback_for: dict[str | None, str], locked: bool) -> Iterator[str]:
    """Yield why a node cannot be in a group."""
    node = scope.plan.nodes[index]
    if not isinstance(node, ToolCall):
        yield f"is of kind {node.kind}, and a group holds tool calls only"
        return
    if (scope.tools or {}).get(node.tool, {}).get("effect") == "write":
        yield "writes, and a group only reads"
    if node.locks or node.on_error not in ("fail", "skip"):
        yield "has locks, a fallback or a fallback node"
    if node.id in fallback_for:
        yield f"is the fallback node of `{fallback_for[node.id]}`"
    if scope.links[index].watches:
        yield "has a condition on how another node ended"
    if locked:
        yield "uses what another node may write"


def _queues(scope: SymbolTable, members: Sequence[str], where: Where) -> Iterator[Problem]:
    nodes = [scope.plan.nodes[scope.known[name]] for name in members if name in scope.known]
    queues = [(scope.tools or {}).get(node.tool, {}).get("queue") for node in nodes if isinstance(node, ToolCall)]
    if len(dict.fromkeys(queues)) > 1:
        yield Problem("group", where, "its tools run on different workers; make a group for each task queue")


def _edges(scope: SymbolTable, group_of: dict[str, int]) -> Iterator[Problem]:
    """Yield what is wrong with the edges inside, out of and among groups. O(edges)."""
    inner: dict[str, bool] = {}
    outer: dict[str, list[str]] = {name: [] for name in group_of}
    for node, links in zip(scope.plan.nodes, scope.links, strict=True):
        for name in dict.fromkeys(links.waits):
            if name not in group_of:
                continue
            if group_of.get(node.id) == group_of[name]:
                inner[name] = True
                continue
            outer[name].append(node.id)
            if isinstance(node, JoinNode) and (node.policy not in ("all", "settled") or node.deadline):
                message = f"`{name}` feeds `{node.id}`, which may close early; take it out of the group"
                yield Problem("group", ("groups", group_of[name]), message)
    for index, members in enumerate(scope.plan.groups):
        where: Where = ("groups", index)
        for name in members:
            if name in inner and outer[name]:
                message = f"`{name}` has consumers inside and outside (`{outer[name][0]}`); take it out of the group"
                yield Problem("group", where, message)
        if len({tuple(outer[name]) for name in members if outer[name]}) > 1:
            yield Problem("group", where, "its exits have different consumers; make a group for each")


def _deadlock(scope: SymbolTable, group_of: dict[str, int]) -> Iterator[Problem]:
    """Yield a group that starts only after something that waits for its end."""
    nodes = scope.plan.nodes
    vertex_of = [len(nodes) + group_of[node.id] if node.id in group_of else index for index, node in enumerate(nodes)]
    after: list[dict[int, None]] = [{} for _ in range(len(nodes) + len(scope.plan.groups))]
    for index, links in enumerate(scope.links):
        for name in links.waits:
            other = scope.known.get(name)
            if other is not None and vertex_of[other] != vertex_of[index]:
                after[vertex_of[index]][vertex_of[other]] = None
    cycle = (first_cycle([list(others) for others in after]) or [])[1:]
    groups = [vertex - len(nodes) for vertex in cycle if vertex >= len(nodes)]
    if groups:
        between = [nodes[vertex].id for vertex in cycle if vertex < len(nodes)]
        through = f" through {format_names(between, 5)}" if between else ""
        message = f"the group waits for its own end{through}; take out the members that others in it wait for"
        yield Problem("group", ("groups", min(groups)), message)
