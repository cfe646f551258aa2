"""The event loop of `sennit.testing`, in which time passes at once."""

import time

from sennit.testing.clock import VirtualLoop


def test_no_time_passes_while_the_loop_waits_for_its_threads() -> None:
    """From Python 3.12 on, asyncio gives them 300 s, and warns of those that take longer."""
    loop = VirtualLoop()
    try:
        loop.run_in_executor(None, time.sleep, 0.1)
        loop.run_until_complete(loop.shutdown_default_executor(300.0))
        assert loop.time() == 0.0
    finally:
        loop.close()
