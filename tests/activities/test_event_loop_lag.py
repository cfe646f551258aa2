"""No server keeps a worker's event loop from its other work, whatever bytes it sends, in chunks of whatever size."""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from doubles.event_loop_lag import byte_server, measured_lag

from sennit.activities.http.client import Request
from sennit.activities.http.download import download, exchange
from sennit.activities.limits import MAX_OPENAPI_BYTES
from sennit.activities.providers.http_provider import HttpProvider
from sennit.activities.providers.model import ModelRequest, ProviderError
from sennit.activities.providers.openai import OpenAI
from sennit.activities.providers.settings import Server
from sennit.activities.toolbox.errors import ToolError
from sennit.workflows.plan.language.nodes import Role

MAX_LAG_SECONDS = 0.25
"""A worker answers its probes and heartbeats in whole seconds. Most of the time one turn takes a tenth of this."""

EVENT = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
TOOL_PIECE = {"index": 0, "id": "c", "function": {"name": "note", "arguments": '{"a": "}'}}
TOOL_EVENT = b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [TOOL_PIECE]}}]}).encode() + b"\n\n"
NEW_CALLS = b"".join(
    b"data: "
    + json.dumps(
        {"choices": [{"delta": {"tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": "note"}}]}}]}
    ).encode()
    + b"\n\n"
    for n in range(1_000)
)
SHAPES = {
    "line breaks": b"\n" * 300_000,
    "carriage returns": b"\r" * 60_000,
    "spaces": b" " * 60_000,
    "byte order marks": b"\xef\xbb\xbf" * 20_000,
    "zeros": b"\0" * 60_000,
    "comments": b": k\n\n" * 60_000,
    "one comment": b":" * 60_000,
    "empty events": b"data\n\n" * 10_000,
    "one line": b"data: " + b"a" * 60_000,
    "one event of many lines": b"data: 1\n" * 8_000,
    "small events": EVENT * 1_500,
    "pieces of one call": TOOL_EVENT * 1_000,
    "calls": NEW_CALLS,
    "deep json": b"[" * 60_000,
    "words": b"word " * 12_000,
}
PLANS = ("small events", "pieces of one call", "calls")
NOTE = {"name": "note", "schema": {"type": "object"}}
SIZES = (1, 7, 100_000)

MAX_CHUNKS = 60_000
"""Of one answer: to read all of them in one turn takes more than `MAX_LAG_SECONDS`."""


def body_of(shape: str, size: int) -> bytes:
    """Return what a server sends in chunks of this size."""
    return SHAPES[shape][: MAX_CHUNKS * size]


every_shape = pytest.mark.parametrize("shape", SHAPES)
every_size = pytest.mark.parametrize("size", SIZES)


@every_size
@every_shape
@pytest.mark.parametrize("role", ["worker", "planner"])
async def test_a_model_server_delays_nobody(shape: str, size: int, role: Role) -> None:
    if role == "planner" and shape not in PLANS:
        pytest.skip("all roles read this alike")
    request = ModelRequest(role=role, model="openai:m", goal="x", prompt="x", template="x", seconds=60.0, tools=(NOTE,))
    with byte_server(body_of(shape, size), size) as url, measured_lag() as lag:
        remote = HttpProvider(OpenAI(), Server("openai", f"{url}/v1", ""))
        with suppress(ProviderError):
            await remote.complete(request)
        await remote.close()
    assert lag.seconds < MAX_LAG_SECONDS


@every_size
@every_shape
async def test_a_page_delays_nobody(shape: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with byte_server(body_of(shape, size), size, kind="text/plain") as url, measured_lag() as lag:
        monkeypatch.setenv("SENNIT_HTTP_ALLOW", url.removeprefix("http://"))
        with suppress(ToolError):
            await download(url, 1_000_000)
    assert lag.seconds < MAX_LAG_SECONDS


SEVERAL = ("line breaks", "comments", "one line", "small events", "one event of many lines", "deep json")


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("shape", SEVERAL)
async def test_a_document_of_openapi_delays_nobody(shape: str, size: int) -> None:
    body = SHAPES[shape][:60_000]
    with byte_server(body, size, kind="application/json") as url, measured_lag() as lag, suppress(ToolError):
        await exchange(Request("GET", url), MAX_OPENAPI_BYTES)
    assert lag.seconds < MAX_LAG_SECONDS


async def lag_of_sessions(declared: dict[str, Any]) -> float:
    """Return how long one server keeps the event loop that all MCP sessions share from the others."""
    pytest.importorskip("mcp", reason="needs the extra mcp")
    from sennit.activities.toolbox.configuration import Secrets
    from sennit.activities.toolbox.mcp.configuration import ServerDeclaration
    from sennit.activities.toolbox.mcp.session import Session
    from sennit.activities.toolbox.server_thread import ServerThread

    session = Session("my", ServerDeclaration.model_validate({**declared, "start_timeout": "3s"}), Secrets({}))

    async def listed() -> float:
        with measured_lag() as lag, suppress(ToolError):
            await session.list_offers()
        return lag.seconds

    return await ServerThread("mcp").start(listed())


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("shape", SEVERAL)
async def test_an_mcp_server_over_http_delays_no_other(shape: str, kind: str, size: int) -> None:
    with byte_server(SHAPES[shape][:60_000], size, kind=kind) as url:
        assert await lag_of_sessions({"url": f"{url}/mcp"}) < MAX_LAG_SECONDS


PRINTS = """
import pathlib, sys
body, size = pathlib.Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
for start in range(0, len(body), size):
    sys.stdout.buffer.write(body[start:start + size])
    sys.stdout.buffer.flush()
sys.stdin.read()
"""


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("shape", SEVERAL)
async def test_an_mcp_server_on_stdio_delays_no_other(tmp_path: Path, shape: str, size: int) -> None:
    body = SHAPES[shape] if size > 1 else SHAPES[shape][:60_000]
    (tmp_path / "body").write_bytes(body * 5)
    declared = {"command": sys.executable, "args": ["-c", PRINTS, str(tmp_path / "body"), str(size)]}
    assert await lag_of_sessions(declared) < MAX_LAG_SECONDS
