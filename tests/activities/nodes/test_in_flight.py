"""When a write goes on although its activity is cancelled."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.nodes import in_flight
from activities.nodes.in_flight import finish

GONE = ActivityCancellationDetails(not_found=True)
LOST = RPCError("no connection", RPCStatusCode.UNAVAILABLE, b"")


@pytest.mark.parametrize(
    ("details", "status", "goes_on"),
    [
        (GONE, WorkflowExecutionStatus.TERMINATED, True),
        (GONE, WorkflowExecutionStatus.CANCELED, False),
        (GONE, WorkflowExecutionStatus.COMPLETED, False),
        (GONE, LOST, True),
        (ActivityCancellationDetails(timed_out=True), WorkflowExecutionStatus.RUNNING, True),
        (None, WorkflowExecutionStatus.RUNNING, False),
        (ActivityCancellationDetails(cancel_requested=True), WorkflowExecutionStatus.RUNNING, False),
    ],
    ids=str,
)
async def test_it_goes_on_if_its_outcome_may_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, details: Any, status: Any, goes_on: bool
) -> None:
    async def describe() -> Any:
        if isinstance(status, Exception):
            raise status
        return SimpleNamespace(status=status)

    client = SimpleNamespace(get_workflow_handle=lambda *_, **__: SimpleNamespace(describe=describe))
    info = SimpleNamespace(workflow_id="run", workflow_run_id="r")
    server = SimpleNamespace(cancellation_details=lambda: details, info=lambda: info, client=lambda: client)
    monkeypatch.setattr(in_flight, "activity", server)
    ends: list[str] = []

    async def write() -> str:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            ends.append("cut off")
            raise
        return "written"

    running = asyncio.ensure_future(finish(write()))
    await asyncio.sleep(0)
    running.cancel()
    (ended,) = await asyncio.gather(running, return_exceptions=True)
    assert (ended == "written", ends) == (goes_on, [] if goes_on else ["cut off"])
