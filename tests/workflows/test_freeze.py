"""A run whose scheduler breaks an invariant: it freezes, says what broke, and only a person moves it on."""

import html
import shlex
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start
from doubles.resets import reset_to
from doubles.runs import board, call, insist, until
from doubles.tools import calls, posts
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError

from sennit.starter.client.client import Sennit
from sennit.workflows.messages.result import WRITES
from sennit.workflows.plan.scheduling import ready
from sennit.workflows.plan.scheduling.state import RunState

BROKEN = "step._free raised KeyError: 'file', while it took NodeEnded of bad"
PLAN = {
    "nodes": [
        call("a", args={"value": 1}),
        call("bad", args={"seconds": 0.5, "value": 2}),
        call("w", "post", args={"text": "w", "seconds": 2.5}),
        call("long", args={"seconds": 60}),
        call("next", needs=["bad"], args={"value": 3}),
    ],
    "answer": ["$next", "$a"],
    "fuse": "off",
}


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A fault in the scheduler: it frees a lock of `bad` that was never taken. Undone, the worker is mended."""
    plain = ready.release

    def release(state: RunState, unit: int) -> None:
        if state.path(unit) == "bad":
            raise KeyError("file")
        plain(state, unit)

    monkeypatch.setattr(ready, "release", release)
    return monkeypatch


def called(cache: Path, handle: Handle) -> list[str]:
    return sorted(calls(cache, handle.first_execution_run_id or ""))


async def frozen(start: Start) -> tuple[Handle, dict[str, Any]]:
    """Start the run, and return what it waits for when it is frozen."""
    handle = await start(plan=PLAN, approval="never")
    view = await until(handle, lambda view: view["status"] == "blocked")
    [item] = view["blocked"]
    return handle, item


@pytest.mark.usefixtures("fault")
async def test_a_frozen_run_says_what_broke_and_takes_nothing_but_its_end(
    client: Client, start: Start, cache: Path
) -> None:
    handle, item = await frozen(start)
    assert (item["why"], item["update"]) == ("frozen", "finish")
    assert BROKEN in item["question"]
    assert BROKEN in html.unescape(await board(handle))
    assert (await (await handle.describe()).memo())["sennit_waits_for"] == "frozen"
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("retry_node", {"node": "a"})
    assert "frozen" in str(refused.value.cause)
    await until(handle, lambda view: view["writes"] != [])
    view = await handle.query("plan")
    assert view["writes"] == [{"node": "w", "status": "made"}], "it ended after the freeze"
    await insist(handle, "finish", {})
    report = await handle.result()
    assert (report["status"], report.get("answer")) == ("partial", None)
    assert BROKEN in report["problem"]
    assert report["writes"][0] == {"node": "w", "status": "made"}
    assert "next~1" not in called(cache, handle), "nothing more has started"
    forked = await Sennit(client).find(handle.id)
    fork = await forked.fork()
    await client.get_workflow_handle(fork.id).terminate("it was begun: that is all")


@pytest.mark.usefixtures("fault")
async def test_a_frozen_run_can_be_cancelled_and_waits_for_its_writes(start: Start, cache: Path) -> None:
    handle, _ = await frozen(start)
    assert posts(cache, handle.first_execution_run_id or "") == ["w"]
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert (await (await handle.describe()).memo())[WRITES] == [{"node": "w", "status": "made"}]


async def test_a_mended_worker_goes_on_after_the_reset_that_the_run_suggests(
    client: Client, start: Start, cache: Path, fault: pytest.MonkeyPatch
) -> None:
    handle, item = await frozen(start)
    words = shlex.split(item["command"])
    assert words[:5] == ["temporal", "workflow", "reset", "--workflow-id", handle.id]
    fault.undo()
    again = await reset_to(client, handle, int(words[words.index("--event-id") + 1]))
    await until(again, lambda view: "next" in [line["id"] for line in view["nodes"] if line["status"] == "succeeded"])
    await insist(again, "skip_node", {"node": "long"})
    report = await again.result()
    assert (report["status"], report["answer"]) == ("done", [{"value": 3}, {"value": 1}])
    assert posts(cache, handle.first_execution_run_id or "") == ["w"], "it was written once"
