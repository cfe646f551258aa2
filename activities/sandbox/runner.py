"""Finds the sandbox that works on this machine and runs commands in it."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from sennit.activities.sandbox import SandboxChoice, bubblewrap, folders, landlock, memory_group
from sennit.activities.sandbox.folders import Folder
from sennit.activities.sandbox.output_files import DEEPEST, MAX_FOLDER_ENTRIES
from sennit.activities.sandbox.reaper import ROOT, starter_of
from sennit.activities.sandbox.restrict import any_user
from sennit.activities.toolbox.errors import SandboxFailed, SandboxLimit, WorkspaceRefused
from sennit.workflows.plan.language.workspaces import Workspace

LIMITS: Final = {
    "memory": 512 << 20,
    "memory_in_all": 1 << 30,
    "processes": 64,
    "open_files": 256,
    "file": 64 << 20,
    "disk": 128 << 20,
    "entries": MAX_FOLDER_ENTRIES,
    "output": 100_000,
    "files": 1_000_000,
}
"""Bytes and counts. `memory` is the address space of one process, `open_files`
are of one process, too.
"""

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_PROBE: Final = """
import os, socket
def denied(action):
    try: action()
    except OSError: return True
    return False
outside = [lambda: open("/etc/passwd"), lambda: open("/proc/%d/environ"), lambda: open("/usr/probe", "w"),
           lambda: socket.create_connection(("127.0.0.1", 9), 1)]
