"""The local stack on a real dev server, with a fake worker."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from sennit.starter.client.errors import Refused
from sennit.starter.client.local import join_local_stack
from sennit.starter.commands import setup
from sennit.starter.commands.command_line import parse
from sennit.starter.dev.messages import LocalStackFailed, WrongSettings
from sennit.starter.dev.stack import LocalStack
from sennit.starter.dev.state import ProcessIdentity, StateDir

WORKS = (sys.executable, "-c", "")
"""Instead of real workers that try their settings."""
CHANGED = "code or settings have changed: restarting the local stack"
Eventually = Callable[[Callable[[], object]], Awaitable[None]]

pytestmark = pytest.mark.server


@pytest.fixture
def lines() -> list[str]:
    """What clients said."""
    return []


@pytest.fixture
def local(state: StateDir, fake_worker: tuple[str, ...], lines: list[str]) -> LocalStack:
    """A client at the stack."""
    return LocalStack(state, say=lines.append, worker_command=fake_worker, check_command=WORKS)


def processes(state: StateDir) -> tuple[ProcessIdentity, ProcessIdentity, ProcessIdentity]:
    record = state.read()
    assert record is not None
    assert record.server is not None
    (worker,) = record.workers
    return record.supervisor, record.server, worker


def all_ended(processes: Sequence[ProcessIdentity]) -> bool:
    return not any(process.alive for process in processes)


def phase(state: StateDir) -> str:
    record = state.read()
    return record.phase if record else "none"


def starts(state: StateDir) -> list[Any]:
    return [json.loads(line) for line in (state.root / "starts").read_text().splitlines()]


async def a_run(address: str, name: str = "a-run", **more: Any) -> Any:
    client = await Client.connect(address)
    handle = await client.start_workflow("Nobody", id=name, task_queue="nobody", **more)
    while (await client.count_workflows(f"WorkflowId='{name}'")).count == 0:
        await asyncio.sleep(0.02)
    return handle


async def test_clients_at_once_make_one_stack_which_is_replaced_only_by_what_can_start(
    state: StateDir, fake_worker: tuple[str, ...], local: LocalStack, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "of another server")
    found = await asyncio.gather(*(local.join() for _ in range(3)))

    assert len({record.address for record in found}) == 1
    assert sum(line.startswith("starting a local Temporal server") for line in lines) == 1
    assert f"Temporal at {found[0].address}, web UI at {found[0].ui_url}" in lines
    client = await Client.connect(found[0].address)
    assert (await client.count_workflows("SennitStatus = 'running'")).count == 0
    (start,) = starts(state)
    assert start["environ"]["TEMPORAL_ADDRESS"] == found[0].address
    assert "TEMPORAL_API_KEY" not in start["environ"]

    first = processes(state)
    monkeypatch.setenv("OPENAI_API_KEY", "new")
    broken = (sys.executable, "-c", "import sys; sys.exit('wrong: mytools')")
    unable = LocalStack(state, say=print, worker_command=fake_worker, check_command=broken)
    for attempt in (unable.join, unable.restart, unable.serve):
        with pytest.raises(WrongSettings, match="workers cannot start with these settings: wrong: mytools"):
            await attempt()
    with monkeypatch.context() as without:
        without.setenv("SENNIT_TEMPORAL_CLI", "/nowhere/temporal")
        for attempt in (local.join, local.restart, local.serve):
            with pytest.raises(LocalStackFailed, match="/nowhere/temporal"):
                await attempt()
    for name in ("/elsewhere", "s3://bucket/runs"):
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("SENNIT_ARTIFACTS", name)
            message = f"SENNIT_ARTIFACTS={name}: the local stack keeps artifacts in {state.artifacts}"
            for attempt in (local.join, local.restart, local.serve):
                with pytest.raises(WrongSettings, match=message):
                    await attempt()
    assert processes(state) == first
    assert all(process.alive for process in first)

    for name in ("stack", "supervisor", "workers"):
        monkeypatch.setattr(f"sennit.starter.dev.{name}.INSTALLATION", "/opt/other")
    before = len(lines)
    await local.join()
    await local.join("never")
    (line,) = lines[before:]
    assert line.startswith("another installation of Sennit has started the local stack (")
    assert line.endswith("); it is used as it is. `sennit dev --restart` replaces it")
    with pytest.raises(LocalStackFailed, match="`sennit dev --restart` replaces it, `sennit dev --stop` ends it"):
        await local.serve()
    assert processes(state) == first
    await local.restart()
    assert not any(process in processes(state) for process in first)
    assert [start["environ"].get("OPENAI_API_KEY") for start in starts(state)] == [None, "new"]


async def test_children_that_die_are_started_again_and_a_stopped_stack_goes_on_with_its_store_or_a_new_one(
    state: StateDir, local: LocalStack, eventually: Eventually, make_terminal: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    first = await local.join()
    run = await a_run(first.address)
    _, server, worker = processes(state)

    worker.signal(signal.SIGKILL)
    server.signal(signal.SIGKILL)

    await eventually(lambda: server not in processes(state) and worker not in processes(state))
    assert (await local.join()).address == first.address
    running = processes(state)
    assert await local.stop()
    assert not any(process.alive for process in running[1:])
    assert phase(state) == "stopped"
    assert not await local.stop()

    store_id = (state.artifacts / ".store-id").read_text()
    away = state.artifacts.rename(state.root / "away")
    with pytest.raises(LocalStackFailed, match=r"the artifact store of this stack is not in .*`sennit setup --store`"):
        await local.join()
    assert not state.artifacts.exists()
    away.rename(state.artifacts)
    again = await local.join()
    assert (again.address, again.ui_url) == (first.address, first.ui_url)
    client = await Client.connect(again.address)
    assert (await client.get_workflow_handle(run.id).describe()).status == WorkflowExecutionStatus.RUNNING
    await local.stop()
    assert (state.artifacts / ".store-id").read_text() == store_id

    shutil.rmtree(state.artifacts)
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SENNIT_STATE", str(state.root))
    said = []
    for _ in range(2):
        terminal = make_terminal("text")
        await setup.run(parse(["setup", "--store"]), terminal)
        said.append(terminal.out.getvalue())
    assert said == [
        f"created the artifact store {state.artifacts}\n",
        f"the artifact store is there: {state.artifacts}\n",
    ]
    await local.join()


async def test_an_idle_stack_stops_by_itself_but_not_while_a_run_is_open(
    state: StateDir, local: LocalStack, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setenv("SENNIT_IDLE_STOP", "soon")
    with pytest.raises(LocalStackFailed, match="SENNIT_IDLE_STOP=soon is not a number of seconds above 0"):
        await local.join()
    monkeypatch.setenv("SENNIT_IDLE_STOP", "1")
    monkeypatch.setenv("SENNIT_UI", "off")
    record = await local.join()
    assert record.ui_url == ""
    children = processes(state)[1:]
    run = await a_run(record.address)
    os.utime(state.last_used, (0, 0))
    await asyncio.sleep(2)
    assert state.running()

    await run.terminate()

    await eventually(lambda: not state.running())
    assert not any(process.alive for process in children)


async def test_a_stack_whose_parts_are_killed_or_hang_leaves_no_orphan_and_is_replaced(
    state: StateDir, local: LocalStack, lines: list[str], eventually: Eventually
) -> None:
    first = await local.join()
    for frozen, killed in (((), True), ((1, 2), True), ((1,), False), ((0, 1), False)):
        old = processes(state)
        for number in frozen:
            os.killpg(old[number].pid, signal.SIGSTOP)
        if killed:
            old[0].signal(signal.SIGKILL)
            await eventually(partial(all_ended, old[:1] if frozen else old))
        with pytest.MonkeyPatch.context() as sooner:
            if not killed:
                sooner.setattr("sennit.starter.dev.stack.SILENT_LIMIT", 0.5)
            if 0 in frozen:
                sooner.setattr("sennit.starter.dev.stack.STOP_LIMIT", 0.5)
            assert (await local.join()).address == first.address
        assert not any(process.alive for process in old)
        assert all(process.alive for process in processes(state))
    hung = f"the Temporal server at {first.address} does not answer: stopping"
    assert sum(line.startswith(hung) for line in lines) == 2


async def test_an_idle_stack_starts_anew_with_new_settings_or_modules_and_a_busy_one_keeps_the_old(
    state: StateDir, local: LocalStack, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await local.join()
    first = processes(state)
    tool = tmp_path / "mytool.py"
    tool.write_text("a = 1")
    state.modules.write_text(json.dumps({str(tool): sha256(tool.read_bytes()).hexdigest()}))
    await local.join()
    assert processes(state) == first
    tool.write_text("a = 2")
    await local.join()
    assert not any(process in processes(state) for process in first)
    assert lines.count(CHANGED) == 1
    first = processes(state)
    with monkeypatch.context() as other:
        other.setenv("SENNIT_TENANT", "of another shell")
        await local.join("code")
        assert processes(state) == first
        tool.write_text("a = 3")
        await local.join("code")
        assert processes(state) == first
        assert lines[-1].startswith(f"warning: {tool} has changed, but this shell has other settings")
    blocked = SearchAttributePair(SearchAttributeKey.for_keyword("SennitStatus"), "blocked")
    run = await a_run(record.address, search_attributes=TypedSearchAttributes([blocked]))
    await local.join("code")
    assert not any(process in processes(state) for process in first), "the blocked run is to be retried with new code"
    tool.unlink()
    state.modules.unlink()
    first = processes(state)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")

    await local.join("code")
    await local.join("never")
    assert processes(state) == first
    assert (await local.join()).address == record.address

    second = processes(state)
    assert not any(process in second for process in first)
    assert [start["environ"].get("OPENAI_API_KEY") for start in starts(state)] == [None, None, None, "sk-canary"]
    assert lines.count(CHANGED) == 3
    files = [path.read_text(errors="replace") for path in state.root.rglob("*") if path.is_file()]
    assert sum("sk-canary" in text for text in files) == 1  # what the fake worker noted
    client = await Client.connect(record.address)
    assert (await client.get_workflow_handle(run.id).describe()).status == WorkflowExecutionStatus.RUNNING

    await a_run(record.address, "busy")
    monkeypatch.delenv("OPENAI_API_KEY")
    await local.join()
    assert processes(state) == second
    assert lines[-1].startswith("warning: code or settings have changed, but the local stack is busy")


@pytest.mark.parametrize(
    ("ending", "message", "starts"),
    [
        ("raise SystemExit('no module named mytools')", r"(?s)given up after 5.*ended with exit status 1.*mytools", 5),
        ("import sys; print('wrong: mytools'); sys.exit(2)", r"ended with exit status 2; the end of .*:\nwrong: my", 1),
    ],
)
async def test_workers_that_cannot_start_are_one_clear_error_and_wrong_settings_are_not_tried_twice(
    state: StateDir, ending: str, message: str, starts: int
) -> None:
    with pytest.raises(LocalStackFailed, match=message):
        await LocalStack(state, worker_command=(sys.executable, "-c", ending)).join()
    assert state.log("worker").read_text().count("mytools") == starts
    assert not state.running()


async def test_a_wrong_setting_is_a_wrong_call_and_not_an_unreachable_server(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_STATE", str(state.root))
    monkeypatch.setenv("SENNIT_TOOLS", "no_such_module")
    with pytest.raises(Refused, match=r"SENNIT_TOOLS: .*no_such_module"):
        await join_local_stack(say=lambda _: None)


async def test_a_stack_has_as_many_workers_as_were_asked_for_also_when_one_dies_or_settings_change(
    state: StateDir, fake_worker: tuple[str, ...], local: LocalStack, eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One of them has its own log, and is ready at a port of its own."""

    def workers() -> tuple[ProcessIdentity, ...]:
        record = state.read()
        return record.workers if record is not None else ()

    asked = LocalStack(state, say=print, worker_command=fake_worker, check_command=WORKS, workers=2)
    await asked.restart()
    first, second = workers()
    ports = {start["environ"]["SENNIT_HEALTH_PORT"] for start in starts(state)}
    assert len(ports) == 2
    assert state.log("worker", 2).name == "worker-2.log"
    assert state.log("worker", 2).exists()

    second.signal(signal.SIGKILL)
    await eventually(lambda: len(workers()) == 2 and second not in workers() and phase(state) == "ready")
    assert first in workers()

    before = workers()
    monkeypatch.setenv("OPENAI_API_KEY", "new")
    await local.join()
    assert len(workers()) == 2
    await eventually(lambda: all_ended(before))


