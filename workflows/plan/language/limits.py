"""What a run may spend, as people write it, and what it has used."""

from operator import add
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from workflows.plan.language.durations import Duration


class Limits(BaseModel):
    """Limits of a run, each optional: tokens, US dollars, model calls, nodes started, time from the first node on."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tokens: int | None = Field(default=None, strict=True, ge=1, le=10**12)
    cost_usd: float | None = Field(default=None, gt=0, le=10**6)
    calls: int | None = Field(default=None, strict=True, ge=1, le=10**9)
    nodes: int | None = Field(default=None, strict=True, ge=1, le=10**9)
    time: Duration | None = None

    def amounts(self) -> dict[str, int]:
        """Return the limits as the scheduler counts: money in millionths of a dollar. Time is no amount."""
        given = {"tokens": self.tokens, "calls": self.calls, "nodes": self.nodes}
        if self.cost_usd is not None:
            given["cost"] = micro_dollars(self.cost_usd)
        return {name: value for name, value in given.items() if value is not None}


class Usage(NamedTuple):
    """What model calls used; `cost` in millionths of a US dollar. It travels as a list of whole numbers."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    calls: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum."""
        return Usage(*map(add, self, other))


NO_USAGE = Usage()


def dollars(cost: int) -> float:
    """Return millionths of a dollar as dollars."""
    return cost / 1_000_000


def micro_dollars(usd: float) -> int:
    """Return dollars as millionths of a dollar."""
    return round(usd * 1_000_000)


def worded(amounts: dict[str, int]) -> dict[str, Any]:
    """Return amounts as fields of `Limits`: what `amounts` makes of them again."""
    return {name if name != "cost" else "cost_usd": shown(name, amount) for name, amount in amounts.items()}


def shown(name: str, amount: int) -> int | float:
    return dollars(amount) if name == "cost" else amount
