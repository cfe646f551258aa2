"""Keeps one confined command: starts it, bounds it, ends it with everything it started, collects what it left.

A process of its own on the standard library alone, without the worker's environment. One JSON line on stdin is the
order, one on stdout the report. When stdin closes early, because the call was cancelled or the worker was killed,
everything ends at once. Nothing stays in either case: no process, not even one in a session of its own, and no file.
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

_LOOK_EVERY = 0.1
_LONGEST_DRAIN = 2.0
_LONGEST_END = 10.0
_CHUNK = 65_536
_PAGE = os.sysconf("SC_PAGE_SIZE")
_DRAINED = 1_000
"""How often the kept output a command may write before it is stopped for it."""


def main() -> None:
    """Read the order, run it, write the report."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # what loses its parent becomes a child of this process
    order = json.loads(sys.stdin.buffer.readline())
    folder = Path(tempfile.mkdtemp(prefix="sennit-sandbox-", dir=order["folder"]))
    try:
        report = Supervisor(order, folder).run()
    finally:
        output_files.clear(folder)
    sys.stdout.write(json.dumps(report))


class Supervisor:
    """One command in its folder."""

    def __init__(self, order: dict[str, Any], folder: Path) -> None:
        self._order = order
        self._limits: dict[str, int] = order["limits"]
        self._folder = folder
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._seen = 0
        self._status: int | None = None
        self._open = selectors.DefaultSelector()

    def run(self) -> dict[str, Any]:
        """Return the report, when nothing of the command runs any more."""
        self._lay_out()
        command = [part.replace("{folder}", str(self._folder)) for part in self._order["command"]]
        child = subprocess.Popen(  # noqa: S603 - what runs here is confined
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env={name: value.replace("{folder}", str(self._folder)) for name, value in self._order["env"].items()},
            start_new_session=True,
        )
        self._open.register(0, selectors.EVENT_READ, "order")
        for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            self._open.register(pipe, selectors.EVENT_READ, name)  # type: ignore[arg-type]
        try:
            stopped = self._watch(child.pid)
        finally:
            self._end_all()
        self._drain()
        self._reap(child.pid)
        child.returncode = self._status
        return self._report(stopped)

    def _lay_out(self) -> None:
        """Write the files the command is given, and hand all to its user."""
        (self._folder / ".tmp").mkdir()
        for name, text in self._order["files"].items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        user = self._order["user"]
        if user is not None:
            for place, _, files in os.walk(self._folder):
                for name in (".", *files):
                    os.chown(os.path.join(place, name), user, user)  # noqa: PTH118 - os.walk gives text

    def _watch(self, pid: int) -> str:
        """Wait for the end; returns which limit ended it, or nothing."""
        ends = time.monotonic() + self._limits["seconds"]
        look = 0.0
        while True:
            if not self._read(_LOOK_EVERY / 2):
                return "cancelled"
            self._reap(pid)
            if self._status is not None:
                return ""
            now = time.monotonic()
            if now > ends:
                return "seconds"
            if now > look:
                look = now + _LOOK_EVERY
                if limit := self._over():
                    return limit

    def _over(self) -> str:
        found = living()
        if len(found) > 2 * self._limits["processes"]:
            return "processes"
        if sum(found.values()) > 2 * self._limits["memory"]:
            return "memory"
        if self._seen > _DRAINED * self._limits["output"]:
            return "output"
        return "disk" if output_files.too_large(self._folder, self._limits["disk"], found) else ""

    def _read(self, seconds: float) -> bool:
        """Take what is there to read; whether the order still stands."""
        for key, _ in self._open.select(seconds):
            chunk = os.read(key.fd, _CHUNK)
            if key.data == "order":
                return False
            if not chunk:
                self._open.unregister(key.fileobj)
                continue
            self._seen += len(chunk)
            kept = self._kept[key.data]
            kept += chunk[: max(0, self._limits["output"] - len(kept))]
        return True

    def _drain(self) -> None:
        """Read to the end of both pipes; nobody holds them any more."""
        ends = time.monotonic() + _LONGEST_DRAIN
        self._open.unregister(0)
        while self._open.get_map() and time.monotonic() < ends:
            self._read(_LOOK_EVERY)

    def _reap(self, pid: int) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == pid:
                    self._status = os.waitstatus_to_exitcode(found[1])

    def _end_all(self) -> None:
        """Stop everything first, so that nothing can start more while it is being killed."""
        before: dict[int, int] = {}
        ends = time.monotonic() + _LONGEST_END
        while (found := living()) and time.monotonic() < ends:
            wanted = signal.SIGKILL if found.keys() == before.keys() else signal.SIGSTOP
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, wanted)
            before = found
            if wanted == signal.SIGKILL:
                time.sleep(0.002)

    def _report(self, stopped: str) -> dict[str, Any]:
        texts = {name: bytes(kept).decode("utf-8", "replace") for name, kept in self._kept.items()}
        cut = self._seen > sum(len(kept) for kept in self._kept.values())
        files, left_out = output_files.collect(self._folder, self._order["files"], self._limits["files"])
        code = self._status if self._status is None or self._status >= 0 else 128 - self._status
        return {**texts, "exit_code": code, "stopped": stopped, "truncated": cut, "files": files,
                "left_out": left_out}  # fmt: skip


def living() -> dict[int, int]:
    """Return the memory in bytes of every process below this one that has not ended, by pid."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - hot
        if entry.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry)] = int(fields[1])
                if fields[0] not in b"ZX":
                    sizes[int(entry)] = int(fields[21]) * _PAGE
    return {pid: size for pid, size in sizes.items() if _below(pid, parents)}


def _below(pid: int, parents: dict[int, int]) -> bool:
    own = os.getpid()
    while pid := parents.get(pid, 0):
        if pid == own:
            return True
    return False
