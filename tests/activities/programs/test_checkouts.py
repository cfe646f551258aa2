"""No script can make the threads of a worker wait for each other's processes."""

import asyncio
import os
import threading
from collections.abc import Iterator

import pytest

from sennit.activities.programs import checkouts as module
from sennit.activities.programs.checkouts import Checkouts, InterpreterCrashed, NestedCheckout, processors
from sennit.activities.programs.interpreter import Interpreter
from sennit.activities.programs.reader import ScriptReader
from sennit.workflows.plan.programs.stubs import stubs_of

SEARCH = {"properties": {"query": {"type": "string"}}, "required": ["query"]}
STUBS = stubs_of([{"name": "search", "effect": "read", "schema": SEARCH}])
DOUBTED = """
import re

async def main():
    found = re.match("a", str(await search(query="abc")))
    return found.group(0)
"""
"""Types suspect that `found` is None; that is no problem in Python, so the top level is looked at as well."""
RAISING = "N = 5 // 0\n\nasync def main():\n    return N\n"


@pytest.fixture
def interpreter_of_one_core() -> Iterator[Interpreter]:
    """An interpreter in a worker that is pinned to one processor."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system pins no process to a processor")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    interpreter = Interpreter()
    yield interpreter
    os.sched_setaffinity(0, allowed)
    asyncio.run(interpreter.close())


@pytest.mark.parametrize("script", [DOUBTED, RAISING], ids=["a type warning", "an error at the top"])
async def test_a_script_needs_one_process_to_be_checked(interpreter_of_one_core: Interpreter, script: str) -> None:
    async with asyncio.timeout(60):
        await interpreter_of_one_core.type_problems(script, STUBS)
        assert await interpreter_of_one_core.type_problems("async def main():\n    return 1\n", STUBS) == []


@pytest.mark.parametrize("script", [DOUBTED, RAISING], ids=["a type warning", "an error at the top"])
async def test_scripts_that_are_checked_at_once_all_get_their_turn(interpreter: Interpreter, script: str) -> None:
    scripts = [f"{script}# {number}\n" for number in range(2 * processors())]
    async with asyncio.timeout(60):
        await asyncio.gather(*(interpreter.type_problems(each, STUBS) for each in scripts))
        end = await interpreter.start("async def main():\n    return 1\n", "main", {}, lambda _: None)
    assert end.value == 1


def test_a_thread_holds_a_process_of_each_pool_at_most() -> None:
    first, other = Checkouts("runs scripts"), Checkouts("reads scripts")
    with first.one(), other.one(), pytest.raises(NestedCheckout), first.one():
        pass
    with first.one():
        pass


def test_a_pool_is_bounded_on_a_machine_of_many_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "processors", lambda: 500)
    assert Checkouts("reads scripts").processes == 16


def test_nobody_waits_for_a_process_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKOUT_SECONDS", 0.05)
    reader = ScriptReader()
    taken, leave = threading.Barrier(reader._pool.checkouts.processes + 1), threading.Event()

    def hold() -> None:
        with reader._pool.checkouts.one():
            taken.wait(10)
            leave.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(reader._pool.checkouts.processes)]
    for thread in threads:
        thread.start()
    taken.wait(10)
    with pytest.raises(InterpreterCrashed, match="no process that reads scripts became free in 0 s"):
        reader("classes", DOUBTED)
    leave.set()
    for thread in threads:
        thread.join(10)
    monkeypatch.undo()  # a busy machine may take longer than that to answer
    assert reader("classes", DOUBTED) is not None
    reader.close()
