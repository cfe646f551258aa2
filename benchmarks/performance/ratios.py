"""How long graphs take, as ratios to their critical paths: plain asyncio, the peers, bare
activities and Sennit.

All contenders take turns at each graph, so what else the machine does meets all of them.
"""

import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from benchmarks.performance.chart import Lane, chart
from benchmarks.performance.peers import LONGEST, PEERS, peers
from benchmarks.performance.rivals import bare_graph, bare_worker, plain_asyncio
from benchmarks.performance.table import Part, Table, figure, goal_cell
from benchmarks.shapes import Shape, chain, diamond, fan, layered, mapped
from benchmarks.stage import Stage, stage

LIMIT, BARE, SENNIT = "asyncio", "bare activities", "Sennit"
Form = Literal["", "as a `map`", "plain functions"]
Contender = Callable[[Shape], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A graph of calls that usually take `millis`. `goal` is the largest ratio that Sennit should
    need in this form; where it is asserted, missing it makes the benchmark fail.
    """

    shape: Shape
    millis: int
    goal: float
    asserted: bool = False
    form: Form = ""

    @property
    def name(self) -> str:
        """What its row is called."""
        return f"{self.shape.name}, {self.form}" if self.form else self.shape.name

    def request(self) -> dict[str, Any]:
        """Return the run that does it."""
        tool = f"nap_{self.millis}"
        if self.form == "as a `map`":
            return mapped(len(self.shape.latency) - 2, self.millis / 1000, tool)
        return {"plan": self.shape.plan(f"{tool}_blocking" if self.form else tool)}


HUNDRED, THOUSAND = fan(100, 0.2), fan(1000, 0.05)
WORKLOADS = (
    Workload(chain(30, 0.1), 100, 1.05, asserted=True),
    Workload(diamond(10, 0.5), 500, 1.06, asserted=True),
    Workload(HUNDRED, 200, 1.18),
    Workload(HUNDRED, 200, 1.18, form="as a `map`"),
    Workload(THOUSAND, 50, 3.5),
    Workload(THOUSAND, 50, 3.5, form="as a `map`"),
    Workload(THOUSAND, 50, 4.5, form="plain functions"),
    Workload(layered(200, 10, seconds=0.1), 100, 1.12),
    Workload(layered(200, 10), 100, 1.07, asserted=True),
)


@dataclass(frozen=True, slots=True)
class Row:
    """The median ratios of a workload, by contender. Forms other than the
    first are Sennit's alone.
    """

    workload: Workload
    ratios: Mapping[str, float]

    @property
    def met(self) -> bool:
        """Whether Sennit meets its goal."""
        return self.ratios[SENNIT] <= self.workload.goal


async def timed(
    contenders: Mapping[str, Contender], shape: Shape, repeats: int
) -> dict[str, float]:
    """Let all contenders take turns; return the median of each as a ratio to the critical path."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            taken[name].append(await contender(shape))
    return {
        name: statistics.median(seconds) / shape.critical_path for name, seconds in taken.items()
    }


def found(rows: Sequence[Row]) -> Part:
    """Return the table, what falls short of a goal that is asserted, where others are
    faster, and the chart.
    """
    names = list(rows[0].ratios)
    table = Table(
        ("workload", "critical path", *names, "goal"), [_cells(row, names) for row in rows]
    )
    asserted = [row.workload.name for row in rows if row.workload.asserted]
    short = [row.workload.name for row in rows if row.workload.asserted and not row.met]
    notes = ["Ratios to the critical path.", f"Goals that are asserted: {'; '.join(asserted)}.",
             f"Missed of these: {'; '.join(short) or 'none'}."]  # fmt: skip
    if any(inf in row.ratios.values() for row in rows):
        notes.append(f"There was no result in {LONGEST:.0f} s where the table says none.")
    lanes = {row.workload.name: [Lane(name, ratio) for name, ratio in row.ratios.items() if ratio < inf]  # noqa: E501
             for row in rows if not row.workload.form}  # fmt: skip
    return Part(table, [" ".join(notes)], not short, {"faster": faster(rows)}, chart(lanes))


def _cells(row: Row, names: Sequence[str]) -> list[str]:
    ratios = [figure(row.ratios[name]) if name in row.ratios else "" for name in names]
    goal = goal_cell(row.ratios[SENNIT], row.workload.goal)
    return [row.workload.name, f"{row.workload.shape.critical_path:.2f} s", *ratios, goal]


def faster(rows: Sequence[Row]) -> str:
    """Say which peers are faster than Sennit, and where."""
    lines = []
    for row in rows:
        ahead = [f"{name} {figure(row.ratios[name])}" for name in PEERS
                 if row.ratios.get(name, inf) < row.ratios[SENNIT]]  # fmt: skip
        if ahead:
            lines.append(
                f"- {row.workload.name}: {', '.join(ahead)}; Sennit {figure(row.ratios[SENNIT])}"
            )
    return "\n".join(lines) or "None is, on these workloads."


async def measure(
    repeats: int, *, with_peers: bool = False, workloads: Sequence[Workload] = WORKLOADS
) -> Part:
    """Time every workload on a server and workers of its own."""
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="sennit-bench-")))
        built = await stack.enter_async_context(stage(place))
        await stack.enter_async_context(bare_worker(built.address))
        others = await stack.enter_async_context(peers(built)) if with_peers else {}
        contenders: dict[str, Contender] = {LIMIT: plain_asyncio}
        contenders |= {name: peer.timed for name, peer in others.items()}
        contenders[BARE] = partial(bare_graph, built.client)
        rows = []
        warm = Workload(diamond(10, 0.1), 100, 1.0)
        await timed({**contenders, SENNIT: partial(_sennit, built, warm)}, warm.shape, 1)
        for workload in workloads:
            ours = {SENNIT: partial(_sennit, built, workload)}
            all_of_them = ours if workload.form else contenders | ours
            rows.append(Row(workload, await timed(all_of_them, workload.shape, repeats)))
    return found(rows)


async def _sennit(built: Stage, workload: Workload, _: Shape) -> float:
    return (await built.timed(**workload.request()))[0]
