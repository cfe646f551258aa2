"""Runs whose artifact store goes away for a moment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from doubles.local_workers import Handle, Start, serving, starting
from doubles.plan.samples import stored, tool
from doubles.runs import call, happens, until
from doubles.stores import store_in
from doubles.tools import calls
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from sennit.activities import definitions
from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.client.client import Sennit
from sennit.workflows.messages.activity_options import QUEUE, look_up_options, node_options
from sennit.workflows.messages.node_calls import GroupCall
from sennit.workflows.messages.views import RunView
from sennit.workflows.plan.scheduling import termination


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_in(tmp_path / "store")


@pytest.fixture
async def begin(client: Client, store: Path, cache: Path) -> AsyncIterator[Start]:
    places = WorkerPaths(store, cache, None, ())
    host = Activities(places, load_tools(["doubles.tools"]), identity="tests", approval="never")
    async with serving(client, host), starting(client) as start:
        yield start


async def attempts(handle: Handle) -> set[int]:
    history = await handle.fetch_history()
    found = (each.activity_task_started_event_attributes.attempt for each in history.events)
    return {attempt for attempt in found if attempt}


async def shows(client: Client, handle: Handle, holds: Callable[[RunView], bool]) -> None:
    """Wait until people see it of the run."""
    run = await Sennit(client).find(handle.id)
    async with asyncio.timeout(60):
        while not holds(await run.view()):
            await asyncio.sleep(0.2)


PLAN = {
    "nodes": [
        call("read", args={"seconds": 1}),
        call("written", "note", args={"text": "once"}),
        call("late", needs=["read", "written"]),
    ],
    "answer": ["$late", "$written"],
}


@pytest.mark.parametrize(
    ("under_way", "leaves"), [(False, True), (True, False)], ids=["before-it-starts-an-empty-folder", "under-way"]
)
async def test_nothing_fails_and_nothing_is_called_again(
    begin: Start, store: Path, cache: Path, under_way: bool, leaves: bool
) -> None:
    away = store.with_name("away")
    handle = None
    if under_way:
        handle = await begin(plan=PLAN, approval="never")
        run = handle.first_execution_run_id or ""
        await happens(lambda: "read~1" in calls(cache, run))
    store.rename(away)
    if leaves:
        store.mkdir()
    handle = handle or await begin(plan=PLAN, approval="never")
    await asyncio.sleep(2.5)  # after 0.25 and 1.25 s a call that has failed would be made again
    assert (await handle.describe()).close_time is None
    assert not leaves or list(store.iterdir()) == []
    if leaves:
        store.rmdir()
    away.rename(store)
    report = await handle.result()
    assert report["status"] == "done", report
    assert sorted(calls(cache, handle.first_execution_run_id or "")) == ["late~1", "read~1", "written~1"]
    assert await attempts(handle) == {1}


async def test_a_run_that_cannot_begin_without_the_store_says_so_and_goes_on_by_itself(
    begin: Start, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "STORE_PATIENCE", timedelta(seconds=1))
    monkeypatch.setattr(termination, "FIRST_PAUSE", 200)
    away = store.with_name("away")
    store.rename(away)
    handle = await begin(plan=PLAN, approval="never")
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    assert view["blocked"][0]["question"].startswith("StoreUnavailable: artifact store")
    assert "; tried again at " in view["blocked"][0]["question"]
    away.rename(store)
    assert (await handle.result())["status"] == "done"


async def test_a_run_that_does_not_park_waits_for_the_store_longer_than_it_takes_others_to_say_so(
    client: Client, begin: Start, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "STORE_PATIENCE", timedelta(seconds=0))
    away = store.with_name("away")
    store.rename(away)
    handle = await begin(plan=PLAN, approval="never", on_failure="partial")
    await shows(client, handle, lambda view: view.progress.startswith("waits for the artifact store"))
    away.rename(store)
    assert (await handle.result())["status"] == "done"
    assert await attempts(handle) == {1}


async def test_a_node_that_waits_for_the_store_says_so(client: Client, begin: Start, store: Path, cache: Path) -> None:
    away = store.with_name("away")
    handle = await begin(plan=PLAN, approval="never")
    await happens(lambda: "read~1" in calls(cache, handle.first_execution_run_id or ""))
    store.rename(away)
    await shows(client, handle, lambda view: any("waits for the artifact store" in line.preview for line in view.nodes))
    away.rename(store)
    assert (await handle.result())["status"] == "done"


def test_a_look_up_is_as_patient_with_the_store_as_the_write_itself() -> None:
    """Else a run that was cancelled would call a write unknown whose outcome is in the store."""
    spec = stored(tool("w", "deliver")).spec("w")
    written, looked_up = node_options([spec], item=False, is_call=True), look_up_options(spec, item=False)
    assert looked_up["start_to_close_timeout"] == written["start_to_close_timeout"]
    assert looked_up["schedule_to_start_timeout"] < QUEUE, "without a worker, the end of a run does not wait for one"


async def test_a_group_that_cannot_read_its_plan_yet_says_what_it_waits_for(store: Path, cache: Path) -> None:
    """Without a heartbeat the server takes its worker for lost."""
    host = Activities(WorkerPaths(store, cache, None, ()), load_tools(["doubles.tools"]), identity="tests")
    store.rename(store.with_name("away"))
    found: list[str] = []
    env = ActivityEnvironment()
    env.info = replace(env.info, start_to_close_timeout=QUEUE, started_time=datetime.now(UTC))
    env.on_heartbeat = lambda *details: found.append(str(details))
    work = asyncio.create_task(env.run(host.group, GroupCall(run="run", plan="0" * 40, nodes=("a",))))
    await asyncio.sleep(2)
    work.cancel()
    await asyncio.wait([work])
    assert any("waits for the artifact store" in beat for beat in found)
