"""Several processes of a role: who dies comes back, one signal drains all, and what cannot run says so."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles.worker_processes import one_store

from sennit.starter.dev.server import DevServer, free_port
from sennit.workers import processes
from sennit.workers.processes import WorkerProcesses, ports_of
from sennit.workers.settings import WrongSetting, read_settings

STARTED, READY = "a process has started", "worker ready"


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, [{}, {}]),
        ({"SENNIT_HEALTH_PORT": "127.0.0.1:0"}, [{}, {}]),
        (
            {"SENNIT_HEALTH_PORT": "8080", "SENNIT_METRICS_PORT": "[::1]:9090"},
            [
                {"SENNIT_HEALTH_PORT": "0.0.0.0:8080", "SENNIT_METRICS_PORT": "[::1]:9090"},
                {"SENNIT_HEALTH_PORT": "0.0.0.0:8081", "SENNIT_METRICS_PORT": "[::1]:9091"},
            ],
        ),
    ],
)
def test_ports_count_up(env: dict[str, str], found: list[dict[str, str]]) -> None:
    assert ports_of(read_settings(env), 2) == found


@pytest.mark.parametrize(("health", "metrics"), [("8080", "8081"), ("8080", "65535")])
def test_no_two_processes_have_one_port(health: str, metrics: str) -> None:
    with pytest.raises(WrongSetting, match=r"SENNIT_HEALTH_PORT and SENNIT_METRICS_PORT: "):
        ports_of(read_settings({"SENNIT_HEALTH_PORT": health, "SENNIT_METRICS_PORT": metrics}), 2)


@asynccontextmanager
async def started(log: Path, *arguments: str, **env: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Start `python -m sennit.workers` with its log in a file, and kill it in the end, with what it has started."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_"))}
    with log.open("wb") as stderr:
        command = [sys.executable, "-m", "sennit.workers", *arguments]
        process = subprocess.Popen(command, env=clean | env, stderr=stderr)
    try:
        yield process
    finally:
        process.kill()
        for entry in said(log, STARTED):
            with_group = os.getpgid(entry["pid"]) if Path(f"/proc/{entry['pid']}").exists() else 0
            if with_group == entry["pid"]:
                os.killpg(with_group, signal.SIGKILL)


def said(log: Path, message: str) -> list[dict[str, Any]]:
    lines = [line for line in log.read_text().splitlines(keepends=True) if line.startswith("{") and line.endswith("\n")]
    return [entry for entry in map(json.loads, lines) if entry["message"] == message]


async def until(log: Path, message: str, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(100):
        while len(said(log, message)) < count:
            await asyncio.sleep(0.05)
    return said(log, message)


async def test_a_process_that_dies_comes_back_at_its_ports_and_one_signal_drains_all(
    dev_server: DevServer, tmp_path: Path
) -> None:
    log, port = tmp_path / "log", free_port()
    one_store(tmp_path / "state")
    ours = {"TEMPORAL_ADDRESS": dev_server.address, "SENNIT_STATE": str(tmp_path / "state"), "SENNIT_SANDBOX": "off"}
    async with started(log, "tools", "--processes", "2", SENNIT_HEALTH_PORT=f"127.0.0.1:{port}", **ours) as parent:
        first = await until(log, READY, 2)
        assert len({entry["identity"] for entry in first}) == 2
        doomed = next(entry for entry in said(log, STARTED) if entry["process"] == 2)
        os.kill(doomed["pid"], signal.SIGKILL)
        await until(log, READY, 3)
        [died] = said(log, "a process has died: it is started again")
        assert (died["process"], died["how"]) == (2, "was ended by SIGKILL")
        async with httpx.AsyncClient(trust_env=False) as client:
            ready = [(await client.get(f"http://127.0.0.1:{port + place}/readyz")).status_code for place in range(2)]
        assert ready == [200, 200]
        parent.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(parent.wait, 60) == 0
        assert len(said(log, "drained")) == 2


async def test_a_setting_that_they_refuse_ends_all_of_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with started(log, "tools", "--processes", "2", SENNIT_TOOLS="no.such.module") as parent:
        assert await asyncio.to_thread(parent.wait, 60) == 2
    assert said(log, "a process cannot be kept running: all others end too")[0]["how"] == "ended with exit status 2"
    assert "sennit worker: SENNIT_TOOLS: " in log.read_text()


async def test_who_dies_again_and_again_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_MAX_PAUSE_SECONDS", 0.0)
    workers = WorkerProcesses("tools", [{}])
    workers._command = [sys.executable, "-c", "raise SystemExit(1)"]
    assert await workers.run() == 1


@pytest.mark.parametrize("count", ["0", "65", "many"])
async def test_a_wrong_number_is_named_in_one_line(tmp_path: Path, count: str) -> None:
    log = tmp_path / "log"
    async with started(log, "tools", "--processes", count) as parent:
        assert await asyncio.to_thread(parent.wait, 60) == 2
    assert log.read_text() == f"sennit worker: --processes {count}: must be a whole number from 1 to 64\n"
