"""One run with every kind of tool: an MCP server's, a declared endpoint, a user's, confined code, and a write."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.local_workers import serving
from doubles.runs import approve, call, until
from doubles.stores import store_in
from temporalio.client import Client, WorkflowUpdateFailedError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import Registry
from sennit.workers.roles import ROLES
from sennit.workers.settings import read_settings
from sennit.workers.wiring import load_registry
from sennit.workflows.messages import queues

pytest.importorskip("mcp", reason="needs the extra mcp")
TESTS = Path(__file__).parents[1]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """The tools of a worker with all settings given."""
    (tmp_path / "docs").mkdir()
    script = [str(TESTS / "doubles" / "mcp_server.py"), str(tmp_path)]
    server = {"command": sys.executable, "args": script, "effects": {"*": "read"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"sums": server}}))
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        settings = read_settings(
            {
                "SENNIT_MCP": str(tmp_path / "mcp.json"),
                "SENNIT_WRITE_ROOT": str(tmp_path / "docs"),
                "SENNIT_TOOLS": "doubles.tools",
            }
        )
        yield load_registry(settings, ROLES["all"], pytest.skip)


async def test_they_run_together_and_the_write_waits_for_approval(
    client: Client, registry: Registry, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    host = Activities(WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", docs, ()), registry, identity="tests")
    nodes = [
        call("user", "count", args={"count": 3}),
        call("mcp", "sums_add", args={"a": "$user.count", "b": 39}),
        call("code", "python", args={"code": "result = f'{data} is the answer'", "data": "$mcp.total"}),
        call("w", "write", args={"path": "notes/answer.md", "text": "$code.result"}),
        call("r", "read", args={"path": "notes/answer.md"}, needs=["w"]),
    ]
    async with serving(client, host):
        given = {"plan": {"nodes": nodes, "answer": "$r.text"}}
        handle = await client.start_workflow("AgentRun", given, id="agent-together", task_queue=queues.WORKFLOW)
        await until(handle, lambda view: bool(view["status"] == "blocked"))
        assert not (docs / "notes").exists()
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update("approve", {"node": "r"})
        await approve(handle, "w")
        report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", "42 is the answer")
    assert (docs / "notes/answer.md").read_text() == "42 is the answer"
