"""Builds of the workflow workers at a server's limit: one that is refused is not ready, and old ones are deleted."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.worker_processes import WorkerProcesses, readiness
from temporalio.client import Client

from sennit.starter.client.deployment import Version, promote, prune
from sennit.starter.client.errors import Refused
from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer, free_port
from sennit.workflows.messages.converter import connect

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


class SmallServer(DevServer):
    """A dev server that takes `most` builds, knows for `polled` who has polled, and sees at once what has drained."""

    most = 2
    polled = "5m"

    def _command(self) -> Iterator[str]:
        yield from super()._command()
        settings = {
            "matching.maxVersionsInDeployment": str(self.most),
            "matching.PollerHistoryTTL": f'"{self.polled}"',
            "matching.wv.VersionDrainageStatusVisibilityGracePeriod": '"1s"',
            "matching.wv.VersionDrainageStatusRefreshInterval": '"1s"',
        }
        for name, value in settings.items():
            yield from ("--dynamic-config-value", f"{name}={value}")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[SmallServer]:
    binary = await obtain(pinned_only=True)
    made = SmallServer(binary, tmp_path / "server.db", tmp_path / "server.log", port=0, headless=True)
    yield made
    await made.stop()


async def becomes(port: int, text: str) -> dict[str, Any]:
    """Wait until what /readyz answers has this text in it."""
    async with asyncio.timeout(120):
        while text not in json.dumps(found := await asyncio.to_thread(readiness, port)):
            await asyncio.sleep(0.2)
        return found


class Builds:
    """Workflow workers of several builds. `ports` are where each answers probes."""

    def __init__(self, server: DevServer, state: Path) -> None:
        self._server, self._state = server, state
        self._processes: dict[str, WorkerProcesses] = {}
        self.ports: dict[str, int] = {}

    def start(self, build: str) -> None:
        self.ports[build] = free_port(0)
        self._processes[build] = WorkerProcesses(
            self._server.address,
            self._state,
            TEMPORAL_DEPLOYMENT_NAME="sennit",
            TEMPORAL_WORKER_BUILD_ID=build,
            SENNIT_HEALTH_PORT=f"127.0.0.1:{self.ports[build]}",
        )
        self._processes[build].start("workflow")

    def kill(self, *builds: str) -> None:
        for build in builds or self._processes:
            self._processes[build].kill()


@pytest.fixture
def builds(server: SmallServer, tmp_path: Path) -> Iterator[Builds]:
    made = Builds(server, tmp_path / "state")
    yield made
    made.kill()


async def promote_two(client: Client, builds: Builds) -> None:
    """Start the builds 1 and 2, one after the other, and have each be the current one once it is ready."""
    for build in "12":
        builds.start(build)
        await becomes(builds.ports[build], '"ready": true')
        await promote(client, Version("sennit", build))


async def test_a_build_that_the_server_refuses_is_not_ready_and_names_the_way_out(
    server: SmallServer, builds: Builds
) -> None:
    await server.start()
    client = await connect(server.address)
    await promote_two(client, builds)

    builds.start("3")
    refused = await becomes(builds.ports["3"], "does not list sennit:3")
    assert refused["ready"] is False
    assert "it lists 2 other builds" in refused["reason"]
    assert "`sennit setup --prune sennit`" in refused["reason"]

    # Builds that poll stay, whether runs need them or not.
    assert all((await prune(client, "sennit")).values())

    # With room for it, the build is ready without a new start.
    await server.stop()
    server.most = 3
    await server.start()
    await becomes(builds.ports["3"], '"ready": true')


async def test_a_drained_build_is_deleted_and_the_current_one_stays(server: SmallServer, builds: Builds) -> None:
    server.polled = "1s"
    await server.start()
    client = await connect(server.address)
    await promote_two(client, builds)
    builds.kill("1")
    async with asyncio.timeout(120):
        while (kept := await prune(client, "sennit"))["1"]:
            await asyncio.sleep(0.5)
    assert kept == {"1": "", "2": "it is current"}
    assert await prune(client, "sennit") == {"2": "it is current"}
    with pytest.raises(Refused, match="has no deployment other"):
        await prune(client, "other")
