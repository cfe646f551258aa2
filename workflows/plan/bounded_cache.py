"""The one cache of the project: it keeps what was used last, up to a bound in bytes.

A plan, a script or a server decides how large values are, so a bound on their number is none on a
worker's memory. The bounds stand in the `limits.py` of each layer; docs/operations.md lists them.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass

# Workflow tasks run in several threads, and share what a cache of this process keeps.
from threading import Lock
from typing import Any, Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRY_BYTES: Final = 400
"""Of an entry beside its key and value, so that empty values are bounded too."""
_OBJECT_BYTES: Final = 32
"""Of an object beside what Python says of it: what the garbage collector and the allocator take."""
_DECODED_VALUE_BYTES: Final = 200
"""Of a value or a field in decoded JSON, beside its text: an empty object with
its place in another one.
"""


class BoundedCache(Generic[Key, Value]):
    """Keeps values by their keys until they take more than `max_bytes`: then those go first that
    were used longest ago.

    `size_of` says how many bytes a value takes; without it, the value is plain data and is
    measured. A value that is larger than the bound is not kept at all. Threads may share a cache.
    Nothing depends on whether a value is kept but the time to make it again.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int] | None = None) -> None:
        self.max_bytes = max_bytes
        self._size_of = size_of or memory_of
        self._entries: OrderedDict[Key, tuple[int, Value]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """What all that is kept takes, with its keys."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Value | None:
        """Return the value that is kept for a key, None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value instead of the one that the key has, as far as it fits."""
        size = ENTRY_BYTES + memory_of(key) + self._size_of(value)
        with self._lock:
            self._drop(key)
            if size > self.max_bytes:
                return
            self._entries[key] = size, value
            self._bytes += size
            while self._bytes > self.max_bytes:
                self._drop(next(iter(self._entries)))

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value that is kept for a key, or the one that is made now. Two
        threads may both make it.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[1]
        # A value takes long to make, and may need the same cache: nobody waits for
        # it with the lock held.
        value = make()
        self.put(key, value)
        return value

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[0]


def memory_of(value: Any) -> int:
    """Return how many bytes plain data takes: texts, numbers, and what is made of them. What
    several parts share counts for each of them; of any other object only its head counts.
    """
    size: int = value.__sizeof__() + _OBJECT_BYTES
    if isinstance(value, str | bytes | int | float | bool | None):
        return size
    if isinstance(value, Mapping):
        return size + sum(memory_of(key) + memory_of(part) for key, part in value.items())
    if isinstance(value, tuple | list | set | frozenset):
        return size + sum(map(memory_of, value))
    if is_dataclass(value):
        return size + sum(memory_of(getattr(value, field.name)) for field in fields(value))
    return size


def decoded_bytes(body: bytes) -> int:
    """Return at least how many bytes JSON takes once it is decoded, without decoding it.

    Each value stands behind a bracket, a comma or a colon. A text takes up to four bytes for each
    character if one of them is beyond Latin-1.
    """
    values = 1 + sum(body.count(mark) for mark in (b"[", b"{", b",", b":"))
    width = 1 if body.isascii() and b"\\u" not in body else 4
    return width * len(body) + _DECODED_VALUE_BYTES * values
