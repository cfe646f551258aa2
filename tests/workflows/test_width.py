"""`width`: how many agents a program may run at once, by slots, budget and rate, and what it was told stays so."""

from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import Start
from doubles.runs import board, call, until

from sennit.activities.definitions import Activities
from sennit.activities.programs.session import Snapshots
from sennit.testing.models import ModelServer

pytestmark = pytest.mark.timeout(120)
SCRIPT = """
async def main():
    before = [await width(), await width(per_agent_calls=2), await width(per_agent_tokens=30_000)]
    await llm("Say it.")
    after = await width(per_agent_calls=2)
    refused = []
    for wrong in (0, -1, 2.5, True):
        try:
            await width(per_agent_calls=wrong)
        except ValueError as error:
            refused.append(str(error))
    try:
        await width(per_agent_tokens=0)
    except ValueError as error:
        refused.append(str(error))
    return [before, after, await width(per_agent_calls=10_000), refused]
"""


def program(script: str) -> dict[str, Any]:
    return {"nodes": [{"id": "main", "kind": "program", "script": script}], "answer": "$main"}


async def test_the_width_is_the_least_of_what_bounds_it_and_is_never_told_anew(
    begin: Start, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of the script is lost in between, so that the script runs again from its record."""
    monkeypatch.setattr(Snapshots, "find", lambda *_: None)
    model_server.on("Say it", "It is said.")
    handle = await begin(plan=program(SCRIPT), window=7, budget={"calls": 10, "tokens": 100_000})
    report = await handle.result()
    before, after, least, refused = report["answer"]
    assert before == [7, 5, 3]
    assert (after, least) == (4, 1)
    assert len(refused) == 5
    assert refused[0] == "width: `per_agent_calls` is a whole number from 1 on, not 0"


async def test_a_rate_bounds_the_width(begin: Start, model_host: Activities, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate of 0 removes the cap of the provider, so it is none here either."""
    monkeypatch.setattr(type(model_host._models), "rates", {"sennit.llm.openai": 60})
    script = "async def main():\n    return [await width(per_agent_calls=calls) for calls in (1, 5, 100)]\n"
    report = await (await begin(plan=program(script))).result()
    assert report["answer"] == [60, 12, 1]
    monkeypatch.setattr(type(model_host._models), "rates", {"sennit.llm.openai": 0})
    report = await (await begin(plan=program(script))).result()
    assert report["answer"] == [100, 100, 100]


async def test_the_board_says_what_holds_the_items_of_a_map_back(begin: Start, held: Path) -> None:
    plan = {
        "nodes": [
            call("list", "nap", args={"value": list(range(5))}),
            {
                "id": "m",
                "kind": "map",
                "over": "$list.value",
                "do": {"kind": "tool", "tool": "hang", "args": {"name": held.name}},
            },
        ]
    }
    handle = await begin(plan=plan, window=2, fuse="off")
    await until(handle, lambda view: view["counts"].get("running", 0) >= 2)
    assert "3 wait for a slot" in await board(handle)
    await handle.cancel()


async def test_a_script_knows_what_runs_and_waits_for_a_model(begin: Start, model_server: ModelServer) -> None:
    script = """
async def main():
    try:
        await load("planner")
    except ValueError as error:
        return [await load(), str(error)]
"""
    report = await (await begin(plan=program(script))).result()
    there, refused = report["answer"]
    assert there == {"running": 0, "backlog": 0}
    assert refused.startswith("load: `role` is one of worker, critic")


async def test_functions_of_a_script_may_have_the_names_of_these_words(begin: Start) -> None:
    script = """
async def load(number: int):
    return number + 1

async def width():
    return 40

async def main():
    return await width() + (await parallel([task(load, number=1)]))[0]
"""
    assert (await (await begin(plan=program(script))).result())["answer"] == 42
