"""The workers of a local stack as one child process: started, known to be ready, started again when they die."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from starter.dev.launch import DRAIN, Launch, worker_environment
from starter.dev.ports import HOST, choose_port
from starter.dev.process import Process
from starter.dev.restarts import QUICK_DEATHS, QUICK_SECONDS, Restarts
from starter.dev.watched import Say, last_lines

GRACE = DRAIN + 5  # seconds between SIGTERM and SIGKILL
READY_LIMIT = 60.0  # seconds from start to /readyz
POLL = 0.1  # seconds
WRONG_SETTINGS = 2  # the exit status of workers that cannot do what they are told; another start changes nothing


class WorkersFailed(Exception):
    """The workers keep dying before they are of use; the text holds the end of their log."""


class WorkersMisset(WorkersFailed):
    """The workers refuse a setting; the text holds its name."""


class Workers:
    """Keeps `python -m workers all` alive; `changed(ready)` is called after every start and when they are ready."""

    def __init__(self, launch: Launch, log: Path, say: Say, changed: Callable[[bool], None]) -> None:
        self._launch = launch
        self._log = log
        self._say = say
        self._changed = changed
        self._log_start = 0
        self._environ: Mapping[str, str] = dict(os.environ)
        self.process: Process | None = None

    async def keep(self, address: str) -> None:
        """Run workers for the server at `address` for ever; WorkersFailed when that has no prospect."""
        restarts = Restarts()
        while True:
            process, port = self._start(address)
            self._changed(False)
            if await self._ready(process, port):
                restarts.proven = True
                self._changed(True)
                await process.ended()
            story = f"the workers {process.status if not process.running else 'were not ready in time'}"
            process.kill()
            if process.exit_status == WRONG_SETTINGS and not restarts.proven:
                raise WorkersMisset(f"{story}; the end of {self._log}:\n{self._last_words()}")
            delay = restarts.died(time.monotonic())
            if delay is None:
                often = f"{QUICK_DEATHS} times within {QUICK_SECONDS:.0f} s"
                raise WorkersFailed(f"{story}, {often}; the end of {self._log}:\n{self._last_words()}")
            self._say(f"{story}; starting them again in {delay:g} s (log: {self._log})")
            await asyncio.sleep(delay)

    async def stop(self) -> None:
        """Let the workers drain: SIGTERM, then SIGKILL to those that outlive their time."""
        if self.process is not None:
            await self.process.stop()

    def kill(self) -> None:
        """SIGKILL at once."""
        if self.process is not None:
            self.process.kill()

    def _start(self, address: str) -> tuple[Process, int]:
        port = choose_port(0)
        self.process = Process(
            self._launch.worker_command,
            log=self._log,
            env=worker_environment(self._launch, address, port, self._environ),
            cwd=self._launch.state,
            grace=GRACE,
        )
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        self.process.start()
        return self.process, port

    def _last_words(self) -> str:
        """What the last start wrote; all of the log if it was set aside at that start."""
        since = self._log_start if self._log.stat().st_size > self._log_start else 0
        return last_lines(self._log, since=since)

    async def _ready(self, process: Process, port: int) -> bool:
        deadline = time.monotonic() + READY_LIMIT
        while process.running and time.monotonic() < deadline:
            if await answers_ready(port):
                return True
            await asyncio.sleep(POLL)
        return False


async def answers_ready(port: int) -> bool:
    """Whether GET /readyz on 127.0.0.1 answers 200 within two seconds."""
    try:
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split(b" ")[1:2] == [b"200"]
