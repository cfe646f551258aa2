"""What the user of a local stack allows runs, as its file has it. Clients write it, and workers claim what is in it.

A run's input says what a run wants. It allows nothing, because whoever reaches the server can write it, and read that
of other runs. So a run that may write without asking shows a secret that its client has made for it alone. The first
run that shows it has it to itself; who reads it later has nothing.
"""

import hashlib

from pydantic import BaseModel

UNCLAIMED_SECONDS = 3_600.0
"""How long a secret waits for the run that it was made for."""


class WriteGrant(BaseModel):
    """A run of that workflow id may write without asking: the first to show the secret of that hash. A worker notes its
    first run id as `run`. `made` is a Unix time.
    """

    secret: str
    workflow: str
    made: float
    run: str = ""

    def may_be_claimed(self, now: float) -> bool:
        """Whether no run has claimed it, and one still may."""
        return not self.run and now < self.made + UNCLAIMED_SECONDS


class WrittenGrants(BaseModel):
    """All that is in the file: folders of documents, which are open to every run, and runs that may write."""

    docs: tuple[str, ...] = ()
    writes: tuple[WriteGrant, ...] = ()


def hash_of(secret: str) -> str:
    """Return what the file has of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
