"""What the user of a local stack allows runs, as a client has written it
into the state directory.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock
from pydantic import ValidationError

from sennit.workflows.messages.write_grants import Permission, WriteGrant, WrittenGrants, hash_of


class Chain(NamedTuple):
    """A run with all that it continues as: its workflow id and its first run id, which
    only the server gives.
    """

    workflow: str
    first_run: str


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants in a file, as it is now; none without a file, or if others than
    its owner can write it.
    """

    path: Path | None

    @property
    def docs(self) -> tuple[Path, ...]:
        return tuple(map(Path, self._read().docs))

    def may_write(self, run: Chain, secret: str = "") -> bool:
        """Whether the writes of a run, and of its sub-agents, need no approval. See `_has`
        for what a secret says.
        """
        return self._has("writes", run, secret)

    def may_trust(self, run: Chain, secret: str = "") -> bool:
        """Whether the programs that a run brings are trusted. See `_has` for what a secret says."""
        return self._has("programs", run, secret)

    def _has(self, wanted: Permission, run: Chain, secret: str) -> bool:
        """Whether a run has a permission.

        The first run that shows a secret claims it, and keeps it however often it asks, also after
        a crash and a reset. Of several at once, one does. To all others the secret says nothing.
        Raises OSError if that cannot be noted.
        """
        if self.path is None or not self.path.exists():
            return False
        with FileLock(self.path.with_suffix(".lock"), mode=0o600):
            written = self._read()
            of_run = [grant for grant in written.writes if _is_for(grant, run, wanted)]
            if any(grant.run == run.first_run for grant in of_run):
                return True

            # The run claims what its secret opens, if no other run has done so.
            hashed, now = hash_of(secret), time.time()
            claimed = [
                grant for grant in of_run if grant.secret == hashed and grant.may_be_claimed(now)
            ]
            if not claimed:
                return False
            for grant in claimed:
                grant.run = run.first_run
            self._replace(self.path, written)
            return True

    def _read(self) -> WrittenGrants:
        try:
            if self.path is not None and not self.path.stat().st_mode & 0o022:
                return WrittenGrants.model_validate_json(self.path.read_bytes())
        except (OSError, ValidationError):
            pass
        return WrittenGrants()

    def _replace(self, path: Path, written: WrittenGrants) -> None:
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with open(part, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump(written.model_dump(mode="json"), file, indent=2)
        part.replace(path)


def _is_for(grant: WriteGrant, run: Chain, wanted: Permission) -> bool:
    return grant.workflow == run.workflow and wanted in grant.allows
