"""Which process a recorded id means: the id with the time it started, because systems use ids again."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ProcessIdentity(BaseModel):
    """A process of this machine that may have ended since."""

    model_config = ConfigDict(frozen=True)

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process that has this id now, or None when there is none or it is only waiting to be reaped."""
        started = _start_time(pid)
        return None if started is None else cls(pid=pid, started=started)

    @property
    def alive(self) -> bool:
        """Whether it still runs; another process with the same id does not count."""
        return _start_time(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it; harmless when it has ended."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_group(self, limit: float = 10.0) -> bool:
        """SIGKILL it and its group, wait up to `limit` seconds for its end; whether it is gone."""
        deadline = time.monotonic() + limit
        while self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def _start_time(pid: int) -> str | None:
    return _from_proc(pid) if BOOT_ID.exists() else _from_ps(pid)


def _from_proc(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else f"{fields[19]}@{BOOT_ID.read_text().strip()}"


def _from_ps(pid: int) -> str | None:
    """For systems without /proc, in one language and time zone whoever asks."""
    asked = subprocess.run(  # noqa: S603 - a number
        ["/bin/ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
        env={"LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, started = asked.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()
