"""Waits for a store that is away for a while, so that nothing fails, and nothing is
called again, only for that.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Final, TypeVar

from sennit.activities.limits import MAX_STORE_PAUSE_SECONDS
from sennit.activities.storage.artifacts import ArtifactStore, StoredObject, StoreUnavailable

T = TypeVar("T")
_FIRST_PAUSE: Final = 0.1


class StoreWait:
    """What of its store an activity waits for now: a sentence, or nothing."""

    problem = ""


_wait: ContextVar[StoreWait | None] = ContextVar("wait", default=None)


@contextmanager
def store_wait() -> Iterator[StoreWait]:
    """Give what the work of this block waits for, at any time."""
    wait = StoreWait()
    token = _wait.set(wait)
    try:
        yield wait
    finally:
        _wait.reset(token)


class _StoppedLimit:
    """A limit of time that stands still during blocks, side by side or one after another:
    calls of a store, say.
    """

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._calls = 0
        self._left = 0.0

    @contextmanager
    def stopped(self) -> Iterator[None]:
        time, when = asyncio.get_running_loop().time, self._limit.when()
        if not self._calls and when is not None and not self._limit.expired():
            self._left = when - time()
            self._limit.reschedule(None)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls and not self._limit.expired():
                # The limited work has ended, and left this call behind.
                with suppress(RuntimeError):
                    self._limit.reschedule(time() + self._left)


_limit: ContextVar[_StoppedLimit | None] = ContextVar("limit", default=None)


@contextmanager
def stops_for_the_store(limit: asyncio.Timeout) -> Iterator[None]:
    """Let the time of `limit` stand still, within the block, while a patient store is asked."""
    token = _limit.set(_StoppedLimit(limit))
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def outside_of_the_limit() -> Iterator[None]:
    """Let the limit of time of the call that runs now stand still within the block."""
    limit = _limit.get()
    with limit.stopped() if limit is not None else nullcontext():
        yield


class PatientStore:
    """A store whose calls wait while it is away, and are then made again: each may
    be, with the same result.

    A call waits for at most the seconds that `patience` returns when the store is missed;
    then it raises StoreUnavailable. So it does after a second try if the store is there
    and refuses, because the disk is full for instance. `missed` is told of each look at
    which the store was away.
    """

    def __init__(
        self,
        store: ArtifactStore,
        patience: Callable[[], float],
        missed: Callable[[StoreUnavailable], None],
    ) -> None:
        self._store = store
        self._patience = patience
        self._missed = missed

    def create(self) -> bool:
        return self._store.create()

    async def identify(self) -> str:
        return await self._store.identify()

    async def put(self, run_prefix: str, body: bytes) -> str:
        return await self._call(lambda: self._store.put(run_prefix, body))

    async def get(self, run_prefix: str, reference: str) -> bytes:
        return await self._call(lambda: self._store.get(run_prefix, reference))

    def place(self, run_prefix: str, reference: str) -> str:
        return self._store.place(run_prefix, reference)

    async def mark(self, run_prefix: str, key: str, body: bytes) -> bytes:
        return await self._call(lambda: self._store.mark(run_prefix, key, body))

    async def marked(self, run_prefix: str, key: str) -> bytes | None:
        return await self._call(lambda: self._store.marked(run_prefix, key))

    async def has(self, run_prefix: str, reference: str) -> bool:
        return await self._call(lambda: self._store.has(run_prefix, reference))

    async def unmark(self, run_prefix: str, key: str) -> None:
        await self._call(lambda: self._store.unmark(run_prefix, key))

    async def replace_marker(self, run_prefix: str, key: str, body: bytes) -> None:
        await self._call(lambda: self._store.replace_marker(run_prefix, key, body))

    def list_objects(self, namespace: str, run: str = "") -> AsyncIterator[StoredObject]:
        return self._store.list_objects(namespace, run)

    async def delete(self, run_prefix: str, names: Sequence[str]) -> None:
        await self._call(lambda: self._store.delete(run_prefix, names))

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        with outside_of_the_limit():
            return await self._patiently(call)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except StoreUnavailable as error:
            if await self._is_there():  # it refuses, or has come back this moment
                return await call()
            self._miss(error)
        try:
            return await self._when_it_is_back(call)
        finally:
            self._miss(None)

    async def _when_it_is_back(self, call: Callable[[], Awaitable[T]]) -> T:
        deadline, pause = time.monotonic() + self._patience(), _FIRST_PAUSE
        while True:
            try:
                await self._store.identify()
                return await call()
            except StoreUnavailable as error:
                self._miss(error)
                if time.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_STORE_PAUSE_SECONDS)

    def _miss(self, error: StoreUnavailable | None) -> None:
        wait = _wait.get()
        if wait is not None:
            wait.problem = f"waits for the {error}" if error is not None else ""
        if error is not None:
            self._missed(error)

    async def _is_there(self) -> bool:
        try:
            await self._store.identify()
        except StoreUnavailable:
            return False
        return True
