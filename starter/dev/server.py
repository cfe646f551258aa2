"""One Temporal dev server as a child process: started until it really answers, stopped, killed and restarted."""

import asyncio
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from starter.dev.ports import HOST, choose_port
from starter.dev.process import Process
from starter.dev.watched import last_lines
from workflows.run.search_attributes import KINDS

NAMESPACE = "default"
PORT = 7233
UI_PORT = 8233
DYNAMIC_CONFIG = {
    "history.transferProcessorMaxPollRPS": "2000",  # at the default of 20 the one shard holds short hops back
    "history.timerProcessorMaxPollRPS": "2000",
    "history.eventsCacheMaxSizeBytes": "67108864",  # wide runs fall out of the default of 512 KB
    "history.timerProcessorMaxTimeShift": '"10ms"',  # at the default no timer is shorter than 1 s
    "matching.enableFairness": "true",
}
PRAGMAS = ("journal_mode=wal", "synchronous=normal")
"""A write-ahead log needs no sync at every commit: a hop costs 10 ms less, a killed server loses nothing, and a power
cut loses at most the last moments without damaging the database."""
START_LIMIT = 60.0  # seconds
GRACE = 10.0  # seconds between SIGTERM and SIGKILL
PORT_TRIES = 5


class DevServerFailed(Exception):
    """The dev server ended or did not answer in time; the text holds the end of its log."""


class _PortTaken(Exception):
    """Another process got the port between the choice and the start."""


class DevServer:
    """A Temporal dev server on 127.0.0.1 with Sennit's search attributes and dynamic values.

    `database` None keeps everything in memory. Taken ports are replaced by free ones at the first start and kept
    from then on, so that clients of a restarted server find it again; port 0 asks for a free one. The server ends
    when the process that started it does.
    """

    def __init__(
        self,
        binary: Path,
        database: Path | None,
        log: Path,
        *,
        port: int = PORT,
        ui_port: int = UI_PORT,
        headless: bool = False,
    ) -> None:
        self._binary = binary
        self._database = database
        self._log = log
        self._wanted = (port, ui_port)
        self._headless = headless
        self._process: Process | None = None
        self.port = port
        self.ui_port = ui_port

    @property
    def address(self) -> str:
        """HOST:PORT for clients; final once `start` returned."""
        return f"{HOST}:{self.port}"

    @property
    def ui_url(self) -> str | None:
        """Where the web UI is, or None when headless."""
        return None if self._headless else f"http://{HOST}:{self.ui_port}"

    @property
    def process(self) -> Process:
        """The process behind the server; RuntimeError before the first start."""
        if self._process is None:
            raise RuntimeError("the dev server was not started")
        return self._process

    async def start(self, limit: float = START_LIMIT) -> None:
        """Start and wait until clients can use it; DevServerFailed after `limit` seconds or when it ends.

        Ready means: system info and namespace answer, the search attributes are there, the UI listens. On any
        failure, cancellation included, no process is left.
        """
        for _ in range(PORT_TRIES):
            self.port = choose_port(self._wanted[0])
            self.ui_port = choose_port(self._wanted[1], taken=[self.port])
            try:
                await self._launch(limit)
            except _PortTaken:
                continue
            return
        raise DevServerFailed(f"no free port was still free when the dev server started; log: {self._log}")

    async def restart(self, limit: float = START_LIMIT) -> None:
        """Start again on the same ports and database after `stop` or `kill`; DevServerFailed as `start`."""
        deadline = time.monotonic() + limit
        while True:
            try:
                return await self._launch(deadline - time.monotonic())
            except _PortTaken as taken:
                if time.monotonic() >= deadline:
                    raise DevServerFailed(f"port {self.port} or {self.ui_port} is now another's") from taken
                await asyncio.sleep(0.5)

    async def stop(self, grace: float = GRACE) -> None:
        """SIGTERM, wait up to `grace` seconds, SIGKILL. Harmless when it does not run."""
        if self._process is not None:
            await self._process.stop(grace)

    def kill(self) -> None:
        """SIGKILL at once, as a crash would; what was committed to the database stays."""
        if self._process is not None:
            self._process.kill()

    async def _launch(self, limit: float) -> None:
        if self._database is not None:
            self._database.parent.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        before = self._log.stat().st_size if self._log.exists() else 0
        env = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        self._process = Process(list(self._command()), log=self._log, env=env, cwd=self._log.parent, grace=GRACE)
        self._process.start()
        ready = False
        try:
            async with asyncio.timeout(limit):
                await self._ready(before)
            ready = True
        except TimeoutError:
            raise DevServerFailed(f"not ready after {limit:.0f} s; {self._story()}") from None
        finally:
            if not ready:
                self._process.kill()

    def _command(self) -> Iterator[str]:
        # without --log-level: it is warn then, and only then is the server quiet about its own shutdown
        yield from (str(self._binary), "server", "start-dev", "--ip", HOST, "--port", str(self.port))
        yield from ("--headless",) if self._headless else ("--ui-port", str(self.ui_port))
        if self._database is not None:
            yield from ("--db-filename", str(self._database))
            for pragma in PRAGMAS:
                yield from ("--sqlite-pragma", pragma)
        for name, value in DYNAMIC_CONFIG.items():
            yield from ("--dynamic-config-value", f"{name}={value}")
        for name, kind in KINDS.items():
            yield from ("--search-attribute", f"{name}={kind}")

    async def _ready(self, before: int) -> None:
        while not await self._answers():
            if not self.process.running:
                if "address already in use" in self._log.read_bytes()[before:].decode(errors="replace"):
                    raise _PortTaken
                raise DevServerFailed(f"the dev server {self.process.status}; {self._story()}")
            await asyncio.sleep(0.05)

    async def _answers(self) -> bool:
        if not await _listens(self.port) or not (self._headless or await _listens(self.ui_port)):
            return False
        try:
            client = await Client.connect(self.address, namespace=NAMESPACE)
            return self.process.running and await has_search_attributes(client)
        except (RPCError, RuntimeError):  # the SDK reports a refused connection as RuntimeError
            return False

    def _story(self) -> str:
        return f"the end of {self._log}:\n{last_lines(self._log)}"


async def has_search_attributes(client: Client) -> bool:
    """Whether the client's namespace exists and has Sennit's search attributes; RPCError if nobody answers."""
    limit = timedelta(seconds=2)
    namespace = DescribeNamespaceRequest(namespace=client.namespace)
    await client.workflow_service.describe_namespace(namespace, timeout=limit)
    request = ListSearchAttributesRequest(namespace=client.namespace)
    answer = await client.operator_service.list_search_attributes(request, timeout=limit)
    return answer.custom_attributes.keys() >= KINDS.keys()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True
