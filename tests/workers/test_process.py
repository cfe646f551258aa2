"""A worker process: ready when it polls, drained when it is asked to stop, honest about what failed."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from structlog.testing import capture_logs

from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.workers import process
from sennit.workers.process import WorkerProcess
from sennit.workers.roles import role_named
from sennit.workers.settings import WrongSetting, read_settings
from sennit.workers.wiring import RoleWork


class Temporal:
    """Stands for Temporal: a client and its workers, each with one activity that may still run."""

    namespace = "default"

    def __init__(self) -> None:
        self.connected, self.polling, self.activity_done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        for event in (self.connected, self.polling, self.activity_done):
            event.set()
        self.fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queues: list[str] = []
        self.asked_to_stop = asyncio.Event()
        self.stopped: set[str] = set()
        self.running: Any = None
        self.lost: str | None = None
        self.obstacle: str | None = None
        self.unlisted: str | None = None
        self.away: str | None = None
        self.missing = ""
        self.store = SimpleNamespace(identify=self._identify)

    async def _identify(self) -> str:
        if self.away:
            raise StoreUnavailable(self.away)
        return "s-1"

    async def connect(self, _address: str, _identity: str, _report: Any) -> "Temporal":
        await self.connected.wait()
        return self

    async def connect_again(self, _client: Any, _identity: str) -> None:
        """The certificates are what they were."""

    def build_worker(self, _client: Any, binding: Any, _work: Any, _settings: Any, running: Any) -> "FakeWorker":
        self.queues.append(binding.queue)
        self.running = running
        return FakeWorker(self, binding.kind)


class FakeCheck:
    """Stands for what a worker asks of its server."""

    def __init__(self, temporal: Temporal, *_: Any) -> None:
        self._temporal = self.client = temporal

    async def lost(self) -> str | None:
        return self._temporal.lost

    async def obstacle(self) -> str | None:
        return self._temporal.obstacle

    async def unlisted(self) -> str | None:
        return self._temporal.unlisted

    async def note(self) -> str:
        return self._temporal.missing


class FakeWorker:
    def __init__(self, temporal: Temporal, kind: str) -> None:
        self._temporal, self._stop, self._ended = temporal, asyncio.Event(), asyncio.Event()
        self._kind = kind
        self.is_running = False

    async def run(self) -> None:
        try:
            await self._temporal.polling.wait()
            self.is_running = True
            stopping = asyncio.create_task(self._stop.wait())
            ends: set[asyncio.Future[Any]] = {stopping, self._temporal.fatal}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if self._temporal.fatal.done():
                self._temporal.fatal.result()
            await self._temporal.activity_done.wait()
        finally:
            self._ended.set()

    async def shutdown(self) -> None:
        self._temporal.asked_to_stop.set()
        self._temporal.stopped.add(self._kind)
        self._stop.set()
        await self._ended.wait()


@pytest.fixture
async def temporal(monkeypatch: pytest.MonkeyPatch) -> Temporal:
    made = Temporal()
    monkeypatch.setattr(process, "connect_patiently", made.connect)
    monkeypatch.setattr(process, "connect_again", made.connect_again)
    monkeypatch.setattr(process, "build_worker", made.build_worker)
    monkeypatch.setattr(process, "ServerCheck", FakeCheck)
    monkeypatch.setattr(process, "leave_by", lambda seconds: None)
    monkeypatch.setattr(process, "_CHECK_INTERVAL", 0.001)
    return made


class Running:
    """A worker process in the test's own event loop, from the first `until` on, with its probe."""

    def __init__(self, temporal: Temporal, port: int) -> None:
        settings = read_settings({"SENNIT_HEALTH_PORT": f"127.0.0.1:{port}", "SENNIT_DRAIN": "0.5"})
        self.threads = SimpleNamespace(exhausted=None, lost=0, blocked_seconds=0.0)
        work = RoleWork(store=cast("Any", temporal.store), threads=cast("Any", self.threads), note="no Landlock")
        self._worker = WorkerProcess(role_named("all"), settings, work, "me@here#1", "here:1", time.monotonic())
        self._url = f"http://127.0.0.1:{port}/readyz"
        self.task: asyncio.Task[int] | None = None

    async def probe(self) -> tuple[int, str]:
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                reply = await client.get(self._url)
            except httpx.ConnectError:
                return 0, ""
            return reply.status_code, reply.json().get("reason", "")

    async def note(self) -> str:
        async with httpx.AsyncClient(trust_env=False) as client:
            return str((await client.get(self._url)).json().get("note", ""))

    async def until(self, status: int, why: str = "") -> None:
        self.task = self.task or asyncio.create_task(self._worker.run())
        async with asyncio.timeout(100):
            while (await self.probe())[0] != status or why not in (await self.probe())[1]:
                assert not self.task.done(), self.task

    async def ended(self) -> int:
        assert self.task is not None
        return await self.task


