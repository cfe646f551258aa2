"""The tools that benchmarks need: each takes as long as it is told."""

import asyncio
import math
import time
from random import Random

from pydantic import BaseModel, ConfigDict

from sennit.activities.toolbox import tool

TYPICAL_MS = (50, 100, 200, 500, 2000)
"""For each a tool whose calls usually take so long, `nap_100`, and one that blocks a
thread, `nap_100_blocking`.
"""


class Nap(BaseModel):
    """How long to sleep, in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float


@tool(effect="read")
async def bench_nap(args: Nap) -> float:
    """Sleep and return the seconds slept."""
    await asyncio.sleep(args.seconds)
    return args.seconds


def _blocking(args: Nap) -> float:
    """Block a thread and return the seconds blocked."""
    time.sleep(args.seconds)
    return args.seconds


for _millis in TYPICAL_MS:
    for _name, _function in ((f"nap_{_millis}", bench_nap), (f"nap_{_millis}_blocking", _blocking)):
        tool(effect="read", name=_name, typical=f"{_millis}ms")(_function)

STAGES = ("find", "open", "quote", "check", "cite")
"""Tools of an agent whose calls recur in this order, each with what the one before has returned."""
SLOWEST, FASTEST = 3.0, 0.5
"""Seconds that 95 and 5 of a hundred calls take at most: their logarithms
are spread like a bell.
"""


class Place(BaseModel):
    """Where an agent stands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: str


async def _walk(args: Place) -> dict[str, str]:
    """Take as long as the place says, and return the next place."""
    await asyncio.sleep(seconds_at(args.place))
    return {"next": next_place(args.place)}


@tool(effect="pure")
async def think(args: Place) -> str:
    """Take three seconds, and return the place."""
    await asyncio.sleep(SLOWEST)
    return args.place


def seconds_at(place: str) -> float:
    """Return how long a call at a place takes: always the same."""
    middle = (math.log(SLOWEST) + math.log(FASTEST)) / 2
    spread = (math.log(SLOWEST) - math.log(FASTEST)) / (2 * 1.645)
    return math.exp(Random(place).gauss(middle, spread))


def next_place(place: str) -> str:
    """Return the place behind another one."""
    return f"place-{Random(place).getrandbits(40)}"


for _name in STAGES:
    tool(effect="read", name=f"walk_{_name}")(_walk)
