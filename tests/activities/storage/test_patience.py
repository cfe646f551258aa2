"""Calls of a store that is away for a moment, or that refuses."""

import asyncio
from pathlib import Path

import pytest
from doubles.stores import new_store

from sennit.activities.storage.artifacts import StoreUnavailable, digest_of
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.patience import PatientStore, stops_for_the_store

RUN = "default/run"


class Refusing(DirectoryStore):
    """A store that is there, and refuses so many bodies."""

    left = 0
    tries = 0

    async def put(self, run_prefix: str, body: bytes) -> str:
        self.tries += 1
        self.left -= 1
        if self.left >= 0:
            raise StoreUnavailable("disk full")
        return await super().put(run_prefix, body)


def patient(store: DirectoryStore, seconds: float) -> tuple[PatientStore, list[StoreUnavailable]]:
    missed: list[StoreUnavailable] = []
    return PatientStore(store, lambda: seconds, missed.append), missed


async def test_calls_wait_for_a_store_that_is_away_and_have_their_results(tmp_path: Path) -> None:
    place, away = tmp_path / "store", tmp_path / "away"
    store, missed = patient(new_store(place), 60.0)
    digest = await store.put(RUN, b"body")
    await store.mark(RUN, "k", b"mine")
    place.rename(away)
    calls = [
        asyncio.ensure_future(call)
        for call in (
            store.get(RUN, digest),
            store.has(RUN, digest),
            store.marked(RUN, "k"),
            store.mark(RUN, "k", b"other"),
            store.mark(RUN, "new", b"new"),
            store.put(RUN, b"more"),
            store.unmark(RUN, "gone"),
            store.replace_marker(RUN, "replaced", b"new"),
            store.delete(RUN, ["gone"]),
        )
    ]
    while len(missed) < 3 * len(calls):
        await asyncio.sleep(0.01)
    assert not any(call.done() for call in calls)
    away.rename(place)
    found = await asyncio.wait_for(asyncio.gather(*calls), 30)
    assert found[:5] == [b"body", True, b"mine", b"mine", b"new"]
    assert found[5] == digest_of(b"more")


async def test_patience_ends(tmp_path: Path) -> None:
    place = tmp_path / "store"
    store, missed = patient(new_store(place), 0.3)
    place.rename(tmp_path / "away")
    with pytest.raises(StoreUnavailable, match=r"there is no \.store-id"):
        await store.marked(RUN, "k")
    assert missed


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_store_that_is_there_is_asked_twice(tmp_path: Path, refusals: int) -> None:
    new_store(tmp_path)
    refusing = Refusing(tmp_path)
    refusing.left = refusals
    store, missed = patient(refusing, 60.0)
    if refusals == 1:
        await store.put(RUN, b"body")
    else:
        with pytest.raises(StoreUnavailable, match="disk full"):
            await store.put(RUN, b"body")
    assert (refusing.tries, missed) == (2, [])


async def test_a_limit_of_time_stands_still_while_the_store_is_asked_and_then_goes_on(tmp_path: Path) -> None:
    place, away = tmp_path / "store", tmp_path / "away"
    store, missed = patient(new_store(place), 60.0)
    place.rename(away)
    waited = list[bool]()

    async def work(limit: asyncio.Timeout) -> None:
        async with limit:
            with stops_for_the_store(limit):
                calls = asyncio.gather(store.has(RUN, "a"), store.marked(RUN, "k"))
                while len(missed) < 8:  # each has looked after 0.1, 0.3 and 0.7 s
                    await asyncio.sleep(0.01)
                away.rename(place)
                found, _ = await calls
                waited.append(not found)
                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await work(asyncio.timeout(0.2))
    assert waited == [True]


async def test_a_call_that_is_left_behind_moves_no_limit_that_is_over(tmp_path: Path) -> None:
    place = tmp_path / "store"
    store, _ = patient(new_store(place), 60.0)
    place.rename(tmp_path / "away")
    limit = asyncio.timeout(0.1)
    async with limit:
        with stops_for_the_store(limit):
            left = asyncio.ensure_future(store.has(RUN, "a"))
            await asyncio.sleep(0)
    (tmp_path / "away").rename(place)
    assert not await left
