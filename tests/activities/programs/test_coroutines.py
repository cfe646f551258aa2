"""Coroutines of a script side by side: what asyncio gives for the same order of ends, whatever is lost in between."""

import asyncio
import itertools
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from doubles.programs import Play

from sennit.activities.nodes.error_mapping import CallFailed, ProgramFailed
from sennit.activities.programs.session import Snapshots
from sennit.workflows.plan.language.nodes import ToolNode
from sennit.workflows.plan.programs.syntax import problems_in

TOOLS = """
async def leaf(trace, a):
    trace.append(f"begins {a}")
    found = await search(query=a)
    trace.append(found)
    return [found, await search(query=a)]

async def fails(trace, a):
    trace.append(await search(query=a))
    raise ValueError(a)

async def tidy(trace, a):
    try:
        return await leaf(trace, a)
    finally:
        trace.append(f"ends {a}")

async def guarded(trace, a, guard):
    async with guard:
        return await leaf(trace, a)

async def bounded(trace, guard, call):
    async with guard:
        trace.append(await call)

async def give(trace, queue, a):
    for i in range(2):
        await queue.put(f"{a}{i}")
        trace.append(await search(query=a))

async def take(trace, queue, count):
    for _ in range(count):
        item = await queue.get()
        trace.append(["got", item, await search(query=item)])
        queue.task_done()
"""


