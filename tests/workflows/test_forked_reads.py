"""A fork of a run that has read, where workers may also write: reads share a lock there, and a fork takes them over."""

from pathlib import Path

import pytest
from doubles.local_workers import serving, starting
from doubles.stores import store_in
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.workers.roles import ROLES
from sennit.workers.settings import read_settings
from sennit.workers.wiring import load_registry

SCRIPT = """
async def main() -> str:
    page = await read(path="rome.md")
    return page["text"].strip()
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder that workers read and write."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "rome.md").write_text("Rome has seven hills.\n")
    return folder


@pytest.fixture
def host(tmp_path: Path, docs: Path) -> Activities:
    """The activities of a worker that may write."""
    registry = load_registry(read_settings({"SENNIT_WRITE_ROOT": str(docs)}), ROLES["tools"], print)
    return Activities(WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", docs, ()), registry, identity="tests")


async def test_a_fork_takes_a_read_over_that_shares_a_lock_with_writes(client: Client, host: Activities) -> None:
    plan = {"nodes": [{"id": "main", "kind": "program", "script": SCRIPT}], "answer": "$main"}
    async with serving(client, host), starting(client) as start:
        handle = await start(plan=plan)
        await handle.result()
        sennit = Sennit(client, local_server(client.service_client.config.target_host, None))
        run = await sennit.find(handle.id)
        fork = await run.fork(SCRIPT.replace("return page", 'return "!" + page'))
        report = await fork.result()
        assert (report.status, report.answer) == ("done", "!Rome has seven hills.")
        assert [line.id for line in report.nodes if line.taken_over] == ["main_1"]
