"""`make bench ARGS=rates`: how much of a model server's rate a run uses, as ratios within one run.

A real HTTP server takes 10 calls a second with bursts of 10, and refuses the rest with 429, with
and without Retry-After. A map makes 100 calls of 0.5 s through one worker and through three,
beside plain asyncio whose calls back off as those of the usual SDKs do. `ideal` is the least time
in which the server takes so many calls. Further rows hold Sennit to a rate that is declared in
SENNIT_RATES or by `sennit setup --rates`, on a server without a limit, and send 200 items to a
server that takes 5 calls at once.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmarks.stage import Stage, stage, start_worker
from sennit.testing.model_limits import CallRate, CallsAtOnce
from sennit.testing.model_rules import Asked, Reply
from sennit.testing.models import ModelServer, model_server

CALLS, SECONDS = 100, 0.5
PER_SECOND, BURST = 10.0, 10
ITEMS, AT_ONCE = 200, 5
DECLARED, DECLARED_CALLS = 1_200, 400
"""Calls a minute. Temporal divides the rate of a queue among its partitions, so a few
calls say little of it.
"""
IDEAL = (CALLS - BURST) / PER_SECOND + SECONDS
DONE = Reply("done", first_token=SECONDS)
HINTED_GOAL, UNHINTED_GOAL, REQUESTS_GOAL, ITEM_REQUESTS_GOAL, DECLARED_GOAL = (
    1.3,
    1.6,
    1.2,
    3.0,
    0.95,
)
ROWS = ("asyncio", "limited", "declared", "setup", "at once")


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: its seconds as a multiple of `ideal`, and how many requests the
    server got for the calls.
    """

    name: str
    seconds: float
    ideal: float
    calls: int
    requests: int
    goal: float
    requests_goal: float

    @property
    def is_met(self) -> bool:
        return (
            self.seconds <= self.goal * self.ideal
            and self.requests <= self.requests_goal * self.calls
        )

    def __str__(self) -> str:
        times, requests = self.seconds / self.ideal, self.requests / self.calls
        mark = "" if self.is_met else "   missed"
        figures = f"{times:>8.2f} x ideal (goal {self.goal:.2f}){requests:>8.2f} requests a call"
        return (
            f"{self.name:<46}{figures} (goal {self.requests_goal:.1f}){self.seconds:>8.1f} s{mark}"
        )


def plan(calls: int) -> dict[str, Any]:
    """Return the request of a run whose map makes so many model calls."""
    do = {"kind": "llm", "prompt": "say done for $item"}
    items = {"id": "m", "kind": "map", "over": "$input.items", "max_items": calls, "do": do}
    declared = {"items": {"type": "array"}}
    return {
        "plan": {"inputs": declared, "nodes": [items], "answer": "$m"},
        "inputs": {"items": list(range(calls))},
    }


@asynccontextmanager
async def workers(server: ModelServer, count: int, **env: str) -> AsyncIterator[Stage]:
    """Give a stage with so many workers that serve model calls of this server."""
    env |= {"OPENAI_BASE_URL": server.openai_url, "SENNIT_MODEL": "openai:test-model"}
    with tempfile.TemporaryDirectory(prefix="sennit-bench-") as folder:
        place = Path(folder)
        async with stage(place, **env) as built:
            more = [await start_worker(built.address, place, env, "llm") for _ in range(count - 1)]
            try:
                yield built
            finally:
                for worker, _ in more:
                    worker.terminate()
                for worker, _ in more:
                    await asyncio.to_thread(worker.wait, 40)


async def timed(built: Stage, calls: int) -> float:
    """Return the seconds that a run takes from its first call to its end, as the
    ideal time counts them.
    """
    request = plan(calls)
    seconds, handle = await built.timed(request.pop("plan"), **request)
    report = await handle.result()
    failed = [node for node in report["nodes"] if node["status"] == "failed"]
    if failed or report["answer"] != ["done"] * calls:
        raise RuntimeError(f"nodes failed: {failed[:3]}")
    return seconds


async def overhead(built: Stage, server: ModelServer) -> None:
    """Make one call, so that what a worker loads at its first run is there."""
    server.rules.clear()
    server.on("", Reply("done"))
    await timed(built, 1)
    server.rules.clear()
    server.asked.clear()


