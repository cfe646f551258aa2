"""What a script was told, entry by entry: all that it takes to have it stand where it
stood, in another process.

An entry is what a call was answered at once, or how a call ended. The workflow's store keeps older
entries in parts; each part is longer than all that follow it, so that an advance stores little and
a replay reads few of them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from sennit.workflows.plan.language.text import text_bytes

Entry = dict[str, Any]
"""`{}` for a call that is open, `{"value": ...}` or `{"error": [type, message]}` for one that was
answered at once, or `{"end": [number, value, error, clock]}`.
"""
END: Final = "end"
_MESSAGE_ENTRIES: Final = 2_000
"""Of one message of a replay."""
_MESSAGE_BYTES: Final = 1_000_000
"""Of one message of a replay, beside its last entry: what a script has dropped must not
lie there all at once.
"""


class StoredPart(NamedTuple):
    """Entries in the store: the digest of their body, how many they are,
    and its length in bytes.
    """

    digest: str
    entries: int
    size: int


class _Link(NamedTuple):
    """The entries of one advance, behind those of the advances before it."""

    before: "_Link | None"
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """The entries of a session so far. Records share what they have in common, so that
    each advance can keep one.
    """

    stored: tuple[StoredPart, ...] = ()
    lacks_values: bool = False
    """Whether long values of the entries in memory are in the store."""
    _last: _Link | None = None

    @classmethod
    def of(cls, stored: Sequence[StoredPart], recent: Sequence[Entry]) -> "Record":
        """Return a record of parts in the store and what follows them."""
        return cls(tuple(stored)).and_then(recent)

    def and_then(self, entries: Sequence[Entry]) -> "Record":
        """Return the record with more entries."""
        if not entries:
            return self
        return replace(self, _last=_Link(self._last, tuple(entries)))

    @property
    def recent(self) -> list[Entry]:
        """The entries behind those that are stored."""
        links = list[_Link]()
        link = self._last
        while link is not None:
            links.append(link)
            link = link.before
        entries = list[Entry]()
        for link in reversed(links):
            entries += link.entries
        return entries

    @property
    def is_whole(self) -> bool:
        """Whether all entries are in memory."""
        return not self.stored and not self.lacks_values

    def messages(self) -> Iterator[list[Entry]]:
        """Yield the entries of a whole record, in pieces after each of which the script waits."""
        piece = list[Entry]()
        size = 0
        for entry in self.recent:
            is_long = len(piece) >= _MESSAGE_ENTRIES or size >= _MESSAGE_BYTES
            if END in entry and is_long:
                yield piece
                piece = []
                size = 0
            piece.append(entry)
            size += text_bytes(json.dumps(entry))
        yield piece
