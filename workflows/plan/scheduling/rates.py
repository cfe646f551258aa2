"""How many model calls of one provider a run has under way: at most as many as the provider takes in a minute."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Rate:
    """A provider takes `limit` calls a minute. `running` nodes call it now; the `ended` nodes so far made `calls`.

    `waiting` is a heap of ready units as (priority, rank, unit), of which some may have been called off.
    """

    limit: int
    calls: int = 0
    ended: int = 0
    running: int = 0
    waiting: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more nodes may start: the rate over the calls that a node makes, one or the mean so far, and one at
        least, so that a run never stands still.
        """
        most = self.limit * self.ended // self.calls if self.calls > self.ended else self.limit
        return max(1, most) - self.running

    def count(self, calls: int) -> None:
        """A node has ended, after so many calls."""
        self.calls += max(1, calls)
        self.ended += 1
