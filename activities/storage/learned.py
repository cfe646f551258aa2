"""What runs have called, as it lies beside the artifacts: one object a run, and one
table of patterns a tenant.

It is in a place that belongs to no run, and holds no values: what stands for one is its HMAC, with
a key that the store has for this alone. Whoever reads it takes it for a guess. What is cut off or
made up is passed over and counted, and what is lost is learned again.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sennit.activities.limits import MAX_FRESH_RUNS, MAX_NOTED_CONVERSATIONS
from sennit.activities.storage.artifacts import (
    MARKERS,
    ArtifactStore,
    StoredObject,
    StoreUnavailable,
    encode,
)
from sennit.workflows.plan.learning.patterns import PatternTable, read_table
from sennit.workflows.plan.learning.trajectory import Trajectory, read_trajectory

PLACE: Final = "learned"
"""The prefix below a namespace; no run has this id."""
WAIT_SECONDS: Final = 2.0
"""The longest that a planner waits for what earlier runs teach."""
_KEY: Final = "key"
_RUN, _VALUES, _TABLE = "run", "values", "table"
_NAME: Final = re.compile(
    r"(?P<tenant>[0-9a-f]{16})\.(?:(?P<run>[0-9A-Za-z-]{1,100})\.)?(?P<kind>run|values|table)\Z"
)
_MARK_CHARACTERS: Final = 16
_AT_ONCE: Final = 16
"""Objects that are read side by side."""
log = logging.getLogger("tools")


class Marks:
    """Makes marks of values: equal values have equal ones in one store, and nobody without
    its key can tell which.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: Any) -> str:
        """Return the mark of a JSON value, whatever the order of its keys is."""
        return self._mark(encode(value, canonical=True))

    def of_tenant(self, tenant: str) -> str:
        """Return what names a tenant's objects: a tenant may be called anything,
        and is no file's name.
        """
        return self._mark(b"tenant\0" + tenant.encode())

    def words(self, text: str, most: int) -> tuple[str, ...]:
        """Return the marks of the words of a text, sorted, so that their order tells nothing."""
        words = list(dict.fromkeys(re.findall(r"\w{3,}", text.casefold())))
        marks = [self._mark(b"word\0" + word.encode()) for word in words[:most]]
        return tuple(sorted(marks))

    def _mark(self, body: bytes) -> str:
        return hmac.new(self._key, body, hashlib.sha256).hexdigest()[:_MARK_CHARACTERS]


@dataclass(slots=True)
class Learning:
    """What is known of a tenant's runs: the `table` with the runs beside it, how many objects were
    `ignored`, and the runs whose values were kept on purpose.
    """

    table: PatternTable = field(default_factory=PatternTable)
    fresh: int = 0
    ignored: int = 0
    with_values: int = 0


@dataclass(slots=True)
class Compaction:
    """What was folded into tables: how many runs of how many tenants, and how many
    objects were of no use.
    """

    runs: int = 0
    tenants: int = 0
    ignored: int = 0


@dataclass(slots=True)
class _Objects:
    """The objects of one tenant, by the runs that they are of."""

    runs: dict[str, StoredObject] = field(default_factory=dict)
    values: dict[str, StoredObject] = field(default_factory=dict)
    table: bool = False


