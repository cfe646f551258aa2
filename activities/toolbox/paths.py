"""Access to the folder of documents: no path, link or race leads out of it.

Hidden names (a leading dot) do not exist for tools. A link to a file is followed if its target is
inside the folder; a link to a folder is not, since the content is found under its own name. A hard
link is a file like any other.
"""

import os
import platform
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from sennit.activities.limits import MAX_DOCUMENT_PATH_CHARACTERS, MAX_DOCUMENTS
from sennit.activities.toolbox.errors import (
    DocsNotFound,
    DocumentNotFound,
    DocumentUnreadable,
    PathRefused,
    TooManyFiles,
)
from sennit.workflows.plan.language.text import nearest_or_known

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file below the root, at the time of the scan."""

    path: str
    """Relative to the root, with forward slashes."""
    size: int
    changed_ns: int
    """The later of modification and status change; a program cannot set it back."""
    inode: int


def documents_root(docs: Path | None) -> Path:
    """Return the resolved folder of documents; raises DocsNotFound naming folder and worker."""
    if docs is None:
        raise DocsNotFound("no documents: name a folder with --docs")
    try:
        root = docs.resolve(strict=True)
        if root.is_dir() and os.access(root, os.R_OK | os.X_OK):
            return root
        problem = "is no readable folder"
    except (OSError, RuntimeError, ValueError):
        problem = "does not exist"
    raise DocsNotFound(
        f"the documents folder {str(docs)!r} {problem} on worker {platform.node()} (pid "
        f"{os.getpid()})"
    )


def scan(root: Path) -> list[FoundFile]:
    """Return every regular file below `root`, sorted by path; raises TooManyFiles above 20,000."""
    return scan_with_gaps(root)[0]


def scan_with_gaps(root: Path) -> tuple[list[FoundFile], list[str]]:
    """Return what `scan` does, and the folders that this worker may not read, so that
    nobody takes them for empty.
    """
    files: list[FoundFile] = []
    closed: list[str] = []
    folders = [""]
    while folders:
        prefix = folders.pop()
        try:
            entries = _entries(root / prefix)
        except PermissionError:
            closed.append(prefix)
            continue
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(path + "/")
            elif status := _regular_file(root, entry):
                changed = max(status.st_mtime_ns, status.st_ctime_ns)
                files.append(FoundFile(path, status.st_size, changed, status.st_ino))
        if len(files) > MAX_DOCUMENTS:
            raise TooManyFiles(
                f"more than {MAX_DOCUMENTS:,} files below {root.name!r}; name a smaller folder"
            )
    return sorted(files, key=lambda file: file.path), sorted(closed)


@contextmanager
def open_inside(root: Path, path: str) -> Iterator[BinaryIO]:
    """Open the regular file at `path` below the resolved folder `root` for reading.

    Raises PathRefused for a path that leads out, is hidden or is no regular file, DocumentNotFound
    for one that does not exist, DocumentUnreadable when permissions forbid it.
    """
    inside = _resolve_inside(root, path)
    try:
        folder = open_folder(root, inside.parts[:-1])
        try:
            descriptor = os.open(inside.parts[-1] if inside.parts else ".", _FILE, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise _not_found(root, path) from None
    except PermissionError:
        raise DocumentUnreadable(f"{path!r}: this worker may not read it") from None
    except OSError as error:
        raise PathRefused(f"{path!r} cannot be opened as a file: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PathRefused(f"{path!r} is a folder or a device, not a file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def inner_parts(path: str) -> tuple[str, ...]:
    """Return the names in a relative path. Raises PathRefused when it leads out, is
    hidden, or is no path.
    """
    parts = PurePosixPath(path).parts
    if not parts or len(path) > MAX_DOCUMENT_PATH_CHARACTERS or "\0" in path or "\\" in path:
        raise PathRefused(f"{path[:80]!r} is not the path of a file; write it like notes/a.md")
    if parts[0].startswith("/") or ".." in parts:
        raise PathRefused(f"{path!r} leads out of the folder; paths are relative and without '..'")
    if any(part.startswith(".") for part in parts):
        raise PathRefused(f"{path!r} is hidden; names with a leading dot do not exist for tools")
    return parts


def _resolve_inside(root: Path, path: str) -> Path:
    """Return the path relative to `root` of the real file, without links
    at the time of the call.
    """
    parts = inner_parts(path)
    try:
        real = root.joinpath(*parts).resolve()
    except (OSError, RuntimeError, ValueError):
        raise PathRefused(
            f"{path!r} cannot be followed: its links form a circle or a name is too long"
        ) from None
    if not real.is_relative_to(root):
        raise PathRefused(f"{path!r} is a link that leads out of the documents")
    return real.relative_to(root)


def open_folder(root: Path, parts: Iterable[str], *, create: bool = False) -> int:
    """Open a folder below `root` part by part without following links: a link that is put in
    place meanwhile fails.

    `create` makes the folders that are missing.
    """
    folder = os.open(root, _FOLDER)
    for part in parts:
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _not_found(root: Path, path: str) -> DocumentNotFound:
    known = [file.path for file in scan(root)]
    by_name = {PurePosixPath(each).name: each for each in known}
    same_name = by_name.get(PurePosixPath(path).name)
    if same_name:
        hint = f"; did you mean `{same_name}`?"
    else:
        hint = nearest_or_known(path, known)
    return DocumentNotFound(f"no document {path!r}{hint}")


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [
                each for each in entries if not each.name.startswith(".") and _is_unicode(each.name)
            ]
    except (FileNotFoundError, NotADirectoryError):  # removed since its parent was read
        return []


def _is_unicode(name: str) -> bool:
    """Whether JSON can carry the name; no call can ask for another."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _regular_file(root: Path, entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        if entry.is_symlink() and not Path(entry.path).resolve(strict=True).is_relative_to(root):
            return None
        status = entry.stat()
    except (OSError, RuntimeError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None
