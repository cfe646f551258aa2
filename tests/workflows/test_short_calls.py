"""Short calls share activities by themselves, and a run that has them ends as one whose calls are each alone."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.events import activities
from doubles.local_workers import Start
from doubles.runs import call
from doubles.tools import calls

pytestmark = pytest.mark.server


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
    assert set(Counter(calls(cache, handle.first_execution_run_id or "")).values()) == {1}
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


async def test_a_failure_in_a_shared_activity_stays_with_its_node(start: Start, cache: Path) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("bad", "fail"),
        call("flaky", "flaky", args={"failures": 1}),
        call("behind", args={"value": "$a.value"}),
        {"id": "all", "kind": "join", "inputs": ["bad", "flaky", "behind"], "policy": "settled"},
    ]
    handle = await start(plan={"nodes": nodes, "fuse": "on"})
    report = await handle.result()
    ends = [(each["status"], each["value"]) for each in report["answer"]]
    assert ends == [("failed", None), ("succeeded", {"value": 2}), ("succeeded", {"value": 1})]
    assert {line["id"]: line["attempts"] for line in report["nodes"]}["flaky"] == 2
    counted = Counter(calls(cache, handle.first_execution_run_id or ""))
    assert counted == {"a~1": 1, "bad~1": 1, "flaky~1": 2, "behind~1": 1}
