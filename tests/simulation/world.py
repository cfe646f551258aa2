"""A world in which calls happen: what is in flight, and what each call comes to, decided by its inputs alone."""

from collections.abc import Iterable
from zlib import crc32

from sennit.workflows.plan.fusion.rules import why_alone
from sennit.workflows.plan.scheduling import joins
from sennit.workflows.plan.scheduling.events import (
    Cancel,
    Decision,
    LookUp,
    Outcome,
    Question,
    Start,
)
from sennit.workflows.plan.scheduling.ready import in_flight
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    DELEGATED,
    ENDED,
    EXPANDED,
    RUNNING,
    SKIPPED,
    STATUS_NAMES,
    SUCCEEDED,
)

Key = tuple[int, int]
Activity = tuple[Key, ...]


def chance(*parts: object) -> int:
    """Return a number from 0 to 99 that depends on the parts alone."""
    return crc32(repr(parts).encode()) % 100


class World:
    """Runs what the scheduler starts. `versions` counts how often a person had a unit run again. Writes that were cut
    off are `leaving`: true once the ledger of effects is asked about them.
    """

    def __init__(self, seed: int, *, failing: int = 12) -> None:
        self.seed = seed
        self.failing = failing
        self.versions: dict[str, int] = {}
        self.live: dict[Key, tuple[str, ...]] = {}
        self.bound: dict[Key, tuple[str, ...]] = {}
        self.leaving: dict[Key, bool] = {}
        self.zombies: list[Key] = []
        self.used: dict[str, bool] = {}
        self.records: dict[int, tuple[tuple[str, ...], Outcome]] = {}
        self.asking: dict[Key, bool] = {}
        self.cut_off: dict[Key, tuple[str, ...]] = {}
        self.joined: dict[Key, Outcome] = {}
        self.told: dict[Activity, dict[Key, Outcome]] = {}

    def carry_out(self, state: RunState, decisions: Iterable[Decision]) -> list[Activity]:
        """Start and cancel as decided; return the activities started. Raises AssertionError for a forbidden start."""
        started = []
        for decision in decisions:
            if isinstance(decision, Start):
                begin = self._ask if decision.asks else self._start
                started.append(begin(state, decision.units))
            elif isinstance(decision, Cancel):
                key = decision.unit, decision.generation
                assert key in self.live, f"cancelled what does not run: {key}"
                self.cut_off[key] = self.live.pop(key)
                if in_flight(state, *key):
                    self.leaving[key] = False
                else:
                    self.zombies.append(key)
            elif isinstance(decision, LookUp):
                key = decision.unit, decision.generation
                assert self.leaving[key] is False, "the ledger is asked twice"
                self.leaving[key] = True
                started.append((key,))
        self._note_joins(state)
        return started

    def _note_joins(self, state: RunState) -> None:
        """Note what the joins and maps were made of to which the scheduler has just given their values by itself."""
        for unit in state.touched:
            is_gathered = state.kind_of(unit) == "map" and joins.is_manifest(state.units[unit].digest or "")
            is_gathered |= state.kind_of(unit) == "join" and state.units[unit].chosen is not None
            if (
                is_gathered
                and state.units[unit].status == SUCCEEDED
                and (unit, state.units[unit].generation) not in self.joined
            ):
                self.records[unit] = inputs_of(state, unit), self._joined(state, unit)

    def _joined(self, state: RunState, unit: int) -> Outcome:
        """Return the value of a join or a map, whoever puts it together."""
        facts = self._facts((self.seed, state.path(unit), inputs_of(state, unit)))
        if state.graph.specs[unit].policy == "first":
            [first] = state.units[unit].chosen or ()
            facts = state.units[first].facts or {}
        return Outcome(joins.manifest(state, unit), 10, facts)

    def _ask(self, state: RunState, units: tuple[int, ...]) -> Activity:
        """Put together what a unit asks; it does nothing else."""
        [unit] = units
        key = unit, state.units[unit].generation
        assert state.units[unit].status == RUNNING
        assert key not in self.live
        self.live[key], self.asking[key] = inputs_of(state, unit), True
        return (key,)

    def _start(self, state: RunState, units: tuple[int, ...]) -> Activity:
        inside = dict.fromkeys(units)
        for unit in units:
            assert state.units[unit].status == RUNNING
            key = unit, state.units[unit].generation
            name = state.full_path(unit)
            assert len(units) == 1 or not state.units[unit].alone, f"{name} has failed beside others"
            spec, locks = state.spec_of(unit), state.locks_of(unit)
            assert len(units) == 1 or not why_alone(state.graph, state.node_of(unit), spec, locks)
            assert key not in self.live, f"{name} runs already"
            assert name not in self.used, f"{name} is started twice"
            self.used[name] = True
            check_may_start(state, unit, inside)
            self.live[key] = inputs_of(state, unit)
            if state.kind_of(unit) in ("join", "map"):
                self.joined[key] = self._joined(state, unit)
        return tuple((unit, state.units[unit].generation) for unit in units)

    def outcome(self, state: RunState, unit: int, inputs: tuple[str, ...]) -> Outcome:
        """Return what a call comes to: a pure function of seed, path, version and inputs."""
        if state.kind_of(unit) in ("join", "map"):
            return self.joined.get((unit, state.units[unit].generation), Outcome("late", 1))
        path = state.path(unit)
        case = (self.seed, path, self.versions.get(path, 0), inputs)
        writes = state.spec_of(unit).effect == "write" and state.kind_of(unit) == "tool"
        if writes and (doubt := self._doubt(case, resumed=unit in state.resumed)):
            return Outcome(error=(doubt, "nobody knows"))
        if chance("fails", *case) < self.failing:
            return Outcome(error=("ToolFailed", f"case {chance('why', *case)}"))
        millis = {"short": 20, "long": 3_000}.get(state.spec_of(unit).tool, 0)
        return Outcome(f"{crc32(repr(case).encode()):08x}", 10, self._facts(case), millis=millis)

    def _facts(self, case: tuple[object, ...]) -> dict[str, int]:
        facts = {"count": chance("count", *case) % 8}
        if chance("lists", *case) < 95:
            facts["items.length"] = chance("length", *case) % 4
        return facts

    def _doubt(self, case: tuple[object, ...], *, resumed: bool) -> str:
        """Return the error of a write that leaves open whether it was made, "" for none."""
        drawn = chance("doubt", resumed, *case)
        return "WorkerLost" if drawn < 10 else "UnknownOutcome" if drawn < 20 else ""

    def left(self, key: Key) -> Outcome:
        """Return the end of a write that was cut off."""
        drawn = chance("left", self.seed, key, self.leaving[key])
        if drawn < 40:
            return Outcome("made", 1)
        if drawn < 60:
            return Outcome(error=("UnknownOutcome", "nobody knows"))
        if drawn < 70:
            return Outcome(again=True)
        return Outcome(error=("NotWritten" if self.leaving[key] else "Cancelled", "cut off"))

    def settle(self, state: RunState, keys: Activity) -> list[tuple[int, int, Outcome]]:
        """End an activity: return (unit, generation, outcome) for each unit, also for those cancelled meanwhile. Those
        that it has `told` of before end as they did.
        """
        fresh: dict[int, Outcome] = {}
        units, told = [unit for unit, _ in keys], self.told.get(keys, {})
        for unit, generation in sorted(keys, key=lambda key: state.graph.place[state.node_of(key[0])]):
            if (unit, generation) in told:
                fresh[unit] = told[unit, generation]
                continue
            if (unit, generation) in self.leaving:
                fresh[unit] = self.left((unit, generation))
                continue
            inputs = self.live.get((unit, generation))
            if inputs is None and len(keys) > 1 and chance("too late", self.seed, unit, generation) < 50:
                inputs = self.cut_off.get((unit, generation))  # it had ended in its activity by then
            asked = self._question(state, unit, generation, inputs)
            if asked is not None:
                fresh[unit] = Outcome(attempts=0, question=asked)
            elif inputs is not None:
                fresh[unit] = self._in_group(state, (unit, generation), inputs, units, fresh)
        return [(unit, generation, fresh.get(unit, Outcome(again=True))) for unit, generation in keys]

    def _question(self, state: RunState, unit: int, generation: int, inputs: tuple[str, ...] | None) -> Question | None:
        """Return what a unit asks: before it starts, and instead of a write that was not approved with these inputs."""
        if inputs is None or not (state.spec_of(unit).approval or state.spec_of(unit).fills):
            return None
        asked = Question("?", str(inputs))
        approved = state.units[unit].approved
        if (unit, generation) in self.asking:
            return asked
        return None if approved is None or approved.covers(asked) else asked

    def deliver(self, state: RunState, unit: int, generation: int, outcome: Outcome) -> None:
        """Note that an outcome reaches the scheduler now."""
        key = unit, generation
        if key in self.leaving:
            if self.leaving[key] or outcome.error is None or outcome.error[0] != "Cancelled":
                del self.leaving[key]
                self.zombies.append(key)
            return
        inputs = self.live.pop(key, None)
        if inputs is None or outcome.objections:
            return
        if outcome.question is not None:
            if not self.asking.pop((unit, generation), False):
                self.used.pop(state.full_path(unit))
            return
        lost = outcome.error is not None and outcome.error[0] == "WorkerLost"
        if outcome.again or (lost and unit not in state.resumed):
            self.used.pop(state.full_path(unit))
        else:
            self.records[unit] = self.bound.pop((unit, generation), inputs), outcome

    def _in_group(
        self, state: RunState, key: Key, inputs: tuple[str, ...], units: list[int], fresh: dict[int, Outcome]
    ) -> Outcome:
        unit = key[0]
        if len(units) > 1 and chance("later", self.seed, state.path(unit), inputs) < 10:
            return Outcome(error=("NotYet", "try again"), attempts=0, again=True)
        spec = state.spec_of(unit)
        deps = [] if state.is_item(unit) else [dep for dep in spec.needs if dep in units]
        if deps:
            if spec.when or any(dep not in fresh or fresh[dep].digest is None for dep in deps):
                return Outcome(again=True, attempts=0)
            made = [
                fresh[dep].digest or "" if dep in fresh else old
                for dep, old in zip(spec.needs, inputs[:-1], strict=True)
            ]
            inputs = (*made, "")
            self.bound[key] = inputs
        return self.outcome(state, unit, inputs)


