"""Long commands a person waits for: progress while they run, nothing left of them when the wait ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Say = Callable[[str], None]

POLL = 0.2  # seconds
SAY_EVERY = 10.0  # seconds


class Interrupted(Exception):
    """The person who waited gave up."""


class Progress:
    """Lines for the person who waits, and their way to give up from another thread."""

    def __init__(self, say: Say | None = None) -> None:
        self.say = say or to_stderr
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Make the next `checkpoint` raise; callable from any thread."""
        self._cancelled.set()

    def checkpoint(self) -> None:
        """Raise Interrupted after `cancel`; whoever waits calls it several times a second."""
        if self._cancelled.is_set():
            raise Interrupted

    def waiter(self, label: str) -> Callable[[float], None]:
        """A function of the seconds waited so far: a checkpoint that repeats `label` with them every ten seconds."""
        said = 0.0

        def waiting(elapsed: float) -> None:
            nonlocal said
            self.checkpoint()
            if elapsed - said >= SAY_EVERY:
                said = elapsed
                self.say(f"{label} {elapsed:.0f} s")

        return waiting


def to_stderr(line: str) -> None:
    """Write one line for a person at once."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def run_watched(
    command: Sequence[str],
    *,
    log: Path,
    label: str,
    progress: Progress,
    cwd: Path,
    env: Mapping[str, str],
    limit: float,
) -> int | None:
    """Run `command` with its output in `log`; the exit status, or None when `limit` seconds did not suffice.

    Says `label` at once and every ten seconds with the time elapsed. An interrupted wait (Interrupted, Ctrl-C)
    ends the command and what it started.
    """
    progress.say(label)
    started = time.monotonic()
    waiting = progress.waiter(label)
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - a command of ours, not text from outside
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while (elapsed := time.monotonic() - started) < limit:
            try:
                return process.wait(timeout=POLL)
            except subprocess.TimeoutExpired:
                waiting(elapsed)
        return None
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:  # else its id may already be another's
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_lines(log: Path, count: int = 5, *, since: int = 0) -> str:
    """The last lines of a log, after its first `since` bytes, that say something; empty when there is no log."""
    try:
        lines = log.read_bytes()[since:][-20_000:].decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join([line.strip() for line in lines if line.strip()][-count:])
