"""The dev server as a process, on the real binary."""

import asyncio
import socket
import urllib.request
from pathlib import Path

import pytest

from starter.dev.server import DevServer, answers

pytestmark = pytest.mark.server


async def test_a_killed_server_comes_back_on_the_same_ports(tmp_path: Path, dev_server_binary: Path) -> None:
    server = DevServer(dev_server_binary, tmp_path / "t.db", tmp_path / "server.log", port=0, ui_port=0)
    await server.start()
    try:
        address, ui_url = server.address, server.ui_url
        assert await answers(address)
        assert ui_url is not None
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(ui_url, timeout=5).status)
        assert page == 200

        server.kill()
        assert not server.running
        assert not await answers(address)
        await server.start()

        assert (server.address, server.ui_url) == (address, ui_url)
    finally:
        await server.stop()
    assert "exit status 0" in server.ending


async def test_taken_ports_are_replaced_by_free_ones(tmp_path: Path, dev_server_binary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as other_ui:
        taken, taken_ui = other.getsockname()[1], other_ui.getsockname()[1]
        server = DevServer(dev_server_binary, None, tmp_path / "server.log", port=taken, ui_port=taken_ui)
        await server.start()
        await server.stop()
    assert server.port != taken
    assert server.ui_port != taken_ui


async def test_a_headless_server_has_no_ui(tmp_path: Path, dev_server_binary: Path) -> None:
    server = DevServer(dev_server_binary, None, tmp_path / "server.log", port=0, headless=True)
    await server.start()
    await server.stop()
    assert server.ui_url is None
    assert "Temporal UI" not in (tmp_path / "server.log").read_text()
