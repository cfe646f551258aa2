"""Where bodies live: outputs, plans and markers of finished nodes, by content, under the run that made them.

A reference is a digest, valid only below its prefix: `<namespace>/<first run id>`, with a suffix for a sub-agent of
that run. Bodies never change, so a read is either the whole body or BodyMissing, also after a crash in the middle of a
write.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

MAX_BODY_BYTES = 16 * 1024 * 1024
DIGEST_CHARACTERS = 40
MARKERS = "done/"
"""What the names of markers begin with. The name of a body is its digest."""


class BodyMissing(Exception):
    """A digest has no body in this store, or a damaged one."""


class StoreUnavailable(Exception):
    """The store cannot be written or read now, for instance because the disk is full. Worth another attempt."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A body or a marker as it lies in the store, or what a crash has left of one. `changed` is the Unix time."""

    run_prefix: str
    name: str
    size: int
    changed: float


class ArtifactStore(Protocol):
    """What a store must do; `run_prefix` is a relative path that callers have checked."""

    store_id: str

    async def put(self, run_prefix: str, body: bytes) -> str:
        """Keep `body` and return its digest. Storing the same body again changes nothing. Raises StoreUnavailable."""
        ...

    async def get(self, run_prefix: str, digest: str) -> bytes:
        """Return the body. Raises BodyMissing or StoreUnavailable."""
        ...

    def place(self, run_prefix: str, digest: str) -> str:
        """Return where people find the body, as one line."""
        ...

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        """Set a marker unless it is set, and return what it holds: the first writer wins. Raises StoreUnavailable."""
        ...

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        """Return what a marker holds, or None."""
        ...

    async def has(self, run_prefix: str, digest: str) -> bool:
        """Whether a body is there, unread."""
        ...

    async def unmark(self, run_prefix: str, key: str) -> None:
        """Take a marker back, because what it promises is not there."""
        ...

    def list_objects(self, namespace: str) -> AsyncIterator[StoredObject]:
        """Yield all that lies in a namespace, sorted so that what belongs to a run and its sub-agents comes in a row:
        their prefixes begin with the same first run id. Raises StoreUnavailable.
        """
        ...

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        """Delete objects of these names; one that is gone already is no error. Raises StoreUnavailable."""
        ...


def digest_of(body: bytes) -> str:
    """Return the first 160 bits of SHA-256 in hex: enough for one run's bodies, and short enough for 10,000 of them
    in the state that a run hands on.
    """
    return hashlib.sha256(body).hexdigest()[:DIGEST_CHARACTERS]


def encode(value: Any, *, canonical: bool = True) -> bytes:
    """Return a value as JSON without spaces, by default with sorted keys, so that equal values have equal digests.

    Raises ValueError for NaN and infinities.
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=canonical, separators=(",", ":"), allow_nan=False).encode()


def decode(body: bytes) -> Any:
    return json.loads(body)
