"""A command that is kept running and does not outlive the process that started it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sennit.starter.dev.messages import LocalStackFailed, Say, WrongSettings, last_lines
from sennit.starter.dev.state import ProcessIdentity
from sennit.starter.limits import MAX_LOG_BYTES, MAX_RESTART_PAUSE_SECONDS

GUARD = Path(__file__).with_name("guard.py")
START_LIMIT = 60.0  # seconds
POLL = 0.05  # seconds
STEADY = 60.0  # seconds; a child that lived this long died for a new reason
PROBE_PAUSE = 5.0  # seconds
SILENT_PROBES = 6  # in a row: after that, a process that runs and does not answer hangs
WRONG_SETTINGS = 2  # the exit status of a child that refuses a setting
DEATHS_NEVER_READY = 5
DEATHS_ONCE_READY = 20  # with the pauses about six minutes


class Child(ABC):
    """One command in a process group of its own, its output added to `log`.

    If its owner, this process, dies, even by SIGKILL, the command gets SIGTERM and, `grace` seconds
    later, SIGKILL. What the command itself started and left in its group is killed when it ends.
    """

    name: str
    grace: float
    umask = -1  # as it is

    def __init__(self, log: Path) -> None:
        self.log = log
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        # The end of a pipe; the system closes it when this process dies.
        self._owner: int | None = None

    @abstractmethod
    async def start(self) -> None:
        """Start it and wait until it answers. Raises LocalStackFailed; then no process is left."""

    @abstractmethod
    async def responds(self) -> bool:
        """Return whether it can be used now."""

    async def lives(self) -> bool:
        """Return whether it answers at all, ready or not. A child that cannot be asked
        lives as long as it runs.
        """
        return True

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def identity(self) -> ProcessIdentity | None:
        """The process of the last start; None when it has ended."""
        if not self._process:
            return None
        return ProcessIdentity.of(self._process.pid)

    @property
    def ending(self) -> str:
        """How the last start ended, with the end of its log, for a message."""
        code = None
        if self._process:
            code = self._process.poll()
        how = f"ended with exit status {code}"
        if code and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        log = last_lines(self.log, since=self._log_start)
        return f"{self.name} {how}; the end of {self.log}:\n{log}"

    async def launch(
        self, command: Sequence[str], env: Mapping[str, str], limit: float = START_LIMIT
    ) -> None:
        """Start the command and wait until it answers. On any failure, also when
        cancelled, no process is left.
        """
        process = self._spawn(command, env)
        ready = False
        try:
            async with asyncio.timeout(limit):
                while self.running and not await self.responds():  # noqa: ASYNC110 - a process tells nobody
                    await asyncio.sleep(POLL)
            ready = self.running  # if not, what answered is another process
        except TimeoutError:
            raise LocalStackFailed(
                f"{self.name} was not ready after {limit:.0f} s; log: {self.log}"
            ) from None
        finally:
            if not ready:
                self.kill()
        if not ready:
            if process.returncode == WRONG_SETTINGS:
                raise WrongSettings(self.ending)
            raise LocalStackFailed(self.ending)

    def _spawn(self, command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        self.kill()
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".old.log"))
        watched, self._owner = os.pipe()
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log_start = os.fstat(output).st_size
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a command of ours, not text from outside
                [sys.executable, "-I", "-S", str(GUARD), str(watched), str(self.grace), *command],
                cwd=self.log.parent,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[watched],
                start_new_session=True,
                umask=self.umask,
            )
        finally:
            os.close(watched)
            os.close(output)
        return self._process

    async def stop(self) -> None:
        """Send SIGTERM, wait for the grace, then kill the group. Harmless when it does not run."""
        try:
            if self._process and self.running:
                self._process.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended(), self.grace)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the whole group; the command is reaped on return. Harmless when it does not run."""
        if self._process and self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    async def _ended(self) -> None:
        while self.running:  # noqa: ASYNC110
            await asyncio.sleep(POLL)

    async def _watched(self) -> str:
        """Wait until it ends, or has not answered for so long that it hangs: then kill
        it. Return what happened.
        """
        silent = 0
        while silent < SILENT_PROBES:
            try:
                await asyncio.wait_for(self._ended(), PROBE_PAUSE)
            except TimeoutError:
                silent = 0 if await self.lives() else silent + 1
            else:
                return self.ending
        self.kill()
        return (
            f"{self.name} ran and did not answer {silent} times in a row, so it was killed; log: "
            f"{self.log}"
        )

    async def keep_running(self, say: Say, changed: Callable[[bool], None]) -> None:
        """Start it whenever it does not run, or hangs, with growing pauses; call
        `changed(ready)` before and after it.

        Raises LocalStackFailed after too many deaths in a row: five if it was never ready, one
        if it refuses a setting.
        """
        deaths, was_ready = 0, False
        while True:
            began = time.monotonic()
            try:
                if not self.running:
                    changed(False)
                    await self.start()
                was_ready = True
                changed(True)
                problem = await self._watched()
            except LocalStackFailed as failure:
                if isinstance(failure, WrongSettings) and not was_ready:
                    raise
                problem = str(failure)
            if time.monotonic() - began > STEADY:
                deaths = 0
            deaths += 1
            most_deaths = DEATHS_ONCE_READY if was_ready else DEATHS_NEVER_READY
            if deaths >= most_deaths:
                raise LocalStackFailed(f"given up after {deaths} times in a row: {problem}")
            pause = min(MAX_RESTART_PAUSE_SECONDS, 0.1 * 2.0**deaths)
            say(f"{problem.partition(';')[0]}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
