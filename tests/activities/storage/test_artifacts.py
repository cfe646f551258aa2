"""What every artifact store does, wherever it keeps its bodies."""

import asyncio
import errno
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store as Bucket

from sennit.activities.limits import MAX_BODY_BYTES
from sennit.activities.storage.artifacts import (
    ArtifactStore,
    BodyMissing,
    StoreUnavailable,
    digest_of,
    in_marker,
    reference_to,
)
from sennit.activities.storage.location import open_store

RUN = "default/4f2a-run"


@pytest.fixture
def store(location: Path | str) -> ArtifactStore:
    store = open_store(location)
    assert [store.create(), store.create()] == [True, False]
    return store


def overwrite(location: Path | str, name: str, body: bytes) -> None:
    """Write into the store as nobody should."""
    if isinstance(location, Path):
        (location / name).write_bytes(body)
        return
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    obstore.put(Bucket(bucket, prefix=prefix, client_options={"allow_http": True}), name, body)


async def test_a_body_is_found_under_its_digest_in_its_run_alone(store: ArtifactStore, location: Path | str) -> None:
    body = b"x" * MAX_BODY_BYTES
    digest = await store.put(RUN, body)
    assert digest == digest_of(body)
    assert await store.get(RUN, digest) == body
    assert await store.put(RUN, b"") == await store.put(RUN, b"")
    assert await store.has(RUN, digest)
    assert store.place(RUN, digest) == f"{location}/{RUN}/{digest}"
    assert not await store.has("default/other", digest)
    with pytest.raises(BodyMissing, match=f"no body {digest} under default/other"):
        await store.get("default/other", digest)


async def test_a_damaged_body_is_missing_until_it_is_put_again(store: ArtifactStore, location: Path | str) -> None:
    digest = await store.put(RUN, b"body")
    overwrite(location, f"{RUN}/{digest}", b"b0dy")
    with pytest.raises(BodyMissing, match="was damaged; it is gone now"):
        await store.get(RUN, digest)
    assert not await store.has(RUN, digest)
    await store.put(RUN, b"body")
    assert await store.get(RUN, digest) == b"body"


async def test_a_body_in_a_marker_is_read_by_its_reference(store: ArtifactStore, location: Path | str) -> None:
    body, key = b'"two\nlines"', digest_of(b"key")
    reference = reference_to(body, key)
    assert not await store.has(RUN, reference)
    await store.mark(RUN, key, in_marker(b'{"reply":{}}', body))
    assert await store.get(RUN, reference) == body
    assert await store.has(RUN, reference)
    assert store.place(RUN, reference) == f"{location}/{RUN}/done/{key}"
    for missing in (f"default/other {reference}", f"{RUN} {digest_of(body)}", f"{RUN} {reference_to(b'0', key)}"):
        with pytest.raises(BodyMissing):
            await store.get(*missing.split())
    overwrite(location, f"{RUN}/done/{key}", in_marker(b'{"reply":{}}', body[:-1]))
    with pytest.raises(BodyMissing, match="is damaged"):
        await store.get(RUN, reference)
    assert await store.marked(RUN, key), "the marker is for the node that finds it damaged to take back"


@pytest.mark.parametrize(
    "name",
    [
        "../../victim",
        f"{'a' * 40}.",
        f"{'a' * 40}./../../b",
        f"{'a' * 40}.{'b' * 39}",
        "../other/body",
        "",
        "A" * 40,
        "a" * 39,
        ".store-id",
    ],
)
async def test_what_is_no_digest_leads_to_no_file(store: ArtifactStore, location: Path | str, name: str) -> None:
    await store.put(RUN, b"body")
    await store.put("default/other", b"body")
    if isinstance(location, Path):
        (location / "victim").write_bytes(b"precious")
    assert not await store.has(RUN, name)
    with pytest.raises(BodyMissing, match=f"no body {re.escape(name)} under"):
        await store.get(RUN, name)
    assert not isinstance(location, Path) or (location / "victim").read_bytes() == b"precious"