@pytest.fixture
async def served(temporal: Temporal, unused_tcp_port: int) -> AsyncIterator[Running]:
    running = Running(temporal, unused_tcp_port)
    yield running
    if running.task is not None:
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_what_runs_and_ends_with_0(
    temporal: Temporal, served: Running, number: signal.Signals
) -> None:
    temporal.activity_done.clear()
    await served.until(200)
    os.kill(os.getpid(), number)
    await temporal.asked_to_stop.wait()
    assert await served.probe() == (503, "draining")
    temporal.activity_done.set()
    assert await served.ended() == 0


async def test_a_worker_is_ready_once_it_is_connected_and_polls_and_says_so_in_one_line(
    temporal: Temporal, served: Running
) -> None:
    temporal.connected.clear()
    temporal.polling.clear()
    with capture_logs() as logs:
        await served.until(503, "not connected to Temporal at here:1 yet")
        temporal.connected.set()
        await served.until(503, "not polling yet")
        temporal.polling.set()
        await served.until(200)
    (ready,) = [entry for entry in logs if entry["event"] == "worker ready"]
    assert list(ready["queues"]) == temporal.queues == list(role_named("all").queues)
    assert (ready["address"], ready["identity"], ready["store"]) == ("here:1", "me@here#1 store s-1", "s-1")
    assert (ready["role"], bool(ready["build_id"])) == ("all", True)


@pytest.mark.parametrize("trouble", ["lost", "obstacle", "away"])
async def test_readiness_follows_trouble_that_comes_and_goes(temporal: Temporal, served: Running, trouble: str) -> None:
    with capture_logs() as logs:
        await served.until(200)
        setattr(temporal, trouble, "no namespace")
        await served.until(503, "no namespace")
        setattr(temporal, trouble, None)
        await served.until(200)
    told = [(entry["log_level"], entry["event"]) for entry in logs if entry["event"] != "worker ready"]
    ours = ("warning", "no Landlock")
    assert told == [ours, ("warning", "no namespace"), ("info", "nothing is in the way any more")]


async def test_a_worker_waits_for_its_store_and_makes_none(temporal: Temporal, served: Running) -> None:
    temporal.away = "artifact store /a: there is no .store-id"
    await served.until(503, "there is no .store-id")
    assert temporal.queues == []
    temporal.away = None
    await served.until(200)


async def test_nothing_is_polled_until_nothing_is_in_the_way(temporal: Temporal, served: Running) -> None:
    temporal.obstacle, temporal.missing = "another store", "no search attributes"
    await served.until(503, "another store")
    assert temporal.queues == []
    temporal.obstacle = None
    await served.until(200)
    assert await served.note() == "no Landlock; no search attributes"


async def test_a_worker_that_fails_ends_the_process_with_1_and_its_cause(temporal: Temporal, served: Running) -> None:
    with capture_logs() as logs:
        await served.until(200)
        temporal.fatal.set_exception(RuntimeError('validation: Status { message: "Namespace x is not found." }'))
        assert await served.ended() == 1
    failures = [entry["cause"] for entry in logs if entry["event"] == "worker failed"]
    assert failures == ["Namespace x is not found."]


async def test_a_worker_without_threads_takes_no_more_tools_and_ends_when_those_under_way_have(
    temporal: Temporal, served: Running
) -> None:
    temporal.activity_done.clear()
    await served.until(200)
    served.threads.exhausted = "50 threads are lost"
    await served.until(503, "50 threads are lost")
    await temporal.asked_to_stop.wait()
    assert temporal.stopped == {"tools", "sandbox"}
    temporal.activity_done.set()
    assert await served.ended() == 1
    assert temporal.stopped == {"tools", "sandbox", "llm", "workflows"}


async def test_activities_that_outlive_the_drain_are_cancelled(temporal: Temporal, served: Running) -> None:
    temporal.activity_done.clear()
    await served.until(200)
    under_way = asyncio.create_task(temporal.activity_done.wait())
    under_way.add_done_callback(lambda _: temporal.activity_done.set())
    temporal.running.tasks.add(under_way)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await served.ended() == 0
    assert under_way.cancelled()


async def test_a_signal_before_there_is_a_connection_ends_at_once(temporal: Temporal, served: Running) -> None:
    temporal.connected.clear()
    await served.until(503)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await served.ended() == 0
    assert temporal.queues == []


async def test_a_health_port_that_is_taken_is_a_wrong_setting(temporal: Temporal, unused_tcp_port: int) -> None:
    taken = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", unused_tcp_port)
    running = Running(temporal, unused_tcp_port)
    async with taken:
        with pytest.raises(WrongSetting, match=f"SENNIT_HEALTH_PORT='127.0.0.1:{unused_tcp_port}'.*in use"):
            await running._worker.run()
