"""What the processes of scripts take, without a server: `make bench ARGS=scripts`.

A script starts, goes on where it waits, and goes on in another process, which is told again what
has ended before. Its computing is compared with the same code here.
"""

import os
import statistics
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.progress import Advance
from sennit.activities.programs.values import Call, Ended

CHAIN = """
async def main(calls: int):
    texts = []
    for number in range(calls):
        texts.append(await search(query=f"query {number}"))
    return len(texts)
"""
COMPUTING = """
def work(count: int) -> int:
    total = 0
    for number in range(count):
        total += number * number % 7
    return total
"""
COUNT = 2_000_000
STARTS, STEPS, LIVE = 20, 200, 50
COLD = (1_000, 5_000)
COLD_GOAL, MEMORY_GOAL = 0.3, 4.0
"""Seconds of a step in another process after 1,000 calls, and MB of a program that waits."""
FOUND = Ended("passage " * 10)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; a goal of 0 is none."""

    name: str
    found: float
    unit: str
    goal: float = 0.0

    @property
    def is_met(self) -> bool:
        return not self.goal or self.found <= self.goal

    def __str__(self) -> str:
        goal = f"  goal <= {self.goal:g}" if self.goal else ""
        mark = "" if self.is_met else "  missed"
        return f"{self.name:<58} {self.found:10.2f} {self.unit}{goal}{mark}"


def leave_open(_: Call) -> None:
    """Answer no call at once: it ends when the script is told so."""


async def timed(work: Awaitable[Advance]) -> tuple[float, Advance]:
    """Return how long an advance takes, and how far it came. Raises RuntimeError for a
    script that has failed.
    """
    began = time.perf_counter()
    advance = await work
    taken = time.perf_counter() - began
    if advance.error is not None:
        raise RuntimeError(advance.error.message)
    return taken, advance


async def begin(interpreter: Interpreter, calls: int) -> tuple[float, Advance]:
    """Start a chain of so many calls. It waits for the first one."""
    return await timed(interpreter.start(CHAIN, "main", {"calls": calls}, leave_open))


async def step(interpreter: Interpreter, before: Advance) -> tuple[float, Advance]:
    """Tell a chain that its call has ended."""
    [waits] = before.waits
    return await timed(interpreter.resume(before.snapshot, {waits: FOUND}, leave_open))


async def cold_step(calls: int) -> tuple[float, list[float]]:
    """Return the seconds of a step in a new process after so many calls, and
    of each step before it.
    """
    interpreter = Interpreter()
    interpreter.warm_up()
    steps = []
    async with interpreter:
        _, advance = await begin(interpreter, calls + 1)
        for _ in range(calls):
            taken, advance = await step(interpreter, advance)
            steps.append(taken)
        await interpreter.close()
        interpreter.warm_up()
        cold, _ = await step(interpreter, advance)
    return cold, steps


async def computing(interpreter: Interpreter) -> float:
    """Return how many times as long a script computes as this process does."""
    names: dict[str, Any] = {}
    exec(COMPUTING, names)
    began = time.perf_counter()
    names["work"](COUNT)
    here = time.perf_counter() - began

    script = f"{COMPUTING}\n\nasync def main(count: int):\n    return work(count)\n"
    there, _ = await timed(interpreter.start(script, "main", {"count": COUNT}, leave_open))
    return there / here


def processes() -> set[psutil.Process]:
    """Return the processes below this one."""
    return set(psutil.Process().children(recursive=True))


def own_memory(process: psutil.Process) -> float:
    """Return the MB that a process shares with no other one."""
    return int(process.memory_full_info().uss) / 1e6


async def figures() -> list[Figure]:
    """Measure everything."""
    found: list[Figure] = []
    interpreter = Interpreter()
    interpreter.warm_up()
    async with interpreter:
        starts = [(await begin(interpreter, 1))[0] for _ in range(STARTS)]
        found.append(Figure("start of a script", 1000 * statistics.median(starts), "ms"))
        found.append(
            Figure("computing, to the same code here", await computing(interpreter), "times")
        )

    interpreter = Interpreter()
    interpreter.warm_up()
    async with interpreter:
        before = processes()
        for _ in range(LIVE):
            await begin(interpreter, 1)
        # Of the scripts' processes alone: their parent has less for itself the more copies share
        # its pages.
        memory = statistics.median(map(own_memory, processes() - before))
        found.append(Figure("memory of a program that waits", memory, "MB", MEMORY_GOAL))

    for calls in COLD:
        cold, steps = await cold_step(calls)
        goal = COLD_GOAL if calls == COLD[0] else 0.0
        last = statistics.median(steps[-STEPS:])
        found.append(Figure(f"step after {calls:,} calls, in its process", 1000 * last, "ms"))
        found.append(Figure(f"step after {calls:,} calls, in another process", cold, "s", goal))
    return found


async def main(_: Sequence[str]) -> int:
    """Print the figures; 0 if the goals are met."""
    found = await figures()
    for figure in found:
        print(figure)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    return 0 if all(figure.is_met for figure in found) else 1
