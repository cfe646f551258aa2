"""What the user of a local stack allows runs: the file `grants.json` of a state directory, which its workers read.

A folder that was named with `--docs` is open to every run. To write without asking is allowed to one run: the file has
the hash of a secret that only this run's input has, and the worker that opens the run notes its id there.
"""

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, Field, ValidationError
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.dev.private_file import replace_file
from sennit.starter.limits import MAX_GRANTED_FOLDERS

UNCLAIMED_SECONDS = 3_600.0


class WriteGrant(BaseModel):
    """A run of that workflow id may write without asking: the first to show the secret of that hash. A worker notes its
    first run id as `run`. `made` is a Unix time.
    """

    secret: str
    workflow: str
    made: float
    run: str = ""


class _Granted(BaseModel):
    docs: list[str] = Field(default_factory=list)
    writes: list[WriteGrant] = Field(default_factory=list)


class GrantFile:
    """The grants of a stack. Clients, workers and the supervisor change it, one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open_folder(self, folder: str) -> None:
        """Let the runs of this stack read a folder, or a file that is attached to one."""
        with self._changing() as granted:
            granted.docs = [*(old for old in granted.docs if old != folder), folder][-MAX_GRANTED_FOLDERS:]

    def allow_writes(self, workflow: str) -> str:
        """Return a secret. The run of that id that shows it first, within an hour, may write without asking."""
        secret = secrets.token_urlsafe(24)
        hashed = hashlib.sha256(secret.encode()).hexdigest()
        with self._changing() as granted:
            granted.writes.append(WriteGrant(secret=hashed, workflow=workflow, made=time.time()))
        return secret

    async def sweep(self, is_over: Callable[[WriteGrant], Awaitable[bool]]) -> None:
        """Drop the grants that no run came for within an hour, and those of runs that are over."""
        writes = self._read().writes
        ended = [each.secret for each in writes if each.run and await is_over(each)]
        if ended or any(not each.run for each in writes):
            with self._changing() as granted:
                granted.writes = [each for each in granted.writes if each.secret not in ended]

    @contextmanager
    def _changing(self) -> Iterator[_Granted]:
        with FileLock(self._path.with_suffix(".lock"), mode=0o600):
            granted = self._read()
            granted.writes = [each for each in granted.writes if each.run or _is_fresh(each)]
            yield granted
            replace_file(self._path, granted.model_dump_json(indent=2))

    def _read(self) -> _Granted:
        """Return what was written; nothing if that cannot be read."""
        try:
            return _Granted.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return _Granted()


def _is_fresh(grant: WriteGrant) -> bool:
    return time.time() < grant.made + UNCLAIMED_SECONDS


async def is_over(client: Client, grant: WriteGrant) -> bool:
    """Whether the run has ended that claimed a grant, with all that it continued as, as far as the server says."""
    try:
        found = await client.get_workflow_handle(grant.workflow).describe()
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    same_run = found.raw_description.workflow_execution_info.first_run_id == grant.run
    return not same_run or found.status is not WorkflowExecutionStatus.RUNNING