async def test_of_many_who_mark_all_learn_who_was_first(store: ArtifactStore, location: Path | str) -> None:
    others = [open_store(location) for _ in range(3)]
    assert await store.marked(RUN, "k.intent") is None
    bodies = [str(number).encode() for number in range(12)]
    found = await asyncio.gather(*(others[i % 3].mark(RUN, "k.intent", body) for i, body in enumerate(bodies)))
    assert set(found) == {await store.marked(RUN, "k.intent")} < set(bodies)
    await store.unmark(RUN, "k.intent")
    await store.unmark(RUN, "k.intent")
    assert await store.marked(RUN, "k.intent") is None
    assert await store.mark(RUN, "k.intent", b"again") == b"again"


async def test_a_marker_is_replaced_and_never_missed(store: ArtifactStore, location: Path | str) -> None:
    await asyncio.gather(*(store.mark(RUN, key, b"1") for key in ("k", "other")))
    for body in (b"2", b"3", b"longer"):
        _, found = await asyncio.gather(store.replace_marker(RUN, "k", body), open_store(location).marked(RUN, "k"))
        assert found is not None
        assert await store.marked(RUN, "k") == body
    assert await store.marked(RUN, "other") == b"1"
    await store.replace_marker(RUN, "new", b"first")
    assert await store.mark(RUN, "new", b"second") == b"first"


async def test_markers_that_are_set_at_one_moment_lead_lives_of_their_own(
    store: ArtifactStore, location: Path | str
) -> None:
    bodies = {digest_of(b"%d" % number): b'"%d"' % number * (1 + 3999 * (number == 7)) for number in range(40)}
    markers = {key: in_marker(b'{"reply":{}}', body) for key, body in bodies.items()}
    first, *others = markers
    assert await store.mark(RUN, first, b"earlier") == b"earlier"
    found = await asyncio.gather(*(store.mark(RUN, *marker) for marker in markers.items()))
    assert found == [b"earlier", *list(markers.values())[1:]]
    gone, last = others[0], others[-1]
    await store.unmark(RUN, gone)
    for key in others[1:]:
        assert await store.marked(RUN, key) == markers[key]
        assert await store.get(RUN, reference_to(bodies[key], key)) == bodies[key]
    assert await store.marked(RUN, gone) is None
    assert await store.mark(RUN, gone, b"again") == b"again"
    sizes = [each.size async for each in store.list_objects("default")]
    assert sum(sizes) < 2 * sum(map(len, markers.values())), "one file with many names counts once"
    overwrite(location, f"{RUN}/done/{last}", b"\0 damaged")
    assert await store.marked(RUN, last) == b"\0 damaged"
    with pytest.raises(BodyMissing, match="is damaged"):
        await store.get(RUN, reference_to(bodies[last], last))


async def test_a_call_that_is_cancelled_before_its_turn_ends_marks_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create()
    others = [asyncio.create_task(store.mark(RUN, name, b"x")) for name in ("k.intent", "l.intent")]
    asyncio.get_running_loop().call_soon(others[0].cancel)
    await asyncio.wait(others)
    assert [await store.marked(RUN, name) for name in ("k.intent", "l.intent")] == [None, b"x"]


async def test_a_marker_that_cannot_be_set_beside_others_takes_none_of_them_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = open_store(tmp_path), os.link
    store.create()

    def link(source: str, name: str, **folders: Any) -> None:
        if name.endswith("b"):
            raise OSError(errno.ENOSPC, "no space left")
        real(source, name, **folders)

    monkeypatch.setattr(os, "link", link)
    found = await asyncio.gather(*(store.mark(RUN, key, key.encode()) for key in "abc"), return_exceptions=True)
    assert (found[0], isinstance(found[1], StoreUnavailable)) == (b"a", True)
    assert [await store.marked(RUN, key) for key in "ab"] == [b"a", None]
    assert (await store.marked(RUN, "c") is None) is isinstance(found[2], StoreUnavailable)


async def test_what_is_stored_is_listed_by_run_and_deleted_by_name(store: ArtifactStore) -> None:
    """A run's sub-agents come beside it. Other namespaces stay out of it."""
    run, other = (f"default/{letter * 36}" for letter in "ab")
    digest = await store.put(run, b"body")
    for prefix in (other, f"{run}-{'0' * 16}", run, f"default2/{'a' * 36}"):
        await store.mark(prefix, "k.intent", b"intent")
    found = [each async for each in store.list_objects("default")]
    assert {(each.run_prefix, each.name, each.size) for each in found} == {
        (run, digest, 4),
        (run, "done/k.intent", 6),
        (f"{run}-{'0' * 16}", "done/k.intent", 6),
        (other, "done/k.intent", 6),
    }
    assert [each.run_prefix[8] for each in found] == ["a", "a", "a", "b"]
    assert all(abs(each.changed - time.time()) < 3600 for each in found)
    await store.delete(run, [digest, "done/k.intent", "done/gone", "gone"])
    assert await store.marked(run, "k.intent") is None
    assert not await store.has(run, digest)
    assert len([each async for each in store.list_objects("default")]) == 2
    assert [each async for each in store.list_objects("nowhere")] == []


