"""What tools and models there are, as a worker with this environment would have them.

Read from a child process: the client imports no tool, so a broken tool module cannot break it.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sennit.starter.client.errors import Exit, Refused
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.language.text import clean, one_line

WORKERS = (sys.executable, "-P", "-m", "sennit.workers")
COMMAND = (*WORKERS, "catalogue")
PATIENCE = 60.0


class Catalogue(BaseModel):
    """The tools with argument schemas and effects; why others are unavailable now, by the beginning of their names, or
    left out for good, by name; the providers of models, and the prices by model and role.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    tools: list[dict[str, Any]]
    unavailable: dict[str, str] = {}
    left_out: dict[str, str] = {}
    models: tuple[str, ...] | None = None
    prices: dict[str, tuple[int, int]] = {}

    def why_off(self, name: str) -> str:
        """Return why there is no tool of that name here; nothing if nothing is known of one."""
        prefixes = [prefix for prefix in self.unavailable if name.startswith(prefix)]
        away = self.unavailable[max(prefixes, key=len)] if prefixes else ""
        return self.left_out.get(name) or away


async def read_catalogue(command: tuple[str, ...] = COMMAND) -> Catalogue:
    """Return the catalogue; SENNIT_TOOLS and SENNIT_TOOLS_PATH add to it.

    Raises Refused with the child's own last line when a tool module or a setting is wrong.
    """
    try:
        return Catalogue.model_validate(await _said(command, "the tools cannot be listed"))
    except ValidationError:
        raise Refused("the tools cannot be listed: a tool module wrote to standard output") from None


async def read_type_problems(script: str) -> list[Problem]:
    """Return what the types of a program do not allow, and what is only suspected, with the code DOUBT.

    Raises Refused as `read_catalogue` does.
    """
    found = await _said((*WORKERS, "check", "-"), "the types cannot be checked", script.encode())
    return [Problem(each["code"], ("line", each["line"]), each["message"]) for each in found]


async def try_tool(name: str, options: Sequence[str]) -> dict[str, Any]:
    """Call a tool once in a child process, and return its `result`, its `error`, or why it was `refused`.

    What it prints goes to standard error. Raises Refused for wrong settings.
    """
    command = (*WORKERS, "try", *options, "--", name)
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    try:
        out, _ = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    try:
        found: dict[str, Any] = json.loads(out)
    except ValueError:
        if child.returncode == Exit.USAGE:
            raise Refused("the tool was not called") from None
        ended = f"it ended its process, with exit code {child.returncode}"
        return {"error": {"type": "WorkerLost", "message": ended, "stack": ""}}
    return found


async def _said(command: tuple[str, ...], failure: str, given: bytes = b"") -> Any:
    """Return the JSON that a child process writes which is `given` this on standard input."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(child.communicate(given), PATIENCE)
    except TimeoutError:
        raise Refused(f"the list of tools did not come within {PATIENCE:.0f} s; does a tool module wait?") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        lines = clean(err.decode(errors="replace")).strip().splitlines() or [f"it ended with code {child.returncode}"]
        raise Refused(f"{failure}: {one_line(lines[-1])}")
    try:
        return json.loads(out)
    except ValueError:
        raise Refused(f"{failure}: a tool module wrote to standard output") from None
