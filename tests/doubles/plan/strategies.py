"""Random plans of every kind, drawn by Hypothesis or from a seed: one generator, two sources of choice."""

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec, Policy
from sennit.workflows.plan.language.nodes import OnFailure

T = TypeVar("T")

LOCKS = ("repo", "disk")
POLICIES: tuple[Policy, ...] = ("all", "settled", "first", "quorum", "turn")
STATUSES = ("succeeded", "failed", "skipped", "cancelled")
ENDINGS: tuple[OnFailure, ...] = ("park", "partial", "fail")


class Choices(Protocol):
    """Where a generator's choices come from."""

    def integer(self, low: int, high: int) -> int:
        """Return a number, both ends included."""

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`."""


class Seeded:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """Return a number, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`."""
        return options[int(self._random.random() * len(options))]


class Drawn:
    """Choices that Hypothesis makes, and shrinks."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """Return a number, both ends included."""
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`."""
        return self._draw(st.sampled_from(options))


class Planner:
    """Builds one random plan. `early` allows joins that close before all inputs have ended."""

    def __init__(
        self, choices: Choices, *, least: int = 1, most: int = 12, early: bool = True, trouble: bool = True
    ) -> None:
        self._choices = choices
        self._sizes = least, most
        self._early = early
        self._trouble = trouble
        self._specs: list[NodeSpec] = []
        self._usable: list[int] = []
        self._hidden = 0
        self._short = False

    def plan(self) -> ExecutionPlan:
        """Return a plan that keeps every rule of the plan language. Of ten, three are mostly short calls."""
        self._short = self._chance(30)
        for _ in range(self._choices.integer(*self._sizes)):
            self._node()
        answer = self._some(self._usable, 1, 2)
        execution_plan = ExecutionPlan(self._specs, answer, self._choices.pick(ENDINGS))
        return shuffled(execution_plan, self._choices)

    def _chance(self, percent: int) -> bool:
        return self._choices.integer(0, 99) >= 100 - percent

    def _some(self, options: Sequence[int], least: int, most: int) -> list[int]:
        count = min(len(options), self._choices.integer(least, most))
        return list(dict.fromkeys(self._choices.pick(options) for _ in range(count))) if options else []

    def _node(self) -> None:
        self._hidden = len(self._specs)
        fallback = self._fallback() if self._trouble and self._chance(12) else -1
        kind = self._choices.pick(("tool", "tool", "tool", "llm", "join", "join", "map", "gate"))
        kind = "tool" if self._short and self._chance(60) else kind
        if kind in ("join", "map") and not self._usable:
            kind = "tool"
        spec = self._spec(kind)
        spec.successor = fallback
        if fallback < 0 and self._trouble:
            self._on_error(spec)
        self._usable.append(len(self._specs))
        self._specs.append(spec)

    def _fallback(self, depth: int = 0) -> int:
        deeper = self._fallback(depth + 1) if depth < 2 and self._chance(15) else -1
        spec = self._spec("tool")
        spec.is_successor, spec.successor = True, deeper
        self._specs.append(spec)
        return len(self._specs) - 1

    def _spec(self, kind: Any) -> NodeSpec:
        spec = NodeSpec(f"n{len(self._specs)}", kind, rank=self._choices.integer(0, 2))
        spec.needs = self._some(self._usable, 0, 2) if kind != "join" or self._chance(30) else []
        spec.priority = self._choices.integer(2, 3)
        if self._trouble and self._chance(25):
            self._condition(spec)
        if kind == "join":
            self._join(spec)
        elif kind == "llm" and self._chance(40):
            spec.inputs, spec.policy = self._some(self._usable, 1, 4), "settled"
        elif kind == "map":
            self._map(spec)
        elif kind == "gate" and self._early and self._chance(30):
            spec.deadline, spec.fills = self._choices.integer(1, 60), self._chance(50)
        spec.typical, spec.tool = self._choices.pick((0, 5, 50, 5_000)), self._choices.pick(("short", "long"))
        if self._short:
            spec.typical = 5
            return spec
        if kind in ("tool", "map") and self._chance(15):
            spec.approval, spec.effect = True, "write"
        if kind in ("tool", "llm", "map") and self._chance(25):
            locks = [(self._choices.pick(LOCKS), self._chance(50)) for _ in range(self._choices.integer(1, 2))]
            spec.locks = list(dict(locks).items())
        return spec

    def _join(self, spec: NodeSpec) -> None:
        spec.inputs = self._some(self._usable, 1, 4)
        spec.policy = self._choices.pick(POLICIES if self._early else POLICIES[:2])
        maps = [node for node in spec.inputs if self._specs[node].kind == "map"]
        if maps and spec.policy in ("first", "quorum") and self._chance(70):
            spec.inputs, spec.of_items = maps[:1], True
        spec.quorum = self._choices.integer(1, len(spec.inputs)) if spec.policy == "quorum" else 0
        spec.quorum = -self._choices.pick((1, 40, 100)) if spec.of_items and spec.quorum else spec.quorum
        if spec.policy == "turn":
            spec.turn_calls = self._choices.integer(0, len(spec.inputs))
            spec.quorum = self._choices.integer(1, len(spec.inputs))
            spec.awaited = self._some(spec.inputs, 0, 2)
        spec.deadline = self._choices.integer(1, 60) if self._early and self._chance(40) else 0

    def _map(self, spec: NodeSpec) -> None:
        source = self._choices.pick(self._usable)
        spec.needs = list(dict.fromkeys([*spec.needs, source]))
        spec.watches = [node for node in spec.watches if node != source]
        spec.over, spec.cap = (source, "items.length"), 3 if self._chance(10) else 9
        self._item(spec)
        spec.stages = [self._stage(f"s{number}") for number in range(self._choices.integer(-2, 2))]
        tested = repr(spec.when)
        before = self._specs[source]
        is_plain = before.fallback is None and before.successor < 0 and not before.skip_on_error
        if before.kind == "map" and is_plain and f"'at': [{source}," not in tested:
            spec.source = source

    def _stage(self, name: str) -> NodeSpec:
        spec = NodeSpec(name, "map")
        if self._chance(15):
            spec.approval, spec.effect = True, "write"
        if self._chance(25):
            spec.locks = [(self._choices.pick(LOCKS), self._chance(50))]
        self._item(spec)
        return spec

    def _item(self, spec: NodeSpec) -> None:
        if self._trouble and self._chance(40):
            spec.item_skip = self._chance(50)
            spec.item_fallback = None if spec.item_skip else (f"instead of {spec.id}[]", 1, {})

    def _condition(self, spec: NodeSpec) -> None:
        if self._chance(50) and spec.needs:
            op, value = self._choices.pick((("ge", 2), ("lt", 5), ("exists", None), ("eq", "text")))
            spec.when = {"ref": "", "op": op, "value": value, "at": [self._choices.pick(spec.needs), "count"]}
            return
        watched = self._some(range(self._hidden), 1, 2)
        spec.watches = [node for node in watched if node not in spec.needs]
        if watched:
            tests = [
                {"ref": "", "op": "eq", "value": self._choices.pick(STATUSES), "at": [node, ":status"]}
                for node in watched
            ]
            spec.when = {self._choices.pick(("and", "or")): tests}
            spec.when = {"not": spec.when} if self._chance(30) else spec.when

    def _on_error(self, spec: NodeSpec) -> None:
        choice = self._choices.integer(1, 10)
        spec.skip_on_error = choice == 1
        spec.fallback = (f"instead of {spec.id}", 1, {"count": 3, "items.length": 2}) if choice == 2 else None


def shuffled(execution_plan: ExecutionPlan, choices: Choices) -> ExecutionPlan:
    """Move the nodes about, so that the order in the plan says nothing about the order of running."""
    count = len(execution_plan.specs)
    places = list(range(count))
    for index in range(count - 1, 0, -1):
        other = choices.integer(0, index) if index % 2 else index
        places[index], places[other] = places[other], places[index]
    moved: list[Any] = [None] * count
    for index, spec in enumerate(execution_plan.specs):
        moved[places[index]] = spec
        spec.move(places.__getitem__)
    return ExecutionPlan(moved, [places[node] for node in execution_plan.answer], execution_plan.on_failure)


@st.composite
def execution_plans(draw: st.DrawFn, *, most: int = 12, early: bool = True, trouble: bool = True) -> ExecutionPlan:
    """Plans of every kind. Without `trouble` nothing can fail or be skipped by its own plan."""
    return Planner(Drawn(draw), most=most, early=early, trouble=trouble).plan()
