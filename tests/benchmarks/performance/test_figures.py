"""The arithmetic of the other parts: bounds, percentiles, rates, and tables of them."""

import asyncio
import math
import subprocess
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.history.v1 import HistoryEvent

from benchmarks.load import processor_seconds
from benchmarks.performance import costs, crowd, scale
from benchmarks.performance.scale import IN_FLIGHT, Large, bound, p95
from benchmarks.performance.table import Table, figure, goal_cell


@pytest.mark.parametrize(
    ("calls", "in_flight", "seconds"), [(10_000, 100, 5.0), (10_000, 1000, 0.5), (101, 100, 0.1), (1, 100, 0.05)]
)
def test_the_bound_is_so_many_full_waves(calls: int, in_flight: int, seconds: float) -> None:
    assert bound(calls, in_flight, 0.05) == pytest.approx(seconds)


def test_what_a_call_takes_is_counted_beyond_the_bound() -> None:
    whole = bound(10_000, IN_FLIGHT, 0.05)
    assert Large(whole + 5.0, 0, 1, 0.0).each == pytest.approx(0.5)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_five_of_a_hundred_exceed_the_percentile_at_most(values: list[float]) -> None:
    limit = p95(values)
    assert limit in values
    assert sum(value > limit for value in values) <= 0.05 * len(values)
    assert sum(value >= limit for value in values) > 0.05 * len(values)


def test_the_large_run_says_when_it_did_not_cover_the_small_ones() -> None:
    large = Large(30.0, 1_600, 1, 250.0)
    part = scale.found(large, [1.0] * 20, [2.5] * 20, covered=False)
    cells = {line[0]: line[2] for line in part.table.rows}
    assert cells["events"] == "<= 1500, 7% short"
    assert cells["growth of the worker, MB"] == "<= 200, 25% short"
    assert cells["p95 beside it, to alone"] == "<= 2, 25% short"
    assert part.notes[-1].startswith("The large run ended before")
    assert len(scale.found(large, [1.0], [1.0], covered=True).notes) == 1


async def test_a_rate_counts_runs_until_the_last_has_ended() -> None:
    ended: list[bool] = []

    async def one() -> None:
        await asyncio.sleep(0.2 if not ended else 0.1)
        ended.append(True)

    found = await crowd.rate(one, 10)
    assert len(ended) == 10
    assert 0 < found <= 10 / 0.2


def test_a_share_is_of_the_bare_rate() -> None:
    part = crowd.found(6.0, 12.0)
    assert [line[1] for line in part.table.rows] == ["6.0", "12.0", "50%"]
    assert [line[2] for line in part.table.rows] == [">= 10, 40% short", "", ">= 0.65, 23% short"]


def test_what_a_run_takes_itself_is_no_part_of_a_call() -> None:
    assert costs.slope(5.0 + 10 * 0.2, 5.0 + 30 * 0.2, 10, 30) == pytest.approx(0.2)


def test_preparing_is_timed_from_the_start_of_its_activity() -> None:
    events = [HistoryEvent() for _ in range(5)]
    for event, seconds in zip(events, (0, 1, 3, 6, 10), strict=True):
        event.event_time.FromSeconds(seconds)
    events[1].activity_task_scheduled_event_attributes.activity_type.name = "tool"
    events[2].activity_task_scheduled_event_attributes.activity_type.name = "prepare"
    events[3].activity_task_started_event_attributes.scheduled_event_id = 3
    ended = events[4].activity_task_completed_event_attributes
    ended.scheduled_event_id, ended.started_event_id = 3, 4
    assert costs.prepare_seconds(events) == 4
    ended.scheduled_event_id = 2
    with pytest.raises(ValueError, match="nothing prepared"):
        costs.prepare_seconds(events)


def test_costs_are_milliseconds_beside_their_goals() -> None:
    part = costs.found(88, 140, 5, 1)
    assert [line[2] for line in part.table.rows] == [
        "<= 60, 47% short",
        "<= 40, 250% short",
        "<= 4, 25% short",
        "<= 0.25, 300% short",
    ]


def test_processor_time_counts_children() -> None:
    """Of a process that computes in a child, that of the child counts too."""
    before = processor_seconds(psutil.Process())
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert processor_seconds(psutil.Process()) > before


@pytest.mark.parametrize(
    ("found", "most", "cell"),
    [(1.0, True, "<= 2"), (2.0, True, "<= 2"), (3.0, True, "<= 2, 50% short"), (1.0, False, ">= 2, 50% short"),
     (2.0, False, ">= 2"), (3.0, False, ">= 2")],
)  # fmt: skip
def test_a_goal_says_what_a_figure_lacks(found: float, most: bool, cell: str) -> None:
    assert goal_cell(found, 2.0, most=most) == cell


def test_a_ratio_has_as_many_digits_as_say_something() -> None:
    assert [figure(ratio) for ratio in (1.0, 1.054, 9.99, 16.4, 110.4, math.inf)] == [
        "1.00",
        "1.05",
        "9.99",
        "16.4",
        "110",
        "none",
    ]


def test_a_table_is_text_and_markdown() -> None:
    table = Table(("what", "s"), [("a", "1.5"), ("bb", "10.0")])
    assert table.text() == "what     s\na      1.5\nbb    10.0"
    assert table.markdown() == "| what | s |\n| --- | ---: |\n| a | 1.5 |\n| bb | 10.0 |"
