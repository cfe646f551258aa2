"""Which nodes a node depends on, by explicit need, by reference, by condition,
as input, as fallback.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sennit.workflows.plan.language.conditions import comparisons_of
from sennit.workflows.plan.language.facts import OF_A_JOIN, fact_of_input
from sennit.workflows.plan.language.nodes import (
    RESERVED_IDS,
    AgentCall,
    Instead,
    JoinNode,
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

Call = ToolCall | ModelCall | AgentCall
"""The call of a node, or of a node in a map's `do`."""
ITEM_RUN = AgentCall(kind="agent", goal="do", tools=())
"""The call that an item of a map makes whose `do` is the plan of a run of its own."""


def work_of(node: Node) -> Call | None:
    """Return the call a node makes: its own, or the last of a map's `do`."""
    # by kind and not by class: pydantic's classes take ten times as long to tell, and
    # every node is asked often
    if node.kind == "map":
        last = node.do[-1]
        if node.runs_apart or last.kind == "program":
            return ITEM_RUN
        return last
    if node.kind == "join" or node.kind == "gate" or node.kind == "program":
        return None
    return node


def works_of(node: Node) -> list[tuple[Where, Call]]:
    """Return (place in the node, call) of each call a node makes: one as a rule, of a map those in
    its `do`. What its programs call is in their scripts.
    """
    if node.kind == "map":
        works: list[tuple[Where, Call]] = []
        for position, stage in enumerate(node.do):
            if stage.kind != "program":
                works.append((stage_place(node, position), stage))
        return works
    work = work_of(node)
    if work is None:
        return []
    return [((), work)]


def programs_in(node: Node) -> list[tuple[Where, Program]]:
    """Return (place in the node, program) of each program with a script: the node itself, or
    those in a map's `do`.
    """
    if node.kind == "map":
        programs: list[tuple[Where, Program]] = []
        for position, stage in enumerate(node.do):
            if stage.kind == "program":
                programs.append((stage_place(node, position), stage))
        return programs
    if node.kind == "program":
        return [((), node)]
    return []


def stage_place(node: MapNode, position: int) -> Where:
    """Return where a node of a map's `do` is written; one alone is no list."""
    if len(node.do) == 1:
        return ("do",)
    return ("do", position)


def arguments_of(node: Node) -> list[tuple[Where, Any]]:
    """Return (place in the node, value) of what is bound before a node acts: `args`, `prompt`,
    `media`, `workspace`, `goal`, `arguments`, a gate's `question`.
    """
    if node.kind == "gate":
        return [(("question",), node.question)]
    if node.kind == "program":
        return [(("arguments",), node.arguments)]
    arguments: list[tuple[Where, Any]] = []
    for where, program in programs_in(node):
        arguments.append(((*where, "arguments"), program.arguments))
    for where, work in works_of(node):
        if work.kind == "tool":
            arguments.append(((*where, "args"), work.args))
        elif work.kind == "agent":
            arguments.append(((*where, "goal"), work.goal))
        else:
            arguments.append(((*where, "prompt"), work.prompt))
            if work.media:
                arguments.append(((*where, "media"), work.media))
        if work.kind in ("llm", "agent") and work.workspace is not None:
            arguments.append(((*where, "workspace"), work.workspace))
    return arguments


def marked_texts(value: Any, where: Where = ()) -> list[tuple[Where, str]]:
    """Return (place, text) of every string in a JSON value that has a `$`, in
    order; keys are never read.
    """
    found: list[tuple[Where, str]] = []
    _mark(value, where, found)
    return found


# A union of types is made anew each time, and every value of a plan is looked at.
_HOLDERS = (dict, list, tuple)


def _mark(value: Any, where: Where, found: list[tuple[Where, str]]) -> None:
    if isinstance(value, str):
        if "$" in value:
            found.append((where, value))
        return
    if not isinstance(value, _HOLDERS):
        return

    # A place is made only for a text that has a `$`: most texts of a plan have none.
    parts: Any = enumerate(value)
    if isinstance(value, dict):
        parts = value.items()
    for name, item in parts:
        if isinstance(item, str):
            if "$" in item:
                found.append(((*where, name), item))
        elif isinstance(item, _HOLDERS):
            _mark(item, (*where, name), found)


