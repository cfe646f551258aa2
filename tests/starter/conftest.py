"""A run that follows a script instead of a server, and terminals that remember what was written to them."""

import asyncio
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.server import DevServer
from sennit.starter.terminal.console import Output, Terminal


class Stream(io.StringIO):
    """A text stream that may say that it is a terminal."""

    def __init__(self, *, tty: bool = False) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


@pytest.fixture
def make_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    """Make a terminal of two streams; `tty` makes all three a person's, 80 columns wide and 24 lines high."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")

    def make(output: Output = "text", *, tty: bool = False, **more: Any) -> Terminal:
        return Terminal(output, out=Stream(tty=tty), err=Stream(tty=tty), stdin=Stream(tty=tty), **more)

    return make


@pytest.fixture(scope="session")
def server_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Temporal server of its own for the client's tests."""
    binary: Path = asyncio.run(obtain(pinned_only=True))
    server = DevServer(binary, None, tmp_path_factory.mktemp("server") / "log", port=0, ui_port=0, headless=True)
    asyncio.run(server.start())
    yield server.address
    asyncio.run(server.stop())


@pytest.fixture
async def client(server_address: str) -> Client:
    from sennit.workflows.messages.converter import DATA_CONVERTER

    return await Client.connect(server_address, data_converter=DATA_CONVERTER)
