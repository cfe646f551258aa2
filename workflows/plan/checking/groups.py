"""Islands: nodes which one activity may run together, and what a plan must keep to for that."""

from collections.abc import Iterator, Sequence

from workflows.plan.checking.symbols import SymbolTable
from workflows.plan.compile.resource_locks import locks_of
from workflows.plan.language.dag import first_cycle
from workflows.plan.language.nodes import JoinNode, ToolCall
from workflows.plan.language.problems import Problem, Where
from workflows.plan.language.text import format_names

MOST_MEMBERS = 500


def group_problems(scope: SymbolTable) -> Iterator[Problem]:
    """Yield each rule an group breaks. Without a catalogue effects are not checked.

    Members are tool calls of one task queue without a write effect, without locks, a fallback or a stand-in, whose
    conditions read values and not how other nodes ended; none feeds a join that may close early; only members without
    a consumer inside have one outside, and these share their consumers, so that nobody waits for what it does not
    need. No group waits for what waits for it.
    """
    plan = scope.plan
    if not plan.groups:
        return
    hosts = {links.standin: node.id for node, links in zip(plan.nodes, scope.links, strict=True)}
    home: dict[str, int] = {}
    sound = True
    for index, members in enumerate(plan.groups):
        where: Where = ("groups", index)
        if len(members) > MOST_MEMBERS:
            yield Problem("group", where, f"{len(members)} members; at most {MOST_MEMBERS}")
        if not members:
            yield Problem("group", where, "an group without members; leave it out")
        for position, name in enumerate(members):
            problem = _name(scope, name, (*where, position), home)
            if problem is not None:
                sound = False
                yield problem
                continue
            home[name] = index
            yield from _member(scope, scope.known[name], (*where, position), hosts)
        yield from _queues(scope, members, where)
        yield from _shared(scope, members, where)
    if sound:
        yield from _edges(scope, home)
        yield from _deadlock(scope, home)


def _name(scope: SymbolTable, name: str, where: Where, home: dict[str, int]) -> Problem | None:
    if name in home:
        return Problem("group", where, f"`{name}` is already in groups[{home[name]}]; a node is in one group, once")
    return next(scope.named(name, None, where), None)


def _member(scope: SymbolTable, index: int, where: Where, hosts: dict[str | None, str]) -> Iterator[Problem]:
    node, links = scope.plan.nodes[index], scope.links[index]
    if not isinstance(node, ToolCall):
        yield Problem("group", where, f"`{node.id}` is of kind {node.kind}; an group holds tool calls only")
        return
    if (scope.tools or {}).get(node.tool, {}).get("effect") == "write":
        yield Problem("group", where, f"`{node.id}` writes; an group only reads, so take it out")
    if node.locks or node.on_error not in ("fail", "skip"):
        yield Problem("group", where, f"`{node.id}` has locks, a fallback or a stand-in; take it out of the group")
    if node.id in hosts:
        yield Problem("group", where, f"`{node.id}` stands in for `{hosts[node.id]}`; take it out of the group")
    if links.watches:
        told = f"the condition of `{node.id}` reads how another node ended; take it out of the group"
        yield Problem("group", where, told)


def _queues(scope: SymbolTable, members: Sequence[str], where: Where) -> Iterator[Problem]:
    """Yield the first member that other workers serve than those of the first."""
    nodes = [scope.plan.nodes[scope.known[name]] for name in members if name in scope.known]
    served = [(scope.tools or {}).get(node.tool, {}).get("queue") for node in nodes if isinstance(node, ToolCall)]
    if len(dict.fromkeys(served)) > 1:
        yield Problem("group", where, "its tools run on different workers; make an group for each task queue")


def _shared(scope: SymbolTable, members: Sequence[str], where: Where) -> Iterator[Problem]:
    """Yield the members that use what another node of the plan writes: they would need a lock each."""
    locks = locks_of(scope.plan, scope.tools or {}, None)
    for name in dict.fromkeys(members):
        if name in locks:
            yield Problem("group", where, f"`{name}` uses what another node may write; take it out of the group")


def _edges(scope: SymbolTable, home: dict[str, int]) -> Iterator[Problem]:
    """Yield what is wrong with the edges inside, out of and among groups. O(edges)."""
    inner: dict[str, bool] = {}
    outer: dict[str, list[str]] = {name: [] for name in home}
    for node, links in zip(scope.plan.nodes, scope.links, strict=True):
        for name in dict.fromkeys(links.waits):
            if name not in home:
                continue
            if home.get(node.id) == home[name]:
                inner[name] = True
                continue
            outer[name].append(node.id)
            if isinstance(node, JoinNode) and (node.policy not in ("all", "settled") or node.deadline):
                told = f"`{name}` feeds `{node.id}`, which may close early; take it out of the group"
                yield Problem("group", ("groups", home[name]), told)
    for index, members in enumerate(scope.plan.groups):
        where: Where = ("groups", index)
        for name in members:
            if name in inner and outer[name]:
                told = f"`{name}` has consumers inside and outside (`{outer[name][0]}`); take it out of the group"
                yield Problem("group", where, told)
        if len({tuple(outer[name]) for name in members if outer[name]}) > 1:
            yield Problem("group", where, "its exits have different consumers; make an group for each")


def _deadlock(scope: SymbolTable, home: dict[str, int]) -> Iterator[Problem]:
    """Yield an group that starts only after something which waits for its own end."""
    plan = scope.plan
    count = len(plan.nodes)
    group = [count + home[node.id] if node.id in home else index for index, node in enumerate(plan.nodes)]
    after: list[dict[int, None]] = [{} for _ in range(count + len(plan.groups))]
    for index, links in enumerate(scope.links):
        for name in links.waits:
            other = scope.known.get(name)
            if other is not None and group[other] != group[index]:
                after[group[index]][group[other]] = None
    path = (first_cycle([list(others) for others in after]) or [])[1:]
    groups = [vertex - count for vertex in path if vertex >= count]
    if groups:
        between = [plan.nodes[vertex].id for vertex in path if vertex < count]
        through = f" through {format_names(between, 5)}" if between else ""
        told = f"the group waits for its own end{through}; take those members out that others inside wait for"
        yield Problem("group", ("groups", min(groups)), told)
