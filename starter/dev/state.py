"""The state directory: where the local stack keeps its database, artifacts, logs and a
record of its processes.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, Self

import psutil
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from sennit.starter.dev.grants import GrantFile
from sennit.starter.dev.messages import LocalStackFailed, Say
from sennit.starter.dev.private_file import replace_file

POLL = 0.1  # seconds
KILL_LIMIT = 10.0  # seconds
SAME_START = 0.5  # seconds by which two readings of the start time of one process may differ
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ProcessIdentity(BaseModel):
    """A process of this machine; the time it started tells it from a later one with the same id.

    On Linux that time is counted from the boot, which has an id: it stays the same
    when the clock is set.
    """

    model_config = ConfigDict(frozen=True)

    pid: int
    created: float
    boot: str = ""

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this id now; None when there is none or it
        only waits to be reaped.
        """
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if not _has_ended(process):
                boot = ""
                if BOOT_ID.exists():
                    boot = BOOT_ID.read_text().strip()
                return cls(pid=pid, created=_created(process), boot=boot)
        return None

    @classmethod
    def current(cls) -> Self:
        found = cls.of(os.getpid())
        assert found is not None
        return found

    @property
    def alive(self) -> bool:
        """Whether it still runs; another process with the same id does not count."""
        now = ProcessIdentity.of(self.pid)
        return (
            now is not None
            and now.boot == self.boot
            and abs(now.created - self.created) < SAME_START
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it; harmless when it has ended."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_group(self) -> bool:
        """Kill it and its group, wait for its end, but not for long, and
        return whether it has ended.
        """
        deadline = time.monotonic() + KILL_LIMIT
        while self.alive and time.monotonic() < deadline:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(0.02)
        return not self.alive


def _has_ended(process: psutil.Process) -> bool:
    """Whether it only waits to be reaped. Threads that outlive the first
    one keep its ports open.
    """
    return (
        process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        and process.num_threads() <= 1
    )


def _created(process: psutil.Process) -> float:
    """Return when it started. On Linux psutil adds the boot time by the clock of
    now: subtract it again.
    """
    if sys.platform != "linux":
        return process.create_time()
    before = psutil.boot_time()
    created = process.create_time() - before
    if psutil.boot_time() != before:  # the clock was set meanwhile
        return _created(psutil.Process(process.pid))
    return created


class StackRecord(BaseModel):
    """What a supervisor writes about its stack for clients; the next supervisor reads
    its ports and processes.
    """

    # Another version of Sennit may have written it.
    model_config = ConfigDict(frozen=True, extra="ignore")

    phase: Literal["starting", "ready", "stopping", "stopped", "failed"]
    detail: str = ""  # what it does now, or why it failed
    wrong_settings: bool = False  # whether it failed because its workers refuse a setting
    foreground: bool = False
    settings: str = ""  # digest of the settings its workers have, and of the code that they run
    environment: str = ""  # digest of the variables alone that its workers have from a client
    installation: str = ""  # where the Sennit is that started it
    supervisor: ProcessIdentity
    server: ProcessIdentity | None = None
    workers: tuple[ProcessIdentity, ...] = ()
    port: int = 0
    ui_port: int = 0
    address: str = ""  # HOST:PORT of its Temporal server
    ui_url: str = ""


class StateDir:
    """The paths below one state directory, and its record.

    `start_lock` is held by a client while it starts or stops a stack, `supervisor_lock` by a
    supervisor for its whole life. The system releases both when their holder dies, however it dies.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "temporal.db"  # every run, its history, its schedules
        # The directory store for outputs, made together with the database.
        self.artifacts = root / "artifacts"
        self.index = root / "index"  # the search indexes over document folders
        self.last_used = root / "last-used"  # touched at every use by a client
        self.collected = root / "last-gc"  # touched when artifacts are collected
        self.logins = root / "logins"  # at MCP servers, a file each, which only its owner reads
        self.record = root / "stack.json"
        # The user's modules that its workers have imported; workers write it.
        self.modules = root / "modules.json"
        self.grants = root / "grants.json"
        # What its user allows runs; workers read it, and note what runs claim.
        self.grant_file = GrantFile(self.grants)
        self.start_lock = root / "start.lock"
        self.supervisor_lock = root / "supervisor.lock"

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Return $SENNIT_STATE, else $XDG_STATE_HOME/sennit, else
        ~/.local/state/sennit; nothing is made yet.
        """
        if environ.get("SENNIT_STATE"):
            return cls(Path(environ["SENNIT_STATE"]).expanduser().absolute())
        base = Path(environ.get("XDG_STATE_HOME") or "")
        # Unset, or a relative path, which the XDG specification has us ignore.
        if not base.is_absolute():
            base = Path.home() / ".local" / "state"
        return cls(base / "sennit")

    def log(self, name: Literal["server", "worker", "supervisor"], number: int = 1) -> Path:
        """Return the log of a process; that of the second worker is `worker-2.log`."""
        file: str = name
        if number != 1:
            file = f"{name}-{number}"
        return self.root / "logs" / f"{file}.log"

    def prepare(self) -> None:
        """Make the directory. Only its owner can read what is in it. Raises LocalStackFailed.

        A directory that others may enter is refused if it was there before and has something in it.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not any(self.root.iterdir()):
                self.root.chmod(0o700)
            if self.root.stat().st_mode & 0o077:
                way = f"`chmod 700 {self.root}`, or choose another with SENNIT_STATE"
                raise LocalStackFailed(
                    f"other users may enter the state directory {self.root}; {way}"
                )
            # Later, an empty one would be no store.
            new = () if self.database.exists() else (self.artifacts,)
            for folder in (*new, self.index, self.root / "logs"):
                folder.mkdir(exist_ok=True, mode=0o700)
                folder.chmod(0o700)
            self.last_used.touch(mode=0o600)
        except OSError as error:
            raise _unwritable(self.root, error) from error

    def last_collected(self) -> float:
        """Return when artifacts were last collected; 0 if never."""
        if not self.collected.exists():
            return 0.0
        return self.collected.stat().st_mtime

    def running(self) -> bool:
        """Return whether a supervisor is alive, whatever its record says.
        Raises LocalStackFailed.
        """
        if not self.supervisor_lock.exists():
            return False
        lock = try_lock(self.supervisor_lock)
        if lock:
            lock.release()
        return lock is None

    def read(self) -> StackRecord | None:
        """Return the last record written, or None when there is none that can be read."""
        try:
            return StackRecord.model_validate_json(self.record.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, record: StackRecord) -> None:
        """Replace the record at once: a reader sees the old one or the new one."""
        replace_file(self.record, record.model_dump_json(indent=2))


def try_lock(path: Path, patience: float = 0.0) -> FileLock | None:
    """Return the lock, held until it is released, or None if another holds it for
    `patience` seconds longer.

    Raises LocalStackFailed if nothing can be written there.
    """
    lock = FileLock(path, mode=0o600)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        return None
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    return lock


def _unwritable(folder: Path, error: OSError) -> LocalStackFailed:
    why = error.strerror or error
    return LocalStackFailed(
        f"the state directory {folder} cannot be written: {why}; choose another with SENNIT_STATE"
    )


@asynccontextmanager
async def hold(path: Path, say: Say, waiting: str) -> AsyncIterator[None]:
    """Hold the lock for the block; if another process has it, say `waiting` and wait."""
    lock = try_lock(path)
    if lock is None:
        say(f"{waiting} ...")
    while lock is None:
        await asyncio.sleep(POLL)
        lock = try_lock(path)
    try:
        yield
    finally:
        lock.release()
