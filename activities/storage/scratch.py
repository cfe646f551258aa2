"""A store for a dry run: what is written to it stays in memory, and what it reads comes from there
or from the store that it stands before.
"""

import time
from collections.abc import AsyncIterator, Sequence

from sennit.activities.limits import MAX_SCRATCH_BYTES
from sennit.activities.storage.artifacts import (
    MARKERS,
    ArtifactStore,
    BodyMissing,
    StoredObject,
    body_in,
    body_of,
    digest_of,
)


class ScratchFull(Exception):
    """A dry run would keep more in memory than it may."""


class ScratchStore:
    """Looks like the `store` with all that was written here since, and changes nothing in it.

    So code that stores bodies, sets markers and claims writes can run, and leaves no trace
    when this object is gone.
    """

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._markers: dict[tuple[str, str], bytes | None] = {}
        """None for a marker of the store that was taken back here."""
        self._size = 0

    def create(self) -> bool:
        """Create nothing."""
        return False

    async def identify(self) -> str:
        """Return the id of the store. Raises StoreUnavailable."""
        return await self._store.identify()

    async def put(self, run_prefix: str, body: bytes) -> str:
        """Keep `body` here and return its digest. Raises ScratchFull."""
        digest = digest_of(body)
        if (run_prefix, digest) not in self._bodies:
            self._grow(len(body))
            self._bodies[run_prefix, digest] = body
        return digest

    async def get(self, run_prefix: str, reference: str) -> bytes:
        """Return the body. Raises BodyMissing or StoreUnavailable."""
        digest, _, key = reference.partition(".")
        if not key:
            kept = self._bodies.get((run_prefix, digest))
            if kept is not None:
                return kept
            return await self._store.get(run_prefix, reference)
        marker = self._markers.get((run_prefix, key))
        if marker is None:
            return await self._store.get(run_prefix, reference)
        body = body_of(reference, marker)
        if body is None:
            raise BodyMissing(f"the body {reference} under {run_prefix} is another one")
        return body

    def place(self, run_prefix: str, reference: str) -> str:
        """Return where the body would lie."""
        return self._store.place(run_prefix, reference)

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        """Set a marker here unless it is set, and return what it holds. Raises
        StoreUnavailable, ScratchFull.
        """
        known = await self.marked(run_prefix, key)
        if known is not None:
            return known
        await self.replace_marker(run_prefix, key, body)
        return body

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        """Return what a marker holds, or None. Raises StoreUnavailable."""
        if (run_prefix, key) in self._markers:
            return self._markers[run_prefix, key]
        return await self._store.marked(run_prefix, key)

    async def has(self, run_prefix: str, reference: str) -> bool:
        """Whether a body, or the marker that has it, is there. Raises StoreUnavailable."""
        digest, _, key = reference.partition(".")
        if not key and (run_prefix, digest) in self._bodies:
            return True
        marker = self._markers.get((run_prefix, key))
        if key and marker is not None:
            return bool(body_in(marker))
        return await self._store.has(run_prefix, reference)

    async def unmark(self, run_prefix: str, key: str) -> None:
        """Take a marker back, here alone."""
        self._markers[run_prefix, key] = None

    async def replace_marker(self, run_prefix: str, key: str, body: bytes) -> None:
        """Set a marker here whatever it holds. Raises ScratchFull."""
        self._grow(len(body))
        self._markers[run_prefix, key] = body

    async def list_objects(self, namespace: str, run: str = "") -> AsyncIterator[StoredObject]:
        """Yield what lies in the store, and then the markers that were set here.
        Raises StoreUnavailable.
        """
        known = dict[tuple[str, str], bool]()
        async for found in self._store.list_objects(namespace, run):
            known[found.run_prefix, found.name] = True
            yield found
        for (run_prefix, key), body in list(self._markers.items()):
            name = f"{MARKERS}{key}"
            if run:
                is_wanted = run_prefix == f"{namespace}/{run}"
            else:
                is_wanted = run_prefix.startswith(f"{namespace}/")
            if body is not None and is_wanted and (run_prefix, name) not in known:
                yield StoredObject(run_prefix, name, len(body), time.time())

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        """Delete nothing of the store, and forget what was put here under these names."""
        for name in names:
            self._bodies.pop((run_prefix, name), None)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_SCRATCH_BYTES:
            raise ScratchFull(f"it would keep more than {MAX_SCRATCH_BYTES >> 20} MiB of results")
