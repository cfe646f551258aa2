"""Tools of real MCP servers: one written for these tests, over both transports, and those that people use."""

import asyncio
import base64
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sennit.activities.toolbox import Registry, Tool, ToolArgumentError, ToolContext, ToolSetupError
from sennit.activities.toolbox.configuration import Secrets
from sennit.activities.toolbox.errors import McpToolFailed, McpUnavailable, UnknownOutcome

pytest.importorskip("mcp", reason="needs the extra mcp")
from sennit.activities.toolbox.mcp.configuration import ServerDeclaration
from sennit.activities.toolbox.mcp.session import Hears, Session
from sennit.activities.toolbox.mcp.tools import McpServers
from sennit.activities.toolbox.mcp.transport import Transport
from sennit.activities.toolbox.server_thread import ServerThread

SERVER = str(Path(__file__).parents[3] / "doubles" / "mcp_server.py")
SECRET = "s3cret-9c1"
EFFECTS = {"note*": "write", "*": "read"}
Offer = Callable[..., dict[str, Tool]]


def offered(folder: Path, env: dict[str, str] | None = None, **servers: Any) -> dict[str, Tool]:
    registry = registry_of(folder, {"mcpServers": servers}, env)
    for reason in registry.absences.values():
        raise Absent(reason)
    return {each.name: each for each in registry}


class Absent(Exception):
    """The tools of a server are unavailable."""


def registry_of(folder: Path, declared: dict[str, Any], env: dict[str, str] | None = None) -> Registry:
    path = folder / "mcp.json"
    path.write_text(json.dumps(declared))
    registry = Registry()
    McpServers(path, env or {}).offer(registry)
    return registry


def stdio(folder: Path, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, str(folder)], "effects": EFFECTS, **more}


def listening(folder: Path, port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, SERVER, str(folder), str(port)])
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None
            time.sleep(0.05)
        else:
            return process


@contextmanager
def served(folder: Path, transport: str) -> Iterator[dict[str, Any]]:
    """Give what declares the server double over that transport."""
    if transport == "stdio":
        yield stdio(folder)
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = listening(folder, port)
    try:
        yield {"url": f"http://127.0.0.1:{port}/mcp", "effects": EFFECTS}
    finally:
        process.kill()
        process.wait()


BOMB = gzip.compress(b" " * 32_000_000, 1)
LONG = b"1000\r\n" + b" " * 4096 + b"\r\n"


@pytest.mark.parametrize(
    ("head", "body", "why"),
    [
        (f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}", BOMB, "it answers compressed, which it was not"),
        ("Transfer-Encoding: chunked", LONG * 5_000, "its answer has over 16,777,216 bytes"),
    ],
)
async def test_an_answer_that_would_fill_the_memory_is_not_read(
    tmp_path: Path, head: str, body: bytes, why: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\n\r\n".encode() + body)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        with pytest.raises(Absent, match=why):
            await asyncio.to_thread(offered, tmp_path, my={"url": url})


@pytest.fixture(scope="module", params=["stdio", "http"])
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Tool]]:
    """The tools of the server double, over each transport."""
    folder = tmp_path_factory.mktemp(request.param)
    secret = {"env": {"TOKEN": "$GITHUB_TOKEN"}} if request.param == "stdio" else {}
    with served(folder, request.param) as declared:
        yield offered(folder, {"GITHUB_TOKEN": SECRET}, my={**declared, **secret})


def test_every_tool_is_offered_with_schema_effect_and_version(tools: dict[str, Tool]) -> None:
    described = {name: each.describe() for name, each in tools.items()}
    assert described["my_add"]["description"].startswith("Add two numbers.")
    assert described["my_add"]["output_schema"]["properties"]["total"]["type"] == "integer"
    assert described["my_add"]["schema"]["required"] == ["a", "b"]
    assert (described["my_add"]["effect"], described["my_note"]["effect"]) == ("read", "write")
    assert {each["version"] for each in described.values()} == {"7"}
    assert "my_get_variable" in described


