"""A backup is taken while runs go on; then all is lost, and restored. Nothing that the backup knows is done again."""

import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from chaos.ledger import Ledger, ledger_service
from doubles.postgres_server import DEPLOY, PostgresServer, postgres_server
from doubles.runs import call, happens, insist, status_of, until
from doubles.worker_processes import WorkerProcesses
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

pytestmark = pytest.mark.timeout(600)
LENGTH = 6
MOVING = ("moving", "guarded")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with ledger_service() as ledger:
        yield ledger


@pytest.fixture
async def workers(server: PostgresServer, ledger: Ledger, tmp_path: Path) -> AsyncIterator[WorkerProcesses]:
    fleet = WorkerProcesses(server.address, tmp_path, PAYMENTS_URL=ledger.url)
    fleet.start("workflow", "tools")
    yield fleet
    fleet.kill()


class Runs:
    """Runs that each pay at their beginning: one ends, one waits for a person, two go on, and pay again late."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self._ids: dict[str, str] = {}

    def __getitem__(self, which: str) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(f"{self.name}-{which}")

    async def start(self, which: str, *nodes: dict[str, Any]) -> None:
        """Start a run that pays first, and then runs the nodes."""
        name = f"{self.name}-{which}"
        pays = call("early", "transfer", args={"text": f"{which} early"})
        given = {"plan": {"nodes": [pays, *nodes], "answer": f"${nodes[-1]['id']}.value"}, "approval": "never"}
        run = await self.client.start_workflow("AgentRun", given, id=name, task_queue=queues.WORKFLOW)
        self._ids[which] = run.first_execution_run_id or ""

    async def start_all(self) -> None:
        """Start all of them, and return when those that go on are in their middle."""
        await self.start("done", call("a", args={"value": 1}, needs=["early"]))
        await self.start("parked", call("b", "fail", args={"unless": "mended"}, needs=["early"]))
        for which in MOVING:
            late = call("late", "transfer", args={"text": f"{which} late"}, needs=["c2"])
            steps = [["early"], *([f"c{step}"] for step in range(LENGTH))]
            naps = [call(f"c{i}", args={"value": i, "seconds": 3}, needs=steps[i]) for i in range(LENGTH)]
            await self.start(which, late, *naps)
        await self["done"].result()
        await until(self["parked"], lambda view: view["status"] == "blocked")
        for which in MOVING:
            await until(self[which], lambda view: status_of(view, "c1") == "running")

    def calls(self, workers: WorkerProcesses) -> Counter[str]:
        """Return how often each of their tools was called."""
        return Counter(f"{which} {each}" for which, run in self._ids.items() for each in workers.calls(run))


@pytest.mark.parametrize("store_survives", [False, True])
async def test_what_a_backup_knows_goes_on(
    server: PostgresServer, workers: WorkerProcesses, ledger: Ledger, tmp_path: Path, store_survives: bool
) -> None:
    runs = Runs(await connect(server.address), f"restore-{int(store_survives)}")
    store, backup = tmp_path / "artifacts", tmp_path / "backup"
    await runs.start_all()
    script(server, "backup.sh", store, backup)
    await runs.start("new", call("d", args={"seconds": 60}))
    await happens(lambda: all(ledger.paid(f"{which} late") == 1 for which in MOVING))
    for which in MOVING:
        await until(runs[which], lambda view: status_of(view, "c3") == "running")

    workers.kill()
    server.kill()
    server.drop()
    if not store_survives:
        shutil.rmtree(store)
    lost = runs.calls(workers)

    script(server, "restore.sh", store, backup)
    server.start("server")
    runs.client = await connect(server.address)
    workers.start("workflow")  # alone, it takes what a person says, and calls nothing
    await insist(runs["guarded"], "skip_node", {"node": "late"})
    assert runs.calls(workers) == lost
    workers.start("tools")
    await all_end(runs, workers)

    again = {name for name in lost if runs.calls(workers)[name] > lost[name]}
    print(f"\ncalled before the loss: {sorted(lost)}\nagain: {sorted(again)}")
    ended = {"early", "c0", *(("c1", "c2", "late") if store_survives else ())}
    assert not again & {
        "done early~1",
        "done a~1",
        "parked early~1",
        *(f"{run} {n}~1" for run in MOVING for n in ended),
    }
    assert all(ledger.paid(f"{which} early") == 1 for which in ("done", "parked", *MOVING))
    # Only the store knows of a payment made after the backup: an older one does not hold it back, a person can.
    assert ledger.paid("moving late") == (1 if store_survives else 2)
    assert ledger.paid("guarded late") == 1


async def all_end(runs: Runs, workers: WorkerProcesses) -> None:
    """See every run to its end, but the one that the backup does not know."""
    assert (await runs["done"].result())["answer"] == 1
    await until(runs["parked"], lambda view: view["status"] == "blocked")
    (workers.index / "mended").touch()
    await insist(runs["parked"], "retry_node", {"node": "b"})
    assert (await runs["parked"].result())["answer"] == "recovered"
    for which in MOVING:
        assert (await runs[which].result())["answer"] == LENGTH - 1
    with pytest.raises(RPCError, match="not found"):
        await runs["new"].describe()


def script(server: PostgresServer, name: str, store: Path, backup: Path) -> None:
    """Run one of the scripts for operators."""
    command = ["sh", str(DEPLOY / "temporal" / name), str(store), str(backup)]
    subprocess.run(command, env=server.environment, check=True, timeout=120)
