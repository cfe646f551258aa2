"""The record of what a script was told, between the session that is stored and the interpreter that takes it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

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
    record = replace(Record.of(session.parts, session.record), lacks_values=lacks_values)
    return Snapshot(Standing.of_stored(session.waiting), record)


async def keep(
    session: Session, snapshot: Snapshot, library: ArtifactReader, run_prefix: str, bodies: dict[str, bytes]
) -> Snapshot:
    """Write into a session where it waits, and return that as this worker keeps it. What must be stored with the
    session is added to `bodies`.

    Each part of the record is longer than all that follow it, as far as parts may be long: so a call is stored anew
    O(log n) times in all, and a replay reads few parts. Raises BodyMissing, StoreUnavailable.
    """
    entries = [_without_large_value(entry, bodies) for entry in snapshot.record.recent]
    parts = list(snapshot.record.stored)
    body = encode(entries)
    if len(entries) > MAX_RECORD_ENTRIES or len(body) > MAX_RECORD_BYTES:
        while parts and parts[-1].entries <= len(entries) and parts[-1].size + len(body) <= MAX_RECORD_PART_BYTES:
            earlier = await _entries_of(library, run_prefix, parts.pop(), bodies)
            entries = [*earlier, *entries]
            body = encode(entries)
        parts.append(StoredPart(digest_of(body), len(entries), len(body)))
        bodies[parts[-1].digest] = body
        entries = []
    session.parts, session.record = parts, entries
    session.waiting = snapshot.standing.as_stored()
    # In memory, too, what is in the store is not kept.
    kept = snapshot_of(session)
    return replace(snapshot, record=kept.record, start=None)


async def whole_record(record: Record, library: ArtifactReader, run_prefix: str) -> Record:
    """Return a record with all that is in the store. Raises BodyMissing, StoreUnavailable."""
    parts = [_entries_of(library, run_prefix, part, {}) for part in record.stored]
    stored = await asyncio.gather(*parts)
    entries = [entry for part in (*stored, record.recent) for entry in part]
    values = [_with_value(entry, library, run_prefix) for entry in entries if _LARGE in entry]
    filled = iter(await asyncio.gather(*values))
    return Record.of((), [next(filled) if _LARGE in entry else entry for entry in entries])


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
