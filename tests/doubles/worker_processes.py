"""Real worker processes that tests start and kill."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from doubles.tools import calls

from sennit.activities.storage.artifacts import STORE_ID

TESTS = Path(__file__).parents[1]
LONGEST = 60.0


def one_store(state: Path) -> None:
    """Make the artifact store of a state folder look like all others: a worker waits while its server has workers with
    another one, and for a while after they were killed.
    """
    artifacts = state / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    (artifacts / STORE_ID).write_text("tests")


def readiness(port: int) -> dict[str, Any]:
    """Return what a worker answers at /readyz of this port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as answer:
        return dict(json.load(answer))
    except OSError:
        return {"ready": False, "reason": "not there"}


class WorkerProcesses:
    """Worker processes of one server, sharing a state folder. Killed without mercy at the end."""

    def __init__(self, address: str, state: Path, **env: str) -> None:
        self.state = state
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "SENNIT_"))}
        self.env |= {
            "TEMPORAL_ADDRESS": address,
            "SENNIT_STATE": str(state),
            "SENNIT_DOCS_ROOTS": "/",
            "SENNIT_APPROVAL": "never",
            "SENNIT_TOOLS": "doubles.tools",
            "SENNIT_TOOLS_PATH": str(TESTS),
            **env,
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        one_store(state)

    @property
    def index(self) -> Path:
        """Where the tools keep their log of calls."""
        return self.state / "index"

    def start(self, *roles: str) -> list[int]:
        """Start a process for each role; returns their pids. They find work when they are up."""
        started = []
        for role in roles:
            with (self.state / f"{role}.log").open("ab") as log:
                command = [sys.executable, "-m", "sennit.workers", role]
                process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, start_new_session=True)
            self._processes.append(process)
            started.append(process.pid)
        return started

    def kill(self, *pids: int) -> None:
        """SIGKILL, as the kernel would; all of them when none is named."""
        for process in self._processes:
            if (process.pid in pids or not pids) and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def drain(self, pid: int) -> None:
        """SIGTERM, as Kubernetes does when it takes a pod away."""
        os.kill(pid, signal.SIGTERM)

    def running(self, pid: int) -> bool:
        """Whether a process that was started here has not ended."""
        return any(process.pid == pid and process.poll() is None for process in self._processes)

    def calls(self, run: str) -> list[str]:
        """Return `node~generation` of every tool call of a run, in order."""
        return calls(self.index, run)

    async def until_called(self, run: str, *nodes: str) -> None:
        """Wait until each node has been called at least once."""
        async with asyncio.timeout(LONGEST):
            while not all(f"{node}~1" in self.calls(run) for node in nodes):
                await asyncio.sleep(0.05)
