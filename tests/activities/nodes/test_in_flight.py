"""When a write goes on although its activity is cancelled."""

import asyncio
from types import SimpleNamespace

import pytest
from temporalio.activity import ActivityCancellationDetails

from sennit.activities.nodes import in_flight
from sennit.activities.nodes.in_flight import finish

ASKED = ActivityCancellationDetails(cancel_requested=True)


@pytest.mark.parametrize(
    ("details", "times", "stopping", "goes_on"),
    [
        pytest.param(ASKED, 1, False, True, id="its node or its run is cancelled: that waits for it"),
        pytest.param(ActivityCancellationDetails(not_found=True), 1, False, True, id="its run is over"),
        pytest.param(ActivityCancellationDetails(timed_out=True), 1, False, True, id="it was taken for lost"),
        pytest.param(ActivityCancellationDetails(paused=True), 1, False, True, id="it is paused"),
        pytest.param(None, 1, True, False, id="the worker stops it"),
        pytest.param(ActivityCancellationDetails(worker_shutdown=True), 1, True, False, id="the worker shuts down"),
        pytest.param(ASKED, 1, True, True, id="cancelled while the worker drains"),
        pytest.param(ASKED, 2, True, False, id="cancelled, and then stopped by the worker"),
    ],
)
async def test_it_is_cut_off_only_when_its_worker_stops(
    monkeypatch: pytest.MonkeyPatch,
    details: ActivityCancellationDetails | None,
    times: int,
    stopping: bool,
    goes_on: bool,
) -> None:
    server = SimpleNamespace(cancellation_details=lambda: details, is_worker_shutdown=lambda: stopping)
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
    for _ in range(times):
        await asyncio.sleep(0)
        running.cancel()
    (ended,) = await asyncio.gather(running, return_exceptions=True)
    assert (ended == "written", ends) == (goes_on, [] if goes_on else ["cut off"])
