"""Workspaces in the artifact store: a list of files, and packs in which the bytes of these
lie one behind the other.

A call that changes two files of a thousand stores these two, and a new list. Lists and packs are
artifacts of the run under their digests, so they never change, are collected with the run, and a
branch costs nothing but its list.
"""

import asyncio
import os
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sennit.activities.limits import MAX_WORKSPACE_PACKS
from sennit.activities.sandbox import folders
from sennit.activities.sandbox.folders import MAX_WORKSPACE_FILE_BYTES, File, Folder, FolderRefused
from sennit.activities.storage.artifacts import ArtifactStore, encode
from sennit.activities.toolbox.errors import WorkspaceRefused
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.plan.language.workspaces import Workspace, as_workspace

T = TypeVar("T")
_NAME = b'"workspace":"'
"""What stands in an output that names a workspace: no other output is searched."""


class _Listed(BaseModel):
    """A file of a workspace, and where its bytes lie: in which pack, and from which byte on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    executable: bool
    changed: int
    size: int = Field(ge=0)
    digest: str
    pack: str
    at: int = Field(ge=0)

    @property
    def place(self) -> tuple[str, int]:
        return self.pack, self.at


class _Listing(BaseModel):
    """All files of a workspace, and its empty folders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace_files: tuple[_Listed, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def packs(self) -> list[str]:
        """The packs in which its files lie, each once."""
        return list(dict.fromkeys(file.pack for file in self.workspace_files))


@dataclass(frozen=True, slots=True)
class RunWorkspaces:
    """Opens and keeps the workspaces of the run whose artifacts lie below `run_prefix`.

    Whatever it keeps is whole before anybody learns its name: a worker that is killed leaves
    bodies that nothing names, and they go with the run. Secrets of this worker are masked in
    texts, as they are in outputs.
    """

    store: ArtifactStore
    run_prefix: str
    home: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    """The event loop of the store: tools run in threads, and in loops of their own."""

    async def load(self, workspace: Workspace) -> Folder:
        """Return all that is in a workspace. Raises WorkspaceRefused if there is no such one,
        BodyMissing, StoreUnavailable.
        """
        return await self._at_home(self._load(workspace))

    async def keep(self, folder: Folder, base: Workspace | None = None) -> Workspace:
        """Keep a folder. Files without a body are those of `base` with the same digest. Raises
        WorkspaceRefused, BodyMissing, StoreUnavailable.
        """
        return await self._at_home(self._keep(folder, base))

    def write_to(self, place: Path, workspace: Workspace) -> None:
        """Write all that is in a workspace into an empty folder. It blocks. Raises what
        `load` raises, and OSError.
        """
        folder = asyncio.run_coroutine_threadsafe(self._load(workspace), self.home).result()
        folders.write_folder(folder, place)

    def keep_from(self, place: Path, base: Workspace | None = None) -> Workspace:
        """Keep what is in a folder. It blocks. Raises what `keep` raises, and OSError."""
        listing = _Listing()
        if base is not None:
            listing = asyncio.run_coroutine_threadsafe(self._listing(base), self.home).result()
        known = [file.digest for file in listing.workspace_files]
        folder = folder_at(place, known)
        return asyncio.run_coroutine_threadsafe(self._keep(folder, base), self.home).result()

    async def copy_to(self, run_prefix: str, workspace: Workspace) -> None:
        """Keep a workspace in another run too, so that it needs nothing of this one. Raises
        WorkspaceRefused, BodyMissing, StoreUnavailable.
        """
        listing = await self._listing(workspace)
        for name in (*listing.packs, workspace.workspace):
            await self.store.put(run_prefix, await self.store.get(self.run_prefix, name))

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.home))

    async def _listing(self, workspace: Workspace) -> _Listing:
        body = await self.store.get(self.run_prefix, workspace.workspace)
        return await asyncio.to_thread(_listing_in, body, workspace.workspace)

    async def _load(self, workspace: Workspace) -> Folder:
        listing = await self._listing(workspace)
        packs = {name: await self.store.get(self.run_prefix, name) for name in listing.packs}
        files: list[File] = []
        for file in listing.workspace_files:
            body = packs[file.pack][file.at : file.at + file.size]
            if len(body) != file.size:
                raise WorkspaceRefused(
                    f"{workspace.workspace} is no workspace: {file.path} is not where it says"
                )
            files.append(
                File(file.path, file.executable, file.changed, file.size, file.digest, body)
            )
        return Folder(files, list(listing.empty))

    async def _keep(self, folder: Folder, base: Workspace | None) -> Workspace:
        known: dict[str, tuple[str, int]] = {}
        if base is not None:
            listing = await self._listing(base)
            known = {file.digest: file.place for file in listing.workspace_files}
            packs: set[str] = set()
            for file in folder.files:
                if file.digest in known:
                    pack, _ = known[file.digest]
                    packs.add(pack)
            if len(packs) >= MAX_WORKSPACE_PACKS:
                # A long branch would read a pack for each of its calls: all of
                # it goes into new ones.
                folder = _with_bodies(folder, await self._load(base))
                known = {}
        folder = await asyncio.to_thread(_masked, folder)
        _check_sizes(folder)  # a mask may be longer than what it covers
        new: list[File] = []
        for file in folder.files:
            if file.body is not None and file.digest not in known:
                new.append(file)
        known |= await self._pack(new)
        files = [_listed(file, known) for file in sorted(folder.files)]
        listing = _Listing(workspace_files=tuple(files), empty=tuple(folder.empty))
        body = encode(listing.model_dump(mode="json"))
        digest = await self.store.put(self.run_prefix, body)
        return Workspace(workspace=digest, files=len(files), bytes=folder.size)

    async def _pack(self, files: Iterable[File]) -> dict[str, tuple[str, int]]:
        """Store the bodies of files in as few artifacts as they fit in; return where
        each lies, by its digest.
        """
        places: dict[str, tuple[str, int]] = {}
        waiting: dict[str, int] = {}
        pack = bytearray()
        for file in files:
            assert file.body is not None
            if file.digest in places or file.digest in waiting:
                continue
            waiting[file.digest] = len(pack)
            pack += file.body
            if len(pack) >= MAX_WORKSPACE_FILE_BYTES:
                places |= await self._seal(pack, waiting)
                waiting = {}
                pack = bytearray()
        if waiting:
            places |= await self._seal(pack, waiting)
        return places

    async def _seal(self, pack: bytearray, offsets: dict[str, int]) -> dict[str, tuple[str, int]]:
        name = await self.store.put(self.run_prefix, bytes(pack))
        return {digest: (name, at) for digest, at in offsets.items()}


