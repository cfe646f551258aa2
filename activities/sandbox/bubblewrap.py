"""The container of bubblewrap: every namespace of its own, the system
read-only, one private folder.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
WORK: Final = "/work"
ROOT: Final = "/sennit"
PYTHON: Final = "/python"
"""Where the private folder, the code of this package and the interpreter are inside."""

_LINKER_FILES: Final = ("/etc/alternatives", "/etc/ld.so.cache")


def command(user: int | None, disk: int) -> list[str]:
    """Return the prefix of a command that is to run in the container, whose private
    folder holds `disk` bytes.

    With `user`, which the code will run as, this process must be root, and the container keeps
    the right to change to that user. Without it the container has its own user namespace and
    the code runs as nobody.
    """
    private = [
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]
    if user is None:
        private += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    else:
        private += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    mounts: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            mounts += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            mounts += ["--ro-bind", str(path), str(path)]
    for path in map(Path, _LINKER_FILES):
        mounts += ["--ro-bind-try", str(path), str(path)]
    mounts += ["--ro-bind", sys.base_prefix, PYTHON]
    mounts += ["--ro-bind", str(Path(__file__).parent), f"{ROOT}/sennit/activities/sandbox"]
    mounts += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "0777",
        "--size",
        str(disk),
        "--tmpfs",
        WORK,
    ]
    read_only = ["--remount-ro", "/dev", "--remount-ro", "/"]
    lifetime = ["--die-with-parent", "--new-session", "--hostname", "sandbox"]
    return [str(shutil.which("bwrap")), *private, *lifetime, *mounts, *read_only, "--"]
