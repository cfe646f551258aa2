"""`sennit serve --mcp` as a process of its own, and the official package's client of it."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

SERVE = ("-m", "sennit", "serve")
COMMAND = (*SERVE, "--mcp")
_URL = re.compile(r"(?:MCP|A2A) at (\S+)")


def environment(place: Path, **more: str) -> dict[str, str]:
    """Return what a server needs of this environment: nothing that names a server, a key or a setting."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "SENNIT_"))}
    return {**kept, "SENNIT_STATE": str(place / "state"), "XDG_CONFIG_HOME": str(place), **more}


def stdio(place: Path, *flags: str, **env: str) -> Any:
    """Return a transport that starts the server and speaks with it on stdin and stdout."""
    command = StdioServerParameters(command=sys.executable, args=[*COMMAND, *flags], env=environment(place, **env))
    return stdio_client(command)


@asynccontextmanager
async def http_server(place: Path, *flags: str, protocol: str = "--mcp", **env: str) -> AsyncIterator[str]:
    """Serve over HTTP until the block ends; gives the URL."""
    errors = (place / "serve.err").open("w+")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *SERVE, protocol, *flags, env=environment(place, **env), stderr=errors, stdout=errors
    )
    try:
        async with asyncio.timeout(60):
            while (found := _URL.search((place / "serve.err").read_text())) is None:
                assert process.returncode is None, (place / "serve.err").read_text()
                await asyncio.sleep(0.05)
        yield found[1]
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        errors.close()


@asynccontextmanager
async def http_client(url: str, token: str = "", **options: Any) -> AsyncIterator[Client]:
    """Connect to a server over HTTP, with a bearer token if there is one."""
    headers: Mapping[str, str] = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=90, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client