def test_what_a_server_calls_read_only_is_a_write_until_the_operator_believes_it(tmp_path: Path) -> None:
    described = {name: each.describe() for name, each in offered(tmp_path, my=stdio(tmp_path, effects={})).items()}
    assert {name for name, each in described.items() if each["effect"] == "read"} == {"my_read_resource"}
    assert 'give it "effects": {"get-variable": "read"} in SENNIT_MCP' in described["my_get_variable"]["hint"]
    assert "hint" not in described["my_note"]


async def test_results_are_structured_or_text(tools: dict[str, Tool], context: ToolContext) -> None:
    assert await tools["my_add"].call({"a": 2, "b": 3}, context) == {"total": 5}
    plain = {"links": [], "media": [], "left_out": [], "truncated": False}
    assert await tools["my_echo"].call({"text": "hé"}, context) == {"text": "hé", **plain}
    pictured = await tools["my_picture"].call({}, context)
    (media,) = pictured.pop("media")
    assert base64.b64decode(media["data"]).startswith(b"\x89PNG\r\n")
    assert (media["media"], media["name"]) == ("image/png", "")
    del plain["media"]
    assert pictured == {**plain, "text": "a dot", "left_out": ["image/png, 6 bytes"]}, "what is no image is left out"
    plain["media"] = []
    long = await tools["my_echo"].call({"text": "x" * 1000, "times": 1500}, context)
    assert (len(long["text"]), long["truncated"]) == (1_000_000, True)


async def test_resources_are_listed_and_read(tools: dict[str, Tool], context: ToolContext) -> None:
    read = tools["my_read_resource"]
    assert (read.effect, read.version) == ("read", "7")
    assert "notes://all (All notes.); dots://{colour} (A dot.)" in read.description
    listed = await read.call({}, context)
    assert listed["links"] == ["notes://all", "dots://{colour}"]
    assert listed["text"] == "notes://all (All notes.)\ndots://{colour} (A dot.)"
    await tools["my_note"].call({"text": "one é"}, context)
    found = await read.call({"uri": "notes://all"}, context)
    assert found["text"].endswith("one é\n")
    assert found["links"] == ["notes://all"]
    assert (await read.call({"uri": "dots://red"}, context))["left_out"] == ["image/png, 30 bytes"]
    with pytest.raises(McpToolFailed, match="my_read_resource: "):
        await read.call({"uri": "notes://none"}, context)
    with pytest.raises(ToolArgumentError):
        await read.call({"url": "notes://all"}, context)


async def test_a_wrong_call_and_a_failed_one_differ(tools: dict[str, Tool], context: ToolContext) -> None:
    with pytest.raises(ToolArgumentError, match=r"my_add: a: .*integer") as wrong:
        await tools["my_add"].call({"a": "two", "b": 3}, context)
    assert wrong.value.field == "a"
    with pytest.raises(McpToolFailed, match=r"^my_fail: .*no luck") as failed:
        await tools["my_fail"].call({"reason": "no luck"}, context)
    assert not failed.value.retryable
    assert SECRET not in str(failed.value)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_an_error_of_the_protocol_fails_its_own_call_alone(
    transport: str, tmp_path: Path, context: ToolContext
) -> None:
    with served(tmp_path, transport) as declared:
        tools = offered(tmp_path, my=declared)
        write = asyncio.create_task(tools["my_note_slowly"].call({"text": "kept"}, context))
        await seen(tmp_path / "begun-kept")
        for code in (-32000, -32001, -32600, -32602, -32603, -32700, -1, 7):
            with pytest.raises((McpToolFailed, McpUnavailable), match=r"no such thing|no answer in time"):
                await tools["my_refuse"].call({"code": code}, context)
            assert await tools["my_add"].call({"a": 1, "b": 1}, context) == {"total": 2}
        (tmp_path / "go").touch()
        assert (await write)["text"] == "noted"
    assert len((tmp_path / "starts.txt").read_text().split()) == 1