class Writer:
    """Writes a random `main` as one would for asyncio."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[str] = []
        self.names = itertools.count()

    def text(self) -> str:
        return repr(self.dice.choice(["a", "b", "cc", "d"]))

    def call(self, *, fails: bool = True) -> str:
        forms = ["leaf(trace, {})", "tidy(trace, {})", "search(query={})", "guarded(trace, {}, guard)"]
        forms += ["fails(trace, {})", "search(query='x' + {})"] if fails else []
        return self.dice.choice(forms).format(self.text())

    def calls(self, *, fails: bool = True) -> str:
        return ", ".join(self.call(fails=fails) for _ in range(self.dice.randint(1, 4)))

    def block(self, indent: str, depth: int) -> None:
        for _ in range(self.dice.randint(1, 3)):
            self.statement(indent, depth)

    def statement(self, indent: str, depth: int) -> None:
        add, name = self.lines.append, f"v{next(self.names)}"
        form = self.dice.randrange(16)
        if form == 0:
            add(f"{indent}trace.append(await asyncio.gather({self.calls(fails=False)}))")
        elif form == 1:
            add(f"{indent}ends = await asyncio.gather({self.calls()}, return_exceptions=True)")
            add(f"{indent}trace.append([str(end) for end in ends])")
        elif form == 2:
            add(f"{indent}{name} = asyncio.create_task(leaf(trace, {self.text()}))")
            self.block(indent, 0)
            add(f"{indent}trace.append(await {name})")
        elif form == 3:
            add(f"{indent}async with asyncio.TaskGroup() as group:")
            add(f"{indent}    {name} = group.create_task(leaf(trace, {self.text()}))")
            self.block(f"{indent}    ", 0)
            add(f"{indent}trace.append({name}.result())")
        elif form == 4:
            add(f"{indent}begun = [asyncio.ensure_future(each) for each in [{self.calls(fails=False)}]]")
            add(f"{indent}for {name} in asyncio.as_completed(begun):")
            add(f"{indent}    trace.append(await {name})")
        elif form == 6:
            add(f"{indent}queue = asyncio.Queue({self.dice.randint(0, 1)})")
            givers = ", ".join(f"give(trace, queue, {self.text()})" for _ in range(2))
            add(f"{indent}await asyncio.gather({givers}, take(trace, queue, 3), take(trace, queue, 1))")
        elif form == 7:
            add(f"{indent}{name} = [asyncio.ensure_future(each) for each in [{self.calls(fails=False)}]]")
            add(f"{indent}done, rest = await asyncio.wait({name}, return_when=asyncio.FIRST_COMPLETED)")
            add(f"{indent}trace.append([len(done), len(rest)])")
            add(f"{indent}trace.append(await asyncio.gather(*{name}))")
        elif form == 8:
            add(f"{indent}try:")
            add(f"{indent}    async with asyncio.TaskGroup() as group:")
            add(f"{indent}        group.create_task(fails(trace, {self.text()}))")
            add(f"{indent}        group.create_task(tidy(trace, {self.text()}))")
            add(f"{indent}except Exception:")
            add(f"{indent}    trace.append('group')")
        elif form == 9:
            add(f"{indent}await asyncio.sleep(0)")
            add(f"{indent}async with guard, lock:")
            add(f"{indent}    trace.append(await search(query={self.text()}))")
        elif form in (5, 11, 12, 13):
            self.begun_early(form, indent, name)
        elif form == 10 and depth:
            add(f"{indent}async def {name}():")
            self.block(f"{indent}    ", depth - 1)
            add(f"{indent}    return len(trace)")
            add(f"{indent}trace.append(await asyncio.gather({name}(), leaf(trace, {self.text()})))")
        else:
            add(f"{indent}trace.append(await search(query={self.text()} + str(len(trace) % 2)))")

    def begun_early(self, form: int, indent: str, name: str) -> None:
        """Write what is begun here and awaited, or cancelled, later."""
        add = self.lines.append
        if form == 5:
            add(f"{indent}{name} = asyncio.create_task(tidy(trace, {self.text()}))")
            add(f"{indent}trace.append(await search(query={self.text()}))")
            add(f"{indent}{name}.cancel()")
            add(f"{indent}try:")
            add(f"{indent}    trace.append(await {name})")
            add(f"{indent}except asyncio.CancelledError:")
            add(f"{indent}    trace.append('cancelled')")
        elif form == 11:
            calls = ", ".join(f"bounded(trace, lock, {self.call(fails=False)})" for _ in range(3))
            add(f"{indent}{name} = asyncio.gather({calls}, asyncio.gather({self.calls(fails=False)}))")
            self.block(indent, 0)
            add(f"{indent}trace.append(await {name})")
        elif form == 12:
            add(f"{indent}{name} = asyncio.create_task(search(query={self.text()}))")
            add(f"{indent}kept, both = search(query={self.text()}), asyncio.gather({self.calls()})")
            add(f"{indent}trace.append(await search(query={self.text()}))")
            add(f"{indent}trace.append([{name}.cancel(), both.cancel()])")
            add(f"{indent}trace.append(await kept)")
            add(f"{indent}ends = await asyncio.gather({name}, both, return_exceptions=True)")
            add(f"{indent}trace.append([isinstance(end, asyncio.CancelledError) for end in ends])")
        else:
            add(f"{indent}{name} = asyncio.shield(leaf(trace, {self.text()}))")
            add(f"{indent}outer = asyncio.create_task(bounded(trace, asyncio.Lock(), {name}))")
            add(f"{indent}trace.append(await search(query={self.text()}))")
            add(f"{indent}outer.cancel()")
            add(f"{indent}ends = await asyncio.gather(outer, {name}, return_exceptions=True)")
            add(f"{indent}trace.append([isinstance(end, asyncio.CancelledError) for end in ends])")

    def script(self) -> str:
        self.block("    ", 2)
        body = "\n".join(self.lines)
        locks = f"    guard, lock = asyncio.Semaphore({self.dice.randint(3, 4)}), asyncio.Lock()"
        return f"import asyncio\n{TOOLS}\nasync def main():\n    trace = []\n{locks}\n{body}\n    return trace\n"


def search(query: str) -> int:
    if "x" in query:
        raise Broken(query)
    return len(query)


class Broken(Exception):
    """What a tool fails with."""


async def plainly(script: str, order: list[tuple[str, int]]) -> Any:
    """Return what a script returns under asyncio alone, if the calls end in this order: the nth with each query."""
    futures: dict[tuple[str, int], asyncio.Future[Any]] = {}
    counts: dict[str, int] = {}

    def begin(query: str) -> asyncio.Future[Any]:
        counts[query] = counts.get(query, 0) + 1
        future = futures[query, counts[query]] = asyncio.get_running_loop().create_future()
        return future

    async def called(query: str) -> Any:
        return await begin(query)

    names: dict[str, Any] = {"search": called}
    exec(script, names)
    run = asyncio.create_task(names["main"]())
    for call in order:
        for _ in range(40):
            await asyncio.sleep(0)
        future = futures.get(call)
        if run.done():
            break  # what it has left behind is cut off
        if future is None or future.done():
            continue
        try:
            future.set_result(search(call[0]))
        except Broken as error:
            future.set_exception(RuntimeError(f"Broken: {error}"))
    return await asyncio.wait_for(run, 5)


def told(run: Play) -> list[tuple[str, int]]:
    """Return the calls of a run in the order in which they ended, each as the nth with its query."""
    made: dict[str, int] = {}
    numbers: dict[str, tuple[str, int]] = {}
    for name, (_, node, _) in run.nodes.items():
        if isinstance(node, ToolNode):
            query = str(node.args["query"])
            made[query] = made.get(query, 0) + 1
            numbers[name] = (query, made[query])
    return [numbers[name] for name in run.order if name in numbers]


@pytest.mark.parametrize("seed", range(int(os.environ.get("SENNIT_SEEDS", "25"))))
async def test_coroutines_interleave_as_under_asyncio(
    play: Callable[..., Play], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two orders of ends, in one of them with every snapshot lost. `SENNIT_SEEDS=1000` tries more programs."""
    script = Writer(seed).script()
    run = play(script, fakes={"search": search}, seed=seed)
    found = await run.run()
    assert found == await plainly(script, told(run)), script
    assert set(run.keys.values()) <= {1}
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    again = play(script, fakes={"search": search}, seed=seed)
    assert await again.run() == found, script
    assert again.keys == run.keys


