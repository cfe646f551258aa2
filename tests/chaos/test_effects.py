"""A worker dies between an effect and its outcome. The effect is not repeated; a person is asked, and decides."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle
from doubles.runs import call, happens, insist, until
from doubles.tools import posts
from doubles.worker_processes import WorkerProcesses
from temporalio.api.enums.v1 import PendingActivityState

from sennit.starter.client.client import Sennit
from sennit.starter.dev.server import DevServer
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
pytestmark = pytest.mark.chaos


SCRIPT = """
async def main():
    try:
        await post(text="paid", after="hang")
    except RuntimeError:
        await note(text="it failed, so something else is done")
    return "done"
"""


def lost_runs() -> dict[str, Any]:
    """Return the plans of runs whose write loses its worker, whatever they say of failures."""
    write = call("w", "post", args={"text": "paid", "after": "hang"}, timeout="8s", retry={"attempts": 1})
    after = call("z", "note", args={"text": "it failed, so something else is done"}, needs=["w"])
    settled = {"id": "j", "kind": "join", "inputs": ["w"], "policy": "settled"}
    return {
        "skip": {"nodes": [write | {"on_error": "skip"}, after], "answer": "$z"},
        "settled": {"nodes": [write, settled, after | {"needs": ["j"]}], "answer": "$z"},
        "script": {"nodes": [{"id": "main", "kind": "program", "script": SCRIPT}], "answer": "$main"},
        "idempotent": {"nodes": [call("w", "pay", args={"amount": 7, "seconds": 60}, retry={"attempts": 1})]},
        "cancelled": {"nodes": [write]},
    }


async def second_attempt(handle: Handle) -> None:
    """Wait until a worker is at the second attempt of a run's only call."""
    async with asyncio.timeout(60):
        while True:
            pending = (await handle.describe()).raw_description.pending_activities
            if any(item.attempt == 2 and item.state == STARTED for item in pending):
                return
            await asyncio.sleep(0.1)


@pytest.mark.timeout(300)
async def test_a_write_whose_workers_are_all_lost_is_in_doubt_and_nothing_goes_on(
    dev_server: DevServer, tmp_path: Path
) -> None:
    """Each attempt dies with its worker. A person is asked before a script, `on_error` or a join is told; what is
    idempotent is made again under its key; a run that was cancelled meanwhile says that it does not know.
    """
    processes = WorkerProcesses(dev_server.address, tmp_path / "state")
    try:
        client = await connect(dev_server.address)
        (doomed,) = processes.start("tools")
        processes.start("workflow")
        handles = {
            name: await client.start_workflow(
                "AgentRun", {"plan": plan, "approval": "never"}, id=f"agent-lost-{name}", task_queue=queues.WORKFLOW
            )
            for name, plan in lost_runs().items()
        }
        firsts = {name: handle.first_execution_run_id or "" for name, handle in handles.items()}
        for name, handle in handles.items():
            await until(handle, lambda _, run=firsts[name]: bool(processes.calls(run)))  # type: ignore[misc]
        processes.kill(doomed)
        await handles.pop("cancelled").cancel()
        (doomed,) = processes.start("tools")
        assert (await handles.pop("idempotent").result())["answer"] == {"paid": 7}
        await second_attempt(handles["script"])
        processes.kill(doomed)
        processes.start("tools")
        assert len((processes.index / "payments.txt").read_text().splitlines()) == 1
        for name, handle in handles.items():
            view = await until(handle, lambda view: bool(view["status"] == "blocked"))
            assert ["UnknownOutcome: " in item["question"] for item in view["blocked"]] == [True]
            assert posts(processes.index, firsts[name]) == ["paid"]
        assert not (processes.index / "notes.txt").exists()
        cancelled = (await (await Sennit(client).find("agent-lost-cancelled")).outcome()).report
        assert [line.model_dump() for line in cancelled.writes] == [{"node": "w", "status": "unknown"}]
    finally:
        processes.kill()


async def test_a_store_that_goes_away_after_a_write_has_it_made_once(dev_server: DevServer, tmp_path: Path) -> None:
    """The worker that has made the write dies meanwhile, and where the store was there is an empty folder. Once the
    store is back, everything ends by itself, but for the write, of which nobody knows.
    """
    write = call("w", "post", args={"text": "paid", "after": "hang"}, timeout="20s")
    processes = WorkerProcesses(dev_server.address, tmp_path / "state")
    store, away = tmp_path / "state" / "artifacts", tmp_path / "away"
    try:
        client = await connect(dev_server.address)
        (doomed,) = processes.start("tools")
        processes.start("workflow")
        paying, reading = [
            await client.start_workflow(
                "AgentRun",
                {"plan": {"nodes": nodes}, "approval": "never"},
                id=f"agent-away-{nodes[0]['id']}",
                task_queue=queues.WORKFLOW,
            )
            for nodes in ([write], [call("z", args={"seconds": 3}), call("y", needs=["z"])])
        ]
        run = paying.first_execution_run_id or ""
        await processes.until_called(run, "w")
        await processes.until_called(reading.first_execution_run_id or "", "z")
        await until(paying, lambda _: posts(processes.index, run) == ["paid"])
        (other,) = processes.start("tools")
        await happens(lambda: (tmp_path / "state" / "tools.log").read_text().count("worker ready") == 2)
        store.rename(away)
        store.mkdir()
        processes.kill(doomed)
        (late,) = processes.start("tools")
        await asyncio.sleep(25)  # a lost call is made again after 10
        assert processes.running(other)
        assert processes.running(late)
        assert posts(processes.index, run) == ["paid"]
        assert list(tmp_path.glob("state/artifacts/**/.store-id")) == []
        shutil.rmtree(store)
        away.rename(store)
        assert (await reading.result())["status"] == "done"
        view = await until(paying, lambda view: bool(view["status"] == "blocked"), limit=60)
        assert view["nodes"][0]["error"].startswith("UnknownOutcome: post: an earlier attempt to write")
        assert posts(processes.index, run) == ["paid"]
        await insist(paying, "retry_node", {"node": "w", "repeat_effect": True})
        assert (await paying.result())["status"] == "done"
        assert posts(processes.index, run) == ["paid", "paid"]
    finally:
        processes.kill()
