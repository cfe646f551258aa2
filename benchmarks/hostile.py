"""What a hostile script takes from others: how long a node of another run takes
beside each of the corpus.

Goal: at most twice its time, and 0.5 s more.
"""

import statistics
from contextlib import suppress
from typing import Any

from doubles.hostile_scripts import HOSTILE
from temporalio.service import RPCError

from benchmarks.stage import Stage

SECONDS = 0.5
REPEATS = 3
GOAL_RATIO, GOAL_MORE = 2.0, 0.5


def _nap() -> dict[str, Any]:
    return {
        "nodes": [{"id": "nap", "kind": "tool", "tool": "bench_nap", "args": {"seconds": SECONDS}}],
        "answer": "$nap",
    }


async def measure(built: Stage) -> dict[str, Any]:
    """Return the seconds of a node alone, and the longest beside each script, by its name."""
    alone = statistics.median([(await built.timed(_nap()))[0] for _ in range(REPEATS)])
    beside: dict[str, float] = {}
    for name, hostile in HOSTILE.items():
        # Of surrogates no request can be made.
        script = hostile.script.encode(errors="replace").decode()
        program = {"id": "main", "kind": "program", "script": script}
        run = await built.start({"nodes": [program], "answer": "$main"}, on_failure="fail")
        try:
            beside[name] = max([(await built.timed(_nap()))[0] for _ in range(REPEATS)])
        finally:
            with suppress(RPCError):  # most have failed by then
                await run.terminate("it has been beside others for long enough")
    most = GOAL_RATIO * alone + GOAL_MORE
    return {"alone": alone, "beside": beside, "most": most, "met": max(beside.values()) <= most}


def table(found: dict[str, Any]) -> str:
    """Return the figures as text: those of the scripts that take the most."""
    worst = sorted(found["beside"].items(), key=lambda each: -each[1])[:5]
    lines = [
        (
            f"a node of another run: {found['alone']:.2f} s alone (goal <= {found['most']:.2f} s "
            "beside each script)"
        )
    ]
    return "\n".join([*lines, *(f"{seconds:8.2f} s beside {name}" for name, seconds in worst)])
