"""The local stack as clients see it: join the one that runs, start one, stop it."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from temporalio.client import Client

from starter.dev.binary import obtain_apart
from starter.dev.failures import LocalStackFailed, WrongSettings
from starter.dev.messages import Say, last_lines, to_stderr
from starter.dev.process import ProcessIdentity
from starter.dev.server import NAMESPACE, answers
from starter.dev.settings import Settings
from starter.dev.state import StackRecord, StateDir
from starter.dev.supervisor import Supervisor, anything_runs
from starter.dev.workers import COMMAND

READY_LIMIT = 180.0  # seconds
STOP_LIMITS = {signal.SIGTERM: 40.0, signal.SIGKILL: 10.0}  # seconds: the workers drain, then the server stops
ANSWER_LIMIT = 15.0  # seconds: a server that crashed is back by then
POLL = 0.1  # seconds
MOVING = "SennitStatus IS NULL OR SennitStatus != 'blocked'"
STALE = "code or settings have changed"


class LocalStack:
    """The server and workers of one state directory. Every method raises LocalStackFailed."""

    def __init__(
        self, state: StateDir | None = None, *, say: Say = to_stderr, worker_command: Sequence[str] = COMMAND
    ) -> None:
        self.state = state or StateDir.find()
        self._say = say
        self._worker_command = worker_command

    async def join(self, *, as_it_is: bool = False) -> StackRecord:
        """Join the stack that runs, or start one in the background and wait until it is ready.

        Any number of clients at once make one stack. Idle workers that were started with other settings are restarted
        with those of this process; busy ones are joined with a warning. Runs that are blocked do not count as busy:
        they go on waiting. `as_it_is` joins whatever answers, for clients that start no run.
        """
        async with self._lock():
            record = await self._join(as_it_is)
            self.state.last_used.touch()
        return record

    async def serve(self) -> None:
        """Run it in this process until Ctrl-C or SIGTERM (`sennit dev`); stop one in the background first."""
        async with self._lock():
            record = self.state.read()
            if self.state.running():
                if record and record.foreground:
                    where = f"process {record.supervisor.pid}, Temporal at {record.address}"
                    raise LocalStackFailed(f"`sennit dev` runs already ({where})")
                self._say("stopping the local stack in the background; its runs go on here")
                await self.stop()
            binary = await obtain_apart(self._say)
        await Supervisor(self.state, binary, self._worker_command, self._say).run()

    async def stop(self) -> bool:
        """Stop it and wait until nothing of it runs; return whether there was one. Its runs are kept."""
        ran = False
        for number, limit in STOP_LIMITS.items():
            signalled: ProcessIdentity | None = None
            deadline = time.monotonic() + limit
            while self.state.running() and time.monotonic() < deadline:
                ran = True
                record = self.state.read()
                if record and record.supervisor != signalled:  # also one that has yet to write its record
                    signalled = record.supervisor
                    signalled.signal(number)
                await asyncio.sleep(POLL)
        if self.state.running():
            raise LocalStackFailed(f"the stack in {self.state.root} does not stop; log: {self.state.log('supervisor')}")
        last = self.state.read()
        if last and last.phase != "stopped":  # it was killed, so its children may still be ending
            await asyncio.to_thread(last.kill_children)
        return ran

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        self.state.prepare()
        lock = self.state.try_lock("start")
        if lock is None:
            self._say("waiting for another client that starts or stops the local stack ...")
        while lock is None:
            await asyncio.sleep(POLL)
            lock = self.state.try_lock("start")
        try:
            yield
        finally:
            lock.release()

    async def _join(self, as_it_is: bool) -> StackRecord:
        settings = Settings.of_this_process()
        while self.state.running():
            record = self.state.read()
            if record is None or record.phase != "ready":
                await self._ready()
            elif not await self._answers(record):
                self._say(f"the local Temporal server at {record.address} does not answer: starting it anew")
                await self.stop()
            elif as_it_is or record.settings == settings.digest or not await self._may_restart(record):
                return record
            elif self.state.hand_over(settings.model_dump_json()):
                self._say(f"{STALE}: restarting the workers of the local stack")
                await self._ready(digest=settings.digest)
            else:
                self._say(f"{STALE}: starting the local stack anew")
                await self.stop()
        return await self._start()

    async def _start(self) -> StackRecord:
        binary = await obtain_apart(self._say)
        self._say("starting a local Temporal server and workers ...")
        log = self.state.log("supervisor")
        record = await self._ready(self._spawn_supervisor(str(binary)))
        if not record:
            raise LocalStackFailed(f"the local stack ended at once; the end of {log}:\n{last_lines(log)}")
        self._say(f"Temporal at {record.address}, web UI at {record.ui_url}")
        return record

    def _spawn_supervisor(self, binary: str) -> ProcessIdentity:
        """Start a supervisor that outlives this process and its terminal."""
        log = str(self.state.log("supervisor"))
        module = [sys.executable, "-P", "-m", "starter.dev.supervisor"]
        pid = os.posix_spawn(
            sys.executable,
            [*module, str(self.state.root), binary, *self._worker_command],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        return ProcessIdentity.of(pid) or ProcessIdentity(pid=pid, created=0)

    async def _ready(self, supervisor: ProcessIdentity | None = None, digest: str = "") -> StackRecord | None:
        """Wait until the stack is ready, with settings of this digest if given; return None when it has ended.

        If it failed although it was started (`supervisor`) or changed (`digest`) from here, that is raised.
        """
        deadline = time.monotonic() + READY_LIMIT
        said = "starting the Temporal server"
        while time.monotonic() < deadline:
            over = not (supervisor.alive if supervisor else self.state.running())
            record = self.state.read()
            if record and (supervisor is None or supervisor.is_same(record.supervisor)):
                if record.phase == "ready" and digest in ("", record.settings):
                    return record
                if over and record.phase == "failed" and (supervisor or digest):
                    kind = WrongSettings if record.wrong_settings else LocalStackFailed
                    raise kind(f"{record.detail}\nlog: {self.state.log('supervisor')}")
                if record.phase != "failed" and record.detail not in ("", said):
                    said = record.detail
                    self._say(f"{said} ...")
            if over:
                return None
            await asyncio.sleep(POLL)
        logs = self.state.log("supervisor").parent
        raise LocalStackFailed(f"the local stack is not ready after {READY_LIMIT:.0f} s; logs: {logs}")

    async def _answers(self, record: StackRecord) -> bool:
        deadline = time.monotonic() + ANSWER_LIMIT
        while not await answers(record.address):
            if time.monotonic() > deadline or not self.state.running():
                return False
            await asyncio.sleep(POLL)
        return True

    async def _may_restart(self, record: StackRecord) -> bool:
        """Return whether workers with other settings are idle and in the background; say so if not."""
        if record.foreground:
            self._say(f"warning: {STALE} since `sennit dev` started; start it again to use them")
            return False
        client = await Client.connect(record.address, namespace=NAMESPACE)
        for pause in (0.5, 0.0):  # asked twice, because a run that just started is counted a moment later
            if await anything_runs(client, MOVING) is not False:
                busy = "but the local stack is busy and keeps the old ones; `sennit dev --stop` ends it"
                self._say(f"warning: {STALE}, {busy}")
                return False
            await asyncio.sleep(pause)
        return True
