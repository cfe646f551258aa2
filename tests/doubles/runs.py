"""Waiting on runs in tests: on conditions, never on time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doubles.tools import calls
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError

View = dict[str, Any]
LONGEST = 100.0  # seconds, on a busy machine
LONGEST_PAUSE = 0.25


async def until(handle: WorkflowHandle[Any, Any], holds: Callable[[View], bool], *, limit: float = LONGEST) -> View:
    """Ask the query `plan` until the condition holds; returns the view. Raises TimeoutError with the last view, and
    RuntimeError with the cause where the run has failed.
    """
    view: View = {}
    pause = 0.03
    try:
        async with asyncio.timeout(limit):
            while True:
                try:
                    view = await handle.query("plan")
                except RPCError:
                    await asyncio.sleep(0.1)
                    continue
                if holds(view):
                    return view
                if view["status"] == "failed" and (await handle.describe()).status == WorkflowExecutionStatus.FAILED:
                    raise RuntimeError("the run has failed") from await failure_of(handle)
                await asyncio.sleep(pause)
                pause = min(1.3 * pause, LONGEST_PAUSE)  # each look costs a query, and without a cache a replay
    except TimeoutError:
        raise TimeoutError(f"the run never got there; last seen: {str(view)[:2_000]}") from None


async def failure_of(handle: WorkflowHandle[Any, Any]) -> BaseException | None:
    """Return why a run has failed."""
    try:
        await handle.result()
    except WorkflowFailureError as failed:
        return failed.cause
    return None


async def happens(holds: Callable[[], bool], *, limit: float = LONGEST) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(limit):
        while not holds():
            await asyncio.sleep(0.02)


async def insist(handle: WorkflowHandle[Any, Any], name: str, given: Any) -> str:
    """Send an update until the run is ready for it.

    A query may already see the end of a node which the run's next task is only about to take, and an update that
    comes in that same task meets the run as it was before; or the run has just continued as new.
    """
    while True:
        try:
            confirmation: str = await handle.execute_update(name, given)
        except WorkflowUpdateFailedError as refused:
            if not any(soon in str(refused.cause) for soon in ("is running", "try again in a moment")):
                raise
            await asyncio.sleep(0.05)
        else:
            return confirmation


async def approve(handle: WorkflowHandle[Any, Any], node: str, **more: Any) -> str:
    """Approve what a node asks, as it is shown, once it asks."""
    view = await until(handle, lambda view: any(item["node"] == node for item in view["blocked"]))
    [item] = [item for item in view["blocked"] if item["node"] == node]
    return await insist(handle, "approve", {**item["example"], **more})


def status_of(view: View, node: str) -> str:
    """Return a node's status in a view; `absent` while there is no plan."""
    found: dict[str, str] = {line["id"]: line["status"] for line in view["nodes"]}
    return found.get(node, "absent")


def call(name: str, tool: str = "nap", **fields: Any) -> dict[str, Any]:
    """Return a tool node; `args` and common fields as given."""
    return {"id": name, "kind": "tool", "tool": tool, **fields}


def called(cache: Path, handle: WorkflowHandle[Any, Any]) -> Counter[str]:
    """How often a run has called its tools, by node and generation: `n7~1`."""
    return Counter(calls(cache, handle.first_execution_run_id or ""))


async def board(handle: WorkflowHandle[Any, Any]) -> str:
    """What a run shows under Current Details."""
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details


async def early_calls(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the ids of the calls that a run has made early."""
    found = []
    async for event in handle.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "prefetch":
            found.append(scheduled.activity_id)
    return found
