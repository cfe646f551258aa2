"""Programs that are reset, cancelled, parked for long, or given sub-agents that ask."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.resets import reset
from doubles.runs import call, called, insist, until
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError

from sennit.activities.programs.advance import Programs
from sennit.testing.models import ModelServer
from sennit.workflows.run import drain


def program(script: str, **fields: Any) -> dict[str, Any]:
    nodes = [{"id": "main", "kind": "program", "script": script, **fields}]
    return {"nodes": nodes, "answer": "$main"}


AGENTS = """
async def below(goal: str):
    return await agent(goal, tools=["note"], budget={"calls": 4})

async def main():
    found = await parallel([task(below, goal="Write it down"), task(nap, value=1)])
    return [found, (await budget_left())["calls"]]
"""


async def test_a_sub_agent_of_a_program_asks_and_spends_what_its_program_has(
    client: Client, begin: Start, model_server: ModelServer
) -> None:
    model_server.on("You plan work", '1. note(text="hello")\n2. answer($1)')
    model_server.on("You put results together", "Done.")
    handle = await begin(plan=program(AGENTS), approval="writes", budget={"calls": 30})
    view = await until(handle, lambda view: bool(view["blocked"]))
    [asked] = view["blocked"]
    assert (asked["node"], asked["run"]) == ("main_2.n1", f"{handle.id}.main_2")
    await insist(client.get_workflow_handle(asked["run"]), asked["update"], asked["example"])
    report = await handle.result()
    assert (report["status"], report["answer"]) == ("done", [["Done.", {"value": 1}], 30 - report["usage"]["calls"]])


MIDDLE = """
async def look(number: int):
    first = (await nap(value=number))["value"]
    return (await nap(value=first + 10))["value"]

async def main(mark: str):
    one = await parallel([task(look, number=number) for number in range(3)])
    two = (await note(text=mark))["value"]
    three = await pipeline([1, 2], look, look)
    return [one, two, three, await budget_left()]
"""


def after(point: int) -> Callable[[HistoryEvent], bool]:
    return lambda event: event.event_id > point


async def test_a_program_that_is_reset_to_its_middle_calls_nothing_again(
    client: Client, start: Start, cache: Path
) -> None:
    mark = uuid.uuid4().hex
    handle = await start(plan=program(MIDDLE, arguments={"mark": mark}), approval="never")
    answer, before = (await handle.result())["answer"], called(cache, handle)
    ended = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    tasks = [event.event_id async for event in handle.fetch_history_events() if event.event_type == ended]
    for share in (0.9, 0.6, 0.3):
        point = tasks[int(share * len(tasks))]
        again = await reset(client, handle, after(point))
        assert (await again.result())["answer"] == answer
    assert called(cache, handle) == before
    assert (cache / "notes.txt").read_text().count(mark) == 1


BROKEN = "async def main():\n    await fail(message='no')\n"


async def test_what_runs_instead_of_a_program_its_script_calls(start: Start) -> None:
    plan = program(BROKEN, on_error={"instead": "other"})
    with pytest.raises(WorkflowFailureError) as refused:
        await (await start(plan={**plan, "nodes": [*plan["nodes"], call("other")]})).result()
    assert "catch the error in its script" in str(refused.value.cause)


PARKED = """
async def main():
    told = []
    for number in range(3):
        told.append(await ask(f"Go on {number}?"))
        for each in range(8):
            await nap(value=[number, each])
    return told
"""


def asks(question: str) -> Callable[[dict[str, Any]], bool]:
    return lambda view: question in str(view["blocked"])


async def test_a_program_waits_for_people_across_runs_that_continue_as_new(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, drain.SOFT_BOUNDS[1], 60))
    handle = await start(plan=program(PARKED))
    runs = {}
    for number in range(3):
        view = await until(handle, asks(f"Go on {number}?"))
        runs[(await handle.describe()).run_id] = number
        await insist(handle, "answer", {"node": view["blocked"][0]["node"], "value": f"yes {number}"})
    assert (await handle.result())["answer"] == ["yes 0", "yes 1", "yes 2"]
    assert set(called(cache, handle).values()) == {1}
    assert len(runs) > 1


async def test_a_run_is_cancelled_while_its_program_goes_on(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    real, entered = Programs.advance, asyncio.Event()

    async def advance(self: Programs, context: Any, *more: Any) -> Any:
        if context.call.session:
            entered.set()
            await asyncio.Event().wait()
        return await real(self, context, *more)

    monkeypatch.setattr(Programs, "advance", advance)
    handle = await start(plan=program("async def main():\n    await nap()\n    await nap()\n"))
    await entered.wait()
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as ended:
        await handle.result()
    assert isinstance(ended.value.cause, CancelledError)
