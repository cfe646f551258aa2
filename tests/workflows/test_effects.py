"""Writes in real runs: what may have happened is never repeated unless a person says so, and nothing meets a write."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.runs import call, insist, until
from doubles.tools import calls, posts
from temporalio import activity
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError

from activities.nodes import runner
from activities.nodes.context import NodeContext, NodeOutput
from activities.nodes.error_mapping import OutputRefused
from activities.nodes.replies import keep
from activities.nodes.runner import NodeRunner

pytestmark = pytest.mark.server
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]


def post(**args: Any) -> dict[str, Any]:
    return {"nodes": [call("w", "post", args={"text": "once", **args})], "answer": "$w"}


async def blocked_on(handle: WorkflowHandle[Any, Any], kind: str) -> str:
    """Wait until the run waits for a person because of the write; returns its error."""
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    (line,) = [line for line in view["nodes"] if line["id"] == "w"]
    assert line["error"].startswith(kind), line
    return str(line["error"])


def written(cache: Path, handle: WorkflowHandle[Any, Any]) -> tuple[list[str], list[str]]:
    run = handle.first_execution_run_id or ""
    return posts(cache, run), calls(cache, run)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("crash", "post: RuntimeError: lost the connection; whether it took effect is not known"),
        ("no json", "it has taken effect"),
        ("hang", "no result within 0.5 s; whether it took effect is not known"),
    ],
)
async def test_a_write_of_unknown_outcome_is_tried_once_and_repeated_only_on_demand(
    start: Start, cache: Path, after: str, said: str
) -> None:
    plan = post(after=after)
    plan["nodes"][0]["timeout"] = "500ms"
    handle = await start(plan=plan, approval="never")
    assert said in await blocked_on(handle, "UnknownOutcome")
    assert written(cache, handle) == (["once"], ["w~1"])
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("retry_node", {"node": "w"})
    assert 'this may repeat what w wrote; add "repeat_effect": true' in str(refused.value.cause)
    await insist(handle, "retry_node", {"node": "w", "repeat_effect": True})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", {"posted": "once"})
    assert written(cache, handle) == (["once", "once"], ["w~1", "w~2"])


async def test_a_write_of_unknown_outcome_can_be_skipped(start: Start, cache: Path) -> None:
    handle = await start(plan=post(after="crash"), approval="never")
    await blocked_on(handle, "UnknownOutcome")
    await insist(handle, "skip_node", {"node": "w"})
    assert (await handle.result())["nodes"][0]["status"] == "skipped"
    assert written(cache, handle) == (["once"], ["w~1"])


async def test_a_write_that_says_it_did_nothing_gets_two_attempts_and_no_more(start: Start, cache: Path) -> None:
    handle = await start(plan=post(after="busy"), approval="never")
    assert (await handle.result())["answer"] == {"posted": "once"}
    assert written(cache, handle) == (["once"], ["w~1", "w~1"])
    handle = await start(plan=post(after="busy", times=9), approval="never")
    await blocked_on(handle, "ToolError")
    assert written(cache, handle) == ([], ["w~1", "w~1"])
    await insist(handle, "retry_node", {"node": "w"})
    await until(handle, lambda view: len(written(cache, handle)[1]) == 4)


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    return one["start"] < other["end"] and other["start"] < one["end"]


async def test_a_write_meets_nobody_on_the_same_thing(start: Start) -> None:
    held = {"seconds": 0.7, "value": "a"}
    nodes = [
        call("r1", "span", args=held),
        call("r2", "span", args=held),
        call("w1", "change", args=held),
        call("w2", "change", args=held),
        call("other", "change", args={"seconds": 2, "value": "b"}),
    ]
    names = [node["id"] for node in nodes]
    handle = await start(plan={"nodes": nodes, "answer": [f"${name}" for name in names]}, approval="never")
    spans = dict(zip(names, (await handle.result())["answer"], strict=True))
    assert overlap(spans["r1"], spans["r2"])
    assert overlap(spans["other"], spans["r1"])
    for write, others in (("w1", ("r1", "r2", "w2")), ("w2", ("r1", "r2"))):
        assert not any(overlap(spans[write], spans[other]) for other in others)


async def test_items_of_a_map_are_judged_one_by_one(start: Start, cache: Path) -> None:
    write = {"kind": "tool", "tool": "post", "args": {"text": "item $item.n", "after": "$input.after"}}
    nodes = [
        call("n", "count", args={"count": 3}),
        {"id": "w", "kind": "map", "over": "$n.items", "as": "item", "do": write},
    ]
    inputs = {"after": {"type": "string", "default": "crash"}}
    handle = await start(plan={"nodes": nodes, "answer": "$w", "inputs": inputs}, approval="never")
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

    async def gathers(nodes: NodeRunner, context: NodeContext) -> NodeOutput:
        if context.address.path == "w":
            await asyncio.sleep(0.6)
        return await run(nodes, context)

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