async def test_sennit_dev_replaces_the_background_shows_its_addresses_and_stops_on_sigterm(
    state: StateDir, fake_worker: tuple[str, ...], local: LocalStack, lines: list[str], eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Once a day it deletes artifacts of runs that the server has forgotten."""
    monkeypatch.setattr("sennit.starter.dev.supervisor.FIRST_COLLECTION", 0.0)
    monkeypatch.setattr("sennit.starter.dev.supervisor.HOUR", 1.0)
    background = await local.join()
    messages: list[str] = []
    foreground = LocalStack(state, say=messages.append, worker_command=fake_worker, check_command=WORKS)
    serving = asyncio.ensure_future(foreground.serve())
    await eventually(lambda: any("Ctrl-C" in line for line in messages) or serving.done())
    assert messages[0].startswith("stopping the local stack in the background")
    assert any(background.address in line and background.ui_url in line for line in messages)
    with pytest.raises(LocalStackFailed, match="`sennit dev` runs already"):
        await foreground.serve()
    monkeypatch.setenv("OPENAI_API_KEY", "now-there-is-one")
    joined = await local.join()
    assert joined.address == background.address
    assert lines[-1].startswith("warning: code or settings have changed since `sennit dev` started")
    state.collected.unlink(missing_ok=True)  # on a busy machine the stack in the background has had its first minute
    await eventually(lambda: "deleted: 0 runs, 0 objects" in state.log("worker").read_text())
    await eventually(state.last_collected)
    children = processes(state)[1:]

    os.kill(os.getpid(), signal.SIGTERM)
    await serving

    assert not any(process.alive for process in children)
