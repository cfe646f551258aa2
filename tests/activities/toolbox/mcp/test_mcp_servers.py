"""Servers that hang, die and come back, that offer odd tools, and that are declared for other clients."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.toolbox import Registry, ToolContext
from sennit.activities.toolbox.errors import McpUnavailable, UnknownTool

pytest.importorskip("mcp", reason="needs the extra mcp")
from sennit.activities.toolbox.mcp.tools import McpServers

SERVER = str(Path(__file__).parents[3] / "doubles" / "bare_mcp_server.py")
PLAIN = {"name": "plain", "inputSchema": {"type": "object"}}


def bare(*tools: Any, folder: Path | None = None, **more: Any) -> dict[str, Any]:
    args = [SERVER, json.dumps(tools), *([str(folder)] if folder else [])]
    return {"command": sys.executable, "args": args, **more}


def registry_of(folder: Path, declared: dict[str, Any]) -> Registry:
    path = folder / "mcp.json"
    path.write_text(json.dumps(declared))
    registry = Registry()
    McpServers(path, {}).offer(registry)
    return registry


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pids(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def test_a_server_that_hangs_keeps_nobody_waiting_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    silent = bare(PLAIN, folder=tmp_path, start_timeout="3s")
    registry = registry_of(tmp_path, {"mcpServers": {"silent": silent, "good": bare(PLAIN)}})
    assert [each.name for each in registry] == ["good_plain"]
    reason = "MCP server silent did not answer within 3 s"
    assert registry.absences == {"silent_": reason}
    with pytest.raises(McpUnavailable, match=f"silent_plain: unavailable: {reason}") as problem:
        registry.get("silent_plain")
    assert problem.value.retryable
    with pytest.raises(UnknownTool):
        registry.get("good_other")
    until(lambda: len(pids(tmp_path)) >= 4)
    (tmp_path / "go").touch()
    until(lambda: "silent_plain" in registry)
    assert registry.absences == {}
    until(lambda: sum(map(running, pids(tmp_path))) == 2)
    assert caplog.text.count(f"unavailable: {reason}") == 1


@pytest.mark.parametrize("answers", [False, True])
def test_nothing_that_a_server_started_outlives_a_killed_worker(tmp_path: Path, *, answers: bool) -> None:
    declared = bare(PLAIN, folder=tmp_path, start_timeout="2s")
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"my": declared}}))
    if answers:
        (tmp_path / "go").touch()
    code = (
        "import pathlib, sys, time\nfrom sennit.activities.toolbox.mcp.tools import McpServers\n"
        "McpServers(pathlib.Path(sys.argv[1]), {})\ntime.sleep(1000)"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "mcp.json")])
    with worker:
        until(lambda: len(pids(tmp_path)) == 2)
        assert all(map(running, pids(tmp_path)))
        os.kill(worker.pid, signal.SIGKILL)
    until(lambda: not any(map(running, pids(tmp_path))))


def running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    "odd",
    [
        {"name": "odd"},
        {"name": "odd", "inputSchema": "text"},
        {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": 3},
        {"name": "odd", "inputSchema": {"type": "object"}, "annotations": "none"},
        {"name": "odd" * 30, "inputSchema": {"type": "object"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "odd", "inputSchema": json.loads('{"type": "object", "properties": {"a": ' * 35 + "{}" + "}}" * 35)},
        {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": False}, "required": ["a"]}},
        {"name": "odd", "inputSchema": {"type": "object", "required": ["a"], "additionalProperties": False}},
        {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}},
        "odd",
    ],
)
def test_an_odd_tool_is_left_out_alone(tmp_path: Path, odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    registry = registry_of(tmp_path, {"mcpServers": {"my": bare(PLAIN, odd, {**PLAIN, "name": "other"})}})
    assert sorted(each.name for each in registry) == ["my_other", "my_plain"]
    assert registry.absences == {}
    (line,) = [each for each in caplog.messages if "is left out" in each]
    assert line.startswith("my: the tool ")
    ((name, reason),) = registry.left_out.items()
    assert name.startswith("my_")
    assert line.endswith(reason)


def test_of_tools_with_one_name_none_is_offered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    twins = [{**PLAIN, "name": name} for name in ("get-x", "get_x", "get_y")]
    registry = registry_of(tmp_path, {"mcpServers": {"my": bare(*twins)}})
    assert [each.name for each in registry] == ["my_get_y"]
    assert caplog.text.count("2 tools would be called my_get_x") == 2


def test_what_is_meant_for_other_clients_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    servers = {
        "one": bare(PLAIN, type="stdio", autoApprove=["plain"]),
        "off": {"type": "sse", "url": "https://old.example.com/sse", "disabled": True, "env": {"A": "$NOT_SET"}},
        "also_off": {"disabled": True},
    }
    registry = registry_of(tmp_path, {"servers": servers, "inputs": []})
    assert [each.name for each in registry] == ["one_plain"]
    ignored = [each.rpartition("mcp.json: ")[2] for each in caplog.messages]
    assert ignored == [
        "inputs means nothing here and is ignored",
        "mcpServers.one.autoApprove means nothing here and is ignored",
    ]


class Sessions:
    """An HTTP server with sessions, as the official packages have made them until 2025: each call has its answer after
    `go`. Lost sessions are refused by `lost`, wrong calls by 400.
    """

    def __init__(self, lost: int) -> None:
        self.lost = lost
        self.known: list[str] = []
        self.made: list[str] = []
        self.go = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Give the URL; at the end nobody is served any more."""
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
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
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
        message = json.loads(await reader.readexactly(int(fields.get("content-length", 0))) or "{}")
        status, answer = await self._answer(message, fields.get("mcp-session-id"))
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}) if answer else ""
        session = f"Mcp-Session-Id: {self.known[-1]}\r\n" if self.known else ""
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n{session}"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()

    async def _answer(self, message: dict[str, Any], session: str | None) -> tuple[int, dict[str, Any]]:
        method = message.get("method", "")
        wrong = {"error": {"code": -32000, "message": "Bad Request"}}
        if method == "initialize":
            self.known.append(f"s{len(self.known)}")
            about = {"name": "sessions", "version": "1"}
            return 200, {"result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": about}}
        if session is None:
            return 400, wrong
        if session != self.known[-1] or self.known[-1] == "lost":
            return self.lost, wrong
        if method == "tools/list":
            tools = [{**PLAIN, "name": "note"}, {**PLAIN, "name": "slow"}]
            return 200, {"result": {"tools": tools}}
        if method != "tools/call":
            return 404 if not method else 202, {}
        if message["params"].get("arguments", {}).get("wrong"):
            return 400, wrong
        self.made.append(message["params"]["name"])
        if message["params"]["name"] == "slow":
            await self.go.wait()
        return 200, {"result": {"content": [{"type": "text", "text": "noted"}]}}


