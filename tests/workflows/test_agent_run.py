"""One run from start to end, on a real server."""

from typing import Any

import pytest
from doubles.events import activities
from doubles.local_workers import Start
from doubles.runs import call, until
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError


def join(name: str, *inputs: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "join", "inputs": list(inputs), **fields}


def each(name: str, over: str) -> dict[str, Any]:
    return {"id": name, "kind": "map", "over": over, "do": {"kind": "tool", "tool": "nap", "args": {"value": "$item"}}}


async def test_nodes_of_every_kind_run_in_one_plan(start: Start) -> None:
    nodes = [
        call("a", args={"value": 7}),
        call("b", args={"value": "$a.value"}),
        call("c", args={"value": "got $b.value"}),
        call("bad", "fail"),
        join("settled", "bad", "a", policy="settled"),
        call("list", "count", args={"count": 2}),
        each("map", "$list.items"),
        call("nothing", "count", args={"count": 0}),
        each("empty", "$nothing.items"),
        call("slow", args={"seconds": 60}),
        join("first", "slow", "a", policy="first"),
        call("late", args={"seconds": 60}),
        join("deadline", "late", "a", policy="settled", deadline="2s"),
        call("few", when={"ref": "$list.count", "op": "lt", "value": 3}, args={"value": "few"}),
        call("many", when={"ref": "$list.items.length", "op": "ge", "value": 3}, args={"value": "many"}),
        join("quorum", "few", "many", policy={"quorum": 1}),
        call("default", "fail", on_error={"fallback": {"value": 0}}),
        call("replaced", "fail", on_error={"instead": "substitute"}),
        call("substitute", args={"value": "s"}),
        call("flaky", "flaky", args={"failures": 1}),
    ]
    wanted = ("c", "settled", "map", "empty", "first", "deadline", "quorum", "default", "replaced", "flaky")
    report = await (await start(plan={"nodes": nodes, "answer": {name: f"${name}" for name in wanted}})).result()
    seven = {"id": "a", "status": "succeeded", "value": {"value": 7}, "error": None}
    assert report["status"] == "done", report
    late = report["answer"].pop("deadline")
    assert [item["status"] for item in late] == ["cancelled", "succeeded"]
    assert report["answer"] == {
        "c": {"value": "got 7"},
        "settled": [{"id": "bad", "status": "failed", "value": None, "error": "ToolError: went wrong"}, seven],
        "map": [{"value": {"n": 0}}, {"value": {"n": 1}}],
        "empty": [],
        "first": {"value": 7},
        "quorum": [{"value": "few"}],
        "default": {"value": 0},
        "replaced": {"value": "s"},
        "flaky": {"value": 2},
    }
    lines = {line["id"]: line for line in report["nodes"]}
    statuses = {"slow": "cancelled", "late": "cancelled", "many": "skipped", "map[1]": "succeeded"}
    assert {name: lines[name]["status"] for name in statuses} == statuses
    assert lines["flaky"]["attempts"] == 2


async def test_a_gate_takes_an_answer_that_fits_its_schema_and_a_write_can_be_rejected(start: Start) -> None:
    nodes = [
        {"id": "g", "kind": "gate", "question": "How many?", "schema": {"type": "integer", "minimum": 1}},
        call("n", args={"value": "$g"}),
        call("w", "note", args={"text": "hello"}),
    ]
    handle = await start(plan={"nodes": nodes, "answer": ["$n", "$w"]}, on_failure="partial")
    view = await until(handle, lambda view: view["status"] == "blocked")
    assert {item["node"]: item["update"] for item in view["blocked"]} == {"g": "answer", "w": "approve"}
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("answer", {"node": "g", "value": "many"})
    assert 'value: wanted integer, not "many"' in str(refused.value.cause)
    await handle.execute_update("answer", {"node": "g", "value": 4})
    await handle.execute_update("reject", {"node": "w", "reason": "no"})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("partial", [{"value": 4}, None])
    assert report["nodes"][2]["error"] == "Rejected: no"


async def test_outputs_that_cannot_be_kept_fail_their_nodes_and_a_run_under_fail_fails_with_its_report(
    start: Start,
) -> None:
    nodes = [call("big", "make", args={"bytes": 50 * 1024 * 1024}), call("nan", "make", args={"kind": "nan"})]
    with pytest.raises(WorkflowFailureError) as failed:
        await (await start(plan={"nodes": nodes, "answer": ["$big", "$nan"]}, on_failure="fail")).result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "RunFailed"
    report = failed.value.cause.details[0]
    big, nan = (line["error"] for line in report["nodes"])
    assert report["status"] == "failed"
    assert big.startswith("OutputRefused: the output has 52,428,811 bytes; at most 16,777,216.")
    assert "JSON" in nan


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
