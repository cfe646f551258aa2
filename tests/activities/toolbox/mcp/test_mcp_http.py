"""MCP over HTTP: credentials that are refused or renewed, the address that was admitted, no cookies, deep tools."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.http import addresses
from sennit.activities.http.headers_command import HeadersCommand
from sennit.activities.toolbox import Registry, ToolContext
from sennit.activities.toolbox.errors import McpCredentialsRefused
from sennit.activities.toolbox.redaction import redact

pytest.importorskip("mcp", reason="needs the extra mcp")
from sennit.activities.toolbox.mcp.tools import McpServers

PLAIN = {"name": "plain", "inputSchema": {"type": "object"}}
DEEP = '{"properties": {"a": ' * 300 + "{}" + "}}" * 300


class Server:
    """A server that takes the one `token`, sets a cookie in each answer, and notes the heads of all requests."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.events = False
        self.heads: list[str] = []
        self.called = 0
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Give the port; at the end nobody is served any more."""
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._exchange(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        size = next(
            (line.split(":")[1] for line in head.lower().splitlines() if line.startswith("content-length")), "0"
        )
        message = json.loads(await reader.readexactly(int(size)) or "{}")
        status, body = self._answer(head, message)
        kind = "application/json"
        if self.events and message.get("method") == "tools/list":
            kind, body = "text/event-stream", f": hello\n\nevent: message\ndata: {body}\n\n"
        fields = f"Content-Type: {kind}\r\nSet-Cookie: who=me; Path=/\r\nConnection: close\r\nMcp-Session-Id: s1\r\n"
        writer.write(f"HTTP/1.1 {status} X\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()

    def _answer(self, head: str, message: dict[str, Any]) -> tuple[int, str]:
        if self.token and f"authorization: Bearer {self.token}\r\n".lower() not in head.lower():
            return 401, '{"error": "invalid_token"}'
        method, begin = message.get("method", ""), f'{{"jsonrpc": "2.0", "id": {json.dumps(message.get("id"))}, '
        if method == "initialize":
            about = {"name": "h", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
            return 200, f'{begin}"result": {json.dumps(result)}}}'
        if method == "tools/list":
            deep = f'{{"name": "deep", "inputSchema": {DEEP}}}'
            return 200, f'{begin}"result": {{"tools": [{deep}, {json.dumps(PLAIN)}]}}}}'
        if method == "tools/call":
            self.called += 1
            return 200, f'{begin}"result": {{"content": [{{"type": "text", "text": "done"}}]}}}}'
        if "id" in message:
            return 200, f'{begin}"error": {{"code": -32601, "message": "no"}}}}'
        return 202, ""


async def offered(folder: Path, url: str, **fields: Any) -> Registry:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"h": {"url": url, **fields}}}))
    registry = Registry()
    servers = await asyncio.to_thread(McpServers, path, {"TOKEN": "first-token"})
    servers.offer(registry)
    return registry


BEARER = {"headers": {"Authorization": "Bearer $TOKEN"}}


async def test_a_refused_credential_is_named_and_nothing_is_repeated(tmp_path: Path, context: ToolContext) -> None:
    server = Server("first-token")
    async with server.listening() as port:
        registry = await offered(tmp_path, f"http://127.0.0.1:{port}/mcp", **BEARER)
        server.token = "second-token"
        tool = registry.get("h_plain")
        assert tool.effect == "write"
        with pytest.raises(
            McpCredentialsRefused, match=r"refuses the credentials \(401\); renew what `headers`"
        ) as caught:
            await tool.call({}, context)
    assert not caught.value.retryable
    assert server.called == 0


async def test_a_server_that_refuses_from_the_start_is_absent_by_that_reason(tmp_path: Path) -> None:
    server = Server("another")
    async with server.listening() as port:
        registry = await offered(tmp_path, f"http://127.0.0.1:{port}/mcp", **BEARER)
    assert "refuses the credentials (401)" in registry.absences["h_"]


async def test_a_command_prints_headers_anew_when_they_are_refused(tmp_path: Path, context: ToolContext) -> None:
    """The command is asked once as long as they are taken, and each token is masked wherever it comes back."""
    (tmp_path / "token").write_text("first-token")
    code = (
        "import json, pathlib, sys; folder = pathlib.Path(sys.argv[1]); (folder / 'runs').open('a').write('x')\n"
        "print(json.dumps({'headers': {'Authorization': 'Bearer ' + (folder / 'token').read_text()}}))"
    )
    server = Server("first-token")
    async with server.listening() as port:
        command = [sys.executable, "-c", code, str(tmp_path)]
        registry = await offered(tmp_path, f"http://127.0.0.1:{port}/mcp", headers_command=command)
        assert (await registry.get("h_plain").call({}, context))["text"] == "done"
        assert (tmp_path / "runs").read_text() == "x"
        server.token = "second-token"
        (tmp_path / "token").write_text("second-token")
        assert (await registry.get("h_plain").call({}, context))["text"] == "done"
        assert (tmp_path / "runs").read_text() == "xx"
        assert redact("it is second-token") == "it is [redacted]"
        server.token = "third-token"
        with pytest.raises(McpCredentialsRefused, match="check that command"):
            await registry.get("h_plain").call({}, context)
    assert server.called == 2


async def test_headers_may_be_printed_piece_by_piece() -> None:
    pieces = ['{"headers": {"Authori', 'zation": "Bearer of-pieces"}', "}"]
    code = f"import time\nfor piece in {pieces!r}:\n    print(piece, end='', flush=True)\n    time.sleep(0.1)"
    printed = await HeadersCommand([sys.executable, "-c", code], {})._printed()
    assert printed.headers == {"Authorization": "Bearer of-pieces"}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.exit(3)", "ended with 3"),
        ("print('secret-words')", "headers_command: print"),
        ("print('{\"Authorization\": 7}')", "headers_command: print"),
    ],
)
async def test_a_command_that_prints_none_is_named(tmp_path: Path, code: str, problem: str) -> None:
    server = Server()
    async with server.listening() as port:
        url = f"http://127.0.0.1:{port}/mcp"
        registry = await offered(tmp_path, url, headers_command=[sys.executable, "-c", code])
    assert problem in registry.absences["h_"]
    assert "secret-words" not in registry.absences["h_"]


async def test_requests_go_to_the_address_that_was_admitted(
    tmp_path: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's resolver does not know the name: whoever looked it up once more would fail, or go elsewhere."""
    server = Server()

    async def resolve(host: str, port: int) -> list[str]:
        assert host == "tools.example.com"
        return ["127.0.0.1"]

    monkeypatch.setattr(addresses, "resolve", resolve)
    async with server.listening() as port:
        registry = await offered(tmp_path, f"http://tools.example.com:{port}/mcp", effects={"*": "read"})
        assert (await registry.get("h_plain").call({}, context))["text"] == "done"
    assert all(f"host: tools.example.com:{port}\r\n" in head.lower() for head in server.heads)


async def test_no_cookie_is_kept(tmp_path: Path, context: ToolContext) -> None:
    server = Server()
    async with server.listening() as port:
        registry = await offered(tmp_path, f"http://127.0.0.1:{port}/mcp")
        for _ in range(2):
            await registry.get("h_plain").call({}, context)
    assert server.called == 2
    assert not [head for head in server.heads if "cookie" in head.lower()]


@pytest.mark.parametrize("events", [False, True])
async def test_a_tool_that_is_nested_too_deep_costs_no_other(tmp_path: Path, *, events: bool) -> None:
    server = Server()
    server.events = events
    async with server.listening() as port:
        registry = await offered(tmp_path, f"http://127.0.0.1:{port}/mcp")
    assert [tool.name for tool in registry] == ["h_plain"]
    assert registry.left_out == {"h_deep": "its schema is nested more than 50 deep"}
