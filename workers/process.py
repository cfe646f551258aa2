"""Runs one worker process: connects, serves the queues of its role, and drains
when it is told to stop.
"""

import asyncio
import importlib.metadata
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    PollerBehaviorAutoscaling,
    PollerBehaviorSimpleMaximum,
    Worker,
    WorkerDeploymentConfig,
)

from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.workers.connection import connect_again, connect_patiently
from sennit.workers.health import HealthServer, Readiness
from sennit.workers.roles import QueueBinding, Role
from sennit.workers.server_check import ServerCheck, with_store
from sennit.workers.settings import WorkerSettings, WrongSetting
from sennit.workers.shutdown import AFTER_DRAIN, StopRequest, leave_by
from sennit.workers.telemetry import tool_gauges
from sennit.workers.wiring import RoleWork, note_imported
from sennit.workers.workflow_sandbox import runner_for
from sennit.workflows.messages.converter import cause_of

_THREADS = 32  # for the artifact store and names of hosts; tools have their own
_CHECK_INTERVAL = 5.0
_LISTED_WITHIN = 5  # looks, one a second: a server lists a new build a moment after its first poll
_FULL_CHECK = 12  # one of so many asks more than whether the server answers
# The drain is timed here: when tools are to blame, it takes as long as they do.
_WITHOUT_END = timedelta(days=7)

log = structlog.stdlib.get_logger("workers")


