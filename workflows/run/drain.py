"""When a run whose history grows long stops starting nodes, so that it can continue as new."""

from temporalio import workflow

from workflows.plan.scheduling.state import DRAIN, RunState
from workflows.run.dispatcher import Dispatcher

MEBIBYTE = 1024 * 1024
SOFT_BOUNDS = (20_000, 20 * MEBIBYTE, 1_500)
HARD_BOUNDS = (40_000, 40 * MEBIBYTE, 1_900)
"""Events, bytes and updates of one history. The server ends a run at 51,200 events or 50 MiB, and refuses updates from
2,000 on.
"""
SOFT_MILLISECONDS = 20_000
AGAIN = 0.25
"""After how much more of the soft bound a run drains again that has not got to the end of it."""


class Drain:
    """The drain of one run: it continues as new at an instant at which nothing runs.

    At the soft bound it starts nothing for at most 20 s. If something long remains, it goes on, and tries again later.
    At the hard bound it starts nothing more, and cancels what can begin again from its markers: all but writes. Writes
    are waited for, at most their time; then they are cancelled too, and the effect ledger knows what became of them.
    """

    def __init__(self) -> None:
        self._soft_at = 1.0
        self._is_forced = self._is_hard = self._is_overdue = False

    def force(self) -> None:
        """Drain as at the hard bound."""
        self._is_forced = True

    def update(self, state: RunState, dispatcher: Dispatcher, updates: int) -> bool:
        """Begin to drain or go on with it; True if it has just been given up, so that nodes may start again."""
        is_over = state.deadlines.get(DRAIN, state.now + 1) <= state.now
        if is_over:
            del state.deadlines[DRAIN]
        used = _used(SOFT_BOUNDS, updates)
        if self._is_forced or self._is_hard or _used(HARD_BOUNDS, updates) >= 1.0:
            self._suspend(state, dispatcher, is_over=is_over)
        elif is_over:
            state.draining = False
            return True
        elif used >= self._soft_at and not state.draining:
            self._soft_at = used + AGAIN
            state.draining = True
            state.deadlines[DRAIN] = state.now + SOFT_MILLISECONDS
        return False

    def _suspend(self, state: RunState, dispatcher: Dispatcher, *, is_over: bool) -> None:
        if not self._is_hard:
            self._is_hard = True
            state.deadlines[DRAIN] = state.now + dispatcher.longest_write
        elif is_over:
            self._is_overdue = True
        state.draining = True
        dispatcher.suspend(writes=self._is_overdue)


def _used(bounds: tuple[int, int, int], updates: int) -> float:
    """Return how much of the bounds is used up: 1.0 at the first that is reached."""
    info = workflow.info()
    sizes = (info.get_current_history_length(), info.get_current_history_size(), updates)
    return max(size / bound for size, bound in zip(sizes, bounds, strict=True))
