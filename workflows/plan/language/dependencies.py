"""Which nodes a node depends on, by explicit need, by reference, by condition, as input, as fallback."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sennit.workflows.plan.language.conditions import comparisons_of
from sennit.workflows.plan.language.facts import OF_A_JOIN, fact_of_input
from sennit.workflows.plan.language.nodes import (
    RESERVED_IDS,
    AgentCall,
    Instead,
    MapNode,
    ModelCall,
    Node,
    Plan,
    Program,
    Quorum,
    ToolCall,
    Turn,
)
from sennit.workflows.plan.language.problems import Where
from sennit.workflows.plan.language.references import (
    Reference,
    parse_reference,
    parse_status_reference,
    references_in,
)

ITEM_RUN = AgentCall(kind="agent", goal="do", tools=())
"""The call that an item of a map makes whose `do` is the plan of a run of its own."""


def work_of(node: Node) -> ToolCall | ModelCall | AgentCall | None:
    """Return the call a node makes: its own, or the last of a map's `do`."""
    # by kind and not by class: pydantic's classes take ten times as long to tell, and every node is asked often
    if node.kind == "map":
        last = node.do[-1]
        return ITEM_RUN if node.runs_apart or last.kind == "program" else last
    if node.kind == "join" or node.kind == "gate" or node.kind == "program":
        return None
    return node


def works_of(node: Node) -> list[tuple[Where, ToolCall | ModelCall | AgentCall]]:
    """Return (place in the node, call) of each call a node makes: one as a rule, of a map those in its `do`. What its
    programs call is in their scripts.
    """
    if node.kind == "map":
        return [(stage_place(node, at), stage) for at, stage in enumerate(node.do) if stage.kind != "program"]
    work = work_of(node)
    return [] if work is None else [((), work)]


def programs_in(node: Node) -> list[tuple[Where, Program]]:
    """Return (place in the node, program) of each program with a script: the node itself, or those in a map's `do`."""
    if node.kind == "map":
        return [(stage_place(node, at), stage) for at, stage in enumerate(node.do) if stage.kind == "program"]
    return [((), node)] if node.kind == "program" and node.step is None else []


def stage_place(node: MapNode, position: int) -> Where:
    """Return where a node of a map's `do` is written; one alone is no list."""
    return ("do", position) if len(node.do) > 1 else ("do",)


def arguments_of(node: Node) -> list[tuple[Where, Any]]:
    """Return (place in the node, value) of what is bound before a node acts: `args`, `prompt`, `media`, `workspace`,
    `goal`, `arguments`, a gate's `question`.
    """
    if node.kind == "gate":
        return [(("question",), node.question)]
    if node.kind == "program":
        return [(("arguments",), node.arguments)]
    found: list[tuple[Where, Any]] = []
    for where, program in programs_in(node):
        found.append(((*where, "arguments"), program.arguments))
    for where, work in works_of(node):
        found.append(_bound(where, work))
        if work.kind == "llm" and work.media:
            found.append(((*where, "media"), work.media))
        if work.kind in ("llm", "agent") and work.workspace is not None:
            found.append(((*where, "workspace"), work.workspace))
    return found


def _bound(where: Where, work: ToolCall | ModelCall | AgentCall) -> tuple[Where, Any]:
    if work.kind == "agent":
        return (*where, "goal"), work.goal
    return ((*where, "args"), work.args) if work.kind == "tool" else ((*where, "prompt"), work.prompt)


def marked_texts(value: Any, where: Where = ()) -> list[tuple[Where, str]]:
    """Return (place, text) of every string in a JSON value that has a `$`, in order; keys are never read."""
    found: list[tuple[Where, str]] = []
    _mark(value, where, found)
    return found


_HOLDERS = (dict, list, tuple)  # a union of types is made anew each time, and every value of a plan is looked at


def _mark(value: Any, where: Where, found: list[tuple[Where, str]]) -> None:
    if isinstance(value, str):
        if "$" in value:
            found.append((where, value))
    elif isinstance(value, _HOLDERS):
        parts: Any = value.items() if isinstance(value, dict) else enumerate(value)
        for name, item in parts:
            if isinstance(item, str):
                if "$" in item:
                    found.append(((*where, name), item))
            elif isinstance(item, _HOLDERS):
                _mark(item, (*where, name), found)


def bound_texts(node: Node) -> list[tuple[Where, str]]:
    """Return (place in the node, text) of every string with a `$` that is bound before the node acts."""
    return [found for where, value in arguments_of(node) for found in marked_texts(value, where)]


def value_references(node: Node) -> Iterator[tuple[Where, Reference]]:
    """Yield (place in the node, reference) of the values its activity reads; a map's item name among them."""
    for where, text in bound_texts(node):
        for reference in references_in(text):
            yield where, reference
    if node.kind == "map":
        over = parse_reference(node.over)
        if over is not None:
            yield ("over",), over
        yield from _tested_in(node)
    turn = turn_of(node)
    if turn is not None:
        yield from ((("turn", "results"), reference) for reference in references_in(turn.results))


