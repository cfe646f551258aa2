"""An advance of a program makes its short calls itself. They are nodes as all others are, and are repaired as such."""

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles.events import activities, failed_tasks
from doubles.local_workers import Start
from doubles.runs import called, insist, until

from sennit.activities.nodes import short_calls

MANY = """
import asyncio

async def pair(number: int) -> int:
    found = await glance(value=number)
    return (await glance(value=found["value"]))["value"]

async def main(count: int):
    found = await asyncio.gather(*[pair(number) for number in range(count)])
    both = await parallel([task(glance, value=number) for number in found[:2]])
    return [sum(found), *[each["value"] for each in both]]
"""
FAILING = """
async def main(repaired: str):
    found = [(await glance(value=number))["value"] for number in range(5)]
    try:
        await fail(message="caught", unless=repaired)
    except Exception as error:
        found.append(str(error).removeprefix("ToolError: "))
    found.append((await flaky(failures=1))["value"])
    await fail(message="not caught", unless=repaired)
    return found
"""


def program(script: str, fuse: str = "auto", **arguments: Any) -> dict[str, Any]:
    nodes = [{"id": "main", "kind": "program", "script": script, "arguments": arguments}]
    return {"nodes": nodes, "answer": "$main", "fuse": fuse}


async def test_a_program_of_short_calls_is_one_activity(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_calls, "ADVANCE_SECONDS", 300.0)  # a busy machine takes longer than an advance may
    sizes = {}
    for count in (20, 120):
        handle = await start(plan=program(MANY, count=count))
        report = await handle.result()
        assert (report["status"], report["answer"]) == ("done", [sum(range(count)), 0, 1])
        assert Counter(kind for kind, _ in await activities(handle)) == {"prepare": 1, "program": 1}
        assert set(called(cache, handle).values()) == {1}
        rows = [line for line in report["nodes"] if line["kind"] == "tool"]
        assert [line["id"] for line in rows][:3] == ["main_1", "main_2", "main_3"]
        assert {(line["status"], line.get("attempts", 1)) for line in rows} == {("succeeded", 1)}
        assert len(rows) == 2 * count + 2
        assert not await failed_tasks(handle)
        *before, _ = (await handle.fetch_history()).events  # the last one has the report, with a row for each node
        sizes[count] = sum(event.ByteSize() for event in before)
    assert sizes[120] - sizes[20] <= 2 * 100 * 120, "bytes of history for a call"
    sharing = (await handle.query("sharing"))["nodes"]
    assert sharing["main_1"] == "made by an advance of its program: `glance` takes 20 ms, declared"


@pytest.mark.parametrize("caught", [False, True])
async def test_a_person_repairs_a_call_that_a_step_has_made(start: Start, cache: Path, *, caught: bool) -> None:
    """That which nobody has caught: the program goes on there. One that its script has caught: it goes back to it."""
    repaired = uuid.uuid4().hex
    handle = await start(plan=program(FAILING, "on", repaired=repaired))
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    [failed] = [item["node"] for item in view["blocked"]]
    before = called(cache, handle)
    (cache / repaired).touch()
    await insist(handle, "retry_node", {"node": "main_6" if caught else failed})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [0, 1, 2, 3, 4, *([] if caught else ["caught"]), 2]), report
    again = called(cache, handle) - before
    assert again.total() == (2 if caught else 1)
    assert not any("glance" in name for name in again)
    statuses = Counter(line["status"] for line in report["nodes"] if line["kind"] == "tool")
    # Behind the caught call the other failed one is made again, by a unit of its own.
    assert statuses == ({"succeeded": 8, "skipped": 1} if caught else {"succeeded": 7, "handled": 1})


TASKS = """
async def look(number: int, repaired: str) -> int:
    found = (await glance(value=number))["value"]
    log("found", found)
    if number == 3:
        await fail(message="no", unless=repaired)
    return (await glance(value=found))["value"]

async def main(repaired: str):
    found = await parallel([task(look, number=number, repaired=repaired) for number in range(5)])
    return [*found, (await glance(value="last"))["value"]]
"""


@pytest.mark.parametrize("how", ["retry", "edit"])
async def test_a_person_repairs_a_call_of_a_task_that_a_step_has_begun(start: Start, cache: Path, how: str) -> None:
    """What other tasks have called is not called again, in a fork neither."""
    repaired = uuid.uuid4().hex
    handle = await start(plan=program(TASKS, "on", repaired=repaired))
    view = await until(handle, lambda view: bool(view["status"] == "blocked"))
    [failed] = [item["node"] for item in view["blocked"]]
    before = called(cache, handle)
    edited = TASKS.replace("    await fail", "    pass #")
    (cache / repaired).touch()
    if how == "retry":
        await insist(handle, "retry_node", {"node": failed})
    else:
        await insist(handle, "edit_program", {"node": "main", "script": edited})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [0, 1, 2, 3, 4, "last"]), report
    rows = {line["id"]: line for line in report["nodes"]}
    assert rows[failed]["call_site"] == "look#4/fail:6"
    calls = [line for line in report["nodes"] if line["kind"] == "tool" and line["call_site"].startswith("look#")]
    repairs = "skipped" if how == "edit" else "succeeded"  # the edited script does not make it
    ends = Counter(line["status"] for line in calls if line["id"] != failed)
    assert (rows[failed]["status"], ends) == (repairs, {"succeeded": 10})
    assert Counter(report["log"]) == {f"look#{number + 1}: found {number}": 1 for number in range(5)}
    again = Counter(name.partition("_g")[0] for name in (called(cache, handle) - before).elements())
    assert sum(again.values()) == 3 - (how == "edit"), again
    fork = await start(plan=program(edited, "on", repaired=repaired), origins=[handle.first_execution_run_id])
    assert (await fork.result())["answer"] == report["answer"]
    assert not called(cache, fork)


JOINED = """
async def write(number: int):
    return (await note(text=f"{number} MARK"))["value"]

async def look(number: int):
    return (await glance(value=[number, "WORD"]))["value"]

async def main():
    await note(text="MARK")
    await parallel([task(write, number=number) for number in range(3)])
    found = await parallel([task(look, number=number) for number in range(2)])
    END
    return found
"""


async def test_an_edit_gives_up_a_join_whose_value_the_old_script_has_worked_out_in_place(start: Start) -> None:
    """Its tasks run again and end with other values: the old script must not go on with those."""
    script = JOINED.replace("MARK", uuid.uuid4().hex)
    old = script.replace("WORD", "old").replace("END", 'await fail(message="no")')
    handle = await start(plan=program(old), approval="never")
    await until(handle, lambda view: bool(view["status"] == "blocked"))
    edited = script.replace("WORD", "new").replace("END", 'await glance(value="end")')
    await insist(handle, "edit_program", {"script": edited})
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [[0, "new"], [1, "new"]])
