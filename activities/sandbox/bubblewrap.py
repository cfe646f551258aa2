"""The container of bubblewrap: every namespace of its own, the system read-only, one private folder."""

import shutil
import sys
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
WORK: Final = "/work"
ROOT: Final = "/sennit"
PYTHON: Final = "/python"
"""Where the private folder, the code that confines and this interpreter are inside."""

_TABLES: Final = ("/etc/alternatives", "/etc/ld.so.cache")


def lacking() -> str:
    """Return why it cannot even be tried, or nothing."""
    return "" if shutil.which("bwrap") else "is not installed"


def command(user: int | None) -> list[str]:
    """Return what the confined command is prefixed with.

    `{folder}` stands for the private folder. With `user`, who the code will be, this process must be root and keeps
    the right to change to that user; else the container has users of its own, and the code is nobody.
    """
    private = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if user is None:
        private += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    else:
        private += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    places: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            places += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            places += ["--ro-bind", str(path), str(path)]
    for path in map(Path, _TABLES):
        places += ["--ro-bind-try", str(path), str(path)]
    places += ["--ro-bind", sys.base_prefix, PYTHON]
    places += ["--ro-bind", str(Path(__file__).parent), f"{ROOT}/activities/sandbox"]
    places += ["--proc", "/proc", "--dev", "/dev", "--bind", "{folder}", WORK]
    closed = ["--remount-ro", "/dev", "--remount-ro", "/"]
    ends = ["--die-with-parent", "--new-session", "--hostname", "sandbox"]
    return [str(shutil.which("bwrap")), *private, *ends, *places, *closed, "--"]
