"""The local stack as clients see it: join the one that runs, start one, stop it."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from starter.dev.binary import obtain_apart
from starter.dev.failures import LocalStackFailed, WrongWorkerSettings
from starter.dev.messages import Say, last_lines, to_stderr
from starter.dev.process import ProcessIdentity
from starter.dev.server import NAMESPACE, answers
from starter.dev.settings import Settings
from starter.dev.state import StackRecord, StateDir
from starter.dev.supervisor import Supervisor, anything_runs
from starter.dev.workers import COMMAND

IDLE_STOP = 900.0  # seconds
READY_LIMIT = 180.0  # seconds
STOP_LIMITS = {signal.SIGTERM: 40.0, signal.SIGKILL: 10.0}  # seconds: the workers drain, then the server stops
POLL = 0.1  # seconds
ANSWER_LIMIT = 15.0  # seconds: a server that crashed is back by then
MOVING = "SennitStatus IS NULL OR SennitStatus != 'blocked'"


async def local_stack(
    *,
    say: Say = to_stderr,
    state: StateDir | None = None,
    worker_command: Sequence[str] = COMMAND,
    as_it_is: bool = False,
) -> StackRecord:
    """Join the stack of the state directory, or start one in the background and wait until it is ready.

    Any number of clients at once make one stack. Idle workers that were started with other settings are restarted
    with those of this process; busy ones are joined with a warning. Runs that are blocked do not count as busy: they
    go on waiting. `as_it_is` joins whatever answers, for clients that start no run. Raises LocalStackFailed.
    """
    client = _Client(state or StateDir.find(), say, worker_command)
    async with client.deciding():
        record = await client.join(as_it_is)
        client.state.last_used.touch()
    return record


async def run_foreground(
    *, say: Say = to_stderr, state: StateDir | None = None, worker_command: Sequence[str] = COMMAND
) -> None:
    """Run the stack in this process until Ctrl-C or SIGTERM (`sennit dev`); stop one in the background first.

    Raises LocalStackFailed, also when another terminal runs one already.
    """
    client = _Client(state or StateDir.find(), say, worker_command)
    async with client.deciding():
        record = client.state.read()
        if client.state.running():
            if record and record.foreground:
                raise LocalStackFailed(
                    f"`sennit dev` runs already (process {record.supervisor.pid}, Temporal at {record.address})"
                )
            say("stopping the local stack in the background; its runs go on here")
            await stop_stack(client.state)
        binary = await obtain_apart(say)
    await Supervisor(client.state, binary, worker_command, say).run()


async def stop_stack(state: StateDir | None = None) -> bool:
    """Stop the stack of the state directory and wait until nothing of it runs; return whether there was one.

    Runs are kept. LocalStackFailed if its processes do not end.
    """
    state = state or StateDir.find()
    ran = False
    for number, limit in STOP_LIMITS.items():
        signalled: ProcessIdentity | None = None
        deadline = time.monotonic() + limit
        while state.running() and time.monotonic() < deadline:
            ran = True
            record = state.read()
            if record and record.supervisor != signalled:  # also one that has yet to write its record
                signalled = record.supervisor
                signalled.signal(number)
            await asyncio.sleep(POLL)
    if state.running():
        raise LocalStackFailed(f"the stack in {state.root} does not stop; log: {state.log('supervisor')}")
    last = state.read()
    if last is not None and last.phase != "stopped":  # it was killed, so its children may still be ending
        await asyncio.to_thread(last.kill_children)
    return ran


@dataclass(frozen=True, slots=True)
class _Client:
    """One client at the state directory; all but `deciding` is for the holder of its lock."""

    state: StateDir
    say: Say
    worker_command: Sequence[str]

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[None]:
        try:
            self.state.prepare()
        except OSError as error:
            raise LocalStackFailed(
                f"the state directory cannot be made: {error}; choose another with SENNIT_STATE"
            ) from error
        lock = self.state.try_lock("start")
        if lock is None:
            self.say("waiting for another client that starts or stops the local stack ...")
        while lock is None:
            await asyncio.sleep(POLL)
            lock = self.state.try_lock("start")
        try:
            yield
        finally:
            lock.release()

    async def join(self, as_it_is: bool) -> StackRecord:
        settings = Settings.of_this_process()
        while True:
            record = self.state.read()
            if not self.state.running():
                return await self._start()
            if record is None or record.phase != "ready":
                await self._settled()
            elif not await self._answers(record):
                if self.state.running():
                    self.say(f"the local Temporal server at {record.address} does not answer: starting it anew")
                    await stop_stack(self.state)
            elif as_it_is or record.settings == settings.digest or not await self._may_restart(record):
                return record
            elif self.state.hand_over(settings.model_dump_json()):
                self.say("code or settings have changed: restarting the workers of the local stack")
                await self._settled(digest=settings.digest)
            else:
                self.say("code or settings have changed: starting the local stack anew")
                await stop_stack(self.state)

    async def _start(self) -> StackRecord:
        idle_stop = _idle_stop()
        binary = await obtain_apart(self.say)
        self.say("starting a local Temporal server and workers ...")
        log = self.state.log("supervisor")
        arguments = (self.state.root, binary, idle_stop, *self.worker_command)
        supervisor = _spawn([str(each) for each in arguments], log)
        record = supervisor and await self._settled(supervisor)
        if not record:
            raise LocalStackFailed(f"the local stack ended at once; the end of {log}:\n{last_lines(log)}")
        self.say(f"Temporal at {record.address}, web UI at {record.ui_url}")
        return record

    async def _settled(self, supervisor: ProcessIdentity | None = None, digest: str = "") -> StackRecord | None:
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
                    kind = WrongWorkerSettings if record.wrong_settings else LocalStackFailed
                    raise kind(f"{record.detail}\nlog: {self.state.log('supervisor')}")
                if record.phase != "failed" and record.detail not in ("", said):
                    said = record.detail
                    self.say(f"{said} ...")
            if over:
                return None
            await asyncio.sleep(POLL)
        raise LocalStackFailed(
            f"the local stack is not ready after {READY_LIMIT:.0f} s; logs: {self.state.root / 'logs'}"
        )

    async def _answers(self, record: StackRecord) -> bool:
        deadline = time.monotonic() + ANSWER_LIMIT
        while not await answers(record.address):
            if time.monotonic() > deadline or not self.state.running():
                return False
            await asyncio.sleep(POLL)
        return True

    async def _may_restart(self, record: StackRecord) -> bool:
        """Return whether workers whose settings have changed are idle and in the background; say so if not."""
        if record.foreground:
            self.say("warning: code or settings have changed since `sennit dev` started; start it again to use them")
            return False
        client = await Client.connect(record.address, namespace=NAMESPACE)
        for pause in (0.5, 0.0):  # asked twice, because a run that just started is counted a moment later
            if await anything_runs(client, MOVING) is not False:
                self.say(
                    "warning: code or settings have changed, but the local stack is busy and keeps the old ones; "
                    "`sennit dev --stop` ends it"
                )
                return False
            await asyncio.sleep(pause)
        return True


def _spawn(arguments: Sequence[str], log: Path) -> ProcessIdentity | None:
    """Start a supervisor that outlives this process and its terminal; None if it ended at once."""
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", "starter.dev.supervisor", *arguments],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return ProcessIdentity.of(pid)


def _idle_stop() -> float:
    text = os.environ.get("SENNIT_IDLE_STOP") or str(IDLE_STOP)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise LocalStackFailed(f"SENNIT_IDLE_STOP={text} is not a number of seconds above 0")
    return seconds
