"""A world in which calls happen: what is in flight, and what each call comes to, decided by its inputs alone."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from zlib import crc32

from workflows.plan.scheduling.events import Cancel, Decision, Expand, ExpansionRequest, Outcome, Question, Start
from workflows.plan.scheduling.state import (
    AWAITING_FALLBACK,
    BLOCKED,
    ENDED,
    EXPANDED,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
    RunState,
)

Key = tuple[int, int]
Activity = tuple[Key, ...]


def chance(*parts: object) -> int:
    """Return a number from 0 to 99 that depends on the parts alone."""
    return crc32(repr(parts).encode()) % 100


class World:
    """Runs what the scheduler starts. `versions` counts how often a person had a unit run again."""

    def __init__(self, seed: int, *, failing: int = 12) -> None:
        self.seed = seed
        self.failing = failing
        self.versions: dict[str, int] = {}
        self.live: dict[Key, tuple[str, ...]] = {}
        self.bound: dict[Key, tuple[str, ...]] = {}
        self.zombies: list[Key] = []
        self.used: dict[str, bool] = {}
        self.records: dict[int, tuple[tuple[str, ...], Outcome]] = {}
        self.requested: dict[Key, tuple[str, ...]] = {}
        self.asking: dict[Key, bool] = {}

    def move(self, to: Callable[[int], int]) -> None:
        """Call units by their new numbers: the plan has grown."""
        self.live = {(to(unit), generation): inputs for (unit, generation), inputs in self.live.items()}
        self.bound = {(to(unit), generation): inputs for (unit, generation), inputs in self.bound.items()}
        self.requested = {(to(unit), generation): inputs for (unit, generation), inputs in self.requested.items()}
        self.zombies = [(to(unit), generation) for unit, generation in self.zombies]
        self.asking = {(to(unit), generation): True for unit, generation in self.asking}
        self.records = {to(unit): record for unit, record in self.records.items()}

    def carry_out(self, state: RunState, decisions: Iterable[Decision]) -> list[Activity]:
        """Start and cancel as decided; return the activities started. Raises AssertionError for a forbidden start."""
        started = []
        for decision in decisions:
            if isinstance(decision, Start):
                begin = self._ask if decision.asks else self._start
                started.append(begin(state, decision.units))
            elif isinstance(decision, Expand):
                key = decision.unit, state.generation[decision.unit]
                assert state.expansion_requests[decision.unit].approved
                self.live[key] = self.requested[key]
                started.append((key,))
            elif isinstance(decision, Cancel):
                key = decision.unit, decision.generation
                assert key in self.live, f"cancelled what does not run: {key}"
                del self.live[key]
                self.zombies.append(key)
        return started

    def _ask(self, state: RunState, units: tuple[int, ...]) -> Activity:
        """Put together what a unit asks; it does nothing else."""
        [unit] = units
        key = unit, state.generation[unit]
        assert state.status[unit] == RUNNING
        assert key not in self.live
        self.live[key], self.asking[key] = inputs_of(state, unit), True
        return (key,)

    def _start(self, state: RunState, units: tuple[int, ...]) -> Activity:
        inside = dict.fromkeys(units)
        for unit in units:
            assert state.status[unit] == RUNNING
            key = unit, state.generation[unit]
            address = state.address(unit)
            assert key not in self.live, f"{address} runs already"
            if self.requested.pop(key, None) is not None:
                assert state.objections[unit], f"{address} is asked again without the reason"
                del self.used[address]
            assert address not in self.used, f"{address} is started twice"
            self.used[address] = True
            check_may_start(state, unit, inside)
            self.live[key] = inputs_of(state, unit)
        return tuple((unit, state.generation[unit]) for unit in units)

    def outcome(self, state: RunState, unit: int, inputs: tuple[str, ...]) -> Outcome:
        """Return what a call comes to: a pure function of seed, path, version and inputs."""
        path = state.path(unit)
        case = (self.seed, path, self.versions.get(path, 0), inputs)
        if chance("fails", *case) < self.failing:
            return Outcome(error=("ToolFailed", f"case {chance('why', *case)}"))
        facts = {"count": chance("count", *case) % 8}
        if chance("lists", *case) < 95:
            facts["items.length"] = chance("length", *case) % 4
        return Outcome(f"{crc32(repr(case).encode()):08x}", 10, facts)

    def settle(self, state: RunState, keys: Activity) -> list[tuple[int, int, Outcome]]:
        """End an activity: return (unit, generation, outcome) for each unit, also for those cancelled meanwhile."""
        fresh: dict[int, Outcome] = {}
        units = [unit for unit, _ in keys]
        for unit, generation in sorted(keys, key=lambda key: state.graph.place[state.node_of(key[0])]):
            inputs = self.live.get((unit, generation))
            asked = self._question(state, unit, generation, inputs)
            if asked is not None:
                fresh[unit] = Outcome(attempts=0, question=asked)
            elif inputs is not None:
                fresh[unit] = self._in_group(state, unit, inputs, units, fresh)
        return [(unit, generation, fresh.get(unit, Outcome(again=True))) for unit, generation in keys]

    def _question(self, state: RunState, unit: int, generation: int, inputs: tuple[str, ...] | None) -> Question | None:
        """Return what a unit asks: before it starts, and instead of a write that was not approved with these inputs."""
        if inputs is None or not (state.spec_of(unit).approval or state.spec_of(unit).fills):
            return None
        asked = Question("?", str(inputs))
        approved = state.approved.get(unit)
        if (unit, generation) in self.asking:
            return asked
        return None if approved is None or approved.covers(asked) else asked

    def expansion_request(self, state: RunState, keys: Activity, outcome: Outcome, wishing: int) -> Outcome:
        """Return an outcome as a request for more nodes, for so many in a hundred models. None asks twice in vain."""
        unit, key = keys[0][0], keys[0]
        plain = len(keys) == 1 and not state.is_item(unit) and state.spec_of(unit).kind in ("tool", "llm")
        if not plain or key not in self.live or key in self.requested or state.objections.get(unit):
            return outcome
        if (
            outcome.digest is None
            or chance("expansion_requests", self.seed, state.path(unit), self.live[key]) >= wishing
        ):
            return outcome
        self.requested[key] = self.live[key]
        return replace(outcome, expansion_request=ExpansionRequest(outcome.digest, 1))

    def deliver(self, state: RunState, unit: int, generation: int, outcome: Outcome) -> None:
        """Note that an outcome reaches the scheduler now."""
        inputs = self.live.pop((unit, generation), None)
        if inputs is None or outcome.expansion_request is not None or outcome.objections:
            return
        if outcome.question is not None:
            if not self.asking.pop((unit, generation), False):
                self.used.pop(state.address(unit))
            return
        if outcome.again:
            self.used.pop(state.address(unit))
        else:
            self.records[unit] = self.bound.pop((unit, generation), inputs), outcome

    def _in_group(
        self, state: RunState, unit: int, inputs: tuple[str, ...], units: list[int], fresh: dict[int, Outcome]
    ) -> Outcome:
        if len(units) > 1:
            spec = state.graph.specs[unit]
            deps = [dep for dep in (*spec.needs, *spec.watches) if dep in units]
            if spec.when or any(dep not in fresh or fresh[dep].digest is None for dep in deps):
                return Outcome(again=True, attempts=0)
            made = [
                fresh[dep].digest or "" if dep in fresh else old
                for dep, old in zip(spec.needs, inputs[:-1], strict=True)
            ]
            inputs = (*made, "")
            self.bound[unit, state.generation[unit]] = inputs
        return self.outcome(state, unit, inputs)


def inputs_of(state: RunState, unit: int) -> tuple[str, ...]:
    """Return everything a unit's activity reads."""
    spec = state.spec_of(unit)
    if state.is_item(unit):
        return tuple(state.digest[need] or "" for need in spec.needs)
    if spec.kind == "join":
        taken = [state.digest[node] or "" for node in state.chosen[unit]]
        return (*taken, *([lost_text(state, node) for node in spec.inputs] if spec.policy == "settled" else []))
    if spec.kind == "map":
        return tuple(state.digest[item] or "" for item in state.items[unit])
    lost = [f"{lost_text(state, node)} {state.digest[node]}" for node in spec.inputs]
    return (*(state.digest[need] or "" for need in spec.needs), *lost, str(state.answers.get(unit, "")))


