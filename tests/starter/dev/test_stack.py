"""The local stack on a real dev server, with a stand-in for the workers."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from starter.client.errors import Refused
from starter.client.local import join_local_stack
from starter.dev.fingerprint import Origin
from starter.dev.identity import ProcessIdentity
from starter.dev.stack import Decision, LocalStackFailed, decide, local_stack, run_foreground, stop_stack
from starter.dev.state import Phase, StackRecord, StateDir

Command = tuple[str, ...]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]

pytestmark = pytest.mark.server


def record_of(state: StateDir) -> StackRecord:
    record = state.read()
    assert record is not None
    return record


def processes(state: StateDir) -> tuple[ProcessIdentity, ProcessIdentity, ProcessIdentity]:
    record = record_of(state)
    assert record.server is not None
    assert record.worker is not None
    return record.supervisor, record.server, record.worker


def starts(state: StateDir) -> list[Any]:
    return [json.loads(line) for line in (state.root / "starts").read_text().splitlines()]


async def test_clients_at_once_make_one_stack(state: StateDir, stand_in: Command) -> None:
    lines: list[str] = []
    found = await asyncio.gather(
        *(local_stack(say=lines.append, state=state, worker_command=stand_in) for _ in range(3))
    )

    assert len({stack.address for stack in found}) == 1
    assert len(starts(state)) == 1
    assert sum(line.startswith("starting a local Temporal server") for line in lines) == 1
    client = await Client.connect(found[0].address)
    assert (await client.count_workflows("SennitStatus = 'running'")).count == 0


async def test_workers_get_this_stack_and_no_other_server(
    state: StateDir, stand_in: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "of another server")
    stack = await local_stack(say=lambda _: None, docs=tmp_path, state=state, worker_command=stand_in)

    environ = starts(state)[0]["environ"]
    assert environ["TEMPORAL_ADDRESS"] == stack.address
    assert "TEMPORAL_API_KEY" not in environ
    assert environ["SENNIT_ARTIFACTS"] == str(state.artifacts)
    assert environ["SENNIT_INDEX"] == str(state.index)
    assert environ["SENNIT_DOCS"] == str(tmp_path)
    assert environ["SENNIT_DOCS_ANY"] == "1"
    assert Path(environ["TEMPORAL_CONFIG_FILE"]).read_text().count(stack.address) == 1


async def test_stop_leaves_no_process(state: StateDir, stand_in: Command) -> None:
    await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    running = processes(state)
    assert all(process.alive for process in running)

    assert await stop_stack(state)

    assert not any(process.alive for process in running[1:])
    assert record_of(state).phase == "stopped"
    assert not await stop_stack(state)


async def test_a_worker_that_dies_is_started_again(state: StateDir, stand_in: Command, eventually: Eventually) -> None:
    await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    worker = processes(state)[2]

    worker.signal(signal.SIGKILL)

    await eventually(lambda: record_of(state).worker not in (worker, None) and record_of(state).phase == "ready")
    assert len(starts(state)) == 2


async def test_a_server_that_dies_comes_back_at_its_address_with_its_runs(
    state: StateDir, stand_in: Command, eventually: Eventually
) -> None:
    stack = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    await a_run(stack.address)
    server = processes(state)[1]

    server.signal(signal.SIGKILL)

    await eventually(lambda: record_of(state).server not in (server, None))
    again = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    assert again.address == stack.address
    client = await Client.connect(again.address)
    assert (await client.count_workflows("ExecutionStatus='Running'")).count == 1


async def test_an_idle_stack_stops_by_itself(
    state: StateDir, stand_in: Command, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setenv("SENNIT_IDLE_STOP", "0.5")
    await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    running = processes(state)

    await eventually(lambda: not state.running())

    assert not any(process.alive for process in running[1:])


async def test_a_stack_with_a_run_is_not_idle_and_its_next_start_keeps_ports_and_runs(
    state: StateDir, stand_in: Command, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setenv("SENNIT_IDLE_STOP", "1")
    stack = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    handle = await a_run(stack.address)
    await asyncio.to_thread(lambda: os.utime(state.last_used, (0, 0)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await eventually(lambda: not state.running())

    await handle.terminate()
    await eventually(lambda: not state.running())
    again = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)

    assert (again.address, again.ui_url) == (stack.address, stack.ui_url)
    client = await Client.connect(again.address)
    assert (await client.get_workflow_handle(handle.id).describe()).id == handle.id


async def test_a_killed_supervisor_takes_its_children_along_and_is_replaced(
    state: StateDir, stand_in: Command, eventually: Eventually
) -> None:
    stack = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    supervisor, server, worker = processes(state)

    supervisor.signal(signal.SIGKILL)

    await eventually(lambda: not (server.alive or worker.alive))
    again = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    assert again.address == stack.address
    assert processes(state)[0] != supervisor


async def test_a_start_ends_what_a_killed_supervisor_left(
    state: StateDir, stand_in: Command, eventually: Eventually
) -> None:
    """Even when the children are stopped and cannot notice anything."""
    await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    supervisor, server, worker = processes(state)
    for process in (server, worker):
        os.killpg(process.pid, signal.SIGSTOP)
    supervisor.signal(signal.SIGKILL)
    await eventually(lambda: not supervisor.alive)

    await local_stack(say=lambda _: None, state=state, worker_command=stand_in)

    assert not server.alive
    assert not worker.alive


async def test_a_stack_of_other_settings_is_replaced_when_idle_and_joined_when_busy(
    state: StateDir, stand_in: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    await local_stack(say=lines.append, state=state, worker_command=stand_in)
    first = processes(state)[0]

    monkeypatch.setenv("OPENAI_API_KEY", "now there is one")
    stack = await local_stack(say=lines.append, state=state, worker_command=stand_in)
    second = processes(state)[0]
    assert first != second
    assert (
        "the local stack was started with other settings (SENNIT_*, OPENAI_*, ANTHROPIC_*): starting it anew" in lines
    )

    monkeypatch.delenv("OPENAI_API_KEY")
    await local_stack(say=lines.append, state=state, worker_command=stand_in, as_it_is=True)
    assert processes(state)[0] == second

    await a_run(stack.address)
    await local_stack(say=lines.append, state=state, worker_command=stand_in)
    assert processes(state)[0] == second
    assert lines[-1].startswith("warning: the local stack was started with other settings")


async def test_a_run_that_is_blocked_does_not_keep_other_settings_out(
    state: StateDir, stand_in: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    first = processes(state)[0]
    blocked = SearchAttributePair(SearchAttributeKey.for_keyword("SennitStatus"), "blocked")
    run = await a_run(stack.address, search_attributes=TypedSearchAttributes([blocked]))
    monkeypatch.setenv("OPENAI_API_KEY", "now there is one")
    await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    assert processes(state)[0] != first
    assert (await run.describe()).status == WorkflowExecutionStatus.RUNNING


async def test_workers_that_cannot_start_are_one_clear_error(state: StateDir) -> None:
    broken = (sys.executable, "-c", "raise SystemExit('no module named mytools')")

    with pytest.raises(LocalStackFailed, match=r"(?s)ended with exit status 1, 5 times.*no module named mytools"):
        await local_stack(say=lambda _: None, state=state, worker_command=broken)

    assert not state.running()


async def test_workers_with_wrong_settings_are_not_tried_twice(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a wrong call, and not a server that cannot be reached."""
    wrong = (sys.executable, "-c", "import sys; print('SENNIT_TOOLS names mytools'); sys.exit(2)")

    with pytest.raises(
        LocalStackFailed, match=r"(?s)ended with exit status 2; the end of.*\nSENNIT_TOOLS names mytools"
    ):
        await local_stack(say=lambda _: None, state=state, worker_command=wrong)

    assert (state.log("worker")).read_text().count("mytools") == 1
    monkeypatch.setenv("SENNIT_STATE", str(state.root))
    monkeypatch.setenv("SENNIT_TOOLS", "no_such_module")
    with pytest.raises(Refused, match=r"SENNIT_TOOLS: .*no_such_module"):
        await join_local_stack(say=lambda _: None)


