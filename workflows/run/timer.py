"""The run's one timer, always set to the earliest deadline of its state."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow

from sennit.workflows.plan.scheduling.state import CALLS, DRAIN, NEXT_TRY, OVERTIME, PARK, RunState

BY_TIMER = "deadlines pass with their timer"
"""The patch of runs that began before: in these a deadline passed with the clock."""


class DeadlineTimer:
    """Calls `wake` when a deadline has come."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._at: int | None = None
        self._recorded: dict[int, int] = {}
        """The deadlines that there were when the timer was last set, which is
        an event of the history.
        """
        self._timer: asyncio.Task[None] | None = None
        self._rang_for = 0

    def passed(self, state: RunState) -> int:
        """Return the time until which the state's deadlines have passed.

        The end of the timer decides, and not the clock. A workflow task without commands may be
        joined with a later one when the run is replayed, and then has the time of that one.
        """
        if not state.deadlines:
            return 0
        if not workflow.patched(BY_TIMER):
            return milliseconds()
        return self._rang_for

    def set(self, state: RunState) -> None:
        """Wait for the state's next deadline, and for no other.

        A task that has set any deadline sets the timer, also one that rings no earlier. A workflow
        task without commands may be joined with a later one when the run is replayed, and then has
        the time of that one: its deadline would come later than it did.
        """
        due = state.next_due()
        if due == self._at and not self._has_new(state):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at = due
        self._timer = None
        self._recorded = dict(state.deadlines)
        if due is not None:
            ringing = self._ring(due, _summary(state, due))
            self._timer = asyncio.create_task(ringing)

    def _has_new(self, state: RunState) -> bool:
        """Whether a deadline was set or moved since the timer was."""
        for unit, at in state.deadlines.items():
            recorded = self._recorded.get(unit)
            if recorded != at:
                return True
        return False

    async def _ring(self, due: int, name: str) -> None:
        now = milliseconds()
        pause = max(1, due - now)
        await workflow.sleep(timedelta(milliseconds=pause), summary=name)
        self._at = None
        # It covers all deadlines that have passed by then: after an outage there may be many.
        self._rang_for = now + pause
        self._wake()


def _summary(state: RunState, due: int) -> str:
    """Return what ends at a deadline, for the timeline."""
    unit = _first_due(state, due)
    ends = {
        PARK: "the parked run ends",
        OVERTIME: "the run's time is up",
        DRAIN: "draining takes too long",
        NEXT_TRY: "the next attempt after an outage",
    }
    if unit <= CALLS:
        return f"{state.path(CALLS - unit)} has no more time"
    return ends.get(unit) or f"{state.path(unit)} ends waiting"


def _first_due(state: RunState, due: int) -> int:
    """Return the first unit, or reserved number, whose deadline this is."""
    for unit, at in state.deadlines.items():
        if at == due:
            return unit
    return PARK


def milliseconds() -> int:
    """Return workflow time in milliseconds."""
    return round(workflow.time() * 1000)
