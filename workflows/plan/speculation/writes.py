"""The writes of a run that are under way, or may be, in the order of its events."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.scheduling.events import NodeEnded, Start
from sennit.workflows.plan.scheduling.state import RunState

ANYTHING = ""
"""The resource of a write that may change everything."""


@dataclass(slots=True)
class WritesUnderWay:
    """What may be written at the moment: by each unit and its generation, the kinds of resources.

    A write is under way from the decision to start it until its result is there. One that has
    failed, was cut off or put back may still take effect, so that it stays here for good.
    """

    kinds: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)

    def begin(self, state: RunState, decision: Start) -> tuple[str, ...]:
        """Take a start, and return the kinds of resources that it may write."""
        if decision.asks:
            return ()
        found: dict[str, None] = {}
        for unit in decision.units:
            kinds = written_kinds(state, unit)
            if kinds:
                self.kinds[unit, state.units[unit].generation] = kinds
                found |= dict.fromkeys(kinds)
        return tuple(found)

    def end(self, event: NodeEnded) -> None:
        """Take an end. Only a write that has a result, or has only asked a
        person, is surely over.
        """
        outcome = event.outcome
        is_over = outcome.error is None and not outcome.again and outcome.effects == ()
        if is_over or outcome.question is not None:
            self.kinds.pop((event.unit, event.generation), None)

    def leave_units(self) -> None:
        """Another plan gives its units the same numbers: what may still be written is
        no unit's from now on.
        """
        self.take_over(self.all_kinds())

    def take_over(self, kinds: tuple[str, ...]) -> None:
        """Go on with writes of another plan, or of the run before this one in its chain."""
        self.kinds = {}
        if kinds:
            self.kinds[-2, 0] = kinds

    def all_kinds(self) -> tuple[str, ...]:
        """Return the kinds of resources of all writes that are under way, or may be."""
        all_kinds: dict[str, None] = {}
        for kinds in self.kinds.values():
            all_kinds |= dict.fromkeys(kinds)
        return tuple(all_kinds)

    def conflict(self, kind: str) -> bool:
        """Whether a call that reads this kind of resource may see one of these
        writes, or half of it.
        """
        return any(conflicts(kind, written) for written in self.kinds.values())


def conflicts(kind: str, written: Sequence[str]) -> bool:
    """Whether a read of a kind of resource may depend on a write of others. Who names no
    resource may mean any.
    """
    if not written:
        return False
    return kind == ANYTHING or ANYTHING in written or kind in written


def written_kinds(state: RunState, unit: int) -> tuple[str, ...]:
    """Return the kinds of resources that the activity of a unit may write;
    none if it only reads.
    """
    spec = state.spec_of(unit)
    kind = state.kind_of(unit)
    if kind == "tool" and (spec.effect == "write" or spec.approval):
        return resource_kinds(spec) or (ANYTHING,)
    # Nobody knows what a sub-agent writes, with which arguments.
    if kind == "agent" and spec.effect == "write":
        return (ANYTHING,)
    return ()


def resource_kinds(spec: NodeSpec) -> tuple[str, ...]:
    """Return the kinds of resources for which a call holds locks: `file` of `file:/docs/a.txt` and
    of `file*`. None for a call whose locks say nothing of what it reads or writes.
    """
    if spec.names_no_resource:
        return ()
    found: dict[str, None] = {}
    for name, _ in spec.locks:
        found[name.partition(":")[0].rstrip("*")] = None
    return tuple(found)
