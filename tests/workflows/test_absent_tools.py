"""Runs whose plan needs the tools of a server that does not answer: they wait, or are refused, as they were told to."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.local_workers import serving
from doubles.runs import call, insist, until
from doubles.stores import store_in
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import Registry
from sennit.workflows.messages import queues

pytest.importorskip("mcp", reason="needs the extra mcp")
from sennit.activities.toolbox.mcp.tools import McpServers

SERVER = str(Path(__file__).parents[1] / "doubles" / "bare_mcp_server.py")
TOOL = {"name": "look", "inputSchema": {"type": "object"}}
PROGRAM = "async def main():\n    return await silent_look()"
REASON = "unavailable: MCP server silent did not answer within 4 s"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Activities]:
    """The activities of a worker with a server that says nothing until there is a file `go`."""
    args = [SERVER, json.dumps([TOOL]), str(tmp_path)]
    silent = {"command": sys.executable, "args": args, "start_timeout": "4s", "effects": {"*": "read"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"silent": silent}}))
    registry = Registry()
    McpServers(tmp_path / "mcp.json", {}).offer(registry)
    yield Activities(WorkerPaths(store_in(tmp_path / "a"), tmp_path / "i", tmp_path, ()), registry, identity="tests")
    (tmp_path / "go").touch()


@pytest.mark.parametrize("by", ["plan", "request"])
async def test_a_run_that_may_not_wait_is_refused_by_name(client: Client, host: Activities, by: str) -> None:
    plan = {"nodes": [{"id": "n", "kind": "program", "script": PROGRAM}]}
    chosen = {"on_failure": "fail"}
    given = {"plan": plan | chosen} if by == "plan" else {"plan": plan} | chosen
    async with serving(client, host):
        handle = await client.start_workflow("AgentRun", given, id=f"agent-refused-{by}", task_queue=queues.WORKFLOW)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert f"the tool silent_look is {REASON}" in str(failed.value.cause)


async def test_a_run_waits_for_its_tools_and_goes_on(client: Client, host: Activities, tmp_path: Path) -> None:
    given = {"plan": {"nodes": [call("n", "silent_look", args={})]}}
    async with serving(client, host):
        handle = await client.start_workflow("AgentRun", given, id="agent-waits", task_queue=queues.WORKFLOW)
        await until(handle, lambda view: bool(view["blocked"]) and REASON in view["blocked"][0]["question"])
        (tmp_path / "go").touch()
        await until_listed(host)
        await insist(handle, "retry_node", {})
        report = await handle.result()
    assert report["status"] == "done"


async def until_listed(host: Activities) -> None:
    async with asyncio.timeout(60):
        while "silent_look" not in host._preparer.registry:
            await asyncio.sleep(0.05)
