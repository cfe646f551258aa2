"""What tests share: one real dev server a session, workers in this process, and a way to run a plan."""

import asyncio
import functools
import gc
import inspect
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import CACHED, SLOWEST_STOP, Start, serving, starting
from doubles.stores import store_in
from hypothesis import HealthCheck, settings
from temporalio.client import Client
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.workers.__main__ import ALLOCATIONS
from sennit.workflows.messages.converter import connect

gc.disable()  # until everything is collected
for _name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_", "SENNIT_MODEL"))]:
    del os.environ[_name]  # no test may spend a person's money

settings.register_profile("sennit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sennit")  # a busy machine fails no test

Plan = dict[str, Any]
BROWSER = "tests/ui/"
LONGEST = (
    BROWSER,
    "tests/activities/test_event_loop_lag.py",
    "tests/chaos/",
    "tests/starter/dev/",
    "tests/workflows/test_programs.py",
)
"""What one process is busy with for longest: begun last, it would keep the others waiting at the end."""
SERVERS = frozenset(("dev_server", "server_address"))
"""Fixtures of a server that tests share: who asks for one is marked. A test with a server of its own says so itself."""
STOPPING = 2 * SLOWEST_STOP
"""Seconds in which the workers of a test that took too long may stop."""
CORPUS = Path(__file__).parents[1] / "examples" / "corpus"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, then tests that wait for servers; the quick ones fill what room is left."""
    for item in items:
        if not SERVERS.isdisjoint(_fixtures(item)):
            item.add_marker("server")
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            _cancel_in_time(item)
    items.sort(key=lambda item: (not item.nodeid.startswith(LONGEST), item.get_closest_marker("server") is None))


def _cancel_in_time(test: pytest.Function) -> None:
    """Have a test that takes too long cancelled as a task of its own, before pytest-timeout breaks off its event loop.

    All tasks of a loop that is broken off are cancelled at once, and a worker of Temporal's SDK then waits for ever for
    the end of what was cancelled with it. Here a worker that a test has started stops as usual.
    """
    marker = test.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker is not None else test.config.getini("timeout"))
    function = test.obj

    @functools.wraps(function)
    async def timed(*args: Any, **fixtures: Any) -> None:
        async with asyncio.timeout(limit):
            await function(*args, **fixtures)

    test.obj = timed
    test.add_marker(pytest.mark.timeout(limit + STOPPING), append=False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the server before the first test that needs it: on a fresh machine it is built, and that takes longer than a
    test may. What was collected stays to the end: the garbage collector, which would go through it again and again,
    leaves it alone, and comes as rarely as in a worker.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)
    gc.enable()
    if not session.config.option.collectonly and any("dev_server" in _fixtures(item) for item in session.items):
        asyncio.run(obtain(pinned_only=True))


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole files in the order of collection, and all browser tests as one: they share a browser."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(BROWSER) else str(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Share the suite by files."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A real Temporal dev server with its database on disk, shared by the session."""
    place = tmp_path_factory.mktemp("server")
    binary = asyncio.run(obtain(pinned_only=True))
    server = DevServer(binary, place / "temporal.db", place / "server.log", port=0, headless=True)
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.fixture
async def client(dev_server: DevServer) -> Client:
    """A client of the shared server."""
    return await connect(dev_server.address)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where test tools keep their log of calls."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def docs() -> Path:
    """The example corpus."""
    return CORPUS


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact store of the session."""
    return store_in(tmp_path_factory.mktemp("artifacts"))


@pytest.fixture
def host(cache: Path, artifacts: Path) -> Activities:
    """The activities of a worker with the tools for tests."""
    return Activities(
        WorkerPaths(artifacts, cache, CORPUS, (Path("/"),)),
        load_tools(["doubles.tools"]),
        identity="tests",
        approval="never",
    )


@pytest.fixture
def cached(request: pytest.FixtureRequest) -> int:
    """How many workflows a worker remembers; with 0 every workflow task is a replay from the start."""
    return int(getattr(request, "param", os.environ.get("SENNIT_CACHED_WORKFLOWS", CACHED)))


@pytest.fixture
async def workers(client: Client, host: Activities, cached: int) -> AsyncIterator[None]:
    """All roles in this process."""
    async with serving(client, host, cached=cached):
        yield


@pytest.fixture
async def start(client: Client, workers: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Start a run with any input; its end is that of `starting`, while what the test has patched still is."""
    async with starting(client) as begin:
        yield begin
