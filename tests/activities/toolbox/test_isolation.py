"""A tool in a process of its own takes nothing else with it, and its process ends with the call."""

import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sennit.activities.toolbox.errors import ToolArgumentError, ToolExit, WorkerLost
from sennit.activities.toolbox.isolation import _portable, run_isolated


async def test_a_function_runs_in_another_process_whose_start_is_not_its_time() -> None:
    async with asyncio.timeout(0.5) as limit:
        assert await run_isolated(os.getpid, "tool", limit) != os.getpid()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (partial(os._exit, 9), WorkerLost, "it ended its process, with exit code 9"),
        (partial(sys.exit, 3), ToolExit, r"it raised SystemExit\(3\)"),
        (partial(int, "x"), ValueError, "invalid literal"),
    ],
)
async def test_what_goes_wrong_there_is_raised_here(
    function: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await run_isolated(function, "tool")


async def test_a_call_that_runs_out_of_time_is_killed() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1) as limit:
            await run_isolated(partial(time.sleep, 600), "tool", limit)
    async with asyncio.timeout(100):
        while multiprocessing.active_children():
            await asyncio.sleep(0.01)


def test_errors_keep_their_type_if_they_can_be_sent() -> None:
    class Local(Exception):
        pass

    known = _portable(ToolArgumentError("is missing", tool="t", field="f"))
    assert (type(known), str(known)) == (ToolArgumentError, "t: f: is missing")
    assert repr(_portable(Local("odd"))) == "RuntimeError('Local: odd')"
