"""What workers measure of tools, and keep for the runs to come."""

import asyncio
import time
from pathlib import Path

import pytest

from sennit.activities.storage import timings
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.timings import KEPT_CALLS, CallTimings


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    made = DirectoryStore(tmp_path)
    made.create()
    return made


def measured(store: DirectoryStore, *millis: float) -> CallTimings:
    """Return timings of calls that took about so long."""
    found = CallTimings()
    for each in millis:
        with found.measure("nap", "1"):
            time.sleep(each / 1000)
    return found


async def test_what_one_worker_measures_another_one_knows(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timings, "PAUSE_SECONDS", 0.0)
    one = measured(store, 20, 40)
    assert 25 <= (await one.millis(store, "ns", {"nap": "1"}))["nap"] <= 300
    await one.flush(store, "ns")
    known = await CallTimings().millis(store, "ns", {"nap": "1", "other": "1"})
    assert list(known) == ["nap"]
    assert 25 <= known["nap"] <= 300
    assert await CallTimings().millis(store, "ns", {"nap": "2"}) == {}
    assert await CallTimings().millis(store, "elsewhere", {"nap": "1"}) == {}


async def test_later_calls_count_more_than_what_was_known_long_ago(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timings, "PAUSE_SECONDS", 0.0)
    await store.mark(f"ns/{timings.PLACE}", "calls", b'{"nap 1":[1000000,5000]}')
    now = CallTimings()
    for _ in range(KEPT_CALLS):
        with now.measure("nap", "1"):
            """It takes no time."""
    await now.flush(store, "ns")
    assert 2_400 <= (await now.millis(store, "ns", {"nap": "1"}))["nap"] <= 2_600


async def test_a_call_that_fails_tells_nothing_and_what_cannot_be_read_is_measured_again(store: DirectoryStore) -> None:
    now = CallTimings()
    with pytest.raises(ValueError, match="no"), now.measure("nap", "1"):
        raise ValueError("no")
    await store.mark(f"ns/{timings.PLACE}", "calls", b"junk")
    assert await now.millis(store, "ns", {"nap": "1"}) == {}


async def test_nothing_is_written_more_often_than_it_has_to_be(store: DirectoryStore) -> None:
    now = measured(store, 1)
    await now.flush(store, "ns")
    assert await store.marked(f"ns/{timings.PLACE}", "calls") is None


@pytest.mark.parametrize(
    "text", [b'{"nap 1":[-1,5]}', b'{"nap 1":[1,' + b"9" * 4_000 + b"]}", b"[" * 100_000, b"\xff", b'{"nap 1":1}']
)
async def test_whatever_is_there_no_call_fails(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(timings, "PAUSE_SECONDS", 0.0)
    await store.mark(f"ns/{timings.PLACE}", "calls", text)
    assert await CallTimings().millis(store, "ns", {"nap": "1"}) == {}
    await measured(store, 1).flush(store, "ns")
    assert 1 <= (await CallTimings().millis(store, "ns", {"nap": "1"}))["nap"] <= 300


async def test_nothing_waits_for_a_store_that_does_not_answer(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def marked(*_: str) -> bytes | None:
        return await asyncio.Future()

    monkeypatch.setattr(timings, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(store, "marked", marked)
    async with asyncio.timeout(20):
        now = measured(store, 1)
        assert (await now.millis(store, "ns", {"nap": "1"}))["nap"] >= 1
        await now.flush(store, "ns")
