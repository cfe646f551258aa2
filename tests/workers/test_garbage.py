"""Garbage: what the server has forgotten goes, all of it and nothing else; with a real server and real runs."""

import asyncio
import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from doubles.local_workers import Handle, Start
from doubles.resets import reset
from doubles.runs import call, insist, until
from doubles.sennit_command import sennit
from doubles.stores import new_store
from temporalio.client import Client

from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.garbage import KnownRuns, Owner, claim
from sennit.activities.storage.timings import PLACE
from sennit.starter.dev.server import DevServer, free_port
from sennit.workers.garbage import Collection

MONTH = 30 * 86_400.0


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """A store of the test's own."""
    return tmp_path / "artifacts"


@pytest.fixture
def store(artifacts: Path) -> DirectoryStore:
    return new_store(artifacts)


def age(artifacts: Path, days: float = 40) -> None:
    """Make all that is stored look as old as that."""
    for path in artifacts.rglob("*"):
        os.utime(path, (time.time() - days * 86_400,) * 2, follow_symlinks=False)


def folders(artifacts: Path, handle: Handle | None = None) -> list[Path]:
    """Return the folders of a run and its sub-agents, or all."""
    first = handle.first_execution_run_id if handle else ""
    return sorted(artifacts.glob(f"default/{first}*"))


def forget(artifacts: Path, handle: Handle) -> None:
    """Give what a run has stored to a run that the server does not know: when it forgets one itself takes too long."""
    first, another = handle.first_execution_run_id or "", str(uuid.uuid4())
    for folder in folders(artifacts, handle):
        for marker in folder.glob("done/*.owner"):
            owner = Owner.model_validate_json(marker.read_bytes())
            marker.write_text(owner.model_copy(update={"run": str(uuid.uuid4())}).model_dump_json())
        folder.rename(folder.with_name(folder.name.replace(first, another)))


async def collected(store: DirectoryStore, client: Client, *, dry_run: bool = False) -> Collection:
    collection = Collection(dry_run, MONTH)
    await collection.run(store, client)
    return collection


def gone(collection: Collection) -> list[str]:
    return [each.workflow for each in collection.deleted]


DONE = {"nodes": [call("n", args={"value": 1})]}
AGENT = {"nodes": [{"id": "sub", "kind": "agent", "goal": "Impossible."}]}
GATE = {"nodes": [{"id": "g", "kind": "gate", "question": "Go on?"}]}


async def test_only_what_the_server_has_forgotten_goes(
    client: Client, start: Start, store: DirectoryStore, artifacts: Path
) -> None:
    """Runs that are over, blocked or reset stay, however old, and can go on. What is forgotten goes with all below."""
    over, parent = await start(plan=DONE), await start(plan=AGENT, on_failure="partial")
    blocked, renewed = await start(plan=GATE), await start(plan=DONE)
    await asyncio.gather(over.result(), parent.result(), renewed.result())
    await until(blocked, lambda view: bool(view["blocked"]))
    await (await reset(client, renewed)).result()
    assert (len(folders(artifacts, parent)), len(folders(artifacts))) == (2, 5)
    age(artifacts)
    assert gone(await collected(store, client)) == []
    forget(artifacts, parent)
    assert gone(await collected(store, client)) == [], "it is not old"
    age(artifacts)
    found = await collected(store, client, dry_run=True)
    (run,) = found.deleted
    files = [path for path in artifacts.glob(f"default/{run.run}*/**/*") if path.is_file()]
    assert (run.workflow, found.kept) == (parent.id, 3)
    assert (len(run.objects), run.size) == (len(files), sum(map(os.path.getsize, files)))
    assert len(folders(artifacts)) == 5
    both = await asyncio.gather(collected(store, client), collected(store, client))
    assert {tuple(gone(each)) for each in both} <= {(parent.id,), ()}
    assert len(folders(artifacts)) == 3
    assert (await (await reset(client, renewed)).result())["answer"] == {"value": 1}
    await insist(blocked, "answer", {"node": "g", "value": "yes"})
    assert (await blocked.result())["answer"] == "yes"


@pytest.mark.parametrize("name", ["it's", 'a "b"', "back\\slash", "per%cent_", "' OR WorkflowId != '", "\u2603"])
async def test_a_run_is_known_by_any_id_and_after_another_one_has_taken_it(client: Client, name: str) -> None:
    known = await KnownRuns.of(client)
    runs = []
    for _ in range(2):
        handle = await client.start_workflow("Nobody", id=name, task_queue="nobody")
        runs.append(handle.first_execution_run_id or "")
        async with asyncio.timeout(30):
            while not [each async for each in client.list_workflows(f"RunId = '{runs[-1]}'")]:
                await asyncio.sleep(0.05)
        await handle.terminate()
    found = [await known.include(Owner(namespace="", workflow=name, run=run)) for run in (*runs, str(uuid.uuid4()))]
    assert found == [True, True, False]


