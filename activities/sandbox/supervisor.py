"""Supervises one sandboxed command: starts it, enforces its limits, ends it with everything it started, and collects
its output.

Runs as a process of its own, on the standard library alone and without the worker's environment. It reads the job as
one JSON line from stdin and writes the report to stdout. When stdin closes early, because the call was cancelled or the
worker was killed, it ends everything at once. Either way no process stays, not even one in a session of its own, and no
file.
"""

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from activities.sandbox import output_files

_CHECK_INTERVAL = 0.1
_DRAIN_SECONDS = 2.0
_KILL_SECONDS = 10.0
_CHUNK = 65_536
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_OUTPUT = 1_000
"""A command that writes this many times the kept output is stopped."""


def main() -> None:
    """Read the job, run it, write the report."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphaned processes become children of this one
    job = json.loads(sys.stdin.buffer.readline())
    folder = Path(tempfile.mkdtemp(prefix="sennit-sandbox-", dir=job["folder"]))
    try:
        report = Supervisor(job, folder).run()
    finally:
        output_files.clear(folder)
    sys.stdout.write(json.dumps(report))


class Supervisor:
    """One command in its folder."""

    def __init__(self, job: dict[str, Any], folder: Path) -> None:
        self._job = job
        self._limits: dict[str, int] = job["limits"]
        self._folder = folder
        self._output: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._bytes_read = 0
        self._status: int | None = None
        self._pipes = selectors.DefaultSelector()

    def run(self) -> dict[str, Any]:
        """Return the report once no process of the command is left."""
        self._write_files()
        command = [part.replace("{folder}", str(self._folder)) for part in self._job["command"]]
        child = subprocess.Popen(  # noqa: S603 - it runs in the sandbox
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env={name: value.replace("{folder}", str(self._folder)) for name, value in self._job["env"].items()},
            start_new_session=True,
        )
        self._pipes.register(0, selectors.EVENT_READ, "job")
        for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            self._pipes.register(pipe, selectors.EVENT_READ, name)  # type: ignore[arg-type]
        try:
            limit = self._watch(child.pid)
        finally:
            self._kill_all()
        self._drain()
        self._reap(child.pid)
        child.returncode = self._status
        return self._report(limit)

    def _write_files(self) -> None:
        """Write the given files and make the command's user their owner."""
        (self._folder / ".tmp").mkdir()
        for name, text in self._job["files"].items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        user = self._job["user"]
        if user is not None:
            for parent, _, files in os.walk(self._folder):
                for name in (".", *files):
                    os.chown(os.path.join(parent, name), user, user)  # noqa: PTH118 - os.walk gives text

    def _watch(self, pid: int) -> str:
        """Wait until the command ends or must be stopped; return the limit that it broke, or nothing."""
        deadline = time.monotonic() + self._limits["seconds"]
        next_check = 0.0
        while True:
            if not self._read(_CHECK_INTERVAL / 2):
                return "cancelled"
            self._reap(pid)
            if self._status is not None:
                return ""
            now = time.monotonic()
            if now > deadline:
                return "seconds"
            if now > next_check:
                next_check = now + _CHECK_INTERVAL
                if limit := self._broken_limit():
                    return limit

    def _broken_limit(self) -> str:
        memory = live_descendants()
        if len(memory) > 2 * self._limits["processes"]:
            return "processes"
        if sum(memory.values()) > 2 * self._limits["memory"]:
            return "memory"
        if self._bytes_read > _MOST_OUTPUT * self._limits["output"]:
            return "output"
        return "disk" if output_files.too_large(self._folder, self._limits["disk"], memory) else ""

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

    def _reap(self, pid: int) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == pid:
                    self._status = os.waitstatus_to_exitcode(ended[1])

    def _kill_all(self) -> None:
        """Stop all processes before killing them, so that none can start another meanwhile."""
        before: set[int] = set()
        deadline = time.monotonic() + _KILL_SECONDS
        while (alive := set(live_descendants())) and time.monotonic() < deadline:
            number = signal.SIGKILL if alive == before else signal.SIGSTOP
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            before = alive
            if number == signal.SIGKILL:
                time.sleep(0.002)

    def _report(self, limit: str) -> dict[str, Any]:
        texts = {name: output.decode("utf-8", "replace") for name, output in self._output.items()}
        truncated = self._bytes_read > sum(map(len, self._output.values()))
        files, left_out = output_files.collect(self._folder, self._job["files"], self._limits["files"])
        code = self._status if self._status is None or self._status >= 0 else 128 - self._status
        return {**texts, "exit_code": code, "stopped": limit, "truncated": truncated, "files": files,
                "left_out": left_out}  # fmt: skip


def live_descendants() -> dict[int, int]:
    """Return every running process below this one, by pid, with its memory in bytes."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - hot
        if entry.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry)] = int(fields[1])
                if fields[0] not in b"ZX":
                    sizes[int(entry)] = int(fields[21]) * _PAGE
    return {pid: size for pid, size in sizes.items() if _is_descendant(pid, parents)}


def _is_descendant(pid: int, parents: dict[int, int]) -> bool:
    own = os.getpid()
    while pid := parents.get(pid, 0):
        if pid == own:
            return True
    return False
