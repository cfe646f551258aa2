"""Random programs that sleep, expire and have limits give the same as under asyncio, at the same times."""

import asyncio
import itertools
import json
import os
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from doubles.programs import Play

from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.programs.session import Snapshots
from sennit.testing.clock import VirtualLoop
from sennit.workflows.plan.language.nodes import Node, ToolNode

HELPERS = """
import asyncio

async def leaf(trace, a, n):
    trace.append(await search(query=a))
    await asyncio.sleep(n)
    trace.append(a)
    return len(trace)

async def dozes(a, n):
    await sleep(n)
    return [await search(query=a), a]

async def guarded(guard, trace, a, n):
    async with guard:
        await leaf(trace, a, n)
"""
PLAIN = """
import asyncio
from contextlib import nullcontext
from datetime import datetime, timedelta

def now():
    return datetime(2026, 1, 1) + timedelta(seconds=asyncio.get_running_loop().time())

sleep = asyncio.sleep

class Ticket:
    def __init__(self, function, timeout, arguments):
        self.gate = nullcontext()
        self.is_given = False
        self.work = asyncio.ensure_future(self.run(function, timeout, arguments))
        self.work.add_done_callback(lambda work: work.cancelled() or work.exception())

    async def run(self, function, timeout, arguments):
        async with asyncio.timeout(timeout):
            async with self.gate:
                return await function(**arguments)

def task(function, timeout=None, **arguments):
    return Ticket(function, timeout, arguments)

async def parallel(tickets, limit=None, timeout=None):
    gate = asyncio.Semaphore(limit) if limit else nullcontext()
    for ticket in tickets:
        ticket.gate = gate
    async with asyncio.timeout(timeout):
        return await asyncio.gather(*(ticket.work for ticket in tickets))

async def next_of(tickets):
    left = [ticket for ticket in tickets if not ticket.is_given]
    done, _ = await asyncio.wait([ticket.work for ticket in left], return_when=asyncio.FIRST_COMPLETED)
    ticket = next(ticket for ticket in left if ticket.work in done)
    ticket.is_given = True
    return ticket, await ticket.work

async def search(query, timeout=None):
    async with asyncio.timeout(timeout):
        await asyncio.sleep(seconds_of(query))
    if "x" in query:
        raise RuntimeError("Broken: " + query)
    return len(query)
"""


def seconds_of(query: str) -> float:
    """Return how long a call takes: no two of a program the same."""
    return (zlib.crc32(query.encode()) % 4000 + 1) / 1000


class Writer:
    """Writes a random `main`. A `calm` one has nothing that fails or expires, and asks for no order of tasks: after an
    edit they run again, and end in any.
    """

    def __init__(self, seed: int, *, calm: bool = False) -> None:
        self.dice = random.Random(seed)
        self.calm = calm
        self.lines: list[str] = []
        self.count = itertools.count()

    def text(self) -> str:
        letter = "x" if not self.calm and self.dice.random() < 0.1 else "a"
        return repr(f"{letter}{next(self.count)}")

    def seconds(self) -> float:
        return self.dice.randint(1, 5000) / 1000

    def limit(self) -> float:
        return 1000 + self.seconds() if self.calm else self.seconds()

    def leaf(self) -> str:
        return f"leaf(trace, {self.text()}, {self.seconds()})"

    def ticket(self) -> str:
        timeout = f", timeout={self.limit()}" if self.dice.random() < 0.3 else ""
        return f"task(dozes, a={self.text()}, n={self.seconds()}{timeout})"

    def tickets(self) -> str:
        return f"[{', '.join(self.ticket() for _ in range(self.dice.randint(2, 4)))}]"

    def statement(self) -> list[str]:
        leaves = ", ".join(self.leaf() for _ in range(self.dice.randint(2, 3)))
        guarded = ", ".join(f"guarded(guard, {self.leaf()[5:]}" for _ in range(3))
        return self.dice.choice(
            [
                [f"trace.append(await search(query={self.text()}, timeout={self.limit()}))"],
                [f"trace.append(await asyncio.wait_for({self.leaf()}, {self.limit()}))"],
                [f"async with asyncio.timeout({self.limit()}):", f"    await asyncio.gather({leaves})"],
                [f"trace.append(await asyncio.gather({leaves}, sleep({self.seconds()})))"],
                [f"guard = asyncio.Semaphore({self.dice.randint(1, 2)})", f"await asyncio.gather({guarded})"],
                [f"trace.append(await parallel({self.tickets()}, limit={self.dice.randint(1, 2)}))"],
                [f"trace.append(await parallel({self.tickets()}, timeout={3 * self.limit()}))"],
                [
                    f"begun = {self.tickets()}",
                    *([] if self.calm else ["for _ in begun:", "    ticket, value = await next_of(begun)"]),
                    *([] if self.calm else ["    trace.append([begun.index(ticket), value])"]),
                    "trace.append(await parallel(begun))",
                ],
                [
                    f"side = asyncio.create_task({self.leaf()})",
                    f"await sleep({self.seconds()})",
                    "side.cancel()" if not self.calm and self.dice.random() < 0.5 else "await side",
                ],
                [f"await sleep({self.seconds()})"],
            ]
        )

    def script(self) -> str:
        for _ in range(self.dice.randint(3, 7)):
            self.lines += ["try:", *(f"    {line}" for line in self.statement())]
            self.lines += ["except (TimeoutError, RuntimeError) as error:", "    trace.append(type(error) is not None)"]
            self.lines += ["trace.append(round((now() - first).total_seconds(), 3))"]
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"{HELPERS}\nasync def main():\n    trace, first = [], now()\n{body}\n    return trace\n"


