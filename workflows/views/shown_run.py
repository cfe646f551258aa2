"""A run as people see it, worked out once for everybody who shows it: board, report,
queries, lists, the run above.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from sennit.workflows.messages.result import BlockedOn, WriteLine
from sennit.workflows.messages.views import SubagentView, ended_of
from sennit.workflows.plan.language.limits import Usage
from sennit.workflows.plan.scheduling.events import Written
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.termination import handled
from sennit.workflows.plan.scheduling.unit import STATUS_NAMES
from sennit.workflows.views.nodes import (
    is_counted_by_calls,
    status_of,
    usage_by_unit,
    visible_units,
)
from sennit.workflows.views.questions import blocked_on
from sennit.workflows.views.quote import quote_line
from sennit.workflows.views.writes import writes_of


class ShownRun:
    """The state of the run called `run`, until its next step. `children` say what its sub-agents
    wait for, and `outage` what its planning does. `forgotten` are writes that it made before it was
    reset, by nodes that there are not yet.
    """

    def __init__(
        self,
        state: RunState,
        run: str = "",
        children: Mapping[int, SubagentView] = MappingProxyType({}),
        outage: Sequence[BlockedOn] = (),
        *,
        forgotten: Sequence[Written] = (),
    ) -> None:
        self.state = state
        self.run = run
        self.children = children
        self._outage = outage
        self._forgotten = forgotten

    @cached_property
    def units(self) -> list[int]:
        """The units people see, in order."""
        return visible_units(self.state)

    @cached_property
    def caught(self) -> Mapping[int, object]:
        """The failures that scripts have handled."""
        return handled(self.state)

    @cached_property
    def usage(self) -> Mapping[int, Usage]:
        """What units have used, if they have used anything."""
        return usage_by_unit(self.state)

    def status(self, unit: int) -> str:
        """Return the status of a unit as people see it."""
        return status_of(self.state, unit, self.caught)

    @cached_property
    def counted(self) -> list[int]:
        """The units that the numbers of nodes count, the same ones in lists, status, watch and on
        the board: of a program its calls. A program that has failed although none of its calls did
        counts itself, so that no run with a failure seems to have none.
        """
        leaves: list[int] = []
        outer: list[int] = []
        for unit in self.units:
            if is_counted_by_calls(self.state, unit):
                outer.append(unit)
            else:
                leaves.append(unit)
        if any(self._has_failed(unit) for unit in leaves):
            return leaves
        failed = [unit for unit in outer if self._has_failed(unit)]
        return [*leaves, *failed] or self.units

    def _has_failed(self, unit: int) -> bool:
        """Whether a unit has failed, as people see it."""
        return self.status(unit) == "failed"

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many of the counted units have each status, in a fixed order."""
        numbers = dict.fromkeys((*STATUS_NAMES, "handled"), 0)
        for unit in self.counted:
            numbers[self.status(unit)] += 1
        return {status: count for status, count in numbers.items() if count}

    @property
    def ended(self) -> int:
        """How many of the counted units have ended, however they did."""
        return ended_of(self.counts)

    @property
    def waits(self) -> bool:
        """Whether the run waits for a person."""
        return bool(self.state.waiting or self.state.parked or self.children)

    @cached_property
    def blocked(self) -> tuple[BlockedOn, ...]:
        """What waits for a person, or for the end of an outage."""
        return (*self._outage, *blocked_on(self.state, self.run, self.children))

    @cached_property
    def writes(self) -> tuple[WriteLine, ...]:
        """The writes that were cut off, or of which nobody knows whether they were made, and those
        that were made before a reset.
        """
        return writes_of(self.state, forgotten=self._forgotten)

    @cached_property
    def quote(self) -> str:
        """What its programs can cost."""
        return quote_line(self.state)
