"""A worker process: ready when it polls, drained when it is told to stop, honest about what failed."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from temporalio.service import RPCError, RPCStatusCode

from workers import process as run
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
        self.seats: list[str] = []
        self.asked_to_stop = asyncio.Event()
        self.lost: RPCError | None = None
        self.service_client = self

    async def connect(self, _address: str, _identity: str) -> "Bench":
        await self.connected.wait()
        return self

    def build_worker(self, _client: Any, seat: Any, _work: Any, _settings: Any) -> "StandIn":
        self.seats.append(seat.queue)
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
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Bench]:
    def build() -> Bench:
        made = Bench()
        monkeypatch.setattr(run, "connect_patiently", made.connect)
        monkeypatch.setattr(run, "build_worker", made.build_worker)
        monkeypatch.setattr(run, "leave_by", lambda seconds: None)
        monkeypatch.setattr(run, "_WATCH_EVERY", 0.001)
        return made

    return build


class Running:
    """A worker process in the test's own event loop, with its probe."""

    def __init__(self, process: WorkerProcess, at: list[str]) -> None:
        self.task = asyncio.create_task(process.run())
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
    process = Running(
        WorkerProcess(role_named(role), settings, Work(store="s-1"), "me@here#1", "here:1", time.monotonic()), at
    )
    yield process
    process.task.cancel()
    await asyncio.gather(process.task, return_exceptions=True)


def _signal(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_what_runs_and_ends_with_0(
    bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    made = bench()
    made.activity_done.clear()
    async with running(monkeypatch) as process:
        await process.until(200)
        _signal(number)
        await made.asked_to_stop.wait()
        assert await process.probe() == (503, "draining")
        assert not process.task.done()
        made.activity_done.set()
        assert await process.task == 0


async def test_readiness_follows_connection_and_polling(
    bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench()
    made.connected.clear()
    made.polling.clear()
    async with running(monkeypatch) as process:
        await process.until(503, "not connected to Temporal at here:1 yet")
        made.connected.set()
        await process.until(503, "not polling yet")
        made.polling.set()
        await process.until(200)


async def test_readiness_follows_the_server_going_and_coming_back(
    bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench()
    with capture_logs() as logs:
        async with running(monkeypatch) as process:
            await process.until(200)
            made.lost = RPCError("gone", RPCStatusCode.UNAVAILABLE, b"")
            await process.until(503, "Temporal at here:1 does not answer")
            made.lost = None
            await process.until(200)
    assert [entry["event"] for entry in logs if "Temporal" in entry["event"]] == [
        "Temporal does not answer; tasks wait until it does",
        "Temporal answers again",
    ]


async def test_a_server_that_refuses_the_health_call_is_not_lost(
    bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench()
    made.lost = RPCError("not for you", RPCStatusCode.PERMISSION_DENIED, b"")
    with capture_logs() as logs:
        async with running(monkeypatch) as process:
            await process.until(200)
            for _ in range(20):
                assert await process.probe() == (200, "")
    assert not [entry for entry in logs if entry["log_level"] == "warning"]


async def test_one_line_says_what_was_started(bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    made = bench()
    with capture_logs() as logs:
        async with running(monkeypatch) as process:
            await process.until(200)
    (entry,) = [entry for entry in logs if entry["event"] == "worker ready"]
    assert entry["role"] == "all"
    assert list(entry["queues"]) == made.seats == list(role_named("all").queues)
    assert (entry["address"], entry["identity"], entry["store"]) == ("here:1", "me@here#1", "s-1")
    assert entry["build_id"]


async def test_a_worker_that_fails_ends_the_process_with_1_and_its_cause(
    bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench()
    with capture_logs() as logs:
        async with running(monkeypatch) as process:
            await process.until(200)
            made.fatal.set_exception(RuntimeError('validation: Status { message: "Namespace x is not found." }'))
            assert await process.task == 1
    failures = [entry["cause"] for entry in logs if entry["event"] == "worker failed"]
    assert failures == ["Namespace x is not found."]


async def test_a_signal_before_there_is_a_connection_ends_at_once(
    bench: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench()
    made.connected.clear()
    async with running(monkeypatch) as process:
        await process.until(503)
        _signal(signal.SIGTERM)
        assert await process.task == 0
    assert made.seats == []


async def test_a_health_port_that_is_taken_is_a_wrong_setting(bench: Callable[[], Bench]) -> None:
    bench()
    taken = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        settings = read_settings({"SENNIT_HEALTH_PORT": f"127.0.0.1:{port}"})
        process = WorkerProcess(role_named("tools"), settings, Work(), "me", "here:1", 0.0)
        with pytest.raises(WrongSetting, match=f"SENNIT_HEALTH_PORT='127.0.0.1:{port}'.*in use"):
            await process.run()
