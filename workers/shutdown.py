"""How a worker process ends: drained at the first signal, at once at the second, and in any case on time."""

import asyncio
import logging
import os
import signal
import sys
import threading
from typing import NoReturn

import structlog

AFTER_DRAIN = 4.0
"""Seconds that activities have to react to their cancellation after the drain; with the default drain of 25 s a
process is gone before the 30 s that Kubernetes grants."""

log = structlog.stdlib.get_logger(__name__)


class StopRequest:
    """Waits for SIGTERM or SIGINT. A second one ends the process at once; the server then retries what was cut off."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    def listen(self) -> None:
        """Take over both signals; within a running event loop, in the main thread."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._heard, number)

    async def wait(self) -> None:
        """Return once a stop was asked for."""
        await self._asked.wait()

    def _heard(self, number: signal.Signals) -> None:
        if self._asked.is_set():
            log.warning("second signal: leaving at once", signal=number.name)
            leave(128 + number)
        self._asked.set()


def leave_by(seconds: float) -> None:
    """End the process with code 1 in `seconds` whatever still runs: a thread that hears nothing, a blocked loop."""
    timer = threading.Timer(seconds, _give_up, (seconds,))
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End the process now with what was logged written out.

    Not through the interpreter's own end: the SDK's core may still hold threads in Python, and then it aborts.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _give_up(seconds: float) -> None:
    log.error("a task is still running and does not react: leaving it", seconds=seconds)
    leave(1)
