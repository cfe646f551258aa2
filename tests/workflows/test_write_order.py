"""An edited script that makes the writes to one resource in another order asks before it takes them over."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Handle, Start, serving, starting
from doubles.runs import insist, until
from doubles.tools import calls
from temporalio.client import Client

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools

KEEP = """
import asyncio

async def enter_it(day: int):
    return await enter(book=BOOK, text=f"day {day}")

async def main():
    days = [1, 2, 3]
    CALLS
    return (await END)["value"]
"""
CALLS = {
    "loop": "for day in days: await enter_it(day)",
    "tickets": 'for day in days: await task(enter, book=BOOK, text=f"day {day}")',
    "tasks": "for day in days: await task(enter_it, day=day)",
    "gather": "await asyncio.gather(*[enter_it(day) for day in days])",
    "tasks at once": "await parallel([task(enter_it, day=day) for day in days])",
}
FIXES_THE_ORDER = ("loop", "tickets", "tasks")
FAILS, ENDS = 'fail(message="no")', "nap(value=7)"


@pytest.fixture
async def start(client: Client, cache: Path, artifacts: Path, docs: Path) -> AsyncIterator[Start]:
    """Start a run on workers with a tool that writes to a resource."""
    paths = WorkerPaths(artifacts, cache, docs, (Path("/"),))
    tools = load_tools(["doubles.tools", "doubles.books"])
    host = Activities(paths, tools, identity="tests", approval="never")
    async with serving(client, host), starting(client) as begin:
        yield begin


@pytest.fixture
def entries(cache: Path, request: pytest.FixtureRequest) -> str:
    """The name of a book of this test alone."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    (cache / f"{name}.txt").unlink(missing_ok=True)
    return name


def _script(way: str, book: str, days: str, end: str) -> str:
    script = KEEP.replace("CALLS", CALLS[way]).replace("[1, 2, 3]", days).replace("END", end)
    return script.replace("BOOK", f'"{book}"')


def _plan(script: str) -> dict[str, Any]:
    return {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}


def _lines(cache: Path, book: str) -> list[str]:
    return sorted((cache / f"{book}.txt").read_text().splitlines())


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


def _asks(view: dict[str, Any]) -> bool:
    return blocked(view) and view["blocked"][0]["why"] == "approval"


async def _agree(handle: Handle) -> str:
    """Answer the next question with yes, and return it."""
    view = await until(handle, _asks)
    [asked] = view["blocked"]
    await insist(handle, "approve", asked["example"])
    return str(asked["shown"])


async def _made(start: Start, way: str, book: str) -> Handle:
    """Return a run that has made its writes, and waits for a person because of something else."""
    handle = await start(plan=_plan(_script(way, book, "[1, 2, 3]", FAILS)), approval="never")
    await until(handle, blocked)
    return handle


@pytest.mark.parametrize("way", FIXES_THE_ORDER)
async def test_an_edit_asks_about_another_order(start: Start, cache: Path, entries: str, way: str) -> None:
    handle = await _made(start, way, entries)
    await insist(handle, "edit_program", {"script": _script(way, entries, "[3, 1, 2]", ENDS)})
    asked = await _agree(handle)
    assert asked.startswith("the old script wrote this at ")
    assert f"before the write to book:{entries} at " in asked
    assert "day 1" in asked
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", 7)
    assert _lines(cache, entries) == ["day 1", "day 2", "day 3"]


@pytest.mark.parametrize("way", FIXES_THE_ORDER)
async def test_a_fork_asks_about_another_order(start: Start, cache: Path, entries: str, way: str) -> None:
    origin = await start(plan=_plan(_script(way, entries, "[1, 2, 3]", ENDS)), approval="never")
    await origin.result()
    again = _plan(_script(way, entries, "[3, 1, 2]", ENDS))
    fork = await start(plan=again, approval="never", origins=[origin.first_execution_run_id])
    assert "day 1" in await _agree(fork)
    assert (await fork.result())["status"] == "done"
    assert _lines(cache, entries) == ["day 1", "day 2", "day 3"]


@pytest.mark.parametrize("way", ["gather", "tasks at once"])
async def test_what_runs_side_by_side_has_no_order(start: Start, cache: Path, entries: str, way: str) -> None:
    handle = await _made(start, way, entries)
    await insist(handle, "edit_program", {"script": _script(way, entries, "[3, 1, 2]", ENDS)})
    assert (await handle.result())["status"] == "done"
    assert _lines(cache, entries) == ["day 1", "day 2", "day 3"]


@pytest.mark.parametrize(("days", "given"), [("[1, 3]", {}), ("[3, 1, 2]", {"repeat_writes": True})])
async def test_the_same_order_does_not_ask_nor_an_edit_that_repeats_writes(
    start: Start, cache: Path, entries: str, days: str, given: dict[str, Any]
) -> None:
    handle = await _made(start, "loop", entries)
    await insist(handle, "edit_program", {"script": _script("loop", entries, days, ENDS), **given})
    assert (await handle.result())["status"] == "done"
    assert _lines(cache, entries) == ["day 1", "day 2", "day 3"]


async def test_a_new_write_in_front_asks_and_so_does_the_first_of_the_old_ones(
    start: Start, cache: Path, entries: str
) -> None:
    handle = await _made(start, "loop", entries)
    await insist(handle, "edit_program", {"script": _script("loop", entries, "[0, 1, 2, 3]", ENDS)})
    assert "Write this as well?" in await _agree(handle)
    assert "Go on with it as it is?" in await _agree(handle)
    assert (await handle.result())["status"] == "done"
    assert _lines(cache, entries) == ["day 0", "day 1", "day 2", "day 3"]


async def test_a_retry_does_not_ask_once_more(start: Start, cache: Path, entries: str) -> None:
    handle = await _made(start, "loop", entries)
    await insist(handle, "edit_program", {"script": _script("loop", entries, "[3, 1, 2]", FAILS)})
    await _agree(handle)
    view = await until(handle, lambda view: blocked(view) and view["blocked"][0]["why"] == "failed")
    again = view["blocked"][0]["example"]
    await insist(handle, "retry_node", again)

    def has_failed_again(view: dict[str, Any]) -> bool:
        made = calls(cache, str(handle.first_execution_run_id))
        return blocked(view) and any(each.endswith("_4~2") for each in made)

    view = await until(handle, has_failed_again)
    assert [each["why"] for each in view["blocked"]] == ["failed"]
    await insist(handle, "edit_program", {"script": _script("loop", entries, "[1, 2, 3]", ENDS)})
    assert (await handle.result())["status"] == "done"
    assert _lines(cache, entries) == ["day 1", "day 2", "day 3"]


async def test_a_person_may_reject_the_order(start: Start, cache: Path, entries: str) -> None:
    handle = await _made(start, "loop", entries)
    await insist(handle, "edit_program", {"script": _script("loop", entries, "[3, 1, 2]", ENDS)})
    view = await until(handle, _asks)
    await insist(handle, "reject", {"node": view["blocked"][0]["node"], "reason": "the other way round"})
    await until(handle, lambda view: blocked(view) and view["blocked"][0]["why"] != "approval")
    await insist(handle, "edit_program", {"script": _script("loop", entries, "[1, 2, 3]", ENDS)})
    assert (await handle.result())["status"] == "done"
    assert _lines(cache, entries) == ["day 1", "day 2", "day 3"]
