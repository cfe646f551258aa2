"""Many runs on worker processes of each role: what they take of time, processors, database and store."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import psutil
from doubles.postgres_server import DATABASES, POSTGRES, TEMPORAL, PostgresServer, postgres_server
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from benchmarks.stage import dev_server, start_worker
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

ROLES = ("workflow", "tools", "llm")
SAMPLES = 5
IDLE_SECONDS = 15.0
LASTING = ("history_node", "history_tree", "executions", "current_executions", "executions_visibility")
"""The tables that hold runs. The others are queues through which runs go."""
_SIZE = f"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN {LASTING}"
_LOG = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
BILLED = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED,  # the last attempt; one that is tried again counts each time
    EventType.EVENT_TYPE_TIMER_STARTED,
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
}
"""What Temporal Cloud bills as an action; heartbeats are in no history, and these runs are too short to have any."""


@dataclass
class Site:
    """A running server with workers. `processes` are those that are measured, by what they do."""

    client: Client
    place: Path
    postgres: PostgresServer | None
    processes: dict[str, list[psutil.Process]] = field(default_factory=dict)
    log_of_vacuum: int = 0

    def cpu(self) -> dict[str, float]:
        """Return the processor seconds that each kind of process has used, children and this client included."""
        used = {name: sum(map(processor_seconds, tops)) for name, tops in self.processes.items()}
        return {**used, "client": time.process_time()}

    def stored(self) -> Mapping[str, float]:
        """Return the bytes of databases and their log, and files, bytes and disk space of the artifact store."""
        sizes: Counter[str] = Counter()
        for path in (self.place / "artifacts").rglob("*"):
            if path.is_file():
                sizes.update(files=1, artifacts=path.stat().st_size, disk=path.stat().st_blocks * 512)
        if self.postgres is None:
            sizes["database"] = sum(path.stat().st_size for path in self.place.glob("temporal.db*"))
            return sizes
        sizes["log"] = self._ask(self.postgres, _LOG) - self.log_of_vacuum
        for database in DATABASES:
            self.postgres.run("vacuumdb", "--full", "--quiet", database)  # what is free depends on what came before
            sizes["database"] += self._ask(self.postgres, _SIZE, database)
        self.log_of_vacuum = self._ask(self.postgres, _LOG) - sizes["log"]
        return sizes

    @staticmethod
    def _ask(postgres: PostgresServer, query: str, database: str = DATABASES[0]) -> int:
        return int(postgres.run("psql", "-At", "-c", query, database))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run took on average, of `runs` with so many nodes each: processor seconds, bytes and files, and counts of
    events, workflow tasks and actions.
    """

    runs: int
    nodes: int
    seconds: float
    slowest: float
    cpu: dict[str, float]
    stored: Mapping[str, float]
    counts: dict[str, float]

    @property
    def busy(self) -> float:
        """How many cores were used."""
        return sum(self.cpu.values()) * self.runs / self.seconds


@asynccontextmanager
async def site(kind: Literal["postgres", "dev"], workers: int) -> AsyncIterator[Site]:
    """Start a server and so many workers of each role, and stop them whatever happens."""
    async with AsyncExitStack() as stack:
        built = await stack.enter_async_context(_postgres() if kind == "postgres" else _dev_server())
        started = [start_worker(built.client.service_client.config.target_host, built.place, {}, role)
                   for role in ROLES for _ in range(workers)]  # fmt: skip
        for index, (worker, _) in enumerate(await asyncio.gather(*started)):
            stack.callback(worker.wait, 60)
            stack.callback(worker.terminate)
            built.processes.setdefault(ROLES[index // workers], []).append(psutil.Process(worker.pid))
        yield built


@asynccontextmanager
async def _postgres() -> AsyncIterator[Site]:
    with postgres_server() as server:
        built = Site(await connect(server.address), server.place, server)
        pids = {"server": TEMPORAL, "postgres": POSTGRES}
        built.processes = {name: [psutil.Process(server.pid(each))] for name, each in pids.items()}
        yield built


@asynccontextmanager
async def _dev_server() -> AsyncIterator[Site]:
    with TemporaryDirectory(prefix="sennit-bench-") as folder:
        place = Path(folder)
        async with dev_server(place) as server:
            ours = [each for each in psutil.Process().children() if folder in " ".join(each.cmdline())]
            yield Site(await connect(server.address), place, None, {"server": ours})


async def idle(built: Site) -> dict[str, float]:
    """Return how many cores each kind of process uses when there is nothing to do."""
    before = built.cpu()
    await asyncio.sleep(IDLE_SECONDS)
    return {name: (used - before[name]) / IDLE_SECONDS for name, used in built.cpu().items()}


async def spend(built: Site, request: dict[str, Any], runs: int, at_once: int) -> Spent:
    """Start so many runs, at most `at_once` at a time, and return what they took. Raises RuntimeError if one fails."""
    stored, cpu, began = built.stored(), built.cpu(), time.perf_counter()
    free = asyncio.Semaphore(at_once)
    done = await asyncio.gather(*(_run(built.client, request, free) for _ in range(runs)))
    seconds = time.perf_counter() - began
    await asyncio.sleep(2)  # what the server still writes of runs that are over
    cpu, stored = _growth(cpu, built.cpu(), runs), _growth(stored, built.stored(), runs)
    counts, nodes = await _counts([handle for handle, _ in done[-SAMPLES:]])
    return Spent(runs, nodes, seconds, max(taken for _, taken in done), cpu, stored, counts)


def _growth(before: Mapping[str, float], after: Mapping[str, float], runs: int) -> dict[str, float]:
    return {name: (value - before.get(name, 0)) / runs for name, value in after.items()}


def processor_seconds(top: psutil.Process) -> float:
    """Return the processor seconds of a process and its children, those included that have ended."""
    used = sum(top.cpu_times()[:4])
    for child in top.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # what it used is then its parent's
            used += sum(child.cpu_times()[:4])
    return float(used)


async def _run(
    client: Client, request: dict[str, Any], free: asyncio.Semaphore
) -> tuple[WorkflowHandle[Any, Any], float]:
    async with free:
        began = time.perf_counter()
        name = f"agent-load-{uuid.uuid4().hex[:12]}"
        handle = await client.start_workflow("AgentRun", request, id=name, task_queue=queues.WORKFLOW)
        report = await handle.result()
        if report["status"] != "done":
            raise RuntimeError(f"{name} ended {report['status']}: {report.get('problem')}")
        return handle, time.perf_counter() - began


async def _counts(handles: list[WorkflowHandle[Any, Any]]) -> tuple[dict[str, float], int]:
    """Return events, workflow tasks and actions of a run, as their mean, and its nodes."""
    counts: Counter[str] = Counter()
    for handle in handles:
        history = await handle.fetch_history()
        kinds = Counter(event.event_type for event in history.events)
        counts["events"] += len(history.events)
        counts["workflow tasks"] += kinds[EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
        counts["actions"] += sum(kinds[each] for each in BILLED)
    view = await handles[0].query("plan")
    return {name: count / len(handles) for name, count in counts.items()}, len(view["nodes"])
