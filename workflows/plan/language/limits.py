"""Durations, what a run may spend and what it has used, as people write and read them."""

import re
from operator import add, sub
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from sennit.workflows.plan.language.validation_messages import Frozen

_SHAPE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)\Z")
_MILLIS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
BYTES_A_TOKEN = 3
"""Bytes of UTF-8 that a token stands for, at the least: estimates err on the long side."""
CALL_SECONDS = 7200.0
"""What a model call may take where a plan does not say: a slow model that goes on writing is not
cut off. Silence and length end a call long before.
"""


def parse_duration(value: Any, longest: int = 30) -> float:
    """Return the seconds in `value`, in whole milliseconds and at most so many days; raises
    ValueError naming the accepted forms.
    """
    found = None
    if isinstance(value, str):
        found = _SHAPE.match(value)
    if found is None:
        raise ValueError(f"{value!r} is not a duration; write one such as 500ms, 30s, 5m, 24h")
    millis = float(found[1]) * _MILLIS[found[2]]
    if not 1 <= millis <= longest * _MILLIS["d"]:
        raise ValueError(
            f"{value[:40]!r} is out of range; a duration is at least 1ms and at most {longest}d"
        )
    return round(millis) / 1000


def format_duration(seconds: float) -> str:
    """Return the shortest exact spelling of a duration in whole milliseconds, which
    `parse_duration` reads back.
    """
    millis = round(seconds * 1000)
    unit = next(name for name, size in _MILLIS.items() if millis % size == 0)
    return f"{millis // _MILLIS[unit]}{unit}"


def duration_text(ms: float | None) -> str:
    """Return milliseconds as people read them: `230 ms`, `3.4 s`, `2 m 05 s`, `1 h
    02 m`; nothing for None.
    """
    if ms is None:
        return ""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} m {seconds:02} s"
    return f"{minutes // 60} h {minutes % 60:02} m"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)$", "examples": ["30s"]}
    ),
]


class Limits(Frozen):
    """Limits of a run, each optional: tokens, US dollars, model calls, nodes started, time
    from the first node on.
    """

    tokens: int | None = Field(default=None, strict=True, ge=1, le=10**12)
    cost_usd: float | None = Field(default=None, strict=True, gt=0, le=10**6)
    calls: int | None = Field(default=None, strict=True, ge=1, le=10**9)
    nodes: int | None = Field(default=None, strict=True, ge=1, le=10**9)
    time: Duration | None = None

    def amounts(self) -> dict[str, int]:
        """Return the limits as the scheduler counts: money in millionths of a
        dollar. Time is no amount.
        """
        limits = {"tokens": self.tokens, "calls": self.calls, "nodes": self.nodes}
        if self.cost_usd is not None:
            limits["cost"] = micro_dollars(self.cost_usd)
        return {name: value for name, value in limits.items() if value is not None}


class Usage(NamedTuple):
    """What model calls used; `cost` in millionths of a US dollar. `cached_tokens` are those of the
    input that came out of the server's cache. It travels as a list of whole numbers.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    calls: int = 0
    cached_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Usage") -> "Usage":
        return Usage(*map(add, self, other))

    def minus(self, other: "Usage") -> "Usage":
        return Usage(*map(sub, self, other))


NO_USAGE = Usage()


def tokens_in(size: int) -> int:
    """Return about how many tokens a text of so many bytes has."""
    return -(-size // BYTES_A_TOKEN)


def dollars(cost: int) -> float:
    return cost / 1_000_000


def micro_dollars(usd: float) -> int:
    return round(usd * 1_000_000)


def limit_fields(amounts: dict[str, int]) -> dict[str, Any]:
    """Return amounts as fields of `Limits`: what `amounts` makes of them again."""
    fields: dict[str, Any] = {}
    for name, amount in amounts.items():
        if name == "cost":
            fields["cost_usd"] = dollars(amount)
        else:
            fields[name] = amount
    return fields


def amount_text(name: str, amount: int) -> str:
    """Return an amount as the scheduler counts it, as people read it. `name` is
    that of what is counted.
    """
    if name == "cost":
        return f"${dollars(amount):,.4f}"
    return f"{amount:,} {name}"


def dollars_text(cost: int) -> str:
    """Return an amount of money in dollars and cents."""
    return f"${dollars(cost):,.2f}"


def format_amount(name: str, amount: int) -> int | float:
    if name == "cost":
        return dollars(amount)
    return amount
