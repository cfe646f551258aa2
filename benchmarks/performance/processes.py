"""1, 2 and 4 worker processes of each role: runs a second, one wide run, and the processor time of a run."""

import statistics

from benchmarks.load import ROLES, Spent, site, spend
from benchmarks.performance.crowd import RUNS, SECONDS
from benchmarks.performance.ratios import THOUSAND
from benchmarks.performance.table import Part, Table, figure
from benchmarks.shapes import diamond, mapped
from benchmarks.stage import Stage

COUNTS = (1, 2, 4)


def row(count: int, spent: Spent, ratio: float) -> tuple[str, ...]:
    """Return the line of so many processes."""
    workers = sum(spent.cpu[role] for role in ROLES)
    millis = [f"{1000 * seconds:.0f}" for seconds in (workers, spent.cpu["server"])]
    return str(count), f"{spent.runs / spent.seconds:.1f}", figure(ratio), *millis, f"{spent.busy:.2f}"


async def measure(repeats: int) -> Part:
    """Give each count a server of its own."""
    rows = []
    for count in COUNTS:
        async with site("dev", count) as built:
            request = {"plan": diamond(10, SECONDS).plan("nap_100")}
            await spend(built, request, 10 * count, RUNS)  # warms up
            spent = await spend(built, request, RUNS, RUNS)
            runs, wide = Stage(built.client, built.place), mapped(1000, 0.05, "nap_50")
            ratio = statistics.median([(await runs.timed(**wide))[0] for _ in range(repeats)]) / THOUSAND.critical_path
            rows.append(row(count, spent, ratio))
    header = ("processes of each role", f"runs/s, {RUNS} at once", f"{THOUSAND.name}, as a `map`",
              "ms of processor a run: workers", "server", "cores in use")  # fmt: skip
    return Part(Table(header, rows))
