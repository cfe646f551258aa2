"""The edges among the nodes of an execution plan, derived from it. During a run a
graph grows by pages only.
"""

from collections.abc import Sequence
from typing import Any

from sennit.workflows.plan.compile.execution_plan import SHARED, ExecutionPlan, NodeSpec
from sennit.workflows.plan.language.conditions import facts_read
from sennit.workflows.plan.language.dag import topological_order
from sennit.workflows.plan.language.facts import fact_of_input


class Graph:
    """An execution plan with its derived edges: who consumes whom, who joins whom.

    `early` are the nodes below a join that may close before all of its inputs have ended, and
    `contended` the locks that somebody may hold alone. `place` is where a node stands if each is
    put behind all that it waits for. Nodes that are appended have places behind all others until
    the scheduler calls `sort`, which it does before it follows edges backwards. Only an event may
    do that: places decide in which order nodes are cancelled. Whoever only looks at a run asks for
    the `order`, which leaves the places as they are. `by_key` has the latest node of each call of a
    program, and `wanted` the facts of joins and maps: true for those that conditions and maps read,
    false for those that only other joins have from them. `pipes` are the maps that run item by item
    behind each map's items.
    """

    def __init__(self, execution_plan: ExecutionPlan) -> None:
        self.execution_plan = execution_plan
        self.specs = execution_plan.specs
        self.sketch: Any = None  # how it is drawn, once it has been
        self.by_id: dict[str, int] = {}
        self.by_key: dict[str, int] = {}
        self.made: dict[int, list[int]] = {}
        self.deps: list[list[int]] = []
        self.consumers: list[list[int]] = []
        self.joins: list[list[int]] = []
        self.predecessor: dict[int, int] = {}
        self.pipes: dict[int, list[int]] = {}
        self.timed: dict[int, list[int]] = {}
        self.wanted: dict[int, dict[str, bool]] = {}
        self.keys: list[tuple[int, int, int]] = []
        self.answering = dict.fromkeys(execution_plan.answer)
        self.early: dict[int, bool] = {}
        self.contended: dict[str, bool] = {}
        self.place: list[int] = []
        self._add(0)
        self.is_sorted = False
        self.sort()

    def order(self) -> list[int]:
        """Return the nodes, each behind all that it waits for. It changes nothing, so that
        queries may ask for it.
        """
        return topological_order(list(map(_before, self.specs)))

    def sort(self) -> None:
        """Give the nodes their places in the order if some were appended."""
        if self.is_sorted:
            return
        for position, node in enumerate(self.order()):
            self.place[node] = position
        self.is_sorted = True

    def append(self, specs: list[NodeSpec], maker: int = -1) -> None:
        """Add nodes that only wait for each other and for older ones, in time that does not
        depend on the older ones.

        `maker` is the program that has called them, or the turn of a tool loop
        that goes on with them.
        """
        first = len(self.specs)
        for spec in specs:
            spec.maker = maker
        self.specs += specs
        self._add(first)
        self.sketch = None
        self.is_sorted = False

    def go_on_with(self, specs: list[NodeSpec], turn: int) -> None:
        """Add the nodes with which a turn of a tool loop goes on: the last
        one takes over its end.
        """
        self.append(specs, turn)
        last = len(self.specs) - 1
        self.put_behind(last, turn)
        if turn in self.early:
            self.hurry([last])

    def answer_with(self, nodes: list[int], *, direct: bool) -> None:
        """Have other nodes be the answer."""
        self.execution_plan.answer = nodes
        self.execution_plan.direct = direct
        self.answering = dict.fromkeys(nodes)

    def show_as(self, index: int, spec: NodeSpec) -> None:
        """Have people see a call where its program makes it now, in the place of another node. The
        call counts in the budgets of the tasks that make it now.
        """
        known = self.specs[index]
        known.call_site = spec.call_site
        known.slice = spec.slice
        known.slice_of = spec.slice_of
        known.summary = spec.summary
        if spec.summary.startswith(f"{spec.id} "):
            known.summary = known.id + spec.summary.removeprefix(spec.id)
        self.sketch = None

    def put_behind(self, step: int, later: int) -> None:
        """Have `step`, and the nodes behind it, take over the end of `later`."""
        self.specs[later].successor = step
        self.specs[step].is_successor = True
        self.predecessor[step] = later

    def last_of(self, node: int) -> int:
        """Return the last turn of a tool loop, which has the output of the
        node; or the node itself.
        """
        following = self.specs[node].successor
        while following >= 0 and self.specs[following].maker >= 0:
            node = following
            following = self.specs[node].successor
        return node

    def fallback_of(self, node: int) -> int:
        """Return the fallback of a node, behind the turns with which it went on
        when it ran before; or -1.
        """
        following = self.specs[node].successor
        while following >= 0 and self.specs[following].maker >= 0:
            following = self.specs[following].successor
        return following

    def cut_off(self, gone: Sequence[int]) -> None:
        """Take the turns of a tool loop that ran again out of the graph: they
        wait for nothing any more.
        """
        for node in gone:
            for dep in self.specs[node].inputs:
                self.joins[dep].remove(node)
            self.predecessor.pop(node, None)
            self.specs[node].inputs = []
            self.specs[node].successor = -1

    def made_by(self, node: int) -> list[int]:
        """Return the nodes that a program has called, or that a turn of a model call has added."""
        return self.made.get(node, [])

    def give_calls(self, calls: Sequence[int], program: int) -> None:
        """Have calls be those that a program has made."""
        for call in calls:
            self.specs[call].maker = program
        self.made[program] = list(calls)

    def program_of(self, node: int) -> int:
        """Return the program of the plan that has called a node; of any other node itself."""
        while self.specs[node].maker >= 0:
            node = self.specs[node].maker
        return node

    def model_of(self, call: int) -> int:
        """Return the model call in whose tool loop a call was made, by its first turn."""
        node = self.specs[call].maker
        while node in self.predecessor and self.specs[node].maker >= 0:
            node = self.predecessor[node]
        return node

    def _add(self, first: int) -> None:
        """Note the nodes from the number `first` on, and then their edges."""
        added = list(enumerate(self.specs[first:], first))
        for index, spec in added:
            self.by_id[spec.id] = index
            if spec.key:
                self.by_key[spec.key] = index
            self.deps.append(spec.needs + spec.watches)
            self.consumers.append([])
            self.joins.append([])
            self.keys.append((spec.priority, -spec.rank, index))
            self.place.append(index)
        for index, spec in added:
            self._link(index, spec)

    def _link(self, index: int, spec: NodeSpec) -> None:
        if spec.maker >= 0:
            self.made.setdefault(spec.maker, []).append(index)
        for dep in self.deps[index]:
            self.consumers[dep].append(index)
        for dep in spec.inputs:
            self.joins[dep].append(index)
            if spec.deadline:
                self.timed.setdefault(dep, []).append(index)
        if spec.successor >= 0:
            self.predecessor[spec.successor] = index
        if spec.source >= 0:
            self.pipes.setdefault(spec.source, []).append(index)
        read = facts_read(spec.when)
        if spec.over is not None:
            read.append(spec.over)
        facts = [(node, name, True) for node, name in read]
        self._want(facts)
        for part in (spec, *spec.stages):
            for lock, mode in part.locks:
                if mode != SHARED:
                    self.contended[lock] = True
        if _closes_early(spec):
            self.hurry(spec.inputs)

    def _want(self, facts: list[tuple[int, str, bool]]) -> None:
        """Note facts of joins and maps, and those of joins among their inputs
        from which they have them.
        """
        for node, name, is_read in facts:  # which grows
            spec = self.specs[node]
            known = self.wanted.get(node, {}).get(name)
            if spec.kind not in ("join", "map") or known or known == is_read:
                continue
            self.wanted.setdefault(node, {})[name] = is_read
            if spec.of_items or spec.kind == "map":  # nobody asks items for facts
                continue
            place, inner = fact_of_input(spec.policy, name) or (0, "")
            if not inner:
                continue
            # Nobody knows which inputs the policies `first` and `quorum` will take.
            inputs = spec.inputs
            if spec.policy not in ("first", "quorum"):
                inputs = spec.inputs[place : place + 1]
            for source in inputs:
                facts.append((source, inner, False))

    def readers(self, node: int) -> list[int]:
        """Return the nodes whose activities are given a node's output, and the joins
        that it is an input of.
        """
        readers: list[int] = []
        for consumer in self.consumers[node]:
            if node in self.specs[consumer].reads:
                readers.append(consumer)
        return readers + self.joins[node]

    def hurry(self, nodes: Sequence[int]) -> None:
        """Note that these, and all that they wait for, may be cancelled at any time, or are
        waited for one by one.
        """
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in self.early:
                self.early[node] = True
                stack += _before(self.specs[node])

    def calls_before(self, turn: int) -> list[int]:
        """Return the calls that led to a turn of a tool loop."""
        maker = self.specs[turn].maker
        if maker < 0:
            return []
        calls: list[int] = []
        for join in self.deps[turn]:
            if self.specs[join].maker == maker:
                calls += self.specs[join].inputs
        return calls

    def caller_of(self, node: int) -> int:
        """Return the program that has made a call; -1 for a node that no script has called."""
        maker = self.specs[node].maker
        if maker < 0 or self.specs[maker].kind != "program":
            return -1
        return maker

    def behind(self, node: int) -> tuple[int, ...]:
        """Return the nodes that read how a node ends: consumers, joins, the node whose fallback it
        is, and the program that has called it. Nobody reads how a task ends.
        """
        readers = [*self.consumers[node], *self.joins[node]]
        host = self.predecessor.get(node)
        if host is not None:
            readers.append(host)
        caller = self.caller_of(node)
        if caller >= 0 and self.specs[node].kind != "task":
            readers.append(caller)
        return tuple(readers)


def _closes_early(spec: NodeSpec) -> bool:
    """Whether a join may close before all of its inputs have ended."""
    if spec.policy in ("first", "quorum", "turn"):
        return True
    return spec.kind == "join" and spec.deadline > 0


def _before(spec: NodeSpec) -> list[int]:
    """Return the nodes that must end before this one can, its fallback node among them."""
    nodes = spec.needs + spec.watches + spec.inputs
    if spec.successor >= 0:
        nodes.append(spec.successor)
    return nodes
