"""The local stack as clients see it: join the one that runs, start one, stop it."""

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from starter.dev.background import Background
from starter.dev.binary import obtain
from starter.dev.fingerprint import Origin
from starter.dev.launch import WORKERS, Launch
from starter.dev.server import PORT, UI_PORT
from starter.dev.state import StackRecord, StateDir
from starter.dev.supervisor import StackBusy, Supervisor, anything_runs
from starter.dev.watched import Progress, Say, last_lines, to_stderr

IDLE_STOP = 900.0  # seconds
READY_LIMIT = 180.0  # seconds
STOP_LIMIT = 40.0  # seconds: the workers drain, then the server stops
ANSWER_LIMIT = 15.0  # seconds: a server that crashed is back by then
POLL = 0.1  # seconds
MOVING = "SennitStatus IS NULL OR SennitStatus != 'blocked'"

Decision = Literal["start", "wait", "join", "replace if idle", "join changed"]


class LocalStackFailed(Exception):
    """The local stack could not be started or stopped; the text says why and where its log is."""


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A running server with workers on this machine."""

    address: str
    ui_url: str
    namespace: str
    state: StateDir

    def touch(self) -> None:
        """Put the idle stop off; a client that stays without a running workflow calls it every few minutes."""
        self.state.touch()


def decide(record: StackRecord | None, running: bool, origin: Origin) -> Decision:
    """What a client does about the stack it finds; `running` is whether a supervisor is alive."""
    if not running:
        return "start"
    if record is None or record.phase != "ready":
        return "wait"
    if not origin.differences(record):
        return "join"
    return "join changed" if record.foreground else "replace if idle"


async def local_stack(
    *,
    say: Say = to_stderr,
    docs: Path | None = None,
    state: StateDir | None = None,
    worker_command: Sequence[str] = WORKERS,
    as_it_is: bool = False,
) -> LocalStack:
    """Join the stack of the state directory, or start one in the background and wait until it is ready.

    Any number of clients at once make one stack. One that was started from other code or settings, or whose server
    does not answer, is replaced; if something runs in it, it is joined with a warning. Runs that are blocked do not
    count: they go on waiting in the new one. `as_it_is` joins whatever answers, for those who start nothing. `docs` is
    the workers' default folder if they are started now. Raises LocalStackFailed, or DevServerUnavailable when there is
    no server.
    """
    client = _Client(state or StateDir.find(), say, docs, tuple(worker_command))
    async with _state_lock(client.state, say):
        record = await client.ready_record(as_it_is)
        client.state.touch()
    return LocalStack(record.address, record.ui_url, record.namespace, client.state)


async def run_foreground(
    *,
    say: Say = to_stderr,
    docs: Path | None = None,
    state: StateDir | None = None,
    worker_command: Sequence[str] = WORKERS,
) -> None:
    """Run the stack in this process until Ctrl-C or SIGTERM, in place of one in the background (`sennit dev`).

    Raises LocalStackFailed when another terminal runs one already, DevServerUnavailable, DevServerFailed,
    WorkersFailed.
    """
    client = _Client(state or StateDir.find(), say, docs, tuple(worker_command))
    async with _state_lock(client.state, say):
        record = client.state.read()
        if client.state.running():
            if record and record.foreground:
                raise LocalStackFailed(
                    f"`sennit dev` runs already (process {record.supervisor.pid}, Temporal at {record.address})"
                )
            say("taking over from the stack in the background; what runs goes on")
            await stop_stack(client.state)
        launch = await client.launch(foreground=True)
    try:
        await Supervisor(launch, say).run()
    except StackBusy as busy:
        raise LocalStackFailed(str(busy)) from busy


async def stop_stack(state: StateDir | None = None) -> bool:
    """Stop the stack of the state directory and wait until nothing of it runs; whether there was one.

    Runs are kept. LocalStackFailed if its processes do not end.
    """
    state = state or StateDir.find()
    for number, limit in ((signal.SIGTERM, STOP_LIMIT), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + limit
        told = False
        while state.running():
            record = state.read()
            if record and record.supervisor.alive and not told:
                record.supervisor.signal(number)
                told = True
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(POLL)
        else:
            last = state.read()
            if last is not None and last.phase != "stopped":  # it was killed, so its children may still be ending
                await asyncio.to_thread(last.end_children)
            return number is signal.SIGKILL or told
    raise LocalStackFailed(f"the stack in {state.root} does not stop; log: {state.log('supervisor')}")


@asynccontextmanager
async def _state_lock(state: StateDir, say: Say) -> AsyncIterator[None]:
    try:
        state.prepare()
    except OSError as error:
        raise LocalStackFailed(
            f"the state directory cannot be made: {error}; choose another with SENNIT_STATE"
        ) from error
    lock = state.start_lock
    said = False
    while not lock.try_acquire():
        if not said:
            say("waiting for another client that starts or stops the local stack ...")
        said = True
        await asyncio.sleep(POLL)
    try:
        yield
    finally:
        lock.release()


@dataclass(slots=True)
class _Client:
    """One client at the state directory, with the start lock held."""

    state: StateDir
    say: Say
    docs: Path | None
    worker_command: tuple[str, ...]

    async def ready_record(self, as_it_is: bool = False) -> StackRecord:
        origin = Origin.of_this_client()
        while True:
            record = self.state.read()
            decision = decide(record, self.state.running(), origin)
            if decision == "start":
                return await self._start(origin)
            if decision == "wait" or record is None:
                await self._settled()
            elif not await self._answers(record):
                if not self.state.running():
                    continue
                self.say(f"the local Temporal server at {record.address} does not answer: starting it anew")
                await stop_stack(self.state)
            elif decision == "join" or as_it_is or not await self._replaced(record, decision, origin):
                return record

    async def launch(self, *, foreground: bool, origin: Origin | None = None) -> Launch:
        """Everything a supervisor needs, the binary among it: this may take the minutes of a build."""
        origin = origin or Origin.of_this_client()
        progress = Progress(self.say)
        try:
            binary = await asyncio.to_thread(obtain, progress=progress)
        except asyncio.CancelledError:
            progress.cancel()
            raise
        last = self.state.read()
        return Launch(
            token=uuid.uuid4().hex,
            state=self.state.root,
            binary=binary,
            code=origin.code,
            settings=origin.settings,
            foreground=foreground,
            idle_stop=None if foreground else _idle_stop(),
            worker_command=self.worker_command,
            docs=self.docs.absolute() if self.docs else None,
            port=last.port if last and last.port else PORT,  # links to the web UI keep working
            ui_port=last.ui_port if last and last.ui_port else UI_PORT,
        )

    async def _start(self, origin: Origin) -> StackRecord:
        launch = await self.launch(foreground=False, origin=origin)
        self.say("starting a local Temporal server and workers ...")
        self.state.touch()
        supervisor = Background(launch, self.state.log("supervisor"))
        record = await self._settled(launch.token, supervisor.ended)
        self.say(f"Temporal at {record.address}, web UI at {record.ui_url}")
        return record

    async def _settled(self, token: str | None = None, ended: Callable[[], bool] | None = None) -> StackRecord:
        """Wait until the stack is ready, or gone: that is a failure of the one started here (`token`)."""
        deadline = time.monotonic() + READY_LIMIT
        said = "starting the Temporal server"
        while time.monotonic() < deadline:
            over = ended() if ended else not self.state.running()
            record = self.state.read()
            if record and token in (None, record.launch):
                if record.phase == "ready" or (over and not token):
                    return record
                if over:
                    raise LocalStackFailed(f"{record.detail}\nlog: {self.state.log('supervisor')}")
                if record.phase != "failed" and record.detail not in ("", said):
                    said = record.detail
                    self.say(f"{said} ...")
            elif over:
                raise LocalStackFailed(f"the local stack ended at once:\n{last_lines(self.state.log('supervisor'))}")
            await asyncio.sleep(POLL)
        raise LocalStackFailed(
            f"the local stack is not ready after {READY_LIMIT:.0f} s; logs: {self.state.root / 'logs'}"
        )

    async def _answers(self, record: StackRecord) -> bool:
        deadline = time.monotonic() + ANSWER_LIMIT
        while True:
            if await _namespace_answers(record):
                return True
            if time.monotonic() > deadline or not self.state.running():
                return False
            await asyncio.sleep(POLL)

    async def _replaced(self, record: StackRecord, decision: Decision, origin: Origin) -> bool:
        """Stop a stack of other origin unless something runs in it or a terminal shows it; whether it is gone."""
        what = origin.differences(record)
        if decision == "replace if idle":
            if await _is_idle(record):
                self.say(f"the local stack was started with other {what}: starting it anew")
                await stop_stack(self.state)
                return True
            self.say(f"warning: the local stack was started with other {what} and is busy; `sennit dev --stop` ends it")
        else:
            self.say(f"warning: `sennit dev` was started with other {what}; start it anew to use yours")
        return False


async def _is_idle(record: StackRecord) -> bool:
    """Whether surely nothing runs: asked twice, because a run that just started is counted a moment later."""
    client = await Client.connect(record.address, namespace=record.namespace)
    if await anything_runs(client, MOVING) is not False:
        return False
    await asyncio.sleep(0.5)
    return await anything_runs(client, MOVING) is False


async def _namespace_answers(record: StackRecord) -> bool:
    try:
        async with asyncio.timeout(5):
            client = await Client.connect(record.address, namespace=record.namespace)
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=record.namespace), timeout=timedelta(seconds=4)
            )
    except (RPCError, RuntimeError, TimeoutError):
        return False
    return True


def _idle_stop() -> float:
    text = os.environ.get("SENNIT_IDLE_STOP") or str(IDLE_STOP)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise LocalStackFailed(f"SENNIT_IDLE_STOP={text} is not a number of seconds above 0")
    return seconds
