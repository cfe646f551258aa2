"""A real dev server binary, state directories of their own, and a trivial fake worker."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import free_port
from sennit.starter.dev.stack import LocalStack
from sennit.starter.dev.state import ProcessIdentity, StackRecord, StateDir

FAKE_WORKER = """
import http.server, json, os, pathlib, sys

class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in ("/readyz", "/livez") else 404)
        self.end_headers()

starts = pathlib.Path(os.environ["SENNIT_ARTIFACTS"]).parent / "starts"
with starts.open("a") as file:
    file.write(json.dumps({"pid": os.getpid(), "environ": dict(os.environ)}) + "\\n")
http.server.HTTPServer(("127.0.0.1", int(os.environ["SENNIT_HEALTH_PORT"].rpartition(":")[2])), Ready).serve_forever()
"""


@pytest.fixture(scope="session")
def dev_server_binary() -> Path:
    return asyncio.run(obtain(pinned_only=True))


@pytest.fixture
def fake_worker(tmp_path: Path) -> tuple[str, ...]:
    """The command of a worker that only answers probes and notes each start in the state directory."""
    script = tmp_path / "fake_worker.py"
    script.write_text(FAKE_WORKER)
    return (sys.executable, str(script))


@pytest.fixture
async def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dev_server_binary: Path) -> AsyncIterator[StateDir]:
    """A state directory whose stack takes free ports and is stopped after the test."""
    monkeypatch.setenv("SENNIT_TEMPORAL_CLI", str(dev_server_binary))
    directory = StateDir(tmp_path / "state")
    directory.prepare()
    nobody = ProcessIdentity(pid=1, created=0)
    port = random.randrange(10_000, 16_000, 2)  # below those that a system gives to others while a test restarts
    ports = {"port": free_port(port), "ui_port": free_port(port + 1)}
    directory.write(StackRecord(phase="stopped", supervisor=nobody, **ports))
    yield directory
    await LocalStack(directory).stop()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Wait until a condition holds, a hundred seconds at most."""

    async def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 100
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true within 100 s"
            await asyncio.sleep(0.02)

    return wait
