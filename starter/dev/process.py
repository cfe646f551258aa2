"""A command in a process group of its own that does not outlive the process that started it."""

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")
LARGEST_LOG = 10_000_000  # bytes; a larger log is set aside at the next start
POLL = 0.05  # seconds


class Process:
    """One command, started any number of times, one at a time; its output is added to `log`.

    If the owner dies, even by SIGKILL, the command gets SIGTERM and, `grace` seconds later, SIGKILL. What the
    command itself started and left in its group is killed when it ends.
    """

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path, grace: float) -> None:
        self.command = list(command)
        self.log = log
        self._env = dict(env)
        self._cwd = cwd
        self._grace = grace
        self._child: subprocess.Popen[bytes] | None = None
        self._owner: int | None = None  # the pipe's end that closes when this process dies

    @property
    def pid(self) -> int:
        """The process id of the last start; RuntimeError before the first."""
        if self._child is None:
            raise RuntimeError(f"{self.command[0]} was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_status(self) -> int | None:
        """The exit status of the last start, negative for a signal; None while it runs or before the first."""
        return self._child.poll() if self._child else None

    @property
    def status(self) -> str:
        """How the last start ended, for a message."""
        code = self.exit_status
        if code is None:
            return "is running" if self._child else "was not started"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"

    def start(self) -> None:
        """Start the command; RuntimeError if it runs. Returns before the command is of any use."""
        if self.running:
            raise RuntimeError(f"{self.command[0]} is running already")
        self._disown()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LARGEST_LOG:
            self.log.replace(self.log.with_suffix(".old.log"))
        watched, self._owner = os.pipe()
        leash = [sys.executable, "-I", "-S", str(LEASH), str(watched), str(self._grace)]
        try:
            with self.log.open("ab") as output:
                self._child = subprocess.Popen(  # noqa: S603 - a command of ours, not text from outside
                    [*leash, *self.command],
                    cwd=self._cwd,
                    env=self._env,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=[watched],
                    start_new_session=True,
                )
        finally:
            os.close(watched)

    async def stop(self, grace: float | None = None) -> None:
        """SIGTERM, wait up to `grace` seconds, SIGKILL to the group. Harmless when nothing runs."""
        if self._child is not None and self.running:
            self._child.terminate()
            try:
                await self.ended(self._grace if grace is None else grace)
            finally:
                self.kill()
        self._disown()

    def kill(self) -> None:
        """SIGKILL to the whole group, reaped on return. Harmless when nothing runs."""
        if self._child is not None and self.running:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._disown()

    async def ended(self, limit: float | None = None) -> bool:
        """Wait until it has ended, or `limit` seconds; whether it has."""
        deadline = time.monotonic() + (math.inf if limit is None else limit)
        while self.running:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(POLL)
        return True

    def _disown(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None
