"""A folder as data: what a workspace is made of, as it is read from a folder and written into one.
Standard library only, because it also runs in the process of the command.

A workspace has plain files and folders. Whatever else code, or a person, may leave in a folder is
refused by its name, so that nothing is kept half: links and devices mean something else on another
machine, and a file with holes takes more room here than where it came from.
"""

import base64
import hashlib
import os
import stat
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sennit.activities.sandbox.output_files import DEEPEST, Entry, entries

MAX_WORKSPACE_BYTES = 32 << 20
"""Of all files of a workspace: a worker holds it in memory, a few times over, while
a call begins and ends.
"""
# Of one of them: it lies in an artifact with others, which has 16 MiB at most.
MAX_WORKSPACE_FILE_BYTES = 8 << 20
# Files and folders of a workspace: each call reads and compares all of them.
MAX_WORKSPACE_ENTRIES = 5_000
# Of the path of one: it is in every list of the workspace's files.
MAX_WORKSPACE_PATH_CHARACTERS = 500
_DIGEST_CHARACTERS = 40
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class FolderRefused(Exception):
    """A folder has what no workspace may have, or too much; the message names the file."""


class File(NamedTuple):
    """A file of a folder. `changed` is when it was last written, in nanoseconds: builds compare
    these times. `digest` is that of its body, which is None where whoever asked knows it.
    """

    path: str
    executable: bool
    changed: int
    size: int
    digest: str
    body: bytes | None = None


class Folder(NamedTuple):
    """All files of a folder, by their paths, and the folders in which there is nothing."""

    files: list[File]
    empty: list[str]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def without_bodies(self) -> "Folder":
        """The same folder for whoever is given the bodies apart."""
        files = [file._replace(body=None) for file in self.files]
        return self._replace(files=files)

    def with_bodies(self, bodies: bytes) -> "Folder":
        """Return the folder with the bodies of its files, which lie one behind the other. Raises
        ValueError if these are others.
        """
        if len(bodies) != self.size:
            raise ValueError(
                f"the files of the workspace have {self.size} bytes, and {len(bodies)} have come"
            )
        files: list[File] = []
        at = 0
        for file in self.files:
            files.append(file._replace(body=bodies[at : at + file.size]))
            at += file.size
        return self._replace(files=files)


def read_folder(folder: int, known: Container[str] = ()) -> Folder:
    """Return what is in the open folder; a file whose digest is `known` comes without its body.
    Raises FolderRefused, OSError.
    """
    files: list[File] = []
    folders: list[str] = []
    size = 0
    for entry in entries(folder, _refuse_closed):
        check_path(entry.path)
        if len(files) + len(folders) == MAX_WORKSPACE_ENTRIES:
            raise FolderRefused(f"it has more than {MAX_WORKSPACE_ENTRIES:,} files and folders")
        if entry.found.is_dir(follow_symlinks=False):
            folders.append(entry.path)
            continue
        file = _read(entry, known)
        size += file.size
        if size > MAX_WORKSPACE_BYTES:
            raise FolderRefused(f"its files have more than {MAX_WORKSPACE_BYTES >> 20} MiB in all")
        files.append(file)

    # A folder that another entry lies in is not empty.
    parents: set[str] = set()
    for path in folders:
        parents.add(path.rpartition("/")[0])
    for file in files:
        parents.add(file.path.rpartition("/")[0])
    empty = [path for path in folders if path not in parents]
    return Folder(files, empty)


def write_folder(folder: Folder, place: Path) -> None:
    """Write a folder into an empty one that nobody else changes. Raises FolderRefused for a path
    that leads elsewhere, OSError.
    """
    for path in folder.empty:
        check_path(path)
    for file in folder.files:
        check_path(file.path)
    for path in folder.empty:
        (place / path).mkdir(parents=True, exist_ok=True)

    # Where times cannot be set, files that are written in the order of their
    # times at least keep it.
    for file in sorted(folder.files, key=lambda file: file.changed):
        (place / file.path).parent.mkdir(parents=True, exist_ok=True)
        mode = 0o644
        if file.executable:
            mode = 0o755
        descriptor = os.open(place / file.path, _CREATE, mode)
        with open(descriptor, "wb") as writing:  # noqa: PTH123 - of a descriptor
            writing.write(file.body or b"")
        os.utime(place / file.path, ns=(file.changed, file.changed))


def changed_paths(before: Folder, after: Folder) -> list[str]:
    """Return the paths of files that are new, changed or gone, sorted."""
    old = _states(before)
    new = _states(after)
    changed = [path for path in old | new if old.get(path) != new.get(path)]
    return sorted(changed)


