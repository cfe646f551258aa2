"""The process that owns a local stack: `sennit dev`, or `python -m
sennit.starter.dev.supervisor` in the background.
"""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from sennit.starter.dev.grants import is_over
from sennit.starter.dev.messages import LocalStackFailed, Say, WrongSettings, to_stderr
from sennit.starter.dev.server import NAMESPACE, DevServer
from sennit.starter.dev.state import ProcessIdentity, StackRecord, StateDir, try_lock
from sennit.starter.dev.workers import (
    INSTALLATION,
    STORE_ID,
    Workers,
    create_store,
    environment_digest,
    settings_digest,
    worker_environment,
)
from sennit.starter.limits import MAX_IDLE_POLL_SECONDS
from sennit.workflows.messages.quota import QUOTA_TYPE
from sennit.workflows.messages.text_stream import STREAM_TYPE

# Seconds: clients that ask whether a supervisor runs hold its lock for an instant.
LOCK_PATIENCE = 5.0
# Seconds after the workers are ready: a first run needs the machine for itself.
FIRST_COLLECTION = 60.0
SWEEP_PAUSE = 30.0  # seconds
HOUR, DAY = 3_600.0, 86_400.0  # seconds
RUNS = f"ExecutionStatus='Running' AND WorkflowType NOT IN ('{STREAM_TYPE}', '{QUOTA_TYPE}')"
"""Neither keeps a stack from its stop: a stream of texts stays for a while after whoever listened,
and the quota of the namespace for good.
"""


class Supervisor:
    """Runs a Temporal server and processes of workers until it is stopped or, with
    `idle_stop`, has nothing to do.

    A server or workers that die are started again; the server keeps its ports. At a stop the
    workers drain first. If this process is killed, its children end by themselves, and the next
    supervisor kills what still runs of them.
    """

    def __init__(
        self,
        state: StateDir,
        binary: Path,
        worker_command: Sequence[str],
        say: Say,
        idle_stop: float | None = None,
        workers: int = 1,
    ) -> None:
        self._state = state
        self._say = say
        self._idle_stop = idle_stop
        self._record = StackRecord(
            phase="starting",
            detail="starting the Temporal server",
            foreground=idle_stop is None,
            installation=INSTALLATION,
            supervisor=ProcessIdentity.current(),
        )
        headless = os.environ.get("SENNIT_UI") == "off"
        self._server = DevServer(binary, state.database, state.log("server"), headless=headless)
        self._workers = [Workers(worker_command, state, number) for number in range(1, workers + 1)]
        self._ready_workers: dict[Workers, ProcessIdentity] = {}
        self._ready = asyncio.Event()

    async def run(self) -> None:
        """Run until SIGTERM, SIGINT, SIGHUP or the idle limit; a second signal
        ends the children at once.

        Nothing of the stack runs afterwards. LocalStackFailed, also in the
        record, when it cannot work.
        """
        lock = try_lock(self._state.supervisor_lock, LOCK_PATIENCE)
        if lock is None:
            raise LocalStackFailed(f"another Sennit stack runs in {self._state.root}")
        serving = asyncio.ensure_future(self._serve())

        def stop() -> None:
            if not serving.cancel():  # the second signal
                for workers in self._workers:
                    workers.kill()
                self._server.kill()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        try:
            await serving
        except asyncio.CancelledError:
            self._update(phase="stopping", detail="stopping")
        except LocalStackFailed as failure:
            self._update(
                phase="failed",
                detail=str(failure),
                wrong_settings=isinstance(failure, WrongSettings),
            )
            raise
        finally:
            await asyncio.gather(*(workers.stop() for workers in self._workers))
            await self._server.stop()
            if self._record.phase == "stopping":
                self._update(phase="stopped", detail="")
            lock.release()

    async def _serve(self) -> None:
        self._replace(self._state.read())
        await self._ensure_store()
        await self._server.start()
        server = self._server
        self._update(
            port=server.port,
            ui_port=server.ui_port,
            address=server.address,
            ui_url=server.ui_url or "",
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._server.keep_running(self._say, self._server_changed))
                for workers in self._workers:
                    workers.address = server.address
                    changed = partial(self._workers_changed, workers)
                    tasks.create_task(workers.keep_running(self._say, changed))
                tasks.create_task(self._collect_garbage())
                tasks.create_task(self._sweep_grants())
                if self._idle_stop:
                    tasks.create_task(self._stop_when_idle(self._idle_stop))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _ensure_store(self) -> None:
        """Create the artifact store of a new database; no other is ever made, because what runs
        have written is known only there. Raises LocalStackFailed.
        """
        store = self._state.artifacts
        if not self._state.database.exists():
            await create_store(worker_environment(self._state, "", 0, os.environ))
        elif not (store / STORE_ID).exists():
            raise LocalStackFailed(
                f"the artifact store of this stack is not in {store}: there is no {STORE_ID}. "
                "Bring the folder back. If it is lost, `sennit setup --store` creates an empty "
                "one, and nobody knows what earlier runs wrote"
            )

    def _replace(self, last: StackRecord | None) -> None:
        """Kill what a killed supervisor left, because two servers must not share one
        database; keep its ports.
        """
        if last is None:
            return
        # In case this process is killed, too.
        self._update(server=last.server, workers=last.workers)
        for child in (*last.workers, last.server):
            if child and not child.kill_group():
                raise LocalStackFailed(
                    f"process {child.pid} of an earlier stack does not end; end it and start again"
                )
        if last.port:  # links to the web UI keep working
            self._server.port, self._server.ui_port = last.port, last.ui_port
            self._update(port=last.port, ui_port=last.ui_port)  # for the start after one that fails

    async def _stop_when_idle(self, limit: float) -> None:
        """Stop this process once nothing ran and no client came for `limit` seconds."""
        last_busy = time.time()
        client = await Client.connect(self._server.address, namespace=NAMESPACE, lazy=True)
        while True:
            await asyncio.sleep(min(limit / 4, MAX_IDLE_POLL_SECONDS))
            if await anything_runs(client) is not False:
                last_busy = time.time()
            elif lock := try_lock(
                self._state.start_lock
            ):  # so that no client joins a stack that stops
                if time.time() - max(last_busy, self._state.last_used.stat().st_mtime) >= limit:
                    self._say(f"nothing ran for {limit:g} s: stopping")
                    self._update(phase="stopping", detail="stopping after idle time")
                    signal.raise_signal(signal.SIGTERM)
                lock.release()

    async def _collect_garbage(self) -> None:
        """Delete artifacts of runs that the server has forgotten, once a day, or an hour
        after a try has failed.
        """
        await self._ready.wait()
        await asyncio.sleep(FIRST_COLLECTION)
        while True:
            if time.time() - self._state.last_collected() > DAY:
                with suppress(OSError):
                    if await self._workers[0].collect_garbage():
                        self._state.collected.touch(mode=0o600)
            await asyncio.sleep(HOUR)

    async def _sweep_grants(self) -> None:
        """Take back what runs were allowed that are over, and what no run came for."""
        client = await Client.connect(self._server.address, namespace=NAMESPACE, lazy=True)
        while True:
            await asyncio.sleep(SWEEP_PAUSE)
            with suppress(OSError):
                await self._state.grant_file.sweep(partial(is_over, client))

    def _server_changed(self, ready: bool) -> None:
        if ready:
            self._update(server=self._server.identity)

    def _workers_changed(self, workers: Workers, ready: bool) -> None:
        """Note that a process of workers starts or is ready. The stack is
        ready when all of them are.
        """
        self._ready_workers.pop(workers, None)
        if not ready:
            known = {"settings": settings_digest(), "environment": environment_digest()}
            self._update(phase="starting", detail="starting the workers", **known)
            return
        if workers.identity is not None:
            self._ready_workers[workers] = workers.identity
        self._update(workers=tuple(self._ready_workers.values()))
        if len(self._ready_workers) < len(self._workers):
            return

        self._update(phase="ready", detail="")
        self._ready.set()
        if self._idle_stop is None:
            self._say(_welcome(self._record, self._state))

    def _update(self, **changes: Any) -> None:
        self._record = self._record.model_copy(update=changes)
        self._state.write(self._record)


