"""Which nodes a node depends on, by explicit need, by reference, by condition, as input, as fallback."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workflows.plan.language.conditions import tests_of
from workflows.plan.language.nodes import (
    RESERVED_IDS,
    AgentCall,
    GateNode,
    Instead,
    JoinNode,
    LlmNode,
    MapNode,
    ModelCall,
    Node,
    Plan,
    ProgramNode,
    ToolCall,
    Turn,
)
from workflows.plan.language.problems import Where
from workflows.plan.language.references import (
    Reference,
    parse_reference,
    parse_status_reference,
    references_in,
)


def work_of(node: Node) -> ToolCall | ModelCall | AgentCall | None:
    """Return the call a node makes: its own, or a map's template."""
    if isinstance(node, MapNode):
        return node.do
    return node if isinstance(node, ToolCall | ModelCall | AgentCall) else None


def arguments_of(node: Node) -> tuple[str, Any] | None:
    """Return (field, value) of what is bound before a node acts: `args`, `prompt`, `goal`, `arguments`, a gate's
    `question`.
    """
    if isinstance(node, GateNode):
        return "question", node.question
    if isinstance(node, ProgramNode):
        return "arguments", node.arguments
    work = work_of(node)
    if work is None:
        return None
    if isinstance(work, AgentCall):
        return "goal", work.goal
    return ("args", work.args) if isinstance(work, ToolCall) else ("prompt", work.prompt)


def marked_texts(value: Any, where: Where = ()) -> list[tuple[Where, str]]:
    """Return (place, text) of every string in a JSON value that has a `$`, in order; keys are never read."""
    found: list[tuple[Where, str]] = []
    _mark(value, where, found)
    return found


def _mark(value: Any, where: Where, found: list[tuple[Where, str]]) -> None:
    if isinstance(value, str):
        if "$" in value:
            found.append((where, value))
    elif isinstance(value, dict | list | tuple):
        parts: Any = value.items() if isinstance(value, dict) else enumerate(value)
        for name, item in parts:
            if isinstance(item, str | dict | list | tuple) and item:
                _mark(item, (*where, name), found)


def bound_texts(node: Node) -> list[tuple[Where, str]]:
    """Return (place in the node, text) of every string with a `$` that is bound before the node acts."""
    bound = arguments_of(node)
    if bound is None:
        return []
    return marked_texts(bound[1], ("do", bound[0]) if isinstance(node, MapNode) else (bound[0],))


def value_references(node: Node) -> Iterator[tuple[Where, Reference]]:
    """Yield (place in the node, reference) of the values its activity reads; a map's item name among them."""
    for where, text in bound_texts(node):
        for reference in references_in(text):
            yield where, reference
    if isinstance(node, MapNode):
        over = parse_reference(node.over)
        if over is not None:
            yield ("over",), over
    turn = turn_of(node)
    for name in ("results", "summaries") if turn is not None else ():
        yield from ((("turn", name), reference) for reference in references_in(getattr(turn, name)))


def turn_of(node: Node) -> Turn | None:
    """Return which further turn of a tool loop the node is, None for any other node."""
    return node.turn if isinstance(node, ModelCall) else None


@dataclass(frozen=True, slots=True)
class Links:
    """What one node depends on, each without repeats and in the order written.

    `needs` must succeed before it starts, `watches` only have to end, because a condition reads their status;
    `inputs` are those of a join or a model call; `reads` are the nodes whose outputs its activity loads; `fallback`
    runs when it fails.
    """

    needs: list[str]
    watches: list[str]
    inputs: list[str]
    reads: list[str]
    fallback: str | None

    @property
    def waits(self) -> list[str]:
        """Every id whose end can hold the node up, its fallback node's included: the edges a cycle is made of."""
        return [*self.needs, *self.watches, *self.inputs, *([self.fallback] if self.fallback else [])]


