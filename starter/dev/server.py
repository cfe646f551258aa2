"""One Temporal dev server as a child process."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from sennit.starter.dev.child import Child
from sennit.starter.dev.messages import LocalStackFailed
from sennit.workflows.run.search_attributes import KINDS

HOST = "127.0.0.1"
NAMESPACE = "default"
PORT = 7233
UI_PORT = 8233
DYNAMIC_CONFIG = {
    # At the default of 20 the one shard holds short hops back.
    "history.transferProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxPollRPS": "2000",
    "history.eventsCacheMaxSizeBytes": "67108864",  # wide runs fall out of the default of 512 KB
    # At the default of 100 fifty ends during a workflow task fail that.
    "history.maximumBufferedEventsBatch": "1000",
    "history.timerProcessorMaxTimeShift": '"10ms"',  # at the default no timer is shorter than 1 s
    "matching.enableFairness": "true",
    # start-dev opens a port for HTTP that cannot be switched off and takes any web page's
    # POST; no page has this host
    "frontend.httpAllowedHosts": '["none.invalid"]',
}
PRAGMAS = ("journal_mode=wal", "synchronous=normal")
"""Saves 10 ms a commit. A killed server loses nothing; after a power cut the last
moments may be lost, no more.
"""


class DevServer(Child):
    """A Temporal dev server on 127.0.0.1 with Sennit's search attributes and dynamic values.

    `database` None keeps everything in memory. Taken ports are replaced by free ones at the
    first start and kept from then on, so that clients of a restarted server find it again; port
    0 asks for a free one.
    """

    name = "the Temporal server"
    grace = 10.0
    umask = 0o077  # its database holds every run

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
        super().__init__(log)
        self._binary = binary
        self._database = database
        self._headless = headless
        self._started_before = False
        self.port = port
        self.ui_port = ui_port

    @property
    def address(self) -> str:
        """HOST:PORT for clients; final once `start` returned."""
        return f"{HOST}:{self.port}"

    @property
    def ui_url(self) -> str | None:
        """Where the web UI is, or None when headless."""
        if self._headless:
            return None
        return f"http://{HOST}:{self.ui_port}"

    async def start(self) -> None:
        """Start it as its base class says; after `kill` or `stop` with the
        same ports and database.
        """
        env = {
            name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")
        }
        for attempt in range(4):
            if not self._started_before:
                self.port = free_port(self.port)
                self.ui_port = free_port(self.ui_port)
            try:
                await self.launch(list(self._command()), env)
                break
            except LocalStackFailed as failure:
                if attempt == 3 or not (
                    self._lost_a_port() or "address already in use" in str(failure)
                ):
                    raise
        self._started_before = True

    def _lost_a_port(self) -> bool:
        """Whether another process has taken one of the ports since they were found free."""
        ports = (self.port, self.ui_port)
        return not self._started_before and tuple(map(free_port, ports)) != ports

    async def responds(self) -> bool:
        return await responds(self.address) and self._listens()

    def _listens(self) -> bool:
        """Whether the port is this server's: what answers may be another one
        that took the port first.
        """
        if not self._process:
            return False
        with suppress(psutil.Error):
            for connection in psutil.Process(self._process.pid).net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == self.port:
                    return True
        return False

    def _command(self) -> Iterator[str]:
        # without --log-level: it is warn then, and only then is the server quiet
        # about its own shutdown
        yield from (
            str(self._binary),
            "server",
            "start-dev",
            "--ip",
            HOST,
            "--port",
            str(self.port),
        )
        yield from ("--headless",) if self._headless else ("--ui-port", str(self.ui_port))
        if self._database is not None:
            yield from ("--db-filename", str(self._database))
            for pragma in PRAGMAS:
                yield from ("--sqlite-pragma", pragma)
        for name, value in DYNAMIC_CONFIG.items():
            yield from ("--dynamic-config-value", f"{name}={value}")
        for name, kind in KINDS.items():
            yield from ("--search-attribute", f"{name}={kind}")


async def responds(address: str) -> bool:
    """Return whether a server there has the default namespace with Sennit's search
    attributes; takes 5 s at most.
    """
    request = ListSearchAttributesRequest(namespace=NAMESPACE)
    try:
        async with asyncio.timeout(5):
            client = await Client.connect(address, namespace=NAMESPACE)
            found = await client.operator_service.list_search_attributes(
                request, timeout=timedelta(seconds=2)
            )
    except (
        RPCError,
        RuntimeError,
        TimeoutError,
    ):  # the SDK reports a refused connection as RuntimeError
        return False
    return found.custom_attributes.keys() >= KINDS.keys()


def free_port(wanted: int = 0) -> int:
    """Return the wanted port of 127.0.0.1 if it is free, else another free one."""
    with socket.socket() as probe:
        probe.settimeout(1)
        # On some systems one can bind a port that answers.
        if wanted and probe.connect_ex((HOST, wanted)):
            with suppress(OSError), socket.create_server((HOST, wanted)):
                return wanted
    with socket.create_server((HOST, 0)) as free:
        return int(free.getsockname()[1])
