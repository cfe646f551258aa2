"""Supervises one sandboxed command: starts it, enforces its limits, ends it with everything it
started, and collects its output.

Runs as a process of its own, on the standard library alone and without the worker's environment. It
reads the job as one JSON line from stdin and writes the report to stdout. When stdin closes early,
because the call was cancelled or the worker was killed, it ends everything at once. Either way no
process stays, not even one in a session of its own, and no file. The folder is looked into only
when every process has ended, and with no more rights than they had.
"""

import ctypes
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sennit.activities.sandbox import disk, folders, landlock, memory_group, output_files, processes
from sennit.activities.sandbox.folders import FolderRefused
from sennit.activities.sandbox.restrict import READY, WORKSPACE, give_up_rights

_CHECK_INTERVAL = 0.1
_DRAIN_SECONDS = 2.0
_START_SECONDS = 10.0
_SLOWEST_BYTES = 1 << 20
"""Bytes a second that a busy machine writes into a folder at the least."""
_KILL_SECONDS = 10.0
_CHUNK = 65_536
_MOST_OUTPUT = 1_000
"""A command that writes this many times the kept output is stopped."""
_SMALL = 16 << 20
"""Address space of each process that is not counted: about that of an
interpreter that does nothing.
"""


def main() -> None:
    """Read the job, run it, write the report."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphaned processes become children of this one
    job = json.loads(sys.stdin.buffer.readline())
    bodies = b""
    if job["workspace"] is not None:
        bodies = sys.stdin.buffer.read(folders.from_json(job["workspace"]).size)
    if job["group"]:
        memory_group.join(Path(job["group"]))
    try:
        folder = _make_folder(job) if job["folder"] else None
    except OSError as error:
        problem = f"no private folder can be made in {job['folder']}: {error.strerror or error}"
        sys.stdout.write(json.dumps(_failed(problem)))
        return
    supervisor = Supervisor(job, folder, bodies)
    del bodies  # it lets go of them once the command has them
    try:
        report = supervisor.run()
    finally:
        if folder is not None:
            with suppress(OSError):  # what a process that could not be ended still has
                Path(folder).rmdir()
    sys.stdout.write(json.dumps(report))


def _failed(problem: str) -> dict[str, Any]:
    """Return the report of a command that was not started."""
    return {
        "stdout": "",
        "stderr": problem,
        "exit_code": None,
        "stopped": "failed",
        "measured": False,
        "truncated": False,
        "files": {},
        "left_out": [],
        "workspace": None,
        "refused": "",
    }


def _make_folder(job: dict[str, Any]) -> str:
    """Make the private folder; the command's user owns it."""
    folder = tempfile.mkdtemp(prefix="sennit-sandbox-", dir=job["folder"])
    if job["user"] is not None:
        os.chown(folder, job["user"], job["user"])
    return folder


