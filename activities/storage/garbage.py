"""Garbage: what is stored of runs that the Temporal server no longer knows.

Each run prefix has a marker for every run that uses it: its owners. They are there before anything
else is, and are deleted last. So what a crash leaves half deleted is found again.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from pydantic import BaseModel, ValidationError
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.storage.artifacts import MARKERS, ArtifactStore, StoredObject
from sennit.activities.storage.learned import PLACE as LEARNED
from sennit.activities.storage.timings import PLACE
from sennit.workflows.run.subagent import RUN_ID_CHARACTERS


class OriginMissing(Exception):
    """A run that is to be forked has nothing in this store."""


_SUFFIX = ".owner"
_LIMIT = timedelta(seconds=10)
_PLAIN = re.compile(r"[\w.:/ -]*", re.ASCII)


class Owner(BaseModel):
    """A run as Temporal knows it: the id of its namespace, its workflow id, and the
    first run id of its chain.
    """

    namespace: str
    workflow: str
    run: str


async def claim(store: ArtifactStore, run_prefix: str, owner: Owner) -> None:
    """Say that a run uses this prefix, before it stores anything there. Safe to repeat.
    Raises StoreUnavailable.
    """
    await store.mark(run_prefix, f"{owner.run}{_SUFFIX}", owner.model_dump_json().encode())


async def claim_origin(store: ArtifactStore, run_prefix: str, owner: Owner) -> None:
    """Say that a run forks the run that this prefix belongs to, so that what is there is kept
    as long as it is known.

    Raises OriginMissing if it is gone, and StoreUnavailable.
    """
    namespace, _, run = run_prefix.rpartition("/")
    root = run[:RUN_ID_CHARACTERS]
    if await is_claimed(store, run_prefix):
        await claim(store, f"{namespace}/{root}", owner)
    if not await is_claimed(store, run_prefix):
        raise OriginMissing(
            f"what run {root} has stored is gone, so nobody knows what it has written: start a "
            "new run"
        )


async def is_claimed(store: ArtifactStore, run_prefix: str) -> bool:
    """Whether a run's artifacts are there, or those of the run above a sub-agent.
    Raises StoreUnavailable.
    """
    namespace, _, run = run_prefix.rpartition("/")
    root = run[:RUN_ID_CHARACTERS]
    return await store.marked(f"{namespace}/{root}", f"{root}{_SUFFIX}") is not None


@dataclass(slots=True)
class KnownRuns:
    """Asks the server which runs it knows. Every method raises RPCError if it does not say."""

    client: Client
    namespace: str
    retention: float
    _first_runs: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    async def of(cls, client: Client) -> Self:
        """Ask for the namespace of a client: its id, and for how many seconds it
        keeps runs that are over.
        """
        found = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace), timeout=_LIMIT
        )
        return cls(
            client,
            found.namespace_info.id,
            found.config.workflow_execution_retention_ttl.ToSeconds(),
        )

    async def include(self, owner: Owner) -> bool:
        """Whether any run of the owner's chain is there: continued, reset, or another one's
        predecessor by its id.
        """
        if await self._first_run(owner.workflow) == owner.run:
            return True
        plain = _PLAIN.match(owner.workflow)
        start = plain[0] if plain else ""  # a filter does not take every text
        comparison = "=" if start == owner.workflow else "STARTS_WITH"
        query = f"WorkflowId {comparison} '{start}'"
        async for found in self.client.list_workflows(query, rpc_timeout=_LIMIT):
            if found.id != owner.workflow:
                continue
            if found.run_id not in self._first_runs:
                self._first_runs[found.run_id] = await self._first_run(owner.workflow, found.run_id)
            if self._first_runs[found.run_id] == owner.run:
                return True
        return False

    async def _first_run(self, workflow: str, run: str | None = None) -> str | None:
        try:
            found = await self.client.get_workflow_handle(workflow, run_id=run).describe(
                rpc_timeout=_LIMIT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and "namespace" not in error.message.lower():
                return None
            raise
        return found.raw_description.workflow_execution_info.first_run_id


@dataclass(slots=True)
class StoredRun:
    """What a run and its sub-agents have stored. `workflow` names it, once its owners are known."""

    run: str
    objects: list[StoredObject] = field(default_factory=list)
    workflow: str = ""

    @property
    def size(self) -> int:
        return sum(each.size for each in self.objects)

    @property
    def changed(self) -> float:
        """When anything of it was last written."""
        return max(each.changed for each in self.objects)

    def owners(self) -> Iterator[StoredObject]:
        """Yield the markers that name its owners, the topmost run's first."""
        owners: list[StoredObject] = []
        for each in self.objects:
            if each.name.startswith(MARKERS) and each.name.endswith(_SUFFIX):
                owners.append(each)
        yield from sorted(owners, key=lambda owner: len(owner.run_prefix))


async def stored_runs(store: ArtifactStore, namespace: str) -> AsyncIterator[StoredRun]:
    """Yield the runs in a store. Raises StoreUnavailable."""
    run: StoredRun | None = None
    async for each in store.list_objects(namespace):
        root = each.run_prefix.rpartition("/")[2][:RUN_ID_CHARACTERS]
        if root in (PLACE, LEARNED):
            continue
        if run is None or run.run != root:
            if run is not None:
                yield run
            run = StoredRun(root)
        run.objects.append(each)
    if run is not None:
        yield run


async def is_garbage(store: ArtifactStore, stored: StoredRun, known: KnownRuns) -> bool:
    """Whether the server knows none of the runs that use these prefixes, and has known them all.

    What belongs to another server, or to nobody, is no garbage. Raises
    RPCError and StoreUnavailable.
    """
    found = False
    for each in stored.owners():
        text = await store.marked(each.run_prefix, each.name.removeprefix(MARKERS))
        try:
            owner = Owner.model_validate_json(text or b"")
        except ValidationError:
            return False
        if owner.namespace != known.namespace or await known.include(owner):
            return False
        stored.workflow, found = stored.workflow or owner.workflow, True
    # The same server, to the end.
    return found and (await KnownRuns.of(known.client)).namespace == known.namespace


async def delete(store: ArtifactStore, stored: StoredRun) -> None:
    """Delete all of it, the markers of owners last. Raises StoreUnavailable."""
    owners = list(stored.owners())
    contents = [each for each in stored.objects if each not in owners]
    await _delete_objects(store, contents)
    await _delete_objects(store, reversed(owners))


async def _delete_objects(store: ArtifactStore, objects: Iterable[StoredObject]) -> None:
    """Delete objects, those of one prefix together."""
    names: dict[str, list[str]] = {}
    for each in objects:
        names.setdefault(each.run_prefix, []).append(each.name)
    for run_prefix, some in names.items():
        await store.delete(run_prefix, some)
