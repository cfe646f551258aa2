"""`python` and `shell`: run code of a plan in the sandbox. `diff` and `apply`: what
git says of a workspace.
"""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from sennit.activities.limits import MAX_CHANGED_PATHS, MAX_SANDBOX_CHARACTERS, MAX_SANDBOX_SECONDS
from sennit.activities.sandbox.folders import changed_paths, with_old_times
from sennit.activities.sandbox.output_files import MAX_SANDBOX_FILES
from sennit.activities.sandbox.restrict import WORKSPACE
from sennit.activities.sandbox.runner import PATH, Report, Sandbox
from sennit.activities.toolbox.definition import Tool, ToolContext
from sennit.activities.toolbox.errors import ToolResultError, WorkspaceRefused
from sennit.activities.toolbox.registry import Registry, tool
from sennit.workflows.messages import queues
from sennit.workflows.plan.language.workspaces import Workspace

_RESULT: Final = "result.json"
_MAIN: Final = """
import json, os, sys, traceback
sys.path.insert(0, "")
with open("data.json") as file:
    scope = {"__name__": "__main__", "data": json.load(file)}
with open("main.py") as file:
    text = file.read()
place = os.path.abspath("result.json")
os.chdir(sys.argv[1])
try:
    exec(compile(text, "main.py", "exec"), scope)
except Exception as error:
    error.__traceback__ = error.__traceback__.tb_next
    traceback.print_exception(error)
    sys.exit(1)
if scope.get("result") is not None:
    text = json.dumps(scope["result"])
    with open(place, "w") as file:
        file.write(text)
"""
_IN_FOLDER: Final = 'cd "$1" && exec /bin/sh -c "$2"'
_NO_REPOSITORY: Final = 77
_NO_COMMIT: Final = 78
"""Exit codes that git itself never has: with 128 it ends for many reasons, such
as a patch that is none.
"""
_REPOSITORY: Final = (
    f"cd {WORKSPACE} && git rev-parse --git-dir >/dev/null || exit {_NO_REPOSITORY}"
)
_DIFF: Final = f"""
if ! since=$(git rev-parse -q --verify "$1^{{commit}}")
then
    test "$1" = HEAD || exit {_NO_COMMIT}
    since=$(git hash-object -t tree /dev/null)
fi
form="--binary --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/"
git add -A -N . && git diff $form "$since" > ../diff.patch &&
git diff --name-only --no-renames -z "$since" | tr "\\0" "\\n" > ../diff.paths
"""
_PATCH: Final = "diff.patch"
_PATHS: Final = "diff.paths"


