"""The record of what a script was told, between the session that is stored and the
interpreter that takes it.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from sennit.activities.limits import (
    MAX_RECORD_BYTES,
    MAX_RECORD_ENTRIES,
    MAX_RECORD_PART_BYTES,
    MAX_RECORD_VALUE_BYTES,
)
from sennit.activities.programs.progress import Snapshot, Standing
from sennit.activities.programs.replay_record import END, Entry, Record, StoredPart
from sennit.activities.programs.session import Session
from sennit.activities.storage.artifacts import decode, digest_of, encode
from sennit.activities.storage.run_context import ArtifactReader

_LARGE: Final = "large"
"""The key of the digest of a value, in an entry that lacks the value."""
_VALUE: Final = 1
"""The place of the value in an end."""


def snapshot_of(session: Session) -> Snapshot:
    """Return where a stored session waits; of the record it has what is in the session."""
    lacks_values = any(_LARGE in entry for entry in session.record)
    record = Record.of(session.parts, session.record)
    record = replace(record, lacks_values=lacks_values)
    return Snapshot(Standing.of_stored(session.waiting), record)


async def keep(
    session: Session,
    snapshot: Snapshot,
    library: ArtifactReader,
    run_prefix: str,
    bodies: dict[str, bytes],
) -> Snapshot:
    """Write into a session where it waits, and return that as this worker keeps it. What must be
    stored with the session is added to `bodies`.

    Each part of the record is longer than all that follow it, as far as parts may be long: so
    a call is stored anew O(log n) times in all, and a replay reads few parts. Raises
    BodyMissing, StoreUnavailable.
    """
    entries = [_without_large_value(entry, bodies) for entry in snapshot.record.recent]
    parts = list(snapshot.record.stored)
    body = encode(entries)
    if len(entries) > MAX_RECORD_ENTRIES or len(body) > MAX_RECORD_BYTES:
        while parts:
            latest = parts[-1]
            is_longer = latest.entries > len(entries)
            is_full = latest.size + len(body) > MAX_RECORD_PART_BYTES
            if is_longer or is_full:
                break
            parts.pop()
            earlier = await _entries_of(library, run_prefix, latest, bodies)
            entries = [*earlier, *entries]
            body = encode(entries)
        digest = digest_of(body)
        parts.append(StoredPart(digest, len(entries), len(body)))
        bodies[digest] = body
        entries = []
    session.parts = parts
    session.record = entries
    session.waiting = snapshot.standing.as_stored()
    # In memory, too, what is in the store is not kept.
    kept = snapshot_of(session)
    return replace(snapshot, record=kept.record, start=None)


async def whole_record(record: Record, library: ArtifactReader, run_prefix: str) -> Record:
    """Return a record with all that is in the store. Raises BodyMissing, StoreUnavailable."""
    reads = [_entries_of(library, run_prefix, part, {}) for part in record.stored]
    entries = list[Entry]()
    for part in await asyncio.gather(*reads):
        entries += part
    entries += record.recent

    # Long values are stored by themselves.
    places = list[int]()
    fills = list[Coroutine[Any, Any, Entry]]()
    for place, entry in enumerate(entries):
        if _LARGE in entry:
            places.append(place)
            fills.append(_with_value(entry, library, run_prefix))
    filled = await asyncio.gather(*fills)
    for place, entry in zip(places, filled, strict=True):
        entries[place] = entry
    return Record.of((), entries)


async def _entries_of(
    library: ArtifactReader, run_prefix: str, part: StoredPart, bodies: dict[str, bytes]
) -> Sequence[Entry]:
    if part.digest in bodies:
        return list[Entry](decode(bodies[part.digest]))
    return list[Entry](await library.shared(run_prefix, part.digest))


def _without_large_value(entry: Entry, bodies: dict[str, bytes]) -> Entry:
    """Return an entry with the digest of its value in the place of a long one."""
    if END not in entry or _LARGE in entry:
        return entry
    body = encode(entry[END][_VALUE])
    if len(body) <= MAX_RECORD_VALUE_BYTES:
        return entry
    digest = digest_of(body)
    bodies[digest] = body
    number, _, error, clock = entry[END]
    return {END: [number, None, error, clock], _LARGE: digest}


async def _with_value(entry: Entry, library: ArtifactReader, run_prefix: str) -> Entry:
    value = await library.value(run_prefix, entry[_LARGE])
    number, _, error, clock = entry[END]
    return {END: [number, value, error, clock]}
