"""Random programs give the same under plain asyncio as advance by advance, in any order of ends, after any restart."""

import asyncio
import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from doubles.programs import Play

from sennit.activities.programs.session import Snapshots

TASKS = """
async def leaf(a):
    return [await search(query=a), await search(query=a)]

async def fails(a):
    raise ValueError(f"no {a}")

async def tree(a, n=2):
    if n == 0:
        return await search(query=a)
    return await parallel([task(tree, a=f"{a}{i}", n=n - 1) for i in range(2)])

async def loud(a):
    return str(await search(query=str(a))) + "!"
"""
PLAIN = """
import asyncio

class Ticket:
    def __init__(self, work):
        self.work = work
        self.future = None

def task(function, **arguments):
    return Ticket(asyncio.ensure_future(function(**arguments)))

async def parallel(tickets):
    return await asyncio.gather(*(ticket.work for ticket in tickets))

async def settled(tickets):
    ends = await asyncio.gather(*(ticket.work for ticket in tickets), return_exceptions=True)
    return [{"status": "failed" if isinstance(end, Exception) else "succeeded"} for end in ends]

async def quorum(k, tickets):
    found = []
    for end in asyncio.as_completed([ticket.work for ticket in tickets]):
        try:
            found.append(await end)
        except Exception:
            continue
        if len(found) == k:
            return found
    raise RuntimeError("JoinFailed")

async def first(tickets):
    return (await quorum(1, tickets))[0]

async def pipeline(items, *stages):
    async def one(item):
        for stage in stages:
            item = await stage(item)
        return item
    return await asyncio.gather(*map(one, items))

async def search(query):
    await asyncio.sleep(0)
    if "x" in query:
        raise RuntimeError("Broken: " + query)
    return len(query)
"""


class Broken(Exception):
    """What a tool fails with."""


class Writer:
    """Writes a random `main`. What it has found so far is in `trace`."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[str] = []

    def text(self) -> str:
        return repr(self.dice.choice(["a", "b", "cc"]))

    def call(self) -> str:
        text = "str(len(str(trace)))" if self.dice.random() < 0.5 else self.text()
        return f"search(query={text})"

    def ticket(self) -> str:
        form = self.dice.choice(["task(leaf, a={})", "task(search, query={})", "task(tree, a={}, n=1)"])
        return form.format(self.text())

    def tickets(self, *others: str) -> str:
        found = [self.ticket() for _ in range(self.dice.randint(1, 3))] + list(others)
        self.dice.shuffle(found)
        return f"[{', '.join(found)}]"

    def rivals(self) -> str:
        """Return tickets of which any two that end first have the same value: the same call, others, and failures."""
        form = self.dice.choice(["task(leaf, a={})", "task(search, query={})", "task(tree, a={}, n=1)"])
        found = [form.format(self.dice.choice(["'a'", "'b'"])) for _ in range(self.dice.randint(2, 3))]
        found += self.dice.choice([[], ["task(fails, a=1)"], ["task(search, query='x')"]])
        self.dice.shuffle(found)
        return f"[{', '.join(found)}]"

    def value(self) -> str:
        forms: list[Callable[[], str]] = [
            lambda: f"await {self.call()}",
            lambda: f"await asyncio.gather({self.call()}, {self.call()})",
            lambda: f"await parallel({self.tickets()})",
            lambda: f"[end['status'] for end in await settled({self.tickets('task(fails, a=1)')})]",
            lambda: f"await quorum({self.dice.randint(1, 2)}, {self.rivals()})",
            lambda: f"await first({self.rivals()})",
            lambda: f"await pipeline([{self.text()}, {self.text()}], loud, leaf)",
        ]
        return self.dice.choice(forms)()

    def write(self, indent: str = "    ", depth: int = 2) -> str:
        for _ in range(self.dice.randint(1, 4)):
            form = self.dice.random()
            if depth and form < 0.2:
                self.lines.append(f"{indent}for n{len(self.lines)} in range({self.dice.randint(1, 3)}):")
                self.write(f"{indent}    ", depth - 1)
            elif depth and form < 0.35:
                self.lines.append(f"{indent}if len(str(trace)) % 2:")
                self.write(f"{indent}    ", depth - 1)
            elif form < 0.5:
                bad = self.dice.choice(
                    [
                        "await search(query='x')",
                        "await parallel([task(leaf, a='x')])",
                        "await first([task(fails, a=1), task(leaf, a='x')])",
                        "await quorum(2, [task(fails, a=1), task(leaf, a='a')])",
                    ]
                )
                self.lines += [f"{indent}try:", f"{indent}    {bad}", f"{indent}except Exception:"]
                self.lines += [f"{indent}    trace.append('caught')"]
            elif depth and form < 0.55:
                self.lines.append(f"{indent}try:")
                self.write(f"{indent}    ", depth - 1)
                self.lines += [f"{indent}finally:", f"{indent}    trace.append(await {self.call()})"]
            elif depth and form < 0.6:
                name = f"inner{len(self.lines)}"
                self.lines.append(f"{indent}async def {name}():")
                self.write(f"{indent}    ", depth - 1)
                self.lines += [f"{indent}    return len(trace)", f"{indent}trace.append(await {name}())"]
            elif form < 0.65:
                self.lines += [f"{indent}begun = {self.call()}", f"{indent}trace.append({self.value()})"]
                self.lines += [f"{indent}trace.append(await begun)"]
            else:
                self.lines.append(f"{indent}trace.append({self.value()})")
        return "\n".join(self.lines)

    def script(self) -> str:
        body = self.write()
        return f"import asyncio\n{TASKS}\nasync def main():\n    trace = []\n{body}\n    return trace\n"


def search(query: str) -> int:
    if "x" in query:
        raise Broken(query)
    return len(query)


async def plainly(script: str) -> Any:
    """Return what a script returns under asyncio alone. A tool's call starts when it is called."""
    names: dict[str, Any] = {}
    exec(PLAIN, names)
    begin: Callable[..., Any] = names["search"]
    names["search"] = lambda query: asyncio.ensure_future(begin(query))
    exec(script, names)
    return json.loads(json.dumps(await names["main"]()))


@pytest.mark.parametrize("seed", range(int(os.environ.get("SENNIT_SEEDS", "25"))))
async def test_a_random_program_gives_what_it_gives_under_asyncio(
    play: Callable[..., Play], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order of ends, whoever makes its calls, while workers are killed, after an edit and in a fork at any
    moment, and without any snapshot. No call is made twice, but one that has failed for now. `SENNIT_SEEDS=1000` tries
    more programs: with loops, branches, clean-up, nested functions, failures that are caught, equal calls in tasks that
    run side by side, races and quorums.
    """
    script, dice = Writer(seed).script(), random.Random(seed)
    plain = await plainly(script)

    def another(**fields: Any) -> Play:
        return play(script, fakes={"search": search}, seed=dice.random(), in_place=dice.random() < 0.5, **fields)

    runs = [another(), another(kills=True)]
    assert [await run.run() for run in runs] == [plain] * 2, script
    for again in (Play.edited, Play.forked):
        begun = another()
        await begun.go(dice.randint(1, runs[0].moments))
        runs.append(again(begun, f"{script}\n# again"))
        assert await runs[-1].run() == plain, script
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    runs.append(another())
    assert await runs[-1].run() == plain, script
    for run in runs:
        assert set(run.keys.values()) | set(run.made.values()) | set(run.called.values()) <= {1}
