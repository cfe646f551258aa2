"""The table of ratios: what is timed, what counts as missed, and who is faster."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from math import inf

import pytest

from benchmarks.performance.peers import PEERS
from benchmarks.performance.ratios import BARE, LIMIT, SENNIT, WORKLOADS, Row, Workload, found, measure, timed
from benchmarks.performance.rivals import plain_asyncio
from benchmarks.shapes import Shape, chain, diamond, fan, layered
from sennit.activities.toolbox import load_tools
from sennit.workflows.plan.checking.validation import parse_plan, problems_of

FIRST, SECOND, _ = PEERS


def row(sennit: float, others: Mapping[str, float] | None = None, *, asserted: bool = True) -> Row:
    return Row(Workload(chain(3, 0.1), 100, 1.05, asserted=asserted), {**(others or {}), SENNIT: sennit})


@pytest.mark.parametrize(
    ("shape", "seconds"),
    [
        (chain(30, 0.1), 3.0),
        (diamond(10, 0.5), 1.5),
        (fan(100, 0.2), 0.6),
        (fan(1000, 0.05), 0.15),
        (layered(200, 10, seconds=0.1), 1.0),
        (Shape("two ways", (1.0, 5.0, 2.0, 1.0), ((), (), (0,), (1, 2))), 6.0),
    ],
    ids=lambda value: value.name if isinstance(value, Shape) else "",
)
def test_the_critical_path_is_the_longest_chain(shape: Shape, seconds: float) -> None:
    assert shape.critical_path == pytest.approx(seconds)


def test_equal_and_unequal_latencies_are_of_one_graph() -> None:
    assert layered(200, 10).needs == layered(200, 10, seconds=0.1).needs
    assert len(set(layered(200, 10).latency)) > 100


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_workload_is_a_plan_for_the_tools_of_the_benchmark(workload: Workload) -> None:
    request = workload.request()
    plan = parse_plan(request["plan"])
    assert problems_of(plan, load_tools(["benchmarks.tools"]).catalogue(), models=()) == []
    made = sum(node.kind == "tool" for node in plan.nodes) + len(request.get("inputs", {}).get("items", []))
    assert made == len(workload.shape.latency)


def test_workloads_have_names_of_their_own() -> None:
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)


async def test_contenders_take_turns_and_the_median_counts() -> None:
    turns: list[str] = []

    def taking(name: str, *seconds: float) -> Callable[[Shape], Awaitable[float]]:
        left = iter(seconds)

        async def contender(_: Shape) -> float:
            turns.append(name)
            return next(left)

        return contender

    contenders = {"a": taking("a", 3.0, 6.0, 99.0), "b": taking("b", 3.0, 3.0, 3.0)}
    assert await timed(contenders, chain(30, 0.1), 3) == pytest.approx({"a": 2.0, "b": 1.0})
    assert turns == ["a", "b"] * 3


async def test_plain_asyncio_takes_no_less_than_the_critical_path() -> None:
    shape = diamond(5, 0.02)
    assert await plain_asyncio(shape) >= shape.critical_path * 0.99


def test_only_an_asserted_goal_fails_the_benchmark() -> None:
    assert found([row(1.05)]).met
    assert not found([row(1.06)]).met
    assert found([row(1.06, asserted=False)]).met
    assert "Missed of these: chain 3 x 100 ms." in found([row(1.06)]).notes[0]
    assert "Missed of these: none." in found([row(1.06, asserted=False), row(1.0)]).notes[0]


def test_the_table_says_how_much_a_goal_is_missed_by() -> None:
    part = found([row(1.05), row(2.1)])
    assert [line[-1] for line in part.table.rows] == ["<= 1.05", "<= 1.05, 100% short"]


def test_a_form_of_a_workload_is_timed_for_sennit_alone() -> None:
    whole = Row(WORKLOADS[2], {LIMIT: 1.0, BARE: 3.0, SENNIT: 2.0})
    part = found([whole, Row(replace(WORKLOADS[2], form="as a `map`"), {SENNIT: 1.5})])
    assert part.table.header[2:5] == (LIMIT, BARE, SENNIT)
    assert list(part.table.rows[1][2:5]) == ["", "", "1.50"]
    assert part.chart.count("map 1-100-1") == 1, "the chart compares, so it leaves out what stands alone"


def test_where_peers_are_faster_is_said_and_nothing_else() -> None:
    slower = row(1.5, {LIMIT: 1.0, FIRST: 1.2, SECOND: 1.6, BARE: 1.1})
    assert found([slower]).more["faster"] == f"- chain 3 x 100 ms: {FIRST} 1.20; Sennit 1.50"
    assert found([row(1.0, {FIRST: 1.2, SECOND: 1.0})]).more["faster"].startswith("None")


def test_a_peer_without_a_result_has_no_figure_and_no_dot() -> None:
    part = found([row(1.5, {FIRST: inf, SECOND: 1.2}), row(1.5, {FIRST: 1.3, SECOND: 1.2})])
    assert [line[2] for line in part.table.rows] == ["none", "1.30"]
    assert part.notes[0].endswith("There was no result in 120 s where the table says none.")
    assert "inf" not in part.chart


@pytest.mark.server
async def test_every_form_runs_beside_the_others() -> None:
    chosen = [
        Workload(chain(2, 0.05), 50, 99.0),
        Workload(fan(5, 0.05), 50, 99.0, form="as a `map`"),
        Workload(fan(5, 0.05), 50, 99.0, form="plain functions"),
    ]
    part = await measure(1, workloads=chosen)
    assert part.met
    first, *forms = [[float(cell) for cell in line[2:5] if cell] for line in part.table.rows]
    limit, bare, sennit = first
    assert limit >= 1.0
    assert min(bare, sennit) > 1.0
    assert [len(ratios) for ratios in forms] == [1, 1]
    assert all(ratios[0] > 1.0 for ratios in forms)