def inputs_of(state: RunState, unit: int) -> tuple[str, ...]:
    """Return everything a unit's activity reads."""
    spec = state.spec_of(unit)
    if state.is_item(unit):
        of_map = state.graph.specs[state.node_of(unit)]
        needs = [need for need in of_map.needs if need != of_map.source]
        return tuple(state.units[need].digest or "" for need in (*needs, *state.read_by(unit)))
    if spec.kind == "join":
        if spec.policy == "turn":
            return tuple(
                f"{lost_text(state, node)} {state.units[node].digest}" for node in (state.units[unit].chosen or ())
            )
        taken = [state.units[node].digest or "" for node in (state.units[unit].chosen or ())]
        return (*taken, *([lost_text(state, node) for node in spec.inputs] if spec.policy == "settled" else []))
    if spec.kind == "map":
        return tuple(state.units[item].digest or "" for item in state.values(unit))
    lost = [f"{lost_text(state, node)} {state.units[node].digest}" for node in spec.inputs]
    return (*(state.units[need].digest or "" for need in spec.needs), *lost, str(state.answers.get(unit, "")))


def lost_text(state: RunState, node: int) -> str:
    """Return how a settled join shows one input."""
    status = SKIPPED if state.units[node].status >= BLOCKED else state.units[node].status
    return STATUS_NAMES[status]