@pytest.mark.parametrize("lost", [404, 400])
async def test_a_session_that_the_server_has_lost_is_opened_again(
    lost: int, tmp_path: Path, context: ToolContext
) -> None:
    server = Sessions(lost)
    async with server.listening() as url:
        declared = {"mcpServers": {"my": {"url": url, "effects": {"*": "read"}}}}
        registry = await asyncio.to_thread(registry_of, tmp_path, declared)
        slow = asyncio.create_task(registry.get("my_slow").call({}, context))
        while not server.made:
            await asyncio.sleep(0.02)
        with pytest.raises(McpUnavailable):
            await registry.get("my_note").call({"wrong": True}, context)
        assert server.known == ["s0"]
        server.known.append("lost")
        with pytest.raises(McpUnavailable):
            await registry.get("my_note").call({}, context)
        async with asyncio.timeout(60):
            while "note" not in server.made:
                try:
                    await registry.get("my_note").call({}, context)
                except McpUnavailable:
                    await asyncio.sleep(0.1)
        assert server.known == ["s0", "lost", "s2"]
        server.go.set()
        assert (await slow)["text"] == "noted"


async def test_a_write_whose_connection_is_refused_was_not_made(tmp_path: Path, context: ToolContext) -> None:
    server = Sessions(404)
    async with server.listening() as url:
        registry = await asyncio.to_thread(registry_of, tmp_path, {"mcpServers": {"my": {"url": url}}})
    assert registry.get("my_note").effect == "write"
    with pytest.raises(McpUnavailable, match="did not take the call: All connection attempts failed"):
        await registry.get("my_note").call({}, context)
    assert server.made == []
