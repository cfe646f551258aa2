"""When to start a process again that has died, and when to give up."""

from dataclasses import dataclass, field

QUICK_DEATHS = 5
QUICK_SECONDS = 30.0
SHORTEST = 0.2  # seconds
LONGEST = 30.0  # seconds
FORGOTTEN_AFTER = 120.0  # seconds


@dataclass(slots=True)
class Restarts:
    """Delays that double from a fifth of a second to thirty seconds while deaths follow each other.

    A process that was never of use is given up after five deaths in thirty seconds: a mistake in the settings does
    not go away. One that was ready once is always started again.
    """

    proven: bool = False
    deaths: list[float] = field(default_factory=list)

    def died(self, now: float) -> float | None:
        """Seconds to wait before the next start after a death at `now`, or None to give up."""
        self.deaths = [death for death in self.deaths if now - death < FORGOTTEN_AFTER] + [now]
        quick = sum(now - death <= QUICK_SECONDS for death in self.deaths)
        if not self.proven and quick >= QUICK_DEATHS:
            return None
        return min(LONGEST, SHORTEST * 2.0 ** (len(self.deaths) - 1))