def bound_texts(node: Node) -> list[tuple[Where, str]]:
    """Return (place in the node, text) of every string with a `$` that is
    bound before the node acts.
    """
    texts: list[tuple[Where, str]] = []
    for where, value in arguments_of(node):
        _mark(value, where, texts)
    return texts


def value_references(node: Node) -> Iterator[tuple[Where, Reference]]:
    """Yield (place in the node, reference) of the values its activity reads; a
    map's item name among them.
    """
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
        for reference in references_in(turn.results):
            yield ("turn", "results"), reference


def _tested_in(node: MapNode) -> Iterator[tuple[Where, Reference]]:
    """Yield what the conditions in a map's `do` test: it is read for each item, by its activity."""
    for position, stage in enumerate(node.do):
        for _, test in comparisons_of(stage.when):
            reference = parse_reference(test.ref)
            if reference is not None:
                yield (*stage_place(node, position), "when"), reference


def turn_of(node: Node) -> Turn | None:
    """Return which further turn of a tool loop the node is, None for any other node."""
    if node.kind != "llm":
        return None
    return node.further_turn


class Links(NamedTuple):
    """What one node depends on, each without repeats and in the order written.

    `needs` must succeed before it starts, `watches` only have to end, because a condition reads
    their status; `inputs` are those of a join or a model call; `reads` are the nodes whose outputs
    its activity loads; `fallback` runs when it fails.
    """

    needs: list[str]
    watches: list[str]
    inputs: list[str]
    reads: list[str]
    fallback: str | None

    @property
    def waits(self) -> list[str]:
        """Every id whose end can hold the node up, its fallback node's included: the
        edges a cycle is made of.
        """
        waits = [*self.needs, *self.watches, *self.inputs]
        if self.fallback:
            waits.append(self.fallback)
        return waits


def links_of(node: Node) -> Links:
    """Return what a node depends on."""
    # The names of a map's items, and what the engine gives, are no nodes.
    bound = (*RESERVED_IDS, *names_in(node))
    reads: dict[str, None] = {}
    for _, read in value_references(node):
        if read.node not in bound:
            reads[read.node] = None

    # A condition needs the nodes whose outputs it tests, and only watches those of
    # which it tests the status.
    needs = dict.fromkeys((*node.needs, *reads))
    watches: dict[str, None] = {}
    for _, test in comparisons_of(node.when):
        reference = parse_reference(test.ref)
        status = parse_status_reference(test.ref)
        if reference is not None and reference.node not in RESERVED_IDS:
            needs[reference.node] = None
        elif status is not None:
            watches[status.node] = None
    only_watched = [name for name in watches if name not in needs]
    return Links(list(needs), only_watched, inputs_of(node), list(reads), fallback_of(node))


def names_in(node: Node) -> tuple[str, ...]:
    """Return the names that have a meaning of their own inside a node: in a map's `do`."""
    if node.kind != "map":
        return ()
    return node.names


def inputs_of(node: Node) -> list[str]:
    """Return the nodes whose ends a join, or a model call, takes as they come; for a
    join of items their map.
    """
    if node.kind == "join" or node.kind == "llm":
        return list(node.inputs)
    return []


def fallback_of(node: Node) -> str | None:
    """Return the node that runs when this one fails."""
    on_error = node.on_error
    if isinstance(on_error, str) or not isinstance(on_error, Instead):
        return None
    return on_error.instead


def facts_wanted(plan: Plan) -> dict[str, list[str]]:
    """Return for each node the facts that conditions and maps read, in the order of the plan.
    Those of a node are also read from its fallback node, and from every turn of its tool loop;
    those of a join from its inputs.
    """
    wanted: dict[str, list[str]] = {}
    for node in plan.nodes:
        for _, test in comparisons_of(node.when):
            reference = parse_reference(test.ref)
            if reference is not None and reference.node not in RESERVED_IDS:
                fact = fact_name(reference, test.op)
                wanted.setdefault(reference.node, []).append(fact)
        if node.kind == "map":
            over = parse_reference(node.over)
            if over is not None and over.node not in RESERVED_IDS:
                wanted.setdefault(over.node, []).append(length_fact(over))
    _want_of_inputs(plan, wanted)
    _want_of_fallbacks(plan, wanted)
    for node in plan.nodes:
        turn = turn_of(node)
        if turn is not None and turn.node in wanted:
            wanted[node.id] = wanted[turn.node]
    return {name: list(dict.fromkeys(facts)) for name, facts in wanted.items()}