def _states(folder: Folder) -> dict[str, tuple[str, bool]]:
    """Return by path what makes a file another one: its bytes, and whether it can be executed."""
    return {file.path: (file.digest, file.executable) for file in folder.files}


def with_old_times(before: Folder, after: Folder) -> Folder:
    """Return the folder `after` with the times of the files that are as they were
    `before`: where times cannot be set, a file that nobody touched would look new, and
    what was built of it would look old.
    """
    times = {(file.path, file.digest): file.changed for file in before.files}
    files: list[File] = []
    for file in after.files:
        changed = times.get((file.path, file.digest), file.changed)
        files.append(file._replace(changed=changed))
    return after._replace(files=files)


def check_sizes(files: Sequence[tuple[str, int]], others: int) -> None:
    """Raise FolderRefused unless files of these paths and sizes, and so many folders, are no more
    than a workspace may have.
    """
    if len(files) + others > MAX_WORKSPACE_ENTRIES:
        raise FolderRefused(f"it has more than {MAX_WORKSPACE_ENTRIES:,} files and folders")
    total = 0
    for path, size in files:
        if size > MAX_WORKSPACE_FILE_BYTES:
            raise FolderRefused(_too_large(path, size))
        total += size
    if total > MAX_WORKSPACE_BYTES:
        raise FolderRefused(f"its files have more than {MAX_WORKSPACE_BYTES >> 20} MiB in all")


def check_path(path: str) -> None:
    """Raise FolderRefused unless it is the path of something inside the
    folder, and can be printed.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise FolderRefused(f"{path[:80]!r} is no path inside it")
    if not path.isprintable():
        raise FolderRefused(f"{path[:80]!r} is a name that cannot be printed")
    if len(path) > MAX_WORKSPACE_PATH_CHARACTERS or len(parts) > DEEPEST:
        raise FolderRefused(
            f"{path[:80]!r} has more than {MAX_WORKSPACE_PATH_CHARACTERS} characters, or more "
            f"than {DEEPEST} folders"
        )


def digest_of(body: bytes) -> str:
    """Return the digest of a file, as the artifact store would."""
    return hashlib.sha256(body).hexdigest()[:_DIGEST_CHARACTERS]


def as_json(folder: Folder) -> dict[str, Any]:
    """Return a folder as it travels to a command and back. Without bodies it has none there,
    either: text takes much more memory than bytes, and whoever writes or reads a long one
    holds up its whole process.
    """
    files = []
    for file in folder.files:
        body = None
        if file.body is not None:
            body = base64.b64encode(file.body).decode()
        files.append([*file[:-1], body])
    return {"files": files, "empty": folder.empty}


def from_json(value: dict[str, Any]) -> Folder:
    """Return the folder that `as_json` has written. Raises ValueError, TypeError."""
    files = []
    for path, executable, changed, size, digest, text in value["files"]:
        body = None
        if text is not None:
            body = base64.b64decode(text)
        files.append(File(path, executable, changed, size, digest, body))
    return Folder(files, value["empty"])


def _read(entry: Entry, known: Container[str]) -> File:
    """Return a plain file. It is opened once, and what is said of it is said of what was opened."""
    path = entry.path
    kind = stat.S_IFMT(entry.found.stat(follow_symlinks=False).st_mode)
    if kind != stat.S_IFREG:
        raise FolderRefused(f"{path} is {_OTHERS.get(kind, 'a device')}")
    try:
        descriptor = os.open(entry.found.name, _OPEN, dir_fd=entry.folder)
    except OSError as error:
        raise FolderRefused(f"{path} cannot be read: {error.strerror}") from None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FolderRefused(f"{path} is no plain file")
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise FolderRefused(f"{path} is setuid: it runs with the rights of its owner")
        if status.st_size > MAX_WORKSPACE_FILE_BYTES:
            raise FolderRefused(_too_large(path, status.st_size))
        if status.st_size and os.lseek(descriptor, 0, os.SEEK_HOLE) < status.st_size:
            raise FolderRefused(f"{path} is a sparse file: it has holes")
        os.lseek(descriptor, 0, os.SEEK_SET)
        body = file.read(status.st_size)
    digest = digest_of(body)
    executable = bool(status.st_mode & stat.S_IXUSR)
    file_body = None if digest in known else body
    return File(path, executable, status.st_mtime_ns, len(body), digest, file_body)


def _too_large(path: str, size: int) -> str:
    return f"{path} has {size:,} bytes; a file may have {MAX_WORKSPACE_FILE_BYTES >> 20} MiB"


def _refuse_closed(path: str) -> None:
    raise FolderRefused(
        f"{path} is a folder that cannot be read, or that is more than {DEEPEST} deep"
    )
