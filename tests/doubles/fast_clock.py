"""Puts the clock of a worker ahead by `CLOCK_AHEAD` seconds. Named as a module of tools."""

import os
import time

from doubles.tools import nap

AHEAD = float(os.environ.get("CLOCK_AHEAD", "0"))
TOOLS = (nap,)

_clock = time.time


def _ahead() -> float:
    return _clock() + AHEAD


if AHEAD:
    time.time = _ahead
