"""What the names in a plan may mean, and the problems of those that mean nothing."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sennit.workflows.plan.checking.output_types import OutputTypes, Tools
from sennit.workflows.plan.language.dependencies import Links, names_in
from sennit.workflows.plan.language.nodes import RESERVED_IDS, MapNode, Node, Plan
from sennit.workflows.plan.language.problems import Problem, Where, no_such_input
from sennit.workflows.plan.language.references import Reference, parse_reference
from sennit.workflows.plan.language.text import did_you_mean, format_name, format_names


def _is_above(node: MapNode, name: str, where: Where) -> bool:
    """Whether a name in a map's `do` is that of the item, or of a node before the one
    that has the reference.
    """
    if name == node.as_:
        return True
    place = where[where.index("do") + 1]
    return isinstance(place, int) and name in node.stages[:place]


class SymbolTable:
    """The names of one plan: `known` maps ids to the first node with it, `used` counts them,
    `links` has the edges.

    `tools` is None when no catalogue is known.
    """

    def __init__(self, plan: Plan, tools: Tools | None, links: Sequence[Links] = ()) -> None:
        self.plan = plan
        self.known: dict[str, int] = {}
        for index, node in enumerate(plan.nodes):
            self.known.setdefault(node.id, index)
        self.used = Counter(plan.ids)
        self.tools = tools
        self.links = links
        self.outputs = OutputTypes(plan, tools or {})

    def check_name(self, name: str, node: Node | None, where: Where) -> Iterator[Problem]:
        """Yield the problem of an id that must be another node's."""
        if node is not None and name == node.id:
            yield Problem("cycle", where, f"`{name}` needs itself; name another node")
        elif name not in self.known:
            hint = self._hint(name)
            yield Problem("dangling", where, f"there is no node {format_name(name)}{hint}")

    def check_reference(
        self, reference: Reference, node: Node | None, where: Where
    ) -> Iterator[Problem]:
        """Yield the problem of a reference to nothing. `node` is who
        refers, None for the answer.
        """
        name = reference.node
        # In a map's `do`, the item and the nodes above have names of their own.
        names_inside: tuple[str, ...] = ()
        if node is not None and "do" in where:
            names_inside = names_in(node)
        is_inside = name in names_inside
        if name == "input":
            if not reference.path or reference.path[0] not in self.plan.inputs:
                yield Problem("input", where, self._no_input(reference))
                return
        elif not is_inside and name != "goal":
            if name not in self.known:
                hint = self._hint(name, names_inside)
                message = f"`${name}` refers to no node{hint}; `$${name}` writes the text"
                yield Problem("dangling", where, message)
                return
            yield from self.check_name(name, node, where)
        elif is_inside and isinstance(node, MapNode) and not _is_above(node, name, where):
            yield Problem(
                "dangling",
                where,
                f"`${name}` has no value here; a node in `do` reads only those above it",
            )
            return
        _, sentence = self.outputs.at(reference, node if is_inside else None)
        if sentence:
            yield Problem("path", where, sentence)

    def _hint(self, name: str, also: tuple[str, ...] = ()) -> str:
        names = [*also, *self.known]
        return did_you_mean(name, names) or f"; there are {format_names(names, 8)}"

    def _no_input(self, reference: Reference) -> str:
        if not reference.path:
            return "`$input` alone is no value; write `$input.name`, or `$$input` for the text"
        return no_such_input(str(reference.path[0]), self.plan.inputs)

    def format_reference(self, value: object) -> str | None:
        """Return the reference that a plain value looks like, in backticks, for places
        where nothing is bound.
        """
        if not isinstance(value, str):
            return None
        reference = parse_reference(value)
        if reference is None:
            return None
        if reference.node not in self.known and reference.node not in RESERVED_IDS:
            return None
        return format_name(value)
