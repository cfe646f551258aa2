"""Artifacts in a directory: the default, and what a mounted volume gives to many workers."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from activities.storage.artifacts import MARKERS, BodyMissing, StoredObject, StoreUnavailable, digest_of

T = TypeVar("T")
_INLINE_BYTES = 64 * 1024
"""Smaller bodies are read and written on the event loop: a thread costs more than the file."""


class DirectoryStore:
    """One file a body, named by digest; markers in a folder beside them. Files appear whole, by rename or link.

    Nothing is synced to the disk: a killed process loses nothing, and after a power cut a missing or torn body is
    found by its digest and its node runs again. Files are open to those only who may enter the folder.
    """

    def __init__(self, root: Path) -> None:
        """Open or create the store. Raises OSError."""
        self._root = root
        root.mkdir(parents=True, exist_ok=True)
        self._mode = root.stat().st_mode & 0o644
        self.store_id = self._make_id()

    async def put(self, run_prefix: str, body: bytes) -> str:
        digest = digest_of(body)
        await self._run(len(body), self._write, self._root / run_prefix / digest, body)
        return digest

    async def get(self, run_prefix: str, digest: str) -> bytes:
        path = self._root / run_prefix / digest
        try:
            size = (await self._run(0, path.stat)).st_size
            body = await self._run(size, path.read_bytes)
        except FileNotFoundError:
            raise BodyMissing(f"no body {digest} under {run_prefix}") from None
        if digest_of(body) != digest:
            await self._run(0, path.unlink, True)
            raise BodyMissing(f"the body {digest} under {run_prefix} was damaged; it is gone now")
        return body

    async def has(self, run_prefix: str, digest: str) -> bool:
        return await self._run(0, (self._root / run_prefix / digest).is_file)

    def place(self, run_prefix: str, digest: str) -> str:
        return str(self._root / run_prefix / digest)

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        return await self._run(len(body), self._link, self._root / run_prefix / MARKERS / key, body)

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        try:
            return (self._root / run_prefix / MARKERS / key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unavailable(error) from error

    async def unmark(self, run_prefix: str, key: str) -> None:
        await self._run(0, (self._root / run_prefix / MARKERS / key).unlink, True)

    async def list_objects(self, namespace: str) -> AsyncIterator[StoredObject]:
        """Follows no link, and passes over what is no run's folder."""
        for run in await asyncio.to_thread(_folders_in, self._root / namespace):
            for found in await asyncio.to_thread(self._objects, f"{namespace}/{run}"):
                yield found

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        """Follows no link: a link itself is deleted. Folders go with the last file in them."""
        await self._run(_INLINE_BYTES + 1, self._delete, run_prefix, names)

    async def _run(self, size: int, function: Callable[..., T], *inputs: object) -> T:
        try:
            return function(*inputs) if size <= _INLINE_BYTES else await asyncio.to_thread(function, *inputs)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unavailable(error) from error

    def _write(self, path: Path, body: bytes) -> None:
        if path.exists() and path.stat().st_size == len(body):
            return
        part = self._part(path, body)
        try:
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def _link(self, path: Path, body: bytes) -> bytes:
        part = self._part(path, body)
        try:
            os.link(part, path)
        except FileExistsError:
            return path.read_bytes()
        finally:
            part.unlink(missing_ok=True)
        return body

    def _objects(self, run_prefix: str) -> list[StoredObject]:
        found = []
        for within in ("", MARKERS):
            for entry in _entries(self._root / run_prefix / within):
                with suppress(FileNotFoundError):  # it was deleted meanwhile
                    if not entry.is_dir(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        name = f"{within}{entry.name}"
                        found.append(StoredObject(run_prefix, name, status.st_size, status.st_mtime))
        return found

    def _delete(self, run_prefix: str, names: Sequence[str]) -> None:
        namespace, _, run = run_prefix.rpartition("/")
        with suppress(FileNotFoundError), _opened(self._root, namespace) as above, _opened(above, run) as folder:
            with suppress(FileNotFoundError), _opened(folder, MARKERS) as markers:
                for name in names:
                    if name.startswith(MARKERS):
                        _unlink(name.removeprefix(MARKERS), markers)
            for name in names:
                if "/" not in name:
                    _unlink(name, folder)
            with suppress(OSError):  # it stays while something is in it
                os.rmdir(MARKERS, dir_fd=folder)
            with suppress(OSError):
                os.rmdir(run, dir_fd=above)

    def _part(self, path: Path, body: bytes) -> Path:
        """Write `body` beside `path` under a name of its own, creating the folder at the first write."""
        part = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            self._create(part, body)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._create(part, body)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return part

    def _create(self, path: Path, body: bytes) -> None:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, self._mode)) as file:
            file.write(body)

    def _make_id(self) -> str:
        """Return the id every worker on this store sees; the first one makes it."""
        return self._link(self._root / ".store-id", secrets.token_hex(8).encode()).decode()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing if there is none, or a link in its place."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unavailable(error) from error


def _folders_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in _entries(folder) if entry.is_dir(follow_symlinks=False))


@contextmanager
def _opened(above: Path | int, name: str) -> Iterator[int]:
    """Open a folder, and no link in its place."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW
    name = name.rstrip("/")
    folder = os.open(above / name, flags) if isinstance(above, Path) else os.open(name, flags, dir_fd=above)
    try:
        yield folder
    finally:
        os.close(folder)


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _unavailable(error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"artifact store: {error.strerror or error}: {error.filename or ''}".rstrip(": "))
