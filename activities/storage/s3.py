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

from activities.storage.artifacts import MARKERS, BodyMissing, StoredObject, StoreUnavailable, digest_of

_TRIES: Final = 3
_AT_ONCE: Final = 16
"""Objects that are deleted at a time."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REMEDIES: Final = (
    (re.compile(r"<Code>NoSuchBucket"), "there is no such bucket; create it, or correct SENNIT_ARTIFACTS"),
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
    (re.compile(r"kind: Connect"), "it cannot be reached; check AWS_ENDPOINT_URL, AWS_REGION and the network"),
    (re.compile(r"kind: Timeout"), "it does not answer in time"),
    (re.compile(r"kind: Request"), "the connection was cut off"),
    (re.compile(r"status code: (\d+)"), r"it answered \1"),
)
"""What library and server say, and what to do. Their texts are not passed on, because they quote requests."""


class S3Store:
    """One object a body, named by digest; markers in `done/`, created only where there is none.

    Requests that are refused or cut off are made again within `seconds`. After a lost answer a marker is read, so a
    caller learns who was first even if it was itself. The server must refuse a second `If-None-Match: *` and show a
    written object to every later read. Endpoint, region and credentials are the usual AWS_* variables.
    """

    def __init__(self, url: str, seconds: float = 60.0) -> None:
        """Open the store at `s3://BUCKET/PREFIX`. Raises StoreUnavailable, also without conditional writes."""
        self._url, self._seconds = url, seconds
        if wrong := [name for name in _ENDPOINTS if not re.match(r"https?://.|$", os.environ.get(name, ""))]:
            raise StoreUnavailable(f"{wrong[0]} is no URL; give one like https://HOST:PORT")
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        self._bucket = Bucket(
            bucket,
            prefix=prefix or None,
            disable_bulk_delete=True,  # not every server has it, and a plain DELETE can be made again
            client_options={"allow_http": True, "timeout": timedelta(seconds=seconds / _TRIES)},
            retry_config={
                "max_retries": 8,
                "retry_timeout": timedelta(seconds=seconds / (2 * _TRIES)),
                "backoff": {"max_backoff": timedelta(seconds=2)},
            },
        )
        self.store_id = self._make_id()

    async def put(self, run_prefix: str, body: bytes) -> str:
        digest = digest_of(body)
        async with self._asking():
            await obstore.put_async(self._bucket, f"{run_prefix}/{digest}", body, use_multipart=False)
        return digest

    async def get(self, run_prefix: str, digest: str) -> bytes:
        for _ in range(2):  # the network may have damaged the first copy
            body = await self._read(f"{run_prefix}/{digest}")
            if body is None:
                raise BodyMissing(f"no body {digest} under {run_prefix}")
            if digest_of(body) == digest:
                return body
        await self._delete(f"{run_prefix}/{digest}")
        raise BodyMissing(f"the body {digest} under {run_prefix} was damaged; it is gone now")

    async def has(self, run_prefix: str, digest: str) -> bool:
        try:
            async with self._asking():
                await obstore.head_async(self._bucket, f"{run_prefix}/{digest}")
        except FileNotFoundError:
            return False
        return True

    def place(self, run_prefix: str, digest: str) -> str:
        return f"{self._url}/{run_prefix}/{digest}"

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        path, failure = f"{run_prefix}/{MARKERS}{key}", StoreUnavailable("another writer is taking it back")
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
        return await self._read(f"{run_prefix}/{MARKERS}{key}")

    async def unmark(self, run_prefix: str, key: str) -> None:
        await self._delete(f"{run_prefix}/{MARKERS}{key}")

    async def list_objects(self, namespace: str) -> AsyncIterator[StoredObject]:
        """A listing may be late: it can have objects that are gone, and lack the newest."""
        pages = obstore.list(self._bucket, prefix=namespace)
        while True:
            async with self._asking():
                page = await anext(pages, None)
            if page is None:
                return
            for each in page:
                run, _, name = each["path"].removeprefix(f"{namespace}/").partition("/")
                yield StoredObject(f"{namespace}/{run}", name, each["size"], each["last_modified"].timestamp())

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            await asyncio.gather(*(self._delete(f"{run_prefix}/{name}") for name in some))

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
        """Let errors out as StoreUnavailable, but FileNotFoundError where only the object is missing."""
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except (BaseError, FileNotFoundError, TimeoutError) as error:
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise
            raise self._unavailable(error) from None

    def _make_id(self) -> str:
        """Return the id every worker on this store sees; the first one makes it."""
        mine = secrets.token_hex(8).encode()
        try:
            for _ in range(2):
                obstore.put(self._bucket, ".store-id", mine, mode="create")
        except AlreadyExistsError:
            return bytes(obstore.get(self._bucket, ".store-id").bytes()).decode()
        except (BaseError, FileNotFoundError) as error:
            raise self._unavailable(error) from None
        raise StoreUnavailable(f"{self._url}: it ignores If-None-Match, so markers cannot be kept there")

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        found = ((pattern.search(str(error)), remedy) for pattern, remedy in _REMEDIES)
        what = next((match.expand(remedy) for match, remedy in found if match), type(error).__name__)
        if isinstance(error, TimeoutError):
            what = f"no answer within {self._seconds:.0f} s"
        return StoreUnavailable(f"artifact store {self._url}: {what}")
