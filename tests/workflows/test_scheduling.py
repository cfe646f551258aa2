"""What runs when, seen from the outside: locks that exclude, priorities, the window, joins that call off the rest."""

from itertools import pairwise, permutations
from pathlib import Path

import pytest
from doubles.events import activities, activity_positions
from doubles.local_workers import Start
from doubles.runs import call, happens, status_of, until
from doubles.tools import calls

pytestmark = pytest.mark.server
EXCLUDING = (("x", "s"), ("x", "x"), ("two", "two"), ("write", "read"), ("write", "write"))
"""Nodes whose names begin so never run at once."""


async def test_a_join_that_has_enough_stops_the_calls_of_the_rest(start: Start, cache: Path) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("b", "hang", args={"name": "join"}),
        call("c", args={"seconds": 0.3, "value": 3}),
        call("d", "hang", args={"name": "join"}),
        call("behind", needs=["d"]),
        {"id": "j", "kind": "join", "inputs": ["a", "b", "c", "behind"], "policy": {"quorum": "34%"}},
    ]
    report = await (await start(plan={"nodes": nodes, "answer": "$j"})).result()
    assert (report["status"], report["answer"]) == ("done", [{"value": 1}, {"value": 3}])
    statuses = {line["id"]: line["status"] for line in report["nodes"]}
    assert [statuses[name] for name in ("b", "d", "behind")] == ["cancelled"] * 3
    await happens(lambda: len(list((cache / "join").glob("*.cancelled"))) == 2)


async def test_locks_exclude_and_never_deadlock(start: Start) -> None:
    """What a write changes is a lock too, and so is what a read reads."""
    shared, exclusive = [{"name": "repo", "mode": "shared"}], [{"name": "repo", "mode": "exclusive"}]
    both = [{"name": "left"}, {"name": "right"}]
    nodes = [call(f"s{index}", args={"seconds": 0.1}, locks=shared) for index in range(3)]
    nodes += [call(f"x{index}", args={"seconds": 0.05}, locks=exclusive) for index in range(3)]
    nodes += [call(f"two{index}", args={"seconds": 0.01}, locks=both[:: (-1) ** index]) for index in range(6)]
    nodes += [call(f"read{index}", "inspect", args={"seconds": 0.1, "value": "a"}) for index in range(2)]
    nodes += [call(f"write{index}", "change", args={"seconds": 0.05, "value": "a"}) for index in range(2)]
    nodes += [call("other", "change", args={"seconds": 0.1, "value": "b"})]
    names = [str(node["id"]) for node in nodes]
    handle = await start(plan={"nodes": nodes, "answer": [f"${name}" for name in names]}, approval="never")
    assert (await handle.result())["status"] == "done"
    at = await activity_positions(handle)

    def together(one: str, other: str) -> bool:
        return at[one] < at[f"{other} done"] and at[other] < at[f"{one} done"]

    for one, other in permutations(names, 2):
        excluded = any(one.startswith(name) and other.startswith(rest) for name, rest in EXCLUDING)
        assert not (excluded and together(one, other)), f"{one} and {other} ran at once"
    assert together("s0", "s2")
    assert together("read0", "read1")
    assert together("read0", "other")


async def test_a_lock_is_given_back_by_a_node_that_failed_or_was_called_off(start: Start) -> None:
    lock = [{"name": "repo"}]
    nodes = [
        call("a", "fail", locks=lock, priority=1, on_error="skip"),
        call("b", "hang", args={"name": "lock"}, locks=lock, priority=2),
        call("c", args={"value": 1}, locks=lock, priority=3),
    ]
    handle = await start(plan={"nodes": nodes, "answer": ["$b", "$c"]})
    await until(handle, lambda view: status_of(view, "b") == "running")
    await handle.execute_update("skip_node", {"node": "b"})
    assert (await handle.result())["answer"] == [None, {"value": 1}]


async def test_ready_nodes_start_by_priority_then_by_the_longest_path(start: Start, cache: Path) -> None:
    """With a window of one, the order of calls is the order of starts, and one ends before the next begins."""
    nodes = [call(f"p{priority}", priority=priority) for priority in (5, 4, 2, 1)]
    nodes += [call("short"), call("long"), call("mid"), call("tail", needs=["mid"])]
    nodes += [call("long2", needs=["long"]), call("long3", needs=["long2"])]
    handle = await start(plan={"nodes": nodes, "answer": "$p1"}, window=1, fuse="off")
    assert (await handle.result())["status"] == "done"
    order = [name.partition("~")[0] for name in calls(cache, handle.first_execution_run_id or "")]
    assert order[:3] == ["p1", "p2", "long"]
    assert order[-2:] == ["p4", "p5"]
    assert order.index("long") < order.index("mid") < order.index("short")
    at = await activity_positions(handle)
    assert all(at[f"{one} done"] < at[other] for one, other in pairwise(order))


async def test_activities_are_named_after_their_nodes(start: Start) -> None:
    nodes = [
        call("list", "count", args={"count": 2}),
        {"id": "m", "kind": "map", "over": "$list.items", "do": {"kind": "tool", "tool": "nap"}},
        {"id": "j", "kind": "join", "inputs": ["list", "m"]},
    ]
    handle = await start(plan={"nodes": nodes})
    await handle.result()
    assert [name for _, name in await activities(handle)] == [
        "run:prepare",
        "list",
        "m[0]",
        "m[1]",
        "run:conclude",
    ]
