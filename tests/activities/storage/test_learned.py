"""What lies beside the artifacts of what runs have called: by whom it can be read, and what a crash leaves of it."""

import asyncio
from pathlib import Path

import pytest
from doubles.stores import new_store

from sennit.activities.storage import learned
from sennit.activities.storage.artifacts import ArtifactStore
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.learned import LearnedStore
from sennit.workflows.plan.learning.trajectory import NotedCall, Trajectory

PREFIX = f"ns/{learned.PLACE}"
POISON = [b"", b"{", b'{"form":1,"run":"r1","calls":[{"name":"a b"}]}', b"\xff" * 100]


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return new_store(tmp_path)


def run_of(name: str) -> Trajectory:
    first = NotedCall(name="search", kind="tool", began=0, millis=5)
    second = NotedCall(name="read", kind="tool", began=5, millis=5, uses=(0,))
    return Trajectory(run=name, status="done", ended=1, calls=(first, second))


async def names_in(store: ArtifactStore) -> list[str]:
    found = [each.name.partition(".")[2] async for each in store.list_objects("ns", learned.PLACE)]
    return sorted(filter(None, found))  # the key has no tenant


async def test_what_one_worker_notes_another_one_knows_and_other_tenants_do_not(store: DirectoryStore) -> None:
    await LearnedStore(store).note("ns", "acme", run_of("r1"))
    await LearnedStore(store).note("ns", "acme", run_of("r2"))
    found = await LearnedStore(store).read("ns", "acme")
    assert (found.fresh, found.table.runs, found.table.pairs["search -> read"].used) == (2, 2, 2)
    assert (await LearnedStore(store).read("ns", "other")).table.runs == 0
    assert (await LearnedStore(store).read("elsewhere", "acme")).table.runs == 0


async def test_marks_tell_equal_values_in_one_store_alone(store: DirectoryStore, tmp_path: Path) -> None:
    ours, again = await LearnedStore(store).marks("ns"), await LearnedStore(store).marks("ns")
    theirs = await LearnedStore(new_store(tmp_path / "other")).marks("ns")
    assert ours.of({"a": 1, "b": 2}) == again.of({"b": 2, "a": 1})
    assert ours.of("a") != theirs.of("a")


async def test_a_run_that_ends_again_takes_the_place_of_its_first_end(store: DirectoryStore) -> None:
    for _ in range(2):
        await LearnedStore(store).note("ns", "", run_of("r1"))
    assert (await LearnedStore(store).read("ns", "")).table.runs == 1


async def test_gc_folds_the_runs_into_one_table_which_teaches_the_same(store: DirectoryStore) -> None:
    known = LearnedStore(store)
    for number in range(3):
        await known.note("ns", "acme", run_of(f"r{number}"))
    await known.note("ns", "", run_of("r9"), b'{"messages": []}')
    before = (await known.read("ns", "acme")).table
    done = await known.compact("ns")
    assert (done.runs, done.tenants, done.ignored) == (4, 2, 0)
    after = await known.read("ns", "acme")
    assert (after.fresh, after.table.pairs, after.table.runs) == (0, before.pairs, 3)
    assert await names_in(store) == ["r9.values", "table", "table"]
    await known.note("ns", "acme", run_of("r4"))
    await known.compact("ns")
    assert (await known.read("ns", "acme")).table.runs == 4
    done = await known.compact("ns")
    assert (done.runs, done.tenants) == (0, 0)


async def test_after_a_crash_between_table_and_deletion_a_run_counts_once(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = LearnedStore(store)
    await known.note("ns", "", run_of("r1"))
    with monkeypatch.context() as crashing:
        crashing.setattr(store, "delete", _crash)
        with pytest.raises(KeyboardInterrupt):
            await known.compact("ns")
    assert await names_in(store) == ["r1.run", "table"]
    assert (await known.read("ns", "")).table.runs == 1
    await known.compact("ns")
    assert await names_in(store) == ["table"]
    assert (await known.read("ns", "")).table.runs == 1


async def _crash(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"form":1,"run":"r1","calls":[{"name":"a b"}]}', b"\xff" * 100], ids=range(4)
)
async def test_a_poisoned_object_is_passed_over_counted_and_deleted(store: DirectoryStore, body: bytes) -> None:
    known = LearnedStore(store)
    await known.note("ns", "", run_of("r1"))
    owner = (await known.marks("ns")).of_tenant("")
    await store.replace_marker(PREFIX, f"{owner}.r2.run", body)
    found = await known.read("ns", "")
    assert (found.fresh, found.ignored) == (1, 1)
    assert (await known.compact("ns")).ignored == 1
    assert await names_in(store) == ["table"]


async def test_a_poisoned_table_is_counted_and_made_anew(store: DirectoryStore) -> None:
    known = LearnedStore(store)
    await known.note("ns", "", run_of("r1"))
    owner = (await known.marks("ns")).of_tenant("")
    await store.replace_marker(PREFIX, f"{owner}.table", b'{"form":1,"runs":-5}')
    assert ((await known.read("ns", "")).table.runs, (await known.read("ns", "")).ignored) == (1, 1)
    await known.compact("ns")
    found = await known.read("ns", "")
    assert (found.table.runs, found.ignored) == (1, 0)


async def test_what_is_forgotten_is_gone_and_nothing_else(store: DirectoryStore) -> None:
    known = LearnedStore(store)
    await known.note("ns", "acme", run_of("r1"), b"{}")
    await known.compact("ns")
    await known.note("ns", "acme", run_of("r2"))
    await known.note("ns", "other", run_of("r3"))
    assert await known.forget("ns", "acme") == 3
    assert (await known.read("ns", "acme")).table.runs == 0
    assert (await known.read("ns", "other")).table.runs == 1


async def test_a_planner_waits_for_no_store(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "WAIT_SECONDS", 0.05)
    known = LearnedStore(store)
    await known.note("ns", "", run_of("r1"))
    assert (await known.hints("ns", "")).table.runs == 1

    async def marked(*_: str) -> bytes | None:
        return await asyncio.Future()

    monkeypatch.setattr(store, "marked", marked)
    assert (await known.hints("ns", "")).table.runs == 0
