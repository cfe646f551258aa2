"""`python -m sennit.starter.dev.download RELEASE TARGET`: download the Temporal CLI to
TARGET as the SDK does.
"""

import asyncio
import os
import sys
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.testing import WorkflowEnvironment

HOST = "temporal.download"
PROBE_LIMIT = 20.0
"""Seconds: a firewall that drops packets must not cost minutes before the build begins."""


def probe(url: str, limit: float = PROBE_LIMIT) -> None:
    """Raise RuntimeError unless something answers at an https URL; HTTPS_PROXY is honoured."""
    try:
        urllib.request.build_opener().open(url, timeout=limit).close()
    except urllib.error.HTTPError as answer:
        answer.close()
    except (OSError, HTTPException, ValueError) as error:
        raise RuntimeError(f"{url} is not reachable: {error}") from None


async def download(release: str, folder: str) -> None:
    """Download the CLI of a release into an empty folder. Raises RuntimeError with the
    reason that the SDK gives.
    """
    server = await WorkflowEnvironment.start_local(
        dev_server_download_version=release, download_dest_dir=folder
    )
    await server.shutdown()


if __name__ == "__main__":
    failure = ""
    with TemporaryDirectory(dir=Path(sys.argv[2]).parent) as place:
        try:
            probe(f"https://{HOST}")
            asyncio.run(download(sys.argv[1], place))
            next(Path(place).iterdir()).replace(sys.argv[2])
        except RuntimeError as error:
            failure = f"{error}\n"
    os.write(2, failure.encode())
    # The SDK's threads may crash an interpreter that finalizes after a failure.
    os._exit(1 if failure else 0)
