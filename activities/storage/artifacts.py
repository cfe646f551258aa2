"""Where bodies live: outputs, plans and markers of finished nodes, by content, under
the run that made them.

A reference is a digest, valid only below its prefix: `<namespace>/<first run id>`, with a suffix
for a sub-agent of that run. A short output lies in the marker of its node, behind the first line:
its reference has the name of that too. Bodies never change, so a read is either the whole body or
BodyMissing, also after a crash in the middle of a write.
"""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sennit.workflows.plan.digests import DIGEST_CHARACTERS, REFERENCE, digest_in

_REFERENCE = re.compile(REFERENCE)
MARKERS = "done/"
"""What the names of markers begin with. The name of a body is its digest."""
STORE_ID = ".store-id"
"""The object that makes a place a store: it holds the store's id, and is there
as long as the store is.
"""


class BodyMissing(Exception):
    """A digest has no body in this store, or a damaged one."""


class StoreUnavailable(Exception):
    """The store cannot be written or read now, for instance because the disk is full, or because
    its place is not that of the store now. Worth another attempt.
    """


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A body or a marker as it lies in the store, or what a crash has left of one.
    `changed` is the Unix time.
    """

    run_prefix: str
    name: str
    size: int
    changed: float


class ArtifactStore(Protocol):
    """What a store must do; `run_prefix` is a relative path that callers have checked.

    A place without `STORE_ID`, or with another id than the first one seen, is not this
    store: every call raises StoreUnavailable there, and none makes a new store of it but
    `create`. That something is missing is believed only of a place whose id was seen after
    the look, or together with it.
    """

    def create(self) -> bool:
        """Make the place a store, and return whether it was none before. Safe to repeat.
        Raises StoreUnavailable.
        """
        ...

    async def identify(self) -> str:
        """Look now whether the store is there and return its id. Raises StoreUnavailable."""
        ...

    async def put(self, run_prefix: str, body: bytes) -> str:
        """Keep `body` and return its digest. Storing the same body again changes nothing.
        Raises StoreUnavailable.
        """
        ...

    async def get(self, run_prefix: str, reference: str) -> bytes:
        """Return the body. Raises BodyMissing or StoreUnavailable."""
        ...

    def place(self, run_prefix: str, reference: str) -> str:
        """Return where people find the body, as one line."""
        ...

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        """Set a marker unless it is set, and return what it holds: the first writer wins.
        Raises StoreUnavailable.
        """
        ...

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        """Return what a marker holds, or None. Raises StoreUnavailable."""
        ...

    async def has(self, run_prefix: str, reference: str) -> bool:
        """Whether a body, or the marker that has it, is there, unread. Raises StoreUnavailable."""
        ...

    async def unmark(self, run_prefix: str, key: str) -> None:
        """Take a marker back, because what it promises is not there. Raises StoreUnavailable."""
        ...

    async def replace_marker(self, run_prefix: str, key: str, body: bytes) -> None:
        """Set a marker whatever it holds: the last writer wins, and no reader misses it.
        Raises StoreUnavailable.
        """
        ...

    def list_objects(self, namespace: str, run: str = "") -> AsyncIterator[StoredObject]:
        """Yield all that lies in a namespace, or what belongs to one `run` of it, sorted so that
        what belongs to a run and its sub-agents comes in a row: their prefixes begin with the same
        first run id. Raises StoreUnavailable.
        """
        ...

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        """Delete objects of these names; one that is gone already is no error.
        Raises StoreUnavailable.
        """
        ...


def digest_of(body: bytes) -> str:
    """Return the first 160 bits of SHA-256 in hex: enough for one run's bodies, and short enough
    for 10,000 of them in the state that a run hands on.
    """
    return hashlib.sha256(body).hexdigest()[:DIGEST_CHARACTERS]


def is_reference(text: str) -> bool:
    """Whether a text has the form of a reference."""
    return _REFERENCE.fullmatch(text) is not None


def reference_to(body: bytes, key: str) -> str:
    """Return the reference to a body that lies in the marker `key`."""
    return f"{digest_of(body)}.{key}"


def name_of(reference: str) -> str:
    """Return the name of what a body lies in: its digest, or that of a marker."""
    digest, _, key = reference.partition(".")
    if key:
        return f"{MARKERS}{key}"
    return digest


def in_marker(line: bytes, body: bytes) -> bytes:
    """Return a marker with a body in it. The line has no line break."""
    return line + b"\n" + body


def body_in(marker: bytes) -> bytes:
    """Return the body that lies in a marker, b"" if it has none."""
    return marker.partition(b"\n")[2]


def body_of(reference: str, found: bytes) -> bytes | None:
    """Return the body in what lies under the name of a reference, None if it is
    damaged, or another one.
    """
    digest, body = digest_in(reference), found
    if reference != digest:  # it lies in a marker
        body = body_in(found)
    if digest_of(body) != digest:
        return None
    return body


def seen_id(place: str, found: bytes | None, known: str) -> str:
    """Return the id that was found at the place of a store. Raises StoreUnavailable if it is none,
    or not the `known` one; before the first look, that is empty.
    """
    if not found:
        remedy = "bring it back; `sennit setup --store` creates a new one"
        raise StoreUnavailable(
            f"artifact store {place}: there is no {STORE_ID}, so the store is not there: {remedy}"
        )
    store_id = found.decode(errors="replace")
    if known and store_id != known:
        raise StoreUnavailable(
            f"artifact store {place}: another store is there now, {store_id}; this worker has "
            f"{known}"
        )
    return store_id


def encode(value: Any, *, canonical: bool = False) -> bytes:
    """Return a value as JSON without spaces, with its keys in their order; `canonical` with sorted
    keys, so that equal values have equal digests.

    Raises ValueError for NaN and infinities.
    """
    return (_CANONICAL if canonical else _PLAIN).encode(value).encode()


_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True
)


def key_of(value: Any) -> str:
    """Return the digest of a value whatever the order of its keys is: equal
    values have equal ones.
    """
    return digest_of(encode(value, canonical=True))


def decode(body: bytes) -> Any:
    return json.loads(body)
