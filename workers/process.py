"""Runs one worker process: connects, serves its role's queues, and drains when told to stop."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import structlog
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from workers.connection import cause_of, connect_patiently
from workers.factory import build_of, build_worker
from workers.health import HealthServer, Readiness
from workers.roles import Role
from workers.settings import WorkerSettings, WrongSetting
from workers.shutdown import AFTER_DRAIN, StopRequest, leave_by
from workers.wiring import Work

_THREADS = 100  # for tools that block; asyncio's own default is a handful on a small machine
_WATCH_EVERY = 5.0
_LOST = frozenset({RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})

log = structlog.stdlib.get_logger("workers")


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """One process serving `role` with `work`. `address` is only said, `started` is a monotonic time in seconds."""

    role: Role
    settings: WorkerSettings
    work: Work
    identity: str
    address: str
    started: float

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then drain: no new tasks, and running ones get `settings.drain` seconds.

        Returns the exit code: 0 drained, 1 when a worker failed. An activity that outlives the drain is cancelled and
        the server starts it again elsewhere. Raises Unreachable, and WrongSetting for a port that is taken.
        """
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(max(_THREADS, self.settings.slots or 0), "sennit")
        )
        stop = StopRequest()
        stop.listen()
        readiness = Readiness(self.role.name, self.role.queues, self.work.store)
        health = HealthServer(readiness, self.settings.metrics)
        try:
            heard_at = await self._listen(health)
            readiness.reason = f"not connected to Temporal at {self.address} yet"
            client = await self._connect(stop)
            return 0 if client is None else await self._serve(client, stop, readiness, heard_at)
        finally:
            health.close()

    async def _listen(self, health: HealthServer) -> str | None:
        if self.settings.health is None:
            return None
        try:
            return str(await health.start(self.settings.health))
        except OSError as problem:
            raise WrongSetting(f"SENNIT_HEALTH_PORT='{self.settings.health}': {problem.strerror}") from None

    async def _connect(self, stop: StopRequest) -> Client | None:
        connecting = asyncio.create_task(connect_patiently(self.address, self.identity))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({connecting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if connecting.done():
            return connecting.result()
        connecting.cancel()
        return None

    async def _serve(self, client: Client, stop: StopRequest, readiness: Readiness, heard_at: str | None) -> int:
        workers = [build_worker(client, seat, self.work, self.settings) for seat in self.role.seats]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        stopping = asyncio.create_task(stop.wait())
        watching = asyncio.create_task(self._watch(client, workers, readiness, heard_at))
        await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        readiness.reason = "draining"
        if stopping.done():
            log.info("draining", seconds=self.settings.drain)
        leave_by(self.settings.drain + AFTER_DRAIN)
        stopping.cancel()
        return await _drained(workers, running)

    async def _watch(self, client: Client, workers: list[Worker], readiness: Readiness, heard_at: str | None) -> None:
        readiness.reason = "not polling yet"
        while not all(worker.is_running for worker in workers):  # noqa: ASYNC110 - the SDK has no event for it
            await asyncio.sleep(0.01)
        readiness.reason = None
        log.info(
            "worker ready",
            role=self.role.name,
            queues=self.role.queues,
            address=self.address,
            namespace=client.namespace,
            build_id=build_of(self.settings),
            deployment=self.settings.deployment,
            identity=self.identity,
            store=self.work.store,
            health=heard_at,
            seconds=round(time.monotonic() - self.started, 2),
        )
        while True:
            await asyncio.sleep(_WATCH_EVERY)
            lost = await _lost(client)
            if lost and readiness.reason is None:
                log.warning("Temporal does not answer; tasks wait until it does", address=self.address)
            elif readiness.reason is not None and not lost:
                log.info("Temporal answers again", address=self.address)
            readiness.reason = f"Temporal at {self.address} does not answer" if lost else None


async def _drained(workers: list[Worker], running: list[asyncio.Task[None]]) -> int:
    await asyncio.gather(*(worker.shutdown() for worker in workers))
    ends = await asyncio.gather(*running, return_exceptions=True)
    failures = {cause_of(end) for end in ends if isinstance(end, BaseException)}
    for failure in sorted(failures):
        log.error("worker failed", cause=failure)
    log.info("stopped" if failures else "drained")
    return 1 if failures else 0


async def _lost(client: Client) -> bool:
    try:
        await client.service_client.check_health(timeout=timedelta(seconds=3))
    except RPCError as problem:
        return problem.status in _LOST
    return False