def main(body: str, top: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import asyncio\n{top}\nasync def main():\n{lines}\n"


DECORATED = """
def retried(times):
    def around(function):
        async def inner(*args):
            for left in range(times, 0, -1):
                try:
                    return await function(*args)
                except RuntimeError:
                    if left == 1:
                        raise
        return inner
    return around

@retried(3)
async def look(trace, a):
    trace.append(a)
    return await search(query="x" * (len(trace) < 3) + a)

async def double(a): return a * 2

async def call(function, *args): return await function(*args)
"""
RUN = [
    ("trace = []\nreturn [await look(trace, 'a'), trace]", [1, ["a", "a", "a"]]),
    ("return [await {'one': double, 'two': search}[name]('ab') for name in ('one', 'two')]", ["abab", 2]),
    ("return await call(search, 'abc')", 3),
    ("return await asyncio.gather(*map(double, [1, 2]))", [2, 4]),
    ("ticket = task(double, a=4)\nreturn [await ticket, await asyncio.wait_for(ticket, 5)]", [8, 8]),
    ("ticket = task(search, query='abc')\nreturn await asyncio.gather(ticket, search('a'), double(1))", [3, 1, 2]),
    ("async with asyncio.timeout(None) as t: x = 1  # why\nreturn [x, t.expired()]", [1, False]),
    ("async with (\n    asyncio.Lock() as a,\n    asyncio.Lock(),\n):\n    return a", None),
    (
        "lock = asyncio.Lock()\nfor i in range(3):\n    async with lock:\n        if i: break\nreturn lock.locked()",
        False,
    ),
    (
        "t = asyncio.create_task(double(1))\nt.cancel()\ntry: await t\nexcept asyncio.CancelledError: return 'c'",
        "c",
    ),
]


@pytest.mark.parametrize(("body", "value"), RUN)
async def test_what_is_written_for_asyncio_runs(play: Callable[..., Play], body: str, value: object) -> None:
    script = main(body, DECORATED)
    assert problems_in(script, {"search": {}}) == []
    assert await play(script, fakes={"search": search}).run() == value


NO_AWAITABLE = "object Event can't be used in 'await' expression"
if sys.version_info >= (3, 14):
    NO_AWAITABLE = "'Event' object can't be awaited"
FAILS = [
    ("lock = asyncio.Lock()\nasync with lock:\n    async with lock:\n        pass", "on line 7, and for no call", 7),
    ("await asyncio.Semaphore(0).acquire()", "deadlock: the coroutines wait for each other, on line 5", 5),
    ("q = asyncio.Queue()\nawait asyncio.gather(\n    q.get(),\n    give(q))", "on lines 3, 6, and for no call", 6),
    ("await search(query='a')\nraise asyncio.CancelledError('x')", "CancelledError: x", 6),
    ("asyncio.create_task(search)", "a coroutine was expected, got <function", 5),
    ("asyncio.Semaphore(-1)", "Semaphore initial value must be >= 0", 5),
    ("asyncio.Lock().release()", "Lock is not acquired", 5),
    ("await asyncio.wait([])", "Set of Tasks/Futures is empty", 5),
    ("await search(query='a')\nawait asyncio.sleep(10**10)", "sleep: sleeps 0 to", 6),
    ("async with asyncio.timeout('5'): pass", "unsupported operand type(s) for +: 'float' and 'str'", 5),
    ("await asyncio.wait([task(search, query='a')], return_when='X')", "Invalid return_when value: X", 5),
    ("await task(search, query=asyncio.Lock())", "a Lock is no value: coroutines share it, but what a task is", 5),
    ("return [search(query='a')]", "a coroutine is no value: await a call", 5),
    ("await asyncio.Event()", NO_AWAITABLE, 5),
    ("async with 5: pass", "'int' object does not support the asynchronous context manager protocol", 5),
]


@pytest.mark.parametrize(("body", "message", "line"), FAILS)
async def test_what_goes_wrong_names_its_line(play: Callable[..., Play], body: str, message: str, line: int) -> None:
    run = play(main(body, "async def give(q):\n    await q.join(); await q.get()"), fakes={"search": search})
    with pytest.raises((CallFailed, ProgramFailed)) as failed:
        await run.run()
    assert message in str(failed.value)
    assert f"(line {line}: " in str(failed.value)


NAMED = """
import asyncio

async def leaf(a):
    return await search(query=a)

async def slow(a):
    await asyncio.sleep(2)

async def main():
    try:
        await asyncio.wait_for(slow("a"), 1)
    except TimeoutError:
        await slow("b")
    await task(leaf, a="b")
    ticket, value = await next_of([task(leaf, a="c")])
    await asyncio.gather(asyncio.sleep(1), slow("d"), task(search, query="e"))
    for each in asyncio.as_completed([task(search, query="f")]):
        await each
    nap = asyncio.create_task(asyncio.sleep(1))
    call = asyncio.create_task(search(query="g"))
    await nap
    await call
"""


async def test_what_a_script_waits_for_is_named_by_its_words_and_lines(play: Callable[..., Play]) -> None:
    run = play(NAMED, fakes={"search": lambda query: query}, takes=lambda _: 0.1)
    await run.run()
    places = [spec.call_site for _, _, spec in run.nodes.values() if spec.call_site]
    assert [place for place in places if not place.startswith("leaf#")] == [
        "timeout:12", "sleep:8", "search:17", "sleep:17", "slow#1/sleep:8", "search:18", "search:21", "sleep:20",
    ]  # fmt: skip