def _tested_in(node: MapNode) -> Iterator[tuple[Where, Reference]]:
    """Yield what the conditions in a map's `do` test: it is read for each item, by its activity."""
    for position, stage in enumerate(node.do):
        for _, test in comparisons_of(stage.when):
            reference = parse_reference(test.ref)
            if reference is not None:
                yield (*stage_place(node, position), "when"), reference


def turn_of(node: Node) -> Turn | None:
    """Return which further turn of a tool loop the node is, None for any other node."""
    return node.turn if node.kind == "llm" else None


class Links(NamedTuple):
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
    bound = (*RESERVED_IDS, *names_in(node))
    reads: dict[str, None] = {}
    for _, read in value_references(node):
        if read.node not in bound:
            reads[read.node] = None
    needs, watched = dict.fromkeys((*node.needs, *reads)), list[str]()
    for _, test in comparisons_of(node.when):
        reference, status = parse_reference(test.ref), parse_status_reference(test.ref)
        if reference is not None and reference.node not in RESERVED_IDS:
            needs[reference.node] = None
        elif status is not None:
            watched.append(status[0])
    watches = [name for name in dict.fromkeys(watched) if name not in needs] if watched else []
    return Links(list(needs), watches, inputs_of(node), list(reads), fallback_of(node))


def names_in(node: Node) -> tuple[str, ...]:
    """Return the names that have a meaning of their own inside a node: in a map's `do`."""
    return node.names if isinstance(node, MapNode) else ()


def inputs_of(node: Node) -> list[str]:
    """Return the nodes whose ends a join, or a model call, takes as they come; for a join of items their map."""
    return list(node.inputs) if node.kind == "join" or node.kind == "llm" or node.kind == "program" else []


def fallback_of(node: Node) -> str | None:
    """Return the node that runs when this one fails."""
    on_error = node.on_error
    return on_error.instead if not isinstance(on_error, str) and isinstance(on_error, Instead) else None


def facts_wanted(plan: Plan) -> dict[str, list[str]]:
    """Return for each node the facts that conditions and maps read, in the order of the plan. Those of a node are also
    read from its fallback node, and from every turn of its tool loop; those of a join from its inputs.
    """
    wanted: dict[str, list[str]] = {}
    for node in plan.nodes:
        for _, test in comparisons_of(node.when):
            reference = parse_reference(test.ref)
            if reference is not None and reference.node not in RESERVED_IDS:
                wanted.setdefault(reference.node, []).append(fact_name(reference, test.op))
        over = parse_reference(node.over) if node.kind == "map" else None
        if over is not None and over.node not in RESERVED_IDS:
            wanted.setdefault(over.node, []).append(length_fact(over))
    _want_of_inputs(plan, wanted)
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


def _want_of_inputs(plan: Plan, wanted: dict[str, list[str]]) -> None:
    """Add what the inputs of joins are to tell, so that the joins have the facts that are wanted of them."""
    joins = {node.id: node for node in plan.nodes if node.kind == "join" and node.items is None}
    asked = [(name, fact) for name in joins for fact in wanted.get(name, ())]
    for name, fact in asked:  # which grows
        node = joins[name]
        policy = "quorum" if isinstance(node.policy, Quorum) else node.policy
        found = fact_of_input(policy, fact)
        if found is None:
            continue
        place, inner = found
        for other in node.inputs if policy in ("first", "quorum") else node.inputs[place : place + 1]:
            facts = wanted.setdefault(other, [])
            if OF_A_JOIN + inner not in facts:
                facts.append(OF_A_JOIN + inner)
                asked += [(other, inner)] if other in joins else []


def fact_name(reference: Reference, op: str) -> str:
    """Return the fact a test reads; `exists` only asks for the path."""
    return f"?{reference.fact}" if op == "exists" else reference.fact


def length_fact(over: Reference) -> str:
    """Return the fact that tells how long a map's list is."""
    return f"{over.fact}.length" if over.path else "length"


def source_of(node: Node, others: Mapping[str, Node]) -> str | None:
    """Return the map item by item behind whose items those of this map run, so that they need not wait for its end.

    It goes over the whole output of that map, and needs nothing else of it; and that map's failure has no other value.
    """
    over = parse_reference(node.over) if isinstance(node, MapNode) else None
    source = others.get(over.node) if over is not None and not over.path else None
    if over is None or not isinstance(source, MapNode) or source.on_error != "fail" or over.node in node.needs:
        return None
    tests = [test.ref for _, test in comparisons_of(node.when)]
    found = [
        *(parse_reference(ref) for ref in tests),
        *(each for at, each in value_references(node) if at != ("over",)),
    ]
    named = [each.node for each in found if each is not None]
    named += [status[0] for ref in tests if (status := parse_status_reference(ref)) is not None]
    return over.node if over.node not in named else None


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
