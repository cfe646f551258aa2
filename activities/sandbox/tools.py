"""`python` and `shell`: run code of a plan in the sandbox."""

import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from sennit.activities.limits import MAX_SANDBOX_CHARACTERS, MAX_SANDBOX_SECONDS
from sennit.activities.sandbox.output_files import MAX_SANDBOX_FILES
from sennit.activities.sandbox.runner import Report, Sandbox
from sennit.activities.toolbox.definition import Tool
from sennit.activities.toolbox.errors import ToolResultError
from sennit.activities.toolbox.registry import Registry, tool
from sennit.workflows.messages import queues

_RESULT: Final = "result.json"
_MAIN: Final = """
import json, sys, traceback
sys.path.insert(0, "")
with open("data.json") as file:
    scope = {"__name__": "__main__", "data": json.load(file)}
with open("main.py") as file:
    text = file.read()
try:
    exec(compile(text, "main.py", "exec"), scope)
except Exception as error:
    error.__traceback__ = error.__traceback__.tb_next
    traceback.print_exception(error)
    sys.exit(1)
if scope.get("result") is not None:
    text = json.dumps(scope["result"])
    with open("result.json", "w") as file:
        file.write(text)
"""


class CodeArguments(BaseModel):
    """What code finds in its private folder, and how long it may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Annotated[JsonValue, Field(description="Also in the file data.json")] = None
    files: Annotated[dict[str, str], Field(max_length=MAX_SANDBOX_FILES, description="Texts by relative path")] = {}
    timeout_s: Annotated[int, Field(ge=1, le=MAX_SANDBOX_SECONDS)] = 10

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            path = PurePosixPath(name)
            if not name or len(name) > 200 or not name.isprintable() or path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{name[:80]!r} is not a relative path inside the folder that can be printed")
            if str(path) != name or any(str(above) in files for above in path.parents):
                raise ValueError(f"{name[:80]!r} is not a plain path, or is below another file")
        if sum(map(len, files.values())) > MAX_SANDBOX_CHARACTERS:
            raise ValueError(f"more than {MAX_SANDBOX_CHARACTERS:,} characters in all")
        return files


class PythonArguments(CodeArguments):
    """Python code and its data."""

    code: Annotated[str, Field(min_length=1, max_length=100_000, description="Sees `data`; may set `result`")]


class ShellArguments(CodeArguments):
    """A shell command and its data."""

    command: Annotated[str, Field(min_length=1, max_length=20_000, description="For /bin/sh")]


class PythonResult(Report):
    """How the code ended, and the value of its variable `result`."""

    result: JsonValue = None


def code_tools(sandbox: Sandbox) -> list[Tool]:
    """Return `python` and `shell`, which run in that sandbox; their hint says how its limits are held."""
    registry = Registry()

    @tool(effect="read", timeout="150s", queue=queues.SANDBOX, registry=registry)
    async def python(args: PythonArguments) -> PythonResult:
        """Run Python code with the standard library: no network, no asyncio, a private folder, 512 MB of memory.

        The code sees the variable `data`; the variable `result` is returned. Code that takes longer than `timeout_s`
        fails the call. Code that raises does not: check `exit_code`.
        """
        files = {**args.files, "main.py": args.code, "data.json": json.dumps(args.data)}
        report = await sandbox.run([sandbox.python, "-I", "-B", "-c", _MAIN], files, args.timeout_s)
        result = _result(report)
        report.files.pop(_RESULT, None)
        return PythonResult(**report.model_dump(), result=result)

    @tool(effect="read", timeout="150s", queue=queues.SANDBOX, registry=registry)
    async def shell(args: ShellArguments) -> Report:
        """Run a shell command: no network, a private folder, 512 MB of memory.

        A command that takes longer than `timeout_s` fails the call. One that ends with an error does not: check
        `exit_code`.
        """
        files = {**args.files, "data.json": json.dumps(args.data)}
        return await sandbox.run(["/bin/sh", "-c", args.command], files, args.timeout_s)

    return [replace(each, hint=str(sandbox)) for each in registry]


def _result(report: Report) -> Any:
    """Return the value that the code left; raises ToolResultError."""
    if _RESULT in report.left_out:
        raise ToolResultError(f"`result` is longer than {MAX_SANDBOX_CHARACTERS:,} characters of JSON")
    try:
        return json.loads(report.files.get(_RESULT, "null"))
    except (ValueError, RecursionError):
        raise ToolResultError("`result` is not a JSON value") from None
