"""`sennit tools login`: a person logs in at a server with the SDK's OAuth, and workers go on with that."""

import asyncio
import json
import os
import re
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sennit.activities.toolbox import Registry, ToolContext
from sennit.activities.toolbox.errors import McpCredentialsRefused

pytest.importorskip("mcp", reason="needs the extra mcp")
import httpx2
from doubles.login_server import Logins, login_server

from sennit.activities.toolbox.mcp.tools import McpServers

PAGE = re.compile(r"^ +(http\S+/authorize\S+)$", re.MULTILINE)


@pytest.fixture
def logins() -> Logins:
    return Logins()


@pytest.fixture
async def url(logins: Logins) -> AsyncIterator[str]:
    async with login_server(logins) as found:
        yield found


@pytest.fixture
def declared(url: str, tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"docs": {"url": url, "start_timeout": "2m", "timeout": "2m"}}}))
    return path


async def sennit(place: Path, declared: Path, *argv: str, browse: bool = False) -> tuple[int, str, str]:
    """Run a command to its end; with `browse` somebody opens the page that it names."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_"))}
    env |= {"SENNIT_STATE": str(place / "state"), "SENNIT_MCP": str(declared), "SENNIT_SANDBOX": "off"}
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "sennit", *argv)
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=pipe, stderr=pipe)
    assert process.stderr is not None
    assert process.stdout is not None
    errors = ""
    async for line in process.stderr:
        errors += line.decode()
        found = PAGE.search(line.decode())
        if found is not None and browse:
            async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
                assert "You are logged in" in (await browser.get(found[1])).text
    out = (await process.stdout.read()).decode()
    return await process.wait(), out, errors


async def offered(declared: Path, place: Path) -> Registry:
    registry = Registry()
    servers = await asyncio.to_thread(McpServers, declared, {}, place / "state" / "logins")
    servers.offer(registry)
    return registry


async def echoed(registry: Registry, context: ToolContext) -> Any:
    return (await registry.get("docs_echo").call({"text": "hello"}, context))["text"]


@pytest.mark.timeout(180)
async def test_a_person_logs_in_once_and_workers_renew_the_token(
    logins: Logins, declared: Path, tmp_path: Path, context: ToolContext
) -> None:
    before = await offered(declared, tmp_path)
    assert "log in with: sennit tools login docs" in before.absences["docs_"]

    code, out, errors = await sennit(tmp_path, declared, "tools", "login", "docs", browse=True)
    assert (code, out) == (0, "logged in at docs\n"), errors
    file = tmp_path / "state" / "logins" / "docs.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not [name for name in (*logins.access, *logins.refresh) if name in out + errors]

    registry = await offered(declared, tmp_path)
    assert await echoed(registry, context) == "hello"
    assert (logins.pages, logins.renewals) == (1, 0)

    # The server forgets the access token: it is renewed with nobody there, and the new login is kept.
    logins.access.clear()
    assert await echoed(registry, context) == "hello"
    assert (logins.pages, logins.renewals) == (1, 1)
    assert json.loads(file.read_text())["tokens"]["access_token"] in logins.access
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    # So it is before a token ends, by a worker that has just been started.
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "ends": 1.0}))
    assert await echoed(await offered(declared, tmp_path), context) == "hello"
    assert (logins.pages, logins.renewals) == (1, 2)

    # When the server renews nothing, the call says what a person has to do, and was not made.
    logins.access.clear()
    logins.refresh.clear()
    with pytest.raises(McpCredentialsRefused, match="log in with: sennit tools login docs") as caught:
        await echoed(registry, context)
    assert not caught.value.retryable


@pytest.mark.timeout(180)
async def test_a_login_is_given_to_no_other_server(
    logins: Logins, declared: Path, tmp_path: Path, context: ToolContext
) -> None:
    code, _, errors = await sennit(tmp_path, declared, "tools", "login", "docs", browse=True)
    assert code == 0, errors
    heads: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(note, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        elsewhere = {"url": f"http://127.0.0.1:{port}/mcp", "start_timeout": "2m"}
        declared.write_text(json.dumps({"mcpServers": {"docs": elsewhere}}))
        registry = await offered(declared, tmp_path)
        assert "its login cannot be renewed; log in with: sennit tools login docs" in registry.absences["docs_"]
    assert not [head for head in heads if b"uthorization" in head]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["login"], "name one server of SENNIT_MCP: sennit tools login SERVER"),
        (["login", "doc"], "'doc' is no server of "),
        (["login", "local"], "local is started by a command; a person logs in at servers with a url"),
        (["login", "vault"], "vault has a headers_command, which would be asked in place of a login"),
    ],
)
async def test_a_login_that_cannot_be_is_refused_by_name(argv: list[str], message: str, tmp_path: Path) -> None:
    servers = {
        "local": {"command": "true"},
        "vault": {"url": "http://127.0.0.1:1/mcp", "headers_command": ["true"]},
    }
    declared = tmp_path / "mcp.json"
    declared.write_text(json.dumps({"mcpServers": servers}))
    code, out, errors = await sennit(tmp_path, declared, "tools", *argv)
    assert (code, out) == (2, "")
    assert message in errors
