"""Real worker processes that tests start and kill."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from doubles.tools import calls

TESTS = Path(__file__).parents[1]
LONGEST = 60.0


class Crew:
    """Worker processes of one server, sharing a state folder. Killed without mercy at the end."""

    def __init__(self, address: str, state: Path, **env: str) -> None:
        self.state = state
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "SENNIT_"))}
        self._env |= {
            "TEMPORAL_ADDRESS": address,
            "SENNIT_STATE": str(state),
            "SENNIT_DOCS_ANY": "1",
            "SENNIT_TOOLS": "doubles.tools",
            "SENNIT_TOOLS_PATH": str(TESTS),
            **env,
        }
        self._members: list[subprocess.Popen[bytes]] = []

    @property
    def index(self) -> Path:
        """Where the tools keep their log of calls."""
        return self.state / "index"

    def hire(self, *roles: str) -> list[int]:
        """Start a process for each role; returns their pids. They find work when they are up."""
        self.state.mkdir(parents=True, exist_ok=True)
        hired = []
        for role in roles:
            with (self.state / f"{role}.log").open("ab") as log:
                command = [sys.executable, "-m", "workers", role]
                member = subprocess.Popen(command, env=self._env, stdout=log, stderr=log, start_new_session=True)
            self._members.append(member)
            hired.append(member.pid)
        return hired

    def kill(self, *pids: int) -> None:
        """SIGKILL, as the kernel would; all of them when none is named."""
        for member in self._members:
            if (member.pid in pids or not pids) and member.poll() is None:
                os.killpg(member.pid, signal.SIGKILL)
                member.wait()

    def calls(self, run: str) -> list[str]:
        """Return `node~generation` of every tool call of a run, in order."""
        return calls(self.index, run)

    async def seen(self, run: str, *nodes: str) -> None:
        """Wait until each node has been called at least once."""
        async with asyncio.timeout(LONGEST):
            while not all(f"{node}~1" in self.calls(run) for node in nodes):
                await asyncio.sleep(0.05)
