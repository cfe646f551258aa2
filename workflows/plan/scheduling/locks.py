"""Locks: which units hold each of them, and which wait for it.

`ready.take` takes the locks of a unit that starts, and `ready.release` frees them.

A unit that finds a lock taken waits at that lock. When the last holder frees it, the lock wakes the
units that may hold it next, and leaves the others asleep: so a lock that many units want costs
O(log n) an end. A woken unit that does not start after all has the lock wake the next one
(`ready.pass_on`), so no wake-up is lost.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush

from sennit.workflows.plan.compile.execution_plan import EXCLUSIVE, SHARED

Waiter = tuple[int, int, int]
"""Priority, rank and number of a unit that waits: the smallest goes first."""


@dataclass(slots=True)
class Lock:
    """One lock. All its `holders` hold it in the same `mode`: one alone, or many shared, or
    many apart from those.

    `waiting` has a heap of waiters for each mode in which units want it. Some of them
    may have been cancelled.
    """

    mode: int = SHARED
    holders: dict[int, None] = field(default_factory=dict)
    waiting: dict[int, list[Waiter]] = field(default_factory=dict)

    @property
    def is_unused(self) -> bool:
        """Whether no unit holds the lock or waits for it."""
        return not self.holders and not any(self.waiting.values())

    def admits(self, mode: int) -> bool:
        """Whether a unit may take the lock in this mode now."""
        return not self.holders or (mode == self.mode and mode != EXCLUSIVE)

    def take(self, unit: int, mode: int) -> None:
        """Let a unit hold the lock, which admits it."""
        self.mode = mode
        self.holders[unit] = None

    def wait(self, waiter: Waiter, mode: int) -> None:
        """Let a unit wait until the lock admits this mode."""
        heappush(self.waiting.setdefault(mode, []), waiter)

    def wake(self) -> list[Waiter]:
        """Take the units out that may hold the lock next, all of them together: the first waiter
        that is admitted, and unless that wants the lock alone, all that want it in the same mode.
        """
        heads: dict[int, Waiter] = {}
        for mode, heap in self.waiting.items():
            if heap and self.admits(mode):
                heads[mode] = heap[0]
        if not heads:
            return []
        next_mode = min(heads, key=heads.__getitem__)
        if next_mode == EXCLUSIVE:
            return [heappop(self.waiting[next_mode])]
        return sorted(self.waiting.pop(next_mode))