class LearnedStore:
    """Notes runs in a store, and reads what they teach."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._keys: dict[str, bytes] = {}

    async def marks(self, namespace: str) -> Marks:
        """Return what makes marks in this namespace. The first one who asks makes the key.
        Raises StoreUnavailable.
        """
        if namespace not in self._keys:
            mine = secrets.token_hex(32).encode()
            self._keys[namespace] = await self._store.mark(_prefix(namespace), _KEY, mine)
        return Marks(self._keys[namespace])

    async def note(
        self, namespace: str, tenant: str, run: Trajectory, values: bytes | None = None
    ) -> None:
        """Keep a run, and what it said if that is to be kept. A run that ends again, after a reset,
        takes the place of its first end. Raises StoreUnavailable.
        """
        marks = await self.marks(namespace)
        owner = marks.of_tenant(tenant)
        body = run.model_dump_json(exclude_defaults=True).encode()
        await self._store.replace_marker(_prefix(namespace), f"{owner}.{run.run}.{_RUN}", body)
        if values is not None:
            await self._store.replace_marker(
                _prefix(namespace), f"{owner}.{run.run}.{_VALUES}", values
            )

    async def read(self, namespace: str, tenant: str, most: int = MAX_FRESH_RUNS) -> Learning:
        """Return what the runs of a tenant teach: the table, and the latest of the
        runs that are in none yet.

        Raises StoreUnavailable.
        """
        marks = await self.marks(namespace)
        owner = marks.of_tenant(tenant)
        objects = (await self._objects(namespace)).get(owner, _Objects())
        found = Learning(with_values=len(objects.values))
        if objects.table:
            found.table = await self._table(namespace, owner, found)
        fresh = _fresh_runs(objects, found.table)
        async for _, run in self._trajectories(namespace, fresh[-most:]):
            if run is None:
                found.ignored += 1
            else:
                found.table.fold(run)
                found.fresh += 1
        return found

    async def hints(self, namespace: str, tenant: str) -> Learning:
        """Return the same for who plans: nothing, if the store is away or slow.
        Nothing waits for it longer.
        """
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await self.read(namespace, tenant)
        except (StoreUnavailable, TimeoutError) as error:
            log.info(
                "what earlier runs teach is not at hand: %s", str(error) or "the store is slow"
            )
            return Learning()

    async def compact(self, namespace: str) -> Compaction:
        """Fold the runs into the tables of their tenants, and delete their
        objects, and those of no use.

        A table is written before the objects in it are deleted, and names them: after a crash in
        between they count once. Two that do it at once may lose what one of them has folded.
        Raises StoreUnavailable.
        """
        done = Compaction()
        for owner, objects in (await self._objects(namespace)).items():
            await self._compact_tenant(namespace, owner, objects, done)
        return done

    async def _compact_tenant(
        self, namespace: str, owner: str, objects: _Objects, done: Compaction
    ) -> None:
        read = Learning()
        table = PatternTable()
        if objects.table:
            table = await self._table(namespace, owner, read)
        table.folded = [name for name in table.folded if name in objects.runs]
        folded = 0
        async for _, run in self._trajectories(namespace, _fresh_runs(objects, table)):
            if run is None:
                read.ignored += 1
            else:
                table.fold(run)
                folded += 1
        done.ignored += read.ignored

        # The table comes first: what is deleted is in it.
        if folded or read.ignored:
            await self._store.replace_marker(_prefix(namespace), f"{owner}.{_TABLE}", table.trim())
        if folded:
            done.runs += folded
            done.tenants += 1
        await self._delete(namespace, list(objects.runs.values()))
        latest = sorted(objects.values.values(), key=lambda each: each.changed)
        await self._delete(namespace, latest[:-MAX_NOTED_CONVERSATIONS])

    async def forget(self, namespace: str, tenant: str) -> int:
        """Delete all that is known of a tenant's runs, and return how many objects there were.
        Raises StoreUnavailable.
        """
        owner = (await self.marks(namespace)).of_tenant(tenant)
        objects = (await self._objects(namespace)).get(owner, _Objects())
        gone = [*objects.runs.values(), *objects.values.values()]
        await self._delete(namespace, gone)
        if objects.table:
            await self._store.unmark(_prefix(namespace), f"{owner}.{_TABLE}")
        return len(gone) + objects.table

    async def conversations(self, namespace: str, tenant: str) -> AsyncIterator[bytes]:
        """Yield what each run has said whose values were kept, the oldest first.
        Raises StoreUnavailable.
        """
        owner = (await self.marks(namespace)).of_tenant(tenant)
        objects = (await self._objects(namespace)).get(owner, _Objects())
        for each in sorted(objects.values.values(), key=lambda each: (each.changed, each.name)):
            body = await self._store.marked(_prefix(namespace), each.name.removeprefix(MARKERS))
            if body is not None:
                yield body

    async def _table(self, namespace: str, owner: str, found: Learning) -> PatternTable:
        """Return the table of a tenant. One that cannot be read is counted, and an
        empty one takes its place.
        """
        table = read_table(await self._store.marked(_prefix(namespace), f"{owner}.{_TABLE}"))
        if table is None:
            found.ignored += 1
            return PatternTable()
        return table

    async def _trajectories(
        self, namespace: str, objects: Sequence[StoredObject]
    ) -> AsyncIterator[tuple[StoredObject, Trajectory | None]]:
        """Yield each object with the run in it, None if there is none that can be read."""
        for first in range(0, len(objects), _AT_ONCE):
            batch = objects[first : first + _AT_ONCE]
            reads: list[Awaitable[bytes | None]] = []
            for each in batch:
                key = each.name.removeprefix(MARKERS)
                reads.append(self._store.marked(_prefix(namespace), key))
            bodies = await asyncio.gather(*reads)
            for each, body in zip(batch, bodies, strict=True):
                if body is not None:  # else somebody has folded it just now
                    await asyncio.sleep(0)  # to read and fold one takes milliseconds
                    yield each, read_trajectory(body)

    async def _objects(self, namespace: str) -> dict[str, _Objects]:
        """Return what lies here, by the marks of tenants. What has another name
        is nobody's, and stays.
        """
        found: dict[str, _Objects] = {}
        async for each in self._store.list_objects(namespace, PLACE):
            name = _NAME.match(each.name.removeprefix(MARKERS))
            if each.run_prefix != _prefix(namespace) or name is None:
                continue
            objects = found.setdefault(name["tenant"], _Objects())
            if name["kind"] == _TABLE:
                objects.table = True
            elif name["run"] is not None:
                of_kind = objects.runs if name["kind"] == _RUN else objects.values
                of_kind[name["run"]] = each
        return found

    async def _delete(self, namespace: str, objects: Sequence[StoredObject]) -> None:
        if objects:
            names = [each.name for each in objects]
            await self._store.delete(_prefix(namespace), names)


def _fresh_runs(objects: _Objects, table: PatternTable) -> list[StoredObject]:
    """Return the runs that are not in the table yet, the oldest first."""
    folded = dict.fromkeys(table.folded)
    fresh = [each for name, each in objects.runs.items() if name not in folded]
    fresh.sort(key=lambda each: each.changed)
    return fresh


def _prefix(namespace: str) -> str:
    return f"{namespace}/{PLACE}"
