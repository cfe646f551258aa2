"""Who may have a process of a pool: one thread for each process, each thread one process, and
nobody waits for ever.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, local
from typing import Final

from sennit.activities.limits import MAX_POOL_PROCESSES

CHECKOUT_SECONDS: Final = 60.0
"""For which a thread waits for a process: several times as long as any script may keep one."""


class InterpreterCrashed(Exception):
    """A process died under a script, or none became free. Nothing of the advance counts;
    it may be tried again.
    """


class NestedCheckout(RuntimeError):
    """A thread that holds a process of a pool has asked for another one: an error of the
    code, not of a script.

    As many such threads as the pool has processes would wait for each other for ever.
    """


class Checkouts:
    """Counts the processes of one pool that threads hold. The pool has as many as this process may
    use processors, and MAX_POOL_PROCESSES at most.
    """

    def __init__(self, pool: str) -> None:
        self.processes = min(processors(), MAX_POOL_PROCESSES)
        self._pool = pool
        self._free = BoundedSemaphore(self.processes)
        self._thread = local()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait until a process is free, and hold it. Raises InterpreterCrashed if none becomes free
        in CHECKOUT_SECONDS, and NestedCheckout at once if this thread holds one already.
        """
        if getattr(self._thread, "holds_process", False):
            raise NestedCheckout(
                f"a thread that holds a process that {self._pool} has asked for another one"
            )
        if not self._free.acquire(timeout=CHECKOUT_SECONDS):
            raise InterpreterCrashed(
                f"no process that {self._pool} became free in {CHECKOUT_SECONDS:.0f} s"
            )
        self._thread.holds_process = True
        try:
            yield
        finally:
            self._thread.holds_process = False
            self._free.release()


def processors() -> int:
    """Return how many processors this process may use: a worker that is pinned to one has one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
