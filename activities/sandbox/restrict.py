"""Restricts its own process, then executes the command. Standard library only; arguments:
POLICY_JSON COMMAND...

The last step before untrusted code runs: namespaces where root can make them, resource limits,
another user if this one is root, no new privileges, no capabilities, Landlock where no container
guards the files, and the seccomp program. Then it writes the given files, which come through the
socket that is its stdin, sends back `READY` with a descriptor of the private folder, and waits for
the socket to close. If a step fails, it ends with the reason on stderr and without `READY`; the
command never runs with less.
"""

import ctypes
import json
import os
import resource
import secrets
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from sennit.activities.sandbox import folders, landlock, seccomp
from sennit.activities.sandbox.folders import FolderRefused

READY = b"ready"
WORKSPACE = "workspace"
"""The folder in the private one where a command finds the workspace that it works in."""
_REFUSED = 125
_NOT_FOUND = 127
_NEW_MOUNTS_AND_PROCESSES = 0x20020000
_NEW_NETWORK_QUEUES_AND_NAMES, _NEW_USERS = 0x4C000000, 0x10000000
_PRIVATE_MOUNTS, _NO_SETUID_NO_DEVICES = 0x44000, 0b110
_FIRST_USER = 1_000_000
_CAPABILITIES = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Apply the policy and execute the command."""
    policy, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        restrict(policy)
        _prctl(1, signal.SIGKILL)  # die with the parent
        _receive_files()
    except (OSError, ValueError, FolderRefused) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_REFUSED)
    if policy["namespaces"]:
        _enter_process_namespace()
    try:
        os.execve(command[0], command, dict(os.environ))  # noqa: S606 - that is the point
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        os._exit(_NOT_FOUND)


def any_user() -> int:
    """Return a user that nobody else is, most likely, for the code of one call or process."""
    return _FIRST_USER + secrets.randbelow(_FIRST_USER)


def restrict(policy: dict[str, Any]) -> None:
    """Restrict this process to `policy`. Without a folder to `write` in, no file can be written,
    and `namespaces` are those that the kernel lets it have. Raises OSError, ValueError.
    """
    user = policy["user"]
    limits = policy["limits"]
    version = policy["landlock"]
    place = policy["write"]
    if policy["namespaces"] and place:
        _make_namespaces(place, user, limits)
    Path("/proc/self/oom_score_adj").write_text("1000")  # when memory runs out, this goes first
    others = 0
    if user is None and version and "processes" in limits:
        others = _threads(os.getuid())
    _limit(limits, others=others)
    if policy["namespaces"] and not place:
        with suppress(OSError):  # where the kernel does not allow it, the other layers hold
            _leave_machine()
    os.chdir(place or "/")
    rules = _rules(policy) if version else None
    give_up_rights(user)
    if rules is not None:
        landlock.confine(rules)
    if policy["seccomp"]:
        allow_signals = version >= landlock.SCOPES_VERSION or not version
        seccomp.install(
            seccomp.command_program(allow_signals=allow_signals, allow_metadata=not version)
        )


def _rules(policy: dict[str, Any]) -> int:
    folder = os.open(".", os.O_PATH) if policy["write"] else None
    try:
        return landlock.rules(folder, policy["read"], policy["landlock"])
    finally:
        if folder is not None:
            os.close(folder)


def give_up_rights(user: int | None) -> None:
    """Become `user` if that is not None, and give up new privileges and all
    capabilities. Raises OSError.
    """
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _prctl(38, 1)
    none = (ctypes.c_uint32 * 6)()
    _checked(_LIBC.capset((ctypes.c_uint32 * 2)(_CAPABILITIES, 0), none), "capset")


def _make_namespaces(folder: str, user: int, limits: dict[str, int]) -> None:
    """Put a tmpfs of limited size on `folder`, for this process alone; its
    children get a PID namespace.
    """
    _checked(_LIBC.unshare(_NEW_MOUNTS_AND_PROCESSES), "unshare")
    _checked(_LIBC.mount(None, b"/", None, _PRIVATE_MOUNTS, None), "mount")
    options = (
        f"size={limits['disk']},nr_inodes={limits['entries'] + 100},mode=700,uid={user},gid={user}"
    )
    mounted = _LIBC.mount(
        b"tmpfs", os.fsencode(folder), b"tmpfs", _NO_SETUID_NO_DEVICES, options.encode()
    )
    _checked(mounted, "mount")


def _leave_machine() -> None:
    """Give this process a network, queues and a root of its own, all of which are empty. Raises
    OSError where only some of that is allowed, or nothing.
    """
    alone = 0 if os.getuid() == 0 else _NEW_USERS
    _checked(_LIBC.unshare(_NEW_NETWORK_QUEUES_AND_NAMES | alone), "unshare")
    # In a folder that has been removed nothing can ever be made.
    folder = Path("/tmp", f"sennit-root-{secrets.token_hex(8)}")  # noqa: S108 - no file is ever in it
    folder.mkdir(mode=0o700)
    os.chdir(folder)
    folder.rmdir()
    os.chroot(".")


def _enter_process_namespace() -> None:
    """Return as the second process of the new namespace, in a session of its own.

    The first one reaps orphans; when it ends, with the command, the kernel ends all others.
    This process waits for it.
    """
    for _ in range(2):
        child = os.fork()
        if child:
            _end_like(child)
        _prctl(1, signal.SIGKILL)
    os.setsid()


def _end_like(child: int) -> NoReturn:
    # A handler would make it a signal that the first process takes.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _write_text(path: Path, text: str) -> None:
    """Raises ValueError where the workspace has a file in the place of a folder,
    or the other way round.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        shown = str(path).removeprefix(f"{WORKSPACE}/")
        raise ValueError(
            f"files: {shown}: it, or what it lies in, is of another kind in the workspace"
        ) from None


def _receive_files() -> None:
    """Write the files that come through the socket at stdin, answer, and put
    /dev/null in its place.
    """
    with socket.socket(fileno=0) as channel, channel.makefile("rb") as incoming:
        given = json.loads(incoming.readline())
        Path(".tmp").mkdir()
        if given["workspace"] is not None:
            Path(WORKSPACE).mkdir()
            workspace = folders.from_json(given["workspace"])
            folders.write_folder(
                workspace.with_bodies(incoming.read(workspace.size)), Path(WORKSPACE)
            )
        for name, text in given["files"].items():
            _write_text(Path(name), text)
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        socket.send_fds(channel, [READY], [folder])
        os.close(folder)
        # Until it is closed: the supervisor looks at this process once before the command runs.
        incoming.read()
    os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(0, True)


def _limit(limits: dict[str, int], others: int) -> None:
    """Set the limits that there are. `others`: the user's threads outside, which count against the
    same limit of processes.
    """
    for limit, name, more in (
        (resource.RLIMIT_CPU, "seconds", 0),
        (resource.RLIMIT_AS, "memory", 0),
        (resource.RLIMIT_FSIZE, "file", 0),
        (resource.RLIMIT_NPROC, "processes", others),
        (resource.RLIMIT_NOFILE, "open_files", 0),
    ):
        if name in limits:
            most = limits[name] + more
            resource.setrlimit(limit, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _threads(user: int) -> int:
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(
                line.split(":", 1) for line in status.read_text().splitlines() if ":" in line
            )
            if int(fields["Uid"].split()[0]) == user:
                count += int(fields["Threads"])
        except (OSError, KeyError, ValueError):
            continue
    return count


def _prctl(option: int, value: int) -> None:
    _checked(_LIBC.prctl(option, value, 0, 0, 0), "prctl")


def _checked(result: int, call: str) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}")
