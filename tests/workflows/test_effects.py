"""Writes in real runs: what may have happened is never repeated unless a person says so."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.resets import reset
from doubles.runs import call, insist, until
from doubles.tools import calls, posts
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowUpdateFailedError

from sennit.activities.nodes import runner
from sennit.activities.nodes.context import NodeContext
from sennit.activities.nodes.error_mapping import OutputRefused
from sennit.activities.nodes.replies import encode_output
from sennit.activities.nodes.runner import NodeRunner


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
        ("crash", "post: RuntimeError: lost the connection (tools.py:"),
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


async def test_a_write_that_returns_what_it_does_not_declare_is_recorded_as_made(
    start: Start, client: Client, cache: Path
) -> None:
    plan = {"nodes": [call("w", "sign", args={"text": "once"})], "answer": "$w"}
    handle = await start(plan=plan, approval="never")
    error = await blocked_on(handle, "BadOutput: sign returned None, which is not what it declares: must be an object")
    assert error.endswith("; its write was made all the same")
    view = await handle.query("plan")
    assert view["writes"] == [{"node": "w", "status": "made"}]
    assert "--repeat-effect" in view["blocked"][0]["command"]
    failed = EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED
    again = await reset(client, handle, lambda event: event.event_type == failed)
    await blocked_on(again, "BadOutput: sign returned None")
    assert written(cache, handle) == (["once"], ["w~1"])
    await insist(again, "skip_node", {"node": "w"})
    report = await again.result()
    assert (report["status"], report["writes"]) == ("partial", [{"node": "w", "status": "made"}])


async def test_a_write_that_says_it_did_nothing_gets_two_attempts_and_no_more(start: Start, cache: Path) -> None:
    once = await start(plan=post(after="busy"), approval="never")
    handle = await start(plan=post(after="busy", times=9), approval="never")
    assert (await once.result())["answer"] == {"posted": "once"}
    assert written(cache, once) == (["once"], ["w~1", "w~1"])
    await blocked_on(handle, "ToolError")
    assert written(cache, handle) == ([], ["w~1", "w~1"])
    await insist(handle, "retry_node", {"node": "w"})
    await until(handle, lambda view: len(written(cache, handle)[1]) == 4)


async def test_writes_of_a_map_are_not_repeated_when_only_their_gathering_failed(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took longer than any item may, and then its list could not be kept."""
    full = [True]

    def encodes(output: Any) -> bytes:
        if activity.info().activity_id == "w" and full and full.pop():
            raise OutputRefused("the output has too many bytes")
        return encode_output(output)

    async def gathers(nodes: NodeRunner, context: NodeContext, *more: Any) -> runner.Work:
        if context.unit.path == "w":
            await asyncio.sleep(0.6)
        return await ready(nodes, context, *more)

    ready = NodeRunner._ready
    monkeypatch.setattr(runner, "encode_output", encodes)
    monkeypatch.setattr(NodeRunner, "_ready", gathers)
    write = {"kind": "tool", "tool": "post", "args": {"text": "$item"}, "timeout": "500ms"}
    asks = call("z", when={"ref": "${w[0].posted}", "op": "exists"})  # so that an activity gathers
    nodes = [call("l", args={"value": ["a", "b"]}), {"id": "w", "kind": "map", "over": "$l.value", "do": write}, asks]
    handle = await start(plan={"nodes": nodes, "answer": "$w"}, approval="never")
    await blocked_on(handle, "OutputRefused")
    await insist(handle, "retry_node", {"node": "w"})
    assert (await handle.result())["answer"] == [{"posted": "a"}, {"posted": "b"}]
    assert sorted(written(cache, handle)[0]) == ["a", "b"]


def notes(cache: Path) -> str:
    file = cache / "notes.txt"
    return file.read_text() if file.exists() else ""


SCRIPT = """
async def main():
    try:
        await post(text="once", after="crash")
    except RuntimeError:
        await note(text="it failed, so something else is done")
    return "done"
"""


async def test_no_script_is_told_of_a_write_in_doubt_before_a_person_has_decided(start: Start, cache: Path) -> None:
    """Nor is anything else, as the scheduler's own tests show; the command that the run shows works."""
    plan = {"nodes": [{"id": "main", "kind": "program", "script": SCRIPT}], "answer": "$main"}
    handle = await start(plan=plan, approval="never")
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    (item,) = view["blocked"]
    assert (item["update"], item["also"]) == ("retry_node", ["skip_node", "answer"])
    assert "UnknownOutcome" in item["question"]
    others = {line["id"]: line["status"] for line in view["nodes"] if line["id"] not in (item["node"], "main")}
    assert set(others.values()) <= {"pending"}, others
    assert "something else" not in notes(cache)
    assert item["command"].split()[:4] == ["sennit", "retry", handle.id, item["node"]]
    await insist(handle, "retry_node", item["example"])
    report = await handle.result()
    assert (report["status"], report["writes"]) == ("done", [])
    assert "something else" not in notes(cache)
