"""What runs when, seen from the outside: joins that close early, locks that exclude, priorities, the window."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.events import activities
from doubles.runs import call, status_of, until
from doubles.tools import calls
from temporalio.client import WorkflowHandle

pytestmark = pytest.mark.server
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]
Span = dict[str, float]


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {line["id"]: line["status"] for line in report["nodes"]}


def overlap(one: Span, two: Span) -> bool:
    return one["start"] < two["end"] and two["start"] < one["end"]


def pairs(spans: list[Span]) -> list[tuple[Span, Span]]:
    return [(one, two) for index, one in enumerate(spans) for two in spans[:index]]


def peak(spans: list[Span]) -> int:
    """Return how many spans held at once at most."""
    return max(sum(other["start"] <= span["start"] < other["end"] for other in spans) for span in spans)


@pytest.mark.parametrize(
    ("policy", "answer"),
    [({"quorum": 2}, [1, 3]), ({"quorum": "34%"}, [1, 3]), ({"quorum": "20%"}, [1]), ("first", 1)],
)
async def test_a_join_that_has_enough_calls_off_the_rest(start: Start, cache: Path, policy: Any, answer: Any) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("b", "hang", args={"name": f"join-{policy}"}),
        call("c", args={"seconds": 0.3, "value": 3}),
        call("d", "hang", args={"name": f"join-{policy}"}),
        call("behind", needs=["d"]),
        {"id": "j", "kind": "join", "inputs": ["a", "b", "c", "behind"], "policy": policy},
    ]
    report = await (await start(plan={"nodes": nodes, "answer": "$j"})).result()
    assert report["status"] == "done"
    found = report["answer"]
    assert (found["value"] if policy == "first" else [value["value"] for value in found]) == answer
    assert [statuses(report)[name] for name in ("b", "d", "behind")] == ["cancelled"] * 3


async def test_a_quorum_that_cannot_be_reached_fails_at_once_and_its_other_inputs_finish(start: Start) -> None:
    nodes = [
        call("a", "fail"),
        call("b", "fail"),
        call("slow", args={"seconds": 1}),
        {"id": "j", "kind": "join", "inputs": ["a", "b", "slow"], "policy": {"quorum": 2}},
    ]
    handle = await start(plan={"nodes": nodes, "answer": "$j"}, on_failure="partial")
    await until(handle, lambda view: status_of(view, "j") == "failed" and status_of(view, "slow") == "running")
    report = await handle.result()
    line = next(line for line in report["nodes"] if line["id"] == "j")
    assert line["error"] == "JoinFailed: needs a value from 2 inputs of 3, but a, b gave none"
    assert statuses(report)["slow"] == "succeeded"


async def test_a_deadline_fails_a_join_that_needs_all(start: Start) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("slow", "hang", args={"name": "deadline"}),
        {"id": "j", "kind": "join", "inputs": ["a", "slow"], "deadline": "300ms", "on_error": {"fallback": "late"}},
    ]
    report = await (await start(plan={"nodes": nodes, "answer": "$j"})).result()
    assert (report["status"], report["answer"]) == ("done", "late")
    assert statuses(report)["slow"] == "cancelled"


async def test_an_exclusive_lock_lets_one_node_run_at_a_time(start: Start) -> None:
    lock = [{"name": "repo", "mode": "exclusive"}]
    nodes = [call(f"x{index}", "span", args={"seconds": 0.05}, locks=lock) for index in range(5)]
    nodes += [call(f"f{index}", "span", args={"seconds": 0.2}) for index in range(3)]
    answer = [f"$x{index}" for index in range(5)], [f"$f{index}" for index in range(3)]
    report = await (await start(plan={"nodes": nodes, "answer": list(answer)})).result()
    locked, free = report["answer"]
    assert not any(overlap(*pair) for pair in pairs(locked))
    assert peak(free) > 1


async def test_shared_locks_go_together_and_keep_exclusive_ones_out(start: Start) -> None:
    shared, exclusive = [{"name": "repo", "mode": "shared"}], [{"name": "repo", "mode": "exclusive"}]
    nodes = [call(f"s{index}", "span", args={"seconds": 0.3}, locks=shared) for index in range(4)]
    nodes += [call(f"x{index}", "span", args={"seconds": 0.05}, locks=exclusive) for index in range(2)]
    answer = [f"$s{index}" for index in range(4)], [f"$x{index}" for index in range(2)]
    report = await (await start(plan={"nodes": nodes, "answer": list(answer)})).result()
    readers, writers = report["answer"]
    assert peak(readers) == 4
    assert not any(overlap(writer, other) for writer in writers for other in readers)
    assert not overlap(*writers)


async def test_two_locks_taken_in_either_order_never_deadlock(start: Start) -> None:
    names = ["left", "right"]
    nodes = [
        call(f"n{index}", "span", args={"seconds": 0.01}, locks=[{"name": name} for name in names[:: (-1) ** index]])
        for index in range(8)
    ]
    report = await (await start(plan={"nodes": nodes, "answer": [f"$n{index}" for index in range(8)]})).result()
    assert not any(overlap(*pair) for pair in pairs(report["answer"]))


async def test_a_lock_is_given_back_by_a_node_that_failed_or_was_called_off(start: Start, cache: Path) -> None:
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
    """With a window of one, the order of calls is the order of starts."""
    nodes = [call(f"p{priority}", priority=priority) for priority in (5, 4, 2, 1)]
    nodes += [call("short"), call("long"), call("mid"), call("tail", needs=["mid"])]
    nodes += [call("long2", needs=["long"]), call("long3", needs=["long2"])]
    handle = await start(plan={"nodes": nodes, "answer": "$p1"}, window=1)
    assert (await handle.result())["status"] == "done"
    assert handle.first_execution_run_id is not None
    order = [name.partition("~")[0] for name in calls(cache, handle.first_execution_run_id)]
    assert order[:3] == ["p1", "p2", "long"]
    assert order[-2:] == ["p4", "p5"]
    assert order.index("long") < order.index("mid") < order.index("short")


async def test_the_window_bounds_how_many_nodes_run(start: Start) -> None:
    nodes = [call(f"n{index}", "span", args={"seconds": 0.1}) for index in range(12)]
    plan = {"nodes": nodes, "answer": [f"$n{index}" for index in range(12)]}
    report = await (await start(plan=plan, window=3)).result()
    assert peak(report["answer"]) <= 3


async def test_activities_are_named_after_their_nodes(start: Start) -> None:
    nodes = [
        call("list", "count", args={"count": 2}),
        {"id": "m", "kind": "map", "over": "$list.items", "do": {"kind": "tool", "tool": "nap"}},
        {"id": "j", "kind": "join", "inputs": ["list", "m"]},
    ]
    handle = await start(plan={"nodes": nodes})
    await handle.result()
    found = await activities(handle)
    assert [name for _, name in found] == ["run:prepare", "list", "m[0]", "m[1]", "m", "j"]
