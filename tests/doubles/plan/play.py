"""A run by hand, in words: build a small plan by names, tell what happens, read what is decided."""

from collections.abc import Sequence
from typing import Any

from sennit.workflows.plan.compile.execution_plan import ExecutionPlan, NodeSpec
from sennit.workflows.plan.compile.graph import Graph
from sennit.workflows.plan.fusion.rules import Timings
from sennit.workflows.plan.language.conditions import facts_read, moved
from sennit.workflows.plan.language.nodes import Fuse, OnFailure
from sennit.workflows.plan.scheduling.events import (
    Answered,
    ApprovalDecided,
    Cancel,
    Decision,
    End,
    EndStatus,
    Event,
    LookUp,
    NodeEnded,
    NodesAppended,
    Outcome,
    Question,
    RetryRequested,
    RunStarted,
    SkipRequested,
    Start,
    StopRequested,
    TimeAdvanced,
)
from sennit.workflows.plan.scheduling.joins import is_manifest
from sennit.workflows.plan.scheduling.snapshot import dump, load
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.step import step
from sennit.workflows.plan.scheduling.termination import blocking_failures
from sennit.workflows.plan.scheduling.unit import (
    BLOCKED,
    DELEGATED,
    EXPANDED,
    IN_DOUBT,
    STATUS_NAMES,
    SUCCEEDED,
    WAITING,
)

Fields = dict[str, Any]
STATUSES: dict[int, str] = {BLOCKED: "blocked", DELEGATED: "delegated", EXPANDED: "opened", IN_DOUBT: "in doubt"}


def node(name: str, *needs: str, kind: str = "tool", **fields: Any) -> Fields:
    """A node of a plan: what it needs, and fields of `NodeSpec` with names for indices."""
    return {"id": name, "kind": kind, "needs": list(needs), **fields}


def join(name: str, *inputs: str, policy: str = "all", **fields: Any) -> Fields:
    """A join of these inputs."""
    return {"id": name, "kind": "join", "inputs": list(inputs), "policy": policy, **fields}


def each(name: str, over: str, **fields: Any) -> Fields:
    """A map over the list that `over` returns; `ok(over, length=3)` says how long it is."""
    return {"id": name, "kind": "map", "needs": [over], "over": (over, "length"), "cap": 100, **fields}


def gate(name: str, *needs: str, **fields: Any) -> Fields:
    """A question to a person."""
    return {"id": name, "kind": "gate", "needs": list(needs), **fields}


def when(name: str, op: str = "eq", value: Any = None) -> Fields:
    """A condition: `when("a:status", "eq", "failed")` or `when("a.count", "gt", 3)`."""
    watches = ":" in name
    of, _, fact = name.partition(":" if watches else ".")
    test = {"ref": f"${name}", "op": op, "value": value, "at": [of, f":{fact}" if watches else fact]}
    return {"when": test, "watches": [of]} if watches else {"when": test}


