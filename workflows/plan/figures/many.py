"""The figures of many runs together: of each what is usual and what is not, and the sums."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from pydantic import Field

from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.language.validation_messages import Frozen

SPREAD = ("makespan_ms", "sequential_ms", "critical_path_ms", "saved_ms", "speed_up", "parallel_ratio", "mean_width",
          "utilisation", "calls")  # fmt: skip
"""The figures of which there are a median and a 90th percentile."""


class Spread(Frozen):
    """Of one figure: half of the runs have at most `median`, nine of ten at most `p90`."""

    median: float
    p90: float


class ManyFigures(Frozen):
    """The figures of so many `runs`. A figure that a run does not have, such as a ratio of a run without calls, is left
    out. `speed_up` is that of all together: the sum of sequential times by the sum of makespans.
    """

    runs: int = 0
    calls: int = 0
    sequential_ms: int = 0
    makespan_ms: int = 0
    saved_ms: int = 0
    speed_up: float | None = None
    spreads: dict[str, Spread] = Field(default_factory=dict)
    waited_ms: dict[str, int] = Field(default_factory=dict)
    retries: int = 0
    failures: dict[str, int] = Field(default_factory=dict)


def together(found: Sequence[Figures]) -> ManyFigures:
    """Return the figures of many runs."""
    sequential = sum(each.sequential_ms for each in found)
    makespan = sum(each.makespan_ms for each in found)
    spreads = {}
    for name in SPREAD:
        values = sorted(getattr(each, name) for each in found if getattr(each, name) is not None)
        if values:
            spreads[name] = Spread(median=_at(values, 0.5), p90=_at(values, 0.9))
    return ManyFigures(
        runs=len(found),
        calls=sum(each.calls for each in found),
        sequential_ms=sequential,
        makespan_ms=makespan,
        saved_ms=sequential - makespan,
        speed_up=round(sequential / makespan, 3) if makespan else None,
        spreads=spreads,
        waited_ms=_sums(each.waited_ms for each in found),
        retries=sum(each.retries for each in found),
        failures=_sums(each.failures for each in found),
    )


def _at(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all values does not exceed."""
    place = max(1, ceil(share * len(values))) - 1
    return values[place]


def _sums(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in found:
        for name, count in each.items():
            sums[name] = sums.get(name, 0) + count
    return sums
