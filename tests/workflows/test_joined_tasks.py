"""Random runs with people in them: whatever workflow tasks a replay or a reset joins, the run writes the same."""

import asyncio
import os
from random import Random
from typing import Any

import pytest
from doubles.activations import CANCEL, check_joins, check_reset, kinds_in, recorded_from
from doubles.local_workers import Start
from doubles.resets import reset
from doubles.runs import call, insist, until
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

SEEDS = range(int(os.environ.get("SENNIT_SEEDS", "2")))
SCRIPT = """
import asyncio

async def one(number: int):
    await asyncio.sleep(0.2 * number)
    return (await nap(value=number, seconds=0.4))["value"]

async def main():
    return await asyncio.gather(*[one(number) for number in range(3)])
"""


def answered(event: HistoryEvent) -> bool:
    return event.HasField("workflow_execution_update_accepted_event_attributes")


def random_plan(chance: Random) -> dict[str, Any]:
    """Return gates, calls behind them, and calls for which nobody waits: the tasks of their ends write nothing."""
    nodes: list[dict[str, Any]] = []
    for number in range(2):
        nodes.append({"id": f"g{number}", "kind": "gate", "question": f"Go on with {number}?", "timeout": "5m"})
        nodes.append(call(f"b{number}", args={"value": f"$g{number}", "seconds": chance.random()}))
    nodes += [call(f"s{number}", args={"value": number, "seconds": 2.5 * chance.random()}) for number in range(6)]
    names = [f"s{number}" for number in chance.sample(range(6), 3)]
    nodes.append({"id": "race", "kind": "join", "inputs": names, "policy": chance.choice(("first", "settled"))})
    nodes.append({"id": "main", "kind": "program", "script": SCRIPT})
    return {"nodes": nodes, "answer": ["$b0", "$b1", "$main"], "fuse": chance.choice(("off", "auto"))}


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_run_writes_the_same_in_whatever_tasks_it_is_replayed(
    client: Client, start: Start, seed: int
) -> None:
    """`SENNIT_SEEDS=300` tries more of them. Each is reset to the task of an answer, which then comes again."""
    chance = Random(seed)
    handle = await start(plan=random_plan(chance))
    await until(handle, lambda view: len(view["blocked"]) == 2)
    await asyncio.sleep(2 * chance.random())
    await insist(handle, "answer", {"node": "g0", "value": "yes"})
    first = await handle.fetch_history()
    again = await reset(client, handle, answered)
    await asyncio.sleep(chance.random())
    await until(again, lambda view: [item["node"] for item in view["blocked"]] == ["g1"])
    await insist(again, "answer", {"node": "g1", "value": "no"})
    report = await again.result()
    assert (report["status"], report["answer"]) == ("done", [{"value": "yes"}, {"value": "no"}, [0, 1, 2]])
    for history in (first, await again.fetch_history()):
        run = await recorded_from(history)
        await check_joins(run, chance)
        for place in range(1, len(run.tasks)):
            if CANCEL not in kinds_in(run.tasks[place]):
                await check_reset(run, place)
