"""What becomes of a write in flight when its activity is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. It goes on after a cancellation if somebody may still ask for its outcome: the run that goes on
    after a reset, or the next attempt after one that was taken for lost. It is cut off when the node or the run is
    cancelled or over, and when the worker stops.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                if not await _may_be_asked_for():
                    raise
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    return task.result()


async def _may_be_asked_for() -> bool:
    details = activity.cancellation_details()
    if details is None or details.cancel_requested or details.paused:  # without details, this worker cancels it
        return False
    info = activity.info()
    run = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    try:
        status = (await run.describe()).status
    except RPCError:
        return True
    return status in (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.TERMINATED)
