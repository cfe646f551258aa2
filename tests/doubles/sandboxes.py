"""A sandbox of this machine for tests: skipped only where the machine has none to offer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from activities.sandbox import SandboxChoice
from activities.sandbox.restrict import landlock_abi
from activities.sandbox.runner import NoSandbox, Sandbox, find_sandbox

_LIVES = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")


def sandbox_of(choice: SandboxChoice, folder: Path) -> Sandbox:
    """Return the sandbox. One that the machine supports and that does not work fails the test."""
    try:
        return find_sandbox(choice, folder)
    except NoSandbox as problem:
        offered = (choice != "bwrap" and _has_landlock()) or (choice != "landlock" and _has_bubblewrap())
        (pytest.fail if offered else pytest.skip)(str(problem))


def _has_landlock() -> bool:
    """Whether the kernel has it, and root has an interpreter that another user may read."""
    readable = os.getuid() != 0 or Path("/usr/bin/python3").exists()
    return sys.platform == "linux" and landlock_abi() > 0 and readable


def _has_bubblewrap() -> bool:
    """Whether it is installed and the kernel lets it make namespaces."""
    path = shutil.which("bwrap")
    return path is not None and subprocess.run([path, *_LIVES], capture_output=True, check=False).returncode == 0
