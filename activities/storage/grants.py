"""What the user of a local stack allows runs, as a client has written it into the state directory.

A run's input says what a run wants. It allows nothing, because whoever reaches the server can write it, and read that
of other runs. So a run that may write without asking shows a secret that its client has made for it alone. The first
run that shows it has it to itself; who reads it later has nothing.
"""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock
from pydantic import BaseModel, ValidationError

UNCLAIMED_SECONDS = 3_600.0
"""How long a secret waits for the run that it was made for."""


class Chain(NamedTuple):
    """A run with all that it continues as: its workflow id and its first run id, which only the server gives."""

    workflow: str
    first_run: str


class _WriteGrant(BaseModel):
    """A run of that workflow id may write without asking: the first one to show what has this hash, from then on `run`.
    `made` is a Unix time.
    """

    secret: str
    workflow: str
    made: float
    run: str = ""

    def may_be_claimed(self, by: Chain, secret: str) -> bool:
        fresh = time.time() < self.made + UNCLAIMED_SECONDS
        return not self.run and fresh and self.workflow == by.workflow and self.secret == _hash(secret)


class _Written(BaseModel):
    docs: tuple[Path, ...] = ()
    writes: tuple[_WriteGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants in a file, as it is now; none without a file, or if others than its owner can write it."""

    path: Path | None

    @property
    def docs(self) -> tuple[Path, ...]:
        return self._read().docs

    def may_write(self, run: Chain, secret: str = "") -> bool:
        """Whether the writes of a run, and of its sub-agents, need no approval.

        The first run that shows a secret claims it, and keeps it however often it asks, also after a crash and a reset.
        Of several at once, one does. To all others the secret says nothing. Raises OSError if that cannot be noted.
        """
        if self.path is None or not self.path.exists():
            return False
        with FileLock(self.path.with_suffix(".lock"), mode=0o600):
            written = self._read()
            if any(each.run == run.first_run and each.workflow == run.workflow for each in written.writes):
                return True
            claimed = [
                each.model_copy(update={"run": run.first_run}) if each.may_be_claimed(run, secret) else each
                for each in written.writes
            ]
            if claimed == list(written.writes):
                return False
            self._replace(self.path, written.model_copy(update={"writes": tuple(claimed)}))
            return True

    def _read(self) -> _Written:
        try:
            if self.path is not None and not self.path.stat().st_mode & 0o022:
                return _Written.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            pass
        return _Written()

    def _replace(self, path: Path, written: _Written) -> None:
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with open(part, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump(written.model_dump(mode="json"), file, indent=2)
        part.replace(path)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