def search(query: str) -> int:
    if "x" in query:
        raise RuntimeError(query)
    return len(query)


def takes(node: Node) -> float:
    return seconds_of(str(node.args["query"])) if isinstance(node, ToolNode) and "query" in node.args else 0


def plainly(script: str) -> Any:
    """Return what a script returns under asyncio alone, in virtual time."""
    names: dict[str, Any] = {"seconds_of": seconds_of}
    exec(PLAIN, names)
    exec(script, names)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return json.loads(json.dumps(runner.run(names["main"]())))


SEEDS = range(int(os.environ.get("SENNIT_SEEDS", "25")))


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_program_ends_at_the_times_of_asyncio(
    play: Callable[..., Play], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while workers are killed, and after the loss of every snapshot. `SENNIT_SEEDS=1000` tries more programs."""
    script = Writer(seed).script()
    plain = await asyncio.to_thread(plainly, script)
    assert await play(script, fakes={"search": search}, takes=takes, kills=True).run() == plain, script
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    again = play(script, fakes={"search": search}, takes=takes)
    assert await again.run() == plain, script
    assert set(again.keys.values()) <= {1}


@pytest.mark.parametrize("seed", SEEDS)
async def test_edits_and_forks_take_over_every_call_and_every_time(play: Callable[..., Play], seed: int) -> None:
    """An edit at any moment; a fork of the run that is over, in which results come in any order."""
    script = Writer(seed, calm=True).script()
    first = play(script, fakes={"search": search}, takes=takes)
    whole = await first.run()
    times = [at for name, at in first.ended_at.items() if isinstance(first.nodes[name][1], ToolNode)]
    if len(set(times)) < len(times):
        pytest.skip("two calls end in the same millisecond: a run tells the later one a millisecond later")
    begun = play(script, fakes={"search": search}, takes=takes)
    await begun.go(random.Random(seed).randint(1, first.moments))
    forked = first.forked(f"{script}\n# forked")
    for again in (begun.edited(f"{script}\n# edited"), forked):
        assert await again.run() == whole, script
    assert not forked.called, "nothing is called again"


async def test_a_fork_of_a_run_that_knew_calls_in_another_way_is_refused_by_name(play: Callable[..., Play]) -> None:
    """It would make all of them again."""
    begun = play("async def main():\n    return await search(query='a')\n", fakes={"search": search})
    await begun.run()
    noted = await begun.library.noted(begun.prefix, "began main")
    del noted["keys"]
    await begun.library.note(begun.prefix, "began main", noted, again=True)
    with pytest.raises(ProgramFailed, match="earlier version of Sennit"):
        await begun.forked(begun.script).run()
