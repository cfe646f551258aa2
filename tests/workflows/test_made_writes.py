"""Edits and forks take over the writes that were made, wherever the new script makes them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import insist, until

AT_ONCE = 4  # runs on the few workers of the test


def program(script: str) -> dict[str, Any]:
    return {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}


def blocked(view: dict[str, Any]) -> bool:
    return bool(view["status"] == "blocked")


PAY = """
async def settle(bill: int):
    return (await note(text=f"MARK {bill}"))["value"]

async def main():
    bills = [1, 2, 3]
    paid = CALLS
    return [len(paid), (await END)["value"]]
"""
CALLS = {
    "loop": "[await settle(bill) for bill in bills]",
    "gather": "await asyncio.gather(*[settle(bill) for bill in bills])",
    "tasks": "await parallel([task(settle, bill=bill) for bill in bills])",
}
FAILS, ENDS = 'fail(message="no")', "nap(value=7)"
CHANGES: dict[str, Callable[[str], str]] = {
    "nothing": lambda script: script,
    "renamed": lambda script: script.replace("settle", "clear"),
    "in front": lambda script: script.replace("[1, 2, 3]", "[0, 1, 2, 3]"),
    "first dropped": lambda script: script.replace("[1, 2, 3]", "[2, 3]"),
    "other order": lambda script: script.replace("[1, 2, 3]", "[3, 1, 2]"),
    "read before": lambda script: script.replace("    bills =", "    await nap(value=9)\n    bills ="),
    "argument": lambda script: script.replace("bill: int", 'bill: int, why: str = "due"'),
    "as loop": lambda script: _called(script, "loop"),
    "as gather": lambda script: _called(script, "gather"),
    "as tasks": lambda script: _called(script, "tasks"),
}


def _called(script: str, way: str) -> str:
    for calls in CALLS.values():
        script = script.replace(calls, CALLS[way])
    return script


def _script(way: str, mark: str, end: str) -> str:
    return "import asyncio\n" + PAY.replace("MARK", mark).replace("CALLS", CALLS[way]).replace("END", end)


def _written(cache: Path, mark: str) -> Counter[str]:
    """Return how often each bill was paid."""
    lines = (cache / "notes.txt").read_text().splitlines()
    return Counter(line.rpartition(" ")[2] for line in lines if f" {mark} " in line)


def _bills(change: str) -> set[str]:
    return {"0", "1", "2", "3"} if change == "in front" else {"1", "2", "3"}


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.timeout(300)
async def test_an_edit_and_a_fork_write_nothing_twice(start: Start, cache: Path, way: str) -> None:
    async def edited(change: str) -> None:
        mark = f"{way}-{change}-edit".replace(" ", "-")
        handle = await start(plan=program(_script(way, mark, FAILS)), approval="never")
        await until(handle, blocked)
        changed = CHANGES[change](_script(way, mark, ENDS))
        await insist(handle, "edit_program", {"script": changed, "repeat_writes": True})
        report = await handle.result()
        assert report["status"] == "done", (change, report)
        assert _written(cache, mark) == dict.fromkeys(_bills(change), 1), change

    async def forked(change: str) -> None:
        mark = f"{way}-{change}-fork".replace(" ", "-")
        origin = await start(plan=program(_script(way, mark, ENDS)), approval="never")
        await origin.result()
        again = program(CHANGES[change](_script(way, mark, ENDS)))
        homes = [origin.first_execution_run_id]
        fork = await start(plan=again, approval="never", origins=homes, repeat_writes=True)
        report = await fork.result()
        assert report["status"] == "done", (change, report)
        assert _written(cache, mark) == dict.fromkeys(_bills(change), 1), change

    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(run: Coroutine[Any, Any, None]) -> None:
        async with turns:
            await run

    await asyncio.gather(*(in_turn(run(change)) for change in CHANGES for run in (edited, forked)))


EQUAL = """
async def main():
    done = []
    for number in range(COUNT):
        done.append(await note(text="MARK 1"))
    return [len(done), (await END)["value"]]
"""


@pytest.mark.parametrize(("before", "after", "made"), [(3, 2, 3), (3, 3, 3), (2, 3, 3)])
async def test_equal_writes_are_taken_over_once_for_each_time_they_were_made(
    start: Start, cache: Path, before: int, after: int, made: int
) -> None:
    mark = f"equal-{before}-{after}"
    script = EQUAL.replace("MARK", mark)
    handle = await start(plan=program(script.replace("COUNT", str(before)).replace("END", FAILS)), approval="never")
    await until(handle, blocked)
    changed = script.replace("COUNT", str(after)).replace("END", ENDS)
    await insist(handle, "edit_program", {"script": changed.replace("done", "all_done")})
    assert (await handle.result())["status"] == "done"
    assert _written(cache, mark) == {"1": made}


CHANGED = """
async def main():
    await note(text="MARK old")
    return (await END)["value"]
"""


async def test_a_write_with_another_text_asks_whatever_the_policy_is(start: Start, cache: Path) -> None:
    mark = "changed-text"
    script = CHANGED.replace("MARK", mark)
    handle = await start(plan=program(script.replace("END", FAILS)), approval="never")
    await until(handle, blocked)
    await insist(handle, "edit_program", {"script": script.replace("old", "new").replace("END", ENDS)})
    view = await until(handle, lambda view: blocked(view) and view["blocked"][0]["why"] == "approval")
    [asked] = view["blocked"]
    assert asked["shown"].startswith("the old script wrote note {")
    assert "so this may be the same write with another text. Write this as well?" in asked["shown"]
    assert _written(cache, mark) == {"old": 1}
    await insist(handle, "approve", asked["example"])
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", 7)
    assert _written(cache, mark) == {"old": 1, "new": 1}
