"""What tools and models there are, as a worker with this environment would have them.

Read from a child process: the client imports no tool, so a broken tool module cannot break it.
"""

import asyncio
import json
import sys
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from starter.client.errors import Refused
from workflows.plan.language.text import clean, one_line

COMMAND = (sys.executable, "-P", "-m", "workers", "catalogue")
PATIENCE = 60.0


class Catalogue(BaseModel):
    """The tools with their argument schemas and effects, and the providers of models."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tools: list[dict[str, Any]]
    models: tuple[str, ...] | None = None


async def read_catalogue(command: tuple[str, ...] = COMMAND) -> Catalogue:
    """Return the catalogue; SENNIT_TOOLS and SENNIT_TOOLS_PATH add to it.

    Raises Refused with the child's own last line when a tool module or a setting is wrong.
    """
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(child.communicate(), PATIENCE)
    except TimeoutError:
        raise Refused(f"the list of tools did not come within {PATIENCE:.0f} s; does a tool module wait?") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        lines = clean(err.decode(errors="replace")).strip().splitlines() or [f"it ended with code {child.returncode}"]
        raise Refused(f"the tools cannot be listed: {one_line(lines[-1])}")
    try:
        return Catalogue.model_validate(json.loads(out))
    except (ValueError, ValidationError):
        raise Refused("the tools cannot be listed: a tool module wrote to standard output") from None
