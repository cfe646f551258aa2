"""One node of a checked plan, ready to run: its arguments bound from stored
outputs, and its content key.
"""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sennit.activities.limits import MAX_KEPT_UNITS_BYTES, MAX_WORDING_CHARACTERS
from sennit.activities.storage.artifacts import key_of
from sennit.activities.storage.run_context import ArtifactReader, StoredPlan
from sennit.workflows.messages.node_calls import BudgetedCall, NodeCall
from sennit.workflows.plan.bounded_cache import BoundedCache
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language import dependencies
from sennit.workflows.plan.language.conditions import Condition, holds
from sennit.workflows.plan.language.facts import MISSING, Missing, Scalar, facts_of
from sennit.workflows.plan.language.nodes import (
    RESERVED_IDS,
    AgentCall,
    MapNode,
    ModelCall,
    Node,
    ToolCall,
)
from sennit.workflows.plan.language.references import (
    BindError,
    Reference,
    as_text,
    bind,
    parse_reference,
    resolve,
    rewrite,
)

_UNIT = re.compile(
    r"(?P<id>\w+)(?:\[(?P<item>\d+)\](?:\.(?P<stage>\w+))?)?(?:~(?P<generation>\d+))?\Z"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit by its path: `m[17]~2` is item 17 of m in its second generation,
    `m[17].page` a node of its chain.
    """

    id: str
    item: int | None
    generation: int
    stage: str = ""

    @property
    def path(self) -> str:
        """The path without its generation."""
        path = self.id
        if self.item is not None:
            path += f"[{self.item}]"
        if self.stage:
            path += f".{self.stage}"
        return path


_UNITS = BoundedCache[str, Unit](MAX_KEPT_UNITS_BYTES)


def parse_unit(text: str) -> Unit:
    """Return the unit of a path. Raises BindError."""
    return _UNITS.get_or_make(text, lambda: _parsed_unit(text))


def _parsed_unit(text: str) -> Unit:
    found = _UNIT.match(text)
    if found is None:
        raise BindError(f"{text!r} is no node path")
    item = None
    if found["item"]:
        item = int(found["item"])
    generation = int(found["generation"] or 1)
    return Unit(found["id"], item, generation, found["stage"] or "")


class Binder:
    """Binds one node's references: loads each output once, and only if it is read."""

    def __init__(
        self,
        library: ArtifactReader,
        run_prefix: str,
        checked: StoredPlan,
        call: NodeCall,
        refs: dict[str, str],
    ) -> None:
        self._library = library
        self._home = run_prefix
        self._checked = checked
        self._lost: Mapping[str, tuple[str, str | None]] = {}
        if isinstance(call, BudgetedCall):
            self._lost = call.lost
        self._refs = refs
        self._values: dict[str, Any] = {}

    async def load(self, unit: Unit) -> None:
        """Load the outputs that the node there reads, and how its inputs ended.

        Raises BindError, BodyMissing, StoreUnavailable.
        """
        written = written_at(self._checked, unit)
        self._values = {name: await self.value(name) for name in written.reads}
        if written.inputs:
            self._values[unit.id] = await self.settled(written.inputs)
        self._values |= {"input": self._checked.inputs, "goal": self._checked.goal}
        if unit.item is not None:
            await self._load_item(written, unit, unit.item)

    async def value(self, name: str) -> Any:
        """Return the whole output of a node by its reference in the call."""
        return await self._library.value(self._home, self._digest(name))

    def _digest(self, name: str) -> str:
        digest = self._refs.get(name)
        if digest is None:
            raise BindError(f"${name} has no value")
        return digest

    async def settled(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return how each of these inputs ended: `{id, status, value, error}`."""
        ends: list[dict[str, Any]] = []
        for name in names:
            value = None
            if name in self._refs:
                value = await self.value(name)
            status, error = self._lost.get(name, ("succeeded", None))
            ends.append({"id": name, "status": status, "value": value, "error": error})
        return ends

    async def _load_item(self, written: "Written", unit: Unit, item: int) -> None:
        """Load an item of a map, and what the nodes before this one in its chain have given."""
        node = written.node
        assert isinstance(node, MapNode)
        for name in written.earlier:
            self._values[name] = await self.value(f"{unit.id}[{item}].{name}")
        over = written.over
        if over is None:
            return
        source_item = f"{over.node}[{item}]"
        if source_item in self._refs:  # the item of another map, behind which this one runs
            self._values[node.as_] = await self.value(source_item)
        elif node.as_ in written.bound:
            if written.shared:
                whole = await self._shared(written.shared)
            else:
                whole = self.lookup(over.node)
            items = resolve(over, whole)
            if not isinstance(items, list) or item >= len(items):
                raise BindError(f"{node.over} has no item {item}")
            self._values[node.as_] = deepcopy(items[item])

    async def _shared(self, name: str) -> Any:
        """Return the output with the list of a map, which its items share."""
        return await self._library.shared(self._home, self._digest(name))

    def bound(self, value: Any) -> Any:
        """Return `value` with every reference replaced. Raises BindError."""
        return bind(value, self.lookup)

    def with_own_values(self, prompt: str, node: Node) -> str:
        """Return a prompt with short values of the run's own in place: inputs,
        the goal, a map's item.

        References to outputs of nodes, and to anything long, stay references. Raises BindError.
        """
        own = ["input", "goal"]
        if isinstance(node, MapNode):
            own.append(node.as_)

        def put(reference: Reference) -> str | None:
            if reference.node not in own:
                return None
            text = as_text(resolve(reference, self.lookup(reference.node)))
            if len(text) > MAX_WORDING_CHARACTERS or "\n" in text:
                return None
            return text

        return rewrite(prompt, put)

    def inputs(self, node: Node) -> dict[str, Any]:
        """Return the outputs which the node's call refers to, whole, in the
        order of the references.

        How its inputs ended is there under its own id.
        """
        # `goal` is the run's own, unless it is what a map calls its item.
        left_out = "goal"
        if isinstance(node, MapNode) and node.as_ == "goal":
            left_out = ""
        inputs: dict[str, Any] = {}
        for field, reference in dependencies.value_references(node):
            if field != ("over",) and "when" not in field and reference.node != left_out:
                inputs[reference.node] = self._values[reference.node]
        if dependencies.inputs_of(node):
            inputs[node.id] = self._values[node.id]
        return inputs

    async def is_skipped(self, unit: Unit) -> bool:
        """Whether the condition that a node in a map's `do` has for each item is false for this
        one; all other conditions are decided by the run.

        Raises ConditionError, FactTooLarge, BindError, BodyMissing, StoreUnavailable.
        """
        condition = written_at(self._checked, unit).condition
        if condition is None:
            return False
        await self.load(unit)

        def fact(test: dict[str, Any]) -> Scalar | Missing:
            reference = parse_reference(test["ref"])
            assert reference is not None  # every plan is checked
            name = dependencies.fact_name(reference, test["op"])
            facts = facts_of(self.lookup(reference.node), [name])
            return facts.get(name, MISSING)

        return not holds(condition.model_dump(mode="json", by_alias=True), fact)

    def lookup(self, name: str) -> Any:
        """Return what a name means for this node: a node's whole output, `goal`,
        `input`, a map's item.

        Raises BindError.
        """
        if name not in self._values:
            raise BindError(f"{Reference(name)} has no value")
        return self._values[name]


class Written:
    """A node as its plan has it, or what each item of a map runs: all that does
    not depend on the item.
    """

    def __init__(self, checked: StoredPlan, unit: Unit) -> None:
        """Raises BindError."""
        node = checked.node(unit.id)
        is_item = isinstance(node, MapNode) and unit.item is not None
        if isinstance(node, MapNode) and is_item:
            try:
                node = node.at_stage(unit.stage)
            except KeyError:
                raise BindError(f"{unit.path} is no node") from None
        self.node: Node = node
        self.work = work_at(self.node, unit)
        """The call to make; None for a node that only puts values together."""
        self.spec: NodeSpec = checked.spec(unit.id)
        """What the scheduler knows of it."""
        for stage in self.spec.stages:
            if stage.id == unit.stage:
                self.spec = stage
                break

        self.names: list[str] = []
        """What it refers to, in the order written."""
        self.bound: list[str] = []
        """The same without the list of a map."""
        for field, reference in dependencies.value_references(self.node):
            if reference.node not in self.names:
                self.names.append(reference.node)
            if field != ("over",):
                self.bound.append(reference.node)

        # Items of a map that run apart have runs of their own, in which their chains are nodes.
        is_apart = isinstance(self.node, MapNode) and self.node.runs_apart
        own_names = dependencies.names_in(self.node)
        self.earlier: list[str] = []
        """The nodes before it in an item's chain that it refers to."""
        self.condition: Condition | None = None
        """Whether an item is skipped; all other conditions are decided by the run."""
        if not is_apart:
            self.earlier = [name for name in own_names[1:] if name in self.bound]
            if isinstance(self.node, MapNode) and is_item:
                self.condition = self.node.do[0].when

        self.over: Reference | None = None
        """The list of which an item is one."""
        self.shared: str | None = None
        """The node of whose output an item reads nothing but its list."""
        if isinstance(self.node, MapNode) and is_item:
            self.over = parse_reference(self.node.over)
            own = (*RESERVED_IDS, *self.bound)
            if self.over is not None and self.over.node not in own:
                self.shared = self.over.node
        not_loaded = (*RESERVED_IDS, *own_names, self.shared)
        self.reads = [name for name in self.names if name not in not_loaded]
        """The nodes whose outputs are loaded whole."""
        self.inputs = dependencies.inputs_of(self.node)

    @cached_property
    def call(self) -> str:
        """The call as the plan writes it, by its digest."""
        assert self.work is not None
        return key_of(self.work.model_dump(mode="json", by_alias=True))


def written_at(checked: StoredPlan, unit: Unit) -> Written:
    """Return what the plan has there. Raises BindError."""
    stage = None
    if unit.item is not None:
        stage = unit.stage
    place = (unit.id, stage)
    written: Written | None = checked.worked_out.get(place)
    if written is None:
        written = Written(checked, unit)
        checked.worked_out[place] = written
    return written


def reads_at(checked: StoredPlan, unit: Unit) -> list[str]:
    """Return the paths of the outputs that the node there may read: of an item also those before it
    in its chain, and the item of another map behind which it runs.
    """
    reads = written_at(checked, unit).spec.reads
    paths = [checked.name_at(index) for index in reads]
    if unit.item is None:
        return paths
    spec = checked.spec(unit.id)
    if spec.source >= 0:
        source = checked.name_at(spec.source)
        paths.append(f"{source}[{unit.item}]")
    for stage in spec.stages:
        paths.append(f"{unit.id}[{unit.item}].{stage.id}")
    return paths


def waits_at(checked: StoredPlan, unit: Unit) -> str:
    """Return the path of that without whose value an item's node cannot start, as the
    scheduler has it; "" for none.
    """
    # The node before it in the chain of its item; behind the chain comes the item itself.
    spec = checked.spec(unit.id)
    stages = [stage.id for stage in spec.stages]
    place = len(stages)
    if unit.stage:
        place = stages.index(unit.stage)
    if place:
        return f"{unit.id}[{unit.item}].{stages[place - 1]}"

    # The first of a chain waits for the item of another map, behind which this one runs.
    if spec.source >= 0:
        return f"{checked.name_at(spec.source)}[{unit.item}]"
    return ""


def work_at(node: Node, unit: Unit) -> ToolCall | ModelCall | AgentCall | None:
    """Return the call that is made there, or None: a map itself only puts the values
    of its items together.
    """
    if isinstance(node, MapNode) and unit.item is None:
        return None
    return dependencies.work_of(node)
