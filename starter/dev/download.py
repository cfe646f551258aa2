"""`python -m starter.dev.download RELEASE TARGET`: the Temporal CLI as the SDK downloads it, if its host answers."""

import asyncio
import os
import sys
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.testing import WorkflowEnvironment

from starter.dev.messages import to_stderr

HOST = "temporal.download"
PROBE_LIMIT = 20.0  # seconds


def reach(url: str, limit: float = PROBE_LIMIT) -> str:
    """Return why nothing answers at an https URL within `limit` seconds, or nothing; HTTPS_PROXY is honoured."""
    try:
        urllib.request.build_opener().open(url, timeout=limit).close()
    except urllib.error.HTTPError as answer:
        answer.close()
    except (OSError, HTTPException, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


async def download(release: str, folder: str) -> None:
    """Download the CLI of a release into an empty folder. Raises RuntimeError with what the SDK says."""
    server = await WorkflowEnvironment.start_local(dev_server_download_version=release, download_dest_dir=folder)
    await server.shutdown()


def main(release: str, target: str) -> int:
    """Put the CLI at `target`; return the exit status. What stood in the way is on stderr."""
    try:
        if problem := reach(f"https://{HOST}"):
            raise RuntimeError(f"{HOST} is not reachable: {problem}")
        with TemporaryDirectory(dir=Path(target).parent) as folder:
            asyncio.run(download(release, folder))
            next(Path(folder).iterdir()).replace(target)
    except RuntimeError as failure:
        to_stderr(str(failure))
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))  # the SDK's threads may crash an interpreter that finalizes after a failure
