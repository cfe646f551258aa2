"""Artifacts in a directory: the default, and what a mounted volume gives to many workers."""

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sennit.activities.storage.artifacts import (
    MARKERS,
    STORE_ID,
    BodyMissing,
    StoredObject,
    StoreUnavailable,
    body_of,
    digest_of,
    is_reference,
    name_of,
    seen_id,
)

P = ParamSpec("P")
T = TypeVar("T")
_Seen = tuple[int, int, int]
_PROCESS = secrets.token_hex(6)
_PARTS = count()
_INLINE_BYTES = 64 * 1024
"""Smaller bodies are read and written on the event loop: a thread costs more than the file."""


class _Here(threading.local):
    """What each thread has for itself: tools run in event loops of their own, and none may close what another uses."""

    turn: tuple[int, _Seen] | None = None
    """The root that was opened in this turn of the event loop."""


class DirectoryStore:
    """One file a body, named by digest; markers in a folder beside them. Files appear whole, by rename or link.

    Every call opens the root and reads the id there, and then works below the root that it has opened. So a folder
    that was moved away or unmounted, or another one in its place, is never taken for this store, at no instant. Calls
    of one turn of the event loop share what they open, and only look whether it still is what lies there: the nodes of
    a group make theirs at one moment.

    Nothing is synced to the disk: a killed process loses nothing, and after a power cut a missing or torn body is
    found by its digest and its node runs again. Files are open to those only who may enter the folder.
    """

    def __init__(self, root: Path) -> None:
        """Name the folder. Nothing is read yet, and nothing made."""
        self._root = root
        self._id = ""
        self._here = _Here()

    def create(self) -> bool:
        mine = secrets.token_hex(8).encode()
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with _opened(self._root) as root:
                return _link(root, STORE_ID, mine) == mine
        except OSError as error:
            raise self._unavailable(error) from error

    async def identify(self) -> str:
        await self._run(0, os.fstat)
        if not os.access(self._root, os.W_OK):
            raise StoreUnavailable(f"artifact store {self._root}: this user may not write there")
        return self._id

    async def put(self, run_prefix: str, body: bytes) -> str:
        digest = digest_of(body)
        await self._run(len(body), _write, f"{run_prefix}/{digest}", body)
        return digest

    async def get(self, run_prefix: str, reference: str) -> bytes:
        if not is_reference(reference):
            raise BodyMissing(f"no body {reference:.80} under {run_prefix}")
        path = f"{run_prefix}/{name_of(reference)}"
        found = await self._run(0, _short, path)
        if isinstance(found, int):
            found = await self._run(found, _read, path)
        if found is None:
            raise BodyMissing(f"no body {reference} under {run_prefix}")
        body = body_of(reference, found)
        if body is None and reference == name_of(reference):
            await self._run(0, _unlink, path)
            raise BodyMissing(f"the body {reference} under {run_prefix} was damaged; it is gone now")
        if body is None:
            raise BodyMissing(f"the body {reference} under {run_prefix} is damaged")
        return body

    async def has(self, run_prefix: str, reference: str) -> bool:
        return is_reference(reference) and await self._run(0, _size, f"{run_prefix}/{name_of(reference)}") is not None

    def place(self, run_prefix: str, reference: str) -> str:
        return str(self._root / run_prefix / name_of(reference))

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        return await self._run(len(body), _link, f"{run_prefix}/{MARKERS}{key}", body)

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        return await self._run(0, _read, f"{run_prefix}/{MARKERS}{key}")

    async def unmark(self, run_prefix: str, key: str) -> None:
        await self._run(0, _unlink, f"{run_prefix}/{MARKERS}{key}")

    async def list_objects(self, namespace: str) -> AsyncIterator[StoredObject]:
        """Follows no link, and passes over what is no run's folder."""
        for run in await self._run(_INLINE_BYTES + 1, _folders_in, namespace):
            for found in await self._run(_INLINE_BYTES + 1, _objects, f"{namespace}/{run}"):
                yield found

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        """Follows no link: a link itself is deleted. Folders go with the last file in them."""
        await self._run(_INLINE_BYTES + 1, _delete, run_prefix, names)

    async def _run(self, size: int, work: Callable[Concatenate[int, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Work below the root, on the event loop if `size` bytes are few. Lets any OSError out as StoreUnavailable."""

        def within() -> T:
            root = self._opened()
            try:
                return work(root, *args, **kwargs)
            finally:
                os.close(root)

        try:
            if size > _INLINE_BYTES:
                return await asyncio.to_thread(within)
            return work(self._opened_in_turn(), *args, **kwargs)
        except OSError as error:
            raise self._unavailable(error) from error

    def _opened_in_turn(self) -> int:
        """Return the root, opened in this turn of the event loop, and still there with its id. Raises OSError or
        StoreUnavailable.
        """
        turn, seen = self._here.turn, self._seen()
        if turn is not None and turn[1] == seen:
            return turn[0]
        self._end_turn()
        root = self._opened()
        if seen is not None:
            self._here.turn = root, seen
            asyncio.get_running_loop().call_soon(self._end_turn)
        return root

    def _seen(self) -> _Seen | None:
        """Return which folder lies at the root now, if one does, and when something in it last changed its name: that
        of the id does not change otherwise.
        """
        try:
            place = self._root.stat()
        except OSError:
            return None
        return place.st_dev, place.st_ino, place.st_mtime_ns

    def _end_turn(self) -> None:
        turn, self._here.turn = self._here.turn, None
        if turn is not None:
            os.close(turn[0])

    def _opened(self) -> int:
        """Open the root and see its id there. Raises OSError or StoreUnavailable."""
        try:
            root = os.open(self._root, os.O_DIRECTORY)
        except FileNotFoundError:
            seen_id(str(self._root), None, self._id)
            raise
        try:
            self._id = seen_id(str(self._root), _read(root, STORE_ID), self._id)
        except BaseException:
            os.close(root)
            raise
        return root

    def _unavailable(self, error: OSError) -> StoreUnavailable:
        named = f": {error.filename}" if isinstance(error.filename, str) else ""
        return StoreUnavailable(f"artifact store {self._root}: {error.strerror or error}{named}")


def _read(root: int, path: str) -> bytes | None:
    found = _looked(root, path, None)
    assert not isinstance(found, int)
    return found


def _short(root: int, path: str) -> bytes | int | None:
    """Return what is in a file, or only its size if it is not read on the event loop."""
    return _looked(root, path, _INLINE_BYTES)


def _looked(root: int, path: str, most: int | None) -> bytes | int | None:
    # by the calls of the system alone: `open` makes five of them where two will do, and each node makes several
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


def _size(root: int, path: str) -> int | None:
    with suppress(FileNotFoundError):
        return os.stat(path, dir_fd=root).st_size
    return None


def _write(root: int, path: str, body: bytes) -> None:
    if _size(root, path) == len(body):
        return
    part = _part(root, path, body)
    try:
        os.replace(part, path, src_dir_fd=root, dst_dir_fd=root)
    except OSError:
        _unlink(root, part)
        raise


def _link(root: int, path: str, body: bytes) -> bytes:
    """Write a file unless it is there, and return what is in it."""
    part = _part(root, path, body)
    found: bytes | None = None
    try:
        while found is None:  # it may be deleted between the two
            try:
                os.link(part, path, src_dir_fd=root, dst_dir_fd=root)
                found = body
            except FileExistsError:
                found = _read(root, path)
    finally:
        _unlink(root, part)
    return found


def _part(root: int, path: str, body: bytes) -> str:
    """Write `body` beside `path` under a name of its own, creating the folders below the root at the first write."""
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
        _unlink(root, part)
        raise
    return part


def _create(root: int, path: str, body: bytes) -> None:
    mode = os.fstat(root).st_mode & 0o644
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=root)
    try:
        left = memoryview(body)
        while left:
            left = left[os.write(file, left) :]
    finally:
        os.close(file)


def _objects(root: int, run_prefix: str) -> list[StoredObject]:
    found = []
    for within in ("", MARKERS):
        with _entries(root, f"{run_prefix}/{within}") as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it was deleted meanwhile
                    if not entry.is_dir(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        name = f"{within}{entry.name}"
                        found.append(StoredObject(run_prefix, name, status.st_size, status.st_mtime))
    return found


def _folders_in(root: int, folder: str) -> list[str]:
    with _entries(root, folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


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


def _delete(root: int, run_prefix: str, names: Sequence[str]) -> None:
    namespace, _, run = run_prefix.rpartition("/")
    with suppress(FileNotFoundError), _opened(namespace, root) as above, _opened(run, above) as folder:
        with suppress(FileNotFoundError), _opened(MARKERS.rstrip("/"), folder) as markers:
            for name in names:
                if name.startswith(MARKERS):
                    _unlink(markers, name.removeprefix(MARKERS))
        for name in names:
            if "/" not in name:
                _unlink(folder, name)
        with suppress(OSError):  # it stays while something is in it
            os.rmdir(MARKERS, dir_fd=folder)
        with suppress(OSError):
            os.rmdir(run, dir_fd=above)


@contextmanager
def _opened(folder: Path | str, above: int | None = None) -> Iterator[int]:
    """Open a folder; below another one, no link in its place."""
    opened = os.open(folder, os.O_DIRECTORY | (0 if above is None else os.O_NOFOLLOW), dir_fd=above)
    try:
        yield opened
    finally:
        os.close(opened)


def _unlink(root: int, path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path, dir_fd=root)
