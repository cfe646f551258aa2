"""What tools and models there are, as a worker with this environment would have them."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sennit.starter.client.errors import Exit, Refused
from sennit.starter.dev.worker_command import WORKERS, run_to_end
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.language.text import one_line

COMMAND = (*WORKERS, "catalogue")
PATIENCE = 60.0


class Catalogue(BaseModel):
    """The tools with argument schemas and effects; why others are unavailable now, by the
    beginning of their names, or left out for good, by name; the operator's rules about writes,
    in their order; what programs go without on this machine; the providers of models, and the
    prices by model and role.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    tools: list[dict[str, Any]]
    unavailable: dict[str, str] = {}
    left_out: dict[str, str] = {}
    note: str = ""
    rules: tuple[str, ...] = ()
    models: tuple[str, ...] | None = None
    prices: dict[str, tuple[int, int]] = {}

    def why_off(self, name: str) -> str:
        """Return why there is no tool of that name here; nothing if nothing is known of one."""
        prefixes = [prefix for prefix in self.unavailable if name.startswith(prefix)]
        away = ""
        if prefixes:
            away = self.unavailable[max(prefixes, key=len)]
        return self.left_out.get(name) or away


async def read_catalogue(command: tuple[str, ...] = COMMAND) -> Catalogue:
    """Return the catalogue; SENNIT_TOOLS and SENNIT_TOOLS_PATH add to it.

    Raises Refused with the child's own last line when a tool module or a setting is wrong.
    """
    try:
        return Catalogue.model_validate(await _answer(command, "the tools cannot be listed"))
    except ValidationError:
        raise Refused(
            "the tools cannot be listed: a tool module wrote to standard output"
        ) from None


async def read_type_problems(script: str) -> list[Problem]:
    """Return what the types of a program do not allow, and what is only
    suspected, with the code DOUBT.

    Raises Refused as `read_catalogue` does.
    """
    found = await _answer((*WORKERS, "check", "-"), "the types cannot be checked", script.encode())
    return [Problem(each["code"], ("line", each["line"]), each["message"]) for each in found]


async def try_tool(name: str, options: Sequence[str]) -> dict[str, Any]:
    """Call a tool once in a child process, and return its `result`, its `error`,
    or why it was `refused`.

    What it prints goes to standard error. Raises Refused for wrong settings.
    """
    command = (*WORKERS, "try", *options, "--", name)
    ended = await run_to_end(command, errors=None)
    try:
        found: dict[str, Any] = json.loads(ended.out)
    except ValueError:
        if ended.code == Exit.USAGE:
            raise Refused("the tool was not called") from None
        message = f"it ended its process, with exit code {ended.code}"
        return {"error": {"type": "WorkerLost", "message": message, "stack": ""}}
    return found


async def log_in(server: str) -> None:
    """Have a person log in at a declared MCP server, in a child process that writes the address for
    their browser to standard error. Raises Refused, which has said why there.
    """
    ended = await run_to_end((*WORKERS, "login", server), errors=None)
    if ended.code != 0:
        raise Refused(f"nobody is logged in at {server[:60]}")


async def _answer(command: tuple[str, ...], failure: str, text: bytes = b"") -> Any:
    """Return the JSON with which a child process answers a text."""
    try:
        ended = await run_to_end(command, text=text, seconds=PATIENCE)
    except TimeoutError:
        raise Refused(
            f"the list of tools did not come within {PATIENCE:.0f} s; does a tool module wait?"
        ) from None
    if ended.code != 0:
        raise Refused(f"{failure}: {one_line(ended.last_line)}")
    try:
        return json.loads(ended.out)
    except ValueError:
        raise Refused(f"{failure}: a tool module wrote to standard output") from None
