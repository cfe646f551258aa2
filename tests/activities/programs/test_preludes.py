"""What a script uses at once: coroutines, own exceptions, generators, modules and types."""

import re

import pytest
from doubles.plain_asyncio import fakes, plainly

from sennit.testing import run

LATE = """
import asyncio
import uuid
from collections import Counter

class Late(Exception):
    def __init__(self, name):
        super().__init__("late")
        self.name = name

class Later(Late):
    pass

class Slow:
    def __init__(self, name):
        self.name = name
    async def __aenter__(self):
        return self
    async def __aexit__(self, kind, error, traceback):
        await search(query=self.name)

async def late(name):
    await search(query=name)
    raise Late(name)

def pieces(text, size):
    for start in range(0, len(text), size):
        yield text[start:start + size]
"""
SEAMS = {
    "equal texts, left by a manager that waits": """
async def one(name, log):
    try:
        async with asyncio.Lock(), Slow(name):
            raise Late(name)
    except Late as error:
        log.append(error.name)

async def main():
    log = []
    await asyncio.gather(one("aaa", log), one("b", log), one("cc", log))
    return log
""",
    "equal texts, raised again after a wait": """
async def one(name):
    try:
        await late("a")
    except Late as error:
        error.name = name
        await search(query=name)
        raise

async def caught(name):
    try:
        await one(name)
    except Late as error:
        return error.name

async def main():
    return await asyncio.gather(caught("ddd"), caught("b"), caught("cc"))
""",
    "equal texts, gathered": """
async def main():
    ends = await asyncio.gather(late("aa"), late("a"), search(query="a"), return_exceptions=True)
    found = [end.name if isinstance(end, Late) else end["text"] for end in ends]
    kinds = [isinstance(end, Exception) for end in ends] + [isinstance(end, BaseException) for end in ends]
    return [found, kinds, str(ends[0]), repr(ends[1])]
""",
    "the error of a task": """
async def main():
    tasks = [asyncio.create_task(late("aa")), asyncio.create_task(late("b"))]
    await asyncio.wait(tasks)
    try:
        tasks[0].result()
    except Late as error:
        return [error.name, tasks[1].exception().name]
""",
    "in the time given": """
async def main():
    log = []
    for seconds in (9, 0.05):
        try:
            await asyncio.wait_for(late("aaaa"), seconds)
        except (asyncio.TimeoutError, Late) as error:
            log.append(error.name if isinstance(error, Late) else "in no time")
    return log
""",
    "based on another, raised by its class": """
class Plain(ValueError):
    pass

async def one(kind):
    await search(query=kind)
    if kind == "plain":
        raise Plain
    raise Later(kind)

async def main():
    log = []
    for ended in asyncio.as_completed([one("plain"), one("late")]):
        try:
            await ended
        except ValueError as error:
            log.append(["value", str(error)])
        except Late as error:
            log.append(["late", error.name])
        else:
            log.append("none")
        finally:
            log.append("over")
    return log
""",
    "a generator at the end of a block": """
async def main():
    async with asyncio.Lock(), asyncio.timeout(5):
        found = list(pieces("abcde", 2))
        def again(text):
            for piece in pieces(text, 1):
                yield piece
    return [found, list(again("ab"))]
""",
    "a header with a comment": """
async def main():
    async with (
        asyncio.Lock(),  # first: this one
        asyncio.timeout(5) as limit,  # then: that one
    ):
        found = await search(query="a")
    return [found, limit.expired()]
""",
    "a block that is left": """
async def main():
    lock, log = asyncio.Lock(), []
    for number in range(4):
        async with lock:
            if number == 1:
                continue
            if number == 3:
                break
            log.append(number)
    async def inside():
        async with lock:
            try:
                return await search(query="a")
            finally:
                log.append(lock.locked())
    return [await inside(), log, lock.locked()]
""",
    "types that are only written": """
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Coroutine

Handler = Callable[[str], Awaitable[Any]]
Made = Coroutine[Any, Any, str]

async def look(names: Sequence[str]) -> dict[str, Any]:
    return await search(query=names[0])

TABLE: dict[str, Callable[..., Awaitable[Any]]] = {"look": look}

async def main():
    handler: Handler = TABLE["look"]
    limits: Sequence[int] = [1]
    return [await handler(["a"]), limits]
""",
    "names that a script takes": """
from asyncio import gather as together, sleep as nap

async def wait(timeout):
    await nap(timeout)
    return timeout

async def main():
    gather = [wait(1), wait(2)]
    args, value, check = await together(*gather), Counter("aab"), len("abc")
    run, enter, current = args, value["a"], check
    return [run, enter, current]
""",
    "an error that is given on": """
async def main():
    ends = await asyncio.gather(late("a"), late("bb"), return_exceptions=True)
    log = []
    for end in ends:
        try:
            raise end
        except Late as error:
            log.append(error.name)
        try:
            raise RuntimeError("again") from end
        except RuntimeError as error:
            log.append(str(error))
    return log
""",
    "methods that wait": """
class Store:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.items = {}
    async def put(self, key, count):
        async with self.lock:
            found = self.items.get(key, 0)
            await search(query=key)
            self.items[key] = found + count

async def main():
    store = Store()
    async with asyncio.TaskGroup() as group:
        for key in ("a", "b", "a"):
            group.create_task(store.put(key, 2))
    return store.items
""",
    "tasks with names, and what they call at the end": """
async def main():
    log = []
    task = asyncio.create_task(search(query="a"), name="first")
    task.add_done_callback(lambda done: log.append(done.get_name()))
    await task
    await asyncio.sleep(0)
    return [log, task.get_name()]
""",
    "a queue without waiting": """
async def main():
    queue = asyncio.Queue(maxsize=1)
    log = []
    queue.put_nowait(1)
    try:
        queue.put_nowait(2)
    except asyncio.QueueFull:
        log.append("full")
    log.append(queue.get_nowait())
    try:
        queue.get_nowait()
    except asyncio.QueueEmpty:
        log.append("empty")
    return log
""",
}