def lost_text(state: RunState, node: int) -> str:
    """Return how a settled join shows one input."""
    status = SKIPPED if state.status[node] >= BLOCKED else state.status[node]
    return STATUS_NAMES[status]


def check_may_start(state: RunState, unit: int, inside: dict[int, None]) -> None:
    """Assert that everything a unit depends on has ended as it must."""
    node = state.node_of(unit)
    spec, path = state.graph.specs[node], state.path(unit)
    if state.is_item(unit):
        assert state.status[node] == EXPANDED
        assert unit in state.items[node]
    if not (spec.kind == "map" and unit == node):
        for need in spec.needs:
            assert need in inside or state.status[need] == SUCCEEDED, f"{path} starts without {need}"
        for dep in spec.watches if unit == node else ():
            assert dep in inside or state.status[dep] in (*ENDED, BLOCKED), f"{path} starts before {dep} has ended"
    assert node not in state.graph.fallback_for or state.status[state.graph.fallback_for[node]] == AWAITING_FALLBACK
    works = spec.kind != "map" or unit != node
    assert not (spec.approval and works) or unit in state.approved, f"{path} starts without approval"
    assert spec.kind != "gate" or node in state.answers
    if spec.inputs:
        assert all(state.status[item] == SUCCEEDED for item in state.chosen[node])
    given_up = any(state.notes.get(dep, ("",))[0] == "Skipped" for dep in spec.watches)
    if len(inside) == 1 and spec.when is not None and spec.kind != "map" and not given_up:
        assert state.decide(spec.when)
