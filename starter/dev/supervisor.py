"""The process that owns a local stack: `python -m starter.dev.supervisor LAUNCH` in the background, or `sennit dev`."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from starter.dev.identity import ProcessIdentity
from starter.dev.launch import Launch, profile_text
from starter.dev.process import Process
from starter.dev.restarts import Restarts
from starter.dev.server import NAMESPACE, DevServer, DevServerFailed
from starter.dev.state import StackRecord, StateDir
from starter.dev.watched import Say, to_stderr
from starter.dev.workers import Workers, WorkersFailed, WorkersMisset

LOCK_PATIENCE = 5.0  # seconds: clients that ask whether a supervisor runs hold its lock for an instant
RUNS = "ExecutionStatus='Running'"
LONGEST_IDLE_POLL = 15.0  # seconds


class StackBusy(Exception):
    """Another supervisor owns this state directory."""


class Supervisor:
    """Runs one Temporal server and one process of workers in one state directory until it is told to stop.

    A server or workers that die are started again; the server keeps its ports. On the way out the workers drain
    first, then the server stops. Should this process be killed, its children end by themselves, and the next
    supervisor ends what the record names and still runs.
    """

    def __init__(self, launch: Launch, say: Say) -> None:
        self._launch = launch
        self._say = say
        self._state = StateDir(launch.state)
        self._welcomed = False
        self._record = StackRecord(
            launch=launch.token,
            phase="starting",
            detail="starting the Temporal server",
            foreground=launch.foreground,
            code=launch.code,
            settings=launch.settings,
            supervisor=_this_process(),
            namespace=NAMESPACE,
        )
        self._server = DevServer(
            launch.binary,
            self._state.database,
            self._state.log("server"),
            port=launch.port,
            ui_port=launch.ui_port,
        )
        self._workers = Workers(launch, self._state.log("worker"), say, self._workers_changed)

    async def run(self) -> None:
        """Own the stack until SIGTERM, SIGINT, SIGHUP or the idle limit; nothing of it runs afterwards.

        StackBusy if another supervisor owns the directory; DevServerFailed or WorkersFailed, also in the record,
        when the stack cannot work. A second signal does not wait for the workers to drain.
        """
        self._state.prepare()
        lock = self._state.supervisor_lock
        deadline = time.monotonic() + LOCK_PATIENCE
        while not lock.try_acquire():
            if time.monotonic() > deadline:
                raise StackBusy(f"another Sennit stack runs in {self._state.root}")
            await asyncio.sleep(0.05)
        try:
            self._end_leftovers(self._state.read())
            await self._serve_until_stopped()
        finally:
            lock.release()

    async def _serve_until_stopped(self) -> None:
        serving = asyncio.ensure_future(self._serve())
        with self._signals(serving):
            try:
                await serving
            except asyncio.CancelledError:
                self._update(phase="stopping", detail="stopping")
            except (DevServerFailed, WorkersFailed) as failure:
                self._update(phase="failed", detail=str(failure), misset=isinstance(failure, WorkersMisset))
                raise
            finally:
                await self._workers.stop()
                await self._server.stop()
                if self._record.phase != "failed":
                    self._update(phase="stopped", detail="")

    def _end_leftovers(self, last: StackRecord | None) -> None:
        """End what a killed supervisor left: two servers must not share one database."""
        if last is None:
            self._update()
            return
        self._update(server=last.server, worker=last.worker)  # still on record should this process be killed, too
        pid = last.end_children()
        if pid is not None:
            raise StackBusy(f"process {pid} of an earlier stack does not end; end it and start again")

    @contextmanager
    def _signals(self, serving: "asyncio.Future[None]") -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if not serving.done():
                serving.cancel()
            else:
                self._workers.kill()
                self._server.kill()

        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        for number in numbers:
            loop.add_signal_handler(number, stop)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def _serve(self) -> None:
        await self._server.start()
        self._state.profile.write_text(profile_text(self._server.address))
        self._update(
            server=ProcessIdentity.of(self._server.process.pid),
            port=self._server.port,
            ui_port=self._server.ui_port,
            detail="starting the workers",
        )
        lasting = (self._keep_server(), self._workers.keep(self._server.address), self._idle())
        tasks = [asyncio.ensure_future(each) for each in lasting]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_server(self) -> None:
        restarts = Restarts()
        while True:
            await self._server.process.ended()
            delay = restarts.died(time.monotonic())
            if delay is None:
                raise DevServerFailed(f"the Temporal server dies again and again; log: {self._state.log('server')}")
            self._say(f"the Temporal server {self._server.process.status}; starting it again in {delay:g} s")
            await asyncio.sleep(delay)
            try:
                await self._server.restart()
            except DevServerFailed as failure:
                self._say(str(failure))
                continue
            self._update(server=ProcessIdentity.of(self._server.process.pid))

    async def _idle(self) -> None:
        """Return once nothing runs and no client came for the idle limit; clients that come later start anew."""
        limit = self._launch.idle_stop
        if limit is None:
            await asyncio.Event().wait()
            return
        busy = time.time()
        client = await Client.connect(self._server.address, namespace=NAMESPACE, lazy=True)
        while True:
            await asyncio.sleep(min(limit / 4, LONGEST_IDLE_POLL))
            if await anything_runs(client) is not False:
                busy = time.time()
            elif time.time() - max(busy, self._last_use()) >= limit and self._close_to_clients(limit):
                self._say(f"nothing ran for {limit:g} s: stopping")
                return

    def _close_to_clients(self, limit: float) -> bool:
        """Under the lock that a joining client takes: either it comes first, or it sees that we stop."""
        lock = self._state.start_lock
        if not lock.try_acquire():
            return False
        try:
            if time.time() - self._last_use() < limit:
                return False
            self._update(phase="stopping", detail="stopping after idle time")
            return True
        finally:
            lock.release()

    def _last_use(self) -> float:
        with suppress(FileNotFoundError):
            return self._state.last_used.stat().st_mtime
        return 0.0

    def _workers_changed(self, ready: bool) -> None:
        process = self._workers.process
        worker = ProcessIdentity.of(process.pid) if process else None
        if ready:
            self._update(worker=worker, phase="ready", detail="")
            if self._launch.foreground and not self._welcomed:
                self._say(_welcome(self._record, self._state.root, process))
            self._welcomed = True
        else:
            self._update(worker=worker, phase="starting", detail="starting the workers")

    def _update(self, **changes: Any) -> None:
        self._record = self._record.model_copy(update=changes)
        self._state.write(self._record)


async def anything_runs(client: Client, which: str = "") -> bool | None:
    """Whether a workflow of the client's namespace, of those `which` finds, runs; None when the server does not say."""
    try:
        async with asyncio.timeout(5):
            return (await client.count_workflows(f"{RUNS} AND ({which})" if which else RUNS)).count > 0
    except (RPCError, RuntimeError, TimeoutError):
        return None


def _this_process() -> ProcessIdentity:
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    return identity


def _welcome(record: StackRecord, root: Path, workers: Process | None) -> str:
    log = workers.log if workers else root
    return (
        f"Temporal   {record.address}, namespace {record.namespace}\n"
        f"Web UI     {record.ui_url}\n"
        f"Workers    every role in one process, log {log}\n"
        f"State      {root}\n"
        "Ctrl-C stops them. Runs are kept and go on at the next start."
    )


async def _background(launch: Launch) -> None:
    supervisor = Supervisor(launch, lambda line: to_stderr(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}"))
    await supervisor.run()


if __name__ == "__main__":
    try:
        asyncio.run(_background(Launch.model_validate_json(sys.argv[1])))
    except (StackBusy, DevServerFailed, WorkersFailed, OSError) as failure:
        sys.exit(str(failure))