class Play:
    """One run. What happens returns the decisions as words: `start a`, `cancel a~2`, `ask g`, `park a`, `end done`; and
    `close j` for each join that has got its value without an activity.
    """

    def __init__(
        self,
        *nodes: Fields,
        answer: str | Sequence[str] = (),
        on_failure: OnFailure = "park",
        in_flight: int = 1_000,
        fuse: Fuse = "off",
        workers: dict[str, int] | None = None,
        window: int = 100,
    ) -> None:
        index = {fields["id"]: position for position, fields in enumerate(nodes)}
        answers = [answer] if isinstance(answer, str) else list(answer)
        execution_plan = ExecutionPlan(
            [_spec(fields, index) for fields in nodes],
            [index[name] for name in answers],
            on_failure,
        )
        self.index = index
        self.graph = Graph(execution_plan)
        self.state = RunState(self.graph, window=window, park_for=1_000_000, in_flight=in_flight)
        self.state.timings = Timings(fuse, workers or {})
        self.decisions: list[str] = []

    def begin(self, *, more: bool = False) -> list[str]:
        """The plan is here, or its beginning."""
        return self.act(RunStarted(more))

    def ok(self, *names: str, digest: str = "", **facts: Any) -> list[str]:
        """These units succeed, one after the other; the decisions on all of them."""
        out = []
        for name in names:
            unit = self.unit(name)
            out += self.act(
                NodeEnded(unit, self.state.units[unit].generation, Outcome(digest or f"of {name}", 1, facts))
            )
        return out

    def fail(self, name: str, kind: str = "Boom") -> list[str]:
        """A unit fails."""
        return self.end(name, Outcome(error=(kind, "it broke")))

    def grow(
        self,
        *nodes: Fields,
        answer: str = "",
        of: str = "",
        outcome: Outcome | None = None,
        more: bool = False,
        **facts: Fields,
    ) -> list[str]:
        """The plan goes on with more nodes: what the unit `of` has asked for, or its planner still writes."""
        for position, fields in enumerate(nodes, len(self.graph.specs)):
            self.index[fields["id"]] = position
        page = ExecutionPlan([_spec(fields, self.index) for fields in nodes], [self.index[answer]] if answer else [])
        unit = self.unit(of) if of else -1
        said = outcome or Outcome("said", delegated=True)
        ended = NodeEnded(unit, self.state.units[unit].generation, said) if of else None
        return self.act(NodesAppended(page, ended, {self.unit(name): each for name, each in facts.items()}, more=more))

    def end(self, name: str, outcome: Outcome) -> list[str]:
        """A unit ends with this outcome."""
        unit = self.unit(name)
        return self.act(NodeEnded(unit, self.state.units[unit].generation, outcome))

    def past_deadline(self, name: str, generation: int) -> list[str]:
        """A result of an old generation arrives."""
        return self.act(NodeEnded(self.unit(name), generation, Outcome("late", 1)))

    def tick(self, millis: int) -> list[str]:
        """Time passes."""
        self.state.now += millis
        return self.act(TimeAdvanced())

    def answer(self, name: str, value: Any = "yes") -> list[str]:
        """A person answers a gate."""
        return self.act(Answered(self.unit(name), value))

    def approve(self, name: str) -> list[str]:
        """A person approves a write."""
        return self.act(ApprovalDecided(self.unit(name), True))

    def reject(self, name: str) -> list[str]:
        """A person rejects a write."""
        return self.act(ApprovalDecided(self.unit(name), False, "no"))

    def retry(self, name: str) -> list[str]:
        """A person has a unit run again."""
        return self.act(RetryRequested(self.unit(name)))

    def give_up(self, name: str) -> list[str]:
        """A person gives a unit up."""
        return self.act(SkipRequested(self.unit(name)))

    def stop(self, status: EndStatus = "cancelled") -> list[str]:
        """The run is to end now."""
        return self.act(StopRequested(status))

    def act(self, event: Event) -> list[str]:
        """Take any event."""
        before = dict.fromkeys(self._waiting()), self._parked()
        words = [self._word(decision) for decision in self._step(event)]
        asked = [f"ask {name.partition('~')[0]}" for name in self._waiting() if name not in before[0]]
        calls = sum(word.startswith("cancel") for word in words)
        parked = self._parked()
        words[calls:calls] = [*self._closed(), *asked]
        words += [f"park {' '.join(parked)}"] if parked is not None and parked != before[1] else []
        self.decisions += words
        return words

    def _closed(self) -> list[str]:
        closed = []
        for unit in self.state.touched:
            record = self.state.units[unit]
            if record.status == SUCCEEDED and not record.attempts and self._is_gathered(unit):
                closed.append(f"close {self.state.full_path(unit)}")
        return closed

    def _is_gathered(self, unit: int) -> bool:
        """Whether the scheduler itself has given a unit its value: a join, or a map."""
        if self.state.kind_of(unit) == "map":
            return is_manifest(self.state.units[unit].digest or "")
        return self.state.kind_of(unit) == "join" and self.state.units[unit].chosen is not None

    def _step(self, event: Event) -> list[Decision]:
        """Take an event. What a node asks is put together at once, as is what it asks again."""
        out = []
        for decision in step(self.state, event):
            unit = decision.units[0] if isinstance(decision, Start) else -1
            question = self.asked(self.state.path(unit)) if unit >= 0 else Question("")
            approved = self.state.units[unit].approved if unit >= 0 else None
            if isinstance(decision, Start) and (decision.asks or (approved and not approved.covers(question))):
                out += self._step(
                    NodeEnded(unit, self.state.units[unit].generation, Outcome(attempts=0, question=question))
                )
            else:
                out.append(decision)
        return out

    def effects(self, name: str) -> list[str]:
        """Return what became of a unit's writes that were cut off, or are in doubt."""
        found = self.state.effects.get(self.unit(name), ())
        return [
            f"{each.below} {each.status}".strip() + f" ~{each.generation}" * (each.generation > 1) for each in found
        ]

    def asked(self, name: str) -> Question:
        """Return what a unit asks; the digest is that of what it reads."""
        unit = self.unit(name)
        read = [self.state.units[need].digest or "" for need in self.state.spec_of(unit).needs]
        return Question(f"question of {name}", " ".join([name, *read]))

    def _waiting(self) -> list[str]:
        if not self.state.waiting:
            return []
        return [self.state.full_path(unit) for unit in self.state.units_in(WAITING)]

    def _parked(self) -> list[str] | None:
        if not self.state.parked or self.state.ended:
            return None
        return [self.state.path(unit) for unit in blocking_failures(self.state)]

    def crash(self) -> None:
        """The process dies; another one goes on from the snapshot."""
        self.state = load(self.graph, dump(self.state))

    def unit(self, name: str) -> int:
        """Return the unit called `name`."""
        found = self.state.find(name)
        assert found is not None, name
        return found

    def status(self, name: str) -> str:
        """Return a unit's status; `blocked`, `delegated` and `opened` by their own names."""
        status = self.state.units[self.unit(name)].status
        return STATUSES.get(status, STATUS_NAMES[status])

    def note(self, name: str) -> tuple[str, str]:
        """Return a unit's error or reason."""
        return self.state.notes[self.unit(name)]

    def digest(self, name: str) -> str | None:
        """Return the digest of a unit's output."""
        return self.state.units[self.unit(name)].digest

    def chosen(self, name: str) -> list[str]:
        """Return the inputs whose values a join took."""
        return [self.state.path(unit) for unit in (self.state.units[self.unit(name)].chosen or ())]

    def _word(self, decision: Decision) -> str:
        state = self.state
        if isinstance(decision, Start):
            return "start " + "+".join(state.full_path(unit) for unit in decision.units)
        if isinstance(decision, Cancel):
            late = f"~{decision.generation}" if decision.generation > 1 else ""
            return f"cancel {state.path(decision.unit)}{late}"
        if isinstance(decision, LookUp):
            return f"look up {state.full_path(decision.unit, decision.generation)}"
        assert isinstance(decision, End)
        return f"end {decision.status}"


def _spec(fields: Fields, index: dict[str, int]) -> NodeSpec:
    edges = ("needs", "watches", "inputs", "awaited", "given_up")
    named: Fields = {key: [index[name] for name in fields.get(key, ())] for key in edges}
    rest = {key: value for key, value in fields.items() if key not in named}
    if "successor" in rest:
        rest["successor"] = index[rest["successor"]]
    if "over" in rest:
        rest["over"] = (index[rest["over"][0]], rest["over"][1])
    if "when" in rest:
        rest["when"] = moved(rest["when"], lambda name: index[name])  # type: ignore[index]
        read = [at for at, _ in facts_read(rest["when"]) if at not in named["watches"] and at not in named["needs"]]
        named["needs"] += list(dict.fromkeys(read))
    return NodeSpec(**named, **rest)
