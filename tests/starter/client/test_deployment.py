"""A new version of the workers while runs wait and work: real processes, and the command that promotes it."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from doubles.runs import call, happens, insist, status_of, until
from doubles.sennit_command import sennit
from doubles.tools import posts
from doubles.worker_processes import WorkerProcesses
from google.protobuf.duration_pb2 import Duration
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client import deployment
from sennit.starter.client.deployment import Version, promote
from sennit.starter.client.errors import Refused
from sennit.workers.server_check import ServerCheck
from sennit.workflows.messages.converter import DATA_CONVERTER
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.messages.quota import QUOTA_ID

NAMESPACE = "rollout"
ASK = {"id": "ask", "kind": "gate", "question": "Go on?", "schema": {"type": "string"}}
WAITS = {
    "nodes": [
        call("read", args={"value": "kept"}),
        call("write", "post", args={"text": "once"}),
        {**ASK, "needs": ["read", "write"]},
        {**call("after", "hang", args={"name": "rollout"}), "needs": ["ask"]},
    ],
    "answer": ["$read.value", "$ask", "$after"],
}
WORKS = {"nodes": [call("long", "hang", args={"name": "rollout"}), ASK], "answer": "$ask"}
Handle = WorkflowHandle[Any, Any]


@pytest.mark.parametrize("text", ["sennit", "sennit:", ":1", "a:b:c", "a b:1", 'a":1'])
def test_what_is_no_version_is_named(text: str) -> None:
    with pytest.raises(Refused, match="is no version; give deployment and build"):
        Version.parse(text)


class Rollout:
    """Worker processes of several builds that share a store, and the command that makes a build current."""

    def __init__(self, address: str, place: Path) -> None:
        self._address, self._place, self._cleanup = address, place, ExitStack()

    def workers(self, build: str, **env: str) -> WorkerProcesses:
        """Return what starts workers of a build. They cut activities off almost at once when they drain."""
        version = {"TEMPORAL_DEPLOYMENT_NAME": "sennit", "TEMPORAL_WORKER_BUILD_ID": build}
        drain = {"TEMPORAL_NAMESPACE": NAMESPACE, "SENNIT_DRAIN": "0.2"}
        processes = WorkerProcesses(self._address, self._place / "state", **version, **drain, **env)
        self._cleanup.callback(processes.kill)
        return processes

    async def promote(self, build: str) -> str:
        """Run `sennit setup --promote` until workers of the build are there; returns what it prints."""
        argv = ["setup", "--address", self._address, "--namespace", NAMESPACE, "--promote", f"sennit:{build}"]
        async with asyncio.timeout(60):
            while True:
                done = await asyncio.to_thread(sennit, argv, dict(os.environ), self._place, 60)
                if done.returncode == 0:
                    return done.stdout
                assert "start one, and wait until it is ready" in done.stderr, done.stderr
                await asyncio.sleep(0.2)

    def close(self) -> None:
        self._cleanup.close()


@pytest.fixture
def rollout(server_address: str, tmp_path: Path) -> Iterator[Rollout]:
    made = Rollout(server_address, tmp_path)
    yield made
    made.close()


@pytest.fixture
async def client(server_address: str) -> Client:
    connected = await Client.connect(server_address, namespace=NAMESPACE, data_converter=DATA_CONVERTER)
    request = RegisterNamespaceRequest(
        namespace=NAMESPACE, workflow_execution_retention_period=Duration(seconds=86_400)
    )
    try:
        await connected.workflow_service.register_namespace(request)
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:  # the tests of this file share the namespace
            raise
    return connected


async def start(client: Client, name: str, plan: dict[str, Any]) -> Handle:
    return await client.start_workflow("AgentRun", {"plan": plan, "approval": "never"}, id=name, task_queue=WORKFLOW)


def first_run(handle: Handle) -> str:
    return handle.first_execution_run_id or ""


async def version_of(handle: Handle) -> str:
    found = (await handle.describe()).raw_description.workflow_execution_info.versioning_info
    return str(found.deployment_version.build_id)


async def moved(handle: Handle, build: str) -> None:
    async with asyncio.timeout(60):
        while await version_of(handle) != build:
            await asyncio.sleep(0.1)


async def chain(client: Client, handle: Handle) -> list[list[HistoryEvent]]:
    """Return the events of every run in a workflow's chain, the first one first."""
    found: list[list[HistoryEvent]] = []
    run: str | None = (await handle.describe()).run_id
    while run:
        history = await client.get_workflow_handle(handle.id, run_id=run).fetch_history()
        found.insert(0, list(history.events))
        run = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return found


