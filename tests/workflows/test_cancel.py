"""A cancelled run: gone within seconds, its calls stopped, its partial results still there to be read."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from doubles.runs import call, status_of, until
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError

pytestmark = pytest.mark.server
Start = Callable[..., Awaitable[WorkflowHandle[Any, Any]]]
NODES = 50
SLOWEST = 5.0


async def gone(condition: Callable[[], bool], limit: float) -> None:
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.02)


async def cancelled(handle: WorkflowHandle[Any, Any]) -> None:
    """Cancel a run and wait until it is over, for some seconds at most."""
    await handle.cancel()
    async with asyncio.timeout(SLOWEST):
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)


def _all_left(folder: Path, mark: str) -> bool:
    return len(list(folder.glob(f"*.{mark}"))) == NODES


async def test_a_run_of_fifty_calls_is_cancelled_at_once_and_so_are_its_calls(start: Start, cache: Path) -> None:
    folder = cache / "cancel"
    nodes = [call(f"n{index}", "hang", args={"name": folder.name}) for index in range(NODES)]
    nodes += [call("quick", args={"value": 1}), call("behind", needs=["n0"])]
    handle = await start(plan={"nodes": nodes, "answer": "$quick"})
    await until(handle, lambda view: status_of(view, "quick") == "succeeded")
    await gone(partial(_all_left, folder, "begun"), 20)
    await cancelled(handle)
    await gone(partial(_all_left, folder, "cancelled"), SLOWEST)
    view = await handle.query("plan")
    assert view["status"] == "cancelled"
    assert view["counts"] == {"succeeded": 1, "cancelled": NODES + 1}
    assert (await handle.query("node", {"node": "quick"}))["preview"] == '{"value":1}'


async def test_a_parked_run_and_one_that_waits_at_a_gate_are_cancelled(start: Start) -> None:
    gate = await start(plan={"nodes": [{"id": "g", "kind": "gate", "question": "?"}]})
    parked = await start(plan={"nodes": [call("a", "fail"), call("b", needs=["a"])]})
    for handle in (gate, parked):
        await until(handle, lambda view: view["status"] == "blocked")
        await cancelled(handle)
        assert set((await handle.query("plan"))["counts"]) <= {"cancelled", "failed"}


async def test_a_run_is_cancelled_before_its_plan_is_there(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"seconds": 60})]})
    await cancelled(handle)
    description = await handle.describe()
    assert description.status == WorkflowExecutionStatus.CANCELED


async def test_a_group_is_cancelled_and_keeps_what_had_ended(start: Start, cache: Path) -> None:
    nodes = [
        call("a", args={"value": 1}),
        call("b", "hang", args={"name": "cancel-group"}, needs=["a"]),
        call("c", "hang", args={"name": "cancel-group"}, needs=["a"]),
    ]
    nodes += [{"id": "j", "kind": "join", "inputs": ["b", "c"]}]
    handle = await start(plan={"nodes": nodes, "groups": [["a", "b", "c"]]})
    folder = cache / "cancel-group"
    await gone(lambda: len(list(folder.glob("*.begun"))) == 2, 20)
    await cancelled(handle)
    await gone(lambda: len(list(folder.glob("*.cancelled"))) == 2, SLOWEST)
    assert (await handle.query("plan"))["status"] == "cancelled"


async def test_a_second_cancel_and_a_cancel_of_a_finished_run_change_nothing(start: Start) -> None:
    handle = await start(plan={"nodes": [call("a", args={"seconds": 60})]})
    await until(handle, lambda view: status_of(view, "a") == "running")
    await asyncio.gather(*(handle.cancel() for _ in range(3)))
    await cancelled_already(handle)
    done = await start(plan={"nodes": [call("a")]})
    await done.result()
    await done.cancel()
    assert (await done.query("plan"))["status"] == "done"


async def cancelled_already(handle: WorkflowHandle[Any, Any]) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
