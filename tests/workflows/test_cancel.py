"""A cancelled run: it ends, its calls are stopped, and its partial results are still there to be read."""

import asyncio
from pathlib import Path

import pytest
from doubles.local_workers import Handle, Start
from doubles.runs import call, happens, status_of, until
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import CancelledError

pytestmark = pytest.mark.server
NODES = 50


async def ended(handle: Handle) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, CancelledError)


def count(cache: Path, mark: str) -> int:
    return len(list((cache / "cancel").glob(f"*.{mark}")))


async def test_fifty_calls_and_a_group_are_cancelled_with_their_run(start: Start, cache: Path) -> None:
    nodes = [call(f"n{index}", "hang", args={"name": "cancel"}) for index in range(NODES)]
    nodes += [call("quick", args={"value": 1}), call("behind", needs=["n0"]), call("a")]
    nodes += [call(name, "hang", args={"name": "cancel"}, needs=["a"]) for name in ("b", "c")]
    handle = await start(plan={"nodes": nodes, "answer": ["$quick", "$b", "$c"], "groups": [["a", "b", "c"]]})
    await until(handle, lambda view: status_of(view, "quick") == "succeeded")
    await happens(lambda: count(cache, "begun") == NODES + 2)
    await handle.cancel()
    await ended(handle)
    await happens(lambda: count(cache, "cancelled") == NODES + 2)
    view = await handle.query("plan")
    assert view["status"] == "cancelled"
    assert {status_of(view, name) for name in ("behind", "b", "c", "n0", "n49")} == {"cancelled"}
    assert (await handle.query("node", {"node": "quick"}))["preview"] == '{"value":1}'


async def test_runs_that_wait_or_have_only_just_started_are_cancelled(start: Start) -> None:
    gate = await start(plan={"nodes": [{"id": "g", "kind": "gate", "question": "?"}]})
    parked = await start(plan={"nodes": [call("a", "fail"), call("b", needs=["a"])]})
    for handle in (gate, parked):
        await until(handle, lambda view: view["status"] == "blocked")
    new = await start(plan={"nodes": [call("a", args={"seconds": 60})]})
    for handle in (gate, parked, new):
        await handle.cancel()
        await ended(handle)
        assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
        assert set((await handle.query("plan"))["counts"]) <= {"cancelled", "failed"}


async def test_a_second_cancel_and_a_cancel_of_a_finished_run_change_nothing(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"seconds": 60})]})
    await until(handle, lambda view: status_of(view, "a") == "running")
    await asyncio.gather(*(handle.cancel() for _ in range(3)))
    await ended(handle)
    done = await start(plan={"nodes": [call("a")]})
    await done.result()
    await done.cancel()
    assert (await done.query("plan"))["status"] == "done"