class CodeArguments(BaseModel):
    """What code finds in its private folder, and how long it may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Annotated[JsonValue, Field(description="Also in the file data.json")] = None
    files: Annotated[
        dict[str, str], Field(max_length=MAX_SANDBOX_FILES, description="Texts by relative path")
    ] = {}
    timeout_s: Annotated[int, Field(ge=1, le=MAX_SANDBOX_SECONDS)] = 10
    workspace: Annotated[
        Workspace | None,
        Field(
            description=(
                "A folder that it works in, such as the `workspace` that another call returned"
            )
        ),
    ] = None

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            path = PurePosixPath(name)
            if (
                not name
                or len(name) > 200
                or not name.isprintable()
                or path.is_absolute()
                or ".." in path.parts
            ):
                raise ValueError(
                    f"{name[:80]!r} is not a relative path inside the folder that can be printed"
                )
            is_below_file = any(str(above) in files for above in path.parents)
            if str(path) != name or is_below_file:
                raise ValueError(f"{name[:80]!r} is not a plain path, or is below another file")
        if sum(map(len, files.values())) > MAX_SANDBOX_CHARACTERS:
            raise ValueError(f"more than {MAX_SANDBOX_CHARACTERS:,} characters in all")
        return files


class PythonArguments(CodeArguments):
    """Python code and its data."""

    code: Annotated[
        str, Field(min_length=1, max_length=100_000, description="Sees `data`; may set `result`")
    ]


class ShellArguments(CodeArguments):
    """A shell command and its data."""

    command: Annotated[str, Field(min_length=1, max_length=20_000, description="For /bin/sh")]


class PythonResult(Report):
    """How the code ended, and the value of its variable `result`."""

    result: JsonValue = None


class Diff(BaseModel):
    """What has changed in a workspace, as `git apply` takes it, and the paths of the files that have."""  # noqa: E501 - models read it

    diff: str
    files: list[str]


class Applied(BaseModel):
    """The workspace with the changes of a patch in it, and the paths of the files that it has changed."""  # noqa: E501 - models read it

    workspace: Workspace
    changed: list[str]


@dataclass(frozen=True, slots=True)
class _Commands:
    """Runs commands in the sandbox, in a workspace or without one."""

    sandbox: Sandbox

    async def python(self, args: PythonArguments, context: ToolContext) -> Report:
        files = {"main.py": args.code, "data.json": json.dumps(args.data)}
        command = [self.sandbox.python, "-I", "-B", "-c", _MAIN, _place_of(args)]
        return await self._run(args, context, command, files)

    async def shell(self, args: ShellArguments, context: ToolContext) -> Report:
        files = {"data.json": json.dumps(args.data)}
        command = ["/bin/sh", "-c", _IN_FOLDER, "sh", _place_of(args), args.command]
        return await self._run(args, context, command, files)

    async def git(
        self, workspace: Workspace, context: ToolContext, script: str, *words: str, patch: str = ""
    ) -> Report:
        """Run a script that uses git in a workspace, above which a patch may lie, and return how it
        has ended. Raises WorkspaceRefused if that is no repository.
        """
        files = {_PATCH: patch} if patch else {}
        command = ["/bin/sh", "-c", f"{_REPOSITORY}\n{script}", "sh"]
        report = await self._run_in(
            workspace, context, [*command, *words], files, MAX_SANDBOX_SECONDS
        )
        if report.exit_code == _NO_REPOSITORY:
            raise WorkspaceRefused(
                "the workspace is no git repository; `git init` and a first commit make it one"
            )
        return report

    async def _run(
        self, args: CodeArguments, context: ToolContext, command: list[str], files: dict[str, str]
    ) -> Report:
        place = _place_of(args)
        for name, text in args.files.items():
            files[str(PurePosixPath(place, name))] = text
        if args.workspace is None:
            return await self.sandbox.run(command, files, args.timeout_s)
        return await self._run_in(args.workspace, context, command, files, args.timeout_s)

    async def _run_in(
        self,
        workspace: Workspace,
        context: ToolContext,
        command: list[str],
        files: dict[str, str],
        seconds: int,
    ) -> Report:
        """Run a command in a workspace. It leaves a new one: the other is as it was,
        also if this worker dies.
        """
        before = await context.workspaces.load(workspace)
        report, after = await self.sandbox.run_in(before, command, files, seconds)
        kept = await context.workspaces.keep(with_old_times(before, after), workspace)
        return report.model_copy(
            update={"workspace": kept, "changed": changed_paths(before, after)[:MAX_CHANGED_PATHS]}
        )


def code_tools(sandbox: Sandbox) -> list[Tool]:
    """Return the tools that run in that sandbox: `python` and `shell`, and where git is installed
    `diff` and `apply`. Their hint says how its limits are held.
    """
    registry = Registry()
    commands = _Commands(sandbox)

    @tool(effect="read", timeout="150s", queue=queues.SANDBOX, registry=registry)
    async def python(args: PythonArguments, context: ToolContext) -> PythonResult:
        """Run Python code with the standard library: no network, no asyncio, a private
        folder, 512 MB of memory.

        The code sees the variable `data`; the variable `result` is returned. Code that takes longer
        than `timeout_s` fails the call. Code that raises does not: check `exit_code`.
        """
        report = await commands.python(args, context)
        result = _result(report)
        report.files.pop(_RESULT, None)
        return PythonResult(**report.model_dump(), result=result)

    @tool(effect="read", timeout="150s", queue=queues.SANDBOX, registry=registry)
    async def shell(args: ShellArguments, context: ToolContext) -> Report:
        """Run a shell command: no network, a private folder, 512 MB of memory.

        A command that takes longer than `timeout_s` fails the call. One that ends with an error
        does not: check `exit_code`.
        """
        return await commands.shell(args, context)

    if shutil.which("git", path=PATH):

        @tool(effect="read", timeout="150s", queue=queues.SANDBOX, registry=registry)
        async def diff(
            workspace: Workspace, context: ToolContext, base: Workspace | None = None
        ) -> Diff:
            """Return what has changed in a workspace that is a git repository, new files included:
            since its last commit, or since the last commit of `base`.
            """
            since = "HEAD"
            if base is not None:
                last = await commands.git(base, context, "git rev-parse -q --verify HEAD")
                if last.exit_code:
                    raise WorkspaceRefused(
                        "`base` has no commit yet, so nothing can be compared with its last one"
                    )
                since = last.stdout.strip()
            report = await commands.git(workspace, context, _DIFF, since)
            if report.exit_code == _NO_COMMIT:
                raise WorkspaceRefused(
                    f"the workspace does not have the last commit of `base`, {since}"
                )
            if report.exit_code:
                raise WorkspaceRefused(f"git cannot compare the workspace: {report.stderr}")
            if not report.files.keys() >= {_PATCH, _PATHS}:
                most = f"{MAX_SANDBOX_CHARACTERS:,} characters"
                raise ToolResultError(
                    f"the diff is longer than {most}, or a text in it is not UTF-8"
                )
            paths = report.files[_PATHS].split("\n")[:-1]
            return Diff(diff=report.files[_PATCH], files=paths)

        @tool(effect="read", timeout="150s", queue=queues.SANDBOX, registry=registry)
        async def apply(
            workspace: Workspace,
            patch: Annotated[str, Field(min_length=1, max_length=MAX_SANDBOX_CHARACTERS)],
            context: ToolContext,
        ) -> Applied:
            """Apply a patch, such as the `diff` of another workspace, to one that is a
            git repository, and return the workspace with its changes. A patch that does
            not fit fails the call.
            """
            report = await commands.git(
                workspace, context, f"git apply --whitespace=nowarn ../{_PATCH}", patch=patch
            )
            if report.exit_code or report.workspace is None:
                raise WorkspaceRefused(f"the patch does not fit: {report.stderr}")
            return Applied(workspace=report.workspace, changed=report.changed)

    return [replace(each, hint=str(sandbox)) for each in registry]


def _place_of(args: CodeArguments) -> str:
    """Return where in the private folder code begins."""
    return "." if args.workspace is None else WORKSPACE


def _result(report: Report) -> Any:
    """Return the value that the code left; raises ToolResultError."""
    if _RESULT in report.left_out:
        raise ToolResultError(
            f"`result` is longer than {MAX_SANDBOX_CHARACTERS:,} characters of JSON"
        )
    try:
        return json.loads(report.files.get(_RESULT, "null"))
    except (ValueError, RecursionError):
        raise ToolResultError("`result` is not a JSON value") from None
