"""The processes under fire: a server on its database, and workers that are started again soon after each death."""

import asyncio
import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from chaos.answers import cores_of
from chaos.calls import CallLog
from doubles.worker_processes import WorkerProcesses

from sennit.starter.dev.server import DevServer

ROLES = ("workflow", "workflow", "tools", "tools", "llm", "sandbox")
FAST_CLOCK_SLOT, AHEAD = 2, 20.0
"""The clock of one worker of the tools is so many seconds ahead."""
LONGEST_ABSENCE = 1.0
POLL = 0.05


@dataclass
class Fleet:
    """A server and one worker process a role. `killed` has the role, process and time of each kill, `outages` the time
    when server or disk failed all of them.
    """

    server: DevServer
    workers: WorkerProcesses
    chance: Random
    pids: dict[int, int] = field(default_factory=dict)
    killed: list[tuple[str, int, float]] = field(default_factory=list)
    outages: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.calls = CallLog(self.workers.index / "calls.log")

    def start(self) -> None:
        """Start every worker."""
        for slot in range(len(ROLES)):
            self._start(slot)

    async def kill_workers(self, *slots: int) -> None:
        """Kill workers by SIGKILL; each comes back within a second."""
        for slot in slots:
            self.killed.append((ROLES[slot], self.pids[slot], time.time()))
            self.workers.kill(self.pids[slot])
        await asyncio.sleep(LONGEST_ABSENCE * self.chance.random())
        self.restart()

    def restart(self) -> None:
        """Start each worker that has ended, as a supervisor or Kubernetes does."""
        for slot, pid in self.pids.items():
            if not self.workers.running(pid):
                self._start(slot)

    def _start(self, slot: int) -> None:
        ahead = AHEAD if slot == FAST_CLOCK_SLOT else 0.0
        self.workers.env["CLOCK_AHEAD"] = str(ahead)
        with cores_of(slot):
            self.pids[slot] = self.workers.start(ROLES[slot])[0]

    async def kill_server(self) -> None:
        """Kill the server by SIGKILL and start it on its database."""
        self.killed.append(("server", 0, time.time()))
        self.outages.append(time.time())
        self.server.kill()
        await self.server.start()

    async def sleep(self, seconds: float, *others: int) -> None:
        """Stop all processes for a while, as a laptop does whose lid is closed; `others` lead groups of their own."""
        identity = self.server.identity
        groups = [*self.pids.values(), *([identity.pid] if identity else []), *others]
        self.outages.append(time.time())
        for group in groups:
            os.killpg(group, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        for group in groups:
            os.killpg(group, signal.SIGCONT)

    async def fill_disk(self, seconds: float) -> None:
        """Leave no room in the workers' state folder for a while."""
        self.outages.append(time.time())
        filler = self.workers.state / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 65536)
            except OSError:
                pass
        await asyncio.sleep(seconds)
        filler.unlink()

    async def slow_store(self, seconds: float) -> None:
        """Delay all that the artifact store does, by random amounts, for a while."""
        self.outages.append(time.time())
        slow = self.workers.state / "slow"
        with suppress(OSError):
            slow.touch()
        await asyncio.sleep(seconds)
        slow.unlink(missing_ok=True)

    async def take_store_away(self, seconds: float, slot: int, *, leaves: bool) -> str:
        """Move the artifact store away for a while, as a volume that is unmounted `leaves` an empty folder, or none.
        Meanwhile a worker is killed, and another one starts in its place. Returns what is wrong, "" for nothing.
        """
        self.outages.append(time.time())
        store = self.workers.state / "artifacts"
        away = store.rename(store.with_name("away"))
        if leaves:
            store.mkdir()
        await asyncio.sleep(seconds / 2)
        await self.kill_workers(slot)
        await asyncio.sleep(seconds / 2)
        self.outages.append(time.time())
        made = sorted(str(each.relative_to(store)) for each in store.rglob("*"))
        if store.exists():
            shutil.rmtree(store)
        away.rename(store)
        return f"while the store was away, somebody made another one with {made[:5]}" if made else ""

    async def follow(self) -> None:
        """Keep reading the log of calls."""
        while True:
            self.calls.read()
            await asyncio.sleep(POLL)

    async def supervise(self) -> None:
        """Keep starting workers that have ended by themselves."""
        while True:
            await asyncio.sleep(2 * LONGEST_ABSENCE)
            self.restart()

    def recoveries(self) -> tuple[list[float], list[float]]:
        """Return the seconds from each kill of a worker to the next call of what it had been calling: where nothing
        else went wrong meanwhile, and where another kill had hit an attempt between, or an outage came.
        """
        died = {pid: at for _, pid, at in self.killed}
        found: tuple[list[float], list[float]] = [], []
        for calls in self.calls.called.values():
            for lost, again in pairwise(calls):
                if lost.pid in died and died[lost.pid] < again.at and lost.attempt < again.attempt:
                    outage = any(died[lost.pid] < at < again.at for at in self.outages)
                    found[outage or again.attempt > lost.attempt + 1].append(again.at - died[lost.pid])
        return found
