"""What others can do to the local stack: web pages, other users of the machine, hosts of the network."""

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from doubles.local_workers import serving
from doubles.runs import call, until
from doubles.stores import store_in
from temporalio.client import Client, WorkflowFailureError

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.runs.approvals import topmost_run
from sennit.activities.storage.directory import DirectoryStore
from sennit.activities.storage.grants import Chain, Grants
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox import load_tools
from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import local_server
from sennit.starter.dev.grants import is_over
from sennit.starter.dev.server import DevServer
from sennit.starter.dev.state import ProcessIdentity, StackRecord, StateDir
from sennit.workflows.plan.language.nodes import ApprovalPolicy
from sennit.workflows.run import drain

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
    state.write(StackRecord(phase="ready", supervisor=ProcessIdentity.current(), port=dev_server.port))
    places = WorkerPaths(store_in(state.artifacts), state.index, None, (), state.grants)
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
    again = await sennit.fork(await sennit.origin(run.id))
    assert (await again.result()).status == "done", "what its origin has written is not written again"
    own = await sennit.fork(await sennit.origin(run.id), approval="never")
    assert (await own.result()).status == "done"
    assert [bool((await _request(sennit, each)).get("grant")) for each in (again.id, own.id)] == [False, True]
    assert notes.read_text().count("owned") == 1


async def _request(sennit: Sennit, name: str) -> dict[str, Any]:
    """Return the input of a run, as anybody can read it."""
    started = (await sennit.client.get_workflow_handle(name).fetch_history()).events[0]
    given = started.workflow_execution_started_event_attributes.input.payloads
    return dict((await sennit.client.data_converter.decode(given))[0])


async def _asks(handle: Any, notes: Path) -> bool:
    """Whether a run asks before it writes. It is ended."""
    before = notes.read_text() if notes.exists() else ""
    await until(handle, lambda view: view["blocked"] or (notes.exists() and notes.read_text() != before))
    await handle.terminate()
    return (notes.read_text() if notes.exists() else "") == before


async def test_what_a_run_was_allowed_is_of_no_use_to_another_one(sennit: Sennit) -> None:
    """Not under its id, not with the secret in its input, and not by a sub-agent that says it belongs to it."""
    notes = StateDir.find().index / "notes.txt"
    write = call("w", "note", args={"text": "owned"})
    own = await sennit.start(plan={"nodes": [call("n"), call("w", "note", args={"text": "own"}, needs=["n"])]},
                             approval="never", id="nightly")  # fmt: skip
    assert (await own.result()).status == "done"
    request = await _request(sennit, "nightly")
    assert request["grant"]
    first_run = (await sennit.client.get_workflow_handle("nightly").describe()).run_id
    stolen = {"plan": {"nodes": [write]}, "approval": "never", "grant": request["grant"]}
    for name, given in {
        "nightly": {**stolen, "grant": ""},
        "another": stolen,
        "nightly.w": {**stolen, "run_prefix": f"{first_run}-0123456789abcdef"},
    }.items():
        other = await sennit.client.start_workflow("AgentRun", given, id=name, task_queue="sennit.workflow")
        assert await _asks(other, notes), name
    again = await sennit.client.start_workflow("AgentRun", stolen, id="nightly", task_queue="sennit.workflow")
    assert await _asks(again, notes), "a secret that was used"


async def test_a_program_is_trusted_if_its_user_said_so_and_not_its_run(
    sennit: Sennit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without seccomp a trusted program can do whatever its user can."""
    monkeypatch.setattr(Interpreter, "_may_run", False)
    script = "async def main():\n    return 1\n"
    plan = {"nodes": [{"id": "main", "kind": "program", "script": script}]}
    asked: dict[str, Any] = {"plan": plan, "trust_program": True}
    own = await sennit.start(**asked)
    assert (await own.result()).status == "done"
    stolen = {**asked, "grant": (await _request(sennit, own.id))["grant"]}
    for given in (asked, stolen):
        report = await (await foreign(sennit, on_failure="partial", **given)).result()
        assert report["status"] == "partial", given
        assert "the kernel has seccomp" in report["problem"]
    fork = await sennit.fork(await sennit.origin(own.id), on_failure="partial")
    assert (await fork.result()).status == "partial", "whoever forks a run has not said what its input says"


async def test_who_joins_a_run_that_a_stranger_has_started_allows_it_nothing(sennit: Sennit) -> None:
    notes = StateDir.find().index / "notes.txt"
    plan = {"nodes": [call("n", args={"seconds": 3}), call("w", "note", args={"text": "owned"}, needs=["n"])]}
    squatter = await sennit.client.start_workflow(
        "AgentRun", {"plan": plan, "approval": "never"}, id="report", task_queue="sennit.workflow"
    )
    joined = await sennit.start(plan=plan, approval="never", id="report")
    assert joined.run_id == squatter.result_run_id
    assert await _asks(squatter, notes)


async def _approval(sennit: Sennit, name: str) -> str:
    """Return what was fixed for a sub-agent when it was prepared."""
    history = await sennit.client.get_workflow_handle(name).fetch_history()
    began = history.events[0].workflow_execution_started_event_attributes
    [request] = await sennit.client.data_converter.decode(began.input.payloads)
    prepared = request["prepared"]
    folder = next(StateDir.find().artifacts.glob(f"default/*/{prepared['run_context']}")).parent
    library = ArtifactReader(DirectoryStore(StateDir.find().artifacts))
    return (await library.run_context(f"default/{folder.name}", prepared["run_context"])).approval


async def test_sub_agents_and_continuations_have_what_their_run_was_allowed(
    sennit: Sennit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offline rules write no plan with a write, so what the sub-agent's run may do is read in the store."""
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, *drain.SOFT_BOUNDS[1:]))
    naps = [
        call(f"n{number}", args={"seconds": 1.1}, needs=[f"n{number - 1}"][: min(number, 1)]) for number in range(9)
    ]
    agent = {"id": "a", "kind": "agent", "goal": "note it", "tools": ["note"], "needs": ["n8"]}
    approvals: dict[str, ApprovalPolicy] = {"continued": "never", "asking": "writes"}
    for name, approval in approvals.items():
        run = await sennit.start(plan={"nodes": [*naps, agent]}, approval=approval, id=name, on_failure="partial")
        await run.result()
        described = await sennit.client.get_workflow_handle(name).describe()
        first_run = described.raw_description.workflow_execution_info.first_run_id
        assert described.run_id != first_run, "it has continued as new"
        assert await _approval(sennit, f"{name}.a") == approval
    child = await sennit.client.get_workflow_handle("continued.a").describe()
    first_run = (await topmost_run(sennit.client, "continued.a", child.run_id)).first_run
    assert Grants(StateDir.find().grants).may_write(Chain("continued", first_run))
    (grant,) = json.loads(StateDir.find().grants.read_text())["writes"]
    assert grant["run"] == first_run
    await StateDir.find().grant_file.sweep(partial(is_over, sennit.client))
    assert not Grants(StateDir.find().grants).may_write(Chain("continued", first_run)), "the run has ended"


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
    state.write(StackRecord(phase="ready", supervisor=ProcessIdentity.current()))
    state.grant_file.open_folder("/d")
    assert Grants(state.grants).may_write(Chain("w", "r"), state.grant_file.allow("w", "writes"))
    open_to_others = [path for path in (state.root, *state.root.rglob("*")) if path.stat().st_mode & 0o077]
    assert open_to_others == []