async def test_a_cancellation_reaches_the_server(tmp_path: Path, context: ToolContext, reports: list[str]) -> None:
    tools = offered(tmp_path, my=stdio(tmp_path))
    call = asyncio.create_task(tools["my_wait"].call({}, context))
    await seen(tmp_path / "begun")
    while not reports:
        await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await seen(tmp_path / "cancelled")
    assert reports == ["1/3 waiting"]


async def test_a_cancelled_start_leaves_no_server(tmp_path: Path) -> None:
    silent = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    started = tmp_path / "started"
    declared = ServerDeclaration(command=sys.executable, args=("-c", silent, str(started)))
    thread = ServerThread("mcp")

    call = asyncio.ensure_future(
        thread.start(Session("silent", declared, Secrets({})).call("x", {}, Hears(print, print)))
    )
    await seen(started)
    call.cancel()
    await gone(int(started.read_text()))


async def test_a_server_that_is_up_as_its_call_is_cancelled_serves_the_next_one() -> None:
    started = []

    class Quick(Session):
        @asynccontextmanager
        async def _connected(self, transport: Transport) -> AsyncIterator[Any]:
            started.append(self.name)
            yield SimpleNamespace(server_info=None)

    session = Quick("quick", ServerDeclaration(command="unused"), Secrets({}))
    call = asyncio.create_task(session.open())
    while not started:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await session.open()
    assert started == ["quick"]


async def test_a_slow_call_ends_in_time(tmp_path: Path, context: ToolContext) -> None:
    slow = stdio(tmp_path, timeout="500ms")
    tools = offered(tmp_path, my={**slow, "effects": {"wait": "write", "*": "read"}}, other=slow)
    with pytest.raises(UnknownOutcome, match="my_wait: no answer in time; whether it took effect is not known"):
        await tools["my_wait"].call({}, context)
    with pytest.raises(McpUnavailable, match="other_wait: no answer in time") as late:
        await tools["other_wait"].call({}, context)
    assert late.value.retryable
    assert tools["my_note"].effect == "read"


async def test_a_server_that_died_is_started_again_after_a_pause(tmp_path: Path, context: ToolContext) -> None:
    tools = offered(tmp_path, my=stdio(tmp_path))
    with pytest.raises(McpUnavailable) as died:
        await tools["my_die"].call({}, context)
    assert died.value.retryable
    pauses = await until_back(tools["my_add"], context)
    with pytest.raises(UnknownOutcome, match="whether it took effect is not known"):
        await tools["my_note_and_die"].call({"text": "once"}, context)
    assert (tmp_path / "notes.txt").read_text() == "once\n"
    pauses += await until_back(tools["my_add"], context)
    assert all(pause is not None and 0 < pause <= 60 for pause in pauses)
    assert len((tmp_path / "starts.txt").read_text().split()) == 3


