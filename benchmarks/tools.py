"""The tools that benchmarks need: each takes as long as it is told."""

import asyncio
import time

from pydantic import BaseModel, ConfigDict

from sennit.activities.toolbox import tool

TYPICAL_MS = (50, 100, 200, 500, 2000)
"""For each a tool whose calls usually take so long, `nap_100`, and one that blocks a thread, `nap_100_blocking`."""


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
