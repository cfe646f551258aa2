"""The state directory: where the local stack keeps its database, artifacts, logs and the record of itself."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from starter.dev.identity import ProcessIdentity
from starter.dev.lock import FileLock

Phase = Literal["starting", "ready", "stopping", "stopped", "failed"]


class StackRecord(BaseModel):
    """What a stack says of itself to clients; kept after its end for its ports and for clearing what it left."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # another version of Sennit may have written it

    launch: str
    phase: Phase
    detail: str = ""  # what it does now, or why it failed
    misset: bool = False  # whether it failed because settings of its workers are wrong
    foreground: bool = False
    code: str = ""  # digest of the sources it runs
    settings: str = ""  # digest of the environment its workers have
    supervisor: ProcessIdentity
    server: ProcessIdentity | None = None
    worker: ProcessIdentity | None = None
    port: int = 0
    ui_port: int = 0
    namespace: str = "default"

    @property
    def address(self) -> str:
        """HOST:PORT of its Temporal server."""
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        """Where its web UI is."""
        return f"http://127.0.0.1:{self.ui_port}"

    def end_children(self) -> int | None:
        """SIGKILL the server and workers if they still run; the id of one that does not end in ten seconds, or None."""
        for child in (self.worker, self.server):
            if child is not None and not child.kill_group():
                return child.pid
        return None


@dataclass(frozen=True, slots=True)
class StateDir:
    """Paths below one state directory, and the record and locks in it."""

    root: Path

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """$SENNIT_STATE, else $XDG_STATE_HOME/sennit, else ~/.local/state/sennit; nothing is made yet."""
        if environ.get("SENNIT_STATE"):
            return cls(Path(environ["SENNIT_STATE"]).expanduser().absolute())
        base = Path(environ.get("XDG_STATE_HOME") or "")
        return cls((base if base.is_absolute() else Path.home() / ".local" / "state") / "sennit")

    @property
    def database(self) -> Path:
        """The file behind the Temporal server: every run, its history, its schedules."""
        return self.root / "temporal.db"

    @property
    def artifacts(self) -> Path:
        """The directory store for outputs."""
        return self.root / "artifacts"

    @property
    def index(self) -> Path:
        """The search indexes over document folders."""
        return self.root / "index"

    @property
    def profile(self) -> Path:
        """A temporal.toml that leads to this stack's server and nowhere else."""
        return self.root / "temporal.toml"

    @property
    def last_used(self) -> Path:
        """The file whose time of change is the last use by a client."""
        return self.root / "last-used"

    @property
    def start_lock(self) -> FileLock:
        """A new holder of the lock for deciding whether to start, replace or stop a stack."""
        return FileLock(self.root / "start.lock")

    @property
    def supervisor_lock(self) -> FileLock:
        """A new holder of the lock that a supervisor keeps for its whole life."""
        return FileLock(self.root / "supervisor.lock")

    def log(self, name: str) -> Path:
        """The log file of `server`, `worker` or `supervisor`."""
        return self.root / "logs" / f"{name}.log"

    def prepare(self) -> None:
        """Make the directory, for its owner only; OSError if that cannot be."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.artifacts, self.index, self.root / "logs"):
            folder.mkdir(exist_ok=True)

    def touch(self) -> None:
        """Note that a client uses the stack now: an idle stack waits from here."""
        self.last_used.touch()

    def running(self) -> bool:
        """Whether a supervisor is alive, whatever its record says."""
        return self.supervisor_lock.held_by_other()

    def read(self) -> StackRecord | None:
        """The last record written, or None when there is none that can be read."""
        try:
            return StackRecord.model_validate_json((self.root / "stack.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, record: StackRecord) -> None:
        """Replace the record at once: a reader sees the old one or the new one."""
        part = self.root / "stack.json.part"
        part.write_text(record.model_dump_json(indent=2) + "\n")
        part.replace(self.root / "stack.json")