async def stored(store: DirectoryStore, *owners: Owner, suffix: str = "") -> str:
    """Store something for a run that never was; returns its prefix."""
    prefix = f"default/{uuid.uuid4()}{suffix}"
    for owner in owners:
        await claim(store, prefix, owner)
    await store.put(prefix, b"body")
    await store.mark(prefix, "key", b"marker")
    return prefix


async def test_what_is_half_deleted_is_found_again(
    client: Client, store: DirectoryStore, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = await KnownRuns.of(client)
    prefix = await stored(store, Owner(namespace=known.namespace, workflow="w", run="r"))
    age(artifacts)
    delete = DirectoryStore.delete

    async def dies(self: DirectoryStore, run_prefix: str, names: Sequence[str]) -> None:
        await delete(self, run_prefix, names[:1])
        raise StoreUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(DirectoryStore, "delete", dies)
        with pytest.raises(StoreUnavailable):
            await collected(store, client)
    age(artifacts)
    (run,) = (await collected(store, client)).deleted
    assert ([run.workflow], len(run.objects)) == (["w"], 2)
    assert not (artifacts / prefix).exists()


async def test_what_may_be_of_another_server_or_is_no_run_stays(
    client: Client, store: DirectoryStore, artifacts: Path, tmp_path: Path
) -> None:
    """Links are never followed."""
    known = await KnownRuns.of(client)
    own, foreign = Owner(namespace=known.namespace, workflow="w", run="r"), Owner(namespace="x", workflow="w", run="s")
    for owners in ((foreign,), (own, foreign), ()):
        await stored(store, *owners)
    linked, outside = artifacts / await stored(store, own), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    (linked / "link").symlink_to(outside)
    (artifacts / "default" / str(uuid.uuid4())).symlink_to(outside)
    await store.mark(f"default/{PLACE}", "calls", b"{}")  # it is of no run
    age(artifacts)
    found = await collected(store, client)
    assert ([len(each.objects) for each in found.deleted], found.kept) == ([4], 3)
    assert not linked.exists()
    assert (outside / "precious").read_text() == "kept"
    assert len(folders(artifacts)) == 5


@pytest.fixture
def gc(dev_server: DevServer, artifacts: Path) -> Callable[..., tuple[int, str, str]]:
    """Run `sennit gc`; returns exit code, standard output and standard error."""

    def run(*flags: str, address: str = dev_server.address) -> tuple[int, str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "SENNIT_"))}
        env["SENNIT_ARTIFACTS"] = str(artifacts)
        ended = sennit(("gc", "--address", address, *flags), env, Path.cwd(), 60)
        return ended.returncode, ended.stdout, ended.stderr

    return run


async def test_the_command_says_what_goes_and_what_went(
    client: Client, store: DirectoryStore, artifacts: Path, gc: Callable[..., tuple[int, str, str]]
) -> None:
    owner = Owner(namespace=(await KnownRuns.of(client)).namespace, workflow="old\x1b[31m", run="r")
    await stored(store, owner)
    age(artifacts)
    day = datetime.fromtimestamp(time.time() - 40 * 86_400, UTC).date()
    run = f"old  3 objects, {sum(path.stat().st_size for path in artifacts.glob('default/*/**/*') if path.is_file())} "
    code, out, _ = await asyncio.to_thread(gc, "--dry-run")
    assert (code, out.splitlines()[0]) == (0, f"{run}bytes, last changed {day}")
    assert out.splitlines()[1].startswith("to delete: 1 run, 3 objects, ")
    code, out, _ = await asyncio.to_thread(gc, "--output", "json", "--older-than", "7d")
    found = json.loads(out)
    assert (code, found["runs"], found["objects"], found["kept"], found["problem"]) == (0, 1, 3, 0, None)
    assert found["found"][0]["id"] == owner.workflow
    assert folders(artifacts) == []


async def test_wrong_calls_delete_nothing(
    client: Client,
    store: DirectoryStore,
    artifacts: Path,
    gc: Callable[..., tuple[int, str, str]],
    dev_server: DevServer,
) -> None:
    await stored(store, Owner(namespace=(await KnownRuns.of(client)).namespace, workflow="w", run="r"))
    age(artifacts)
    nobody = f"127.0.0.1:{free_port()}"
    wanted = {
        ("--older-than", "soon"): (2, "'soon' is not a duration; write one such as"),
        ("--older-than", "9999d"): (2, "at most 3650d"),
        ("--address", nobody): (5, f"sennit: no Temporal server at {nobody}: "),
        ("--namespace", "nowhere"): (5, "does not say which runs it knows"),
    }
    ends = await asyncio.gather(*(asyncio.to_thread(gc, *flags) for flags in wanted))
    for (code, said), (found, _, err) in zip(wanted.values(), ends, strict=True):
        assert (found, said in err) == (code, True), err
    assert len(folders(artifacts)) == 1
