"""The search index: one SQLite file per state of the documents, complete or absent.

A file is built under a name of its own and renamed into place, so a killed builder leaves no index that can be
opened, and concurrent builders only do the same work twice. Its name is a digest of what it holds: any change
of the documents asks for another file.
"""

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from sennit.activities.limits import (
    MAX_INDEXED_BYTES,
    MAX_KEPT_INDEX_FILES_BYTES,
    MAX_KEPT_INDEXES_BYTES,
    MAX_NAMED_FILES,
)
from sennit.activities.toolbox.errors import DocumentUnreadable, IndexUnusable, ToolError
from sennit.activities.toolbox.files.documents import SEARCHABLE, most_bytes, passages, readable_text
from sennit.activities.toolbox.files.pdf import PdfTexts, can_read_pdf, remove_unused
from sennit.activities.toolbox.paths import FoundFile, open_inside, scan
from sennit.workflows.plan.bounded_cache import BoundedCache

_FORMAT: Final = "3"
_SETTLED_NS: Final = 2_000_000_000
_KEPT: Final = 4
_ABANDONED_SECONDS: Final = 3600
_SCHEMA: Final = """
CREATE VIRTUAL TABLE passages USING fts5(
    title, heading, text, path UNINDEXED,
    tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE TABLE unread (path, reason);
CREATE TABLE taken (path, encoding)
"""


@dataclass(frozen=True, slots=True)
class _Known:
    files: tuple[FoundFile, ...]
    index: Path


_known = BoundedCache[tuple[Path, Path], _Known](MAX_KEPT_INDEXES_BYTES)
_building = threading.Lock()


def current_index(root: Path, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the index of the documents below `root` as they are now, building it when there is none.

    Unchanged file attributes prove unchanged content only once they are older than the clock's grain; until
    then content is compared. Raises TooManyFiles or IndexUnusable.
    """
    started = time.time_ns()
    files = tuple(file for file in scan(root) if file.path.lower().endswith(SEARCHABLE))
    known = _known.get((root, cache))
    if known and known.files == files and known.index.exists():
        return known.index
    with _building:
        index = _index_path(root, cache, _digest(root, files))
        if not index.exists():
            index = _build(root, cache, files)
            progress(f"indexed {len(files)} documents")
        if all(file.changed_ns < started - _SETTLED_NS for file in files):
            _known.put((root, cache), _Known(files, index))
    return index


def open_index(index: Path) -> sqlite3.Connection:
    """Open a complete index for reading; raises sqlite3.DatabaseError when it is damaged or gone."""
    return sqlite3.connect(f"{index.as_uri()}?mode=ro&immutable=1", uri=True)


def shortcomings(index: Path) -> list[str]:
    """Return what a run should know of documents that are not in the index, or may be wrong there. Raises
    sqlite3.DatabaseError.
    """
    found = []
    with closing(open_index(index)) as connection:
        unread = [reason for (reason,) in connection.execute("SELECT reason FROM unread ORDER BY path")]
        rows = connection.execute("SELECT path, encoding FROM taken ORDER BY path")
        taken = [f"{path} as {name}" for path, name in rows]
    if unread:
        found.append(f"{len(unread)} of the documents could not be read and were not searched: {_some(unread)}")
    if taken:
        found.append(f"{len(taken)} of the documents are not UTF-8 and do not say what they are; read: {_some(taken)}")
    return found


def _some(texts: list[str]) -> str:
    more = f", and {len(texts) - MAX_NAMED_FILES} more" if len(texts) > MAX_NAMED_FILES else ""
    return ", ".join(texts[:MAX_NAMED_FILES]) + more


def discard_index(index: Path) -> None:
    """Remove a damaged index, so that the next call builds it again."""
    with suppress(OSError):
        index.unlink(missing_ok=True)


def _index_path(root: Path, cache: Path, digest: str) -> Path:
    place = blake2b(os.fsencode(root), digest_size=6).hexdigest()
    return cache.resolve() / "search" / f"{place}-{digest}.db"


def _digest(root: Path, files: Sequence[FoundFile]) -> str:
    state = _new_digest()
    for file, content in _contents(root, files):
        _add(state, file, content)
    return state.hexdigest()


def _new_digest() -> blake2b:
    return blake2b(f"{_FORMAT} {can_read_pdf()}".encode(), digest_size=16)


def _add(state: blake2b, file: FoundFile, content: bytes) -> None:
    state.update(f"{file.path}\0{file.size}\0".encode() + blake2b(content).digest())


def _contents(root: Path, files: Sequence[FoundFile]) -> Iterator[tuple[FoundFile, bytes]]:
    """Yield the content of each file as far as it is indexed; a file that vanished or may not be read is left out."""
    for file in files:
        with suppress(ToolError), open_inside(root, file.path) as opened:
            yield file, opened.read(most_bytes(file.path, MAX_INDEXED_BYTES))


def _build(root: Path, cache: Path, files: Sequence[FoundFile]) -> Path:
    """Build an index and name it by what was read now, which may be newer than what the caller saw."""
    folder = _index_path(root, cache, "").parent
    unfinished = folder / f"building-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        texts = PdfTexts(cache / "pdf")
        index = _index_path(root, cache, _write(unfinished, root, files, texts))
        unfinished.chmod(cache.stat().st_mode & 0o644)
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(index)
        _remove_old(folder, index.name.split("-")[0])
    except (OSError, sqlite3.Error) as error:
        raise IndexUnusable(f"the search index cannot be written: {error}", retryable=True) from error
    finally:
        discard_index(unfinished)
    return index


def _write(unfinished: Path, root: Path, files: Sequence[FoundFile], texts: PdfTexts) -> str:
    state = _new_digest()
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;" + _SCHEMA)
        for file, content in _contents(root, files):
            _add(state, file, content)
            try:
                document = readable_text(file.path, content, whole=len(content) == file.size, of_pdf=texts.of)
            except DocumentUnreadable as problem:
                connection.execute("INSERT INTO unread VALUES (?, ?)", (file.path, str(problem)))
                continue
            if document.is_taken_for:
                connection.execute("INSERT INTO taken VALUES (?, ?)", (file.path, document.encoding))
            rows = [(document.title, passage.heading, passage.text, file.path) for passage in passages(document)]
            connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        connection.execute("COMMIT")
    return state.hexdigest()


def _remove_old(folder: Path, place: str) -> None:
    """Remove indexes of former states and what killed builders left; whoever has one open keeps it."""
    with suppress(OSError):
        aged = sorted(folder.glob(f"{place}-*.db"), key=lambda path: path.stat().st_mtime_ns)
        for path in aged[:-_KEPT]:
            path.unlink(missing_ok=True)
        remove_unused(folder.glob("*.db"), MAX_KEPT_INDEX_FILES_BYTES)
        for path in folder.glob("building-*"):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
