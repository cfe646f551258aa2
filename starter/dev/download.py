"""The Temporal CLI as the SDK downloads it. `python -m starter.dev.download RELEASE FOLDER` is the child doing so."""

import asyncio
import http.client
import os
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

from starter.dev.watched import Progress, last_lines, run_watched, to_stderr

HOST = "temporal.download"
PROBE_LIMIT = 20.0  # seconds for name, connection and TLS together
DOWNLOAD_LIMIT = 900.0  # seconds


class CannotDownload(Exception):
    """The download did not work; the text says why."""


def reach(host: str, progress: Progress, port: int = 443, limit: float = PROBE_LIMIT) -> str | None:
    """Why a TLS connection to `host` cannot be made within `limit` seconds, or None; HTTPS_PROXY is honoured.

    The probe runs in a thread of its own because a name look-up that hangs cannot be interrupted.
    """
    found: list[str] = []

    def probe() -> None:
        try:
            connection = _connection(host, port, limit / 2)
            connection.connect()
            connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            found.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    started = time.monotonic()
    waiting = progress.waiter(f"waiting for {host} ...")
    while thread.is_alive() and (elapsed := time.monotonic() - started) < limit:
        waiting(elapsed)
        thread.join(0.2)
    if thread.is_alive():
        return f"no answer within {limit:.0f} s"
    return found[0] if found else None


def _connection(host: str, port: int, timeout: float) -> http.client.HTTPSConnection:
    proxy = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get("https")
    context = ssl.create_default_context()
    if proxy is None:
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    address = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    through = http.client.HTTPSConnection(address.hostname or "", address.port or 80, timeout=timeout, context=context)
    through.set_tunnel(host, port)
    return through


def download_server(release: str, target: Path, progress: Progress) -> None:
    """Put the CLI of `release` at `target` by rename; CannotDownload says what stood in the way.

    Only when the host answers: without network this costs nothing but the probe.
    """
    problem = reach(HOST, progress)
    if problem:
        raise CannotDownload(f"{HOST} is not reachable: {problem}")
    label = f"downloading the Temporal dev server {release} ..."
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="download-") as name:
        folder = Path(name)
        files = folder / "files"
        files.mkdir()
        log = folder / "download.log"
        command = [sys.executable, "-P", "-m", "starter.dev.download", release, str(files)]
        code = run_watched(
            command, log=log, label=label, progress=progress, cwd=folder, env=os.environ, limit=DOWNLOAD_LIMIT
        )
        if code is None:
            raise CannotDownload(f"not done after {DOWNLOAD_LIMIT / 60:.0f} minutes")
        found = list(files.iterdir())
        if code or len(found) != 1:
            raise CannotDownload(last_lines(log, 1) or f"exit status {code}, {len(found)} files")
        found[0].replace(target)


async def _fetch(release: str, folder: str) -> None:
    environment = await WorkflowEnvironment.start_local(dev_server_download_version=release, download_dest_dir=folder)
    await environment.shutdown()


def _main(release: str, folder: str) -> int:
    try:
        asyncio.run(_fetch(release, folder))
    except RuntimeError as failure:
        to_stderr(str(failure))
        return 1
    return 0


if __name__ == "__main__":
    os._exit(_main(*sys.argv[1:]))  # the SDK's threads may crash an interpreter that finalizes after a failure