open("inside", "w").write("x")
print("confined" if all(map(denied, outside)) and os.listdir(".") else "leaks")
"""  # noqa: E501


Bound = Literal["enforced", "approximate", "absent"]


class NoSandbox(Exception):
    """No sandbox works on this machine; the message says what was tried and what failed."""


class Report(BaseModel):
    """How a command ended: `files` are new or changed texts, `left_out` names the other files.

    `truncated` when it wrote more than 100,000 bytes to one stream. Of a call with a workspace, `workspace` is the one
    that it has left behind, and `changed` has the paths that are new, changed or gone in it, the first 100.
    """  # noqa: E501 - models read it

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, str]
    left_out: list[str]
    truncated: bool
    workspace: Annotated[Workspace | None, Field(exclude_if=lambda value: value is None)] = None
    changed: Annotated[list[str], Field(exclude_if=lambda value: not value)] = []


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox that works here.

    `python` is an interpreter that code inside can see. With `namespaces`, code sees only its own
    processes, and its folder is a file system of limited size. `groups` is the cgroup in which each
    call gets its own, with its own limit of memory. `measured` says whether the memory of processes
    can be seen from outside.
    """

    method: Literal["bwrap", "landlock"]
    python: str
    folder: Path
    namespaces: bool
    groups: Path | None
    measured: bool = True

    @property
    def bounds(self) -> dict[str, Bound]:
        """How the limits of memory and disk are held: by the kernel, by looking
        every 0.1 s, or not at all.
        """
        memory: Bound = "absent"
        disk: Bound = "approximate"
        if self.groups:
            memory = "enforced"
        elif self.measured:
            memory = "approximate"
        if self.namespaces:
            disk = "enforced"
        return {"memory": memory, "disk": disk}

    def __str__(self) -> str:
        bounds = [f"{name} {bound}" for name, bound in self.bounds.items()]
        return f"runs in {self.method}; bounds: {', '.join(bounds)}"

    async def run(self, command: Sequence[str], files: dict[str, str], seconds: int) -> Report:
        """Run `command` in a private folder that holds `files`, for `seconds` at most.

        When this returns or raises, also on cancellation, no process of the command is left and
        its folder is gone. If this process is killed, both are gone shortly after. Raises
        SandboxLimit, SandboxFailed.
        """
        return _report(await self.supervise(command, files, seconds), seconds)

    async def run_in(
        self, workspace: Folder, command: Sequence[str], files: dict[str, str], seconds: int
    ) -> tuple[Report, Folder]:
        """Run `command` as `run` does, beside a folder `workspace` in its private folder; return
        also what is in that folder then, where files whose digests were known have no body.

        Raises SandboxLimit, SandboxFailed, and WorkspaceRefused if the command has left in
        it what cannot be kept.
        """
        fields = await self.supervise(command, files, seconds, workspace)
        report = _report(fields, seconds)
        if fields["refused"]:
            raise WorkspaceRefused(f"the folder cannot be kept as a workspace: {fields['refused']}")
        return report, await asyncio.to_thread(folders.from_json, fields["workspace"])

    async def supervise(
        self,
        command: Sequence[str],
        files: dict[str, str],
        seconds: int,
        workspace: Folder | None = None,
    ) -> dict[str, Any]:
        """Run `command` likewise and return the supervisor's report. Raises
        SandboxFailed if there is none.
        """
        try:
            group = (
                memory_group.create(self.groups, LIMITS["memory_in_all"]) if self.groups else None
            )
        except OSError as error:
            raise SandboxFailed(f"no memory group can be made: {error}", retryable=True) from None
        bodies: list[bytes] = []
        if workspace is not None:
            bodies = [file.body or b"" for file in workspace.files]
        try:
            # A workspace may have many files, and other calls go on meanwhile.
            job = await asyncio.to_thread(self.job, command, files, seconds, group, workspace)
            reply = await _reply(job, bodies)
        finally:
            if group:
                memory_group.remove(group)
        try:
            report: dict[str, Any] = await asyncio.to_thread(json.loads, reply)
        except ValueError:
            message = "the sandbox ended without a report; the machine may be out of memory"
            raise SandboxFailed(message, retryable=True) from None
        return report

    def job(
        self,
        command: Sequence[str],
        files: dict[str, str],
        seconds: int,
        group: Path | None,
        workspace: Folder | None = None,
    ) -> bytes:
        """Return the line that tells a supervisor what to run and how. The bodies of
        a workspace follow it.
        """
        user = any_user() if os.getuid() == 0 else None
        # bubblewrap makes a root and namespaces of its own. Elsewhere Landlock keeps the command in
        # a folder that the supervisor makes.
        in_container = self.method == "bwrap"
        write, root, python, version = "{folder}", ROOT, sys.executable, landlock.version()
        folder: str | None = str(self.folder)
        opening: list[str] = []
        if in_container:
            write, root, python, version = bubblewrap.WORK, bubblewrap.ROOT, self.python, 0
            folder = None
            opening = [*bubblewrap.command(user, LIMITS["disk"])]
        policy = {
            "user": user,
            "limits": {**LIMITS, "seconds": seconds + 1},
            "landlock": version,
            "seccomp": True,
            "namespaces": self.namespaces and not in_container,
            "read": [*bubblewrap.SYSTEM, "/etc/ld.so.cache", str(Path(self.python).parents[1])],
            "write": write,
        }
        given = None
        if workspace is not None:
            given = folders.as_json(workspace.without_bodies)
        restrict = [python, *starter_of("restrict", root)[1:], json.dumps(policy)]
        job = {
            "command": [*opening, *restrict, *command],
            "files": files,
            "workspace": given,
            "user": user,
            "limits": {**LIMITS, "seconds": seconds},
            "folder": folder,
            "namespaces": self.namespaces,
            "group": group and str(group),
            "env": {
                "PATH": PATH,
                "HOME": write,
                "TMPDIR": f"{write}/.tmp",
                "LANG": "C.UTF-8",
                "GIT_CONFIG_NOSYSTEM": "1",  # git ends, or warns, where it may not look into /etc
                "GIT_ATTR_NOSYSTEM": "1",
            },
        }
        return json.dumps(job).encode() + b"\n"


def find_sandbox(choice: SandboxChoice, folder: Path) -> Sandbox:
    """Return a sandbox that has just withstood an escape attempt; `auto` tries bubblewrap first.

    `strict` is `auto`, but refuses a sandbox that cannot bound memory. `folder` is where private
    folders are made. Not to be called in an event loop. Raises NoSandbox.
    """
    if choice == "off":
        raise NoSandbox("it is turned off")
    problems = []
    methods: tuple[tuple[Literal["bwrap", "landlock"], bool], ...] = (
        ("bwrap", True),
        ("landlock", False),
    )
    if os.getuid() == 0:  # others may not make namespaces by themselves
        methods = (("bwrap", True), ("landlock", True), ("landlock", False))
    for method, namespaces in methods:
        if choice in ("auto", "strict", method):
            sandbox = Sandbox(
                method, _interpreter(method), folder, namespaces, memory_group.find_parent()
            )
            problem = _missing(sandbox)
            if not problem:
                problem, measured = _escape_problem(sandbox)
                sandbox = replace(sandbox, measured=measured)
            if choice == "strict" and not problem and "absent" in sandbox.bounds.values():
                problem = str(sandbox)
            if not problem:
                return sandbox
            problems.append(f"{method}: {problem}")
    raise NoSandbox("; ".join(dict.fromkeys(problems)))


