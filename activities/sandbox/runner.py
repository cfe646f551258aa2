"""Finds the sandbox that works on this machine and runs commands in it."""

import asyncio
import json
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel

from activities.sandbox import SandboxChoice, bubblewrap
from activities.sandbox.restrict import landlock_abi
from activities.toolbox.errors import SandboxFailed, SandboxLimit

LONGEST_SECONDS: Final = 120
LIMITS: Final = {
    "memory": 512 << 20,
    "processes": 64,
    "file": 64 << 20,
    "disk": 128 << 20,
    "output": 100_000,
    "files": 1_000_000,
}
"""In bytes, except `processes`. `memory` is the address space of one process; all together may use twice that."""

_ROOT: Final = str(Path(__file__).parents[2])
_MAIN: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from activities.sandbox.{0} import main; main()"
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_FIRST_USER: Final = 1_000_000
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
"""


class NoSandbox(Exception):
    """No sandbox works on this machine; the message says what was tried and what failed."""


class Report(BaseModel):
    """How a command ended: `files` are new or changed texts, `left_out` names the other files.

    `truncated` when it wrote more than 100,000 bytes to one stream.
    """

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, str]
    left_out: list[str]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox that works here. `python` is an interpreter that code inside can see."""

    method: Literal["bwrap", "landlock"]
    python: str
    folder: Path

    async def run(self, command: Sequence[str], files: dict[str, str], seconds: int) -> Report:
        """Run `command` in a private folder that holds `files`, for `seconds` at most.

        When this returns or raises, also on cancellation, no process of the command is left and its folder is gone.
        If this process is killed, both are gone shortly after. Raises SandboxLimit, SandboxFailed.
        """
        supervisor = await asyncio.create_subprocess_exec(
            *_start("supervisor"),
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
            supervisor.stdin.write(self.job(command, files, seconds))
            await supervisor.stdin.drain()
            reply = await supervisor.stdout.read()
        except ConnectionError:
            pass  # it died: there is no report
        finally:
            supervisor.stdin.close()
            await asyncio.shield(_wait_or_kill(supervisor))
        return _parse_report(reply, seconds)

    def job(self, command: Sequence[str], files: dict[str, str], seconds: int) -> bytes:
        """Return the line that tells a supervisor what to run and how."""
        user = _FIRST_USER + secrets.randbelow(_FIRST_USER) if os.getuid() == 0 else None
        container = self.method == "bwrap"
        write, root = (bubblewrap.WORK, bubblewrap.ROOT) if container else ("{folder}", _ROOT)
        policy = {
            "user": user,
            "limits": {**LIMITS, "seconds": seconds + 1},
            "landlock": not container,
            "read": [*bubblewrap.SYSTEM, "/etc/ld.so.cache", str(Path(self.python).parents[1])],
            "write": write,
        }
        restrict = [self.python if container else sys.executable, *_start("restrict", root)[1:], json.dumps(policy)]
        job = {
            "command": [*(bubblewrap.command(user) if container else ()), *restrict, *command],
            "files": files,
            "user": user,
            "limits": {**LIMITS, "seconds": seconds},
            "folder": str(self.folder),
            "env": {"PATH": _PATH, "HOME": write, "TMPDIR": f"{write}/.tmp", "LANG": "C.UTF-8"},
        }
        return json.dumps(job).encode() + b"\n"


def find_sandbox(choice: SandboxChoice, folder: Path) -> Sandbox:
    """Return a sandbox that has just withstood an escape attempt; `auto` tries bubblewrap first.

    `folder` is where private folders are made. Not to be called in an event loop. Raises NoSandbox.
    """
    if choice == "off":
        raise NoSandbox("it is turned off")
    problems = []
    methods: tuple[Literal["bwrap", "landlock"], ...] = ("bwrap", "landlock")
    for method in methods:
        if choice in ("auto", method):
            sandbox = Sandbox(method, _interpreter(method), folder)
            problem = _missing(sandbox) or _escape_problem(sandbox)
            if not problem:
                return sandbox
            problems.append(f"{method}: {problem}")
    raise NoSandbox("; ".join(problems))


def _missing(sandbox: Sandbox) -> str:
    """Return what this machine lacks for the sandbox, or nothing."""
    if sandbox.method == "bwrap" and not shutil.which("bwrap"):
        return "is not installed"
    if sandbox.method == "landlock" and not (sys.platform == "linux" and landlock_abi()):
        return "not in this kernel"
    if not sandbox.python:
        return "this interpreter is in a folder that others may not read, and there is no /usr/bin/python3"
    return ""


def _escape_problem(sandbox: Sandbox) -> str:
    """Try to break out of the sandbox; return what went wrong, or nothing if it held."""
    try:
        report = asyncio.run(sandbox.run([sandbox.python, "-I", "-S", "-c", _PROBE % os.getpid()], {}, 10))
    except (SandboxFailed, SandboxLimit) as problem:
        return str(problem)
    return "" if report.stdout == "confined\n" else f"{report.stdout}{report.stderr}".strip()[-200:] or "no answer"


def _start(module: str, root: str = _ROOT) -> list[str]:
    """Return the command that runs `main` of a module of this package, without site packages or environment."""
    return [sys.executable, "-I", "-S", "-B", "-c", _MAIN.format(module), root]


def _interpreter(method: str) -> str:
    """Return the path inside of an interpreter, or nothing where the sandbox's user could not read it."""
    own = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    if method == "bwrap":
        return f"{bubblewrap.PYTHON}/bin/{own.name}"
    if os.getuid() != 0 or all(folder.stat().st_mode & 0o005 == 0o005 for folder in own.parents):
        return str(own)
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else ""


async def _wait_or_kill(supervisor: asyncio.subprocess.Process) -> None:
    """Wait until the supervisor has cleaned up; kill it if it does not."""
    try:
        async with asyncio.timeout(15):
            await supervisor.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            supervisor.kill()


def _parse_report(reply: bytes, seconds: int) -> Report:
    try:
        fields: dict[str, Any] = json.loads(reply)
    except ValueError:
        message = "the sandbox ended without a report; the machine may be out of memory"
        raise SandboxFailed(message, retryable=True) from None
    limit = fields.pop("stopped")
    if limit:
        reason = {
            "seconds": f"stopped after {seconds} s",
            "memory": f"stopped for using more than {2 * LIMITS['memory'] >> 20} MB of memory",
            "disk": f"stopped for writing more than {LIMITS['disk'] >> 20} MB or 10,000 files",
            "processes": "stopped for starting too many processes",
            "output": "stopped for writing without end",
        }.get(limit, "cancelled")
        raise SandboxLimit(f"{reason}; it had written: {fields['stderr'] or fields['stdout']}")
    if fields["exit_code"] and fields["stderr"].startswith(("sandbox: ", "bwrap: ")):
        raise SandboxFailed(fields["stderr"])
    return Report(**fields)
