"""One run of 10,000 calls: what it takes beyond the bound, and whether small runs
beside it keep their speed.
"""

import asyncio
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.growth import growth, histories
from benchmarks.performance.table import Part, Table, goal_cell
from benchmarks.shapes import diamond, mapped
from benchmarks.stage import Stage, stage
from sennit.workflows.messages.request import RunRequest

CALLS, MILLIS = 10_000, 50
IN_FLIGHT: int = RunRequest.model_fields["in_flight"].default
"""How many calls of a run are made at once unless it says otherwise."""
SMALL, EVERY = 20, 0.1
"""So many small runs, one started after the other every so many seconds."""
GOAL_EACH, GOAL_EVENTS, GOAL_GROWTH, GOAL_BESIDE = 0.5, 1500, 200, 2.0
LONGEST = 900.0


def bound(calls: int, in_flight: int, seconds: float) -> float:
    """Return the seconds that no schedule can do without if at most `in_flight`
    calls are made at once.
    """
    return math.ceil(calls / in_flight) * seconds


def p95(values: Sequence[float]) -> float:
    """Return the smallest of the values that 95 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.95) - 1]


@dataclass(frozen=True, slots=True)
class Large:
    """What the large run took: seconds, events in so many histories, and MB that its
    worker grew by at most.
    """

    seconds: float
    events: int
    runs: int
    grown: float

    @property
    def each(self) -> float:
        """Milliseconds a call beyond the bound."""
        return (self.seconds - bound(CALLS, IN_FLIGHT, MILLIS / 1000)) / CALLS * 1000


def found(large: Large, alone: Sequence[float], beside: Sequence[float], *, covered: bool) -> Part:
    """Return the table; `covered` says whether the large run outlived the small ones beside it."""
    ratio = p95(beside) / p95(alone)
    rows = [
        ("seconds", f"{large.seconds:.1f}", ""),
        (f"ms a call beyond the bound of {bound(CALLS, IN_FLIGHT, MILLIS / 1000):g} s", f"{large.each:.2f}",  # noqa: E501
         goal_cell(large.each, GOAL_EACH)),
        ("events", f"{large.events:,}", goal_cell(large.events, GOAL_EVENTS)),
        ("growth of the worker, MB", f"{large.grown:.0f}", goal_cell(large.grown, GOAL_GROWTH)),
        (f"{SMALL} small runs alone: median, p95", _seconds(alone), ""),
        (f"{SMALL} small runs beside it: median, p95", _seconds(beside), ""),
        ("p95 beside it, to alone", f"{ratio:.2f}", goal_cell(ratio, GOAL_BESIDE)),
    ]  # fmt: skip
    notes = [f"{IN_FLIGHT:,} calls at once; histories: {large.runs}."]
    if not covered:
        notes.append("The large run ended before the small ones: the last rows say too little.")
    return Part(Table((f"a `map` of {CALLS:,} x {MILLIS} ms", "found", "goal"), rows), notes)


def _seconds(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} s, {p95(values):.2f} s"


async def measure(_: int) -> Part:
    """Run the large one twice: alone, and with small runs beside it."""
    with TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            request = mapped(CALLS, MILLIS / 1000, f"nap_{MILLIS}")
            await built.timed(**mapped(100, MILLIS / 1000, f"nap_{MILLIS}"))  # warms up
            alone = await _small(built)
            async with asyncio.timeout(LONGEST):
                (seconds, handle), grown = await growth(built.processes, built.timed(**request))
            left = await histories(built.client, handle)
            before, most = grown["all"]
            large = Large(seconds, left.events, left.runs, most - before)
            again = asyncio.create_task(built.timed(**request))
            await asyncio.sleep(1)
            beside = await _small(built)
            covered = not again.done()
            async with asyncio.timeout(LONGEST):
                await again
    return found(large, alone, beside, covered=covered)


async def _small(built: Stage) -> list[float]:
    """Return the seconds that each small run took."""
    plan = diamond(5, 0.1).plan("nap_100")

    async def one(index: int) -> float:
        await asyncio.sleep(index * EVERY)
        return (await built.timed(plan))[0]

    return list(await asyncio.gather(*(one(index) for index in range(SMALL))))
