"""What others can do to the local stack: web pages, other users of the machine, hosts of the network."""

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from doubles.local_workers import serving
from doubles.runs import call, until
from temporalio.client import Client, WorkflowFailureError

from activities.definitions import Activities, WorkerPaths
from activities.toolbox import load_tools
from starter.client.client import Sennit
from starter.client.connection import local_server
from starter.dev.server import DevServer
from starter.dev.state import ProcessIdentity, StackRecord, StateDir

pytestmark = pytest.mark.server
START = {"workflowType": {"name": "AgentRun"}, "taskQueue": {"name": "sennit.workflow"}, "requestId": "1"}
HOSTS = ("127.0.0.1:{port}", "localhost:{port}", "evil.example")


def listening(server: DevServer) -> list[tuple[str, int]]:
    assert server.identity is not None
    found = psutil.Process(server.identity.pid).net_connections("tcp")
    return [(each.laddr.ip, each.laddr.port) for each in found if each.status == psutil.CONN_LISTEN]


def post(port: int, host: str, run: str) -> int:
    """Send what a page of another origin can send without asking first: a POST of plain text."""
    url = f"http://127.0.0.1:{port}/api/v1/namespaces/default/workflows/{run}"
    headers = {"Host": host, "Origin": "https://evil.example", "Content-Type": "text/plain"}
    request = urllib.request.Request(url, json.dumps(START).encode(), headers)
    try:
        return int(urllib.request.urlopen(request, timeout=5).status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0  # the port does not speak HTTP


async def test_no_web_page_starts_a_run_and_no_port_is_open_to_the_network(
    client: Client, dev_server: DevServer
) -> None:
    found = listening(dev_server)
    assert {address for address, _ in found} <= {"127.0.0.1", "::1"}
    for number, (_, port) in enumerate(found):
        for host in HOSTS:
            status = await asyncio.to_thread(post, port, host.format(port=port), f"from-a-page-{number}-{len(host)}")
            assert status != 200
    await asyncio.sleep(0.5)
    assert (await client.count_workflows("WorkflowId STARTS_WITH 'from-a-page'")).count == 0


@pytest.fixture
async def sennit(
    client: Client, dev_server: DevServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sennit]:
    """A client of a local stack whose workers have the settings that `worker_environment` gives them."""
    monkeypatch.setenv("SENNIT_STATE", str(tmp_path / "state"))
    state = StateDir.find()
    state.prepare()
    state.write(StackRecord(phase="ready", supervisor=ProcessIdentity.own(), port=dev_server.port))
    places = WorkerPaths(state.artifacts, state.index, None, (), state.grants)
    async with serving(client, Activities(places, load_tools(["doubles.tools"]), identity="tests")):
        yield Sennit(client, local_server(dev_server.address, None))


async def foreign(sennit: Sennit, **request: Any) -> Any:
    """Start a run as anybody can who reaches the server."""
    name = f"foreign-{uuid.uuid4().hex[:8]}"
    return await sennit.client.start_workflow("AgentRun", request, id=name, task_queue="sennit.workflow")


async def test_writes_ask_whatever_a_run_says_unless_its_user_said_so(sennit: Sennit) -> None:
    plan = {"nodes": [call("w", "note", args={"text": "owned"})]}
    notes = StateDir.find().index / "notes.txt"
    other = await foreign(sennit, plan=plan, approval="never")
    await until(other, lambda view: view["blocked"])
    assert not notes.exists()
    await other.terminate()
    fork = await sennit.fork(await sennit.origin(other.id))
    await until(sennit.client.get_workflow_handle(fork.id), lambda view: view["blocked"] or notes.exists())
    assert not notes.exists(), "whoever forks a run has not said what its input says"
    await sennit.client.get_workflow_handle(fork.id).terminate()
    run = await sennit.start(plan=plan, approval="never")
    assert (await run.result()).status == "done"
    assert notes.read_text().endswith("owned\n")
    own = await sennit.fork(await sennit.origin(run.id))
    assert (await own.result()).status == "done"
    assert StateDir.find().allows(own.id), "its user has said so of the run"


async def test_only_folders_that_the_user_named_are_read(sennit: Sennit, tmp_path: Path) -> None:
    for name in ("mine", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("# Text")
    plan = {"nodes": [call("l", "list_files", args={})]}
    with pytest.raises(WorkflowFailureError) as refused:
        await (await foreign(sennit, plan=plan, docs=str(tmp_path / "secret"))).result()
    assert "its user opens it with `--docs`" in str(refused.value.cause)
    other = await foreign(sennit, plan=plan, docs=str(tmp_path / "secret"))
    with pytest.raises(WorkflowFailureError):
        await other.result()
    fork = await sennit.fork(await sennit.origin(other.id))
    assert (await fork.result()).status == "failed"
    plan = {"nodes": [call("l", "search", args={"query": "text"})]}
    run = await sennit.start(plan=plan, docs=str(tmp_path / "mine"))
    assert (await run.result()).status == "done"
    state = StateDir.find()
    assert [path for path in state.root.rglob("*") if path.is_file() and path.stat().st_mode & 0o077] == []


def test_only_its_owner_reads_what_the_stack_writes(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state")
    state.prepare()
    state.write(StackRecord(phase="ready", supervisor=ProcessIdentity.own()))
    state.grant(docs="/d", run="r")
    open_to_others = [path for path in (state.root, *state.root.rglob("*")) if path.stat().st_mode & 0o077]
    assert open_to_others == []
