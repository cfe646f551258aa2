"""For what the calls of a run have waited, and how long in all: the scheduler tells, and
decides nothing by it.
"""

from collections.abc import Iterable
from typing import Literal

Cause = Literal["dependency", "slot", "lock", "rate", "budget"]
CAUSES: tuple[Cause, ...] = ("dependency", "slot", "lock", "rate", "budget")
"""The value of another node, a place in the window or with a worker, a lock, its
provider's rate, the budget.
"""


class Waits:
    """Counts milliseconds. `open` has what each unit waits for now and since when, `total` what
    calls have waited for by cause. `asked` are the times in which the run has waited for a
    person, one after the other.
    """

    __slots__ = ("asked", "asked_since", "open", "total")

    def __init__(self) -> None:
        self.open: dict[int, tuple[Cause, int]] = {}
        self.total: dict[Cause, int] = dict.fromkeys(CAUSES, 0)
        self.asked: list[tuple[int, int]] = []
        self.asked_since: int | None = None

    def expect(self, units: Iterable[int], now: int) -> None:
        """Note that these units wait for the values of others from now on."""
        self.open |= dict.fromkeys(units, ("dependency", now))

    def turn_to(self, unit: int, cause: Cause, now: int, *, is_call: bool) -> None:
        """Note that a unit waits for this from now on, and not any more for what it
        has waited for before.
        """
        self.end(unit, now, is_call=is_call)
        self.open[unit] = (cause, now)

    def end(self, unit: int, now: int, *, is_call: bool) -> None:
        """Note that a unit waits no longer. Only waiting of a call counts."""
        known = self.open.pop(unit, None)
        if known is not None and is_call:
            cause, since = known
            self.total[cause] += now - since

    def ask(self, now: int, *, waits: bool) -> None:
        """Note whether the run waits for a person from now on."""
        if waits and self.asked_since is None:
            self.asked_since = now
        elif not waits and self.asked_since is not None:
            self.asked.append((self.asked_since, now))
            self.asked_since = None

    def asked_until(self, now: int) -> list[tuple[int, int]]:
        """Return the times in which the run has waited for a person, with
        that which is not over.
        """
        if self.asked_since is None:
            return self.asked
        return [*self.asked, (self.asked_since, now)]
