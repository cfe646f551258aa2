"""Wide runs: more ready nodes, bytes and items than one transaction or one task may have."""

import asyncio

from doubles.events import weight
from doubles.local_workers import Handle, Start
from doubles.runs import call

from sennit.workflows.plan.language.packing import pack_plan


async def most_pending(handle: Handle) -> int:
    """Return the largest number of activities that were scheduled and had not ended; all must end well."""
    pending = most = 0
    async for event in handle.fetch_history_events():
        if event.HasField("activity_task_scheduled_event_attributes"):
            pending += 1
        elif event.HasField("activity_task_completed_event_attributes"):
            pending -= 1
        most = max(most, pending)
    return most


async def test_three_hundred_ready_nodes_of_ten_kilobytes_each_run_and_finish(start: Start) -> None:
    """Three mebibytes of plan: it travels packed, and its arguments never enter the history again."""
    nodes = [call(f"n{index}", args={"value": f"{index} " + "warp and sennit " * 730}) for index in range(300)]
    nodes.append({"id": "all", "kind": "join", "inputs": [node["id"] for node in nodes]})
    handle = await start(plan_packed=pack_plan({"nodes": nodes, "answer": "$all[299].value"}))
    report = await handle.result()
    assert report["status"] == "done"
    assert report["answer"].startswith("299 warp and sennit")
    assert len(report["nodes"]) == 301
    assert await most_pending(handle) <= 100
    events, size = await weight(handle)
    print(f"wide: {events} events, {size} bytes, {size / 301:.0f} bytes a node")
    assert size < 600_000


async def test_the_whole_window_starts_in_steps_that_a_transaction_can_hold(start: Start) -> None:
    """Ninety commands of 15 KB of references each are more than the 1 MiB that one workflow task may emit.

    How the calls end is not the matter: each has one attempt, and a busy machine may be too slow for ninety at once.
    """
    first = [call(f"a{index}", args={"value": index}) for index in range(250)]
    everything = {"value": {node["id"]: f"${node['id']}.value" for node in first}}
    second = [call(f"b{index}", args=everything, retry={"attempts": 1}) for index in range(90)]  # so each is alone
    plan = {"nodes": [*first, *second], "fuse": "on", "answer": "$b89.value.a249"}
    handle = await start(plan_packed=pack_plan(plan), window=500)
    scheduled = list[str]()
    while "b89" not in scheduled:
        await asyncio.sleep(0.2)
        events = (await handle.fetch_history()).events
        scheduled = [event.activity_task_scheduled_event_attributes.activity_id for event in events]
    timers = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToMilliseconds()
        for event in events
        if event.HasField("timer_started_event_attributes")
    ]
    assert 1 in timers, "the rest starts in a task of its own"
