"""The time by which a run goes: that of the Temporal server, on every worker.

The clocks of two machines differ. So a worker takes from the server when its activity has started,
and adds only how long it has worked on it since, by a clock that nobody sets: what it tells the run
fits the run's own time, and what two workers write into the store can be compared.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from temporalio import activity

_offset: ContextVar[float | None] = ContextVar("offset of the server's time", default=None)
"""What the server's clock is ahead of this process's monotonic one, in seconds."""


@contextmanager
def by_server_time() -> Iterator[None]:
    """Go by the server's time in the activity that begins now, and in all that it starts."""
    started = activity.info().started_time.timestamp()
    token = _offset.set(started - time.monotonic())
    try:
        yield
    finally:
        _offset.reset(token)


def seconds_now() -> float:
    """Return the seconds of the Unix clock by the server's time; outside of an activity, by the
    clock of this machine.

    It is behind the server by as long as the worker took to receive the activity.
    """
    offset = _offset.get()
    if offset is None:
        return time.time()
    return time.monotonic() + offset


def millis_now() -> int:
    """Return the same in milliseconds, as runs count."""
    return round(1000 * seconds_now())
