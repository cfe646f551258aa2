"""The figures of many runs together: of each what is usual and what is not, and the sums."""

from collections.abc import Mapping, Sequence
from math import ceil

from pydantic import Field

from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.figures.speculated import Speculated, speculated
from sennit.workflows.plan.language.validation_messages import Frozen

SPREAD = ("makespan_ms", "sequential_ms", "critical_path_ms", "saved_ms", "speed_up",
"parallel_ratio", "mean_width",
          "utilisation", "calls")  # fmt: skip
"""The figures of which there are a median and a 90th percentile."""


class Spread(Frozen):
    """Of one figure: half of the runs have at most `median`, nine of ten at most `p90`."""

    median: float
    p90: float


class ManyFigures(Frozen):
    """The figures of so many `runs`. A figure that a run does not have, such as a ratio of a run
    without calls, is left out. `speed_up` is that of all together: the sum of sequential times
    by the sum of makespans.
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
    speculation: Speculated | None = None


def together(runs: Sequence[Figures]) -> ManyFigures:
    """Return the figures of many runs."""
    calls = 0
    retries = 0
    sequential = 0
    makespan = 0
    waited: dict[str, int] = {}
    failures: dict[str, int] = {}
    for run in runs:
        calls += run.calls
        retries += run.retries
        sequential += run.sequential_ms
        makespan += run.makespan_ms
        _add(waited, run.waited_ms)
        _add(failures, run.failures)

    spreads = {}
    for name in SPREAD:
        values: list[float] = []
        for run in runs:
            figure = getattr(run, name)
            if figure is not None:
                values.append(figure)
        values.sort()
        if values:
            spreads[name] = Spread(median=_at(values, 0.5), p90=_at(values, 0.9))
    speed_up = None
    if makespan:
        speed_up = round(sequential / makespan, 3)
    return ManyFigures(
        runs=len(runs),
        calls=calls,
        sequential_ms=sequential,
        makespan_ms=makespan,
        saved_ms=sequential - makespan,
        speed_up=speed_up,
        spreads=spreads,
        waited_ms=waited,
        retries=retries,
        failures=failures,
        speculation=_speculation(runs),
    )


def _speculation(runs: Sequence[Figures]) -> Speculated | None:
    """Return what has become of the calls that the runs made early; None if there were none."""
    calls = 0
    hits = 0
    missed = 0
    saved = 0
    for run in runs:
        early = run.speculation
        if early is not None:
            calls += early.calls
            hits += early.hits
            missed += early.missed
            saved += early.saved_ms
    return speculated(calls, hits, missed, saved)


def _at(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all values does not exceed."""
    place = max(1, ceil(share * len(values))) - 1
    return values[place]


def _add(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count
