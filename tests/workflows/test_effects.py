"""Writes in real runs: what may have happened is never repeated unless a person says so."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.runs import call, insist, until
from doubles.tools import calls, posts
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError

from activities.nodes import runner
from activities.nodes.context import NodeContext, NodeOutput
from activities.nodes.error_mapping import OutputRefused
from activities.nodes.replies import keep
from activities.nodes.runner import NodeRunner

pytestmark = pytest.mark.server


def post(**args: Any) -> dict[str, Any]:
    return {"nodes": [call("w", "post", args={"text": "once", **args}, timeout="500ms")], "answer": "$w"}


async def blocked_on(handle: Handle, kind: str) -> str:
    """Wait until the run waits for a person because of the write; returns its error."""
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    (line,) = [line for line in view["nodes"] if line["id"] == "w"]
    assert line["error"].startswith(kind), line
    return str(line["error"])


def written(cache: Path, handle: Handle) -> tuple[list[str], list[str]]:
    run = handle.first_execution_run_id or ""
    return posts(cache, run), calls(cache, run)


@pytest.mark.parametrize(
    ("after", "error"),
    [
        ("crash", "post: RuntimeError: lost the connection; whether it took effect is not known"),
        ("no json", "it has taken effect"),
        ("hang", "no result within 0.5 s; whether it took effect is not known"),
    ],
)
async def test_a_write_of_unknown_outcome_is_tried_once_and_repeated_only_on_demand(
    start: Start, cache: Path, after: str, error: str
) -> None:
    handle = await start(plan=post(after=after), approval="never")
    assert error in await blocked_on(handle, "UnknownOutcome")
    assert written(cache, handle) == (["once"], ["w~1"])
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("retry_node", {"node": "w"})
    assert 'this may repeat what w wrote; add "repeat_effect": true' in str(refused.value.cause)
    await insist(handle, "retry_node", {"node": "w", "repeat_effect": True})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", {"posted": "once"})
    assert written(cache, handle) == (["once", "once"], ["w~1", "w~2"])


async def test_a_write_that_says_it_did_nothing_gets_two_attempts_and_no_more(start: Start, cache: Path) -> None:
    once = await start(plan=post(after="busy"), approval="never")
    handle = await start(plan=post(after="busy", times=9), approval="never")
    assert (await once.result())["answer"] == {"posted": "once"}
    assert written(cache, once) == (["once"], ["w~1", "w~1"])
    await blocked_on(handle, "ToolError")
    assert written(cache, handle) == ([], ["w~1", "w~1"])
    await insist(handle, "retry_node", {"node": "w"})
    await until(handle, lambda view: len(written(cache, handle)[1]) == 4)


async def test_a_map_whose_items_may_have_written_is_not_repeated_unasked(start: Start) -> None:
    write = {"kind": "tool", "tool": "post", "args": {"text": "item $item.n", "after": "crash"}}
    nodes = [call("n", "count", args={"count": 3}), {"id": "w", "kind": "map", "over": "$n.items", "do": write}]
    handle = await start(plan={"nodes": nodes, "answer": "$w"}, approval="never")
    await blocked_on(handle, "MapFailed")
    for given in ({"node": "w"}, {"node": "w[1]"}):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("retry_node", given)
        assert "this may repeat what w wrote" in str(refused.value.cause)


async def test_writes_of_a_map_are_not_repeated_when_only_their_gathering_failed(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took longer than any item may, and then its list could not be kept."""
    full = [True]

    async def keeps(*args: Any, **options: Any) -> Any:
        if activity.info().activity_id == "w" and full.pop():
            raise OutputRefused("the output has too many bytes")
        return await keep(*args, **options)

    async def gathers(nodes: NodeRunner, context: NodeContext, *more: Any) -> NodeOutput:
        if context.address.path == "w":
            await asyncio.sleep(0.6)
        return await run(nodes, context, *more)

    run = NodeRunner.output
    monkeypatch.setattr(runner, "keep", keeps)
    monkeypatch.setattr(NodeRunner, "output", gathers)
    write = {"kind": "tool", "tool": "post", "args": {"text": "$item"}, "timeout": "500ms"}
    nodes = [call("l", args={"value": ["a", "b"]}), {"id": "w", "kind": "map", "over": "$l.value", "do": write}]
    handle = await start(plan={"nodes": nodes, "answer": "$w"}, approval="never")
    await blocked_on(handle, "OutputRefused")
    await insist(handle, "retry_node", {"node": "w"})
    assert (await handle.result())["answer"] == [{"posted": "a"}, {"posted": "b"}]
    assert sorted(written(cache, handle)[0]) == ["a", "b"]