@pytest.mark.parametrize("name", SEAMS)
def test_what_a_script_mixes_runs_as_under_asyncio(name: str) -> None:
    script = LATE + SEAMS[name]
    assert run(script, fakes()) == plainly(script, {})


def test_a_group_raises_the_own_exception_that_came_first() -> None:
    script = f"""{LATE}
async def main():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(late("aaa"))
            group.create_task(late("b"))
            await search(query="aaaaaa")
    except* Late as errors:
        names = [error.name for error in errors.exceptions]
    return names
"""
    assert run(script, fakes()) == ["b"]


UUIDS = """
import asyncio
import uuid

async def one(seconds):
    await asyncio.sleep(seconds)
    return [str(uuid.uuid4()) for _ in range(2)]

async def main(one_waits, other_waits):
    return await asyncio.gather(one(one_waits), one(other_waits))
"""


def test_a_uuid_is_known_by_its_coroutine_whichever_goes_first() -> None:
    found = run(UUIDS, {}, one_waits=1, other_waits=2)
    assert found == run(UUIDS, {}, one_waits=2, other_waits=1)
    assert len({each for pair in found for each in pair}) == 4


FAILS = f"""{LATE}
async def work(name):
    async with asyncio.Lock():
        for piece in pieces(name, 1):
            async with (
                asyncio.timeout(5),
                Slow(name),
            ):
                await search(query=piece)
                raise Late(name)
            print(piece)

async def main():
    found = [1]
    del found[0]
    await work("ab")
"""


def test_an_error_that_leaves_a_block_names_the_line_that_raised_it() -> None:
    with pytest.raises(RuntimeError, match=r"^Late: late") as failed:
        run(FAILS, fakes())
    rows = FAILS.splitlines()
    told = [int(line) for line in re.findall(r"line (\d+)", failed.value.__notes__[0])]
    assert [rows[line - 1].strip() for line in told] == ['await work("ab")', "raise Late(name)"]
