"""One run from start to end, on a real server."""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.local_workers import remembered_or_not
from doubles.runs import call, status_of, until
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

pytestmark = [pytest.mark.server, remembered_or_not]
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {line["id"]: line["status"] for line in report["nodes"]}


async def test_a_chain_passes_values_from_node_to_node(start: Start) -> None:
    nodes = [
        call("a", args={"value": 7}),
        call("b", args={"value": "$a.value"}),
        call("c", args={"value": "got $b.value"}),
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert report["status"] == "done"
    assert report["answer"] == {"value": "got 7"}


async def test_a_settled_join_goes_on_without_a_failed_input(start: Start) -> None:
    nodes = [
        call("a", "fail"),
        call("b", args={"value": 1}),
        {"id": "j", "kind": "join", "inputs": ["a", "b"], "policy": "settled"},
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert report["status"] == "done"
    assert report["answer"] == [
        {"id": "a", "status": "failed", "value": None, "error": "ToolError: went wrong"},
        {"id": "b", "status": "succeeded", "value": {"value": 1}, "error": None},
    ]


async def test_a_failed_node_parks_the_run_and_a_retry_finishes_it(start: Start, cache: Any) -> None:
    mended = f"retry-{uuid.uuid4().hex}"
    nodes = [
        call("a", "fail", args={"unless": mended}),
        call("b", args={"value": "$a.value"}),
        call("c", args={"value": 3}),
        {"id": "j", "kind": "join", "inputs": ["b", "c"]},
    ]
    handle = await start(plan={"nodes": nodes})
    view = await until(handle, lambda view: view["status"] == "blocked")
    assert {node: status_of(view, node) for node in "abc"} == {"a": "failed", "b": "pending", "c": "succeeded"}
    assert view["blocked"][0]["command"] == f"sennit retry {handle.id} a"
    (cache / mended).touch()
    assert await handle.execute_update("retry_node", {"node": "a"}) == "a runs again"
    report = await handle.result()
    assert report["status"] == "done"
    assert report["answer"] == [{"value": "recovered"}, {"value": 3}]


async def test_a_gate_waits_for_an_answer_that_fits_its_schema(start: Start) -> None:
    nodes = [
        {"id": "g", "kind": "gate", "question": "How many?", "schema": {"type": "integer", "minimum": 1}},
        call("n", args={"value": "$g"}),
    ]
    handle = await start(plan={"nodes": nodes})
    await until(handle, lambda view: view["status"] == "blocked")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("answer", {"node": "g", "value": "many"})
    assert 'value: wanted integer, not "many"' in str(refused.value.cause)
    await handle.execute_update("answer", {"node": "g", "value": 4})
    assert (await handle.result())["answer"] == {"value": 4}


async def test_a_map_runs_its_template_for_every_item(start: Start) -> None:
    nodes = [
        call("list", "count", args={"count": 5}),
        {
            "id": "m",
            "kind": "map",
            "over": "$list.items",
            "do": {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}},
        },
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert report["answer"] == [{"value": index} for index in range(5)]
    assert statuses(report)["m[4]"] == "succeeded"


async def test_a_map_of_nothing_is_an_empty_list(start: Start) -> None:
    nodes = [
        call("list", "count", args={"count": 0}),
        {"id": "m", "kind": "map", "over": "$list.items", "do": {"kind": "tool", "tool": "nap"}},
    ]
    assert (await (await start(plan={"nodes": nodes})).result())["answer"] == []


async def test_the_first_input_wins_and_the_losers_are_cancelled(start: Start) -> None:
    nodes = [
        call("slow", args={"seconds": 30, "value": "slow"}),
        call("fast", args={"value": "fast"}),
        {"id": "j", "kind": "join", "inputs": ["slow", "fast"], "policy": "first"},
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert report["answer"] == {"value": "fast"}
    assert statuses(report)["slow"] == "cancelled"


async def test_a_deadline_closes_a_settled_join_with_what_is_there(start: Start) -> None:
    nodes = [
        call("slow", args={"seconds": 30}),
        call("fast", args={"value": 1}),
        {"id": "j", "kind": "join", "inputs": ["slow", "fast"], "policy": "settled", "deadline": "500ms"},
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert [item["status"] for item in report["answer"]] == ["cancelled", "succeeded"]


async def test_a_condition_on_a_fact_skips_a_node(start: Start) -> None:
    nodes = [
        call("a", "count", args={"count": 2}),
        call("few", when={"ref": "$a.count", "op": "lt", "value": 3}, args={"value": "few"}),
        call("many", when={"ref": "$a.items.length", "op": "ge", "value": 3}, args={"value": "many"}),
        {"id": "j", "kind": "join", "inputs": ["few", "many"], "policy": {"quorum": 1}},
    ]
    report = await (await start(plan={"nodes": nodes})).result()
    assert report["answer"] == [{"value": "few"}]
    assert statuses(report)["many"] == "skipped"


@pytest.mark.parametrize(
    ("on_error", "answer"), [({"fallback": {"value": 0}}, {"value": 0}), ({"instead": "b"}, {"value": "b"})]
)
async def test_on_error_gives_another_value(start: Start, on_error: Any, answer: Any) -> None:
    nodes = [
        call("a", "fail", on_error=on_error),
        call("b", args={"value": "b"}),
        call("c", args={"value": "$a.value"}),
    ]
    report = await (await start(plan={"nodes": nodes, "answer": "$a"})).result()
    assert report["answer"] == answer
    assert report["status"] == "done"


async def test_attempts_are_counted(start: Start) -> None:
    report = await (await start(plan={"nodes": [call("a", "flaky", args={"failures": 1})]})).result()
    assert report["nodes"][0]["attempts"] == 2


async def test_a_write_waits_for_approval_and_is_refused(start: Start) -> None:
    handle = await start(plan={"nodes": [call("w", "note", args={"text": "hello"})]}, on_failure="partial")
    view = await until(handle, lambda view: view["status"] == "blocked")
    assert view["blocked"][0]["update"] == "approve"
    await handle.execute_update("reject", {"node": "w", "reason": "no"})
    report = await handle.result()
    assert (report["status"], report["nodes"][0]["error"]) == ("partial", "Rejected: no")


async def test_an_island_runs_as_one_activity(start: Start) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("b", args={"value": "$a.value"}),
        call("c", args={"value": "$a.value"}),
        call("d", args={"value": "$b.value$c.value"}),
        call("e", args={"value": "$d.value"}),
    ]
    handle = await start(plan={"nodes": nodes, "groups": [["a", "b", "c", "d", "e"]]})
    report = await handle.result()
    assert report["answer"] == {"value": "11"}
    history = await handle.fetch_history()
    scheduled = [event for event in history.events if event.HasField("activity_task_scheduled_event_attributes")]
    kinds = [event.activity_task_scheduled_event_attributes.activity_type.name for event in scheduled]
    assert kinds == ["prepare", "group"]


@pytest.mark.parametrize("wrong", [{"gaol": "x"}, {}, [], ["x"], "x", 7, None, {"goal": ""}, {"plan": 3}])
async def test_a_wrong_input_is_refused_by_name(start: Start, wrong: Any) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await (await start(wrong)).result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "InvalidRequest"


async def test_an_output_that_is_too_big_fails_its_node_with_a_short_reason(start: Start) -> None:
    nodes = [call("a", "make", args={"bytes": 50 * 1024 * 1024})]
    report = await (await start(plan={"nodes": nodes}, on_failure="partial")).result()
    assert report["nodes"][0]["error"].startswith("OutputRefused: the output has 52,428,811 bytes; at most 16,777,216.")


async def test_a_result_that_is_not_json_fails_its_node(start: Start) -> None:
    report = await (
        await start(plan={"nodes": [call("a", "make", args={"kind": "nan"})]}, on_failure="partial")
    ).result()
    assert "JSON" in report["nodes"][0]["error"]


async def test_a_run_under_fail_fails_with_its_report(start: Start) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await (await start(plan={"nodes": [call("a", "fail")]}, on_failure="fail")).result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert failed.value.cause.type == "RunFailed"
    assert failed.value.cause.details[0]["status"] == "failed"
