"""The web UI of another release than the dev server's own, as clusters run it: built once, started beside a server."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import httpx

from sennit.folders import DEPLOY
from sennit.starter.dev.binary import cache_dir
from sennit.starter.dev.server import HOST, free_port

MODULES = DEPLOY / "web-ui"
PACKAGE = "github.com/temporalio/ui-server/v2/cmd/server"
CONFIG = """temporalGrpcAddress: {server}
host: {host}
port: {port}
enableUi: true
defaultNamespace: default
disableNewsFetch: true
cors: {{cookieInsecure: true, allowOrigins: ["http://{host}:{port}"]}}
"""


def built() -> Path:
    """Return the pinned web UI, built if it is not in the cache."""
    digest = sha256(b"".join((MODULES / name).read_bytes() for name in ("go.mod", "go.sum"))).hexdigest()[:16]
    binary = cache_dir() / f"web-ui-{digest}"
    if not binary.exists():
        part = binary.with_suffix(f".{os.getpid()}")
        subprocess.run(["sh", str(DEPLOY / "go-build.sh"), str(MODULES), PACKAGE, str(part)], check=True)
        part.replace(binary)
    return binary


@asynccontextmanager
async def newer_ui(server: str, folder: Path) -> AsyncIterator[str]:
    """Serve the web UI for a server at HOST:PORT and yield its address, until the block ends."""
    port = free_port()
    (folder / "config").mkdir()
    (folder / "config" / "test.yaml").write_text(CONFIG.format(server=server, host=HOST, port=port))
    command = [str(await asyncio.to_thread(built)), "--root", str(folder), "--env", "test", "start"]
    with (folder / "ui.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        address = f"http://{HOST}:{port}"
        async with asyncio.timeout(30), httpx.AsyncClient() as client:
            while not await _answers(client, address):
                assert process.returncode is None, (folder / "ui.log").read_text()[-1000:]
                await asyncio.sleep(0.1)
        yield address
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _answers(client: httpx.AsyncClient, address: str) -> bool:
    try:
        return (await client.get(f"{address}/healthz")).is_success
    except httpx.TransportError:
        return False
