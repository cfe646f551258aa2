"""What workers tell of times comes from the server, however wrong the clock of a worker is."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from doubles.stores import new_store
from temporalio.testing import ActivityEnvironment

from sennit.activities.nodes.effect_ledger import EffectLedger, Write
from sennit.activities.nodes.heartbeats import beating
from sennit.activities.nodes.server_time import millis_now, seconds_now
from sennit.activities.toolbox.errors import UnknownOutcome
from sennit.workflows.messages.contracts import NodeReply

STARTED = datetime(2030, 1, 1, tzinfo=UTC)


def activity_at(started: datetime) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=started)
    return environment


@pytest.fixture(params=[-3600, 20])
def wrong_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this machine is wrong by so many seconds."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + request.param)


@pytest.mark.usefixtures("wrong_clock")
async def test_an_activity_goes_by_the_server_and_by_what_it_has_measured() -> None:
    async def work() -> tuple[float, int]:
        with beating(tuple):
            begun = seconds_now()
            await asyncio.sleep(0.2)
            return begun, await asyncio.create_task(at_its_end())

    async def at_its_end() -> int:
        return millis_now()

    begun, ended = await activity_at(STARTED).run(work)
    assert 0 <= begun - STARTED.timestamp() < 0.1
    assert 200 <= ended - 1000 * STARTED.timestamp() < 5_000


@pytest.mark.usefixtures("wrong_clock")
async def test_two_workers_agree_until_when_a_write_may_be_in_flight(tmp_path: Path) -> None:
    """The first has left its intent, and its clock is right. The second waits no longer and no shorter for that."""
    store = new_store(tmp_path)
    write = Write("run/n1/1", "pay", "100", "{}", 0.5, idempotent=False)

    async def unmarked(_: str) -> NodeReply | None:
        return None

    ledger = EffectLedger(store, "space/run", unmarked)

    async def begin() -> None:
        with beating(tuple):
            await ledger.begin(write, write.intent())

    async def look() -> float:
        with beating(tuple):
            begun = time.monotonic()
            with pytest.raises(UnknownOutcome):
                await ledger.outcome(write)
            return time.monotonic() - begun

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: STARTED.timestamp())
        await activity_at(STARTED).run(begin)
    assert 1.0 < await activity_at(STARTED).run(look) < 60, "until its time is over"
    late = await activity_at(STARTED + timedelta(seconds=30)).run(look)
    assert late < 1.0, "its time was over when this one began"