def links_of(node: Node) -> Links:
    """Return what a node depends on."""
    own = node.as_ if isinstance(node, MapNode) else None
    reads = dict.fromkeys(
        reference.node
        for _, reference in value_references(node)
        if reference.node not in RESERVED_IDS and reference.node != own
    )
    needs, watched = dict.fromkeys((*node.needs, *reads)), []
    for test in tests_of(node.when) if node.when is not None else ():
        reference, status = parse_reference(test.ref), parse_status_reference(test.ref)
        if reference is not None and reference.node not in RESERVED_IDS:
            needs[reference.node] = None
        elif status is not None:
            watched.append(status[0])
    watches = [name for name in dict.fromkeys(watched) if name not in needs]
    return Links(list(needs), watches, inputs_of(node), list(reads), fallback_of(node))


def reads_of(node: Node) -> list[str]:
    """Return the ids of the nodes whose outputs this node's activity loads, in order, without repeats."""
    return links_of(node).reads


def needs_of(node: Node) -> list[str]:
    """Return the ids that must succeed before this node starts; a join's inputs are not among them."""
    return links_of(node).needs


def watches_of(node: Node) -> list[str]:
    """Return the ids that only have to end, because a condition reads their status."""
    return links_of(node).watches


def inputs_of(node: Node) -> list[str]:
    """Return the nodes whose ends a join, or a model call, takes as they come."""
    return list(node.inputs) if isinstance(node, JoinNode | LlmNode | ProgramNode) else []


def fallback_of(node: Node) -> str | None:
    """Return the node that runs when this one fails."""
    return node.on_error.instead if isinstance(node.on_error, Instead) else None


def waits_for(node: Node) -> list[str]:
    """Return every id whose end can hold this node up, its fallback node's included: the edges a cycle is made of."""
    return links_of(node).waits


def facts_wanted(plan: Plan) -> dict[str, list[str]]:
    """Return for each node the facts that conditions and maps read, in the order of the plan. Those of a node are also
    read from its fallback node, and from every turn of its tool loop.
    """
    wanted: dict[str, list[str]] = {}
    for node in plan.nodes:
        for test in tests_of(node.when) if node.when is not None else ():
            reference = parse_reference(test.ref)
            if reference is not None and reference.node not in RESERVED_IDS:
                wanted.setdefault(reference.node, []).append(fact_name(reference, test.op))
        over = parse_reference(node.over) if isinstance(node, MapNode) else None
        if over is not None and over.node not in RESERVED_IDS:
            wanted.setdefault(over.node, []).append(length_fact(over))
    fallbacks = {node.id: fallback for node in plan.nodes if (fallback := fallback_of(node))}
    for host, facts in [(name, list(facts)) for name, facts in wanted.items()]:
        seen: dict[str, None] = {}
        while (host := fallbacks.get(host, "")) and host not in seen:
            seen[host] = None
            wanted.setdefault(host, []).extend(facts)
    for node in plan.nodes:
        turn = turn_of(node)
        if turn is not None and turn.node in wanted:
            wanted[node.id] = wanted[turn.node]
    return {name: list(dict.fromkeys(facts)) for name, facts in wanted.items()}


def fact_name(reference: Reference, op: str) -> str:
    """Return the fact a test reads; `exists` only asks for the path."""
    return f"?{reference.fact}" if op == "exists" else reference.fact


def length_fact(over: Reference) -> str:
    """Return the fact that tells how long a map's list is."""
    return f"{over.fact}.length" if over.path else "length"


def leaves(plan: Plan) -> list[str]:
    """Return the nodes nobody consumes, fallback nodes left out."""
    used = {name for node in plan.nodes for name in links_of(node).waits}
    return [node.id for node in plan.nodes if node.id not in used]


def answer_of(plan: Plan) -> Any:
    """Return the plan's answer expression: as given, or a reference to the only leaf."""
    if plan.answer is not None:
        return plan.answer
    ends = leaves(plan)
    return f"${ends[0]}" if len(ends) == 1 else None
