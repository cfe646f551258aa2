"""The one tool benchmarks need: it takes as long as it is told."""

import asyncio

from pydantic import BaseModel, ConfigDict

from activities.toolbox import tool


class Nap(BaseModel):
    """How long to sleep, in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float


@tool(effect="read")
async def bench_nap(args: Nap) -> float:
    """Sleep and return the seconds slept."""
    await asyncio.sleep(args.seconds)
    return args.seconds
