"""A run longer than one history goes on in the next, with everything it knew."""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.runs import call, until
from doubles.tools import calls
from temporalio.client import Client, WorkflowHandle

from workflows import engine

pytestmark = pytest.mark.server
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


@pytest.fixture(autouse=True)
def short_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continue as new after a few dozen events instead of twenty thousand."""
    monkeypatch.setattr(engine, "DRAIN_EVENTS", 60)


async def chain_of(client: Client, handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the run ids of a workflow id, first run first."""
    runs = [run async for run in client.list_workflows(f"WorkflowId = '{handle.id}'")]
    return [run.run_id for run in sorted(runs, key=lambda run: run.start_time)]


async def test_nothing_runs_twice_across_a_chain_of_runs(start: Start, client: Client, cache: Path) -> None:
    nodes = [
        call(f"n{i}_{lane}", args={"value": f"$n{i - 1}_{lane}.value." if i else "."})
        for i in range(15)
        for lane in "ab"
    ]
    nodes.append({"id": "j", "kind": "join", "inputs": ["n14_a", "n14_b"]})
    handle = await start(plan={"nodes": nodes})
    report = await handle.result()
    assert report["answer"] == [{"value": "." * 15}] * 2
    assert len(report["nodes"]) == 31
    assert {line["attempts"] for line in report["nodes"]} == {1}
    run_ids = await chain_of(client, handle)
    assert len(run_ids) >= 3
    counted = Counter(calls(cache, run_ids[0]))
    assert set(counted.values()) == {1}
    assert len(counted) == 30


async def test_gates_updates_and_failures_survive_the_change(start: Start, client: Client) -> None:
    nodes = [
        call("bad", "fail"),
        {"id": "g", "kind": "gate", "question": "Go on?"},
        *(call(f"n{i}", needs=[f"n{i - 1}"] if i else []) for i in range(20)),
        call("last", args={"value": "$g"}, needs=["n19"]),
        {"id": "j", "kind": "join", "inputs": ["last", "bad"], "policy": "settled"},
    ]
    handle = await start(plan={"nodes": nodes})
    await until(handle, lambda view: view["status"] == "blocked")
    assert len(await chain_of(client, handle)) >= 2
    current = client.get_workflow_handle(handle.id)
    await current.execute_update("answer", {"node": "g", "value": "yes"})
    report = await handle.result()
    assert [item["status"] for item in report["answer"]] == ["succeeded", "failed"]
    assert report["answer"][0]["value"] == {"value": "yes"}
    assert report["answer"][1]["error"] == "ToolError: went wrong"


async def test_a_run_started_like_a_continued_one_starts_afresh(start: Start, client: Client) -> None:
    """The web UI's form fills in the carried state of the run it copies; it belongs to that run alone."""
    nodes = [call(f"n{i}", args={"value": f"$n{i - 1}.value." if i else "."}) for i in range(15)]
    handle = await start(plan={"nodes": nodes})
    await handle.result()
    last = client.get_workflow_handle(handle.id, run_id=(await chain_of(client, handle))[-1])
    history = await last.fetch_history()
    payload = history.events[0].workflow_execution_started_event_attributes.input.payloads[0]
    copied = client.data_converter.payload_converter.from_payload(payload)
    assert "carry" in copied
    report = await (await start(copied)).result()
    assert report["answer"] == {"value": "." * 15}
    assert all(line["attempts"] == 1 for line in report["nodes"])
