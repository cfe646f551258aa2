"""The store of a dry run: it shows what was written to it, and changes nothing in the store behind it."""

from pathlib import Path

import pytest
from doubles.stores import store_in

from sennit.activities.limits import MAX_SCRATCH_BYTES
from sennit.activities.storage.artifacts import MARKERS, BodyMissing, digest_of, reference_to
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.scratch import ScratchFull, ScratchStore

RUN = "default/run"


@pytest.fixture
def real(tmp_path: Path) -> DirectoryStore:
    """A store with a body and a marker that has another body in it."""
    return DirectoryStore(store_in(tmp_path / "store"))


def _files(store: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in store.rglob("*") if path.is_file()}


async def test_what_is_written_is_read_again_and_the_store_stays_as_it_was(
    real: DirectoryStore, tmp_path: Path
) -> None:
    known = await real.put(RUN, b"known")
    await real.mark(RUN, "kept", b"first")
    await real.mark(RUN, "gone", b"old")
    before = _files(tmp_path / "store")
    scratch = ScratchStore(real)

    new = await scratch.put(RUN, b"new")
    assert [await scratch.get(RUN, each) for each in (known, new)] == [b"known", b"new"]
    assert await scratch.has(RUN, new)
    assert await scratch.mark(RUN, "kept", b"second") == b"first"
    assert await scratch.mark(RUN, "claimed", b"mine") == b"mine"
    assert await scratch.mark(RUN, "claimed", b"yours") == b"mine"
    await scratch.unmark(RUN, "gone")
    assert await scratch.marked(RUN, "gone") is None
    assert await scratch.mark(RUN, "gone", b"again") == b"again"
    await scratch.replace_marker(RUN, "kept", b"third")
    assert await scratch.marked(RUN, "kept") == b"third"
    await scratch.delete(RUN, [known])
    assert await scratch.get(RUN, known) == b"known"

    assert _files(tmp_path / "store") == before
    assert await real.marked(RUN, "claimed") is None


async def test_a_body_in_a_marker_is_found(real: DirectoryStore) -> None:
    scratch = ScratchStore(real)
    await scratch.mark(RUN, "key", b"line\n[1]")
    reference = reference_to(b"[1]", "key")
    assert await scratch.has(RUN, reference)
    assert await scratch.get(RUN, reference) == b"[1]"
    with pytest.raises(BodyMissing):
        await scratch.get(RUN, reference_to(b"[2]", "key"))


async def test_markers_are_listed_once_wherever_they_lie(real: DirectoryStore) -> None:
    await real.mark(RUN, "kept", b"first")
    scratch = ScratchStore(real)
    await scratch.replace_marker(RUN, "kept", b"second")
    await scratch.mark(RUN, "claimed", b"mine")
    await scratch.mark("default/other", "claimed", b"mine")
    found = [each.name async for each in scratch.list_objects("default", "run") if each.name.startswith(MARKERS)]
    assert sorted(found) == [f"{MARKERS}claimed", f"{MARKERS}kept"]


async def test_it_keeps_only_so_much(real: DirectoryStore) -> None:
    scratch = ScratchStore(real)
    body = b"x" * (MAX_SCRATCH_BYTES // 2)
    assert await scratch.put(RUN, body) == digest_of(body)
    await scratch.put(RUN, body)  # which it has already
    with pytest.raises(ScratchFull):
        await scratch.put(RUN, b"y" * (MAX_SCRATCH_BYTES // 2 + 1))
