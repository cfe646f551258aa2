"""What a run costs beside its calls: an empty run, preparing a large plan, and processor
time of the worker a call.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from temporalio.api.history.v1 import HistoryEvent

from benchmarks.load import processor_seconds
from benchmarks.performance.ratios import THOUSAND
from benchmarks.performance.table import Part, Table, goal_cell
from benchmarks.shapes import chain, mapped
from benchmarks.stage import Stage, stage
from sennit.workflows.messages.contracts import PREPARE

EMPTY_RUNS = 10
ALONE = "nap_2000"
"""A call that usually takes so long shares its activity with no other."""
GOAL_EMPTY, GOAL_PREPARE, GOAL_ALONE, GOAL_SHARED = 60, 40, 4, 0.25


def slope(small: float, large: float, few: int, many: int) -> float:
    """Return what each call takes, from the amounts of a run of few and a run of many: what
    the run takes cancels.
    """
    return (large - small) / (many - few)


def prepare_seconds(events: Sequence[HistoryEvent]) -> float:
    """Return how long the activity took that prepared a run, from its start until the server
    knew that it had ended.
    """
    for event in events:
        if not event.HasField("activity_task_completed_event_attributes"):
            continue
        ended = event.activity_task_completed_event_attributes
        scheduled = events[ended.scheduled_event_id - 1].activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == PREPARE.name:
            started = events[ended.started_event_id - 1]
            return (event.event_time.ToNanoseconds() - started.event_time.ToNanoseconds()) / 1e9
    raise ValueError("nothing prepared this run")


def found(empty: float, prepare: float, alone: float, shared: float) -> Part:
    """Return the table of milliseconds."""
    rows = [
        ("a run of one call, beside its call", empty, GOAL_EMPTY),
        ("preparing a plan of 1,002 nodes", prepare, GOAL_PREPARE),
        ("processor time of the worker, a call with an activity of its own", alone, GOAL_ALONE),
        ("processor time of the worker, a short call of a `map`", shared, GOAL_SHARED),
    ]
    return Part(
        Table(
            ("cost", "ms", "goal"),
            [(name, f"{ms:.2f}", goal_cell(ms, goal)) for name, ms, goal in rows],
        )
    )


async def measure(repeats: int) -> Part:
    """Measure on a server and a worker of its own. Medians, the slopes too."""
    with TemporaryDirectory(prefix="sennit-bench-") as place:
        async with stage(Path(place)) as built:
            await built.timed(**mapped(100, 0.05, "nap_50"))  # warms up
            empty = [
                (await built.timed(chain(1, 0.1).plan("nap_100")))[0] - 0.1
                for _ in range(EMPTY_RUNS)
            ]
            alone, shared, prepared = [], [], []
            for _ in range(repeats):
                few, many = [
                    await _processor(built, chain(count, 0.1).plan(ALONE)) for count in (10, 30)
                ]
                alone.append(slope(few, many, 10, 30))
                few, many = [
                    await _processor(built, **mapped(count, 0.05, "nap_50"))
                    for count in (100, 1000)
                ]
                shared.append(slope(few, many, 100, 1000))
                _, handle = await built.timed(THOUSAND.plan("nap_50"))
                prepared.append(prepare_seconds((await handle.fetch_history()).events))
    return found(*(1000 * statistics.median(each) for each in (empty, prepared, alone, shared)))


async def _processor(built: Stage, plan: dict[str, Any], **fields: Any) -> float:
    """Return the processor seconds that the worker spends on a run."""
    (worker,) = built.processes["all"]
    before = processor_seconds(worker)
    await built.timed(plan, **fields)
    return processor_seconds(worker) - before
