"""The process that owns a local stack: in the background (`python -m starter.dev.supervisor`), or `sennit dev`."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from pydantic import ValidationError
from temporalio.client import Client
from temporalio.service import RPCError

from starter.dev.failures import LocalStackFailed, WrongSettings
from starter.dev.messages import Say, to_stderr
from starter.dev.process import ProcessIdentity
from starter.dev.server import NAMESPACE, PORT, UI_PORT, DevServer
from starter.dev.settings import Settings
from starter.dev.state import StackRecord, StateDir
from starter.dev.workers import Workers

LOCK_PATIENCE = 5.0  # seconds: clients that ask whether a supervisor runs hold its lock for an instant
LONGEST_IDLE_POLL = 15.0  # seconds
LARGEST_SETTINGS = 1 << 23  # bytes
RUNS = "ExecutionStatus='Running'"


class Supervisor:
    """Runs one Temporal server and one process of workers in one state directory until it is told to stop.

    A server or workers that die are started again; the server keeps its ports. On the way out the workers drain
    first, then the server stops. Should this process be killed, its children end by themselves, and the next
    supervisor kills those that the record names and that still run. Without `idle_stop` it is in the foreground and
    never stops by itself.
    """

    def __init__(
        self, state: StateDir, binary: Path, worker_command: Sequence[str], say: Say, idle_stop: float | None = None
    ) -> None:
        self._state = state
        self._say = say
        self._idle_stop = idle_stop
        self._welcomed = False
        self._record = StackRecord(
            phase="starting",
            detail="starting the Temporal server",
            foreground=idle_stop is None,
            supervisor=ProcessIdentity(pid=os.getpid(), created=psutil.Process().create_time()),
        )
        self._server = DevServer(binary, state.database, state.log("server"), port=PORT, ui_port=UI_PORT)
        self._workers = Workers(worker_command, state, Settings.of_this_process())

    async def run(self) -> None:
        """Own the stack until SIGTERM, SIGINT, SIGHUP or the idle limit; nothing of it runs afterwards.

        LocalStackFailed, also in the record, when the stack cannot work or another supervisor owns the directory. A
        second signal does not wait for the workers to drain.
        """
        lock = self._state.try_lock("supervisor", LOCK_PATIENCE)
        if lock is None:
            raise LocalStackFailed(f"another Sennit stack runs in {self._state.root}")
        serving = asyncio.ensure_future(self._serve())

        def stop() -> None:
            if not serving.cancel():  # the second signal
                self._workers.kill()
                self._server.kill()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        try:
            await serving
        except asyncio.CancelledError:
            self._update(phase="stopping", detail="stopping")
        except LocalStackFailed as failure:
            self._update(phase="failed", detail=str(failure), wrong_settings=isinstance(failure, WrongSettings))
            raise
        finally:
            await self._workers.stop()
            await self._server.stop()
            if self._record.phase == "stopping":
                self._update(phase="stopped", detail="")
            lock.release()

    async def _serve(self) -> None:
        self._take_over(self._state.read())
        await self._server.start()
        address = self._workers.address = self._server.address
        self._state.profile.write_text(f'[profile.default]\naddress = "{address}"\nnamespace = "{NAMESPACE}"\n')
        self._update(port=self._server.port, ui_port=self._server.ui_port)
        lasting = [self._server.keep_running(self._say, self._server_changed), self._keep_workers()]
        await _first(*lasting, *([self._idle(self._idle_stop)] if self._idle_stop else []))

    def _take_over(self, last: StackRecord | None) -> None:
        """Kill what a killed supervisor left, because two servers must not share one database; keep its ports."""
        self._update(server=last and last.server, worker=last and last.worker)  # in case this process is killed, too
        if last and (pid := last.kill_children()):
            raise LocalStackFailed(f"process {pid} of an earlier stack does not end; end it and start again")
        if last and last.port:  # links to the web UI keep working
            self._server.port, self._server.ui_port = last.port, last.ui_port

    async def _keep_workers(self) -> None:
        """Keep workers running; with new settings from a client they stop and start, and the server stays."""
        while True:
            renewal = asyncio.ensure_future(self._new_settings())
            await _first(self._workers.keep_running(self._say, self._workers_changed), renewal)
            self._update(phase="starting", detail="stopping the workers")
            await self._workers.stop()
            self._workers.settings = renewal.result()

    async def _new_settings(self) -> Settings:
        """Wait for settings from a client: one line of JSON in the mailbox. Anything else is ignored."""
        mailbox = self._state.mailbox
        mailbox.unlink(missing_ok=True)
        os.mkfifo(mailbox, 0o600)
        reader = asyncio.StreamReader(limit=LARGEST_SETTINGS)
        pipe = os.fdopen(os.open(mailbox, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0)  # O_RDWR: it never ends
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            while True:
                with suppress(ValidationError):
                    return Settings.model_validate_json(await reader.readline())
        finally:
            transport.close()
            mailbox.unlink(missing_ok=True)

    async def _idle(self, limit: float) -> None:
        """Return once nothing runs and no client came for the idle limit; clients that come later start anew."""
        busy = time.time()
        client = await Client.connect(self._server.address, namespace=NAMESPACE, lazy=True)

        def due() -> bool:
            return time.time() - max(busy, self._state.last_used.stat().st_mtime) >= limit

        while self._record.phase != "stopping":
            await asyncio.sleep(min(limit / 4, LONGEST_IDLE_POLL))
            if await anything_runs(client) is not False:
                busy = time.time()
            elif due() and (lock := self._state.try_lock("start")):  # a client comes first, or sees that we stop
                if due():
                    self._say(f"nothing ran for {limit:g} s: stopping")
                    self._update(phase="stopping", detail="stopping after idle time")
                lock.release()

    def _server_changed(self, ready: bool) -> None:
        if ready:
            self._update(server=self._server.identity)

    def _workers_changed(self, ready: bool) -> None:
        if not ready:
            self._update(phase="starting", detail="starting the workers", settings=self._workers.settings.digest)
            return
        self._update(phase="ready", detail="", worker=self._workers.identity)
        if self._idle_stop is None and not self._welcomed:
            self._say(_welcome(self._record, self._state))
        self._welcomed = True

    def _update(self, **changes: Any) -> None:
        self._record = self._record.model_copy(update=changes)
        self._state.write(self._record)


async def _first(*endings: Awaitable[object]) -> None:
    """Wait until one of them ends or fails; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in endings]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def anything_runs(client: Client, which: str = "") -> bool | None:
    """Return whether a workflow, of those that `which` finds, runs; None when the server does not say."""
    try:
        async with asyncio.timeout(5):
            return (await client.count_workflows(f"{RUNS} AND ({which})" if which else RUNS)).count > 0
    except (RPCError, RuntimeError, TimeoutError):
        return None


def _welcome(record: StackRecord, state: StateDir) -> str:
    return (
        f"Temporal   {record.address}, namespace {NAMESPACE}\n"
        f"Web UI     {record.ui_url}\n"
        f"Workers    every role in one process, log {state.log('worker')}\n"
        f"State      {state.root}\n"
        "Ctrl-C stops them. Runs are kept and go on at the next start."
    )


def idle_stop(text: str) -> float:
    """Return the seconds in SENNIT_IDLE_STOP, 15 minutes if it is empty."""
    with suppress(ValueError):
        if (seconds := float(text or "900")) > 0:
            return seconds
    raise LocalStackFailed(f"SENNIT_IDLE_STOP={text} is not a number of seconds above 0")


def _main(state: str, binary: str, *worker_command: str) -> None:
    def say(line: str) -> None:
        to_stderr(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}")

    limit = idle_stop(os.environ.get("SENNIT_IDLE_STOP", ""))
    asyncio.run(Supervisor(StateDir(Path(state)), Path(binary), worker_command, say, limit).run())


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except (LocalStackFailed, OSError) as failure:
        sys.exit(str(failure))
