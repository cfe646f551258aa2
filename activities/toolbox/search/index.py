"""The search index: one SQLite file per state of the documents, complete or absent.

A file is built under a name of its own and renamed into place, so a killed builder leaves no index
that can be opened, and concurrent builders only do the same work twice. Its name is a digest of
what it holds: any change of the documents asks for another file.
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
    MAX_INDEXED_FOLDER_BYTES,
    MAX_KEPT_INDEX_FILES_BYTES,
    MAX_KEPT_INDEXES_BYTES,
    MAX_NAMED_FILES,
)
from sennit.activities.toolbox.errors import DocumentUnreadable, IndexUnusable, ToolError
from sennit.activities.toolbox.files.documents import (
    SEARCHABLE,
    most_bytes,
    passages,
    readable_text,
)
from sennit.activities.toolbox.files.pdf import PdfTexts, can_read_pdf, remove_unused
from sennit.activities.toolbox.paths import FoundFile, open_inside, scan_with_gaps
from sennit.workflows.plan.bounded_cache import BoundedCache

_FORMAT: Final = "4"
_SETTLED_NS: Final = 2_000_000_000
_KEPT: Final = 4
_ABANDONED_SECONDS: Final = 3600
_SCHEMA: Final = """
CREATE VIRTUAL TABLE passages USING fts5(
    title, heading, text, path UNINDEXED,
    tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE TABLE unread (path, reason);
CREATE TABLE cut (path, size);
CREATE TABLE others (path);
CREATE TABLE taken (path, encoding)
"""


@dataclass(frozen=True, slots=True)
class _Known:
    files: tuple[FoundFile, ...]
    index: Path


_known = BoundedCache[tuple[Path, Path], _Known](MAX_KEPT_INDEXES_BYTES)
_building = threading.Lock()


def current_index(root: Path, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the index of the documents below `root` as they are now, building
    it when there is none.

    Unchanged file attributes prove unchanged content only once they are older than the clock's
    grain; until then content is compared. Raises TooManyFiles or IndexUnusable.
    """
    started = time.time_ns()
    files = _documents(root)
    known = _known.get((root, cache))
    if known and known.files == files and known.index.exists():
        return known.index
    with _building:
        index = _index_path(root, cache, _digest(root, files))
        if not index.exists():
            index = _build(root, cache, files)
            count = sum(map(_is_searchable, files))
            progress(f"indexed {count} documents")
        if all(file.changed_ns < started - _SETTLED_NS for file in files):
            _known.put((root, cache), _Known(files, index))
    return index


def _documents(root: Path) -> tuple[FoundFile, ...]:
    """Return what is below the folder. Of a file that no search reads, and of a folder that
    nobody may read, only the path counts: a log beside the documents must not have them indexed
    again at each of its lines.
    """
    files, closed = scan_with_gaps(root)
    documents: list[FoundFile] = []
    for file in files:
        if _is_searchable(file):
            documents.append(file)
        else:
            documents.append(FoundFile(file.path, 0, 0, 0))
    for prefix in closed:
        documents.append(FoundFile(prefix, 0, 0, 0))
    return tuple(documents)


def _is_searchable(file: FoundFile) -> bool:
    return file.path.lower().endswith(SEARCHABLE)


def _is_closed_folder(file: FoundFile) -> bool:
    return not file.path or file.path.endswith("/")


def open_index(index: Path) -> sqlite3.Connection:
    """Open a complete index for reading; raises sqlite3.DatabaseError when
    it is damaged or gone.
    """
    return sqlite3.connect(f"{index.as_uri()}?mode=ro&immutable=1", uri=True)


@dataclass(frozen=True, slots=True)
class Shortcomings:
    """What a search of an index does not see, in sentences: `not_read` about what it lacks,
    `doubtful` about what may be wrong in it.
    """

    not_read: list[str]
    doubtful: list[str]


def shortcomings(index: Path) -> Shortcomings:
    """Return what a run should know of the documents behind an index. Raises
    sqlite3.DatabaseError.
    """
    cut: list[str] = []
    taken: list[str] = []
    with closing(open_index(index)) as connection:
        unread = _column(connection, "SELECT reason FROM unread ORDER BY path")
        for path, size in connection.execute("SELECT path, size FROM cut ORDER BY path"):
            cut.append(f"{path} ({size:,} bytes)")
        others = _column(connection, "SELECT path FROM others ORDER BY path")
        for path, encoding in connection.execute("SELECT path, encoding FROM taken ORDER BY path"):
            taken.append(f"{path} as {encoding}")

    # Each kind of shortcoming is one sentence.
    not_read: list[str] = []
    doubtful: list[str] = []
    if unread:
        not_read.append(
            f"{len(unread)} of the documents could not be read and were not searched: "
            f"{_some(unread)}"
        )
    if cut:
        most = f"the first {MAX_INDEXED_BYTES >> 20} MiB"
        not_read.append(f"of {len(cut)} of the documents only {most} were searched: {_some(cut)}")
    if others:
        kinds = " ".join(SEARCHABLE)
        not_read.append(
            f"{len(others)} files were not searched, because search reads {kinds}: {_some(others)}"
        )
    if taken:
        doubt = "of the documents are not UTF-8 and do not say what they are; read"
        doubtful.append(f"{len(taken)} {doubt}: {_some(taken)}")
    return Shortcomings(not_read, doubtful)


def _column(connection: sqlite3.Connection, query: str) -> list[str]:
    """Return the only column that a query selects."""
    return [value for (value,) in connection.execute(query)]


def _some(texts: list[str]) -> str:
    more = ""
    if len(texts) > MAX_NAMED_FILES:
        more = f", and {len(texts) - MAX_NAMED_FILES} more"
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


def _add(state: blake2b, file: FoundFile, content: bytes | DocumentUnreadable | None) -> None:
    state.update(f"{file.path}\0{file.size}\0".encode())
    if isinstance(content, bytes):
        state.update(blake2b(content).digest())
    elif content is not None:
        state.update(str(content).encode())


def _contents(
    root: Path, files: Sequence[FoundFile]
) -> Iterator[tuple[FoundFile, bytes | DocumentUnreadable | None]]:
    """Yield the content of each document as far as it is indexed, or why it is not; None for a file
    that no search reads. A file that has vanished is left out.
    """
    left = MAX_INDEXED_FOLDER_BYTES
    for file in files:
        if _is_closed_folder(file):
            yield (
                file,
                DocumentUnreadable(f"the folder {file.path or '.'!r}: this worker may not read it"),
            )
        elif not _is_searchable(file):
            yield file, None
        elif left <= 0:
            most = f"{MAX_INDEXED_FOLDER_BYTES >> 20} MiB, as many as are searched"
            yield file, DocumentUnreadable(f"{file.path!r}: the documents before it have {most}")
        else:
            content = _content(root, file)
            if isinstance(content, bytes):
                left -= len(content)
            if content is not None:
                yield file, content


def _content(root: Path, file: FoundFile) -> bytes | DocumentUnreadable | None:
    """Return the content of a document as far as it is indexed, or why it cannot be read;
    None if it has vanished.
    """
    try:
        with open_inside(root, file.path) as opened:
            return opened.read(most_bytes(file.path, MAX_INDEXED_BYTES))
    except DocumentUnreadable as problem:
        return problem
    except ToolError:
        return None


def _build(root: Path, cache: Path, files: Sequence[FoundFile]) -> Path:
    """Build an index and name it by what was read now, which may be newer
    than what the caller saw.
    """
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
        raise IndexUnusable(
            f"the search index cannot be written: {error}", retryable=True
        ) from error
    finally:
        discard_index(unfinished)
    return index


def _write(unfinished: Path, root: Path, files: Sequence[FoundFile], texts: PdfTexts) -> str:
    state = _new_digest()
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;" + _SCHEMA
        )
        for file, content in _contents(root, files):
            _add(state, file, content)
            if content is None:
                connection.execute("INSERT INTO others VALUES (?)", (file.path,))
            elif isinstance(content, DocumentUnreadable):
                connection.execute("INSERT INTO unread VALUES (?, ?)", (file.path, str(content)))
            else:
                _write_document(connection, file, content, texts)
        connection.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        connection.execute("COMMIT")
    return state.hexdigest()


