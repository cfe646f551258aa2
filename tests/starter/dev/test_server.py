"""The dev server as a process, on the real binary."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.client import Client

from starter.dev.failures import LocalStackFailed
from starter.dev.process import ProcessIdentity
from starter.dev.server import DevServer, answers

pytestmark = pytest.mark.server


async def test_a_killed_server_comes_back_on_the_same_ports_with_its_runs(
    tmp_path: Path, dev_server_binary: Path
) -> None:
    server = DevServer(dev_server_binary, tmp_path / "t.db", tmp_path / "server.log", port=0, ui_port=0)
    await server.start()
    try:
        address, ui_url = server.address, server.ui_url
        assert await answers(address)
        client = await Client.connect(address)
        await client.start_workflow("Nobody", id="a-run", task_queue="nobody")
        assert ui_url is not None
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(ui_url, timeout=5).status)
        assert page == 200

        server.kill()
        assert not server.running
        await server.start()

        assert (server.address, server.ui_url) == (address, ui_url)
        again = await Client.connect(address)
        assert (await again.get_workflow_handle("a-run").describe()).id == "a-run"
    finally:
        await server.stop()
    assert server.exit_status == 0
    assert not await answers(address)


async def test_taken_ports_are_replaced_by_free_ones(tmp_path: Path, dev_server_binary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as other_ui:
        taken, taken_ui = other.getsockname()[1], other_ui.getsockname()[1]
        server = DevServer(dev_server_binary, None, tmp_path / "server.log", port=taken, ui_port=taken_ui)
        await server.start()
        await server.stop()
    assert server.port != taken
    assert server.ui_port != taken_ui


async def test_a_headless_server_has_no_ui(tmp_path: Path, dev_server_binary: Path) -> None:
    server = DevServer(dev_server_binary, None, tmp_path / "server.log", port=0, headless=True)
    await server.start()
    await server.stop()
    assert server.ui_url is None
    assert "Temporal UI" not in (tmp_path / "server.log").read_text()


async def test_a_server_that_ends_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "temporal"
    broken.write_text("#!/bin/sh\necho 'database is on fire'\nexit 3\n")
    broken.chmod(0o755)
    server = DevServer(broken, tmp_path / "t.db", tmp_path / "server.log", port=0, ui_port=0)

    with pytest.raises(LocalStackFailed, match=r"(?s)exit status 3.*server\.log.*database is on fire"):
        await server.start()


async def test_a_server_that_never_answers_is_ended_and_an_error(tmp_path: Path) -> None:
    silent = tmp_path / "temporal"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    server = DevServer(silent, None, tmp_path / "server.log", port=0, ui_port=0)

    with pytest.raises(LocalStackFailed, match="was not ready after 0 s"):
        await server.start(limit=0.3)

    assert not server.running


async def test_a_server_ends_when_the_process_that_started_it_is_killed(
    tmp_path: Path, dev_server_binary: Path, eventually: Callable[[Callable[[], object]], Awaitable[None]]
) -> None:
    script = f"""
import asyncio, os, pathlib, signal
from starter.dev.failures import LocalStackFailed
from starter.dev.server import DevServer, answers
server = DevServer(pathlib.Path({str(dev_server_binary)!r}), None, pathlib.Path({str(tmp_path / "s.log")!r}), port=0)
asyncio.run(server.start())
print(server.identity.pid, flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        line = await asyncio.to_thread(owner.stdout.readline)
        identity = ProcessIdentity.of(int(re.fullmatch(r"(\d+)\n", line)[1]))  # type: ignore[index] # fails the test
        assert identity is not None
        assert identity.alive

        os.kill(owner.pid, signal.SIGKILL)

        await eventually(lambda: not identity.alive)
