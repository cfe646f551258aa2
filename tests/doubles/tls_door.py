"""A door to a Temporal server that opens to certificates of one authority only."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast


def write_certificates(folder: Path) -> None:
    """Write tls.crt and tls.key of `localhost`, signed by a new ca.crt, as cert-manager would."""
    (folder / "extensions").write_text("subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")
    for step in (
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -keyout ca.key -out ca.crt",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout tls.key -out tls.csr",
        "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile extensions -out tls.crt",
    ):
        subprocess.run(["openssl", *step.split()], cwd=folder, check=True, capture_output=True)


@asynccontextmanager
async def tls_door(address: str, certificates: Path, port: int = 0) -> AsyncIterator[str]:
    """Give the address of a door to `address` that takes certificates of the authority in a folder. At the end all that
    went through it is cut off.
    """
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / "ca.crt"))
    tls.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.set_alpn_protocols(["h2"])

    serving: set[asyncio.Task[None]] = set()

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            target.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(cast("asyncio.Task[None]", asyncio.current_task()))
        there, back = await asyncio.open_connection(*address.split(":"))
        try:
            await asyncio.gather(copy(reader, back), copy(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            back.transport.abort()

    door = await asyncio.start_server(serve, "127.0.0.1", port, ssl=tls)
    yield f"localhost:{door.sockets[0].getsockname()[1]}"
    door.close()
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)
    await asyncio.sleep(0.01)  # transports close a moment later
