"""What every artifact store does, wherever it keeps its bodies."""

import asyncio
import time
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store as Bucket

from activities.storage.artifacts import MAX_BODY_BYTES, ArtifactStore, BodyMissing, digest_of
from activities.storage.location import open_store

RUN = "default/4f2a-run"


@pytest.fixture
def store(location: Path | str) -> ArtifactStore:
    return open_store(location)


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


def test_the_id_is_that_of_the_place(store: ArtifactStore, location: Path | str) -> None:
    other = location / "below" if isinstance(location, Path) else f"{location}/below"
    assert open_store(location).store_id == store.store_id != open_store(other).store_id
