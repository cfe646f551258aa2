"""The heartbeats of the activity that runs now.

Each one costs the server a write of its database, and Temporal Cloud bills it. So an activity beats
once a second, and a call that takes less only says what it may use before it goes out.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError

from sennit.activities.nodes.server_time import by_server_time
from sennit.activities.storage.patience import store_wait
from sennit.activities.toolbox.redaction import redact

BEAT_SECONDS = 1.0
"""A cancellation reaches an activity only with the answer to a heartbeat."""


@dataclass(slots=True)
class _Beats:
    """What an activity has told. The SDK holds heartbeats back that come too soon after one
    another, and sends the last of them later.
    """

    has_used_sdk: bool = False


_BEATS: ContextVar[_Beats] = ContextVar("the heartbeats of this activity")


@contextmanager
def beating(details: Callable[[], tuple[Any, ...]]) -> Iterator[None]:
    """Heartbeat every second with the details returned (at most 8 KB), until the block ends. What
    runs in it goes by the server's time.

    While the work waits for the artifact store, the first of them says so.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    _BEATS.set(_Beats())

    def beat_later() -> None:
        nonlocal timer
        timer = loop.call_later(BEAT_SECONDS, beat)

    def beat() -> None:
        beat_later()
        told = details()
        if wait.problem:
            told = (redact(wait.problem)[:200], *told[1:])
        heartbeat(*told)

    beat_later()
    with store_wait() as wait, by_server_time():
        try:
            yield
        finally:
            timer.cancel()


def heartbeat(*details: Any) -> None:
    """Beat. The server knows of it soon, but for what a later heartbeat says instead."""
    beats = _BEATS.get(None)
    if beats is not None:
        beats.has_used_sdk = True
    activity.heartbeat(*details)


async def confirmed_heartbeat(*details: Any) -> None:
    """Beat, and return when the server knows of it. Raises RPCError."""
    beats = _BEATS.get(None)
    if beats is None or beats.has_used_sdk:
        # An older heartbeat may still wait in the SDK, and would come after this one.
        heartbeat(*details)
    this = activity.client().get_async_activity_handle(task_token=activity.info().task_token)
    try:
        await this.heartbeat(*details)
    except AsyncActivityCancelledError:
        # The SDK cancels the activity once a heartbeat of its own was answered like that.
        heartbeat(*details)
