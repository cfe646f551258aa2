"""Artifacts in a bucket, on S3 or what speaks its protocol: for workers that share no volume."""

import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store as Bucket

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

_TRIES: Final = 3
_AT_ONCE: Final = 16
"""Objects that are deleted at a time."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REMEDIES: Final = (
    (
        re.compile(r"<Code>NoSuchBucket"),
        "there is no such bucket; create it, or correct SENNIT_ARTIFACTS",
    ),
    (
        re.compile(r"<Code>(InvalidAccessKey|Signature|Expired|InvalidToken)|code: 401"),
        "it refuses the key; check AWS_*, and the clock",
    ),
    (
        re.compile(r"BareRedirect|<Code>(Perm|AuthorizationHeader|IllegalLoc)"),
        "it is in another region; set AWS_REGION to that",
    ),
    (
        re.compile(r"code: 403"),
        "the key may not do that; it needs s3:GetObject, PutObject, DeleteObject and ListBucket",
    ),
    (re.compile(r"<Code>SlowDown|code: (429|503)"), "it takes no more requests now"),
    (
        re.compile(r"/latest/|169\.254\.|WebIdentity"),
        "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        re.compile(r"kind: Connect"),
        "it cannot be reached; check AWS_ENDPOINT_URL, AWS_REGION and the network",
    ),
    (re.compile(r"kind: Timeout"), "it does not answer in time"),
    (re.compile(r"kind: Request"), "the connection was cut off"),
    (re.compile(r"status code: (\d+)"), r"it answered \1"),
)
"""What library and server say, and what to do. Their texts are not passed on,
because they quote requests.
"""


class S3Store:
    """One object a body, named by digest; markers in `done/`, created only where there is none.

    What is missing, or was marked by nobody before, costs one request more, to see the store's id;
    those who wait for that at the same time share it. A body is put unseen: its marker is not.

    Requests that are refused or cut off are made again within `seconds`. After a lost answer a
    marker is read, so a caller learns who was first even if it was itself. The server must refuse a
    second `If-None-Match: *` and show a written object to every later read. Endpoint, region and
    credentials are the usual AWS_* variables.
    """

    def __init__(self, url: str, seconds: float = 60.0) -> None:
        """Name the store at `s3://BUCKET/PREFIX`; nothing is asked yet. Raises
        StoreUnavailable for wrong variables.
        """
        self._url, self._seconds = url, seconds
        for name in _ENDPOINTS:
            if not re.match(r"https?://.|$", os.environ.get(name, "")):
                raise StoreUnavailable(f"{name} is no URL; give one like https://HOST:PORT")
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self._bucket = Bucket(
            bucket,
            prefix=prefix or None,
            # Not every server has it, and a plain DELETE can be made again.
            disable_bulk_delete=True,
            client_options={"allow_http": True, "timeout": timedelta(seconds=seconds / _TRIES)},
            retry_config={
                "max_retries": 8,
                "retry_timeout": timedelta(seconds=seconds / (2 * _TRIES)),
                "backoff": {"max_backoff": timedelta(seconds=2)},
            },
        )
        self._id = ""
        self._look: asyncio.Task[None] | None = None
        self._next_look: asyncio.Task[None] | None = None

    def create(self) -> bool:
        """Also raises StoreUnavailable if the server ignores conditions of writes."""
        mine = secrets.token_hex(8).encode()
        try:
            for _ in range(2):
                obstore.put(self._bucket, STORE_ID, mine, mode="create")
            obstore.delete(self._bucket, STORE_ID)
        except AlreadyExistsError:
            return bytes(obstore.get(self._bucket, STORE_ID).bytes()) == mine
        except (BaseError, FileNotFoundError) as error:
            raise self._unavailable(error) from None
        raise StoreUnavailable(
            f"{self._url}: it ignores If-None-Match, so markers cannot be kept there"
        )

    async def identify(self) -> str:
        await self._see_id()
        return self._id

    async def put(self, run_prefix: str, body: bytes) -> str:
        digest = digest_of(body)
        async with self._asking():
            await obstore.put_async(
                self._bucket, f"{run_prefix}/{digest}", body, use_multipart=False
            )
        return digest

    async def get(self, run_prefix: str, reference: str) -> bytes:
        if not is_reference(reference):
            raise BodyMissing(f"no body {reference:.80} under {run_prefix}")
        path = f"{run_prefix}/{name_of(reference)}"
        for _ in range(2):  # the network may have damaged the first copy
            found = await self._read(path)
            if found is None:
                await self._see_id()
                raise BodyMissing(f"no body {reference} under {run_prefix}")
            body = body_of(reference, found)
            if body is not None:
                return body
        if reference != name_of(reference):
            raise BodyMissing(f"the body {reference} under {run_prefix} is damaged")
        await self._delete(path)
        raise BodyMissing(f"the body {reference} under {run_prefix} was damaged; it is gone now")

    async def has(self, run_prefix: str, reference: str) -> bool:
        if not is_reference(reference):
            return False
        try:
            async with self._asking():
                await obstore.head_async(self._bucket, f"{run_prefix}/{name_of(reference)}")
        except FileNotFoundError:
            await self._see_id()
            return False
        return True

    def place(self, run_prefix: str, reference: str) -> str:
        return f"{self._url}/{run_prefix}/{name_of(reference)}"

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        found = await self._mark(f"{run_prefix}/{MARKERS}{key}", body)
        if found == body:  # nobody has marked it before, if this is the store
            await self._see_id()
        return found

    async def _mark(self, path: str, body: bytes) -> bytes:
        failure = StoreUnavailable("another writer is taking it back")
        async with self._asking():
            for _ in range(_TRIES):
                try:
                    await obstore.put_async(self._bucket, path, body, mode="create")
                except AlreadyExistsError:
                    pass  # or a marker was being deleted, and nothing was written
                except BaseError as error:
                    failure = self._unavailable(error)  # or it was written, and the answer was lost
                else:
                    return body
                if (found := await self._read(path)) is not None:
                    return found
        raise failure

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        found = await self._read(f"{run_prefix}/{MARKERS}{key}")
        if found is None:
            await self._see_id()
        return found

    async def unmark(self, run_prefix: str, key: str) -> None:
        await self._delete(f"{run_prefix}/{MARKERS}{key}")

    async def replace_marker(self, run_prefix: str, key: str, body: bytes) -> None:
        async with self._asking():
            await obstore.put_async(
                self._bucket, f"{run_prefix}/{MARKERS}{key}", body, use_multipart=False
            )
        await self._see_id()

    async def list_objects(self, namespace: str, run: str = "") -> AsyncIterator[StoredObject]:
        """A listing may be late: it can have objects that are gone, and lack the newest."""
        pages = obstore.list(self._bucket, prefix=f"{namespace}/{run}" if run else namespace)
        while True:
            async with self._asking():
                page = await anext(pages, None)
            if page is None:
                return
            for each in page:
                folder, _, name = each["path"].removeprefix(f"{namespace}/").partition("/")
                yield StoredObject(
                    f"{namespace}/{folder}", name, each["size"], each["last_modified"].timestamp()
                )

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        for first in range(0, len(names), _AT_ONCE):
            deletions = [
                self._delete(f"{run_prefix}/{name}") for name in names[first : first + _AT_ONCE]
            ]
            await asyncio.gather(*deletions)

    async def _read(self, path: str) -> bytes | None:
        try:
            async with self._asking():
                return bytes(await (await obstore.get_async(self._bucket, path)).bytes_async())
        except FileNotFoundError:
            return None

    async def _delete(self, path: str) -> None:
        try:
            async with self._asking():
                await obstore.delete_async(self._bucket, path)
        except FileNotFoundError:
            pass

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Let errors out as StoreUnavailable, but FileNotFoundError where only
        the object is missing.
        """
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except (BaseError, FileNotFoundError, TimeoutError) as error:
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise
            raise self._unavailable(error) from None

    async def _see_id(self) -> None:
        """See the id again, by a request that begins after this call. All who call while one is
        under way share the next one, so many of them at once cost little. Raises StoreUnavailable.
        """
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look_after(self._look))
            self._next_look.add_done_callback(lambda look: look.cancelled() or look.exception())
        await asyncio.shield(self._next_look)

    async def _look_after(self, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self._look, self._next_look = self._next_look, None
        self._id = seen_id(self._url, await self._read(STORE_ID), self._id)

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        reason = type(error).__name__
        for pattern, remedy in _REMEDIES:
            match = pattern.search(str(error))
            if match is not None:
                reason = match.expand(remedy)
                break
        if isinstance(error, TimeoutError):
            reason = f"no answer within {self._seconds:.0f} s"
        return StoreUnavailable(f"artifact store {self._url}: {reason}")
