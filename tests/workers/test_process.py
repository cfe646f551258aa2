"""A worker process: ready when it polls, drained when it is told to stop, honest about what failed."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from temporalio.service import RPCError, RPCStatusCode

from workers import process
from workers.process import WorkerProcess
from workers.roles import role_named
from workers.settings import WrongSetting, read_settings
from workers.wiring import Work


class Bench:
    """Stands for Temporal: a client and its workers, each with one activity that may still run."""

    namespace = "default"

    def __init__(self) -> None:
        self.connected, self.polling, self.activity_done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.connected.set()
        self.polling.set()
        self.activity_done.set()
        self.fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queues: list[str] = []
        self.asked_to_stop = asyncio.Event()
        self.lost: RPCError | None = None
        self.service_client = self

    async def connect(self, _address: str, _identity: str) -> "Bench":
        await self.connected.wait()
        return self

    def build_worker(self, _client: Any, binding: Any, _work: Any, _settings: Any) -> "StandIn":
        self.queues.append(binding.queue)
        return StandIn(self)

    async def check_health(self, **_: Any) -> bool:
        if self.lost is not None:
            raise self.lost
        return True


class StandIn:
    def __init__(self, bench: Bench) -> None:
        self._bench, self._stop, self._ended = bench, asyncio.Event(), asyncio.Event()
        self.is_running = False

    async def run(self) -> None:
        try:
            await self._bench.polling.wait()
            self.is_running = True
            stopping = asyncio.create_task(self._stop.wait())
            ends: set[asyncio.Future[Any]] = {stopping, self._bench.fatal}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if self._bench.fatal.done():
                self._bench.fatal.result()
            await self._bench.activity_done.wait()
        finally:
            self._ended.set()

    async def shutdown(self) -> None:
        self._bench.asked_to_stop.set()
        self._stop.set()
        await self._ended.wait()


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()
    monkeypatch.setattr(process, "connect_patiently", bench.connect)
    monkeypatch.setattr(process, "build_worker", bench.build_worker)
    monkeypatch.setattr(process, "leave_by", lambda seconds: None)
    monkeypatch.setattr(process, "_CHECK_INTERVAL", 0.001)
    return bench


class Running:
    """A worker process in the test's own event loop, with its probe."""

    def __init__(self, worker: WorkerProcess, at: list[str]) -> None:
        self.task = asyncio.create_task(worker.run())
        self._at = at

    async def probe(self) -> tuple[int, str]:
        async with httpx.AsyncClient(trust_env=False) as client:
            reply = await client.get(f"http://{self._at[0]}/readyz")
            return reply.status_code, reply.json().get("reason", "")

    async def until(self, status: int, why: str = "") -> None:
        async with asyncio.timeout(10):
            while not self._at:
                await asyncio.sleep(0)
            while (await self.probe())[0] != status or why not in (await self.probe())[1]:
                assert not self.task.done(), self.task


@asynccontextmanager
async def running(monkeypatch: pytest.MonkeyPatch, role: str = "all") -> AsyncIterator[Running]:
    at: list[str] = []
    listen = WorkerProcess._listen

    async def noted(self: WorkerProcess, health: Any) -> str | None:
        where = await listen(self, health)
        at.append(where or "")
        return where

    monkeypatch.setattr(WorkerProcess, "_listen", noted)
    settings = read_settings({"SENNIT_HEALTH_PORT": "127.0.0.1:0", "SENNIT_DRAIN": "3"})
    served = Running(
        WorkerProcess(role_named(role), settings, Work(store="s-1"), "me@here#1", "here:1", time.monotonic()), at
    )
    yield served
    served.task.cancel()
    await asyncio.gather(served.task, return_exceptions=True)


def _signal(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_what_runs_and_ends_with_0(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    bench.activity_done.clear()
    async with running(monkeypatch) as served:
        await served.until(200)
        _signal(number)
        await bench.asked_to_stop.wait()
        assert await served.probe() == (503, "draining")
        assert not served.task.done()
        bench.activity_done.set()
        assert await served.task == 0


async def test_a_worker_is_ready_once_it_is_connected_and_polls_and_says_so_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.connected.clear()
    bench.polling.clear()
    with capture_logs() as logs:
        async with running(monkeypatch) as served:
            await served.until(503, "not connected to Temporal at here:1 yet")
            bench.connected.set()
            await served.until(503, "not polling yet")
            bench.polling.set()
            await served.until(200)
    (ready,) = [entry for entry in logs if entry["event"] == "worker ready"]
    assert list(ready["queues"]) == bench.queues == list(role_named("all").queues)
    assert (ready["address"], ready["identity"], ready["store"]) == ("here:1", "me@here#1", "s-1")
    assert (ready["role"], bool(ready["build_id"])) == ("all", True)


async def test_readiness_follows_the_server_going_and_coming_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        async with running(monkeypatch) as served:
            await served.until(200)
            bench.lost = RPCError("gone", RPCStatusCode.UNAVAILABLE, b"")
            await served.until(503, "Temporal at here:1 does not answer")
            bench.lost = None
            await served.until(200)
    assert [entry["event"] for entry in logs if "Temporal" in entry["event"]] == [
        "Temporal does not answer; tasks wait until it does",
        "Temporal answers again",
    ]


async def test_a_server_that_refuses_the_health_call_is_not_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.lost = RPCError("not for you", RPCStatusCode.PERMISSION_DENIED, b"")
    with capture_logs() as logs:
        async with running(monkeypatch) as served:
            await served.until(200)
            for _ in range(20):
                assert await served.probe() == (200, "")
    assert not [entry for entry in logs if entry["log_level"] == "warning"]


async def test_a_worker_that_fails_ends_the_process_with_1_and_its_cause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        async with running(monkeypatch) as served:
            await served.until(200)
            bench.fatal.set_exception(RuntimeError('validation: Status { message: "Namespace x is not found." }'))
            assert await served.task == 1
    failures = [entry["cause"] for entry in logs if entry["event"] == "worker failed"]
    assert failures == ["Namespace x is not found."]


async def test_a_signal_before_there_is_a_connection_ends_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.connected.clear()
    async with running(monkeypatch) as served:
        await served.until(503)
        _signal(signal.SIGTERM)
        assert await served.task == 0
    assert bench.queues == []


async def test_a_health_port_that_is_taken_is_a_wrong_setting(bench: Bench) -> None:
    taken = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        settings = read_settings({"SENNIT_HEALTH_PORT": f"127.0.0.1:{port}"})
        worker = WorkerProcess(role_named("tools"), settings, Work(), "me", "here:1", 0.0)
        with pytest.raises(WrongSetting, match=f"SENNIT_HEALTH_PORT='127.0.0.1:{port}'.*in use"):
            await worker.run()