async def test_an_http_server_that_was_restarted_is_found_again(tmp_path: Path, context: ToolContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = listening(tmp_path, port)
    tools = offered(tmp_path, my={"url": f"http://127.0.0.1:{port}/mcp", "effects": EFFECTS})
    assert await tools["my_add"].call({"a": 1, "b": 1}, context) == {"total": 2}
    server.kill()
    server.wait()
    with pytest.raises(McpUnavailable):
        await tools["my_add"].call({"a": 1, "b": 1}, context)
    server = listening(tmp_path, port)
    await until_back(tools["my_add"], context)
    server.kill()
    server.wait()


async def test_a_server_sees_what_it_is_given_and_nothing_else_and_no_result_holds_a_secret_of_it(
    tmp_path: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    env = {"NAMED": "Bearer $SHORT", "PLAIN": "a$$b", "HIDDEN": "$A_TOKEN", "TOKEN": "written/in+the&file"}
    tools = offered(
        tmp_path,
        {"SHORT": "tok-1", "A_TOKEN": "from&the/worker+1"},
        my=stdio(tmp_path, env=env, tools=["get-*", "add"]),
    )
    assert sorted(tools) == ["my_add", "my_get_variable"]

    async def shown(name: str, **form: str) -> str:
        return str((await tools["my_get_variable"].call({"name": name, **form}, context))["text"])

    assert [await shown(name) for name in ("NAMED", "PLAIN", "OPENAI_API_KEY")] == ["Bearer tok-1", "a$b", ""]
    for name in ("HIDDEN", "TOKEN"):
        for form in ("plain", "base64", "urlsafe", "percent", "html", "json"):
            text = (await shown(name, form=form)).strip('"')
            assert text in ("[redacted]", "Basic bWU6[redacted]"), (name, form)


def test_a_server_ends_with_its_worker(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"my": stdio(tmp_path)}}))
    code = (
        "import pathlib, sys, time\nfrom sennit.activities.toolbox.mcp.tools import McpServers\n"
        "McpServers(pathlib.Path(sys.argv[1]), {})\nprint('up', flush=True)\ntime.sleep(60)"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "mcp.json")], stdout=subprocess.PIPE)
    with worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"up\n"
        server = int((tmp_path / "starts.txt").read_text())
        os.kill(worker.pid, signal.SIGKILL)
    asyncio.run(gone(server))


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ({"my": {}}, "mcpServers.my: a server has either a command or a url"),
        ({"my": {"command": "x", "url": "http://y"}}, "either a command or a url"),
        ({"my": {"type": "sse", "url": "http://y"}}, "mcpServers.my: the transport `sse` is not supported"),
        ({"my server": {"command": "x"}}, r"mcpServers\[\"my server\"\]"),
        ({"my": {"command": "no-such-command"}}, "mcpServers.my.command: there is no command 'no-such-command'"),
        ({"my": {"command": "./x", "cwd": "/"}}, "mcpServers.my.command: there is no command './x'"),
        (
            {"my": {"command": "x", "env": {"T": "$NOT_SET"}}},
            r"the variable NOT_SET is not set on this worker; it is needed at mcpServers.my.env.T",
        ),
        ({"my": {"url": "http://169.254.42.42/mcp"}}, "mcpServers.my.url: 169.254.42.42 is a cloud's metadata service"),
        (
            {"my": {"url": "http://a:b@c/mcp"}},
            "mcpServers.my.url: the URL has a user name or password in it; leave them",
        ),
    ],
)
def test_what_cannot_be_offered_is_named(tmp_path: Path, servers: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolSetupError, match=message):
        offered(tmp_path, **servers)


async def test_the_time_server(tmp_path: Path, context: ToolContext) -> None:
    pytest.importorskip("mcp_server_time")
    tools = offered(tmp_path, time={"command": sys.executable, "args": ["-m", "mcp_server_time"]})
    converted = await tools["time_convert_time"].call(
        {"source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, context
    )
    assert "T21:00:00+09:00" in converted["target"]["datetime"]
    with pytest.raises(McpToolFailed, match="Nowhere"):
        await tools["time_get_current_time"].call({"timezone": "Nowhere"}, context)


async def until_back(add: Tool, context: ToolContext) -> list[float | None]:
    """Call until there is an answer; returns after how many seconds each refusal said to come again."""
    pauses = []
    async with asyncio.timeout(100):
        while True:
            try:
                assert await add.call({"a": 1, "b": 1}, context) == {"total": 2}
            except McpUnavailable as pause:
                pauses.append(pause.retry_after)
                await asyncio.sleep(0.1)
            else:
                return pauses


async def seen(path: Path) -> None:
    async with asyncio.timeout(100):
        while not path.exists():
            await asyncio.sleep(0.02)


async def gone(pid: int) -> None:
    async with asyncio.timeout(100):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.02)
