"""Fallback nodes: what a plan must keep to for a node to run only in place of another."""

from collections.abc import Iterator
from itertools import pairwise

from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.dag import first_cycle, format_path
from sennit.workflows.plan.language.nodes import AnyStage, Instead, MapNode
from sennit.workflows.plan.language.problems import Problem, Where
from sennit.workflows.plan.language.references import references_in
from sennit.workflows.plan.language.text import format_name


def fallback_problems(scope: SymbolTable) -> Iterator[Problem]:
    """Yield what keeps a node from being the fallback of one other node, and of nothing else."""
    plan = scope.plan
    hosts: dict[str, str] = {}
    users: dict[str, str] = {}
    for node, links in zip(plan.nodes, scope.links, strict=True):
        for name in (*links.needs, *links.inputs):
            users[name] = node.id
    for reference in references_in(plan.answer):
        users.setdefault(reference.node, "answer")
    for index, (node, links) in enumerate(zip(plan.nodes, scope.links, strict=True)):
        fallback = links.fallback
        if fallback is None or fallback == node.id:
            continue
        where = ("nodes", index, "on_error", "instead")
        if fallback in hosts:
            message = (
                f"`{fallback}` is already the fallback node of `{hosts[fallback]}`; give each "
                "node its own"
            )
            yield Problem("instead", where, message)
        user = users.get(fallback)
        if user:
            message = (
                f"`{fallback}` runs only when `{node.id}` fails, so `{user}` must name "
                f"`{node.id}` instead of it"
            )
            yield Problem("instead", where, message)
        hosts[fallback] = node.id
    yield from _never_runs(scope, hosts)


def stage_fallback_problems(node: MapNode, where: Where) -> Iterator[Problem]:
    """Yield what keeps a node in a map's `do` from being the fallback of one other node
    there, and of nothing else.
    """
    places: dict[str, int] = {}
    for position, stage in enumerate(node.do):
        if stage.id is not None:
            places[stage.id] = position
    hosts: dict[str, str] = {}
    for position, stage in enumerate(node.do):
        if not isinstance(stage.on_error, Instead):
            continue
        name = stage.on_error.instead
        place = dependencies.stage_place(node, position)
        at = (*where, *place, "on_error", "instead")
        if name == stage.id or name not in places:
            yield Problem(
                "instead",
                at,
                f"{format_name(name)} is no other node of this `do`; name one by its id there",
            )
            continue
        if name in hosts:
            message = f"`{name}` is already the fallback node of {hosts[name]}; give each its own"
            yield Problem("instead", at, message)
        hosts[name] = "the last node"
        if stage.id:
            hosts[name] = f"`{stage.id}`"
    if hosts:
        yield from _misread_fallbacks(node, where, places, hosts)


def _misread_fallbacks(
    node: MapNode, where: Where, places: dict[str, int], hosts: dict[str, str]
) -> Iterator[Problem]:
    """Yield what refers to a fallback in a map's `do`, and what a fallback refers to that
    may have no value then.
    """
    limits = _limits_of_fallbacks(node, hosts)
    for name in hosts:
        if name not in limits:
            message = f"`{name}` runs in place of no node of the chain"
            yield Problem("instead", (*where, "do", places[name]), message)
    readers = {places[name]: name for name in hosts}
    for place, reference in dependencies.value_references(node):
        if place[:1] != ("do",):
            continue
        name = readers.get(int(place[1]), "")
        if reference.node in hosts:
            message = (
                f"`${reference.node}` runs only in place of {hosts[reference.node]}; refer to "
                "that one"
            )
            yield Problem("instead", (*where, *place), message)
        elif name in limits and places.get(reference.node, -1) >= limits[name]:
            message = (
                f"`${reference.node}` may have no value when `{name}` runs; read what is above "
                f"{hosts[name]}"
            )
            yield Problem("instead", (*where, *place), message)


def _limits_of_fallbacks(node: MapNode, hosts: dict[str, str]) -> dict[str, int]:
    """Return for each fallback in a map's `do` the place of the node of the chain that it
    stands in for in the end: what stands there or below has no value when it runs. One that
    stands in for none is left out.
    """
    by_name: dict[str, AnyStage] = {}
    for stage in node.do:
        if stage.id is not None:
            by_name[stage.id] = stage
    found: dict[str, int] = {}
    for position, stage in enumerate(node.do):
        if stage.id in hosts:
            continue
        on_error = stage.on_error
        while isinstance(on_error, Instead):
            name = on_error.instead
            if name not in by_name or name in found:
                break
            found[name] = position
            on_error = by_name[name].on_error
    return found


def _never_runs(scope: SymbolTable, hosts: dict[str, str]) -> Iterator[Problem]:
    """A fallback node ends after its host has run, so what the host waits
    for must not wait for it.
    """
    if not hosts:
        return
    nodes = scope.plan.nodes
    known = scope.known
    after = []
    for node, links in zip(nodes, scope.links, strict=True):
        names = [*links.needs, *links.watches, *links.inputs]
        if node.id in hosts:
            names.append(hosts[node.id])
        waits = [known[name] for name in names if name in known]
        after.append(waits)

    # The path is told from the host on, whose fallback node is then its last.
    cycle = first_cycle(after) or ()
    path = [nodes[index].id for index in cycle]
    for place, (name, following) in enumerate(pairwise(path), 1):
        if hosts.get(name) == following:
            from_host = [*path[place:], *path[1:place]]
            message = (
                f"{format_path(from_host)}, which runs only when {following} has failed; take one "
                "of these edges out"
            )
            yield Problem("instead", ("nodes", known[following], "on_error", "instead"), message)
            return
