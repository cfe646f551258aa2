"""The state directory: where the local stack keeps its database, artifacts, logs and the record of itself."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from starter.dev.failures import LocalStackFailed
from starter.dev.ports import HOST
from starter.dev.process import ProcessIdentity


class StackRecord(BaseModel):
    """What a supervisor writes about its stack for clients; its ports and processes matter after its end, too."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # another version of Sennit may have written it

    phase: Literal["starting", "ready", "stopping", "stopped", "failed"]
    detail: str = ""  # what it does now, or why it failed
    wrong_settings: bool = False  # whether it failed because its workers refuse a setting
    foreground: bool = False
    settings: str = ""  # digest of the settings its workers have
    supervisor: ProcessIdentity
    server: ProcessIdentity | None = None
    worker: ProcessIdentity | None = None
    port: int = 0
    ui_port: int = 0

    @property
    def address(self) -> str:
        """HOST:PORT of its Temporal server."""
        return f"{HOST}:{self.port}"

    @property
    def ui_url(self) -> str:
        """Where its web UI is."""
        return f"http://{HOST}:{self.ui_port}"

    def kill_children(self) -> int | None:
        """Kill server and workers if they still run; return the id of one that does not end in ten seconds."""
        return next((each.pid for each in (self.worker, self.server) if each and not each.kill_group()), None)


class StateDir:
    """The paths below one state directory, its record and its two locks.

    `start.lock` is held by a client while it starts, changes or stops a stack, `supervisor.lock` by a supervisor for
    its whole life. The system releases both when their holder dies, however it dies.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "temporal.db"  # every run, its history, its schedules
        self.artifacts = root / "artifacts"  # the directory store for outputs
        self.index = root / "index"  # the search indexes over document folders
        self.profile = root / "temporal.toml"  # leads to this stack's server and nowhere else
        self.mailbox = root / "mailbox"  # a named pipe: settings may hold keys and never reach the disk
        self.last_used = root / "last-used"  # changed at every use by a client
        self.record = root / "stack.json"

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Return $SENNIT_STATE, else $XDG_STATE_HOME/sennit, else ~/.local/state/sennit; nothing is made yet."""
        if environ.get("SENNIT_STATE"):
            return cls(Path(environ["SENNIT_STATE"]).expanduser().absolute())
        base = Path(environ.get("XDG_STATE_HOME") or "")
        return cls((base if base.is_absolute() else Path.home() / ".local" / "state") / "sennit")

    def log(self, name: Literal["server", "worker", "supervisor"]) -> Path:
        """Return one of the log files."""
        return self.root / "logs" / f"{name}.log"

    def prepare(self) -> None:
        """Make the directory, for its owner only. Raises LocalStackFailed."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in (self.artifacts, self.index, self.root / "logs"):
                folder.mkdir(exist_ok=True)
            self.last_used.touch()
        except OSError as error:
            problem = f"the state directory cannot be made: {error}; choose another with SENNIT_STATE"
            raise LocalStackFailed(problem) from error

    def try_lock(self, name: Literal["start", "supervisor"], patience: float = 0.0) -> FileLock | None:
        """Return the lock, held until it is released, or None if another holds it for `patience` seconds longer."""
        lock = FileLock(self.root / f"{name}.lock", mode=0o600)
        try:
            lock.acquire(timeout=patience)
        except Timeout:
            return None
        return lock

    def running(self) -> bool:
        """Return whether a supervisor is alive, whatever its record says."""
        if not self.root.exists():
            return False
        lock = self.try_lock("supervisor")
        if lock:
            lock.release()
        return lock is None

    def hand_over(self, settings: str) -> bool:
        """Put one line into the mailbox; return whether there was a supervisor to take it, and room."""
        line = f"{settings}\n".encode()
        try:
            pipe = os.open(self.mailbox, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        with os.fdopen(pipe, "wb", buffering=0) as mailbox:
            return mailbox.write(line) == len(line)

    def read(self) -> StackRecord | None:
        """Return the last record written, or None when there is none that can be read."""
        try:
            return StackRecord.model_validate_json(self.record.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, record: StackRecord) -> None:
        """Replace the record at once: a reader sees the old one or the new one."""
        part = self.record.with_suffix(".part")
        part.write_text(record.model_dump_json(indent=2) + "\n")
        part.replace(self.record)
