"""Finds out which sandbox works on this machine, and runs commands in it."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from activities.sandbox import bubblewrap
from activities.sandbox.restrict import landlock_abi
from activities.toolbox.errors import SandboxFailed, SandboxLimit

Choice = Literal["auto", "bwrap", "landlock", "off"]

LONGEST_SECONDS: Final = 120
LIMITS: Final = {
    "memory": 512 << 20,
    "processes": 64,
    "file": 64 << 20,
    "disk": 128 << 20,
    "output": 100_000,
    "files": 1_000_000,
}
"""Bytes, but for `processes`. `memory` is a process's address space; all together may hold twice that."""

_ROOT: Final = str(Path(__file__).parents[2])
_START: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from activities.sandbox.{0} import main; main()"
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_FIRST_USER: Final = 1_000_000
_PROBE: Final = """
import os, socket
def held(act):
    try: act()
    except OSError: return True
    return False
outside = [lambda: open("/etc/passwd"), lambda: open("/proc/%d/environ"), lambda: open("/usr/probe", "w"),
           lambda: socket.create_connection(("127.0.0.1", 9), 1)]
open("inside", "w").write("x")
print("held" if all(map(held, outside)) and os.listdir(".") else "leaks")
"""


class NoSandbox(Exception):
    """No sandbox works on this machine; the message says what was tried and what failed."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a command ended; `truncated` when it wrote more than is kept, `left_out` names files that are not."""

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, str]
    left_out: list[str]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A way of confining that works here; `python` is an interpreter that it can see."""

    method: Literal["bwrap", "landlock"]
    python: str
    folder: Path

    async def run(self, command: Sequence[str], files: dict[str, str], seconds: int) -> Report:
        """Run `command` in a private folder that holds `files`, for `seconds` at most.

        When this returns or raises, also by cancellation, nothing of the command runs any more and its folder is
        gone; so it is shortly after this process is killed. Raises SandboxLimit, SandboxFailed.
        """
        keeper = await asyncio.create_subprocess_exec(
            *_python("keeper"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        try:
            keeper.stdin.write(self._order(command, files, seconds))
            await keeper.stdin.drain()
            told = await keeper.stdout.read()
        except ConnectionError:
            told = b""
        finally:
            keeper.stdin.close()
            await asyncio.shield(_ended(keeper))
        return _report(told, seconds)

    def _order(self, command: Sequence[str], files: dict[str, str], seconds: int) -> bytes:
        user = _FIRST_USER + secrets.randbelow(_FIRST_USER) if os.getuid() == 0 else None
        contained = self.method == "bwrap"
        write, root = (bubblewrap.WORK, bubblewrap.ROOT) if contained else ("{folder}", _ROOT)
        inner = {
            "user": user,
            "limits": {**LIMITS, "seconds": seconds + 1},
            "landlock": not contained,
            "read": [*bubblewrap.SYSTEM, "/etc/ld.so.cache", str(Path(self.python).parents[1])],
            "write": write,
        }
        start = [self.python if contained else sys.executable, *_python("confine", root)[1:]]
        whole = [*(bubblewrap.command(user) if contained else ()), *start, json.dumps(inner), *command]
        order = {
            "command": whole,
            "files": files,
            "user": user,
            "limits": {**LIMITS, "seconds": seconds},
            "folder": str(self.folder),
            "env": {
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": write,
                "TMPDIR": f"{write}/.tmp",
                "LANG": "C.UTF-8",
            },
        }
        return json.dumps(order).encode() + b"\n"


def find_sandbox(choice: Choice, folder: Path) -> Sandbox:
    """Return the sandbox of that choice, `auto` trying bubblewrap first, after it has held back a probe.

    `folder` is where private folders are made. Raises NoSandbox.
    """
    if choice == "off":
        raise NoSandbox("it is turned off")
    problems = []
    for method, lacks in (("bwrap", bubblewrap.lacking), ("landlock", _lacks_landlock)):
        if choice in ("auto", method):
            found = Sandbox(method, _interpreter(method), folder)  # type: ignore[arg-type]
            problem = lacks() or _probed(found)
            if not problem:
                return found
            problems.append(f"{method}: {problem}")
    raise NoSandbox("; ".join(problems))


def _probed(sandbox: Sandbox) -> str:
    """Return what is wrong with a sandbox, by trying to break out of it."""
    if not sandbox.python:
        return "this interpreter is in a folder that others may not read, and there is no /usr/bin/python3"
    order = sandbox._order([sandbox.python, "-I", "-S", "-c", _PROBE % os.getpid()], {}, 10)
    keeper = subprocess.Popen(  # noqa: S603 - our own code
        _python("keeper"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
    )
    with keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.write(order)
        keeper.stdin.flush()
        told = keeper.stdout.read()
    try:
        report = _report(told, 10)
    except (SandboxFailed, SandboxLimit) as problem:
        return str(problem)
    return "" if report.stdout == "held\n" else f"{report.stdout}{report.stderr}".strip()[-200:] or "no answer"


def _lacks_landlock() -> str:
    return "" if sys.platform == "linux" and landlock_abi() else "not in this kernel"


def _python(module: str, root: str = _ROOT) -> list[str]:
    return [sys.executable, "-I", "-S", "-B", "-c", _START.format(module), root]


def _interpreter(method: str) -> str:
    """Return an interpreter by its path inside, or nothing where the confined user could not read it."""
    own = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    if method == "bwrap":
        return f"{bubblewrap.PYTHON}/bin/{own.name}"
    if os.getuid() != 0 or all(place.stat().st_mode & 0o005 == 0o005 for place in own.parents):
        return str(own)
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else ""


async def _ended(keeper: asyncio.subprocess.Process) -> None:
    """Wait until the keeper has cleared up, and kill it if it cannot."""
    try:
        async with asyncio.timeout(15):
            await keeper.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            keeper.kill()


def _report(told: bytes, seconds: int) -> Report:
    try:
        found: dict[str, Any] = json.loads(told)
    except ValueError:
        raise SandboxFailed(
            "the sandbox ended without a report; the machine may be out of memory", retryable=True
        ) from None
    stopped = found.pop("stopped")
    if stopped:
        raise SandboxLimit(f"{_reason(stopped, seconds)}; it had written: {found['stderr'] or found['stdout']}")
    if found["exit_code"] and found["stderr"].startswith(("sandbox: ", "bwrap: ")):
        raise SandboxFailed(found["stderr"])
    return Report(**found)


def _reason(stopped: str, seconds: int) -> str:
    reasons = {
        "seconds": f"stopped after {seconds} s",
        "memory": f"stopped for using more than {2 * LIMITS['memory'] >> 20} MB of memory",
        "disk": f"stopped for writing more than {LIMITS['disk'] >> 20} MB or 10,000 files",
        "processes": "stopped for starting too many processes",
        "output": "stopped for writing without end",
    }
    return reasons.get(stopped, "cancelled")