async def test_sennit_dev_shows_its_addresses_takes_over_and_stops_on_sigterm(
    state: StateDir, stand_in: Command, eventually: Eventually
) -> None:
    lines: list[str] = []
    background = await local_stack(say=lambda _: None, state=state, worker_command=stand_in)
    foreground = asyncio.ensure_future(run_foreground(say=lines.append, state=state, worker_command=stand_in))
    await eventually(lambda: any("Ctrl-C" in line for line in lines) or foreground.done())
    assert any(background.address in line and background.ui_url in line for line in lines)
    with pytest.raises(LocalStackFailed, match="`sennit dev` runs already"):
        await run_foreground(say=lines.append, state=state, worker_command=stand_in)
    joined = await local_stack(say=lines.append, state=state, worker_command=stand_in)
    assert joined.address == background.address
    _, server, worker = processes(state)

    os.kill(os.getpid(), signal.SIGTERM)
    await foreground

    assert not server.alive
    assert not worker.alive


@pytest.mark.parametrize(
    ("phase", "running", "code", "foreground", "decision"),
    [
        ("ready", True, "mine", False, "join"),
        ("ready", True, "mine", True, "join"),
        ("ready", True, "other", False, "replace if idle"),
        ("ready", True, "other", True, "join changed"),
        ("ready", False, "mine", False, "start"),
        ("starting", True, "mine", False, "wait"),
        ("stopping", True, "other", False, "wait"),
        ("failed", False, "mine", False, "start"),
        (None, True, "mine", False, "wait"),
        (None, False, "mine", False, "start"),
    ],
)
def test_what_a_client_does_about_the_stack_it_finds(
    phase: Phase | None, running: bool, code: str, foreground: bool, decision: Decision
) -> None:
    record = phase and StackRecord(
        launch="x",
        phase=phase,
        code=code,
        settings="mine",
        foreground=foreground,
        supervisor=ProcessIdentity(pid=1, started="then"),
    )
    assert decide(record, running, Origin("mine", "mine")) == decision


async def a_run(address: str, **more: Any) -> Any:
    client = await Client.connect(address)
    handle = await client.start_workflow("Nobody", id="a-run", task_queue="nobody", **more)
    while (await client.count_workflows("ExecutionStatus='Running'")).count == 0:
        await asyncio.sleep(0.02)
    return handle
