"""However it ends, a worker process ends: these run in processes of their own."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

DRAINING = """
import asyncio, sys
from sennit.workers.shutdown import StopRequest, leave
from sennit.workers.telemetry import start_log

async def main():
    start_log("json", "info")
    stop = StopRequest()
    stop.listen()
    print("listening", flush=True)
    await stop.wait()
    print("draining", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

STUCK = """
import threading
from sennit.workers.shutdown import leave_by
from sennit.workers.telemetry import start_log

start_log("json", "info")
leave_by(0.05)
threading.Event().wait()
"""

LEAVING = """
import sys, threading
from sennit.workers.shutdown import leave

threading.Thread(target=threading.Event().wait).start()
sys.stdout.write("said")
leave(5)
"""

DYING = """
import asyncio, sys
from sennit.workers import __main__, process

async def deaf():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def run(_):
    task = asyncio.create_task(deaf())
    asyncio.get_running_loop().call_later(0.01, sys.exit, 3)
    await task

process.WorkerProcess.run = run
__main__.main(["workflow"])
"""


@contextmanager
def _python(code: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_first_signal_asks_and_the_second_ends_at_once() -> None:
    with _python(DRAINING) as process:
        assert _line(process) == "listening"
        process.send_signal(signal.SIGTERM)
        assert _line(process) == "draining"
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGINT
    assert "second signal" in log


def test_a_process_that_cannot_drain_leaves_in_time_and_says_so() -> None:
    with _python(STUCK) as process:
        _, log = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "does not react" in log


def test_leaving_flushes_output_and_waits_for_no_thread() -> None:
    with _python(LEAVING) as process:
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (5, "said")


def test_a_process_whose_event_loop_dies_leaves_at_once_whatever_its_tasks_do() -> None:
    with _python(DYING) as process:
        _, log = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the event loop has ended" in log
