"""Beats while something is awaited, so that a dead worker is noticed and a cancellation gets through."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity

BEAT_SECONDS = 0.5


@asynccontextmanager
async def beating(details: Callable[[], tuple[Any, ...]]) -> AsyncIterator[None]:
    """Heartbeat every half second with the details returned (at most 8 KB), until the block ends."""
    task = asyncio.create_task(_beat(details))
    try:
        yield
    finally:
        task.cancel()


async def _beat(details: Callable[[], tuple[Any, ...]]) -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        activity.heartbeat(*details())