def _missing(sandbox: Sandbox) -> str:
    """Return what this machine lacks for the sandbox, or nothing."""
    if sandbox.method == "bwrap" and not shutil.which("bwrap"):
        return "is not installed"
    if sandbox.method == "landlock" and not (sys.platform == "linux" and landlock.version()):
        return "not in this kernel"
    if not sandbox.python:
        return (
            "this interpreter is in a folder that others may not read, and there is no "
            "/usr/bin/python3"
        )
    return ""


def _escape_problem(sandbox: Sandbox) -> tuple[str, bool]:
    """Try to break out of the sandbox; return what went wrong, or nothing if it held, and
    whether memory was seen.
    """
    try:
        fields = asyncio.run(
            sandbox.supervise([sandbox.python, "-I", "-S", "-c", _PROBE % os.getpid()], {}, 10)
        )
        report = _report(fields, 10)
    except (SandboxFailed, SandboxLimit) as failure:
        return str(failure), False
    problem = ""
    if report.stdout != "confined\n":
        problem = f"{report.stdout}{report.stderr}".strip()[-200:] or "no answer"
    return problem, fields["measured"]


def _interpreter(method: str) -> str:
    """Return the path inside of an interpreter, or nothing where the sandbox's
    user could not read it.
    """
    python = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    if method == "bwrap":
        return f"{bubblewrap.PYTHON}/bin/{python.name}"
    if os.getuid() != 0:
        return str(python)
    is_open_to_all = all(folder.stat().st_mode & 0o005 == 0o005 for folder in python.parents)
    if is_open_to_all:
        return str(python)
    if not Path("/usr/bin/python3").exists():
        return ""
    return "/usr/bin/python3"


async def _reply(job: bytes, bodies: Iterable[bytes]) -> bytes:
    """Have a supervisor do the job and return what it answers, nothing if it died."""
    supervisor = await asyncio.create_subprocess_exec(
        *starter_of("supervisor"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    reply = b""
    try:
        for part in (job, *bodies):
            supervisor.stdin.write(part)
            await supervisor.stdin.drain()
        reply = await supervisor.stdout.read()
    except ConnectionError:
        pass
    finally:
        supervisor.stdin.close()
        await asyncio.shield(_wait_or_kill(supervisor))
    return reply


async def _wait_or_kill(supervisor: asyncio.subprocess.Process) -> None:
    """Wait until the supervisor has cleaned up; kill it if it does not."""
    try:
        async with asyncio.timeout(15):
            await supervisor.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            supervisor.kill()


def _report(fields: dict[str, Any], seconds: int) -> Report:
    """Return the report of a command that ended by itself; raises SandboxLimit or
    SandboxFailed for another one.
    """
    stopped = fields["stopped"]
    if stopped == "failed":
        raise SandboxFailed(
            fields["stderr"] or "the command could not be started", retryable=not fields["stderr"]
        )
    if stopped == "unkillable":
        raise SandboxFailed("a process of the command could not be ended")
    if stopped:
        disk = (
            f"{LIMITS['disk'] >> 20} MB, {MAX_FOLDER_ENTRIES:,} files or {DEEPEST} nested folders"
        )
        reason = {
            "seconds": f"stopped after {seconds} s",
            "memory": f"stopped for using more than {LIMITS['memory_in_all'] >> 20} MB of memory",
            "disk": f"stopped for writing more than {disk}",
            "processes": "stopped for starting too many processes",
            "output": "stopped for writing without end",
        }.get(stopped, "cancelled")
        raise SandboxLimit(f"{reason}; it had written: {fields['stderr'] or fields['stdout']}")
    return Report(
        exit_code=fields["exit_code"],
        stdout=fields["stdout"],
        stderr=fields["stderr"],
        files=fields["files"],
        left_out=fields["left_out"],
        truncated=fields["truncated"],
    )
