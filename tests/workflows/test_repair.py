"""What people do to a run: retry a node, skip one, approve, answer, finish; and what happens if they do not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start, remembered_or_not
from doubles.runs import call, insist, status_of, until
from temporalio.client import WorkflowUpdateFailedError

HOLD = {"id": "hold", "kind": "gate", "question": "Go on?"}


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


def lines(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in report["nodes"]}


async def refused(handle: Handle, name: str, given: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await handle.execute_update(name, given)
    return str(failed.value.cause)


async def test_a_gate_asks_with_the_outputs_that_its_question_refers_to(start: Start) -> None:
    nodes = [
        call("draft", args={"value": "First line.\nSecond $${x} line."}),
        call("long", args={"value": "b" * 5_000}),
        {"id": "g", "kind": "gate", "question": "$input.what ${draft.value} for $$5?"},
        {"id": "h", "kind": "gate", "question": "Publish?\n\n${long.value}"},
    ]
    plan = {"nodes": nodes, "inputs": {"what": {"default": "Publish"}}, "answer": ["$g", "$h"]}
    handle = await start(plan=plan)
    view = await until(handle, lambda view: len(view["blocked"]) == 2)
    asked = {item["node"]: item for item in view["blocked"]}
    assert (asked["g"]["question"], asked["g"]["shown"]) == ("Publish First line.", "Second ${x} line. for $5?")
    text, note = asked["h"]["shown"].rsplit("\n", 1)
    before, _, whole = note.partition("; the whole: ")
    assert (set(text), before) == ({"b"}, "… the first 4,000 of 5,010 characters")
    assert Path(whole).read_text() == f"Publish?\n\n{'b' * 5_000}"
    assert {line["id"]: line["needs"] for line in view["nodes"]}["g"] == ["draft"]
    for name in ("g", "h"):
        await insist(handle, "answer", {"node": name, "value": name})
    assert (await handle.result())["answer"] == ["g", "h"]


async def until_ended(handle: Handle) -> dict[str, Any]:
    """Finish the run if giving up a node has left it blocked; return its report."""
    view = await until(handle, lambda view: view["phase"] == "ended" or blocked(view))
    if blocked(view):
        await insist(handle, "finish", {})
    report: dict[str, Any] = await handle.result()
    return report


@remembered_or_not
async def test_updates_that_come_at_once_are_taken_in_order(start: Start) -> None:
    """Updates that come in one workflow task, before the run has had a turn, do not trip over each other."""
    last = {"id": "last", "kind": "gate", "question": "End?"}
    handle = await start(plan={"nodes": [call("a", "fail"), HOLD, last], "answer": ["$a", "$hold", "$last"]})
    await until(handle, lambda view: status_of(view, "a") == "failed")
    updates = [("retry_node", {"node": "a"})] * 5 + [("answer", {"node": "hold", "value": index}) for index in range(4)]
    updates += [("skip_node", {"node": "a"})] * 3
    taken = await asyncio.gather(*(handle.execute_update(*update) for update in updates), return_exceptions=True)
    for answer in taken:
        assert isinstance(answer, str | WorkflowUpdateFailedError), answer
    await until(handle, lambda view: blocked(view) and status_of(view, "hold") == "succeeded")
    await insist(handle, "answer", {"node": "last", "value": "bye"})
    await until_ended(handle)
    assert (await handle.result())["answer"][1] in range(4)
