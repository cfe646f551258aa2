"""Files below an opened folder: whole or not there, by rename or link, and by the calls of the
system alone: `open` makes five of them where two will do, and each node makes several.
"""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate, count, pairwise
from pathlib import Path

from sennit.activities.storage.artifacts import MARKERS, StoredObject

INLINE_BYTES = 64 * 1024
"""Smaller bodies are read and written on the event loop: a thread costs more than the file."""
_PROCESS = secrets.token_hex(6)
_PARTS = count()
_SHARED = b"\0"
"""What a file begins with that several markers share; a marker alone is JSON."""


def read(root: int, path: str) -> bytes | None:
    found = _looked(root, path, None)
    assert not isinstance(found, int)
    return found


def short(root: int, path: str) -> bytes | int | None:
    """Return what is in a file, or only its size if it is not read on the event loop."""
    return _looked(root, path, INLINE_BYTES)


def _looked(root: int, path: str, most: int | None) -> bytes | int | None:
    try:
        file = os.open(path, os.O_RDONLY, dir_fd=root)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(file).st_size
        if most is not None and size > most:
            return size
        found = os.read(file, size)
        while len(found) < size and (more := os.read(file, size - len(found))):
            found += more
        return found
    finally:
        os.close(file)


def size_of(root: int, path: str) -> int | None:
    with suppress(FileNotFoundError):
        return os.stat(path, dir_fd=root).st_size
    return None


def write(root: int, path: str, body: bytes) -> None:
    if size_of(root, path) != len(body):
        replace(root, path, body)


def replace(root: int, path: str, body: bytes) -> None:
    part = _part(root, path, body)
    try:
        os.replace(part, path, src_dir_fd=root, dst_dir_fd=root)
    except OSError:
        unlink(root, part)
        raise


def link(root: int, folder: str, bodies: Mapping[str, bytes]) -> dict[str, bytes]:
    """Write each body under its name unless that is there, all to one file, and return
    what is under the names: of the first ones only if another one cannot be written.
    Raises OSError if none can.
    """
    part = _part(root, f"{folder}{next(iter(bodies))}", _shared(bodies))
    found: dict[str, bytes] = {}
    try:
        for name, body in bodies.items():
            while name not in found:  # it may be deleted between the two
                try:
                    os.link(part, f"{folder}{name}", src_dir_fd=root, dst_dir_fd=root)
                    found[name] = body
                except FileExistsError:
                    held = marker(root, folder, name)
                    if held is not None:
                        found[name] = held
                except OSError:
                    if found:
                        return found
                    raise
    finally:
        unlink(root, part)
    return found


def marker(root: int, folder: str, name: str) -> bytes | None:
    found = read(root, f"{folder}{name}")
    if found is None:
        return None
    return marker_in(found, name)


def _shared(bodies: Mapping[str, bytes]) -> bytes:
    """Return what a file has in it that has the names of all these markers. Its first
    line says where each is.
    """
    if len(bodies) == 1:
        return next(iter(bodies.values()))
    ends = list(accumulate(map(len, bodies.values()), initial=0))
    places: list[str] = []
    for name, (start, end) in zip(bodies, pairwise(ends), strict=True):
        places.append(f" {name}={start}-{end}")
    return b"".join([_SHARED, "".join(places).encode(), b"\n", *bodies.values()])


def marker_in(found: bytes, name: str) -> bytes:
    """Return the marker of that name; a damaged file as it is, in which nobody can read it."""
    if not found.startswith(_SHARED):
        return found
    line, _, bodies = found.partition(b"\n")
    places = line.decode(errors="replace") + " "
    place = places.partition(f" {name}=")[2].partition(" ")[0]
    start, _, end = place.partition("-")
    if not (start.isdecimal() and end.isdecimal()):
        return found
    return bodies[int(start) : int(end)]


def _part(root: int, path: str, body: bytes) -> str:
    """Write `body` beside `path` under a name of its own, creating the folders below the
    root at the first write.
    """
    folder, slash, name = path.rpartition("/")
    part = f"{folder}{slash}.{name}.{_PROCESS}{os.getpid():x}.{next(_PARTS):x}"
    try:
        _create(root, part, body)
    except FileNotFoundError:
        steps = folder.split("/")
        for depth in range(len(steps)):
            with suppress(FileExistsError):
                os.mkdir("/".join(steps[: depth + 1]), dir_fd=root)
        _create(root, part, body)
    except OSError:
        unlink(root, part)
        raise
    return part


def _create(root: int, path: str, body: bytes) -> None:
    mode = os.fstat(root).st_mode & 0o644
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    file = os.open(path, flags, mode, dir_fd=root)
    try:
        left = memoryview(body)
        while left:
            left = left[os.write(file, left) :]
    finally:
        os.close(file)


def objects(root: int, run_prefix: str) -> list[StoredObject]:
    found = []
    for within in ("", MARKERS):
        with _entries(root, f"{run_prefix}/{within}") as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it was deleted meanwhile
                    if not entry.is_dir(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        name = f"{within}{entry.name}"
                        size = status.st_size // status.st_nlink
                        found.append(StoredObject(run_prefix, name, size, status.st_mtime))
    return found


def folders_in(root: int, folder: str) -> list[str]:
    with _entries(root, folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(names)


@contextmanager
def _entries(root: int, folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Go through a folder; there is nothing if there is none, or a link or a file in its place."""
    try:
        opened = os.open(folder.rstrip("/"), os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    except (FileNotFoundError, NotADirectoryError):
        yield iter(())
        return
    try:
        with os.scandir(opened) as entries:
            yield entries
    finally:
        os.close(opened)


def delete(root: int, run_prefix: str, names: Sequence[str]) -> None:
    namespace, _, run = run_prefix.rpartition("/")
    with (
        suppress(FileNotFoundError),
        opened(namespace, root) as above,
        opened(run, above) as folder,
    ):
        with suppress(FileNotFoundError), opened(MARKERS.rstrip("/"), folder) as markers:
            for name in names:
                if name.startswith(MARKERS):
                    unlink(markers, name.removeprefix(MARKERS))
        for name in names:
            if "/" not in name:
                unlink(folder, name)
        with suppress(OSError):  # it stays while something is in it
            os.rmdir(MARKERS, dir_fd=folder)
        with suppress(OSError):
            os.rmdir(run, dir_fd=above)


@contextmanager
def opened(folder: Path | str, above: int | None = None) -> Iterator[int]:
    """Open a folder; below another one, no link in its place."""
    flags = os.O_DIRECTORY
    if above is not None:
        flags |= os.O_NOFOLLOW
    opened = os.open(folder, flags, dir_fd=above)
    try:
        yield opened
    finally:
        os.close(opened)


def unlink(root: int, path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path, dir_fd=root)