def builds(events: list[HistoryEvent]) -> set[str]:
    """The builds that have decided anything in a run."""
    done = [each.workflow_task_completed_event_attributes for each in events]
    return {each.deployment_version.build_id for each in done} - {""}


def deadline(events: list[HistoryEvent]) -> float:
    """When the last of a run's timers rings."""
    timers = [(each.event_time, each.timer_started_event_attributes.start_to_fire_timeout) for each in events]
    return max((begun.ToDatetime(UTC) + wait.ToTimedelta()).timestamp() for begun, wait in timers)


def last_caller(index: Path) -> int:
    """The worker that has made the last call: those of both builds take calls of all runs."""
    return int((index / "calls.log").read_text().splitlines()[-1].split()[3])


async def test_a_rollout_while_runs_wait_and_work_loses_nothing_and_repeats_only_what_it_cuts_off(
    client: Client, rollout: Rollout
) -> None:
    """One run waits for a person when the new version is promoted, and one works. Then the old workers are killed."""
    old, new = rollout.workers("1"), rollout.workers("2")
    deciding, _ = old.start("workflow", "tools")
    new.start("workflow")
    await rollout.promote("1")
    waits, works = await start(client, "waits", WAITS), await start(client, "works", WORKS)
    await until(waits, lambda view: status_of(view, "ask") == "waiting")
    await old.until_called(first_run(works), "long")
    new.start("tools")

    assert "sennit:2 is current; 2 runs move to it" in await rollout.promote("2")
    await moved(waits, "2")
    assert await version_of(works) == "1", "a run that works stays until its node has ended"
    (old.index / "rollout" / "long.end").touch()
    await moved(works, "2")
    old.kill(deciding)
    assert await promote(client, Version("sennit", "2")) == 0
    notes = [await ServerCheck(client, "", None, ("sennit", build)).note() for build in "12"]
    assert [note.partition(":")[2][:22] for note in notes] == ["1 is not current, 2 is", ""]

    assert await insist(waits, "answer", {"node": "ask", "value": "go on"}) == "ask is answered"
    await old.until_called(first_run(waits), "after")
    old.drain(last_caller(old.index))
    await happens(lambda: old.calls(first_run(waits)).count("after~1") == 2)
    (old.index / "rollout" / "after.end").touch()
    report = await waits.result()
    assert (report["status"], report["answer"]) == ("done", ["kept", "go on", {"value": None}])
    attempts = {line["id"]: line.get("attempts", 1) for line in report["nodes"] if line["kind"] == "tool"}
    assert attempts == {"read": 1, "write": 1, "after": 2}
    assert Counter(old.calls(first_run(waits))) == {f"{node}~1": times for node, times in attempts.items()}
    assert posts(old.index, first_run(waits)) == ["once"]

    await insist(works, "answer", {"node": "ask", "value": "done"})
    assert (await works.result())["answer"] == "done"
    assert old.calls(first_run(works)) == ["long~1"]
    before, after = await chain(client, waits)
    assert deadline(after) == pytest.approx(deadline(before), abs=1.0), "24 hours from when it began to wait"
    for decided in ((before, after), await chain(client, works)):
        assert [builds(events) for events in decided] == [{"1"}, {"2"}]


async def test_the_quota_of_a_namespace_moves_though_no_run_goes_on(client: Client, rollout: Rollout) -> None:
    """Else the next run would ask on the old version for its place, whose workers are gone."""
    old, new = (rollout.workers(build, SENNIT_QUOTA="runs=1") for build in "34")
    old.start("workflow", "tools")
    await rollout.promote("3")
    before = await start(client, "before", {"nodes": [call("a", args={"value": 1})]})
    assert (await before.result())["status"] == "done"
    new.start("workflow", "tools")
    await rollout.promote("4")
    await moved(client.get_workflow_handle(QUOTA_ID), "4")
    old.kill()
    after = await start(client, "after", {"nodes": [call("a", args={"value": 2})]})
    assert (await after.result())["status"] == "done"


async def test_a_build_that_somebody_else_has_deleted_meanwhile_is_deleted(client: Client) -> None:
    assert await deployment._delete(client, Version("sennit", "gone")) == ""
