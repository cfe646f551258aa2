"""Batch forms: calls that are ready together in one activity are made together, each with an end of its own."""

from pathlib import Path
from typing import Any

from doubles.local_workers import Start
from doubles.runs import call, called
from doubles.tools import calls


def halves(*numbers: int) -> dict[str, Any]:
    """A plan that halves these numbers in one activity."""
    nodes = [call(f"n{number}", "half", args={"value": number}) for number in numbers]
    names = [node["id"] for node in nodes]
    ends = {"id": "ends", "kind": "join", "inputs": names, "policy": "settled"}
    return {"nodes": [*nodes, ends], "fuse": "on", "answer": "$ends"}


async def test_calls_that_are_ready_together_go_together_and_each_has_its_own_end(start: Start, cache: Path) -> None:
    handle = await start(plan=halves(2, 4, 6, 8, 5))
    report = await handle.result()
    found = [end["value"]["value"] if end["value"] else end["error"] for end in report["answer"]]
    assert found == [[1, 3], [2, 3], [3, 3], [4, 2], "ToolError: 5 is odd"]
    assert not calls(cache, handle.first_execution_run_id or "")
    assert {line.get("attempts", 1) for line in report["nodes"] if line["kind"] == "tool"} == {1}


async def test_if_a_whole_batch_fails_each_call_is_tried_again_alone(start: Start, cache: Path) -> None:
    handle = await start(plan=halves(2, 4, 13, 6, 8))
    report = await handle.result()
    found = [end["value"]["value"] for end in report["answer"]]
    assert found == [[1, 1], [2, 1], [6, 1], [3, 2], [4, 2]]
    again = {"n2~1": 1, "n4~1": 1, "n13~1": 1}
    assert called(cache, handle) == again
