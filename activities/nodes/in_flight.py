"""What becomes of a write in flight when its activity is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio import activity

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`, which goes on after a cancellation: a run waits for its writes in flight before
    it ends, and who forks it, or goes on after a reset, finds the outcome in the ledger of effects.
    It is cut off only when the worker stops.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    try:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                if worker_stops(again=cancelled):
                    raise
                cancelled = True
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    return task.result()


def worker_stops(*, again: bool = False) -> bool:
    """Whether it is this worker that cancels an activity. What the server has said once stays in
    the details, so of a further cancellation they do not tell.
    """
    details = activity.cancellation_details()
    return details is None or details.worker_shutdown or (again and activity.is_worker_shutdown())
