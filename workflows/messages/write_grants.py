"""What the user of a local stack allows runs, as its file has it. Clients write it, and
workers claim what is in it.

A run's input says what a run wants. It allows nothing, because whoever reaches the server can write
it, and read that of other runs. So a run that may write without asking, or whose programs are
trusted, shows a secret that its client has made for it alone. The first run that shows it has it to
itself; who reads it later has nothing.
"""

import hashlib
from typing import Literal

from pydantic import BaseModel

Permission = Literal["writes", "programs"]
"""To write without asking, or to run the programs that the run brings where the
kernel cannot confine them.
"""
UNCLAIMED_SECONDS = 3_600.0
"""How long a secret waits for the run that it was made for."""


class WriteGrant(BaseModel):
    """What a run of that workflow id may do: the first to show the secret of that hash. A worker
    notes its first run id as `run`. `made` is a Unix time.
    """

    secret: str
    workflow: str
    made: float
    run: str = ""
    allows: tuple[Permission, ...] = ("writes",)

    def may_be_claimed(self, now: float) -> bool:
        """Whether no run has claimed it, and one still may."""
        return not self.run and now < self.made + UNCLAIMED_SECONDS


class WrittenGrants(BaseModel):
    """All that is in the file: folders of documents, which are open to every run, and
    what single runs may do.
    """

    docs: tuple[str, ...] = ()
    writes: tuple[WriteGrant, ...] = ()


def hash_of(secret: str) -> str:
    """Return what the file has of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