class RunningActivities(Interceptor):
    """The activities that run in this process, so that they can be cancelled
    when the drain is over.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.tasks: set[asyncio.Task[Any]] = set()

    def intercept_activity(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002 - the SDK's name
    ) -> ActivityInboundInterceptor:
        return _Tracked(next, self)

    def stop(self) -> None:
        """Cancel those that still run. They fail, and the server starts them again elsewhere."""
        self.stopped = True
        for task in self.tasks:
            task.cancel()


class _Tracked(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, running: RunningActivities) -> None:
        super().__init__(inner)
        self._running = running

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        task = asyncio.current_task()
        assert task is not None
        self._running.tasks.add(task)
        try:
            return await super().execute_activity(input)
        except asyncio.CancelledError:
            if self._running.stopped and not activity.is_cancelled():
                raise ApplicationError(
                    "its worker stopped before it had ended", type="WorkerStopped"
                ) from None
            raise
        finally:
            self._running.tasks.discard(task)


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """One process that serves `role` with `work`. `address` is for messages; `started` is
    on the monotonic clock.
    """

    role: Role
    settings: WorkerSettings
    work: RoleWork
    identity: str
    address: str
    started: float

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT, then drain: no new tasks, and running ones get
        `settings.drain` seconds.

        Returns the exit code: 0 drained, 1 when a worker failed or tools hold too many threads. An
        activity that outlives the drain is cancelled and the server starts it again elsewhere.
        Raises WrongSetting for a port that is taken and for an address that no server can have.
        """
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "sennit"))
        stop = StopRequest()
        stop.listen()
        health = HealthServer(Readiness(self.role.name, self.role.queues), self.settings.metrics)
        try:
            probes = await self._listen(health)
            client = await self._connect(stop, health.readiness)
            if client is None:
                return 0
            return await self._serve(client, stop, health.readiness, probes)
        finally:
            health.close()

    async def _listen(self, health: HealthServer) -> str | None:
        if self.settings.health is None:
            return None
        try:
            return str(await health.start(self.settings.health))
        except OSError as problem:
            raise WrongSetting(
                f"SENNIT_HEALTH_PORT='{self.settings.health}': {problem.strerror}"
            ) from None

    async def _connect(self, stop: StopRequest, readiness: Readiness) -> Client | None:
        """Return a client of a server that can be used, or None when a stop is requested first."""
        connecting = asyncio.create_task(self._usable_client(readiness))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({connecting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if connecting.done():
            return connecting.result()
        connecting.cancel()
        return None

    async def _usable_client(self, readiness: Readiness) -> Client:
        """Wait until there is nothing in the way of work: to end and be started
        again would not mend it.
        """
        while reason := await self._no_store(readiness):
            _report(readiness, reason)
            await asyncio.sleep(_CHECK_INTERVAL)
        readiness.reason = f"not connected to Temporal at {self.address} yet"
        identity = with_store(self.identity, readiness.store)
        client = await connect_patiently(self.address, identity, partial(_report, readiness))
        check = self._check(client, readiness)
        while reason := await check.obstacle():
            _report(readiness, reason)
            await asyncio.sleep(_CHECK_INTERVAL)
        readiness.note = await self._note(check)
        if readiness.note:
            log.warning(readiness.note)
        return client

    async def _no_store(self, readiness: Readiness) -> str | None:
        """Return why the artifact store cannot be used now, or None. None is made: an empty folder
        may be one that is not mounted.
        """
        readiness.store = None
        if self.work.store is None:
            return None
        try:
            readiness.store = await self.work.store.identify()
        except StoreUnavailable as problem:
            return str(problem)
        return None

    def _check(self, client: Client, readiness: Readiness) -> ServerCheck:
        return ServerCheck(client, self.address, readiness.store, self._version)

    async def _note(self, check: ServerCheck) -> str:
        """Return what is missing that work can do without, on this machine and on the server."""
        return "; ".join(filter(None, (self.work.note, await check.note())))

    @property
    def _version(self) -> tuple[str, str] | None:
        """The (deployment, build) whose runs this process serves."""
        deployment = self.settings.deployment
        if not (deployment and self.role.serves("workflows")):
            return None
        return deployment, build_of(self.settings)

    async def _serve(
        self, client: Client, stop: StopRequest, readiness: Readiness, probes: str | None
    ) -> int:
        activities = RunningActivities()
        workers = [
            build_worker(client, each, self.work, self.settings, activities)
            for each in self.role.bindings
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        stopping = asyncio.create_task(stop.wait())
        watching = asyncio.create_task(self._watch(client, workers, readiness, probes))
        ends: set[asyncio.Future[Any]] = {*running, stopping, watching}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        exhausted = watching.done()
        if exhausted:
            readiness.reason = watching.result()
            log.error(
                "taking no more tool calls; this process ends when those under way have",
                cause=readiness.reason,
            )
            kinds = zip(workers, self.role.bindings, strict=True)
            idle: asyncio.Future[Any] = asyncio.gather(
                *(worker.shutdown() for worker, each in kinds if each.kind in ("tools", "sandbox"))
            )
            await asyncio.wait({idle, stopping}, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        readiness.reason = "draining"
        if stopping.done():
            log.info("draining", seconds=self.settings.drain)
        leave_by(self.settings.drain + AFTER_DRAIN)
        stopping.cancel()
        status = await _drain(workers, running, activities, self.settings.drain)
        return status or int(exhausted)

    async def _watch(
        self, client: Client, workers: list[Worker], readiness: Readiness, probes: str | None
    ) -> str:
        """Report readiness once every worker polls, then follow whether the server can be used.

        Returns why this process should be replaced, once it should.
        """
        readiness.reason = "not polling yet"
        while not all(worker.is_running for worker in workers):  # noqa: ASYNC110 - the SDK has no event for it
            await asyncio.sleep(0.01)
        check = self._check(client, readiness)
        reason = await _unlisted(check)
        readiness.reason = reason
        if reason is not None:
            log.warning(reason)
        log.info(
            "worker ready" if reason is None else "worker polls",
            role=self.role.name,
            queues=self.role.queues,
            address=self.address,
            namespace=client.namespace,
            build_id=build_of(self.settings),
            deployment=self.settings.deployment,
            identity=with_store(self.identity, readiness.store),
            store=readiness.store,
            health=probes,
            seconds=round(time.monotonic() - self.started, 2),
        )
        show = tool_gauges()
        if self.work.warm_up is not None:
            asyncio.get_running_loop().run_in_executor(None, self.work.warm_up)
        turn = 0
        threads = self.work.threads
        while True:
            if threads and (exhausted := threads.exhausted):
                return exhausted
            await asyncio.sleep(_CHECK_INTERVAL)
            if threads:
                show(threads.lost, threads.blocked_seconds)
            # Tools may import more when they are called.
            if self.settings.imported and turn % _FULL_CHECK == 0:
                note_imported(self.settings.imported, self.settings.tools, self.settings.tools_path)
            turn += 1
            if reason is not None or turn % _FULL_CHECK == 0:
                check = await self._renewed(check, workers, readiness)
            standing, reason = reason, await check.lost()
            if reason is None and standing:
                reason = await check.unlisted()
            if reason is None and (standing or turn % _FULL_CHECK == 0):
                reason = await self._no_store(readiness) or await check.obstacle()
                readiness.note = await self._note(check)
            _report(readiness, reason)

    async def _renewed(
        self, check: ServerCheck, workers: list[Worker], readiness: Readiness
    ) -> ServerCheck:
        """Have the workers go on with a new connection if their certificates were renewed,
        and return what asks it.
        """
        try:
            client = await connect_again(check.client, with_store(self.identity, readiness.store))
        except (ValueError, RuntimeError, TimeoutError) as problem:
            log.warning("other certificates are there, and cannot be used", cause=cause_of(problem))
            return check
        if client is None:
            return check
        for worker in workers:
            worker.client = client
        log.info("goes on with renewed certificates")
        return self._check(client, readiness)


async def _unlisted(check: ServerCheck) -> str | None:
    """Return why the server does not list the build of a worker that polls, a few seconds
    after it has begun to.
    """
    for _ in range(_LISTED_WITHIN):
        if await check.unlisted() is None:
            return None
        await asyncio.sleep(1)
    return await check.unlisted()


def build_worker(
    client: Client,
    binding: QueueBinding,
    work: RoleWork,
    settings: WorkerSettings,
    running: RunningActivities,
) -> Worker:
    """Return a worker, not yet running, that serves one queue.

    As a named deployment, it serves the runs of its own build: a run stays on the build that it
    began on until it continues as new. Activities have no version: those of every run go to
    whichever worker is there.
    """
    runner = runner_for(settings.workflow_sandbox)
    heartbeat = timedelta(seconds=settings.heartbeat)
    is_versioned = False
    behavior = VersioningBehavior.UNSPECIFIED
    serves: dict[str, Any]
    if binding.kind == "workflows":
        serves = {
            "workflows": work.workflows,
            "max_concurrent_workflow_tasks": binding.slots,
            "interceptors": work.interceptors,
        }
        if settings.deployment is not None:
            is_versioned = True
            behavior = VersioningBehavior.PINNED
    else:
        serves = {
            "activities": work.activities[binding.kind],
            "max_concurrent_activities": settings.slots or binding.slots,
            "interceptors": (*work.interceptors, running),
        }
    worker = Worker(
        client,
        task_queue=binding.queue,
        workflow_runner=runner,
        max_cached_workflows=settings.cached_workflows,
        workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(5),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(minimum=5, initial=5, maximum=20),
        max_heartbeat_throttle_interval=heartbeat,
        default_heartbeat_throttle_interval=heartbeat,
        graceful_shutdown_timeout=_WITHOUT_END,
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(settings.deployment or "sennit", build_of(settings)),
            use_worker_versioning=is_versioned,
            default_versioning_behavior=behavior,
        ),
        **serves,
    )
    runner.attach(worker)
    return worker


def build_of(settings: WorkerSettings) -> str:
    """Return the build id of a worker: the deployment's, else the installed version of Sennit."""
    return settings.build_id or importlib.metadata.version("sennit")


async def _drain(
    workers: list[Worker],
    running: list[asyncio.Task[None]],
    activities: RunningActivities,
    seconds: float,
) -> int:
    drained = asyncio.gather(*(worker.shutdown() for worker in workers))
    await asyncio.wait({drained}, timeout=seconds)
    activities.stop()
    await drained
    ends = await asyncio.gather(*running, return_exceptions=True)
    failures = {cause_of(end) for end in ends if isinstance(end, BaseException)}
    for failure in sorted(failures):
        log.error("worker failed", cause=failure)
    if failures:
        log.info("stopped")
        return 1
    log.info("drained")
    return 0


def _report(readiness: Readiness, reason: str | None) -> None:
    """Let /readyz say why there is no work done, or that there is; the log has
    each change in one line.
    """
    if reason is None and readiness.reason is not None:
        log.info("nothing is in the way any more", was=readiness.reason)
    elif reason is not None and reason != readiness.reason:
        log.warning(reason)
    readiness.reason = reason
