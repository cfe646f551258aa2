"""What model calls have used, as it is counted and as it travels: plain tuples of whole numbers."""

from collections.abc import Iterable
from operator import add
from typing import Any, NamedTuple


class Usage(NamedTuple):
    """What model calls used; `cost` in millionths of a US dollar."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum."""
        return Usage(*map(add, self, other))


NOTHING = Usage()


class Spent(NamedTuple):
    """What a run has used: as `Usage`, and in how many calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    calls: int = 0

    @classmethod
    def told(cls, report: Any) -> "Spent":
        """Return what a run says that it has used, in its report or in a detail of its failure."""
        used = report.get("usage") if isinstance(report, dict) else None
        if not isinstance(used, dict):
            return cls()
        cost = round(used.get("cost_usd", 0) * 1_000_000)
        return cls(used.get("input_tokens", 0), used.get("output_tokens", 0), cost, used.get("calls", 0))

    def plus(self, other: Iterable[int]) -> "Spent":
        """Return the sum with another `Spent`, or with a usage and the number of its calls."""
        return Spent(*map(add, self, other))