def _want_of_inputs(plan: Plan, wanted: dict[str, list[str]]) -> None:
    """Add what the inputs of joins are to tell, so that the joins have the facts
    that are wanted of them.
    """
    joins: dict[str, JoinNode] = {}
    for node in plan.nodes:
        if node.kind == "join" and node.items is None:
            joins[node.id] = node
    asked: list[tuple[str, str]] = []
    for name in joins:
        for fact in wanted.get(name, ()):
            asked.append((name, fact))
    for name, fact in asked:  # which grows: an input may be a join itself
        join = joins[name]
        policy = "quorum"
        if not isinstance(join.policy, Quorum):
            policy = join.policy
        found = fact_of_input(policy, fact)
        if found is None:
            continue
        # Nobody knows which inputs the policies `first` and quorum will take.
        place, inner = found
        inputs = join.inputs
        if policy not in ("first", "quorum"):
            inputs = join.inputs[place : place + 1]
        for source in inputs:
            facts = wanted.setdefault(source, [])
            if OF_A_JOIN + inner not in facts:
                facts.append(OF_A_JOIN + inner)
                if source in joins:
                    asked.append((source, inner))


def _want_of_fallbacks(plan: Plan, wanted: dict[str, list[str]]) -> None:
    """Add to a node's fallback, and to the fallback of that, what is wanted of the node itself."""
    fallbacks = {node.id: fallback_of(node) for node in plan.nodes}
    # What is wanted of a host is noted first: the loop adds to the lists of others.
    hosts = {host: list(facts) for host, facts in wanted.items()}
    for host, facts in hosts.items():
        seen: dict[str, None] = {}
        fallback = fallbacks.get(host)
        while fallback and fallback not in seen:
            seen[fallback] = None
            wanted.setdefault(fallback, []).extend(facts)
            fallback = fallbacks.get(fallback)


def fact_name(reference: Reference, op: str) -> str:
    """Return the fact a test reads; `exists` only asks for the path."""
    if op == "exists":
        return f"?{reference.fact}"
    return reference.fact


def length_fact(over: Reference) -> str:
    """Return the fact that tells how long a map's list is."""
    if not over.path:
        return "length"
    return f"{over.fact}.length"


def source_of(node: Node, others: Mapping[str, Node]) -> str | None:
    """Return the map item by item behind whose items those of this map run, so that they
    need not wait for its end.

    It goes over the whole output of that map, and needs nothing else of it; and that map's
    failure has no other value.
    """
    if node.kind != "map":
        return None
    over = parse_reference(node.over)
    if over is None or over.path or over.node in node.needs:
        return None
    source = others.get(over.node)
    if source is None or source.kind != "map" or source.on_error != "fail":
        return None

    # What else reads that map, or its status, needs it as a whole.
    for where, reference in value_references(node):
        if where != ("over",) and reference.node == over.node:
            return None
    for _, test in comparisons_of(node.when):
        tested = parse_reference(test.ref) or parse_status_reference(test.ref)
        if tested is not None and tested.node == over.node:
            return None
    return over.node


def leaves(plan: Plan) -> list[str]:
    """Return the nodes nobody consumes, fallback nodes left out."""
    used: dict[str, None] = {}
    for node in plan.nodes:
        used |= dict.fromkeys(links_of(node).waits)
    return [node.id for node in plan.nodes if node.id not in used]


def answer_of(plan: Plan) -> Any:
    """Return the plan's answer expression: as given, or a reference to the only leaf."""
    if plan.answer is not None:
        return plan.answer
    ends = leaves(plan)
    if len(ends) != 1:
        return None
    return f"${ends[0]}"
