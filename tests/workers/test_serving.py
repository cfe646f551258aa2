"""Real worker processes against a real server."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles.runs import happens
from doubles.worker_processes import one_store
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.workflows.agent_run import AgentRun
from sennit.workflows.messages import queues
from sennit.workflows.messages.result import RunReport

WAITING = '''
import asyncio
import pathlib

from pydantic import BaseModel

from sennit.activities.toolbox import tool


class Folder(BaseModel):
    path: str


@tool(effect="EFFECT")
async def wait_for_go(args: Folder) -> str:
    """Says in a folder that it runs, and waits there for the file `go`."""
    folder = pathlib.Path(args.path)
    (folder / "started").touch()
    while not (folder / "go").exists():
        await asyncio.sleep(0.01)
    return "went"
'''


HOSTILE = '''
import asyncio
import sys

from pydantic import BaseModel

from sennit.activities.toolbox import tool


class Nothing(BaseModel):
    pass


@tool(effect="read")
async def exits(args: Nothing) -> str:
    """Calls sys.exit."""
    sys.exit(3)


@tool(effect="read")
async def leaves_a_task_that_exits(args: Nothing) -> str:
    """Returns before a task that it has started calls sys.exit."""
    asyncio.create_task(exits(args))
    return "done"


@tool(effect="read")
def fine(args: Nothing) -> str:
    """Does nothing."""
    return "fine"

'''


class WorkerChild:
    """`python -m sennit.workers` as a child process; its log is read as it comes."""

    def __init__(self, role: str, server: str, state: Path, log: Path, **env: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_"))}
        if role != "workflow":
            one_store(state)
        ours = {"TEMPORAL_ADDRESS": server, "SENNIT_STATE": str(state), "SENNIT_HEALTH_PORT": "127.0.0.1:0"}
        self._log = log
        with log.open("wb") as stderr:
            command = [sys.executable, "-m", "sennit.workers", role]
            self._process = subprocess.Popen(command, env=clean | ours | env, stderr=stderr)

    async def until(self, message: str) -> dict[str, Any]:
        """Return the first log entry with that message."""
        async with asyncio.timeout(60):
            while True:
                ended = self._process.poll() is not None
                entries = [json.loads(line) for line in self._log.read_text().splitlines(keepends=True) if "\n" in line]
                for entry in entries:
                    if message in entry["message"]:
                        return dict(entry)
                assert not ended, f"ended without {message!r}: {entries}"
                await asyncio.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait for the exit code."""
        return await asyncio.to_thread(self._process.wait, 60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


Start = Callable[..., WorkerChild]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    children: list[WorkerChild] = []

    def build(role: str, server: str, **env: str) -> WorkerChild:
        children.append(WorkerChild(role, server, tmp_path / "state", tmp_path / "worker.log", **env))
        return children[-1]

    yield build
    for child in children:
        child.kill()


async def _probe(at: str, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://{at}{path}")


@pytest.fixture
async def runs(client: Client) -> AsyncIterator[None]:
    """Runs are served here; what they call, the child serves."""
    unguarded = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=queues.WORKFLOW, workflows=[AgentRun], workflow_runner=unguarded):
        yield


async def begin(client: Client, folder: Path, name: str) -> WorkflowHandle[Any, RunReport]:
    """Start a run of one call, and wait until that is under way."""
    node = {"id": "n", "kind": "tool", "tool": "wait_for_go", "args": {"path": str(folder)}}
    request = {"plan": {"nodes": [node]}, "approval": "never"}
    run = await client.start_workflow("AgentRun", request, id=name, task_queue=queues.WORKFLOW, result_type=RunReport)
    await happens((folder / "started").exists)
    return run


@pytest.mark.usefixtures("runs")
async def test_a_running_activity_is_drained_and_readiness_follows(
    dev_server: DevServer, client: Client, tmp_path: Path, start: Start
) -> None:
    (tmp_path / "waiting.py").write_text(WAITING.replace("EFFECT", "read"))
    child = start("tools", dev_server.address, SENNIT_TOOLS="waiting", SENNIT_TOOLS_PATH=str(tmp_path))
    ready = await child.until("worker ready")
    seen = await _probe(ready["health"], "/readyz")
    assert (seen.status_code, seen.json()["store"]) == (200, ready["store"])
    assert re.fullmatch(r"tools@[^@: ]+:\d+ 0\.1\.0 store tests", ready["identity"]), (
        "who it is in the web UI: role, host, pid, build, store"
    )
    run = await begin(client, tmp_path, "drain")
    child.signal(signal.SIGTERM)
    await child.until("draining")
    assert (await _probe(ready["health"], "/readyz")).json()["reason"] == "draining"
    (tmp_path / "go").touch()
    report = await run.result()
    assert (report.nodes[0].error, report.nodes[0].attempts) == (None, 1)
    assert await child.ended() == 0


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("effect", ["read", "write"])
async def test_an_activity_that_outlives_the_drain_is_given_back_to_the_server(
    dev_server: DevServer, client: Client, tmp_path: Path, start: Start, effect: str
) -> None:
    (tmp_path / "waiting.py").write_text(WAITING.replace("EFFECT", effect))
    env = {"SENNIT_TOOLS": "waiting", "SENNIT_TOOLS_PATH": str(tmp_path), "SENNIT_DRAIN": "0.2"}
    env["SENNIT_APPROVAL"] = "never"
    child = start("tools", dev_server.address, **env)
    run = await begin(client, tmp_path, f"cut-{effect}")
    child.signal(signal.SIGTERM)
    assert await child.ended() == 0
    (waiting,) = (await run.describe()).raw_description.pending_activities
    assert (waiting.attempt, waiting.last_failure.application_failure_info.type) == (2, "WorkerStopped")
    await run.terminate()


async def test_one_process_of_all_roles_runs_a_plan_even_without_cached_workflows(
    dev_server: DevServer, client: Client, unused_tcp_port: int, start: Start
) -> None:
    env = {"SENNIT_CACHED_WORKFLOWS": "0", "SENNIT_METRICS_PORT": f"127.0.0.1:{unused_tcp_port}"}
    child = start("all", dev_server.address, **env)
    ready = await child.until("worker ready")
    assert (await _probe(ready["health"], "/livez")).status_code == 200
    node = {"id": "a", "kind": "tool", "tool": "calculate", "args": {"expression": "2 + 3"}}
    request = {"plan": {"goal": "add", "nodes": [node], "answer": "$a.value"}}
    report = await client.execute_workflow(
        "AgentRun", request, id="all", task_queue=queues.WORKFLOW, result_type=RunReport
    )
    assert (report.status, report.answer) == ("done", 5)
    assert "temporal_" in (await _probe(ready["health"], "/metrics")).text
    child.signal(signal.SIGINT)
    assert await child.ended() == 0


async def test_tools_that_exit_fail_their_nodes_and_leave_their_worker_alone(
    dev_server: DevServer, client: Client, tmp_path: Path, start: Start
) -> None:
    """In a group, alone, and in a task left behind."""
    (tmp_path / "hostile.py").write_text(HOSTILE)
    child = start("all", dev_server.address, SENNIT_TOOLS="hostile", SENNIT_TOOLS_PATH=str(tmp_path))
    await child.until("worker ready")
    tools = {"a": "exits", "b": "fine", "c": "fine", "d": "leaves_a_task_that_exits", "e": "exits", "f": "fine"}
    nodes = [
        {"id": name, "kind": "tool", "tool": tool, "retry": {"attempts": 1 + (name in "abc")}}
        for name, tool in tools.items()
    ]
    plan = {"nodes": nodes, "fuse": "on", "answer": {name: f"${name}" for name in tools}}
    report = await client.execute_workflow(
        "AgentRun",
        {"plan": plan, "on_failure": "partial"},
        id="exits",
        task_queue=queues.WORKFLOW,
        result_type=RunReport,
        execution_timeout=timedelta(seconds=40),
    )
    assert report.answer == {"a": None, "b": "fine", "c": "fine", "d": "done", "e": None, "f": "fine"}
    errors = {line.id: line.error or "" for line in report.nodes if line.error}
    assert {name: error.partition(" (")[0] for name, error in errors.items()} == dict.fromkeys(
        "ae", "ToolExit: it raised SystemExit(3)"
    )
    child.signal(signal.SIGTERM)
    assert await child.ended() == 0


async def test_a_workflow_worker_loads_no_tools_and_needs_no_store(
    dev_server: DevServer, tmp_path: Path, start: Start
) -> None:
    child = start("workflow", dev_server.address, SENNIT_TOOLS="no_such_module")
    ready = await child.until("worker ready")
    assert (ready["queues"], ready["store"]) == ([queues.WORKFLOW], None)
    assert not (tmp_path / "state").exists()


async def test_a_namespace_that_is_not_there_is_waited_for(
    dev_server: DevServer, client: Client, unused_tcp_port: int, start: Start
) -> None:
    health = f"127.0.0.1:{unused_tcp_port}"
    child = start("llm", dev_server.address, TEMPORAL_NAMESPACE="elsewhere", SENNIT_HEALTH_PORT=health)
    await child.until("has no namespace 'elsewhere': create it with `sennit setup --namespace elsewhere`")
    seen = await _probe(health, "/readyz")
    assert (seen.status_code, "has no namespace 'elsewhere'" in seen.json()["reason"]) == (503, True)
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace="elsewhere", workflow_execution_retention_period=Duration(seconds=86_400))
    )
    await child.until("worker ready")
    seen = await _probe(health, "/readyz")
    assert (seen.status_code, "lacks the search attributes SennitStatus" in seen.json()["note"]) == (200, True)


async def test_a_server_that_comes_up_later_is_found(tmp_path: Path, unused_tcp_port: int, start: Start) -> None:
    server = DevServer(
        await obtain(pinned_only=True), None, tmp_path / "server.log", port=unused_tcp_port, ui_port=0, headless=True
    )
    child = start("llm", f"127.0.0.1:{unused_tcp_port}")
    await child.until("no Temporal server at 127.0.0.1")
    try:
        await server.start()
        await child.until("worker ready")
        child.signal(signal.SIGTERM)
        assert await child.ended() == 0
    finally:
        await server.stop()
