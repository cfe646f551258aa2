"""Workers whose clocks are wrong: a program sleeps as long as it says, and its calls end in their order."""

import time

import pytest
from doubles.local_workers import Start
from temporalio.api.enums.v1 import EventType

SCRIPT = """
import asyncio

async def main():
    await nap(value=0)
    await asyncio.sleep(0.5)
    try:
        late = (await asyncio.wait_for(nap(value=1, seconds=1.5), 30))["value"]
    except TimeoutError:
        late = "late"
    return late
"""


@pytest.mark.parametrize("wrong_by", [-3600.0, 20.0])
async def test_sleeps_and_time_limits_of_a_program_do_not_go_by_the_clock_of_a_worker(
    start: Start, monkeypatch: pytest.MonkeyPatch, wrong_by: float
) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + wrong_by)
    nodes = [{"id": "main", "kind": "program", "script": SCRIPT}]
    handle = await start(plan={"nodes": nodes, "answer": "$main"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", 1)
    begun = EventType.EVENT_TYPE_TIMER_STARTED
    timers = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        async for event in handle.fetch_history_events()
        if event.event_type == begun
    ]
    assert min(timers) <= 0.5, "the sleep: the timer that tells lists rings later"
    assert 25 < max(timers) <= 30, "the time limit"
