"""Stand-ins: what a plan must keep to for a node to run only in the place of another."""

from collections.abc import Iterator
from itertools import pairwise

from workflows.plan.checking.symbols import SymbolTable
from workflows.plan.language import dependencies
from workflows.plan.language.dag import first_cycle, format_path
from workflows.plan.language.problems import Problem
from workflows.plan.language.references import references_in


def fallback_problems(scope: SymbolTable) -> Iterator[Problem]:
    """Yield what keeps a stand-in from standing in for one node, and only for that, when it has failed."""
    plan = scope.plan
    hosts: dict[str, str] = {}
    users = {
        name: node.id
        for node, links in zip(plan.nodes, scope.links, strict=True)
        for name in (*links.needs, *links.inputs)
    }
    answering = {reference.node: "answer" for reference in references_in(plan.answer)}
    for index, node in enumerate(plan.nodes):
        standin = dependencies.fallback_of(node)
        if standin is None or standin == node.id:
            continue
        where = ("nodes", index, "on_error", "instead")
        if standin in hosts:
            yield Problem("instead", where, f"`{standin}` already stands in for `{hosts[standin]}`; give each its own")
        user = users.get(standin) or answering.get(standin)
        if user:
            told = f"`{standin}` runs only when `{node.id}` fails, so `{user}` must name `{node.id}` instead of it"
            yield Problem("instead", where, told)
        hosts[standin] = node.id
    yield from _never(scope, hosts)


def _never(scope: SymbolTable, hosts: dict[str, str]) -> Iterator[Problem]:
    """A stand-in ends after its node has run, so what the node waits for must not wait for that end."""
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
    told = f"{format_path(names)}, which runs only when {host} has failed; take one of these edges out"
    yield Problem("instead", ("nodes", known[host], "on_error", "instead"), told)
