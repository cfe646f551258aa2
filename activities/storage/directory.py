"""Artifacts in a directory: the default, and what a mounted volume gives to many workers."""

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from sennit.activities.storage import files
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
from sennit.activities.storage.files import INLINE_BYTES

P = ParamSpec("P")
T = TypeVar("T")
_Seen = tuple[int, int, int]
_SHARED_BYTES, _SHARED_MARKERS = 3 * 1024, 16
"""How long a marker in a file with others is at most, and how many are in one: who
reads one reads them all.
"""


class _Mark(NamedTuple):
    """A marker that is to be set. `waiter` gets the body that the marker has then."""

    key: str
    body: bytes
    waiter: asyncio.Future[bytes]


class _Turn(NamedTuple):
    """The root that was opened in a turn of the event loop, and which folder lay there."""

    root: int
    seen: _Seen


class _Here(threading.local):
    """What each thread has for itself: tools run in event loops of their own, and none may
    close what another uses.
    """

    turn: _Turn | None = None

    def __init__(self) -> None:
        self.marks: dict[str, list[_Mark]] = {}
        """What is marked in this turn, by the run prefix."""


class DirectoryStore:
    """One file a body, named by digest; markers in a folder beside them. Files appear
    whole, by rename or link.

    Every call opens the root and reads the id there, and then works below the root that it has
    opened. So a folder that was moved away or unmounted, or another one in its place, is never
    taken for this store, at no instant. Calls of one turn of the event loop share what they open,
    and only look whether it still is what lies there: the nodes of a group make theirs at one
    moment. For the same reason the markers of a turn are written to one file, which then gets the
    name of each: that costs half of what a file for each does.

    Nothing is synced to the disk: a killed process loses nothing, and after a power cut a
    missing or torn body is found by its digest and its node runs again. Files are open to those
    only who may enter the folder.
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
            with files.opened(self._root) as root:
                return files.link(root, "", {STORE_ID: mine})[STORE_ID] == mine
        except OSError as error:
            raise self._unavailable(error) from error

    async def identify(self) -> str:
        await self._run(0, os.fstat)
        if not os.access(self._root, os.W_OK):
            raise StoreUnavailable(f"artifact store {self._root}: this user may not write there")
        return self._id

    async def put(self, run_prefix: str, body: bytes) -> str:
        digest = digest_of(body)
        await self._run(len(body), files.write, f"{run_prefix}/{digest}", body)
        return digest

    async def get(self, run_prefix: str, reference: str) -> bytes:
        if not is_reference(reference):
            raise BodyMissing(f"no body {reference:.80} under {run_prefix}")
        path = f"{run_prefix}/{name_of(reference)}"
        found = await self._run(0, files.short, path)
        if isinstance(found, int):
            found = await self._run(found, files.read, path)
        if found is None:
            raise BodyMissing(f"no body {reference} under {run_prefix}")
        _, _, key = reference.partition(".")
        body = body_of(reference, files.marker_in(found, key) if key else found)
        if body is None and reference == name_of(reference):
            await self._run(0, files.unlink, path)
            raise BodyMissing(
                f"the body {reference} under {run_prefix} was damaged; it is gone now"
            )
        if body is None:
            raise BodyMissing(f"the body {reference} under {run_prefix} is damaged")
        return body

    async def has(self, run_prefix: str, reference: str) -> bool:
        if not is_reference(reference):
            return False
        return await self._run(0, files.size_of, f"{run_prefix}/{name_of(reference)}") is not None

    def place(self, run_prefix: str, reference: str) -> str:
        return str(self._root / run_prefix / name_of(reference))

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        if len(body) > _SHARED_BYTES:
            held = await self._run(len(body), files.link, f"{run_prefix}/{MARKERS}", {key: body})
            return held[key]
        loop = asyncio.get_running_loop()
        if not self._here.marks:
            loop.call_soon(self._mark_all)
        mark = _Mark(key, body, loop.create_future())
        self._here.marks.setdefault(run_prefix, []).append(mark)
        return await mark.waiter

    def _mark_all(self) -> None:
        """Set the markers of a turn, less those whose callers were cancelled meanwhile."""
        marks, self._here.marks = self._here.marks, {}
        for run_prefix, every in marks.items():
            waiting = [mark for mark in every if not mark.waiter.done()]
            for first in range(0, len(waiting), _SHARED_MARKERS):
                self._mark_some(run_prefix, waiting[first : first + _SHARED_MARKERS])

    def _mark_some(self, run_prefix: str, marks: Sequence[_Mark]) -> None:
        bodies: dict[str, bytes] = {}
        for mark in marks:
            bodies.setdefault(mark.key, mark.body)
        try:
            held = self._at_once(files.link, f"{run_prefix}/{MARKERS}", bodies)
            rest: list[_Mark] = []
            for mark in marks:
                if mark.key in held:
                    mark.waiter.set_result(held[mark.key])
                else:
                    rest.append(mark)
            if rest:
                self._mark_some(run_prefix, rest)
        except StoreUnavailable as error:
            for mark in marks:
                mark.waiter.set_exception(error)
        finally:
            for mark in marks:
                mark.waiter.cancel()  # unless it is done: after a defect, nobody waits for ever

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        return await self._run(0, files.marker, f"{run_prefix}/{MARKERS}", key)

    async def unmark(self, run_prefix: str, key: str) -> None:
        await self._run(0, files.unlink, f"{run_prefix}/{MARKERS}{key}")

    async def replace_marker(self, run_prefix: str, key: str, body: bytes) -> None:
        await self._run(len(body), files.replace, f"{run_prefix}/{MARKERS}{key}", body)

    async def list_objects(self, namespace: str, run: str = "") -> AsyncIterator[StoredObject]:
        """Follows no link, and passes over what is no run's folder."""
        folders = await self._run(INLINE_BYTES + 1, files.folders_in, namespace)
        for folder in folders:
            if run and folder != run:
                continue
            for found in await self._run(INLINE_BYTES + 1, files.objects, f"{namespace}/{folder}"):
                yield found

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        """Follows no link: a link itself is deleted. Folders go with the last file in them."""
        await self._run(INLINE_BYTES + 1, files.delete, run_prefix, names)

    async def _run(
        self, size: int, work: Callable[Concatenate[int, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Work below the root, on the event loop if `size` bytes are few. Lets any OSError
        out as StoreUnavailable.
        """

        def within() -> T:
            root = self._opened()
            try:
                return work(root, *args, **kwargs)
            finally:
                os.close(root)

        if size <= INLINE_BYTES:
            return self._at_once(work, *args, **kwargs)
        try:
            return await asyncio.to_thread(within)
        except OSError as error:
            raise self._unavailable(error) from error

    def _at_once(
        self, work: Callable[Concatenate[int, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return work(self._opened_in_turn(), *args, **kwargs)
        except OSError as error:
            raise self._unavailable(error) from error

    def _opened_in_turn(self) -> int:
        """Return the root, opened in this turn of the event loop, and still there with its id.
        Raises OSError or StoreUnavailable.
        """
        turn, seen = self._here.turn, self._seen()
        if turn is not None and turn.seen == seen:
            return turn.root
        self._end_turn()
        root = self._opened()
        if seen is not None:
            self._here.turn = _Turn(root, seen)
            asyncio.get_running_loop().call_soon(self._end_turn)
        return root

    def _seen(self) -> _Seen | None:
        """Return which folder lies at the root now, if one does, and when something in it last
        changed its name: that of the id does not change otherwise.
        """
        try:
            place = self._root.stat()
        except OSError:
            return None
        return place.st_dev, place.st_ino, place.st_mtime_ns

    def _end_turn(self) -> None:
        turn, self._here.turn = self._here.turn, None
        if turn is not None:
            os.close(turn.root)

    def _opened(self) -> int:
        """Open the root and see its id there. Raises OSError or StoreUnavailable."""
        try:
            root = os.open(self._root, os.O_DIRECTORY)
        except FileNotFoundError:
            seen_id(str(self._root), None, self._id)
            raise
        try:
            self._id = seen_id(str(self._root), files.read(root, STORE_ID), self._id)
        except BaseException:
            os.close(root)
            raise
        return root

    def _unavailable(self, error: OSError) -> StoreUnavailable:
        named = f": {error.filename}" if isinstance(error.filename, str) else ""
        return StoreUnavailable(f"artifact store {self._root}: {error.strerror or error}{named}")
