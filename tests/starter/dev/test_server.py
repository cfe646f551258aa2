"""The dev server as a process, on the real binary."""

import asyncio
import socket
import urllib.request
from pathlib import Path

import pytest

from sennit.starter.dev.server import DevServer, responds

pytestmark = pytest.mark.server


async def test_taken_ports_are_replaced_and_a_killed_server_keeps_its_new_ones(
    tmp_path: Path, dev_server_binary: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as other_ui:
        taken = {other.getsockname()[1], other_ui.getsockname()[1]}
        ports = {"port": other.getsockname()[1], "ui_port": other_ui.getsockname()[1]}
        server = DevServer(dev_server_binary, tmp_path / "t.db", tmp_path / "server.log", **ports)
        await server.start()
    try:
        address, ui_url = server.address, server.ui_url
        assert not taken & {server.port, server.ui_port}
        assert await responds(address)
        assert ui_url is not None
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(ui_url, timeout=5).status)
        assert page == 200

        server.kill()
        assert not await responds(address)
        await server.start()

        assert (server.address, server.ui_url) == (address, ui_url)
    finally:
        await server.stop()
    assert "exit status 0" in server.ending


async def test_servers_that_want_the_same_port_at_once_all_start(dev_server_binary: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        wanted = unused.getsockname()[1]
    servers = [
        DevServer(dev_server_binary, None, tmp_path / f"{number}.log", port=wanted, headless=True)
        for number in range(2)
    ]
    try:
        await asyncio.gather(*(server.start() for server in servers))
        assert len({server.port for server in servers}) == 2
        assert all([await server.responds() for server in servers])
        servers[0].port = servers[1].port
        assert not await servers[0].responds()  # another server does, there
    finally:
        await asyncio.gather(*(server.stop() for server in servers))
