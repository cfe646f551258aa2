"""The local stack as clients see it: join the one that runs, start one, stop it."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

from temporalio.client import Client

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.messages import LocalStackFailed, Say, WrongSettings, last_lines, to_stderr
from sennit.starter.dev.private_file import private
from sennit.starter.dev.server import NAMESPACE, responds
from sennit.starter.dev.state import POLL, ProcessIdentity, StackRecord, StateDir, hold
from sennit.starter.dev.supervisor import Supervisor, anything_runs
from sennit.starter.dev.workers import (
    CHECK,
    COMMAND,
    INSTALLATION,
    changed_modules,
    check_settings,
    environment_digest,
    refuse_foreign_store,
    settings_digest,
)

READY_LIMIT = 180.0  # seconds
SILENT_LIMIT = 15.0  # seconds: a server that runs and does not answer for this long hangs
STOP_LIMIT = 40.0  # seconds: the workers drain, then the server stops
NOT_BLOCKED = "SennitStatus IS NULL OR SennitStatus != 'blocked'"
STALE = "code or settings have changed"
Renew = Literal["always", "code", "never"]
"""When a client has an idle stack started again: if code or settings differ, if
only code does, or never.
"""


class LocalStack:
    """The server and workers of one state directory. Every method raises LocalStackFailed.

    `serve` and `restart` start so many processes of workers, each of every role.
    """

    def __init__(
        self,
        state: StateDir | None = None,
        *,
        say: Say = to_stderr,
        worker_command: Sequence[str] = COMMAND,
        check_command: Sequence[str] = CHECK,
        workers: int = 1,
    ) -> None:
        self.state = state or StateDir.find()
        self._say = say
        self._worker_command = worker_command
        self._check_command = check_command
        self._workers = workers

    async def join(self, renew: Renew = "always") -> StackRecord:
        """Join the stack that runs, or start one in the background, and wait until it is ready.

        Any number of clients at once make one stack. An idle stack that was started with other
        settings is started again with those of this process, once these have been tried; a busy one
        is joined with a warning. Runs that are blocked do not count as busy: they wait in the
        database. A stack of another installation is joined as it is.

        With `renew="code"`, for clients that go on with a run, an idle stack is started
        again if its code has changed, such as a tool that somebody has mended, and this
        process has the variables that the stack was started with: the run needs those.
        `renew="never"` joins whatever runs.
        """
        if renew == "always":
            refuse_foreign_store(self.state)
        async with self._lock():
            record = None
            if self.state.running():
                record = await self._ready()
            if record and renew != "never" and await self._is_to_be_replaced(record, renew):
                await self._prepare_successor()
                self._say(f"{STALE}: restarting the local stack")
                await self.stop()
                self._workers = max(1, len(record.workers))  # as many as somebody has asked for
                record = None
            record = record or await self._start()
            self.state.last_used.touch()
        return record

    async def serve(self) -> None:
        """Run it in this process until Ctrl-C or SIGTERM (`sennit dev`); stop one
        in the background first.
        """
        refuse_foreign_store(self.state)
        async with self._lock():
            record = self.state.read()
            running = self.state.running()
            if running and record:
                self._refuse_in_foreground(record)
                if record.installation != INSTALLATION:
                    ways = "`sennit dev --restart` replaces it, `sennit dev --stop` ends it"
                    raise LocalStackFailed(f"{_of_another(record)}; {ways}")
            binary = await self._prepare_successor() if running else await obtain(self._say)
            if running:
                self._say("stopping the local stack in the background; its runs go on here")
                await self.stop()
        await Supervisor(
            self.state, binary, self._worker_command, self._say, workers=self._workers
        ).run()

    async def restart(self) -> StackRecord:
        """Start it in the background with this installation and the settings of this
        process, whatever runs now.
        """
        refuse_foreign_store(self.state)
        async with self._lock():
            record = self.state.read()
            if self.state.running():
                if record:
                    self._refuse_in_foreground(record)
                await self._prepare_successor()
                self._say("stopping the local stack; its runs go on when it has started again")
                await self.stop()
            record = await self._start()
            self.state.last_used.touch()
        return record

    async def stop(self) -> bool:
        """Stop it and wait until it has ended; return whether there was one. Its runs are kept."""
        deadline = time.monotonic() + STOP_LIMIT
        ran = False
        signalled: ProcessIdentity | None = None
        while self.state.running():
            ran = True
            record = self.state.read()
            # One that just started has yet to write its record.
            if record and record.supervisor != signalled:
                signalled = record.supervisor
                signalled.signal(signal.SIGTERM)
            if time.monotonic() > deadline:
                raise LocalStackFailed(
                    f"the local stack does not stop; end process {signalled and signalled.pid}"
                )
            await asyncio.sleep(POLL)
        return ran

    def _lock(self) -> AbstractAsyncContextManager[None]:
        self.state.prepare()
        waiting = "waiting for another client that starts or stops the local stack"
        return hold(self.state.start_lock, self._say, waiting)

    def _refuse_in_foreground(self, record: StackRecord) -> None:
        if record.foreground:
            where = f"process {record.supervisor.pid}, Temporal at {record.address}"
            raise LocalStackFailed(
                f"`sennit dev` runs already ({where}); end it with Ctrl-C where it runs"
            )

    async def _prepare_successor(self) -> Path:
        """Return the server's binary for a stack that takes the place of the one that runs. Raises
        LocalStackFailed if it could not start; nothing has been stopped then.
        """
        binary = await obtain(self._say)
        await check_settings(self._check_command, self.state)
        return binary

    async def _start(self) -> StackRecord:
        binary = await obtain(self._say)
        self._say("starting a local Temporal server and workers ...")
        record = await self._ready(self._spawn_supervisor(str(binary)))
        if not record:
            log = self.state.log("supervisor")
            raise LocalStackFailed(
                f"the local stack ended at once; the end of {log}:\n{last_lines(log)}"
            )
        ui = "off"
        if record.ui_url:
            ui = f"at {record.ui_url}"
        self._say(f"Temporal at {record.address}, web UI {ui}")
        return record

    def _spawn_supervisor(self, binary: str) -> ProcessIdentity:
        """Start a supervisor that outlives this process and its terminal."""
        command = [
            sys.executable,
            "-P",
            "-m",
            "sennit.starter.dev.supervisor",
            str(self.state.root),
            binary,
        ]
        with open(self.state.log("supervisor"), "ab", opener=private) as log:
            process = subprocess.Popen(  # noqa: S603 - a command of ours, not text from outside
                [*command, str(self._workers), *self._worker_command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # `os.posix_spawn` has none in Pythons that were built for an old glibc.
                start_new_session=True,
            )
        identity = ProcessIdentity.of(process.pid) or ProcessIdentity(pid=process.pid, created=0)
        process.returncode = 0  # nobody waits for it: without this Python warns that it still runs
        return identity

    async def _ready(self, started: ProcessIdentity | None = None) -> StackRecord | None:
        """Wait until the stack is ready and its server answers; return None when
        its supervisor has ended.

        When `started`, the supervisor that this process started, has failed, its failure is raised.
        A stack that was there before and whose server hangs is ended.
        """
        began = last_excuse = time.monotonic()
        said = "starting the Temporal server"
        while time.monotonic() < began + READY_LIMIT:
            running = started.alive if started else self.state.running()
            record = self.state.read()
            if record and started and record.supervisor.pid != started.pid:
                record = None  # of an earlier stack
            if not running:
                if record and started and record.phase == "failed":
                    kind = WrongSettings if record.wrong_settings else LocalStackFailed
                    raise kind(f"{record.detail}\nlog: {self.state.log('supervisor')}")
                return None
            if record and record.phase == "ready" and await responds(record.address):
                return record
            if (
                started
                or not record
                or record.phase != "ready"
                or not (record.server and record.server.alive)
            ):
                last_excuse = time.monotonic()  # it is being started
            elif time.monotonic() > last_excuse + SILENT_LIMIT:
                await self._end_silent(record)
                continue
            detail = (record and record.detail) or said
            if detail != said:
                said = detail
                self._say(f"{said} ...")
            await asyncio.sleep(POLL)
        problem = (
            f"the local stack is not ready after {READY_LIMIT:.0f} s; `sennit dev --stop` ends it"
        )
        raise LocalStackFailed(f"{problem}; logs: {self.state.root / 'logs'}")

    async def _end_silent(self, record: StackRecord) -> None:
        """End a stack whose server hangs. What a killed supervisor leaves is
        killed by the next one.
        """
        problem = f"the Temporal server at {record.address} does not answer"
        if record.foreground:
            raise LocalStackFailed(
                f"{problem}; stop `sennit dev` (process {record.supervisor.pid}) and start it again"
            )
        self._say(f"{problem}: stopping it and starting the local stack again ...")
        try:
            await self.stop()
        except LocalStackFailed:
            if not await asyncio.to_thread(record.supervisor.kill_group):
                raise

    async def _is_to_be_replaced(self, record: StackRecord, renew: Renew) -> bool:
        """Return whether a stack of this installation has other settings or code, and is idle and
        in the background; say so if it is used although it differs.
        """
        if record.installation != INSTALLATION:
            self._say(
                f"{_of_another(record)}; it is used as it is. `sennit dev --restart` replaces it"
            )
            return False
        if record.settings == settings_digest() and not changed_modules(self.state):
            return False
        if renew == "code" and record.environment != environment_digest():
            if mended := changed_modules(self.state):
                differs = (
                    "this shell has other settings than the local stack, which keeps the old code"
                )
                way = "set them as where it was started, or take these with `sennit dev --restart`"
                self._say(f"warning: {mended[0]} has changed, but {differs}; {way}")
            return False
        if record.foreground:
            self._say(f"warning: {STALE} since `sennit dev` started; start it again to use them")
            return False
        await asyncio.sleep(0.5)  # a run that just started is counted a moment later
        client = await Client.connect(record.address, namespace=NAMESPACE)
        idle = await anything_runs(client, NOT_BLOCKED) is False
        if not idle:
            busy = "but the local stack is busy and keeps the old ones; `sennit dev --stop` ends it"
            self._say(f"warning: {STALE}, {busy}")
        return idle


def _of_another(record: StackRecord) -> str:
    where = ""
    if record.installation:
        where = f" ({record.installation})"
    return f"another installation of Sennit has started the local stack{where}"
