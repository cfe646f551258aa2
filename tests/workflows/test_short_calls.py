"""Short calls share activities by themselves, and a run that has them ends as one whose calls are each alone."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.events import activities
from doubles.local_workers import Handle, Start
from doubles.runs import call, called, status_of, until


async def signals(handle: Handle) -> list[Any]:
    """Return what signals of shared activities have told, without what cannot be that."""
    found = []
    async for event in handle.fetch_history_events():
        signal = event.workflow_execution_signaled_event_attributes
        if signal.signal_name == "group_progress":
            (payload,) = signal.input.payloads
            found.append(json.loads(payload.data or "null"))
    return [each for each in found if each and each.get("places")]


def plan_of(tool: str, count: int) -> dict[str, Any]:
    """Return so many calls between a first and a last one."""
    middle = [call(f"n{at}", tool, args={"value": at}, needs=["first"]) for at in range(count)]
    last = call("last", tool, args={"value": [f"${node['id']}.value" for node in middle]})
    return {"nodes": [call("first", tool), *middle, last], "answer": "$last"}


@pytest.mark.parametrize("fuse", ["auto", "off"])
async def test_calls_of_a_tool_that_says_it_is_short_share_an_activity(start: Start, cache: Path, fuse: str) -> None:
    handle = await start(plan={**plan_of("glance", 40), "fuse": fuse})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", {"value": list(range(40))})
    assert set(called(cache, handle).values()) == {1}
    kinds = Counter(kind for kind, _ in await activities(handle))
    assert kinds == ({"prepare": 1, "group": 1} if fuse == "auto" else {"prepare": 1, "tool": 42})


async def test_the_calls_of_a_run_tell_how_long_an_unknown_tool_takes(start: Start) -> None:
    nodes = [call(f"s{at}", "peek", needs=[f"s{at - 1}"] if at else []) for at in range(3)]
    nodes += [call(f"n{at}", "peek", args={"value": at}, needs=["s2"]) for at in range(30)]
    nodes.append({"id": "all", "kind": "join", "inputs": [f"n{at}" for at in range(30)]})
    handle = await start(plan={"nodes": nodes, "answer": "$all"})
    assert (await handle.result())["answer"] == [{"value": at} for at in range(30)]
    assert Counter(kind for kind, _ in await activities(handle))["group"] >= 1
    sharing = (await handle.query("sharing"))["nodes"]
    assert sharing["n0"].startswith("may share an activity: `peek` takes")
    assert sharing["all"].startswith("no activity, unless its value must be stored")


async def test_a_failed_call_starts_again_beside_a_late_one_that_shared_its_activity(
    start: Start, cache: Path, held: Path
) -> None:
    """What strangers send as if it came from the activity changes nothing."""
    nodes = [
        call("flaky", "flaky", args={"failures": 1}),
        call("bad", "fail"),
        call("late", "hang", args={"name": held.name}),
        {"id": "all", "kind": "join", "inputs": ["flaky", "bad", "late"], "policy": "settled"},
    ]
    handle = await start(plan={"nodes": nodes, "fuse": "on"})
    ended = ("succeeded", "failed", "running")
    names = ("flaky", "bad", "late")
    view = await until(handle, lambda view: tuple(status_of(view, name) for name in names) == ended)
    assert view["counts"]["succeeded"] == 1
    for junk in (None, {}, {"call": "0" * 40, "attempt": 1, "places": [2], "replies": [{"ref": "0" * 40}]}):
        await handle.signal("group_progress", junk)
    [told] = [event for event in await signals(handle) if event["places"] != [2]]
    await handle.signal("group_progress", {**told, "attempt": 0, "places": [2]})
    await handle.signal("group_progress", args=[{**told, "places": [2]}, "more"])
    await handle.signal("group_progress", {**told, "places": [2, 9, -1], "replies": [{}, told["replies"][0], {}]})
    assert status_of(await handle.query("plan"), "late") == "running"
    (held / "late.end").touch()
    report = await handle.result()
    assert [each["status"] for each in report["answer"]] == ["succeeded", "failed", "succeeded"]
    assert called(cache, handle) == {"flaky~1": 2, "bad~1": 1, "late~1": 1}
