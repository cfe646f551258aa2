"""`python -m starter.dev.download RELEASE TARGET`: download the Temporal CLI to TARGET as the SDK does."""

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.testing import WorkflowEnvironment


async def download(release: str, folder: str) -> None:
    """Download the CLI of a release into an empty folder. Raises RuntimeError with the reason that the SDK gives."""
    server = await WorkflowEnvironment.start_local(dev_server_download_version=release, download_dest_dir=folder)
    await server.shutdown()


if __name__ == "__main__":
    failure = ""
    with TemporaryDirectory(dir=Path(sys.argv[2]).parent) as place:
        try:
            asyncio.run(download(sys.argv[1], place))
            next(Path(place).iterdir()).replace(sys.argv[2])
        except RuntimeError as error:
            failure = f"{error}\n"
    os.write(2, failure.encode())
    os._exit(1 if failure else 0)  # the SDK's threads may crash an interpreter that finalizes after a failure
