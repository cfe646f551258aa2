"""`python -m sennit.workers ...` as a child that ends: no client imports a tool, so a
broken one cannot break it.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from sennit.workflows.plan.language.text import clean

# -P: the current folder has no modules of ours.
WORKERS = (sys.executable, "-P", "-m", "sennit.workers")
LEARN = (*WORKERS, "learn")
PIPE = asyncio.subprocess.PIPE


class Ended(NamedTuple):
    """How a child has ended: its exit code, its standard output, and the last line
    of its standard error.
    """

    code: int
    out: bytes
    last_line: str


async def run_to_end(
    command: Sequence[str],
    *,
    text: bytes = b"",
    out: int | IO[bytes] = PIPE,
    errors: int | IO[bytes] | None = PIPE,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float | None = None,
) -> Ended:
    """Run a command that gets `text` on standard input. It does not outlive the wait for it, nor
    its `seconds`: then TimeoutError is raised.
    """
    child = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=out, stderr=errors, env=env, cwd=folder
    )
    try:
        async with asyncio.timeout(seconds):
            written, problems = await child.communicate(text)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    code = child.returncode or 0
    text_of_errors = clean((problems or b"").decode(errors="replace"))
    last_line = f"it ended with exit status {code}"
    lines = text_of_errors.strip().splitlines()
    if lines:
        last_line = lines[-1]
    return Ended(code, written or b"", last_line)
