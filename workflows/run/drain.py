"""When a run whose history grows long stops starting nodes, so that it can continue as new."""

from temporalio import workflow

from sennit.workflows.plan.scheduling.events import DrainEnded, DrainStarted
from sennit.workflows.plan.scheduling.state import DRAIN, RunState
from sennit.workflows.run.dispatcher import Dispatcher

MEBIBYTE = 1024 * 1024
SOFT_BOUNDS = (20_000, 20 * MEBIBYTE, 1_500)
HARD_BOUNDS = (40_000, 40 * MEBIBYTE, 1_900)
"""Events, bytes and updates of one history. The server ends a run at 51,200 events or 50 MiB, and
refuses updates from 2,000 on.
"""
SIGNALS = 5
"""So many signals of shared activities count as one update: the server takes 10,000 of them."""
SOFT_MILLISECONDS = 20_000
LATER_SHARE = 0.25
"""After how much more of the soft bound a run drains again that has not got to the end of it."""


class Drain:
    """The drain of one run: it continues as new at an instant at which nothing runs.

    At the soft bound it starts nothing for at most 20 s. If something long remains, it goes on, and
    tries again later. At the hard bound it starts nothing more, and cancels what runs: that begins
    again from its markers. Writes that have begun come to their end first.
    """

    def __init__(self) -> None:
        self._soft_at = 1.0

    def update(
        self, state: RunState, dispatcher: Dispatcher, updates: int, passed: int
    ) -> DrainStarted | DrainEnded | None:
        """Return that the run begins to drain, or gives it up; None if it goes on as it is.
        Deadlines have `passed` until then.
        """
        updates += dispatcher.reports // SIGNALS
        is_over = state.deadlines.get(DRAIN, passed + 1) <= passed
        used = _used(SOFT_BOUNDS, updates)
        if _used(HARD_BOUNDS, updates) >= 1.0:
            dispatcher.suspend()
            return DrainStarted()
        if is_over:
            return DrainEnded()
        if used >= self._soft_at and not state.draining:
            self._soft_at = used + LATER_SHARE
            return DrainStarted(SOFT_MILLISECONDS)
        return None


def _used(bounds: tuple[int, int, int], updates: int) -> float:
    """Return how much of the bounds is used up: 1.0 at the first that is reached."""
    info = workflow.info()
    sizes = (info.get_current_history_length(), info.get_current_history_size(), updates)
    return max(size / bound for size, bound in zip(sizes, bounds, strict=True))