class Supervisor:
    """One command in its folder, which is inside the container if `folder` is None. `bodies` are
    those of the files of its workspace.
    """

    def __init__(self, job: dict[str, Any], folder: str | None, bodies: bytes) -> None:
        self._job = job
        self._bodies = bodies
        self._limits: dict[str, int] = job["limits"]
        self._place = folder
        self._output: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._bytes_read = 0
        self._status: int | None = None
        self._measured = False
        self._pipes = selectors.DefaultSelector()

    def run(self) -> dict[str, Any]:
        """Return the report once no process of the command is left."""
        ours, theirs = socket.socketpair()
        command = [self._placed(part) for part in self._job["command"]]
        env = {name: self._placed(value) for name, value in self._job["env"].items()}
        with theirs:
            child = subprocess.Popen(  # noqa: S603 - it runs in the sandbox
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._place or "/",
                env=env,
                start_new_session=True,
            )
        self._pipes.register(0, selectors.EVENT_READ, "job")
        for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            self._pipes.register(pipe, selectors.EVENT_READ, name)  # type: ignore[arg-type]
        folder: int | None = None
        try:
            with ours:
                folder = self._hand_over_files(ours)
            stopped = "failed" if folder is None else self._watch(child.pid, folder)
        finally:
            # A namespace ends with its first process.
            user = None if self._job["namespaces"] else self._job["user"]
            ended = processes.end_all(user, _KILL_SECONDS, partial(self._note_end, child.pid))
        child.returncode = self._status
        self._drain()
        if folder is None or not ended:
            return self._report("failed" if ended else "unkillable", {"files": {}, "left_out": []})
        stopped = stopped or self._broken_limit(folder)
        return self._report(stopped, _as_the_command(self._job, folder))

    def _placed(self, text: str) -> str:
        return text.replace("{folder}", self._place or "")

    def _hand_over_files(self, channel: socket.socket) -> int | None:
        """Send the files; return the folder, open, once the command is about to run
        there; None if it could not.
        """
        given = json.dumps(
            {"files": self._job["files"], "workspace": self._job["workspace"]}
        ).encode()
        channel.settimeout(_START_SECONDS + (len(given) + len(self._bodies)) / _SLOWEST_BYTES)
        try:
            channel.sendall(given + b"\n")
            channel.sendall(self._bodies)
            self._bodies = b""
            word, folders, _, _ = socket.recv_fds(channel, len(READY), 1)
            # The command waits for the channel to close.
            self._measured = any(processes.address_spaces().values())
        except OSError:
            return None
        if word != READY:
            return None
        return folders[0]

    def _watch(self, pid: int, folder: int) -> str:
        """Wait until the command ends or must be stopped; return the limit
        that it broke, or nothing.
        """
        deadline = time.monotonic() + self._limits["seconds"]
        next_check = 0.0
        while True:
            if not self._read(_CHECK_INTERVAL / 2):
                return "cancelled"
            processes.reap(partial(self._note_end, pid))
            if self._status is not None:
                return ""
            now = time.monotonic()
            if now > deadline:
                return "seconds"
            if now > next_check:
                next_check = now + _CHECK_INTERVAL
                if limit := self._broken_limit(folder):
                    return limit

    def _broken_limit(self, folder: int) -> str:
        """Return the limit that the command has broken, also when it has ended, or nothing."""
        sizes, limits = processes.address_spaces(), self._limits
        if len(sizes) > 2 * limits["processes"]:
            return "processes"
        if self._job["group"]:
            memory_is_exceeded = memory_group.kills(Path(self._job["group"])) > 0
        else:
            total = sum(max(0, size - _SMALL) for size in sizes.values())
            memory_is_exceeded = total > limits["memory_in_all"]
        if memory_is_exceeded:
            return "memory"
        if self._bytes_read > _MOST_OUTPUT * limits["output"]:
            return "output"
        if self._job["namespaces"]:
            disk_is_exceeded = disk.is_full(folder)
        else:
            disk_is_exceeded = disk.is_exceeded(folder, limits["disk"], limits["file"], sizes)
        if disk_is_exceeded:
            return "disk"
        return ""

    def _read(self, seconds: float) -> bool:
        """Read what is available; False once the job is cancelled."""
        for key, _ in self._pipes.select(seconds):
            chunk = os.read(key.fd, _CHUNK)
            if key.data == "job":
                return False
            if not chunk:
                self._pipes.unregister(key.fileobj)
                continue
            self._bytes_read += len(chunk)
            output = self._output[key.data]
            output += chunk[: max(0, self._limits["output"] - len(output))]
        return True

    def _drain(self) -> None:
        """Read both pipes to the end; no process has them open any more."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        self._pipes.unregister(0)
        while self._pipes.get_map() and time.monotonic() < deadline:
            self._read(_CHECK_INTERVAL)

    def _note_end(self, command: int, pid: int, status: int) -> None:
        if pid == command:
            self._status = os.waitstatus_to_exitcode(status)

    def _report(self, stopped: str, left: dict[str, Any]) -> dict[str, Any]:
        texts = {name: output.decode("utf-8", "replace") for name, output in self._output.items()}
        truncated = self._bytes_read > sum(map(len, self._output.values()))
        code = self._status
        if code is not None and code < 0:
            code = 128 - code  # as a shell tells of a signal
        return {"workspace": None, "refused": "", **texts, "exit_code": code, "stopped": stopped,
                "measured": self._measured, "truncated": truncated, **left}  # fmt: skip


def _as_the_command(job: dict[str, Any], folder: int) -> dict[str, Any]:
    """Collect the files and clear the folder in a child that may touch nothing else.
    Raises OSError, ValueError.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            give_up_rights(job["user"])
            if (version := landlock.version()) >= landlock.LEAST_VERSION:
                landlock.confine(landlock.rules(folder, (), version))
            try:
                found = json.dumps(_left(job, folder))
            finally:
                if not job["namespaces"]:  # else all goes with its file system
                    output_files.clear(folder)
            with open(writing, "w") as pipe:  # noqa: PTH123
                pipe.write(found)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as pipe:  # noqa: PTH123
        found = pipe.read()
    os.waitpid(child, 0)
    left: dict[str, Any] = json.loads(found)
    return left


def _left(job: dict[str, Any], folder: int) -> dict[str, Any]:
    """Return the texts that a command has left, and its workspace, or why that cannot be kept."""
    apart = () if job["workspace"] is None else (WORKSPACE,)
    files, left_out = output_files.collect(folder, job["files"], job["limits"]["files"], apart)
    left = {"files": files, "left_out": left_out}
    if job["workspace"] is None:
        return left
    known = {file.digest for file in folders.from_json(job["workspace"]).files}
    try:
        place = os.open(
            WORKSPACE, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
        )
        return {**left, "workspace": folders.as_json(folders.read_folder(place, known))}
    except FolderRefused as error:
        return {**left, "refused": str(error)}
    except OSError as error:
        return {**left, "refused": f"the folder itself cannot be read: {error.strerror}"}
