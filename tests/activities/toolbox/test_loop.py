"""The clock of a worker's event loop."""

import asyncio
import time

import pytest

from sennit.activities.toolbox import loop
from sennit.activities.toolbox.loop import SteadyLoop


def test_time_limits_spare_what_waits_while_the_process_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process and a blocked loop look alike. Time limits end what takes too long by itself."""
    monkeypatch.setattr(loop, "MAX_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(loop, "TICK", 0.02)

    async def wait(seconds: float) -> str:
        async with asyncio.timeout(0.2):
            time.sleep(0.5)
            await asyncio.sleep(seconds)
        return "in time"

    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        assert runner.run(wait(0.05)) == "in time"
        with pytest.raises(TimeoutError):
            runner.run(wait(10))
