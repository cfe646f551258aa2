"""Ends a worker process: drained at the first signal, at once at the second,
and in any case in time.
"""

import asyncio
import logging
import os
import signal
import threading
from typing import Any, NoReturn

from sennit.workers.output import write_out

AFTER_DRAIN = 4.0
"""Seconds that activities have to react to their cancellation after the drain. With the default
drain of 25 s a process has ended before the 30 s that Kubernetes grants are over.
"""


class StopRequest:
    """Waits for SIGTERM or SIGINT. A second signal ends the process at once; the server
    retries what was cut off.
    """

    def __init__(self) -> None:
        self._requested = asyncio.Event()

    def listen(self) -> None:
        """Handle both signals; to be called in a running event loop of the main thread."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    async def wait(self) -> None:
        await self._requested.wait()

    def _on_signal(self, number: signal.Signals) -> None:
        if self._requested.is_set():
            _log().warning("second signal: leaving at once", signal=number.name)
            leave(128 + number)
        self._requested.set()


def leave_by(seconds: float) -> None:
    """End the process with code 1 in `seconds`, even if a thread cannot be stopped or the
    event loop is blocked.
    """
    timer = threading.Timer(seconds, _give_up, (seconds,))
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End the process now, after writing out the log.

    The interpreter's own shutdown is skipped: the SDK's core may still have threads in
    Python, which would abort it.
    """
    logging.shutdown()
    write_out()
    os._exit(code)


def _give_up(seconds: float) -> None:
    _log().error("a task is still running and does not react: leaving it", seconds=seconds)
    leave(1)


def _log() -> Any:
    import structlog  # with all that it loads, which what only leaves does without

    return structlog.stdlib.get_logger(__name__)
