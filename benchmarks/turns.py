"""`make bench ARGS=turns`: how long a turn of a tool loop takes in which one of
five calls is a straggler.

A turn's time is that from the model's reply to its next request, as the model's server sees it: the
calls are checked, started and ended, and the next turn is started. With `turn: {quorum: 4}` it is
that of the fourth call; the straggler goes on. Without, it is the straggler's.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.stage import Stage, stage
from sennit.testing.model_rules import Asked, Call, Reply
from sennit.testing.models import ModelServer, model_server

RUNS = 5
SECONDS = (0.5, 1.0, 2.0, 3.0)
STRAGGLER = 6.0
GOAL = 1.05
"""How much longer than its fourth call a turn may take."""


async def turn_seconds(built: Stage, server: ModelServer, name: str, turn: Any) -> list[float]:
    """Return for some runs how many seconds their first turn takes; the
    server knows them by `name`.
    """
    replied: list[float] = []
    asked_again: list[float] = []
    calls = tuple(Call("bench_nap", {"seconds": seconds}) for seconds in (*SECONDS, STRAGGLER))

    def first(_: Asked) -> Reply:
        replied.append(time.perf_counter())
        return Reply(calls=calls)

    def second(_: Asked) -> Reply:
        asked_again.append(time.perf_counter())
        return Reply("Done.")

    prompt = f"How long with {name}"
    server.on(prompt, first, results=0)
    server.on(prompt, second, results=len(calls))
    node = {"id": "n", "kind": "llm", "prompt": prompt, "tools": ["bench_nap"], "turn": turn}
    for _ in range(RUNS):
        await built.timed({"nodes": [node], "answer": "$n"}, goal="g")
    return sorted(again - before for before, again in zip(replied, asked_again, strict=True))


async def main(_: Sequence[str]) -> int:
    """Print the table; 1 if the goal is missed."""
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as place:
        async with model_server() as server:
            where = {
                "OPENAI_BASE_URL": server.openai_url,
                "OPENAI_API_KEY": "any",
                "SENNIT_MODEL": "openai",
            }
            async with stage(Path(place), **where) as built:
                for name, turn, last in (
                    ("all", "all", STRAGGLER),
                    ("quorum", {"quorum": 4}, SECONDS[-1]),
                ):
                    taken = await turn_seconds(built, server, name, turn)
                    rows.append((name, last, statistics.median(taken)))
    print("| `turn` | last call that is awaited | the turn | more |\n|---|---|---|---|")
    for name, last, median in rows:
        print(f"| {name} | {last:.2f} s | {median:.2f} s | {100 * (median / last - 1):.1f} % |")
    _, last, median = rows[-1]
    return int(median > GOAL * last)