async def asyncio_row(server: ModelServer, *, hint: bool) -> Row:
    """Make the calls from plain asyncio, each with its own exponential
    backoff from 0.5 s to 8 s.
    """
    limit = CallRate(DONE, PER_SECOND, BURST, hint=hint)
    server.rules.clear()
    server.on("", limit)
    body = {"model": "test-model", "messages": [{"role": "user", "content": "say done"}]}
    spread = random.Random(7)

    async def call(client: httpx.AsyncClient) -> None:
        pause = 0.5
        while True:
            reply = await client.post(f"{server.openai_url}/chat/completions", json=body)
            if reply.status_code == httpx.codes.OK:
                return
            asked = float(reply.headers.get("retry-after", 0))
            await asyncio.sleep(asked or pause * spread.uniform(0.75, 1.0))
            pause = min(2 * pause, 8.0)

    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        began = time.perf_counter()
        await asyncio.gather(*(call(client) for _ in range(CALLS)))
        seconds = time.perf_counter() - began
    name = f"plain asyncio, {_hints(hint)}"
    return Row(name, seconds, IDEAL, CALLS, limit.taken + limit.refused, float("inf"), float("inf"))


async def limited_row(server: ModelServer, *, count: int, hint: bool) -> Row:
    """Make the calls from so many workers, on the server with a rate."""
    async with workers(server, count) as built:
        await overhead(built, server)
        limit = CallRate(DONE, PER_SECOND, BURST, hint=hint)
        server.on("", limit)
        seconds = await timed(built, CALLS)
    goal = HINTED_GOAL if hint else UNHINTED_GOAL
    name = f"{count} worker{'s' * (count > 1)}, {_hints(hint)}"
    return Row(name, seconds, IDEAL, CALLS, limit.taken + limit.refused, goal, REQUESTS_GOAL)


async def declared_row(server: ModelServer, *, by_setup: bool) -> Row:
    """Make the calls at a declared rate, on a server without a limit. The ideal
    time is that of the rate.
    """
    env = {} if by_setup else {"SENNIT_RATES": f"openai={DECLARED}"}
    async with workers(server, 1, **env) as built:
        if by_setup:
            await _set_up(built)
        await overhead(built, server)
        began: list[float] = []

        def reply(_: Asked) -> Reply:
            began.append(time.perf_counter())
            return DONE

        server.on("", reply)
        await timed(built, DECLARED_CALLS)
    # The rate alone: what a run takes before its first call and after its last
    # one is not the rate's.
    seconds = began[-1] - began[0]
    name = f"declared by {'setup --rates' if by_setup else 'SENNIT_RATES'}"
    ideal = (DECLARED_CALLS - 1) / (DECLARED / 60)
    return Row(name, seconds, ideal, DECLARED_CALLS, len(server.asked), 1 / DECLARED_GOAL, 1.0)


async def at_once_row(server: ModelServer) -> Row:
    """Send 200 items to a server that takes five calls at once."""
    async with workers(server, 1) as built:
        await overhead(built, server)
        limit = CallsAtOnce(DONE, AT_ONCE, lambda: server.busy)
        server.on("", limit)
        seconds = await timed(built, ITEMS)
    ideal = ITEMS / AT_ONCE * SECONDS
    name = f"{ITEMS} items, {AT_ONCE} at once"
    return Row(
        name, seconds, ideal, ITEMS, limit.taken + limit.refused, float("inf"), ITEM_REQUESTS_GOAL
    )


async def _set_up(built: Stage) -> None:
    command = [
        sys.executable,
        "-m",
        "sennit",
        "setup",
        "--rates",
        f"openai={DECLARED}",
        "--address",
        built.address,
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait():
        raise RuntimeError("`sennit setup --rates` has failed")


def _hints(hint: bool) -> str:
    return f"429 {'with' if hint else 'without'} Retry-After"


async def main(arguments: Sequence[str]) -> int:
    """Measure the rows and print them; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rates")
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], help="these rows alone")
    chosen = parser.parse_args(arguments).rows or ROWS
    made: dict[str, list[Callable[[ModelServer], Coroutine[Any, Any, Row]]]] = {
        "asyncio": [partial(asyncio_row, hint=hint) for hint in (True, False)],
        "limited": [
            partial(limited_row, count=count, hint=hint)
            for hint in (True, False)
            for count in (1, 3)
        ],
        "declared": [partial(declared_row, by_setup=False)],
        "setup": [partial(declared_row, by_setup=True)],
        "at once": [at_once_row],
    }
    met = True
    for name in chosen:
        for measure in made[name]:
            async with model_server() as server:
                row = await measure(server)
            met = met and row.is_met
            print(row, flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0 if met else 1
