"""Many nodes at once: what one workflow task, one payload and one server must not be asked to carry."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.events import activities, weight
from doubles.runs import call
from temporalio.client import WorkflowHandle

from workflows.plan.packing import pack_plan

pytestmark = pytest.mark.server
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


async def test_500_ready_nodes_with_10_kib_of_arguments_each(start: Start) -> None:
    """5 MiB of plan travel packed, and arguments stay in the store: history has a few hundred bytes a node."""
    nodes = [call(f"n{i}", args={"value": f"{i} " + "lorem ipsum " * 853}) for i in range(500)]
    plan = {"nodes": nodes, "answer": "$n499.value"}
    handle = await start({"plan_packed": pack_plan(plan), "window": 500})
    report = await handle.result()
    assert report["status"] == "done"
    assert {line["status"] for line in report["nodes"]} == {"succeeded"}
    assert len(report["answer"]) > 10_000
    events, size = await weight(handle)
    print(f"\n{events} events, {size / 500:.0f} bytes a node")
    assert size < 500 * 1_300  # the packed plan twice, and a preview of 160 characters each, included


async def test_a_map_of_500_items_stays_in_its_window(start: Start) -> None:
    nodes = [
        call("list", "count", args={"count": 500}),
        {"id": "m", "kind": "map", "over": "$list.items", "max_items": 500,
         "do": {"kind": "tool", "tool": "nap", "args": {"value": "$item.n"}}},
    ]  # fmt: skip
    handle = await start(plan={"nodes": nodes, "answer": "$m.length"}, window=50)
    report = await handle.result()
    assert report["answer"] == 500
    assert len(await activities(handle)) == 500 + 4


async def test_a_foreign_docs_folder_is_named(start: Start, tmp_path: Path) -> None:
    handle = await start(plan={"nodes": [call("a", "list_files")]}, docs=str(tmp_path / "none"))
    with pytest.raises(Exception, match="Workflow execution failed") as failed:
        await handle.result()
    assert "DocsNotFound" in repr(failed.value.__cause__)