async def anything_runs(client: Client, which: str = "") -> bool | None:
    """Return whether a run, of those that `which` finds, runs; None when
    the server does not say.
    """
    query = RUNS
    if which:
        query = f"{RUNS} AND ({which})"
    try:
        async with asyncio.timeout(5):
            counted = await client.count_workflows(query)
            return counted.count > 0
    except (RPCError, RuntimeError, TimeoutError):
        return None


def _welcome(record: StackRecord, state: StateDir) -> str:
    workers = f"every role in one process, log {state.log('worker')}"
    if len(record.workers) > 1:
        workers = (
            f"every role in each of {len(record.workers)} processes, logs in "
            f"{state.log('worker').parent}"
        )
    return (
        f"Temporal   {record.address}, namespace {NAMESPACE}\n"
        f"Web UI     {record.ui_url or 'off'}\n"
        f"Workers    {workers}\n"
        f"State      {state.root}\n"
        "Ctrl-C stops them. Runs are kept and go on at the next start."
    )


def _main(state: str, binary: str, workers: str, *worker_command: str) -> None:
    def say(line: str) -> None:
        to_stderr(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}")

    idle_stop = os.environ.get("SENNIT_IDLE_STOP") or "900"
    if not re.fullmatch(r"\d+(?:\.\d+)?|\.\d+", idle_stop) or float(idle_stop) == 0:
        raise LocalStackFailed(f"SENNIT_IDLE_STOP={idle_stop} is not a number of seconds above 0")
    place = StateDir(Path(state))
    asyncio.run(
        Supervisor(place, Path(binary), worker_command, say, float(idle_stop), int(workers)).run()
    )


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except (LocalStackFailed, OSError) as failure:
        sys.exit(str(failure))
