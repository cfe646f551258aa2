"""What the user of a local stack allows runs: the file `grants.json` of a state directory,
which its workers read.

A folder that was named with `--docs` is open to every run. To write without asking, or to bring
programs that are trusted, is allowed to one run: the file has the hash of a secret that only this
run's input has, and the worker that opens the run notes its id there.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.dev.private_file import replace_file
from sennit.starter.limits import MAX_GRANTED_FOLDERS
from sennit.workflows.messages.write_grants import Permission, WriteGrant, WrittenGrants, hash_of


class GrantFile:
    """The grants of a stack. Clients, workers and the supervisor change it, one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open_folder(self, folder: str) -> None:
        """Let the runs of this stack read a folder, or a file that is attached to one."""
        with self._changing() as granted:
            folders = [known for known in granted.docs if known != folder]
            folders.append(folder)  # the latest last: the first ones go when there is no room
            granted.docs = tuple(folders[-MAX_GRANTED_FOLDERS:])

    def allow(self, workflow: str, *permissions: Permission) -> str:
        """Return a secret. The run of that id that shows it first, within an hour,
        has these permissions.
        """
        secret = secrets.token_urlsafe(24)
        grant = WriteGrant(
            secret=hash_of(secret), workflow=workflow, made=time.time(), allows=permissions
        )
        with self._changing() as granted:
            granted.writes = (*granted.writes, grant)
        return secret

    async def sweep(self, is_over: Callable[[WriteGrant], Awaitable[bool]]) -> None:
        """Drop the grants that no run came for within an hour, and those of runs that are over."""
        writes = self._read().writes
        ended: set[str] = set()
        has_unclaimed = False
        for grant in writes:
            if not grant.run:
                has_unclaimed = True
            elif await is_over(grant):
                ended.add(grant.secret)
        if ended or has_unclaimed:
            with self._changing() as granted:
                granted.writes = tuple(
                    grant for grant in granted.writes if grant.secret not in ended
                )

    @contextmanager
    def _changing(self) -> Iterator[WrittenGrants]:
        with FileLock(self._path.with_suffix(".lock"), mode=0o600):
            granted = self._read()
            now = time.time()
            valid: list[WriteGrant] = []
            for grant in granted.writes:
                if grant.run or grant.may_be_claimed(now):
                    valid.append(grant)
            granted.writes = tuple(valid)
            yield granted
            replace_file(self._path, granted.model_dump_json(indent=2))

    def _read(self) -> WrittenGrants:
        """Return what was written; nothing if that cannot be read."""
        try:
            return WrittenGrants.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return WrittenGrants()


async def is_over(client: Client, grant: WriteGrant) -> bool:
    """Whether the run has ended that claimed a grant, with all that it continued as, as
    far as the server says.
    """
    try:
        found = await client.get_workflow_handle(grant.workflow).describe()
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    same_run = found.raw_description.workflow_execution_info.first_run_id == grant.run
    return not same_run or found.status is not WorkflowExecutionStatus.RUNNING