def _write_document(
    connection: sqlite3.Connection, file: FoundFile, content: bytes, texts: PdfTexts
) -> None:
    """Write the passages of one document, or why it has none."""
    whole = len(content) == file.size
    try:
        document = readable_text(file.path, content, whole=whole, of_pdf=texts.of)
        found = passages(file.path, document, whole=whole)
    except DocumentUnreadable as problem:
        connection.execute("INSERT INTO unread VALUES (?, ?)", (file.path, str(problem)))
        return
    if len(content) == MAX_INDEXED_BYTES < file.size:
        connection.execute("INSERT INTO cut VALUES (?, ?)", (file.path, file.size))
    if document.is_taken_for:
        connection.execute("INSERT INTO taken VALUES (?, ?)", (file.path, document.encoding))
    rows = ((document.title, passage.heading, passage.text, file.path) for passage in found)
    connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)


def _remove_old(folder: Path, place: str) -> None:
    """Remove indexes of former states and what killed builders left; whoever
    has one open keeps it.
    """
    with suppress(OSError):
        aged = sorted(folder.glob(f"{place}-*.db"), key=lambda path: path.stat().st_mtime_ns)
        for path in aged[:-_KEPT]:
            path.unlink(missing_ok=True)
        remove_unused(folder.glob("*.db"), MAX_KEPT_INDEX_FILES_BYTES)
        for path in folder.glob("building-*"):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