async def test_the_id_is_that_of_the_place(store: ArtifactStore, location: Path | str) -> None:
    other = open_store(location / "below" if isinstance(location, Path) else f"{location}/below")
    other.create()
    assert await open_store(location).identify() == await store.identify() != await other.identify()


class Place:
    """Where a store is, and what can happen to it."""

    def __init__(self, location: Path | str) -> None:
        self._location = location
        self._names = list[str]()

    def _bucket(self) -> Bucket:
        bucket, _, prefix = str(self._location).removeprefix("s3://").partition("/")
        return Bucket(bucket, prefix=prefix, client_options={"allow_http": True})

    @property
    def names(self) -> list[str]:
        """What lies there."""
        if isinstance(self._location, Path):
            return [str(path.relative_to(self._location)) for path in self._location.rglob("*")]
        return [each["path"] for page in obstore.list(self._bucket()) for each in page]

    def go(self, *, leaves: bool) -> None:
        """Move all away, as a volume that is unmounted leaves an empty folder, or none if it is no mount point."""
        if isinstance(self._location, Path):
            self._location.rename(self._location.with_name("away"))
            if leaves:
                self._location.mkdir()
            return
        self._names = self.names
        for name in self._names:
            obstore.rename(self._bucket(), name, f"away/{name}")

    def come_back(self) -> None:
        if isinstance(self._location, Path):
            if self._location.exists():
                shutil.rmtree(self._location)
            self._location.with_name("away").rename(self._location)
            return
        for name in self._names:
            obstore.rename(self._bucket(), f"away/{name}", name)


@pytest.mark.parametrize("leaves", [False, True], ids=["nothing", "an-empty-one"])
async def test_a_store_that_goes_away_is_never_taken_for_one_in_which_nothing_is(
    store: ArtifactStore, location: Path | str, leaves: bool
) -> None:
    place = Place(location)
    digest = await store.put(RUN, b"body")
    await store.mark(RUN, "k.intent", b"intent")
    place.go(leaves=leaves)
    late = open_store(location)  # a worker that starts meanwhile
    for each in (store, late):
        for call in (
            each.identify(),
            each.get(RUN, digest),
            each.has(RUN, digest),
            each.marked(RUN, "k.intent"),
            each.mark(RUN, "new.intent", b"mine"),
            *([each.put(RUN, b"body")] if isinstance(location, Path) else ()),
        ):
            with pytest.raises(StoreUnavailable, match=r"there is no \.store-id"):
                await call
    place.come_back()
    for each in (store, late):
        assert await each.marked(RUN, "k.intent") == await each.mark(RUN, "k.intent", b"other") == b"intent"
        assert await each.get(RUN, digest) == b"body"
        assert await each.marked(RUN, "nothing") is None


async def test_another_store_in_its_place_is_not_it(store: ArtifactStore, location: Path | str) -> None:
    place = Place(location)
    await store.mark(RUN, "k.intent", b"intent")
    place.go(leaves=True)
    other = open_store(location)
    assert other.create()
    for call in (store.identify(), store.marked(RUN, "k.intent"), store.mark(RUN, "k.intent", b"mine")):
        with pytest.raises(StoreUnavailable, match="another store is there now"):
            await call
    assert await other.marked(RUN, "other.intent") is None


async def test_event_loops_in_other_threads_use_the_store_at_once(store: ArtifactStore) -> None:
    """The worker's, and that of tools: neither closes what the other has opened."""

    async def use(name: str) -> None:
        for number in range(100):
            body = f"{name} {number}".encode()
            assert await store.get(RUN, await store.put(RUN, body)) == body
            await asyncio.sleep(0)

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, use(name)) for name in "ab"), use("c"))
