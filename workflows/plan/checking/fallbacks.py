"""Fallback nodes: what a plan must keep to for a node to run only in place of another."""

from collections.abc import Iterator
from itertools import pairwise

from sennit.workflows.plan.checking.symbols import SymbolTable
from sennit.workflows.plan.language.dag import first_cycle, format_path
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.language.references import references_in


def fallback_problems(scope: SymbolTable) -> Iterator[Problem]:
    """Yield what keeps a node from being the fallback of one other node, and of nothing else."""
    plan = scope.plan
    hosts: dict[str, str] = {}
    users = {
        name: node.id
        for node, links in zip(plan.nodes, scope.links, strict=True)
        for name in (*links.needs, *links.inputs)
    }
    answering = {reference.node: "answer" for reference in references_in(plan.answer)}
    for index, (node, links) in enumerate(zip(plan.nodes, scope.links, strict=True)):
        name = links.fallback
        if name is None or name == node.id:
            continue
        where = ("nodes", index, "on_error", "instead")
        if name in hosts:
            message = f"`{name}` is already the fallback node of `{hosts[name]}`; give each node its own"
            yield Problem("instead", where, message)
        user = users.get(name) or answering.get(name)
        if user:
            message = f"`{name}` runs only when `{node.id}` fails, so `{user}` must name `{node.id}` instead of it"
            yield Problem("instead", where, message)
        hosts[name] = node.id
    yield from _never_runs(scope, hosts)


def _never_runs(scope: SymbolTable, hosts: dict[str, str]) -> Iterator[Problem]:
    """A fallback node ends after its host has run, so what the host waits for must not wait for it."""
    if not hosts:
        return
    nodes, known = scope.plan.nodes, scope.known
    after = [
        [known[name] for name in (*links.needs, *links.watches, *links.inputs, hosts.get(node.id, "")) if name in known]
        for node, links in zip(nodes, scope.links, strict=True)
    ]
    path = [nodes[index].id for index in first_cycle(after) or ()]
    last = next((place for place, pair in enumerate(pairwise(path)) if hosts.get(pair[0]) == pair[1]), None)
    if last is None:
        return
    host = path[last + 1]
    names = [*path[last + 1 :], *path[1 : last + 1]]
    message = f"{format_path(names)}, which runs only when {host} has failed; take one of these edges out"
    yield Problem("instead", ("nodes", known[host], "on_error", "instead"), message)
