"""A Temporal dev server for the tests of this folder that are marked `server`."""

import asyncio
from collections.abc import Iterator

import pytest

from starter.dev.binary import obtain
from starter.dev.server import DevServer


@pytest.fixture(scope="session")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    server = DevServer(
        obtain(pinned_only=True),
        None,
        tmp_path_factory.mktemp("server") / "server.log",
        port=0,
        ui_port=0,
        headless=True,
    )
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())