async def copy_workspaces(
    store: ArtifactStore,
    home: str,
    run_prefix: str,
    output: Any,
    body: bytes,
    *,
    is_strange: bool = False,
) -> None:
    """Keep the workspaces that an output of another run names in this run too. A value that only
    looks like one stays what it is. Raises BodyMissing and StoreUnavailable.

    In an output that `is_strange`, a value may name a workspace that its run does not have:
    somebody has made it up.
    """
    if _NAME not in body:
        return
    for workspace in dict.fromkeys(_named_in(output)):
        if await store.has(run_prefix, workspace.workspace):
            continue  # its list was stored last
        if is_strange and not await store.has(home, workspace.workspace):
            continue
        with suppress(WorkspaceRefused):
            await RunWorkspaces(store, home).copy_to(run_prefix, workspace)


def folder_at(place: Path, known: Iterable[str] = ()) -> Folder:
    """Return what is in a folder of this machine. Raises WorkspaceRefused with the name of what
    cannot be kept, OSError.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return folders.read_folder(descriptor, frozenset(known))
    except FolderRefused as error:
        raise WorkspaceRefused(
            f"the folder {place.name} cannot be kept as a workspace: {error}"
        ) from None
    finally:
        os.close(descriptor)


def _named_in(value: Any) -> Iterator[Workspace]:
    """Yield the workspaces that a JSON value names."""
    workspace = as_workspace(value)
    parts: Iterable[Any] = ()
    if workspace is not None:
        yield workspace
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list):
        parts = value
    for part in parts:
        yield from _named_in(part)


def _listing_in(body: bytes, name: str) -> _Listing:
    """Return the list that an artifact is. Its paths and sizes are checked: anybody may have
    made the artifact, and one pack could be named as the bytes of any number of files.
    Raises WorkspaceRefused.
    """
    try:
        listing = _Listing.model_validate_json(body)
        sizes = [(file.path, file.size) for file in listing.workspace_files]
        folders.check_sizes(sizes, len(listing.empty))
        for path in listing.empty:
            folders.check_path(path)
        for file in listing.workspace_files:
            folders.check_path(file.path)
    except ValidationError:
        raise WorkspaceRefused(f"{name} is no workspace but another artifact of the run") from None
    except FolderRefused as error:
        raise WorkspaceRefused(f"{name} is no workspace: {error}") from None
    return listing


def _check_sizes(folder: Folder) -> None:
    """Raise WorkspaceRefused for a folder that has more than a workspace may have."""
    try:
        sizes = [(file.path, file.size) for file in folder.files]
        folders.check_sizes(sizes, len(folder.empty))
    except FolderRefused as error:
        raise WorkspaceRefused(f"the folder cannot be kept as a workspace: {error}") from None


def _masked(folder: Folder) -> Folder:
    """Return a folder without the secrets of this process in its new texts."""
    files = [_masked_file(file) for file in folder.files]
    return folder._replace(files=files)


def _masked_file(file: File) -> File:
    if file.body is None:
        return file
    try:
        text = file.body.decode()
    except UnicodeDecodeError:
        return file
    masked = mask(text)
    if masked == text:
        return file
    body = masked.encode()
    return file._replace(body=body, size=len(body), digest=folders.digest_of(body))


def _with_bodies(folder: Folder, base: Folder) -> Folder:
    """Return a folder with the bodies of its unchanged files."""
    bodies = {file.digest: file.body for file in base.files}
    files: list[File] = []
    for file in folder.files:
        if file.body is None:
            file = file._replace(body=bodies[file.digest])
        files.append(file)
    return folder._replace(files=files)


def _listed(file: File, places: dict[str, tuple[str, int]]) -> _Listed:
    if file.digest not in places:
        raise WorkspaceRefused(f"{file.path} is not in the workspace that the folder came from")
    pack, at = places[file.digest]
    return _Listed(
        path=file.path,
        executable=file.executable,
        changed=file.changed,
        size=file.size,
        digest=file.digest,
        pack=pack,
        at=at,
    )
