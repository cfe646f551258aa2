"""A sandbox of this machine for tests: skipped only where the machine has none to offer."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from sennit.activities.sandbox import SandboxChoice, landlock
from sennit.activities.sandbox.runner import NoSandbox, Report, Sandbox, find_sandbox

_LIVES = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")


@cache
def found(choice: SandboxChoice) -> Sandbox:
    """Return the sandbox, looked for once a process."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        return sandbox_of(choice, Path(folder))


def sandbox_of(choice: SandboxChoice, folder: Path) -> Sandbox:
    """Return the sandbox. One that the machine supports and that does not work fails the test."""
    try:
        return find_sandbox(choice, folder)
    except NoSandbox as problem:
        offered = (choice != "bwrap" and _has_landlock()) or (choice != "landlock" and _has_bubblewrap())
        (pytest.fail if offered else pytest.skip)(str(problem))


async def run(sandbox: Sandbox, code: str, seconds: int = 5) -> Report:
    """Run Python code. Its processes carry the name of the sandbox's folder, by which `marked_processes` finds them."""
    command = [sandbox.python, "-I", "-B", "-c", f"{code}\n# {sandbox.folder}"]
    return await sandbox.run(command, {"in.txt": "given"}, seconds)


def marked_processes(folder: Path) -> list[str]:
    """Return the command lines, or else the threads' names, of living processes that carry the name of `folder`."""
    living = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            line = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            names = [path.read_text().strip() for path in process.glob("task/*/comm")]
        except OSError:
            continue
        if str(folder) in line:
            living.append(line)
        elif mark(folder) in names:
            living.append(mark(folder))
    return living


def mark(folder: Path) -> str:
    """Return what a thread must call itself to be found when its process has no command line any more."""
    return folder.name[-12:]


def _has_landlock() -> bool:
    """Whether the kernel has it, and root has an interpreter that another user may read."""
    readable = os.getuid() != 0 or Path("/usr/bin/python3").exists()
    return sys.platform == "linux" and landlock.version() > 0 and readable


def _has_bubblewrap() -> bool:
    """Whether it is installed and the kernel lets it make namespaces."""
    path = shutil.which("bwrap")
    return path is not None and subprocess.run([path, *_LIVES], capture_output=True, check=False).returncode == 0