def check_may_start(state: RunState, unit: int, inside: dict[int, None]) -> None:
    """Assert that everything a unit depends on has ended as it must."""
    node = state.node_of(unit)
    spec, path = state.graph.specs[node], state.path(unit)
    if state.is_item(unit):
        assert state.units[node].status == EXPANDED
        assert unit in state.items[node]
        assert all(state.units[before].status == SUCCEEDED for before in state.read_by(unit)), (
            f"{path} starts too early"
        )
    if not (spec.kind == "map" and unit == node):
        for need in spec.needs:
            assert need in inside or (need == spec.source and unit != node) or state.units[need].status == SUCCEEDED, (
                f"{path} starts without {need}"
            )
        for dep in spec.watches if unit == node else ():
            assert dep in inside or state.units[dep].status in (*ENDED, BLOCKED), (
                f"{path} starts before {dep} has ended"
            )
    assert node not in state.graph.predecessor or state.units[state.graph.predecessor[node]].status == DELEGATED
    works = spec.kind != "map" or unit != node
    assert not (state.spec_of(unit).approval and works) or state.units[unit].approved is not None, (
        f"{path} starts without approval"
    )
    assert spec.kind != "gate" or node in state.answers
    if spec.inputs:
        wanted = (*ENDED, BLOCKED) if spec.policy == "turn" else (SUCCEEDED,)
        assert all(state.units[item].status in wanted for item in (state.units[node].chosen or ()))
    given_up = any(state.notes.get(dep, ("",))[0] == "Skipped" for dep in spec.watches)
    if len(inside) == 1 and spec.when is not None and spec.kind != "map" and not given_up:
        assert state.decide(spec.when)
