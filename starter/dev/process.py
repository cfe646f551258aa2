"""A process of this machine, known by its id and the time it started, because systems reuse ids."""

import os
import signal
import time
from contextlib import suppress
from typing import Self

import psutil
from pydantic import BaseModel, ConfigDict

SAME_START = 1.0  # seconds by which the start time of one process may differ when the clock is corrected


class ProcessIdentity(BaseModel):
    """A process that may have ended since."""

    model_config = ConfigDict(frozen=True)

    pid: int
    created: float

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this id now; None when there is none or it only waits to be reaped."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return cls(pid=pid, created=process.create_time())
        return None

    @property
    def alive(self) -> bool:
        """Whether it still runs; another process with the same id does not count."""
        now = ProcessIdentity.of(self.pid)
        return now is not None and abs(now.created - self.created) < SAME_START

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it; harmless when it has ended."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_group(self, limit: float = 10.0) -> bool:
        """Kill it and its group, wait up to `limit` seconds, and return whether it has ended."""
        deadline = time.monotonic() + limit
        while self.alive and time.monotonic() < deadline:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(0.02)
        return not self.alive
