"""What tools say that they have spent elsewhere: it is in the run's report, and counts for its budget."""

from pathlib import Path
from typing import Any

from doubles.local_workers import Start, remembered_or_not
from doubles.runs import call
from doubles.tools import calls


def payments(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": list(nodes), "answer": [f"${node['id']}" for node in nodes]}


def usage_of(report: dict[str, Any]) -> tuple[int, float]:
    used = report["usage"]
    return used["input_tokens"] + used["output_tokens"], used["cost_usd"]


@remembered_or_not
async def test_what_a_tool_has_spent_is_in_the_report(start: Start) -> None:
    one = call("one", "bill", args={"tokens": 1_000, "cost": 0.25})
    two = call("two", "bill", args={"tokens": 500, "cost": 0.5}, needs=["one"])
    report = await (await start(plan=payments(one, two))).result()
    assert (report["status"], usage_of(report)) == ("done", (1_500, 0.75))


async def test_an_attempt_that_fails_has_spent_too(start: Start) -> None:
    node = call("one", "bill", args={"tokens": 1_000, "cost": 0.25, "fails": 1}, retry={"attempts": 3})
    report = await (await start(plan=payments(node))).result()
    assert usage_of(report) == (2_000, 0.5)
    node = call("one", "bill", args={"tokens": 1_000, "cost": 0.25, "fails": 9}, retry={"attempts": 2})
    report = await (await start(plan=payments(node), on_failure="partial")).result()
    assert usage_of(report) == (2_000, 0.5)


async def test_a_short_call_that_fails_within_a_step_of_a_program_has_spent_too(start: Start, cache: Path) -> None:
    """The step makes the call itself, and the run makes it once more by itself."""
    script = "async def main():\n    return await bill(tokens=1000, cost=0.25, fails=1, retry=2)\n"
    plan = {"nodes": [{"id": "main", "kind": "program", "script": script}]}
    handle = await start(plan=plan, fuse="on")
    report = await handle.result()
    assert handle.first_execution_run_id is not None
    assert (report["status"], usage_of(report)) == ("done", (2_000, 0.5))
    assert calls(cache, handle.first_execution_run_id) == ["main_1~1", "main_1~1"]


async def test_it_counts_for_the_budget(start: Start, cache: Path) -> None:
    """The second call says what it is going to use, and is not made any more: the first has spent all that there is."""
    one = call("one", "bill", args={"tokens": 2_000})
    two = call("two", "bill", args={"tokens": 10}, needs=["one"], estimate={"tokens": 10})
    handle = await start(plan=payments(one, two), budget={"tokens": 1_000}, on_failure="partial")
    report = await handle.result()
    assert report["status"] == "partial"
    assert report["problem"] == "the budget is spent (tokens 2000 of 1000)"
    assert handle.first_execution_run_id is not None
    assert calls(cache, handle.first_execution_run_id) == ["one~1"]
