"""Several worker processes of one role: each is started again if it dies, and all are drained by one signal.

Each has a health and a metrics port of its own: those of the settings are the first one's, and the next ones count up.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

import structlog

from sennit.workers.settings import ListenAddress, WorkerSettings, WrongSetting

_MAX_PROCESSES = 64
_STEADY_SECONDS = 60.0  # A process that has lived so long has died for a new reason
_MAX_DEATHS = 5  # of one process, without being steady once
_MAX_PAUSE_SECONDS = 30.0

log = structlog.stdlib.get_logger("workers")


def count_in(text: str) -> int:
    """Return how many processes a flag asks for. Raises WrongSetting."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= _MAX_PROCESSES):
        raise WrongSetting(f"--processes {text}: must be a whole number from 1 to {_MAX_PROCESSES}")
    return int(text)


def ports_of(settings: WorkerSettings, count: int) -> list[dict[str, str]]:
    """Return for each process the variables that name its ports. Raises WrongSetting if two would be the same."""
    named = {"SENNIT_HEALTH_PORT": settings.health, "SENNIT_METRICS_PORT": settings.metrics}
    fixed = {name: address for name, address in named.items() if address is not None and address.port}
    first, *others = sorted(address.port for address in fixed.values()) or [0]
    if others and others[0] - first < count:
        raise WrongSetting(
            f"{' and '.join(fixed)}: the ports of {count} processes count up; leave as many between them"
        )
    if any(address.port + count - 1 > 65_535 for address in fixed.values()):
        raise WrongSetting(f"{' and '.join(fixed)}: there are not {count} ports from there on")
    return [
        {name: str(ListenAddress(address.host, address.port + place)) for name, address in fixed.items()}
        for place in range(count)
    ]


class WorkerProcesses:
    """The processes of a role, each with `ports` of its own. `run` starts them and returns when all have ended."""

    def __init__(self, role: str, ports: list[dict[str, str]], env: Mapping[str, str] = os.environ) -> None:
        self._command = [sys.executable, "-P", "-m", "sennit.workers", role]
        self._ports = ports
        self._env = env
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._status = 0
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Return the exit code: 0 drained, 1 if one could not be drained or died again and again, 2 if one refused a
        setting; then the others are drained too.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, 0)
        await asyncio.gather(*(self._keep(place) for place in range(len(self._ports))))
        return self._status

    def _stop(self, status: int) -> None:
        """Have all processes drain; at the second signal, leave at once."""
        self._status = self._status or status
        self._stopping.set()
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.terminate()

    async def _keep(self, place: int) -> None:
        deaths, about = 0, log.bind(process=place + 1)
        while not self._stopping.is_set():
            started = time.monotonic()
            status = await self._one(place)
            if self._stopping.is_set():
                self._status = self._status or int(status != 0)
                return
            deaths = 1 if time.monotonic() - started >= _STEADY_SECONDS else deaths + 1
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
            if status == 2 or deaths >= _MAX_DEATHS:
                about.error("a process cannot be kept running: all others end too", how=how, deaths=deaths)
                self._stop(status if status == 2 else 1)
                return
            about.warning("a process has died: it is started again", how=how, deaths=deaths)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), min(2.0 ** (deaths - 1) - 1, _MAX_PAUSE_SECONDS))

    async def _one(self, place: int) -> int:
        """Run one process until it ends. Ctrl-C of a terminal reaches it by this process alone."""
        env = {**self._env, **self._ports[place]}
        child = await asyncio.create_subprocess_exec(*self._command, env=env, start_new_session=True)
        self._children[place] = child
        if self._stopping.is_set():
            child.terminate()
        ports = {name.lower(): address for name, address in self._ports[place].items()}
        log.info("a process has started", process=place + 1, pid=child.pid, **ports)
        return await child.wait()


def serve_in(role: str, count: int) -> int:
    """Serve a role in so many processes until a signal says to stop. Raises WrongSetting."""
    from sennit.workers.roles import role_named
    from sennit.workers.settings import read_settings
    from sennit.workers.telemetry import start_log

    settings = read_settings()
    name, ports = role_named(role).name, ports_of(settings, count)
    start_log(settings.log, settings.log_level)
    return asyncio.run(WorkerProcesses(name, ports).run())
